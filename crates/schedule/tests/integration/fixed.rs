//! Inputs that become constants.

use crate::imported::run_front;
use crate::onnx::{Graph, Node};
use chipless_schedule::import::{Shapes, read};
use chipless_schedule::onnx::{Constants, Fixed, with_constants};

/// Twice the input where `rate` is 16000, its negative otherwise.
fn by_rate() -> Vec<u8> {
    let branch = |node: Node| {
        let mut graph = Graph::default();
        graph.add(&node);
        graph.output("branch");
        graph
    };
    let mut graph = Graph::default();
    graph.input_of(&[1, 2, 2, 2]);
    graph.input_named("rate", &[]);
    let usual = graph.floats(&[], &[16000.0]);
    graph.add(&Node::new("Equal", "is_usual", &["rate", &usual]));
    let condition = Node::new("If", "result", &["is_usual"]);
    let doubled = branch(Node::new("Add", "branch", &["input", "input"]));
    let negative = branch(Node::new("Neg", "branch", &["input"]));
    let condition = condition.graph("then_branch", &doubled);
    graph.add(&condition.graph("else_branch", &negative));
    graph.output("result");
    graph.bytes()
}

fn fixed(name: &str, value: Fixed) -> Constants {
    Constants::from([(name.to_owned(), value)])
}

#[test]
fn an_input_that_chooses_a_branch_is_fixed() {
    let model = by_rate();
    let refused = read(&model, &Shapes::new(), &|_| None).unwrap_err();
    assert!(
        refused.to_string().contains("--constant NAME=NUMBER"),
        "{refused}"
    );
    let input: Vec<f32> = (1..=8).map(|n| n as f32).collect();
    for (rate, factor) in [
        (Fixed::Number(16000.0), 2.0),
        (Fixed::Number(8000.0), -1.0),
        (Fixed::Array(Vec::new(), vec![16000.0]), 2.0),
    ] {
        let model = with_constants(&model, &fixed("rate", rate)).unwrap();
        let front = read(&model, &Shapes::new(), &|_| None).unwrap();
        assert_eq!(front.inputs.len(), 1);
        let expected: Vec<f32> = input.iter().map(|n| n * factor).collect();
        assert_eq!(run_front(&front, 1, &input)[0].1, expected);
    }
}

#[test]
fn constants_that_an_input_cannot_hold_are_named() {
    let model = by_rate();
    let refused = |name: &str, value: Fixed| {
        let refused = with_constants(&model, &fixed(name, value)).unwrap_err();
        refused.to_string()
    };
    assert_eq!(
        refused("rates", Fixed::Number(1.0)),
        "expected the name of an input (input, rate) as --constant, found `rates`"
    );
    assert_eq!(
        refused("rate", Fixed::Array(vec![2], vec![1.0, 2.0])),
        "expected an array of the shape [] for `rate`, found [2]"
    );
    let damaged = with_constants(b"no model", &fixed("rate", Fixed::Number(1.0)));
    assert!(damaged.is_err());
}
