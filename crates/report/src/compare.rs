//! Outputs beside what they should be, and the first NaN: for the person with wrong numbers.

use crate::statistics::number;
use crate::style::{Paint, clean};
use chipless_kernels::cast::decode_f64;
use chipless_model::Port;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// An output beside a reference.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    /// Its name.
    pub output: String,
    /// The greatest difference of two elements; infinite, which JSON has as null, where one of them is NaN or an infinity and the other
    /// is not the same.
    pub max_abs: f64,
    /// Where it is, outermost dimension first.
    pub index: Vec<u64>,
    /// Elements that differ at all.
    pub differing: u64,
    /// The task that computed this element, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// Where a run first wrote a NaN or an infinity.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct FirstNan {
    /// The task.
    pub task: String,
    /// The memory that it wrote to.
    pub buffer: String,
    /// The byte in it.
    pub offset: u64,
}

/// What came of the search for it: nothing where no task wrote one.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct NanSearch(pub Option<FirstNan>);

/// Elements decoded at a time: a multiple of 8, so that types of less than a byte begin at one.
const CHUNK: usize = 1 << 13;

impl Comparison {
    /// An output's bytes beside those that were expected, and the place of the greatest difference among the elements. `None` where they
    /// cannot be decoded.
    pub fn of(port: &Port, found: &[u8], expected: &[u8]) -> Option<(Comparison, u64)> {
        let bytes = CHUNK * port.element.bits() as usize / 8;
        let (mut max_abs, mut place, mut differing, mut first) = (0.0, 0, 0, 0);
        for (found, expected) in found.chunks(bytes).zip(expected.chunks(bytes)) {
            let count = found.len() * 8 / port.element.bits() as usize;
            let (mut left, mut right) = (vec![0.0; count], vec![0.0; count]);
            decode_f64(port.element, found, &mut left).ok()?;
            decode_f64(port.element, expected, &mut right).ok()?;
            for (index, (left, right)) in left.iter().zip(&right).enumerate() {
                let difference = difference(*left, *right);
                differing += u64::from(difference > 0.0);
                if difference > max_abs {
                    (max_abs, place) = (difference, first + index as u64);
                }
            }
            first += count as u64;
        }
        let comparison = Comparison {
            output: port.name.clone(),
            max_abs,
            index: index(place, &port.shape),
            differing,
            task: None,
        };
        Some((comparison, place))
    }

    fn line(&self, elements: u64) -> String {
        if self.differing == 0 {
            return "equal".to_owned();
        }
        let Comparison {
            max_abs,
            index,
            differing,
            task,
            ..
        } = self;
        let from = task.as_ref().map_or(String::new(), |task| {
            format!(", computed by {}", clean(task))
        });
        format!(
            "{differing} of {elements} differ, by {} at most, at {index:?}{from}",
            number(*max_abs)
        )
    }
}

/// Of two elements: equal ones and NaN beside NaN do not differ.
#[expect(
    clippy::float_cmp,
    reason = "equal numbers do not differ, infinities among them"
)]
fn difference(left: f64, right: f64) -> f64 {
    if left == right || (left.is_nan() && right.is_nan()) {
        return 0.0;
    }
    let difference = (left - right).abs();
    if difference.is_nan() {
        f64::INFINITY
    } else {
        difference
    }
}

/// The index of an element, outermost dimension first.
fn index(mut place: u64, shape: &[u64]) -> Vec<u64> {
    let mut index: Vec<u64> = shape
        .iter()
        .rev()
        .map(|size| {
            let here = place % (*size).max(1);
            place /= (*size).max(1);
            here
        })
        .collect();
    index.reverse();
    index
}

/// Both as a part of the page of a run.
pub(crate) fn text(
    out: &mut String,
    paint: Paint,
    compared: Option<&[Comparison]>,
    searched: Option<&NanSearch>,
    outputs: &[Port],
) {
    if let Some(compared) = compared {
        let _ = writeln!(out, "\n{}", paint.strong("compared"));
        for comparison in compared {
            let port = outputs.iter().find(|port| port.name == comparison.output);
            let elements = port.map_or(0, |port| port.shape.iter().product());
            let _ = writeln!(
                out,
                "  {}  {}",
                clean(&comparison.output),
                comparison.line(elements)
            );
        }
    }
    if let Some(NanSearch(first)) = searched {
        let _ = writeln!(out, "\n{}", paint.strong("first NaN or infinity"));
        let _ = match first {
            None => writeln!(out, "  no task wrote one"),
            Some(FirstNan {
                task,
                buffer,
                offset,
            }) => {
                writeln!(
                    out,
                    "  {} wrote it to {} at {offset:#x}",
                    clean(task),
                    clean(buffer)
                )
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::{BufferId, ElementType};

    #[test]
    fn the_greatest_difference_has_a_place() {
        let port = Port {
            name: "y".to_owned(),
            buffer: BufferId::from_raw(0),
            element: ElementType::Float32,
            shape: vec![3, 5],
            host_element: None,
        };
        let bytes = |numbers: &[f32]| {
            numbers
                .iter()
                .flat_map(|n| n.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let mut numbers = [1.0f32; 15];
        numbers[2] = f32::NAN;
        let expected = bytes(&numbers);
        numbers[4] = 1.25;
        numbers[13] = -2.0;
        let (found, place) = Comparison::of(&port, &bytes(&numbers), &expected).expect("decodes");
        assert_eq!((found.max_abs, found.differing, place), (3.0, 2, 13));
        assert_eq!(found.index, [2, 3]);
        numbers[0] = f32::INFINITY;
        let (found, _) = Comparison::of(&port, &bytes(&numbers), &expected).expect("decodes");
        assert_eq!(
            (found.max_abs, &found.index[..]),
            (f64::INFINITY, &[0, 0][..])
        );
        let (found, _) = Comparison::of(&port, &expected, &expected).expect("decodes");
        assert_eq!((found.max_abs, found.differing), (0.0, 0));
    }
}
