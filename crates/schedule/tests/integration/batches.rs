//! Several images of a network in half precision.

use crate::imported::{near, random, run_front};
use crate::onnx::{Graph, Node};
use crate::{machine, options};
use chipless_schedule::compare::{Inputs, compare, prepare};
use chipless_schedule::emit::{Best, Written, searched};
use chipless_schedule::import::Shapes;
use chipless_schedule::reading::{Network, Precision, Reading};
use fastrand::Rng;
use std::sync::atomic::AtomicBool;

fn read(graph: &[u8], batch: i64, shape: Option<&[i64]>) -> Network {
    let shapes = shape.map(|shape| ("input".to_owned(), shape.to_vec()));
    let reading = Reading {
        batch,
        precision: Some(Precision::Half),
        shapes: shapes.into_iter().collect::<Shapes>(),
    };
    reading.read(graph, &|_| None).unwrap()
}

fn scheduled(network: &Network) -> Best {
    let written = Written::of(&network.front, network.batch, true).unwrap();
    let of = (&network.front.network, &machine());
    let never = AtomicBool::new(false);
    let options = options(20, 1, 1, network.batch);
    searched(&written, of, &options, &never, &mut |_| {})
        .unwrap()
        .1
}

/// A convolution, moved elements, a product of activations and a softmax. The first dimension is open for an extent of zero.
fn mixed(first: i64) -> Vec<u8> {
    let mut rng = Rng::with_seed(5);
    let mut graph = Graph::default();
    graph.input_of(&[first, 2, 4, 4]);
    let weights = graph.random(&mut rng, &[4, 2, 3, 3]);
    let convolution = Node::new("Conv", "conv", &["input", &weights]);
    graph.add(&convolution.list("pads", &[1, 1, 1, 1]));
    let flat = graph.integers(&[0, 4, 16]);
    graph.add(&Node::new("Reshape", "flat", &["conv", &flat]));
    graph.add(&Node::new("Transpose", "turned", &["flat"]).list("perm", &[0, 2, 1]));
    graph.add(&Node::new("MatMul", "scores", &["turned", "flat"]));
    graph.add(&Node::new("Softmax", "weights", &["scores"]).number("axis", 2));
    graph.add(&Node::new("MatMul", "seen", &["weights", "turned"]));
    let rows = graph.integers(&[-1, 64]);
    graph.add(&Node::new("Reshape", "rows", &["seen", &rows]));
    let last = graph.random(&mut rng, &[64, 5]);
    graph.add(&Node::new("MatMul", "output", &["rows", &last]));
    graph.output("output");
    graph.bytes()
}

/// A first dimension that the model fixes counts no images, whatever its extent: the two states of an LSTM.
#[test]
fn a_fixed_first_dimension_is_no_batch() {
    let mut graph = Graph::default();
    graph.input_of(&[2, 0, 4]);
    graph.add(&Node::new("Relu", "output", &["input"]));
    graph.output("output");
    let network = read(&graph.bytes(), 1, Some(&[2, 1, 4]));
    assert_eq!((network.batch, network.images), (1, 1));
    let found = run_front(
        &network.front,
        1,
        &[-1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    )
    .remove(0);
    assert_eq!(found.0, [2, 1, 4]);
    near(&found.1, &[0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
}

#[test]
fn images_have_the_results_of_each_alone_and_share_layers() {
    let input = random(&mut Rng::with_seed(7), 3 * 32);
    for first in [0, 1] {
        let graph = mixed(first);
        let one = read(&graph, 1, None);
        let expected: Vec<f32> = input
            .chunks(32)
            .flat_map(|image| run_front(&one.front, 1, image).remove(0).1)
            .collect();
        for network in [read(&graph, 3, None), read(&graph, 1, Some(&[3, 2, 4, 4]))] {
            assert_eq!((network.batch, network.images), (3, 3));
            let layers = |network: &Network| network.front.network.layers.len();
            assert_eq!(layers(&network), layers(&one));
            let found = run_front(&network.front, 3, &input).remove(0);
            assert_eq!(found.0, [3, 5]);
            near(&found.1, &expected);
        }
    }
}

#[test]
fn batches_are_compared_with_the_network() {
    let network = read(&mixed(0), 3, None);
    let prepared = prepare((&network.front, 3), None, &Inputs::new(), 1).unwrap();
    let found = compare(&prepared, &scheduled(&network).text).unwrap();
    let error = found.outputs[0].relative_error.unwrap();
    assert!((1e-6..5e-3).contains(&error), "{error}");
}

/// A mean over the images is no network of one image.
#[test]
fn images_that_change_each_other_stay_as_the_model_has_them() {
    let mut graph = Graph::default();
    graph.input_of(&[0, 8]);
    let mean = Node::new("ReduceMean", "mean", &["input"]);
    graph.add(&mean.list("axes", &[0]).number("keepdims", 1));
    graph.add(&Node::new("Sub", "output", &["input", "mean"]));
    graph.output("output");
    let network = read(&graph.bytes(), 4, None);
    assert_eq!((network.batch, network.images), (1, 4));
    let input = random(&mut Rng::with_seed(3), 32);
    let mean = |at: usize| (0..4).map(|image| input[image * 8 + at]).sum::<f32>() / 4.0;
    let expected: Vec<f32> = (0..32).map(|at| input[at] - mean(at % 8)).collect();
    near(&run_front(&network.front, 1, &input).remove(0).1, &expected);
}

/// Frames of a spectrogram are the first axis of the input. A window over them takes nothing of one frame.
#[test]
fn a_first_axis_of_steps_counts_no_images() {
    let mut graph = Graph::default();
    graph.input_of(&[0, 8]);
    let axes = graph.integers(&[0, 1]);
    graph.add(&Node::new("Unsqueeze", "map", &["input", &axes]));
    let kernel = graph.floats(&[1, 1, 3, 1], &[1.0, 2.0, 4.0]);
    graph.add(&Node::new("Conv", "output", &["map", &kernel]));
    graph.output("output");
    let network = read(&graph.bytes(), 1, Some(&[5, 8]));
    assert_eq!((network.batch, network.images), (1, 1));
    assert_eq!(network.repeated, None);
    let input = random(&mut Rng::with_seed(3), 40);
    let expected: Vec<f32> = (0..24)
        .map(|at| input[at] + 2.0 * input[at + 8] + 4.0 * input[at + 16])
        .collect();
    near(&run_front(&network.front, 1, &input).remove(0).1, &expected);
}

/// A recurrent layer over the first axis of one input, with its state as another, whose first axis counts neither.
#[test]
fn steps_of_a_recurrent_layer_are_no_images() {
    let mut rng = Rng::with_seed(5);
    let mut graph = Graph::default();
    graph.input_of(&[0, 4]);
    graph.input_named("state", &[3]);
    let (one, both) = (graph.integers(&[1]), graph.integers(&[0, 1]));
    graph.add(&Node::new("Unsqueeze", "steps", &["input", &one]));
    graph.add(&Node::new("Unsqueeze", "first", &["state", &both]));
    let (w, r) = (
        graph.random(&mut rng, &[1, 3, 4]),
        graph.random(&mut rng, &[1, 3, 3]),
    );
    let rnn = Node::new("RNN", "all", &["steps", &w, &r, "", "", "first"]);
    graph.add(&rnn.number("hidden_size", 3));
    graph.add(&Node::new("Squeeze", "output", &["all"]));
    graph.output("output");
    let network = read(&graph.bytes(), 1, Some(&[6, 4]));
    assert_eq!((network.batch, network.images), (1, 1));
    assert_eq!(network.repeated, None);
}

/// Images that are not the first axis of an output are repeated, and it is said why. Their weights are the same, and counted once.
#[test]
fn layers_that_are_repeated_are_told() {
    let mut rng = Rng::with_seed(5);
    let mut graph = Graph::default();
    graph.input_of(&[0, 2, 4, 4]);
    let weights = graph.random(&mut rng, &[64, 2, 3, 3]);
    graph.add(&Node::new("Conv", "conv", &["input", &weights]));
    graph.add(&Node::new("Transpose", "output", &["conv"]).list("perm", &[1, 0, 2, 3]));
    graph.output("output");
    let graph = graph.bytes();
    let (one, four) = (read(&graph, 1, None), read(&graph, 4, None));
    assert_eq!((four.batch, four.images), (1, 4));
    let why = four.repeated.as_ref().unwrap();
    assert!(why.contains("`output`"), "{why}");
    let bytes = |network: &Network| scheduled(network).floor.dram_bytes;
    let weights = 64 * 2 * 9 * 2;
    assert!(
        bytes(&four) < 4 * bytes(&one) - 2 * weights,
        "{} {}",
        bytes(&one),
        bytes(&four)
    );
}

#[test]
fn a_batch_needs_an_axis() {
    let mut graph = Graph::default();
    graph.input_of(&[2, 8]);
    graph.add(&Node::new("Relu", "output", &["input"]));
    graph.output("output");
    let reading = Reading {
        batch: 4,
        precision: Some(Precision::Half),
        shapes: Shapes::new(),
    };
    let refused = reading.read(&graph.bytes(), &|_| None).unwrap_err();
    assert!(refused.to_string().contains("batch of 4"), "{refused}");
}
