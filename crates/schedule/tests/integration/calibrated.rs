//! Scales from data: what a schedule computes with them is close to the network in real numbers.

use crate::computed::executed;
use crate::onnx::{Graph, Node};
use chipless_schedule::calibrate::{Method, calibrate};
use chipless_schedule::compute::{Map, compute};
use chipless_schedule::emit::Written;
use chipless_schedule::front::{Front, Quantisation};
use fastrand::Rng;

/// Images whose numbers reach so far.
fn images(front: &Front, count: usize, reach: f32) -> Vec<Vec<Map>> {
    let mut rng = Rng::with_seed(5);
    let mut image = || {
        let maps = front.inputs.iter().map(|input| {
            let extents = input.extents.map(|extent| extent as usize);
            let values = (0..extents.iter().product()).map(|_| (rng.f32() * 2.0 - 1.0) * reach);
            Map {
                extents,
                values: values.collect(),
            }
        });
        maps.collect()
    };
    (0..count).map(|_| image()).collect()
}

fn stored(value: f32, how: Quantisation) -> i8 {
    let steps = (f64::from(value) / how.scale + 0.5).floor() + how.zero;
    steps.clamp(-128.0, 127.0) as i8
}

/// How far what is executed lies from the real numbers: the norm of the difference by that of the numbers.
fn error(graph: Graph, method: Method) -> f64 {
    let mut front = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None).unwrap();
    // Far beyond the bound that holds without data.
    let images = images(&front, 6, 20.0);
    let real = compute(&front, &images[0], &mut |_, _| {})
        .unwrap()
        .remove(0);
    calibrate(&mut front, &images, method).unwrap();
    let how = front.inputs[0].quantisation.unwrap();
    let input = &images[0][0];
    let name = &front.network.layers.last().unwrap().name;
    let found = executed(&front, 1, Some(name), &|n| stored(input.values[n], how));
    let last = front.operations.last().unwrap();
    let own = last.output.unwrap();
    let (mut difference, mut size) = (0.0, 0.0);
    for (n, real) in real.values.iter().enumerate() {
        let value = (f64::from(found[n]) - own.zero) * own.scale;
        difference += (value - f64::from(*real)).powi(2);
        size += f64::from(*real).powi(2);
    }
    (difference / size).sqrt()
}

fn convolutions() -> Graph {
    let mut rng = Rng::with_seed(1);
    let mut graph = Graph::default();
    graph.input([8, 12, 12]);
    let first = graph.random(&mut rng, &[16, 8, 3, 3]);
    let each = graph.random(&mut rng, &[16, 1, 3, 3]);
    let apart = graph.random(&mut rng, &[8, 16, 3, 3]);
    graph.add(&Node::new("Conv", "first", &["input", &first]).list("pads", &[1; 4]));
    graph.add(&Node::new("Relu", "positive", &["first"]));
    let window = |name: &str, operation: &str, input: &str| {
        Node::new(operation, name, &[input])
            .list("kernel_shape", &[2, 2])
            .list("strides", &[2, 2])
    };
    graph.add(&window("largest", "MaxPool", "positive"));
    graph.add(
        &Node::new("Conv", "each", &["largest", &each])
            .list("pads", &[1; 4])
            .number("group", 16),
    );
    graph.add(&Node::new("LeakyRelu", "leaky", &["each"]));
    graph.add(
        &Node::new("Conv", "apart", &["leaky", &apart])
            .list("pads", &[2; 4])
            .list("dilations", &[2, 2]),
    );
    graph.add(
        &Node::new("AveragePool", "mean", &["apart"])
            .list("kernel_shape", &[3, 3])
            .list("pads", &[1; 4])
            .number("count_include_pad", 1),
    );
    graph.output("mean");
    graph
}

/// Branches of different ranges, joined; and a gate for each channel.
fn branches() -> Graph {
    let mut rng = Rng::with_seed(2);
    let mut graph = Graph::default();
    graph.input([8, 6, 6]);
    let small = graph.random(&mut rng, &[8, 8, 1, 1]);
    let gate = graph.random(&mut rng, &[16, 16, 1, 1]);
    graph.add(&Node::new("Conv", "small", &["input", &small]));
    graph.add(&Node::new("Sigmoid", "bounded", &["small"]));
    graph.add(&Node::new("Concat", "joined", &["input", "bounded"]).number("axis", 1));
    graph.add(&Node::new("GlobalAveragePool", "mean", &["joined"]));
    graph.add(&Node::new("Conv", "gate", &["mean", &gate]));
    graph.add(&Node::new("HardSigmoid", "opened", &["gate"]));
    graph.add(&Node::new("Mul", "scaled", &["joined", "opened"]));
    graph.add(&Node::new("Add", "sum", &["scaled", "joined"]));
    graph.output("sum");
    graph
}

fn sequence() -> Graph {
    let mut rng = Rng::with_seed(3);
    let mut graph = Graph::default();
    graph.input_of(&[1, 10, 16]);
    let names = ["q", "k", "v"];
    for name in names {
        let weights = graph.random(&mut rng, &[16, 16]);
        graph.add(&Node::new("MatMul", name, &["input", &weights]));
    }
    graph.add(&Node::new("Transpose", "turned", &["k"]).list("perm", &[0, 2, 1]));
    graph.add(&Node::new("MatMul", "scores", &["q", "turned"]));
    let small = graph.floats(&[1], &[0.002]);
    graph.add(&Node::new("Mul", "scaled", &["scores", &small]));
    graph.add(&Node::new("Softmax", "weights", &["scaled"]).number("axis", -1));
    graph.add(&Node::new("MatMul", "mixed", &["weights", "v"]));
    let factor = graph.random(&mut rng, &[16]);
    let offset = graph.random(&mut rng, &[16]);
    graph.add(&Node::new(
        "LayerNormalization",
        "normal",
        &["mixed", &factor, &offset],
    ));
    graph.output("normal");
    graph
}

/// Nobody reads what joins the layers at the end.
#[test]
fn an_output_that_joins_layers_is_stored_with_the_range_of_all() {
    let mut rng = Rng::with_seed(4);
    let mut graph = Graph::default();
    graph.input([8, 6, 6]);
    for (name, bias) in [("low", -20.0), ("high", 3.0)] {
        let weights = graph.random(&mut rng, &[4, 8, 1, 1]);
        let bias = graph.floats(&[4], &[bias; 4]);
        graph.add(&Node::new("Conv", name, &["input", &weights, &bias]));
    }
    graph.add(&Node::new("Concat", "joined", &["high", "low"]).number("axis", 1));
    graph.output("joined");
    let mut front = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None).unwrap();
    let images = images(&front, 2, 1.0);
    calibrate(&mut front, &images, Method::MinMax).unwrap();
    let written = Written::of(&front, 1, true).unwrap();
    let [_, outputs] = written.stored();
    let how = outputs[0].1;
    let [least, most] = [-128.0, 127.0].map(|end| (end - how.zero) * how.scale);
    for image in &images {
        for real in &compute(&front, image, &mut |_, _| {}).unwrap()[0].values {
            let real = f64::from(*real);
            assert!(
                (least - how.scale..=most + how.scale).contains(&real),
                "{real}: {how:?}"
            );
        }
    }
}

#[test]
fn what_is_executed_is_close_to_real_numbers() {
    for method in [Method::MinMax, Method::Percentile, Method::MeanSquare] {
        for (name, graph) in [
            ("convolutions", convolutions()),
            ("branches", branches()),
            ("sequence", sequence()),
        ] {
            let error = error(graph, method);
            assert!(error < 0.06, "{name}, {method:?}: {error}");
        }
    }
}

#[test]
fn nothing_calibrates_nothing() {
    let mut front = chipless_schedule::onnx::read(&branches().bytes(), 1, &|_| None).unwrap();
    assert!(calibrate(&mut front, &[], Method::MinMax).is_err());
    assert!(!front.is_calibrated);
}
