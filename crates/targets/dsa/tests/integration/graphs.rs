//! Texts to graphs.

use crate::{codes, fixtures, read};
use chipless_dsa::Document;
use chipless_dsa::graph::{Actions, ArrayKind, Counts, Era, Graph, NodeKind, Role, Source};
use chipless_model::Limits;

/// Operands as text: `3.0[0..31]` for bits 0 to 31 of value 0 of node 3, `=5` for a constant, `$1` for a register.
fn operands(graph: &Graph, name: &str) -> Vec<String> {
    let node = graph
        .nodes
        .iter()
        .find(|node| node.name == name && !node.operands.is_empty())
        .unwrap();
    let operands = node.operands.iter().map(|operand| match &operand.source {
        Source::Constant(value) => format!("={value}"),
        Source::Register(register) => format!("${register}"),
        Source::Edges(edges) => {
            let parts = edges.iter().map(|id| {
                let edge = &graph.edges[*id];
                format!(
                    "{}.{}[{}..{}]",
                    edge.source.raw(),
                    edge.value,
                    edge.low,
                    edge.high
                )
            });
            parts.collect::<Vec<_>>().join(" ")
        }
    });
    operands.collect()
}

#[test]
fn fixtures_have_the_graphs_that_they_were_written_for() {
    let counts = |file: &str| {
        let (_, bytes) = fixtures("")
            .into_iter()
            .find(|(path, _)| path.ends_with(file))
            .unwrap();
        let document = Document::read(&bytes, &Limits::default());
        assert!(document.is_complete(), "{file}: {:?}", document.findings);
        let Counts {
            nodes,
            edges,
            instructions,
            input_ports,
            output_ports,
            arrays,
            groups,
            composites,
        } = document.graph.counts();
        (
            document.graph.era,
            [
                nodes,
                edges,
                instructions,
                input_ports,
                output_ports,
                arrays,
                groups,
                composites,
            ],
        )
    };
    assert_eq!(
        counts("axpy.dfg"),
        (Era::Modern, [14, 23, 8, 3, 1, 2, 2, 0])
    );
    assert_eq!(
        counts("row_sums.dfg"),
        (Era::Modern, [4, 4, 1, 1, 1, 1, 1, 0])
    );
    assert_eq!(counts("join.dfg"), (Era::Legacy, [9, 10, 3, 4, 2, 0, 1, 0]));
    assert_eq!(
        counts("running_sum.dfg"),
        (Era::Modern, [6, 6, 1, 2, 1, 2, 1, 0])
    );
    assert_eq!(
        counts("gather.dfg"),
        (Era::Modern, [8, 8, 2, 2, 2, 2, 2, 0])
    );
    assert_eq!(
        counts("fabric.dfg"),
        (Era::Modern, [6, 4, 0, 3, 2, 0, 1, 1])
    );
    assert_eq!(
        counts("stated_vector.dfg"),
        (Era::Modern, [5, 8, 2, 1, 1, 1, 1, 0])
    );
    assert_eq!(
        counts("complex_legacy.dfg"),
        (Era::Legacy, [21, 37, 15, 3, 3, 0, 1, 0])
    );
    assert_eq!(
        counts("pool_lists.dfg"),
        (Era::LaneLists, [13, 17, 8, 3, 2, 0, 1, 0])
    );
    assert_eq!(
        counts("specification.dfg"),
        (Era::Modern, [9, 12, 3, 2, 2, 2, 2, 0])
    );
    assert_eq!(
        counts("carriage_return.dfg"),
        (Era::Modern, [3, 2, 1, 1, 1, 0, 1, 0])
    );
}

#[test]
fn nodes_edges_and_values_are_numbered_in_the_order_of_the_file() {
    let document =
        read("Input64: a[2]\nInput32: b\nc = Add_I64(Mul_I64(a0, a1), a1:0:31 b)\nOutput64: c\n");
    let graph = &document.graph;
    let names: Vec<&str> = graph.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["a", "b", "", "c", "c"]);
    assert_eq!(
        operands(graph, "c"),
        ["2.0[0..63]", "0.1[0..31] 1.0[0..31]"]
    );
    let ends: Vec<(u32, u32, u32)> = graph
        .edges
        .iter()
        .map(|edge| (edge.source.raw(), edge.sink.raw(), edge.operand))
        .collect();
    assert_eq!(
        ends,
        [
            (0, 2, 0),
            (0, 2, 1),
            (2, 3, 0),
            (0, 3, 1),
            (1, 3, 1),
            (3, 4, 0)
        ]
    );
    assert_eq!(graph.nodes[0].values[1].uses.len(), 2);
}

#[test]
fn the_state_of_a_port_is_its_first_value() {
    let document = read(
        "Input64: a stated\n#pragma $Reg2 s\ns = Add_I64(a, $Reg2, ctrl=$aState & 8{0: d, 8: r|b1})\nOutput64: s state=a\n",
    );
    let graph = &document.graph;
    assert_eq!(operands(graph, "s"), ["0.1[0..63]", "$2", "0.0[0..7]"]);
    let NodeKind::Instruction(instruction) = &graph.nodes[1].kind else {
        panic!("{:?}", graph.nodes[1])
    };
    let control = instruction.control.as_ref().unwrap();
    assert_eq!(control.mask, 8);
    assert_eq!(control.actions(0), Actions::DISCARD);
    assert_eq!(
        control.actions(0x29),
        Actions::RESET.with(Actions::HOLD_FIRST)
    );
    assert_eq!(*graph.nodes[1].values[0].registers, [2]);
    let output = &graph.nodes[2];
    assert_eq!(
        output
            .operands
            .iter()
            .map(|operand| operand.role)
            .collect::<Vec<_>>(),
        [Role::Data, Role::State]
    );
}

#[test]
fn arrays_feed_inputs_and_end_outputs() {
    let document = read(
        "Array: m\nArray: t 0 gen\nInput64: a source=m\nInput64: i source=t\nb = Add_I64(a, i)\nOutput64: b destination=m\n",
    );
    let graph = &document.graph;
    let kinds: Vec<_> = graph
        .nodes
        .iter()
        .filter_map(|node| {
            if let NodeKind::Array(array) = node.kind {
                Some((array.kind, array.size))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(kinds, [(ArrayKind::Dma, 64), (ArrayKind::Generate, 0)]);
    assert_eq!(operands(graph, "a"), ["0.0[0..63]"]);
    assert_eq!(operands(graph, "m"), ["5.0[0..63]"]);
}

#[test]
fn constants_have_the_bits_that_the_language_gives_them() {
    let constant = |operation: &str, text: &str| {
        let text = format!("Input64: a\nb = {operation}(a, {text})\nOutput64: b\n");
        let document = read(&text);
        let Source::Constant(value) = document.graph.nodes[1].operands[1].source else {
            panic!("{text}")
        };
        value
    };
    assert_eq!(constant("Add_I64", "18446744073709551615"), u64::MAX);
    assert_eq!(constant("Add_I64", "0x10uL"), 16);
    assert_eq!(constant("Add_I64", "010"), 8);
    assert_eq!(
        [r"'x'", r"'\n'", r"'\''", r"'\0'", r"'\x41'"].map(|text| constant("Add_I64", text)),
        [120, 10, 39, 0, 65]
    );
    assert_eq!(
        codes("Input64: a\nb = Add_I64(a, 'xy')\nOutput64: b\n")[0],
        "dfg-number"
    );
    assert_eq!(
        codes("Input64: a\nb = Add_I64(a, 'x)\nOutput64: b\n")[0],
        "dfg-character"
    );
    assert_eq!(constant("Add_I32x2", "1 2"), 2 << 32 | 1);
    assert_eq!(constant("Add_I16x4", "1 2 3 4"), 0x0004_0003_0002_0001);
    assert_eq!(constant("FAdd_D64", "1.5"), 1.5f64.to_bits());
    assert_eq!(constant("FAdd_F32", "1.5f"), u64::from(1.5f32.to_bits()));
    assert_eq!(constant("FAdd_D64", "25e-1"), 2.5f64.to_bits());
    assert_eq!(
        constant("FAdd_F32x2", "1.0 2.0"),
        u64::from(2f32.to_bits()) << 32 | u64::from(1f32.to_bits())
    );
}

#[test]
fn slices_of_both_forms_and_of_concatenations() {
    let modern = read(
        "Input64: a\nInput64: b\nx = a:32:63 b:0:31\ny = x:16:47\nc = Add_I64(y, a)\nOutput64: c\n",
    );
    assert_eq!(
        operands(&modern.graph, "c"),
        ["0.0[48..63] 1.0[0..15]", "0.0[0..63]"]
    );
    let older = read("Input: a\nc = Add16(a:16:3, a:16:0)\nOutput: c\n");
    assert_eq!(operands(&older.graph, "c"), ["0.0[48..63]", "0.0[0..15]"]);
}

#[test]
fn pragmas_describe_the_next_port_only() {
    let text = "#pragma cmd=2.5\n#pragma reuse=0.5\n#pragma conc=1.0e+02\n#pragma op=add\nInput64: a\nInput64: b\nc = Add_I64(a, b)\nOutput64: c\n";
    let document = read(text);
    let pragmas: Vec<_> = document
        .graph
        .inputs()
        .map(|(_, _, port)| &port.pragmas)
        .collect();
    assert_eq!(
        (pragmas[0].cmd, pragmas[0].reuse, pragmas[0].conc),
        (2.5, 0.5, 100.0)
    );
    assert_eq!(
        (pragmas[1].cmd, pragmas[1].reuse, pragmas[1].conc),
        (1.0, 0.0, 0.0)
    );
}

#[test]
fn results_may_be_redefined_in_older_forms_only() {
    let older = read("Input: a\nb = Add64(a, 1)\nb = Add64(b, 2)\nOutput: b\n");
    assert!(older.is_complete());
    assert_eq!(operands(&older.graph, "b"), ["0.0[0..63]", "=1"]);
    let output = older.graph.outputs().next().unwrap().1;
    let Source::Edges(edges) = &output.operands[0].source else {
        panic!()
    };
    assert_eq!(
        older.graph.edges[edges[0]].source.raw(),
        2,
        "the last definition counts"
    );
    assert!(!read("Input64: a\nb = Add_I64(a, 1)\nb = Add_I64(b, 2)\nOutput64: b\n").is_complete());
}

#[test]
fn texts_are_recognised_by_what_they_say() {
    for (path, bytes) in fixtures("") {
        assert!(chipless_dsa::recognize(&bytes), "{}", path.display());
    }
    let broken = fixtures("broken")
        .into_iter()
        .filter(|(_, bytes)| !bytes.is_empty());
    for (path, bytes) in broken {
        assert!(chipless_dsa::recognize(&bytes), "{}", path.display());
    }
    let others = [
        "",
        "Input: the list\nOutput: the list in order\n",
        "# only a comment\n",
        "{\"Input64\": [1]}",
        "name: graph\nInput: a\nnodes:\n  - id: 1\n    kind: add\n",
        "mov eax, 1\nadd eax, ebx\nret\n",
        "x = f(a, b)\ny = g(x)\nprint(y)\n",
        "Input files are listed here.\nOutput goes there.\nNothing else is to be said about them.\nReally.\n",
        "int main() {\n  return 0;\n}\n",
        "#!/bin/sh\nInput: a\n",
        "\x7fELF",
    ];
    for text in others {
        assert!(!chipless_dsa::recognize(text.as_bytes()), "{text}");
    }
}
