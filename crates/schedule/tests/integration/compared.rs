//! Schedules beside the network in floating point.

use crate::onnx::{Graph, Node};
use crate::{machine, options};
use chipless_schedule::calibrate::{Method, calibrate};
use chipless_schedule::compare::{Comparison, Inputs, compare, prepare};
use chipless_schedule::compute::Map;
use chipless_schedule::emit::{Written, searched};
use chipless_schedule::front::Front;
use chipless_schedule::import::Shapes;
use fastrand::Rng;
use std::sync::atomic::AtomicBool;

/// A network whose bounds grow with every layer while its numbers do not.
fn deep(layers: usize) -> Graph {
    let mut rng = Rng::with_seed(3);
    let mut graph = Graph::default();
    graph.input([16, 4, 4]);
    let mut from = "input".to_owned();
    for layer in 0..layers {
        let weights: Vec<f32> = (0..256).map(|_| rng.f32() - 0.5).collect();
        let weights = graph.floats(&[16, 16, 1, 1], &weights);
        let (conv, relu) = (format!("conv{layer}"), format!("relu{layer}"));
        graph.add(&Node::new("Conv", &conv, &[&from, &weights]));
        graph.add(&Node::new("Relu", &relu, &[&conv]));
        from = relu;
    }
    graph.output(&from);
    graph
}

fn compared(front: &Front, float: &Front, given: &Inputs) -> Result<Comparison, String> {
    let written = Written::of(front, 1, true).unwrap();
    let of = (&front.network, &machine());
    let never = AtomicBool::new(false);
    let found = searched(&written, of, &options(40, 1, 1, 1), &never, &mut |_| {});
    let prepared = prepare((front, 1), Some(float.clone()), given, 5)?;
    compare(&prepared, &found.unwrap().1.text)
}

fn half(graph: Graph) -> Front {
    chipless_schedule::import::read(&graph.bytes(), &Shapes::new(), &|_| None).unwrap()
}

#[test]
fn half_precision_is_near_the_network() {
    let front = half(deep(3));
    let found = compared(&front, &front, &Inputs::new()).unwrap();
    let [output] = &found.outputs[..] else {
        panic!("{found:?}");
    };
    let error = output.relative_error.unwrap();
    // It is rounded to 11 bits after every layer, and the reference is not.
    assert!((1e-5..2e-3).contains(&error), "{error}");
    assert!(output.cosine.unwrap() > 0.9999);
    assert_eq!(found.layers, []);
}

#[test]
fn layers_in_which_8_bits_lose_everything_are_named() {
    let graph = || deep(24);
    let front = chipless_schedule::onnx::read(&graph().bytes(), 1, &|_| None).unwrap();
    let found = compared(&front, &half(graph()), &Inputs::new()).unwrap();
    let names: Vec<&str> = found.layers.iter().map(|l| l.layer.as_str()).collect();
    assert!(names.contains(&"conv20"), "{names:?}");
    assert!(!names.contains(&"conv0"), "{names:?}");
    assert!(found.outputs[0].relative_error.unwrap() > 0.5, "{found:?}");
}

#[test]
fn layers_may_have_names_that_no_file_may_have() {
    let mut graph = Graph::default();
    graph.input([2, 4, 4]);
    let weights = graph.floats(&[2, 2, 1, 1], &[0.5, 0.25, -0.5, 1.0]);
    graph.add(&Node::new("Conv", "block/conv", &["input", &weights]));
    graph.output("block/conv");
    let front = half(graph);
    let found = compared(&front, &front, &Inputs::new()).unwrap();
    assert!(found.outputs[0].relative_error.unwrap() < 2e-3, "{found:?}");
}

#[test]
fn numbers_beyond_the_range_of_half_precision_are_named() {
    let mut graph = Graph::default();
    graph.input([16, 4, 4]);
    let factor = graph.floats(&[], &[30_000.0]);
    graph.add(&Node::new("Mul", "large", &["input", &factor]));
    graph.add(&Node::new("Mul", "larger", &["large", "large"]));
    graph.output("larger");
    let front = half(graph);
    let found = compared(&front, &front, &Inputs::new()).unwrap();
    assert_eq!(found.layers.len(), 1, "{found:?}");
    assert!(found.layers[0].layer.starts_with("larger"), "{found:?}");
    assert!(found.layers[0].saturated > 0.9, "{found:?}");
}

#[test]
fn inputs_that_are_given_decide_the_numbers() {
    let front = half(deep(2));
    let given = |name: &str, shape: Vec<u64>, value: f64| {
        let values = vec![value; shape.iter().product::<u64>() as usize];
        Inputs::from([(name.to_owned(), (shape, values))])
    };
    let zeros = compared(&front, &front, &given("input", vec![1, 16, 4, 4], 0.0)).unwrap();
    assert_eq!(zeros.outputs[0].relative_error, Some(0.0));
    assert_eq!(zeros.outputs[0].cosine, None);
    let name = compared(&front, &front, &given("x", vec![1, 16, 4, 4], 0.0)).unwrap_err();
    assert!(name.contains("(input), found `x`"), "{name}");
    let shape = compared(&front, &front, &given("input", vec![16], 0.0)).unwrap_err();
    assert!(shape.contains("[1, 16, 4, 4], found [16]"), "{shape}");
}

/// Calibrated with a half of what is then given, or with all of it: the layers that lose.
fn lost_when_calibrated(graph: impl Fn() -> Graph, share: f32) -> Comparison {
    let mut front = chipless_schedule::onnx::read(&graph().bytes(), 1, &|_| None).unwrap();
    let mut rng = Rng::with_seed(9);
    let values: Vec<f32> = (0..256).map(|_| rng.f32() * 2.0 - 1.0).collect();
    let image = Map {
        extents: [16, 4, 4],
        values: values.iter().map(|value| value * share).collect(),
    };
    calibrate(&mut front, &[vec![image]], Method::MinMax).unwrap();
    let given = values.into_iter().map(f64::from).collect();
    let given = Inputs::from([("input".to_owned(), (vec![1, 16, 4, 4], given))]);
    compared(&front, &half(graph()), &given).unwrap()
}

/// What an activation bounds is the network's doing: zeros behind `Relu`, and both ends of `Clip`.
#[test]
fn what_an_activation_bounds_is_not_lost() {
    let clipped = || {
        let mut rng = Rng::with_seed(3);
        let mut graph = Graph::default();
        graph.input([16, 4, 4]);
        let weights: Vec<f32> = (0..256).map(|_| rng.f32() - 0.5).collect();
        let weights = graph.floats(&[16, 16, 1, 1], &weights);
        graph.add(&Node::new("Conv", "conv", &["input", &weights]));
        let (least, most) = (graph.floats(&[], &[0.0]), graph.floats(&[], &[0.25]));
        graph.add(&Node::new("Clip", "clip", &["conv", &least, &most]));
        graph.output("clip");
        graph
    };
    for graph in [&clipped as &dyn Fn() -> Graph, &|| deep(2)] {
        let found = lost_when_calibrated(graph, 1.0);
        assert_eq!(found.layers, [], "{found:?}");
        assert!(found.outputs[0].relative_error.unwrap() < 0.05, "{found:?}");
    }
    // What the data did not hold is lost at the upper end, and the zeros are not counted.
    let found = lost_when_calibrated(|| deep(2), 0.3);
    let lost = found.layers.iter().find(|loss| loss.layer == "conv0");
    let share = lost.unwrap_or_else(|| panic!("{found:?}")).saturated;
    assert!((0.01..0.4).contains(&share), "{found:?}");
}

/// A batch of one is what an exporter writes that was told no other; other extents are the model's.
#[test]
fn a_shape_replaces_a_batch_of_one() {
    let read = |name: &str, shape: &[i64]| {
        let shapes = Shapes::from([(name.to_owned(), shape.to_vec())]);
        chipless_schedule::import::read(&deep(1).bytes(), &shapes, &|_| None)
    };
    let front = read("input", &[4, 16, 4, 4]).unwrap();
    let declared = front.inputs[0].declared.as_ref().unwrap();
    assert_eq!(declared.shape, [4, 16, 4, 4]);
    let found = compared(&front, &front, &Inputs::new()).unwrap();
    assert!(found.outputs[0].relative_error.unwrap() < 2e-3, "{found:?}");
    let said = |name: &str, shape: &[i64]| read(name, shape).unwrap_err().to_string();
    let fixed = said("input", &[4, 16, 5, 4]);
    assert!(
        fixed.contains("fixes dimension 2") && !fixed.contains("()"),
        "{fixed}"
    );
    let name = said("x", &[4, 16, 4, 4]);
    assert!(name.contains("(input) as --shape, found `x`"), "{name}");
}

/// Boxes of a detector: distances of both corners from anchors, which are the same for all images, scaled by strides.
fn anchored() -> Graph {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut graph = Graph::default();
    graph.input_of(&[1, 4, 4, 4]);
    let weight = graph.random(&mut rng, &[4, 4, 1, 1]);
    graph.add(&Node::new("Conv", "conv", &["input", &weight]));
    let shape = graph.integers(&[0, 4, -1]);
    graph.add(&Node::new("Reshape", "distances", &["conv", &shape]));
    let [zero, two, four, one] = [0, 2, 4, 1].map(|number| graph.integers(&[number]));
    graph.add(&Node::new(
        "Slice",
        "low",
        &["distances", &zero, &two, &one],
    ));
    graph.add(&Node::new(
        "Slice",
        "high",
        &["distances", &two, &four, &one],
    ));
    let anchors = graph.random(&mut rng, &[1, 2, 16]);
    graph.add(&Node::new("Sub", "first", &[&anchors, "low"]));
    graph.add(&Node::new("Add", "last", &[&anchors, "high"]));
    graph.add(&Node::new("Concat", "corners", &["first", "last"]).number("axis", 1));
    let strides = graph.random(&mut rng, &[1, 1, 16]);
    graph.add(&Node::new("Mul", "boxes", &[&strides, "corners"]));
    graph.output("boxes");
    graph
}

/// A constant of one image stands beside every image of a batch, whichever operand it is.
#[test]
fn constants_of_one_image_go_with_all_images() {
    for images in [1, 2, 4] {
        let shapes = Shapes::from([("input".to_owned(), vec![images, 4, 4, 4])]);
        let bytes = anchored().bytes();
        let front = chipless_schedule::import::read(&bytes, &shapes, &|_| None).unwrap();
        let found = compared(&front, &front, &Inputs::new()).unwrap();
        let error = found.outputs[0].relative_error.unwrap();
        assert!(error < 2e-3, "{images}: {found:?}");
    }
}
