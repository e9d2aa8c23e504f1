//! What an ONNX file says is taken as ONNX means it, or refused by name.

use crate::onnx::{Graph, Node};
use crate::{machine, options};
use chipless_schedule::front::{Action, Front, Numbers};
use chipless_schedule::import::Shapes;
use chipless_schedule::network::Kind;
use chipless_schedule::reading::{Precision, Reading};
use std::sync::atomic::AtomicBool;

const INT8: i64 = 3;
const UINT8: i64 = 2;

fn read(graph: Graph) -> Front {
    chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None).unwrap()
}

fn refused(graph: Graph) -> String {
    let read = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None);
    read.unwrap_err().to_string()
}

fn values(numbers: &Numbers) -> Vec<f64> {
    numbers.values.as_ref().unwrap().to_vec()
}

/// A graph with an input of this shape.
fn graph(shape: &[i64]) -> Graph {
    let mut graph = Graph::default();
    graph.input_of(shape);
    graph
}

/// `QuantizeLinear` and `DequantizeLinear` of a tensor, with a zero point of an ONNX type.
fn stored(graph: &mut Graph, x: &str, kind: i64, zero: &[u8]) -> String {
    let scale = graph.floats(&[], &[0.5]);
    let zero = graph.constant(kind, &[], zero);
    let (q, d) = (graph.next("quantised"), graph.next("real"));
    graph.add(&Node::new("QuantizeLinear", &q, &[x, &scale, &zero]));
    graph.add(&Node::new("DequantizeLinear", &d, &[&q, &scale, &zero]));
    d
}

/// A constant of 8 bits behind a `DequantizeLinear`.
fn dequantised(graph: &mut Graph, shape: &[i64], data: &[u8], scales: &[f32], axis: i64) -> String {
    let constant = graph.constant(INT8, shape, data);
    let extents: &[i64] = if scales.len() == 1 {
        &[]
    } else {
        &[scales.len() as i64]
    };
    let scales = graph.floats(extents, scales);
    let name = graph.next("weights");
    graph.add(&Node::new("DequantizeLinear", &name, &[&constant, &scales]).number("axis", axis));
    name
}

#[test]
fn unsigned_numbers_are_signed_ones_and_128() {
    for (kind, zero, expected) in [
        (UINT8, 0, -128),
        (UINT8, 100, -28),
        (UINT8, 255, 127),
        (INT8, 100, 100),
        (INT8, 0x80, -128),
    ] {
        let mut graph = graph(&[1, 2, 4, 4]);
        graph.add(&Node::new("MaxPool", "pool", &["input"]).list("kernel_shape", &[2, 2]));
        let output = stored(&mut graph, "pool", kind, &[zero]);
        graph.output(&output);
        let stored = read(graph).operations[0].output.unwrap();
        assert_eq!(stored.zero as i64, expected, "{kind} {zero}");
    }
}

#[test]
fn integers_of_other_sizes_are_refused() {
    let mut graph = graph(&[1, 2, 4, 4]);
    graph.add(&Node::new("MaxPool", "pool", &["input"]).list("kernel_shape", &[2, 2]));
    let output = stored(&mut graph, "pool", 5, &[0, 0]);
    graph.output(&output);
    let text = refused(graph);
    assert!(
        text.contains("quantised3") && text.contains("ONNX type 5"),
        "{text}"
    );
}

#[test]
fn scales_along_the_inputs_are_refused() {
    for (axis, fits) in [(0, true), (1, false), (-4, true)] {
        let mut graph = graph(&[1, 2, 4, 4]);
        let weights = dequantised(&mut graph, &[2, 2, 1, 1], &[1, 2, 3, 4], &[0.5, 2.0], axis);
        graph.add(&Node::new("Conv", "conv", &["input", &weights]));
        graph.output("conv");
        let bytes = graph.bytes();
        let read = chipless_schedule::onnx::read(&bytes, 1, &|_| None);
        assert_eq!(read.is_ok(), fits, "{axis}");
    }
}

#[test]
fn quantised_constants_are_operands_with_their_scales() {
    let mut graph = graph(&[1, 2, 4, 4]);
    let constant = dequantised(&mut graph, &[2, 1, 1], &[4, 0xfc], &[0.5], 0);
    graph.add(&Node::new("Mul", "scaled", &["input", &constant]));
    graph.output("scaled");
    let front = read(graph);
    let Action::Constant(_, numbers) = &front.operations[0].action else {
        panic!("{:?}", front.operations[0].action);
    };
    assert_eq!(values(numbers), [2.0, -2.0]);
}

#[test]
fn factors_of_a_gemm_are_taken_into_weights_and_bias() {
    let mut graph = graph(&[1, 2]);
    let weights = graph.floats(&[1, 2], &[1.0, 2.0]);
    let bias = graph.floats(&[1], &[8.0]);
    let node = Node::new("Gemm", "gemm", &["input", &weights, &bias]);
    graph.add(
        &node
            .number("transB", 1)
            .real("alpha", 0.5)
            .real("beta", 0.25),
    );
    graph.output("gemm");
    let front = read(graph);
    let Action::Weighted { weight, bias, .. } = &front.operations[0].action else {
        panic!("{:?}", front.operations[0].action);
    };
    assert_eq!(values(weight), [0.5, 1.0]);
    assert_eq!(values(bias.as_ref().unwrap()), [2.0]);
}

#[test]
fn shapes_that_are_computed_are_constants() {
    let mut graph = graph(&[1, 3, 4, 4]);
    graph.add(&Node::new("MaxPool", "pool", &["input"]).list("kernel_shape", &[2, 2]));
    let (zero, rest) = (graph.integers(&[0]), graph.integers(&[-1]));
    graph.add(&Node::new("Shape", "shape", &["pool"]));
    graph.add(&Node::new("Gather", "images", &["shape", &zero]));
    graph.add(&Node::new("Concat", "flat", &["images", &rest]).number("axis", 0));
    graph.add(&Node::new("Reshape", "vector", &["pool", "flat"]));
    let weights = graph.floats(&[2, 27], &[1.0; 54]);
    graph.add(&Node::new("Transpose", "turned", &[&weights]).list("perm", &[1, 0]));
    graph.add(&Node::new("MatMul", "product", &["vector", "turned"]));
    graph.output("product");
    let front = chipless_schedule::onnx::read(&graph.bytes(), 4, &|_| None).unwrap();
    let layer = &front.network.layers[1];
    assert_eq!(
        (layer.kind, layer.output, layer.channels),
        (Kind::Fc, [2, 1, 1], 3)
    );
}

#[test]
fn what_only_the_ceiling_adds_to_a_window_does_not_count() {
    let pool = |padding: i64| {
        let mut graph = graph(&[1, 1, 6, 6]);
        let node = Node::new("AveragePool", "pool", &["input"]).list("kernel_shape", &[3, 3]);
        let node = node
            .list("strides", &[2, 2])
            .list("pads", &[padding, 0, 0, 0]);
        graph.add(&node.number("ceil_mode", 1).number("count_include_pad", 1));
        graph.output("pool");
        graph
    };
    let front = read(pool(0));
    assert!(matches!(
        front.operations[0].action,
        Action::AveragePool(_, false)
    ));
    assert!(refused(pool(1)).contains("beyond a padding"));
}

#[test]
fn what_is_meant_otherwise_is_refused_by_name() {
    let one = |shape: &[i64], node: Node| {
        let mut graph = graph(shape);
        graph.add(&node);
        graph.output("node");
        graph
    };
    let maps: &[i64] = &[1, 2, 4, 4];
    let gelu = Node::new("Gelu", "node", &["input"]).text("approximate", "quick");
    let dilated = Node::new("MaxPool", "node", &["input"])
        .list("kernel_shape", &[2, 2])
        .list("dilations", &[2, 2]);
    let cast = Node::new("Cast", "node", &["input"]).number("to", 6);
    let mut pool = graph(maps);
    let node = Node::new("MaxPool", "node", &["input"]).list("kernel_shape", &[2, 2]);
    pool.add(&node.also("places"));
    pool.output("node");
    pool.output("places");
    let mut given = one(maps, Node::new("Sigmoid", "node", &["input"]));
    given.output("input");
    for (graph, says) in [
        (one(maps, gelu), "the approximation `quick`"),
        (one(maps, dilated), "dilations of a pooling"),
        (one(maps, cast), "to ONNX type 6"),
        (pool, "its output `places`"),
        (given, "the output `input` is an input"),
        (
            one(&[3, 2, 4, 4], Node::new("Sigmoid", "node", &["input"])),
            "a first dimension of 3, which int8 takes as the batch",
        ),
    ] {
        let text = refused(graph);
        assert!(text.contains(says), "{text}");
    }
    let softmax = one(&[1, 5, 8], Node::new("Softmax", "node", &["input"]));
    let text = chipless_schedule::onnx::read(&softmax.of_version(11), 1, &|_| None);
    let text = text.unwrap_err().to_string();
    assert!(text.contains("over the axis 1"), "{text}");
}

#[test]
fn numbers_that_are_not_finite_are_named() {
    let mut graph = graph(&[1, 1, 2, 2]);
    let weights = graph.floats(&[1, 1, 1, 1], &[f32::NAN]);
    graph.add(&Node::new("Conv", "conv", &["input", &weights]));
    graph.output("conv");
    let written = chipless_schedule::emit::Written::of(&read(graph), 1, true);
    let text = written.unwrap_err();
    assert!(text.contains("`constant1` contains NaN"), "{text}");
}

#[test]
fn an_input_that_is_added_to_itself_is_loaded_once() {
    let mut graph = graph(&[1, 4, 6, 6]);
    graph.add(&Node::new("Add", "twice", &["input", "input"]));
    graph.output("twice");
    let network = read(graph).network;
    let never = AtomicBool::new(false);
    let found = chipless_schedule::search::search(
        &network,
        &machine(),
        &options(50, 1, 1, 1),
        &never,
        &mut |_| {},
    );
    let (cost, bounds) = (
        found.unwrap().cost,
        chipless_schedule::lower_bounds(&network, &machine(), 1),
    );
    assert!(bounds.dram <= cost.dram, "{} {}", bounds.dram, cost.dram);
    assert!(
        bounds.energy <= cost.energy,
        "{} {}",
        bounds.energy,
        cost.energy
    );
}

/// Grids of anchors are counted from shapes, which `--shape` may give.
#[test]
fn grids_that_are_counted_are_constants() {
    let grid = || {
        let mut graph = graph(&[1, 3, 0, 4]);
        graph.add(&Node::new("Relu", "map", &["input"]));
        graph.add(&Node::new("Shape", "shape", &["map"]));
        let two = graph.integers(&[2]);
        graph.add(&Node::new("Gather", "rows", &["shape", &two]));
        graph.add(&Node::new("Squeeze", "count", &["rows"]));
        let [zero, one] = [0_i64, 1].map(|number| graph.constant(7, &[], &number.to_le_bytes()));
        graph.add(&Node::new("Range", "places", &[&zero, "count", &one]));
        graph.add(&Node::new("Cast", "real", &["places"]).number("to", 1));
        let column = graph.integers(&[1, 1, -1, 1]);
        graph.add(&Node::new("Reshape", "column", &["real", &column]));
        graph.add(&Node::new("Add", "sum", &["map", "column"]));
        graph.output("sum");
        graph.bytes()
    };
    let read = |batch: i64, shape: &[i64]| {
        let shapes = Shapes::from([("input".to_owned(), shape.to_vec())]);
        let reading = Reading {
            batch,
            precision: Some(Precision::Int8),
            shapes,
        };
        reading.read(&grid(), &|_| None)
    };
    let network = read(1, &[2, 3, 5, 4]).unwrap();
    let front = &network.front;
    assert_eq!((network.batch, front.inputs[0].extents), (2, [3, 5, 4]));
    let places = front.constants[0].values.clone().unwrap();
    assert!(places.ends_with(&[4.0]), "{places:?}");
    let said = |batch: i64, shape: &[i64]| read(batch, shape).unwrap_err().to_string();
    assert!(said(4, &[2, 3, 5, 4]).contains("has 2 images"));
    assert!(said(1, &[1, 3, 5, 5]).contains("fixes dimension 3"));
    let open = chipless_schedule::onnx::read(&grid(), 1, &|_| None).unwrap_err();
    assert!(open.to_string().contains("--shape input=1,"), "{open}");
}
