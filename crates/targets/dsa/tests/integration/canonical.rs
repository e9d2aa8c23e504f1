//! The canonical form.

use crate::{fixtures, read};
use chipless_dsa::Document;
use chipless_dsa::graph::{Graph, Node};
use chipless_dsa::syntax::Span;
use chipless_model::Limits;
use proptest::prelude::*;

fn format(text: &str) -> String {
    read(text).format().unwrap()
}

/// A graph without what depends on where things stand in the text, and on how old its form is.
fn meaning(graph: &Graph) -> impl PartialEq + std::fmt::Debug {
    let nodes: Vec<Node> = graph
        .nodes
        .iter()
        .map(|node| Node {
            span: Span::default(),
            ..node.clone()
        })
        .collect();
    (
        graph.groups.clone(),
        nodes,
        graph.edges.clone(),
        graph
            .tasks
            .iter()
            .map(|task| (task.head.clone(), task.body.clone()))
            .collect::<Vec<_>>(),
    )
}

#[test]
fn every_form_becomes_the_modern_one() {
    let older = "InputVec: in [0, 1]\nInput : last ;x=Add64( in0,in1,control = last {0:d,1: r|b1} )\n\n\n\nOutputVec: x\n";
    assert_eq!(
        format(older),
        "Input64: in[2]\nInput64: last\nx = Add64(in0, in1, ctrl=last{0: d, 1: r|b1})\n\nOutput64: x\n"
    );
    let specification = "dma a 128\n—-\n#pragma cmd 1\nInput64 foo[2] source=a stated\nc = Add_I64(foo_0, foo_1, ctrl=$foo_State & 8{0: d})\nOutput64 c";
    let canonical = "Array: a 128 dma\n----\n#pragma cmd=1\nInput64: foo[2] stated source=a\n\
                     c = Add_I64(foo0, foo1, ctrl=$fooState & 8{0: d})\nOutput64: c\n";
    assert_eq!(format(specification), canonical);
    let lanes = "Input64: a\nc_0 = Copy(a)\nc_1 = Copy(c_0)\n#pragma $Reg0 c_2\nc_2 = Add_I64($Reg0, c_1)\nOutput64: c[3]\n";
    assert_eq!(
        format(lanes),
        "Input64: a\nc0 = Copy(a)\nc1 = Copy(c0)\n#pragma $Reg0 c2\nc2 = Add_I64($Reg0, c1)\nOutput64: c[3]\n"
    );
    assert_eq!(
        format("Input: a\nb = Add16(a:16:1, a:16:0)\nOutput: b\n"),
        "Input64: a\nb = Add16(a:16:31, a:0:15)\nOutput64: b\n"
    );
    assert_eq!(
        format(
            "Array: a\nArray: b spm\nInput: x source=a\nInput: y source=b\nOutput: x\nOutput: y"
        ),
        "Array: a 64 dma\nArray: b 64 spm\nInput64: x source=a\nInput64: y source=b\nOutput64: x\nOutput64: y\n"
    );
}

#[test]
fn comments_and_blank_lines_stay() {
    let text = "\n\n# head\n\n\n/* two\n   lines */ Input64: a # of a\n  # of b\nInput64 /* inside */ : b;c = Add_I64(a, /* first */ b) # of c\n---- the second part\n# tail";
    let canonical = "# head\n\n/* two\n   lines */\nInput64: a  # of a\n# of b\nInput64: b  /* inside */\n\
                     c = Add_I64(a, b)  /* first */  # of c\n---- the second part\n# tail\n";
    assert_eq!(format(text), canonical);
    assert_eq!(format(canonical), canonical);
}

#[test]
fn formatting_twice_is_formatting_once_and_keeps_the_graph() {
    for (path, bytes) in fixtures("") {
        let before = Document::read(&bytes, &Limits::default());
        let text = before.format().unwrap();
        let after = read(&text);
        assert_eq!(after.format().unwrap(), text, "{}", path.display());
        assert_eq!(
            meaning(&after.graph),
            meaning(&before.graph),
            "{}",
            path.display()
        );
        let spelled: Vec<&str> = after
            .findings
            .iter()
            .map(|finding| finding.rule.code)
            .filter(|code| ["dfg-spelling", "dfg-older-form"].contains(code))
            .collect();
        assert!(spelled.is_empty(), "{}: {spelled:?}", path.display());
    }
}

#[test]
fn what_cannot_be_read_is_not_formatted() {
    assert!(
        read("Input64: a\nb = Add_I64(a\nOutput64: a\n")
            .format()
            .is_none()
    );
    assert!(
        read("Input64: a\nb = Add_I64(a, nobody)\nOutput64: b\n")
            .format()
            .is_some(),
        "names need not be known for it"
    );
}

/// Any blanks, comments and line ends where they change nothing.
fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), Just(" "), Just("\t "), Just(" /* c */ ")]
}

fn operand(values: usize) -> impl Strategy<Value = String> {
    prop_oneof![
        (0..values).prop_map(|n| format!("v{n}")),
        (0..values, 0..8u32, 0..8u32).prop_map(|(n, a, b)| format!(
            "v{n}:{}:{}",
            a.min(b) * 8,
            a.max(b) * 8 + 7
        )),
        (0..values, 0..values).prop_map(|(a, b)| format!("v{a}:0:31 v{b}:32:63")),
        any::<u64>().prop_map(|n| format!("{n:#x}")),
        (0..values, any::<u16>()).prop_map(|(n, c)| format!("Mul_I64(v{n},{c})")),
    ]
}

prop_compose! {
    fn program()(ports in 1..4usize, lines in 1..12usize)
        (ports in Just(ports), lines in (0..lines).map(|line| {
            let values = ports + line;
            (operand(values), 0..values, blank(), blank(), prop::option::of((0..values, 1..8u64)))
        }).collect::<Vec<_>>(), gap in blank()) -> String {
        let mut text = String::new();
        for port in 0..ports {
            text += &format!("Input64{gap}:{gap}v{port}{gap}\n");
        }
        for (index, (first, second, before, after, control)) in lines.iter().enumerate() {
            let control = control.map_or(String::new(), |(value, key)| format!(",{before}ctrl={after}v{value}{before}{{{key}:{after}d|r}}"));
            text += &format!("{before}v{}{after}={before}Add_I64({after}{first}{after},{before}v{second}{control}){after}\n", ports + index);
        }
        let last = ports + lines.len() - 1;
        text + &format!("Output64:{gap}v{last}")
    }
}

/// A slice that has no bits keeps its file in the older form: if the others were rewritten, they would mean other bits when they are read again.
#[test]
fn a_slice_without_bits_keeps_the_older_form() {
    let text = "Input64: a\nInput64: b\ns0 = Add16(a:16:3, b:0:15)\ns1 = Add16(a:16:2, b:9223372036854775807:47)\nc = s0 s1\n";
    let formatted = format(text);
    assert!(formatted.contains("a:16:3"), "{formatted}");
    assert_eq!(format(&formatted), formatted);
    let without = format(&text.replace("9223372036854775807:47", "16:1"));
    assert!(without.contains("a:48:63"), "{without}");
}

proptest! {
    #[test]
    fn any_program_prints_and_parses_to_itself(text in program()) {
        let before = read(&text);
        prop_assert!(before.is_complete(), "{text}\n{:?}", before.findings);
        let printed = before.format().unwrap();
        let after = read(&printed);
        prop_assert_eq!(meaning(&before.graph), meaning(&after.graph));
        prop_assert_eq!(&after.format().unwrap(), &printed);
    }
}
