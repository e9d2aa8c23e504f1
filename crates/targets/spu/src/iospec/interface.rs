//! An IOSpec for the interface of any program.

use super::document::VARIES;
use crate::yaml::{Node, Value};
use chipless_model::{Interface, Port};

/// The IOSpec of a program's interface: one sequence that takes every input and gives every output, before compilation.
/// The length of a vector is the number of its elements; shape and type go into its comments.
///
/// `varies`: how many elements come out depends on the data; the lengths of outputs are those of one run.
pub fn of_interface(interface: &Interface, varies: bool) -> Node {
    let vector = |port: &Port, side: &str| {
        let elements = port
            .shape
            .iter()
            .try_fold(1u64, |n, d| n.checked_mul(*d))
            .unwrap_or(u64::MAX);
        let number = |n: u64| Node::from(Value::Integer(n.into()));
        let shape = Node::list(port.shape.iter().map(|d| number(*d)));
        let mut comments = vec![("shape", shape), ("dtype", port.element.name().into())];
        if varies && side == "output" {
            comments.push((VARIES, Node::from(Value::Bool(true))));
        }
        let comments = Node::map(comments);
        let fields = [
            ("type", Node::from(side)),
            ("varname", Node::from(&*port.name)),
            ("length", number(elements)),
            ("precision", number(port.element.bits())),
            ("padded_length", Node::from(Value::Null)),
            ("comments", comments),
        ];
        (Node::from(&*port.name), Node::map(fields))
    };
    let section = |ports: &[Port], side: &str| {
        Node::from(Value::Map(ports.iter().map(|p| vector(p, side)).collect()))
    };
    let names = |ports: &[Port]| Node::list(ports.iter().map(|p| Node::from(&*p.name)));
    let sequence = Node::map([
        ("type", "simple_sequence".into()),
        ("inputs", names(&interface.inputs)),
        ("outputs", names(&interface.outputs)),
        ("comments", Node::map([])),
    ]);
    Node::map([
        ("inputs", section(&interface.inputs, "input")),
        ("outputs", section(&interface.outputs, "output")),
        ("simple_sequences", Node::map([("sequence_0", sequence)])),
        ("complex_sequences", Node::map([])),
    ])
}
