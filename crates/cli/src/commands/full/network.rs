//! What `info` says of a network that no compiler has seen.

use chipless_report::{clean, widest};
use chipless_schedule::onnx::{self, Summary, Tensor};
use std::fmt::Write;

/// Operators that are listed.
const SHOWN: usize = 12;

/// An ONNX model at a glance, with the command that schedules it; nothing of another file.
pub(crate) fn network(path: &str, bytes: &[u8]) -> Option<String> {
    if !chipless::is_onnx(path, bytes) {
        return None;
    }
    let found = onnx::summary(bytes).ok()?;
    let size = bytes.len() as f64 / 1e6;
    let mut text = format!(
        "{path}: ONNX model, {size:.1} MB, not compiled\n  name   {}\n  opset  {}\n",
        clean(&found.name),
        found.version
    );
    for (title, tensors) in [("inputs", &found.inputs), ("outputs", &found.outputs)] {
        let _ = writeln!(text, "\n{title}");
        let width = widest(tensors.iter().map(|tensor| &*tensor.name));
        for Tensor {
            name,
            element,
            shape,
        } in tensors
        {
            let (name, shape) = (clean(name), shape.join("×"));
            let _ = writeln!(text, "  {name:width$}  {element}  {}", clean(&shape));
        }
    }
    let nodes: usize = found.operators.iter().map(|(_, count)| count).sum();
    let shown = found.operators.iter().take(SHOWN);
    let shown: Vec<String> = shown
        .map(|(name, count)| format!("{count} {}", clean(name)))
        .collect();
    let more = found.operators.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(", and {} more", chipless_model::count(more, "kind"))
    } else {
        String::new()
    };
    let _ = writeln!(
        text,
        "\noperators  {}\n  {}{more}",
        chipless_model::count(nodes, "node"),
        shown.join(", ")
    );
    let _ = write!(text, "\n{}", next(path, &found));
    Some(text)
}

/// The command that schedules the network, with the shapes that it needs.
fn next(path: &str, found: &Summary) -> String {
    let is_open = |extent: &String| extent.parse::<u64>().is_err();
    let mut has_first = false;
    let open = (found.inputs.iter()).filter(|input| input.shape.iter().skip(1).any(is_open));
    let shapes: Vec<String> = open
        .map(|input| {
            let shape = input.shape.iter().enumerate();
            let shape = shape.map(|(at, extent)| match (at, is_open(extent)) {
                // The batch: 1, if nobody says another.
                (0, true) if onnx::counts_images(extent) => "1",
                (0, true) => {
                    has_first = true;
                    "M"
                }
                (_, true) => "N",
                (_, false) => extent,
            });
            format!(
                " --shape {}={}",
                clean(&input.name),
                shape.collect::<Vec<_>>().join(",")
            )
        })
        .collect();
    let note = if shapes.is_empty() {
        String::new()
    } else {
        format!("(with {}) ", onnx::numbers(has_first))
    };
    format!(
        "`chipless schedule` makes a program of it {note}for a mesh of cores:\n  chipless schedule {path} --machine mesh4x4 --precision fp16{} -o s.json --network-out net.json --weights-out w\n",
        shapes.concat()
    )
}
