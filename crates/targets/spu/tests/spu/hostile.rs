//! Damaged files: findings or errors, never a panic, in bounded time.

use crate::common::{FIXTURES, fixture, text};
use chipless_model::Limits;
use chipless_spu::fqir::{MACHINE, Machine, Plan, Runner, lower};
use chipless_spu::iospec::{Document, Femto, RuleSet, Session, lint};
use chipless_spu::yaml::{self, Budget, Node, Value};
use proptest::prelude::*;

/// Everything that a damaged file may be put through.
fn open(bytes: &[u8]) {
    let limits = Limits {
        tasks: 20_000,
        memory_bytes: 64 << 20,
        ..Limits::default()
    };
    if let Ok(femto) = Femto::read(bytes) {
        let _ = (femto.verify(), femto.info(), femto.raw());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        for rules in RuleSet::ALL {
            if let Ok(document) = Document::read(text, rules) {
                lint(&document, rules);
                let mut session = Session::new(&document, rules);
                for vector in &document.inputs {
                    let _ = session.write(&[(vector.varname.clone(), Some(vec![1, 2, 3]))]);
                    let _ = session.read();
                }
            }
        }
    }
    let plans = [Plan::read(bytes, &limits), Plan::read_saved(bytes, &limits)];
    for plan in plans.into_iter().flatten() {
        let machine = Machine::parse(MACHINE).expect("sound");
        if let Ok(lowered) = lower(&plan, &machine, &limits)
            && let Ok(mut runner) = Runner::new(&lowered, &limits)
        {
            let _ = runner.step();
            let _ = runner.step();
        }
    }
}

#[test]
fn truncated_and_mutated_fixtures_are_survived() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let pieces: [&[u8]; 12] = [
        b"-1",
        b"0",
        b"999999999999",
        b"null",
        b"[]",
        b"{}",
        b"\"\"",
        b"1e9",
        b"&a ",
        b"*a",
        b"x",
        b":\n",
    ];
    for name in FIXTURES.into_iter().filter(|n| *n != "recurrent") {
        for file in ["plan.json", "iospec.yaml"] {
            let good = fixture(name, file);
            for _ in 0..chipless_rounds::rounds(150) {
                let mut bytes = good.clone();
                match random(3) {
                    0 => bytes.truncate(random(good.len())),
                    1 => {
                        let at = random(good.len());
                        bytes[at] = b" 0129-{}[],:\"ax"[random(15)];
                    }
                    _ => {
                        let at = random(good.len());
                        let end = good[at..]
                            .iter()
                            .position(|b| b",]}\n".contains(b))
                            .map_or(good.len(), |n| at + n);
                        bytes.splice(at..end, pieces[random(pieces.len())].iter().copied());
                    }
                }
                open(&bytes);
            }
        }
    }
}

fn plan(nodes: &str, parameters: &str) -> String {
    format!(
        r#"{{"name": "p", "unbind_dim": null, "inputs": [], "outputs": [], "parameters": [], "nodes": [], "subgraphs": {{"ARITH":
        {{"name": "ARITH", "inputs": [{{"name": "x", "dtype": "int16", "shape": [4]}}], "outputs": [], "parameters": [{parameters}], "nodes": [{nodes}], "subgraphs": {{}}, "version": 1}}}}, "version": 1}}"#
    )
}

#[test]
fn wrong_plans_are_refused_with_their_pointer() {
    let machine = Machine::parse(MACHINE).expect("sound");
    for (nodes, parameters, code, pointer, said) in [
        (
            r#"{"op_name": "relu", "inputs": {"x": "nope"}, "outputs": ["y"]}"#,
            "",
            "fqir-name",
            "/subgraphs/ARITH/nodes/0/inputs/x",
            "nope",
        ),
        (
            r#"{"op_name": "conditional", "inputs": {"condition": "x"}, "outputs": ["y"]}"#,
            "",
            "fqir-operation",
            "/subgraphs/ARITH/nodes/0",
            "conditional",
        ),
        (
            r#"{"op_name": "lstm", "inputs": {"x": "x"}, "outputs": ["y"]}"#,
            "",
            "fqir-operation",
            "/subgraphs/ARITH/nodes/0",
            "lstm",
        ),
        (
            r#"{"op_name": "shift", "inputs": {"x": "x"}, "outputs": ["y"], "constants": {"shamt": 1}}"#,
            "",
            "fqir-constant",
            "/subgraphs/ARITH/nodes/0",
            "bw",
        ),
        (
            r#"{"op_name": "reshape", "inputs": {"x": "x"}, "outputs": ["y"], "constants": {"shape": [3]}}"#,
            "",
            "fqir-shape",
            "/subgraphs/ARITH/nodes/0",
            "4",
        ),
        (
            r#"{"op_name": "matmul", "inputs": {"x": "x", "y": "w"}, "outputs": ["y"], "constants": {"shamt_bwred": 0, "bw_out": 16}}"#,
            r#"{"name": "w", "dtype": "int8", "shape": [3, 2], "value": {"shape": [3, 2], "data": [[1, 2], [3, 4], [5, 6]]}}"#,
            "fqir-shape",
            "/subgraphs/ARITH/nodes/0",
            "3×2",
        ),
        (
            "",
            r#"{"name": "w", "dtype": "int8", "shape": [2], "value": {"shape": [2], "data": [1, [2]]}}"#,
            "fqir-json",
            "/subgraphs/ARITH/parameters/0/value/data",
            "equal depth",
        ),
        (
            "",
            r#"{"name": "w", "dtype": "int8", "shape": [2], "value": {"shape": [3], "data": [1, 2]}}"#,
            "fqir-json",
            "/subgraphs/ARITH/parameters/0/value",
            "shape",
        ),
        (
            r#"{"op_name": 3}"#,
            "",
            "fqir-json",
            "/subgraphs/ARITH/nodes/0/op_name",
            "string",
        ),
        (
            r#"{"op_name": "copy", "inputs": {"x": "x", "x": "x"}, "outputs": ["y"]}"#,
            "",
            "fqir-json",
            "/subgraphs/ARITH/nodes/0/inputs",
            "twice",
        ),
    ] {
        let text = plan(nodes, parameters);
        let error = match Plan::read(text.as_bytes(), &Limits::default()) {
            Ok(plan) => lower(&plan, &machine, &Limits::default())
                .map(|_| ())
                .expect_err(nodes),
            Err(error) => error,
        };
        assert_eq!(error.rule.code, code, "{error}");
        assert!(error.place.part.starts_with(pointer), "{error}");
        assert!(error.message.contains(said), "{error}");
    }
}

/// Found by fuzzing: a loop takes blocks of no elements of a tensor that has no dimensions.
#[test]
fn a_loop_takes_no_blocks_of_a_scalar() {
    let text = text("operations", "plan.json");
    let text = text.replacen(
        r#""name":"x","dtype":"fqint16","shape":[6]"#,
        r#""name":"x","dtype":"fqint16","shape":[]"#,
        1,
    );
    let text = text.replacen(
        r#""block_size_sliced":[2]"#,
        r#""block_size_sliced":[0]"#,
        1,
    );
    let plan = Plan::read(text.as_bytes(), &Limits::default()).expect("well formed");
    let machine = Machine::parse(MACHINE).expect("sound");
    let error = lower(&plan, &machine, &Limits::default())
        .map(|_| ())
        .expect_err("nothing to slice");
    assert!(
        error.message.contains("found a tensor without dimensions"),
        "{error}"
    );
}

#[test]
fn greedy_plans_are_bounded() {
    let machine = Machine::parse(MACHINE).expect("sound");
    for (node, shape) in [
        ("zeros", "[4000000000]"),
        ("constant", "[65536, 65536]"),
        ("zeros", "[9223372036854775807, 2]"),
    ] {
        let text = plan(
            &format!(
                r#"{{"op_name": "{node}", "inputs": {{}}, "outputs": ["y"], "constants": {{"shape": {shape}, "value": 1}}}}"#
            ),
            "",
        );
        let plan = Plan::read(text.as_bytes(), &Limits::default()).expect("well formed");
        assert!(
            lower(&plan, &machine, &Limits::default()).is_err(),
            "{shape}"
        );
    }
}

/// Trees of plain data.
fn tree() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Integer(n.into())),
        any::<f64>()
            .prop_filter("comparable", |f| !f.is_nan())
            .prop_map(Value::Float),
        "\\PC{0,12}".prop_map(Value::Text),
        "[a-z0-9_.:#%&*!|>'\" -]{0,12}".prop_map(Value::Text),
    ];
    leaf.prop_map(Node::from).prop_recursive(4, 60, 6, |inner| {
        let key = prop_oneof![
            "[a-z_.%0-9 :#-]{0,8}".prop_map(|k| Node::from(&*k)),
            any::<i32>().prop_map(|n| Node::from(i64::from(n)))
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Node::list),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| {
                let mut seen = std::collections::HashSet::new();
                let distinct = entries
                    .into_iter()
                    .filter(|(k, _)| seen.insert(format!("{:?}", k.value)))
                    .collect();
                Value::Map(distinct).into()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn printed_trees_read_as_themselves(tree in tree()) {
        let text = yaml::write(&tree);
        let read = yaml::read(&text, Budget::default()).map_err(|(span, message)| TestCaseError::fail(format!("{span}: {message}\n{text}")))?;
        prop_assert!(read.duplicates.is_empty());
        prop_assert_eq!(read.root.unwrap_or(Value::Null.into()), tree, "{}", text);
    }

    #[test]
    fn any_text_is_survived(text in "[a-z:\\- \n\\[\\]{}&*!|>\"'#%,?0-9]{0,80}") {
        open(text.as_bytes());
    }
}
