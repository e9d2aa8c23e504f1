//! Elements that change their place along rows and columns: what comes out is what went in, element by element.

use crate::computed::{computed_of, noise};
use crate::onnx::{Graph, Node};
use crate::{errors, machine, options};
use chipless_gemini::Network;
use chipless_model::Limits;
use chipless_schedule::emit::{Written, searched};
use chipless_schedule::network::{Kind, Layer};
use std::sync::atomic::AtomicBool;

/// A graph with an input of this shape.
fn graph(shape: &[i64]) -> Graph {
    let mut graph = Graph::default();
    graph.input_of(shape);
    graph
}

/// Elements of a result of so many channels, rows and columns.
fn expected([c, h, w]: [usize; 3], element: impl Fn([usize; 3]) -> i8) -> Vec<i8> {
    let place = |i: usize| [i / (h * w), i / w % h, i % w];
    (0..c * h * w).map(|i| element(place(i))).collect()
}

#[test]
fn rows_and_columns_are_cut_out_and_joined() {
    // Rows 3 to 6 of 7, then columns 1 to 4 of 5, below all of the first three rows of those columns.
    let mut graph = graph(&[1, 3, 7, 5]);
    let numbers = [3, 0, 1, 7, 4, 2].map(|number| graph.integers(&[number]));
    let [three, zero, one, seven, four, two] = numbers.each_ref().map(String::as_str);
    let three_axis = graph.integers(&[3]);
    let cut = |name: &str, of: &str, ends: [&str; 2], axis: &str| {
        Node::new("Slice", name, &[of, ends[0], ends[1], axis])
    };
    graph.add(&cut("columns", "input", [one, four], &three_axis));
    graph.add(&cut("low", "columns", [three, seven], two));
    graph.add(&cut("high", "columns", [zero, three], two));
    graph.add(&Node::new("Concat", "node", &["low", "high"]).number("axis", -2));
    graph.output("node");
    let found = computed_of(graph, 1, Some("node"), &noise);
    let want = expected([3, 7, 3], |[c, h, w]| {
        noise((c * 7 + (h + 3) % 7) * 5 + w + 1)
    });
    assert_eq!(found, want);
}

#[test]
fn files_of_the_front_end_move_elements_too() {
    let mut graph = graph(&[1, 4, 6, 5]);
    let numbers = [1, 4, 2, 3].map(|number| graph.integers(&[number]));
    let [one, four, two, three] = numbers.each_ref().map(String::as_str);
    let scales = graph.floats(&[4], &[1.0, 1.0, 2.0, 3.0]);
    let flat = graph.integers(&[0, 4, -1]);
    graph.add(&Node::new("Relu", "relu", &["input"]));
    graph.add(&Node::new("Resize", "large", &["relu", "", &scales]));
    graph.add(&Node::new("Slice", "rows", &["large", one, four, two]));
    graph.add(&Node::new("Slice", "columns", &["rows", one, four, three]));
    graph.add(&Node::new("Slice", "channels", &["relu", one, four, one]));
    graph.add(&Node::new("Concat", "joined", &["channels", "relu"]).number("axis", 1));
    graph.add(&Node::new("Relu", "last", &["joined"]));
    graph.add(&Node::new("Concat", "high", &["columns", "columns"]).number("axis", 2));
    graph.add(&Node::new("Reshape", "line", &["high", &flat]));
    graph.add(&Node::new("Transpose", "sequence", &["line"]).list("perm", &[0, 2, 1]));
    graph.add(&Node::new("Transpose", "exchanged", &["sequence"]).list("perm", &[0, 2, 1]));
    graph.add(&Node::new("Softmax", "node", &["exchanged"]).number("axis", 2));
    graph.output("node");
    graph.output("last");
    let front = chipless_schedule::onnx::read(&graph.bytes(), 2, &|_| None).unwrap();
    let written = Written::of(&front, 2, true).unwrap();
    // What was written is read again, and gets a schedule that is right for it.
    let text = written.network_text();
    let front = chipless_schedule::frontend::read(text.as_bytes(), 2, &|_| None).unwrap();
    let again = Written::of(&front, 2, false).unwrap();
    let (machine, never) = (machine(), AtomicBool::new(false));
    let of = (&front.network, &machine);
    let (_, best) = searched(&again, of, &options(300, 1, 1, 2), &never, &mut |_| {}).unwrap();
    let network = Network::read(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(errors(&best.text, Some(&network)), [""; 0]);
    // A slice that ends behind its input is refused with its name.
    let wrong = text.replacen("\"starts\": [\n      1", "\"starts\": [\n      99", 1);
    assert_ne!(wrong, text);
    let refused = chipless_schedule::frontend::read(wrong.as_bytes(), 2, &|_| None);
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("(slice): expected what its inputs"),
        "{refused}"
    );
    let moves = |layer: &&Layer| layer.kind == Kind::Transpose;
    assert_eq!(front.network.layers.iter().filter(moves).count(), 8);
}

#[test]
fn every_row_and_column_is_repeated() {
    for ([rows, columns], how, fits) in [
        ([2, 2], None, true),
        ([3, 1], None, true),
        ([1, 4], Some(("asymmetric", "floor")), true),
        ([2, 2], Some(("asymmetric", "round_prefer_floor")), true),
        ([3, 3], Some(("asymmetric", "round_prefer_floor")), false),
        ([2, 2], Some(("half_pixel", "floor")), false),
        ([2, 2], Some(("align_corners", "round_prefer_floor")), false),
    ] {
        let mut graph = graph(&[1, 2, 3, 5]);
        let scales = graph.floats(&[4], &[1.0, 1.0, rows as f32, columns as f32]);
        let mut node = Node::new("Resize", "node", &["input", "", &scales]);
        if let Some((coordinates, nearest)) = how {
            node = node.text("coordinate_transformation_mode", coordinates);
            node = node.text("nearest_mode", nearest);
        }
        graph.add(&node);
        graph.output("node");
        if !fits {
            let read = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None);
            let text = read.unwrap_err().to_string();
            assert!(text.contains("the node `node` (Resize)"), "{text}");
            continue;
        }
        let found = computed_of(graph, 1, Some("node"), &noise);
        let want = expected([2, 3 * rows, 5 * columns], |[c, h, w]| {
            noise((c * 3 + h / rows) * 5 + w / columns)
        });
        assert_eq!(found, want, "{rows} {columns}");
    }
}

/// Patches of 2 × 2 of a map of 3 channels, 4 rows and 6 columns as a sequence, with a class token before them.
fn tokens(graph: &mut Graph, token: &[f32; 3]) -> String {
    let node = Node::new("MaxPool", "patches", &["input"]);
    graph.add(&node.list("kernel_shape", &[2, 2]).list("strides", &[2, 2]));
    let flat = graph.integers(&[0, 3, -1]);
    graph.add(&Node::new("Reshape", "flat", &["patches", &flat]));
    graph.add(&Node::new("Transpose", "sequence", &["flat"]).list("perm", &[0, 2, 1]));
    // The token of each image, as exporters write it.
    let class = graph.floats(&[1, 1, 3], token);
    let (images, ones) = (graph.integers(&[0]), graph.integers(&[1, 1]));
    graph.add(&Node::new("Shape", "shape", &["sequence"]));
    graph.add(&Node::new("Gather", "images", &["shape", &images]));
    graph.add(&Node::new("Concat", "whole", &["images", &ones]).number("axis", 0));
    graph.add(&Node::new("Expand", "class", &[&class, "whole"]));
    graph.add(&Node::new("Concat", "tokens", &["class", "sequence"]).number("axis", 1));
    "tokens".to_owned()
}

/// The largest of a patch.
fn patch(image: usize, channel: usize, row: usize, column: usize) -> i8 {
    let at =
        |y: usize, x: usize| noise(((image * 3 + channel) * 4 + 2 * row + y) * 6 + 2 * column + x);
    at(0, 0).max(at(0, 1)).max(at(1, 0)).max(at(1, 1))
}

#[test]
fn patches_are_a_sequence_behind_a_class_token() {
    // Steps of inputs are 1/64, and so are those of a constant up to 1.
    let token = [1.0, -0.5, 0.25];
    for batch in [1, 3] {
        let mut graph = graph(&[1, 3, 4, 6]);
        let tokens = tokens(&mut graph, &token);
        graph.output(&tokens);
        let found = computed_of(graph, batch, Some("tokens"), &noise);
        let mut want = Vec::new();
        for image in 0..batch as usize {
            want.extend(expected([3, 7, 1], |[c, h, _]| match h {
                0 => (token[c] * 64.0) as i8,
                _ => patch(image, c, (h - 1) / 3, (h - 1) % 3),
            }));
        }
        assert_eq!(found, want, "{batch}");
    }
}

#[test]
fn the_class_token_is_taken_out_at_the_end() {
    for (index, row) in [(0, None), (-1, Some([1, 2])), (3, Some([0, 2]))] {
        let mut graph = graph(&[1, 3, 4, 6]);
        let token = [1.0, -0.5, 0.25];
        let tokens = tokens(&mut graph, &token);
        let constant = graph.constant(7, &[], &i64::to_le_bytes(index));
        graph.add(&Node::new("Gather", "node", &[&tokens, &constant]).number("axis", 1));
        graph.output("node");
        let found = computed_of(graph, 2, Some("node"), &noise);
        let want: Vec<i8> = (0..6)
            .map(|i| match row {
                None => (token[i % 3] * 64.0) as i8,
                Some([row, column]) => patch(i / 3, i % 3, row, column),
            })
            .collect();
        assert_eq!(found, want, "{index}");
    }
}

#[test]
fn a_sequence_is_a_vector_position_by_position() {
    // Each number times one: the order in which the vector has them.
    let mut graph = graph(&[1, 5, 4]);
    let flat = graph.integers(&[-1, 20]);
    graph.add(&Node::new("Reshape", "vector", &["input", &flat]));
    let mut last = [0.0; 20];
    last[7] = 1.0;
    let weights = graph.floats(&[20, 1], &last);
    graph.add(&Node::new("MatMul", "node", &["vector", &weights]));
    graph.output("node");
    // The input array is channels, rows: the element 7 of the vector is position 1, feature 3.
    assert_eq!(
        computed_of(graph, 1, Some("node"), &noise),
        [noise(3 * 5 + 1)]
    );
}

#[test]
fn queries_keys_and_values_come_of_one_product() {
    // As `timm` writes it: positions, parts, heads, features.
    for part in 0..3 {
        let mut graph = graph(&[1, 5, 24]);
        let parts = graph.integers(&[-1, 5, 3, 2, 4]);
        graph.add(&Node::new("Reshape", "parts", &["input", &parts]));
        graph.add(&Node::new("Transpose", "stacked", &["parts"]).list("perm", &[2, 0, 3, 1, 4]));
        let index = graph.constant(7, &[], &i64::to_le_bytes(part));
        graph.add(&Node::new("Gather", "one", &["stacked", &index]).number("axis", 0));
        graph.add(&Node::new("Transpose", "back", &["one"]).list("perm", &[0, 2, 1, 3]));
        let whole = graph.integers(&[0, 5, 8]);
        graph.add(&Node::new("Reshape", "sequence", &["back", &whole]));
        graph.add(&Node::new("Relu", "node", &["sequence"]));
        graph.output("node");
        let found = computed_of(graph, 1, Some("node"), &noise);
        let want = expected([8, 5, 1], |[c, h, _]| {
            noise((part as usize * 8 + c) * 5 + h).max(0)
        });
        assert_eq!(found, want, "{part}");
    }
}

#[test]
fn constants_of_other_shapes_are_joined_with_nothing() {
    for shape in [vec![1, 0, 4], vec![1, 1, 5], vec![4], vec![2, 1, 4]] {
        let mut graph = graph(&[1, 5, 4]);
        let count = shape.iter().product::<i64>() as usize;
        let constant = graph.floats(&shape, &vec![1.0; count]);
        graph.add(&Node::new("Concat", "node", &[&constant, "input"]).number("axis", 1));
        graph.output("node");
        let read = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None);
        let text = read.unwrap_err().to_string();
        let says = format!("`node` (Concat): a constant of the shape {shape:?}");
        assert!(text.contains(&says), "{text}");
    }
}

#[test]
fn what_does_not_follow_each_other_is_refused_by_name() {
    for indices in [[0, 2], [i64::MAX, i64::MIN]] {
        let mut graph = graph(&[1, 5, 4]);
        let given = graph.integers(&indices);
        graph.add(&Node::new("Gather", "node", &["input", &given]).number("axis", 1));
        graph.output("node");
        let read = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None);
        let text = read.unwrap_err().to_string();
        // Those that count from the end are told as what they mean.
        let says = "`node` (Gather): of the indices [";
        assert!(text.contains(says) && text.contains("] of 5"), "{text}");
    }
}

#[test]
fn parts_that_are_more_than_there_is_are_refused_by_name() {
    // Modulo 2^64 the last ones come to five.
    for sizes in [[2, 2, 2], [i64::MAX, i64::MAX, 7]] {
        let mut graph = graph(&[1, 5, 4]);
        let given = graph.integers(&sizes);
        let node = Node::new("Split", "node", &["input", &given]).number("axis", 1);
        graph.add(&node.also("second").also("third"));
        graph.output("node");
        let read = chipless_schedule::onnx::read(&graph.bytes(), 1, &|_| None);
        let text = read.unwrap_err().to_string();
        let says = format!("`node` (Split): parts of {sizes:?} of 5 elements");
        assert!(text.contains(&says), "{text}");
    }
}
