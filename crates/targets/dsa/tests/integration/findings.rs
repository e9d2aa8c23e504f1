//! Every rule, with a text that has exactly that fault.

use crate::{codes, fixtures, read};
use chipless_dsa::Document;
use chipless_model::Limits;

/// Two ports around what is tried, which uses `a` and defines `z`.
fn around(lines: &str) -> Vec<&'static str> {
    codes(&format!("Input64: a\n{lines}\nOutput64: z\n"))
}

#[test]
fn good_texts_are_clean() {
    assert!(around("z = Add_I64(a, 1)").is_empty());
    for (path, bytes) in fixtures("") {
        let findings = chipless_dsa::lint(
            &Document::read(&bytes, &Limits::default()),
            &Limits::default(),
        );
        assert!(
            findings.iter().all(|finding| !finding.is_error()),
            "{}: {findings:?}",
            path.display()
        );
    }
}

#[test]
fn the_text_is_judged_line_by_line() {
    assert_eq!(codes(""), ["dfg-empty"]);
    assert_eq!(around("z = Add_I64(a, 1"), ["dfg-syntax", "dfg-undefined"]);
    assert_eq!(
        around("z = Add_I64(a, 1)) // x"),
        ["dfg-syntax", "dfg-undefined"]
    );
    assert_eq!(around("// x\nz = Copy(a)"), ["dfg-character"]);
    assert_eq!(
        around("z = Add_I64(a, -1)"),
        ["dfg-character", "dfg-undefined"]
    );
    assert_eq!(
        around("z = Add_I64(a, 0x1FFFFFFFFFFFFFFFF)"),
        ["dfg-number", "dfg-undefined"]
    );
    assert_eq!(around("Input128: b\nz = Copy(a)"), ["dfg-port-width"]);
    assert_eq!(around("#pragma once\nz = Copy(a)"), ["dfg-pragma-form"]);
    assert_eq!(codes("Input64: a\nOutput64: a"), ["dfg-final-newline"]);
    assert_eq!(codes("Input64: a\nOutput64: a;"), Vec::<&str>::new());
    assert_eq!(
        codes("Input64: a\r\nOutput64: a\r\n"),
        ["dfg-carriage-return"]
    );
    assert_eq!(codes("Input64 a\nOutput64: a\n"), ["dfg-spelling"]);
    assert_eq!(
        codes("Input64: a [0, 1]\nz = Add_I64(a0, a1)\nOutput64: z\n"),
        ["dfg-older-form"]
    );
}

#[test]
fn several_errors_come_in_one_go_with_their_places() {
    let (_, bytes) = fixtures("broken")
        .into_iter()
        .find(|(path, _)| path.ends_with("lines.dfg"))
        .unwrap();
    let document = Document::read(&bytes, &Limits::default());
    let found: Vec<_> = document
        .findings
        .iter()
        .map(|finding| (finding.rule.code, finding.place.position.unwrap()))
        .collect();
    assert_eq!(
        found[..8],
        [
            ("dfg-port-width", (1, 1)),
            ("dfg-character", (2, 12)),
            ("dfg-syntax", (3, 14)),
            ("dfg-character", (4, 16)),
            ("dfg-number", (5, 16)),
            ("dfg-syntax", (6, 10)),
            ("dfg-syntax", (7, 18)),
            ("dfg-syntax", (8, 17)),
        ]
    );
}

#[test]
fn names_must_stand_for_something() {
    assert_eq!(around("z = Add_I64(a, b)"), ["dfg-undefined"]);
    let unknown = |name: &str| {
        let text = format!("Input64: a\nz = {name}(a, a)\nOutput64: z\n");
        let findings = chipless_dsa::lint(&read(&text), &Limits::default());
        findings
            .iter()
            .find(|f| f.rule.code == "dfg-unknown-operation")
            .expect("unknown")
            .message
            .clone()
    };
    assert!(
        unknown("Adf_I64").ends_with("did you mean `Add_I64`?"),
        "{}",
        unknown("Adf_I64")
    );
    assert!(
        unknown("Add_I644").ends_with("did you mean `Add_I64`?"),
        "{}",
        unknown("Add_I644")
    );
    assert!(
        !unknown("Foo_I64").contains("did you mean"),
        "a type alone means nothing: {}",
        unknown("Foo_I64")
    );
    assert!(
        read("Input64: alpha\nz = Copy(alhpa)\nOutput64: z\n").findings[0]
            .message
            .contains("did you mean `alpha`")
    );
    assert_eq!(
        around("z = Add_I64(a, b)\nb = Copy(a)"),
        ["dfg-used-before-definition"]
    );
    assert_eq!(around("z = Add_I64(a, $Reg8)"), ["dfg-undefined"]);
    assert_eq!(
        around("z = Add_I64(a, 1, ctrl=$aState & 8{0: d})"),
        ["dfg-state-port"]
    );
    assert_eq!(around("a = Copy(a)\nz = Add_I64(a, 1)"), ["dfg-duplicate"]);
    assert_eq!(
        around("z = Add64(a, 1)\nz = Add64(a, 2)"),
        ["dfg-unused-result", "dfg-redefined"]
    );
    assert_eq!(
        around("Input64: b source=m\nz = Add_I64(a, b)"),
        ["dfg-array"]
    );
    assert_eq!(
        around("Array: m 8 disk\nInput64: b source=m\nz = Add_I64(a, b)"),
        ["dfg-array-type"]
    );
    assert_eq!(
        around("Array: m\nInput64: b destination=m\nz = Add_I64(a, b)"),
        ["dfg-array-side"]
    );
    assert_eq!(
        around("Input64: b startled\nz = Add_I64(a, b)"),
        ["dfg-port-option"]
    );
    assert_eq!(
        codes("Input64: a\nOutput64: a stated\n"),
        ["dfg-output-stated"]
    );
    assert_eq!(
        codes("Input64: a\nOutput64: a state=a\n"),
        ["dfg-state-port"]
    );
}

#[test]
fn operands_must_be_possible() {
    assert_eq!(around("z = Add_I64(a, 1, when=a)"), ["dfg-qualifier"]);
    assert_eq!(around("z = Add_I64(a, 1, ctrl=a{0: x})"), ["dfg-action"]);
    assert_eq!(around("z = Add_I64(a:60:64, 1)"), ["dfg-slice"]);
    assert_eq!(around("z = Add_I64(a 1, a)"), ["dfg-concatenation"]);
    assert_eq!(around("z = Add_I64(a, 1 2 3)"), ["dfg-constant"]);
    assert_eq!(around("k = 5\nz = Add_I64(a, k)"), ["dfg-constant-name"]);
    assert_eq!(
        around("z = Add_I64(a, Add_I64(1, 2))"),
        ["dfg-constant-only"]
    );
    assert_eq!(around("x, y = a\nz = Copy(x)"), ["dfg-results"]);
    assert_eq!(
        around("z = 5"),
        ["dfg-constant-name", "dfg-output-constant"]
    );
    assert_eq!(around("z = F<Add_I64:0>(a, a)"), ["dfg-units"]);
    assert_eq!(around("z = FAdd_F32x2(a, 1.5)"), ["dfg-float-constant"]);
    assert_eq!(around("b = a:0:31\nz = Copy(a)"), ["dfg-unused-name"]);
}

#[test]
fn pragmas_must_say_something() {
    assert_eq!(
        around("#pragma reuze=1\nInput64: b\nz = Add_I64(a, b)"),
        ["dfg-pragma-key"]
    );
    assert_eq!(
        around("#pragma group frequenzy 3\nz = Copy(a)"),
        ["dfg-pragma-key"]
    );
    assert_eq!(
        around("#pragma cmd=add\nInput64: b\nz = Add_I64(a, b)"),
        ["dfg-pragma-value"]
    );
    assert_eq!(
        codes("Input64: a\nOutput64: a\n#pragma repeat=2\n"),
        ["dfg-pragma-lost"]
    );
    assert_eq!(around("#pragma $Reg0 y\nz = Copy(a)"), ["dfg-pragma-lost"]);
    assert_eq!(
        around("#pragma cmd=2\nInput64: b\nz = Add_I64(a, b)"),
        ["dfg-pragma-ignored"]
    );
    assert_eq!(
        around("#pragma repeat=2\nInput64: b\nz = Add_I64(a, b)"),
        ["dfg-pragma-ignored"]
    );
    assert_eq!(
        around("#pragma reuse=0.5\nInput64: b\nz = Add_I64(a, b)"),
        ["dfg-reuse-leaks"]
    );
    assert_eq!(
        codes("Input64: a\n#pragma reuse=2\nOutput64: a\n"),
        ["dfg-reuse-range"]
    );
    let recurrence =
        "Array: r 64 rec\nInput64: b source=r\nz = Add_I64(a, b)\nOutput64: z destination=r";
    assert_eq!(
        codes(&format!("Input64: a\n{recurrence}\n")),
        ["dfg-recurrence-conc", "dfg-recurrence-conc"]
    );
}

#[test]
fn operations_must_be_known_and_fed() {
    assert_eq!(around("z = Ad_I64(a, 1)"), ["dfg-unknown-operation"]);
    assert_eq!(around("z = Add_I64(a)"), ["dfg-arity"]);
    assert_eq!(around("z = Add_I64(a, a, a)"), ["dfg-extra-operand"]);
    assert_eq!(around("z, y = Add_I64(a, 1)"), ["dfg-result-count"]);
    assert_eq!(
        codes("Input64: a\nz = Add_I32(a, 1)\nOutput32: z\n"),
        ["dfg-operand-width"]
    );
    assert_eq!(codes("Input64: a\nOutput32: a\n"), ["dfg-lane-width"]);
    assert_eq!(around("y = Copy(a)\nz = Copy(a)"), ["dfg-unused-result"]);
    assert_eq!(around("z = Add_I64(a, $Reg0)"), ["dfg-register-unwritten"]);
}

#[test]
fn ports_and_arrays_must_be_used() {
    assert_eq!(around("Input64: b\nz = Copy(a)"), ["dfg-unused-input"]);
    assert_eq!(
        around("Input64: b[3]\nz = Add_I64(a, b1)"),
        ["dfg-unused-lane"]
    );
    assert_eq!(around("Array: m\nz = Copy(a)"), ["dfg-unused-array"]);
    assert_eq!(
        around("Array: m 8 reg\nInput64: b source=m\nz = Add_I64(a, b)"),
        ["dfg-array-ends"]
    );
    assert_eq!(around("----\nz = Copy(a)"), ["dfg-across-groups"]);
}

#[test]
fn controls_must_be_able_to_work() {
    assert_eq!(
        around("z = Add_I64(a, 1, ctrl=a & 2{1: d})"),
        ["dfg-control-key"]
    );
    assert_eq!(
        around("z = Add_I64(a, 1, ctrl=a & 15{1: d})"),
        ["dfg-control-mask"]
    );
    assert_eq!(around("z = Add_I64(a, 1, ctrl=a)"), ["dfg-control-empty"]);
    assert_eq!(around("z = Copy(a, ctrl=a{1: b2})"), ["dfg-control-hold"]);
    assert_eq!(
        around("#pragma $Reg0 z\nz = Add_I64(a, $Reg0)"),
        ["dfg-never-reset"]
    );
    assert_eq!(around("z = Acc64(a, 0)"), ["dfg-never-reset"]);
    assert!(around("z = Acc64(a, a)").is_empty());
}

#[test]
fn every_rule_can_be_explained() {
    for rule in chipless_dsa::rules() {
        assert!(
            !rule.summary.is_empty()
                && !rule.explanation.is_empty()
                && !rule.remedy.is_empty()
                && !rule.source.is_empty(),
            "{}",
            rule.code
        );
    }
}
