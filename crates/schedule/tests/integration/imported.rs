//! Networks in half precision: what their schedules compute when they are executed.

use crate::onnx::{Graph, Node};
use crate::{errors, machine, options};
use chipless_gemini::{Data, Network, Schedule, WeightData, lower};
use chipless_model::{Limits, Storage};
use chipless_schedule::emit::{Written, searched};
use chipless_schedule::front::Front;
use chipless_schedule::import::{Shapes, read};
use chipless_schedule::onnx::has_peepholes;
use fastrand::Rng;
use half::f16;
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// The outputs of a graph for its input: shapes and numbers.
fn run(graph: Graph, input: &[f32]) -> Vec<(Vec<u64>, Vec<f32>)> {
    run_front(
        &read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap(),
        1,
        input,
    )
}

pub(crate) fn run_front(front: &Front, batch: i64, input: &[f32]) -> Vec<(Vec<u64>, Vec<f32>)> {
    let (machine, limits) = (machine(), Limits::default());
    let written = Written::of(front, batch, true).unwrap();
    let (_, best) = searched(
        &written,
        (&front.network, &machine),
        &options(40, 1, 1, batch),
        &AtomicBool::new(false),
        &mut |_| {},
    )
    .unwrap();
    let network = Network::read(written.network_text().as_bytes(), &limits).unwrap();
    assert_eq!(errors(&best.text, Some(&network)), [""; 0]);
    let arrays = written.numbers().unwrap();
    let data = Data {
        network: Some(&network),
        weights: Some(WeightData::Given(&arrays)),
    };
    let schedule = Schedule::read(&best.text).unwrap();
    let timed = chipless_gemini::Machine::named("set").unwrap();
    let lowered = lower(&schedule, &data, &timed, &limits).unwrap();
    let program = &lowered.program;
    let mut storage = Storage::new(&program.buffers, &limits).unwrap();
    for port in &program.interface.inputs {
        assert_eq!(port.bytes(), Some(input.len() as u64 * 2));
        let halves = input.iter().map(|v| f16::from_f32(*v).to_le_bytes());
        storage.set(port.buffer, Cow::Owned(halves.flatten().collect()));
    }
    let outcome = chipless_sim::run(
        &chipless_sim::Verified::assume(program),
        &mut chipless_sim::Functional::new(&mut storage),
    );
    outcome.end.unwrap();
    let outputs = program.interface.outputs.iter();
    outputs
        .map(|port| {
            let bytes = storage.bytes(port.buffer).as_chunks::<2>().0;
            let numbers = bytes.iter().map(|half| f16::from_le_bytes(*half).to_f32());
            (port.shape.clone(), numbers.collect())
        })
        .collect()
}

pub(crate) fn random(rng: &mut Rng, count: i64) -> Vec<f32> {
    let number = |_| f16::from_f32(rng.f32() * 2.0 - 1.0).to_f32();
    (0..count).map(number).collect()
}

pub(crate) fn near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    let most = expected.iter().fold(0.0, |most: f32, v| most.max(v.abs()));
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= 0.004 * most + 0.0005,
            "{at}: {a}, expected {b}"
        );
    }
}

/// A graph of one node on an input of this shape.
fn alone(shape: &[i64], node: &Node) -> Graph {
    let mut graph = Graph::default();
    graph.input_of(shape);
    graph.add(node);
    graph.output("node");
    graph
}

/// An operation that only moves elements or that is one of elements, with its operands beside the first.
fn chain(choice: u8, graph: &mut Graph, from: &str, name: &str, rng: &mut Rng) -> Node {
    match choice % 10 {
        0 => Node::new("Transpose", name, &[from]).list("perm", &[2, 0, 3, 1]),
        1 => {
            let shape = graph.integers(&[2, -1, 3, 2]);
            Node::new("Reshape", name, &[from, &shape])
        }
        2 => {
            let [starts, ends, axes, steps] =
                [[-1, 0], [-100, 2], [3, 0], [-1, 1]].map(|list| graph.integers(&list));
            Node::new("Slice", name, &[from, &starts, &ends, &axes, &steps])
        }
        3 => {
            let pads = graph.integers(&[0, 1, 0, 2, 0, 0, 3, 1]);
            Node::new("Pad", name, &[from, &pads])
        }
        4 => {
            let pads = graph.integers(&[0, 0, 1, 1, 0, 0, 1, 0]);
            Node::new("Pad", name, &[from, &pads]).text("mode", "edge")
        }
        5 => {
            let indices = graph.integers(&[1, 0, 1, 1]);
            Node::new("Gather", name, &[from, &indices]).number("axis", i64::from(choice / 64))
        }
        6 => {
            let table = graph.random(rng, &[1]);
            Node::new("Mul", name, &[from, &table])
        }
        7 => Node::new("Concat", name, &[from, from]).number("axis", i64::from(choice / 64)),
        8 => {
            let times = graph.integers(&[1, 2, 1, 1]);
            Node::new("Tile", name, &[from, &times])
        }
        _ => Node::new("Abs", name, &[from]),
    }
}

proptest! {
    #![proptest_config(chipless_rounds::cases(24))]

    /// What layers compute is what the reader computes of a constant.
    #[test]
    fn layers_compute_what_constants_are_folded_to(choices in prop::collection::vec(any::<u8>(), 1..5), seed in any::<u64>()) {
        let shape = [2, 3, 4, 2];
        let mut rng = Rng::with_seed(seed);
        let numbers = random(&mut rng, 48);
        let mut graph = Graph::default();
        graph.input_of(&shape);
        let constant = graph.floats(&shape, &numbers);
        let mut ends = Vec::new();
        for (side, start) in [("x", "input".to_owned()), ("y", constant)] {
            let (mut from, mut of_side) = (start, rng.clone());
            for (at, choice) in choices.iter().enumerate() {
                let name = format!("{side}{at}");
                let node = chain(*choice, &mut graph, &from, &name, &mut of_side);
                graph.add(&node);
                from = name;
            }
            ends.push(from);
        }
        // The folded side is seen as what is added to the other and taken away from it.
        graph.add(&Node::new("Sub", "difference", &[&ends[0], &ends[1]]));
        graph.output(&ends[0]);
        graph.output("difference");
        let front = match read(&graph.bytes(), &Shapes::new(), &|_| None) {
            Ok(front) => front,
            Err(refused) => {
                // Shapes that do not go together are refused on both sides.
                prop_assert_eq!(refused.0.len(), 2, "{}", refused);
                return Ok(());
            }
        };
        let outputs = run_front(&front, 1, &numbers);
        prop_assert!(outputs.iter().any(|(_, all)| all.iter().all(|v| v.abs() < 0.002)), "{outputs:?}");
    }
}

#[test]
fn matrices_multiply_as_numpy_has_it() {
    let mut rng = Rng::with_seed(1);
    let x = random(&mut rng, 2 * 3 * 4);
    // X · Xᵀ for each of a batch, with the batch's order turned.
    let mut graph = Graph::default();
    graph.input_of(&[2, 3, 4]);
    graph.add(&Node::new("Transpose", "turned", &["input"]).list("perm", &[0, 2, 1]));
    graph.add(&Node::new("MatMul", "node", &["input", "turned"]));
    graph.output("node");
    let mut expected = Vec::new();
    for batch in 0..2 {
        for (row, column) in (0..9).map(|at| (at / 3, at % 3)) {
            let at = |row: usize, i: usize| x[(batch * 3 + row) * 4 + i];
            expected.push((0..4).map(|i| at(row, i) * at(column, i)).sum());
        }
    }
    let outputs = run(graph, &x);
    assert_eq!(outputs[0].0, [2, 3, 3]);
    near(&outputs[0].1, &expected);
}

#[test]
fn softmax_goes_over_any_axis() {
    let mut rng = Rng::with_seed(2);
    let x = random(&mut rng, 2 * 3 * 4);
    for axis in 0..3_usize {
        let node = Node::new("Softmax", "node", &["input"]).number("axis", axis as i64);
        let outputs = run(alone(&[2, 3, 4], &node), &x);
        let (extent, stride) = ([2, 3, 4][axis], [12, 4, 1][axis]);
        let expected: Vec<f32> = (0..24)
            .map(|at| {
                let first = at - at / stride % extent * stride;
                let sum: f32 = (0..extent).map(|i| x[first + i * stride].exp()).sum();
                x[at].exp() / sum
            })
            .collect();
        near(&outputs[0].1, &expected);
    }
}

#[test]
fn a_transposed_convolution_spreads_each_element() {
    let mut rng = Rng::with_seed(3);
    let (x, w) = (random(&mut rng, 2 * 3 * 3), random(&mut rng, 2 * 2 * 3 * 3));
    let mut graph = Graph::default();
    graph.input_of(&[1, 2, 3, 3]);
    let weight = graph.floats(&[2, 2, 3, 3], &w);
    let node = Node::new("ConvTranspose", "node", &["input", &weight])
        .list("strides", &[2, 2])
        .list("pads", &[1, 1, 1, 1])
        .list("output_padding", &[1, 1]);
    graph.add(&node);
    graph.output("node");
    let mut expected = vec![0.0; 2 * 6 * 6];
    for (at, x) in x.iter().enumerate() {
        let (c, row, column) = (at / 9, at / 3 % 3, at % 3);
        for tap in 0..2 * 3 * 3 {
            let (k, r, s) = (tap / 9, tap / 3 % 3, tap % 3);
            let (to_row, to_column) = (row * 2 + r, column * 2 + s);
            if (1..7).contains(&to_row) && (1..7).contains(&to_column) {
                let to = (k * 6 + to_row - 1) * 6 + to_column - 1;
                expected[to] += x * w[((c * 2 + k) * 3 + r) * 3 + s];
            }
        }
    }
    let outputs = run(graph, &x);
    assert_eq!(outputs[0].0, [1, 2, 6, 6]);
    near(&outputs[0].1, &expected);
}

#[test]
fn an_lstm_takes_step_after_step_in_both_directions() {
    lstm(false);
}

#[test]
fn the_gates_of_an_lstm_with_peepholes_see_its_cells() {
    lstm(true);
}

/// In both directions, against the formulas of the standard.
fn lstm(sees_cells: bool) {
    let (steps, inputs, size) = (3, 2, 2);
    let mut rng = Rng::with_seed(4);
    let x = random(&mut rng, (steps * inputs) as i64);
    let w = random(&mut rng, (2 * 4 * size * inputs) as i64);
    let r = random(&mut rng, (2 * 4 * size * size) as i64);
    let b = random(&mut rng, (2 * 8 * size) as i64);
    let mut p = vec![0.0; 2 * 3 * size];
    if sees_cells {
        p = random(&mut rng, (2 * 3 * size) as i64);
    }
    let mut graph = Graph::default();
    graph.input_of(&[steps as i64, 1, inputs as i64]);
    let peepholes = graph.floats(&[2, 3 * size as i64], &p);
    let given = [
        graph.floats(&[2, 4 * size as i64, inputs as i64], &w),
        graph.floats(&[2, 4 * size as i64, size as i64], &r),
        graph.floats(&[2, 8 * size as i64], &b),
    ];
    let mut all = vec!["input", &given[0], &given[1], &given[2]];
    if sees_cells {
        all.extend(["", "", "", &peepholes]);
    }
    let node = Node::new("LSTM", "node", &all)
        .number("hidden_size", size as i64)
        .text("direction", "bidirectional");
    graph.add(&node);
    graph.output("node");
    let mut expected = vec![0.0; steps * 2 * size];
    for d in 0..2 {
        let (mut h, mut c) = (vec![0.0; size], vec![0.0; size]);
        for step in 0..steps {
            let at = if d == 0 { step } else { steps - 1 - step };
            let gate = |number: usize, h: &[f32], i: usize| -> f32 {
                let row = d * 4 * size + number * size + i;
                let bias = |half: usize| b[d * 8 * size + half * 4 * size + number * size + i];
                let of_x: f32 = (0..inputs)
                    .map(|k| w[row * inputs + k] * x[at * inputs + k])
                    .sum();
                let of_h: f32 = (0..size).map(|k| r[row * size + k] * h[k]).sum();
                of_x + of_h + bias(0) + bias(1)
            };
            let sigmoid = |v: f32| 1.0 / (1.0 + (-v).exp());
            let before = h.clone();
            for i in 0..size {
                let [input, output, forget, new] =
                    [0, 1, 2, 3].map(|number| gate(number, &before, i));
                let peephole = |number: usize| p[d * 3 * size + number * size + i];
                let kept = sigmoid(forget + peephole(2) * c[i]) * c[i];
                c[i] = kept + sigmoid(input + peephole(0) * c[i]) * new.tanh();
                h[i] = sigmoid(output + peephole(1) * c[i]) * c[i].tanh();
                expected[(at * 2 + d) * size + i] = h[i];
            }
        }
    }
    let outputs = run(graph.clone(), &x);
    assert_eq!(has_peepholes(&graph.bytes()), sees_cells);
    assert_eq!(outputs[0].0, [3, 2, 1, 2]);
    near(&outputs[0].1, &expected);
}

#[test]
fn resizing_is_linear_between_elements() {
    // The values are those of the standard: 1, 2, 3, 4 made twice as large.
    let mut graph = Graph::default();
    graph.input_of(&[1, 1, 2, 2]);
    let (none, scales) = (
        graph.floats(&[0], &[]),
        graph.floats(&[4], &[1.0, 1.0, 2.0, 2.0]),
    );
    graph.add(&Node::new("Resize", "node", &["input", &none, &scales]).text("mode", "linear"));
    graph.output("node");
    let outputs = run(graph, &[1.0, 2.0, 3.0, 4.0]);
    let expected = [
        1.0, 1.25, 1.75, 2.0, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3.0, 3.25, 3.75, 4.0,
    ];
    near(&outputs[0].1, &expected);
}

/// The first of several open dimensions may count images; one alone does not.
#[test]
fn open_dimensions_are_named_with_an_example() {
    for (shape, said) in [
        (
            &[0][..],
            "(0); give its shape, as in --shape input=N with a number for N",
        ),
        (
            &[0, 0],
            "(0, 1); give its shape, as in --shape input=M,N with numbers for M (1 if it counts images) and N",
        ),
        (
            &[4, 0],
            "(1); give its shape, as in --shape input=4,N with a number for N",
        ),
    ] {
        let graph = alone(shape, &Node::new("Relu", "node", &["input"]));
        let refused = read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap_err();
        assert_eq!(
            refused.0,
            [format!("the input `input` has open dimensions {said}")]
        );
    }
}

#[test]
fn what_is_not_supported_is_said_with_its_node() {
    let graph = alone(&[1, 2, 4, 4], &Node::new("NonZero", "found", &["input"]));
    let refused = read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap_err();
    assert_eq!(
        refused.0,
        ["the node `found` (NonZero): the operation is not supported"]
    );
    // The transpose of a vector, which is no matrix.
    let gemm = Node::new("Gemm", "node", &["input", "input"]).number("transB", 1);
    let refused = read(&alone(&[4], &gemm).bytes(), &Shapes::new(), &|_| None).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("at least 2 dimensions, found one of 1"),
        "{refused}"
    );
    // A bias of no elements, into which a constant factor would go.
    let mut graph = Graph::default();
    graph.input_of(&[1, 2, 3, 3]);
    let (weight, bias) = (
        graph.floats(&[2, 2, 1, 1], &[1.0; 4]),
        graph.floats(&[0], &[]),
    );
    let factor = graph.floats(&[1], &[2.0]);
    graph.add(&Node::new("Conv", "conv", &["input", &weight, &bias]));
    graph.add(&Node::new("Mul", "node", &["conv", &factor]));
    graph.output("node");
    let refused = read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("a bias for each of 2 channels, found 0"),
        "{refused}"
    );
    let graph = alone(&[1, 0, 4], &Node::new("Relu", "node", &["input"]));
    let refused = read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap_err();
    assert!(
        refused.to_string().contains("--shape input=1,N,4"),
        "{refused}"
    );
    let graph = alone(&[1, 0, 4], &Node::new("Relu", "node", &["input"]));
    let shapes = Shapes::from([("input".to_owned(), vec![1, 3, 5])]);
    let refused = read(&graph.bytes(), &shapes, &|_| None).unwrap_err();
    assert!(refused.to_string().contains("--shape gives 5"), "{refused}");
}

#[test]
fn the_page_of_operators_lists_each() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/onnx-operators.md");
    let page = std::fs::read_to_string(path).unwrap();
    for operator in chipless_schedule::import::SUPPORTED {
        assert!(page.contains(&format!("| {operator} |")), "{operator}");
    }
    for operator in chipless_schedule::import::EXTENDED {
        assert!(page.contains(operator), "{operator}");
    }
}

/// What half precision has no number for is told of; a name too long for a file is cut, and names that begin alike stay apart.
#[test]
fn constants_that_vanish_and_long_names_are_seen_before_a_search() {
    let mut graph = Graph::default();
    graph.input([8, 4, 4]);
    let weights = graph.random(&mut Rng::with_seed(1), &[8, 8, 1, 1]);
    let long = "layer/".repeat(60);
    let first = format!("{long}first");
    graph.add(&Node::new("Conv", &first, &["input", &weights]));
    let second = format!("{long}second");
    graph.add(&Node::new("Conv", &second, &[&first, &weights]));
    let tiny = graph.floats(&[1], &[1e-10]);
    let small = graph.floats(&[1], &[1e-7]);
    graph.add(&Node::new("Mul", "power", &[&second, &second]));
    graph.add(&Node::new("Add", "tiny", &["power", &tiny]));
    graph.add(&Node::new("Add", "small", &["power", &small]));
    graph.add(&Node::new("Log", "one", &["tiny"]));
    graph.add(&Node::new("Log", "other", &["small"]));
    graph.output("one");
    graph.output("other");
    let front = read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap();
    let vanishing: Vec<&str> = front.vanishing().iter().map(|(layer, _)| *layer).collect();
    assert_eq!(vanishing, ["tiny"]);

    let written = Written::of(&front, 1, true).unwrap();
    let arrays = written.arrays().unwrap();
    let mut names: Vec<&str> = arrays.iter().map(|(name, _)| &**name).collect();
    assert!(names.iter().all(|name| name.len() <= 160), "{names:?}");
    names.dedup();
    assert_eq!(names.len(), arrays.len());
    assert_eq!(
        written.numbers().unwrap().len(),
        arrays.len().min(2),
        "{names:?}"
    );
}
