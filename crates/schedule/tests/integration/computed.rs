//! What schedules of networks compute when they are executed.

use crate::onnx::{Graph, Node};
use crate::{errors, machine, options};
use chipless_gemini::{Data, Network, Schedule, WeightData, lower};
use chipless_model::{Limits, Storage};
use chipless_schedule::emit::{Written, searched};
use chipless_schedule::front::Front;
use fastrand::Rng;
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

/// The output of a graph for an input: channels, rows, columns.
fn computed(graph: Graph, input: &dyn Fn(usize) -> i8) -> Vec<i8> {
    computed_of(graph, 1, None, input)
}

/// The result of a node, or the first there is, for so many images.
pub(crate) fn computed_of(
    graph: Graph,
    batch: i64,
    node: Option<&str>,
    input: &dyn Fn(usize) -> i8,
) -> Vec<i8> {
    let front = chipless_schedule::onnx::read(&graph.bytes(), batch, &|_| None).unwrap();
    executed(&front, batch, node, input)
}

/// The same of a network that was read.
pub(crate) fn executed(
    front: &Front,
    batch: i64,
    node: Option<&str>,
    input: &dyn Fn(usize) -> i8,
) -> Vec<i8> {
    let (machine, limits) = (machine(), Limits::default());
    let written = Written::of(front, batch, true).unwrap();
    let never = AtomicBool::new(false);
    let of = (&front.network, &machine);
    let (_, best) = searched(
        &written,
        of,
        &options(100, 1, 1, batch),
        &never,
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
        let bytes = port.bytes().unwrap();
        let bytes = (0..bytes as usize).map(|i| input(i) as u8).collect();
        storage.set(port.buffer, Cow::Owned(bytes));
    }
    let outcome = chipless_sim::run(
        &chipless_sim::Verified::assume(program),
        &mut chipless_sim::Functional::new(&mut storage),
    );
    outcome.end.unwrap();
    let mut outputs = program.interface.outputs.iter();
    let output = outputs.find(|port| node.is_none_or(|node| port.name == node));
    let output = output.unwrap();
    let bytes = storage.bytes(output.buffer);
    bytes.iter().map(|byte| *byte as i8).collect()
}

pub(crate) fn noise(i: usize) -> i8 {
    (i * 37 % 255) as u8 as i8
}

/// A network of one node on an input of this shape.
fn alone(shape: &[i64], node: &Node) -> Graph {
    let mut graph = Graph::default();
    graph.input_of(shape);
    graph.add(node);
    graph.output("node");
    graph
}

/// Weights of a kernel whose elements lie so far apart, and the same with zeros between them.
fn apart(
    rng: &mut Rng,
    [k, c]: [usize; 2],
    kernel: [usize; 2],
    dilation: [usize; 2],
) -> [Vec<f32>; 2] {
    let span = [0, 1].map(|d| (kernel[d] - 1) * dilation[d] + 1);
    let (mut dense, mut full) = (Vec::new(), vec![0.0; k * c * span[0] * span[1]]);
    for of in 0..k * c {
        for y in 0..kernel[0] {
            for x in 0..kernel[1] {
                let weight = rng.f32() - 0.5;
                dense.push(weight);
                full[(of * span[0] + y * dilation[0]) * span[1] + x * dilation[1]] = weight;
            }
        }
    }
    [dense, full]
}

#[test]
fn a_kernel_that_is_spread_out_is_one_with_zeros_between() {
    for (groups, kernel, dilation, stride, pads) in [
        (1, [3, 3], [2, 2], [1, 1], [2, 2, 2, 2]),
        (1, [2, 3], [3, 2], [2, 1], [1, 0, 3, 4]),
        (4, [3, 3], [2, 3], [1, 1], [2, 3, 2, 3]),
        (2, [3, 1], [4, 1], [1, 2], [4, 0, 4, 0]),
    ] {
        let mut rng = Rng::with_seed(7);
        let [dense, full] = apart(&mut rng, [8, 4 / groups], kernel, dilation);
        let build = |weights: &[f32], kernel: [usize; 2], dilation: [usize; 2]| {
            let mut graph = Graph::default();
            graph.input([4, 11, 13]);
            let [r, s] = kernel.map(|v| v as i64);
            let weights = graph.floats(&[8, 4 / groups as i64, r, s], weights);
            let node = Node::new("Conv", "conv", &["input", &weights])
                .list("dilations", &dilation.map(|v| v as i64))
                .list("strides", &stride)
                .list("pads", &pads)
                .number("group", groups as i64);
            graph.add(&node);
            graph.output("conv");
            computed(graph, &noise)
        };
        let span = [0, 1].map(|d| (kernel[d] - 1) * dilation[d] + 1);
        let expected = build(&full, span, [1, 1]);
        assert!(expected.iter().any(|v| *v > 20), "{expected:?}");
        assert_eq!(
            build(&dense, kernel, dilation),
            expected,
            "{kernel:?} {dilation:?}"
        );
    }
}

#[test]
fn a_line_is_a_map_of_one_column() {
    let weights: Vec<f32> = (0..6 * 3 * 3).map(|i| (i % 7) as f32 - 3.0).collect();
    let build = |shape: &[i64], taps: &[i64], pads: &[i64], strides: &[i64]| {
        let mut graph = Graph::default();
        graph.input_of(shape);
        let weights = graph.floats(&[&[6, 3], taps].concat(), &weights);
        let node = Node::new("Conv", "conv", &["input", &weights])
            .list("pads", pads)
            .list("strides", strides);
        graph.add(&node);
        graph.add(&Node::new("Relu", "relu", &["conv"]));
        graph.add(&Node::new("GlobalMaxPool", "pool", &["relu"]));
        graph.output("pool");
        computed(graph, &noise)
    };
    let line = build(&[1, 3, 17], &[3], &[1, 2], &[2]);
    assert_eq!(line, build(&[1, 3, 17, 1], &[3, 1], &[1, 0, 2, 0], &[2, 1]));
}

#[test]
fn a_single_row_or_column_goes_with_all_of_the_other() {
    let largest = Node::new("GlobalMaxPool", "most", &["input"]);
    for order in [["input", "most"], ["most", "input"]] {
        let mut graph = Graph::default();
        graph.input([8, 5, 6]);
        graph.add(&largest);
        graph.add(&Node::new("Mul", "scaled", &order));
        graph.output("scaled");
        // Inputs are in steps of 1/64, and so is what lies between −1 and 1 times that.
        let most = |channel: usize| {
            (0..30)
                .map(|place| noise(channel * 30 + place))
                .max()
                .unwrap()
        };
        let expected: Vec<i8> = (0..240)
            .map(|i| f64::from(noise(i)) * f64::from(most(i / 30)) / 64.0)
            .map(|real| (real + 0.5).floor().clamp(-128.0, 127.0) as i8)
            .collect();
        assert_eq!(computed(graph, &noise), expected);
    }
}

#[test]
fn constants_stand_beside_each_element() {
    // Steps of inputs are 1/64, and so are those of a table up to 1; those of a sum up to 2 are 1/32.
    let sum = |of: &dyn Fn(usize) -> f64| -> Vec<i8> {
        let real = |i: usize| (f64::from(noise(i)) / 64.0 + of(i)) * 32.0;
        (0..60)
            .map(|i| (real(i) + 0.5).floor().clamp(-128.0, 127.0) as i8)
            .collect()
    };
    let entry = |i: usize| (64 - i * 7 % 65) as f32 / 64.0;
    // Input and output are channels, rows and columns; a sequence in the file is positions, features.
    for (shape, table, place) in [
        (
            vec![1, 3, 4, 5],
            vec![3, 4, 5],
            &(|i| i) as &dyn Fn(usize) -> usize,
        ),
        (vec![1, 3, 4, 5], vec![4, 5], &|i| i % 20),
        (vec![1, 3, 4, 5], vec![1, 3, 1, 5], &|i| i / 20 * 5 + i % 5),
        (vec![1, 12, 5], vec![1, 12, 5], &|i| i % 12 * 5 + i / 12),
        (vec![1, 12, 5], vec![12, 1], &|i| i % 12),
    ] {
        let mut graph = Graph::default();
        graph.input_of(&shape);
        let count: i64 = table.iter().product();
        let numbers: Vec<f32> = (0..count as usize).map(entry).collect();
        let constant = graph.floats(&table, &numbers);
        graph.add(&Node::new("Add", "sum", &["input", &constant]));
        graph.output("sum");
        let expected = sum(&|i| f64::from(entry(place(i))));
        assert_eq!(computed(graph, &noise), expected, "{table:?}");
    }
}

#[test]
fn functions_of_an_element_are_those_of_onnx() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let softplus = |x: f64| (1.0 + x.exp()).ln();
    let node = |operation: &str| Node::new(operation, "node", &["input"]);
    type Case<'c> = (Node, f64, &'c dyn Fn(f64) -> f64);
    let cases: [Case<'_>; 9] = [
        (node("HardSwish"), 64.0, &|x| {
            x * (x / 6.0 + 0.5).clamp(0.0, 1.0)
        }),
        (node("HardSigmoid").real("alpha", 0.25), 64.0, &|x| {
            (0.25 * x + 0.5).clamp(0.0, 1.0)
        }),
        (node("LeakyRelu").real("alpha", 0.25), 64.0, &|x| {
            x.max(0.25 * x)
        }),
        (node("Elu").real("alpha", 0.5), 64.0, &|x| {
            if x < 0.0 { 0.5 * (x.exp() - 1.0) } else { x }
        }),
        (node("Softplus"), 64.0, &softplus),
        (node("Mish"), 64.0, &|x| x * softplus(x).tanh()),
        (node("Swish"), 64.0, &|x| x * sigmoid(x)),
        (node("Gelu").text("approximate", "tanh"), 64.0, &|x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }),
        (
            node("Clip").real("min", -0.5).real("max", 0.25),
            128.0,
            &|x| x.clamp(-0.5, 0.25),
        ),
    ];
    for (number, (node, steps, function)) in cases.iter().enumerate() {
        let found = computed(alone(&[1, 8, 8, 4], node), &noise);
        let expected = |i: usize| {
            let real = function(f64::from(noise(i)) / 64.0) * steps;
            (real + 0.5).floor().clamp(-128.0, 127.0) as i8
        };
        let expected: Vec<i8> = (0..256).map(expected).collect();
        assert_eq!(found, expected, "case {number}");
    }
}
