//! What `info` says of a network that no compiler has seen.

use chipless_report::{clean, widest};
use chipless_schedule::onnx::{self, Letters, Summary, Tensor};
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
    let mut letters = Letters::default();
    // A branch may be decided by an input that is a number: it is fixed then.
    let has_branches = found.operators.iter().any(|(name, _)| name == "If");
    let is_flag = |input: &Tensor| {
        let is_whole = input.element.contains("int") || input.element == "bool";
        has_branches && is_whole && input.shape.iter().all(|extent| extent == "1")
    };
    let mut options = String::new();
    for input in &found.inputs {
        let name = clean(&input.name);
        if is_flag(input) {
            let _ = write!(options, " --constant {name}={}", letters.other());
        } else if input.shape.iter().skip(1).any(is_open) {
            let shape = input.shape.iter().enumerate();
            let shape = shape.map(|(at, extent)| match (at, is_open(extent)) {
                // The batch: 1, if nobody says another.
                (0, true) if onnx::counts_images(extent) => "1".to_owned(),
                (0, true) => letters.first(),
                (_, true) => letters.other(),
                (_, false) => extent.clone(),
            });
            let shape: Vec<String> = shape.collect();
            let _ = write!(options, " --shape {name}={}", shape.join(","));
        }
    }
    let told = letters.told();
    let note = told.map_or_else(String::new, |told| format!("(with {told}) "));
    format!(
        "`chipless schedule` makes a program of it {note}for a mesh of cores:\n  chipless schedule {path} --machine mesh4x4 --precision fp16{options} -o s.json --network-out net.json --weights-out w\n"
    )
}
