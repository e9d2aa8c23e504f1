//! Outputs beside what they should be, and the first NaN: for the person with wrong numbers.

use crate::statistics::number;
use crate::style::{Paint, clean};
use chipless_kernels::cast::decode_f64;
use chipless_model::{ElementType, Kind, Port, Scale};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// An output beside a reference.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    /// Its name.
    pub output: String,
    /// Whether every element is within the tolerance.
    pub agrees: bool,
    /// By how much an element may be off.
    pub tolerance: Tolerance,
    /// Elements beyond the tolerance.
    pub beyond: u64,
    /// The greatest difference of two elements; infinite, which JSON has as null, where one of them is NaN or an infinity and the other
    /// is not the same.
    pub max_abs: f64,
    /// The same as a part of the root mean square of the reference's finite elements; null where that is 0.
    pub max_of_rms: Option<f64>,
    /// The norm of the differences as a part of the norm of the reference, over elements that are finite in both; null where that is 0.
    pub relative_error: Option<f64>,
    /// Where the greatest difference is, outermost dimension first.
    pub index: Vec<u64>,
    /// Elements of the output.
    pub elements: u64,
    /// Elements that differ at all.
    pub differing: u64,
    /// The task that computed this element, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// By how much an element may be off from the one that is expected: by both together.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Tolerance {
    /// Whatever the element, in the numbers of the reference.
    pub absolute: f64,
    /// A part of the expected element, or of the root mean square of the reference where that is more.
    pub relative: f64,
}

impl Tolerance {
    /// What rounding explains in an output of this type, one unit of whose integers is worth `unit`.
    ///
    /// Accelerators compute in 16 bits, also where they write 32: 1 % is some 20 roundings of float16, and a rounding error in a sum is as
    /// large as its usual terms, not as the sum. Types with fewer digits may be off by a step, and so may integers that stand for reals.
    pub const fn of(element: ElementType, unit: f64) -> Tolerance {
        let (absolute, relative) = match (element, element.kind()) {
            (ElementType::Float8E5M2, _) => (0.0, 0.25),
            (ElementType::Float8E4M3 | ElementType::Float8E4M3Fn, _) => (0.0, 0.125),
            (ElementType::Float8E3M4, _) => (0.0, 0.0625),
            (_, Kind::Float) => (0.0, 0.01),
            (ElementType::Bool | ElementType::Binary, _) => (0.0, 0.0),
            _ if element.bits() <= 16 => (unit, 0.0),
            // Indices, counts and sums.
            _ => (0.0, 0.0),
        };
        Tolerance { absolute, relative }
    }

    /// This part of the expected element.
    pub const fn relative(relative: f64) -> Tolerance {
        Tolerance {
            absolute: 0.0,
            relative,
        }
    }

    fn words(self) -> String {
        match (self.relative > 0.0, self.absolute > 0.0) {
            (true, _) => format!(" within {} %", number(self.relative * 100.0)),
            (false, true) => format!(" within one step of {}", number(self.absolute)),
            (false, false) => String::new(),
        }
    }
}

/// What an output should be.
pub struct Reference<'r> {
    /// Puts its elements from this one on into the slice. `None` where they cannot be decoded.
    pub numbers: &'r dyn Fn(u64, &mut [f64]) -> Option<()>,
    /// What the integers of the output stand for in these numbers; they are the same numbers without.
    pub scale: Option<Scale>,
    /// By how much an element may be off.
    pub tolerance: Tolerance,
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
    /// An output's bytes beside its reference, and the place of the greatest difference among the elements. `None` where they cannot be
    /// decoded.
    pub fn of(port: &Port, found: &[u8], reference: &Reference<'_>) -> Option<(Comparison, u64)> {
        let usual = root_mean_square(port, reference)?;
        let Reference {
            numbers,
            scale,
            tolerance,
        } = reference;
        let bytes = CHUNK * port.element.bits() as usize / 8;
        let (mut max_abs, mut place, mut differing, mut beyond, mut first) = (0.0, 0, 0, 0, 0);
        let (mut squares, mut of_reference) = (0.0, 0.0);
        for found in found.chunks(bytes) {
            let count = found.len() * 8 / port.element.bits() as usize;
            let (mut left, mut right) = (vec![0.0; count], vec![0.0; count]);
            decode_f64(port.element, found, &mut left).ok()?;
            numbers(first, &mut right)?;
            for (index, (left, right)) in left.iter().zip(&right).enumerate() {
                let left = scale.map_or(*left, |scale| scale.real(*left));
                let difference = difference(left, *right);
                let allowed = tolerance.absolute + tolerance.relative * right.abs().max(usual);
                differing += u64::from(difference > 0.0);
                if difference.is_finite() && right.is_finite() {
                    squares += difference * difference;
                    of_reference += right * right;
                }
                beyond += u64::from(difference > allowed || difference.is_infinite());
                if difference > max_abs {
                    (max_abs, place) = (difference, first + index as u64);
                }
            }
            first += count as u64;
        }
        let comparison = Comparison {
            output: port.name.clone(),
            agrees: beyond == 0,
            tolerance: *tolerance,
            beyond,
            max_abs,
            max_of_rms: (usual > 0.0).then(|| max_abs / usual),
            relative_error: (of_reference > 0.0).then(|| (squares / of_reference).sqrt()),
            index: index(place, &port.shape),
            elements: first,
            differing,
            task: None,
        };
        Some((comparison, place))
    }

    /// One sentence for people.
    pub fn line(&self) -> String {
        if self.differing == 0 {
            return "equal".to_owned();
        }
        let Comparison {
            tolerance,
            beyond,
            max_abs,
            max_of_rms,
            relative_error,
            index,
            elements,
            differing,
            task,
            ..
        } = self;
        let from = task.as_ref().map_or(String::new(), |task| {
            format!(", computed by {}", clean(task))
        });
        let within = tolerance.words();
        let verdict = if self.agrees {
            format!("agrees{within}")
        } else if within.is_empty() {
            "does not agree".to_owned()
        } else {
            let are = if *beyond == 1 {
                "element is"
            } else {
                "elements are"
            };
            format!("does not agree{within}: {beyond} {are} beyond it")
        };
        // Counts and indices have no usual size.
        let is_exact = tolerance.relative == 0.0 && tolerance.absolute == 0.0;
        let of_rms = max_of_rms.filter(|part| part.is_finite() && !is_exact);
        let part = of_rms.map_or_else(String::new, |part| {
            let percent = number(part * 100.0);
            format!(" ({percent} % of the reference's root mean square)")
        });
        let whole = relative_error.filter(|_| !is_exact);
        let whole = whole.map_or_else(String::new, |error| {
            format!(
                "; {} % on the whole (relative error)",
                number(error * 100.0)
            )
        });
        format!(
            "{verdict}; {differing} of {elements} differ, by {} at most{part}, at {index:?}{from}{whole}",
            number(*max_abs)
        )
    }
}

/// The root mean square of the finite elements of a reference.
fn root_mean_square(port: &Port, reference: &Reference<'_>) -> Option<f64> {
    let elements: u64 = port.shape.iter().product();
    let (mut sum, mut finite, mut first) = (0.0, 0u64, 0);
    while first < elements {
        let mut numbers = vec![0.0; (elements - first).min(CHUNK as u64) as usize];
        (reference.numbers)(first, &mut numbers)?;
        for number in numbers.iter().filter(|number| number.is_finite()) {
            sum += number * number;
            finite += 1;
        }
        first += numbers.len() as u64;
    }
    Some((sum / finite.max(1) as f64).sqrt())
}

/// By how much two elements differ: equal ones and NaN beside NaN do not.
#[expect(
    clippy::float_cmp,
    reason = "equal numbers do not differ, infinities among them"
)]
pub fn difference(left: f64, right: f64) -> f64 {
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
) {
    if let Some(compared) = compared {
        let _ = write!(out, "\n{}", paint.strong("compared"));
        if compared.iter().any(|of| of.tolerance.relative > 0.0) {
            let _ = write!(
                out,
                "{}",
                paint.dim("  a percentage is of the expected element, or of the reference's root mean square if larger")
            );
        }
        out.push('\n');
        for comparison in compared {
            let _ = writeln!(
                out,
                "  {}  {}",
                clean(&comparison.output),
                comparison.line()
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
    use chipless_model::BufferId;

    #[test]
    fn the_greatest_difference_has_a_place() {
        let port = Port {
            name: "y".to_owned(),
            alias: None,
            buffer: BufferId::from_raw(0),
            element: ElementType::Float32,
            shape: vec![3, 5],
            host_element: None,
            scale: None,
        };
        let mut numbers = [1.0f32; 15];
        numbers[2] = f32::NAN;
        let expected = numbers;
        let compare = |found: &[f32], tolerance| {
            let found: Vec<u8> = found.iter().flat_map(|n| n.to_le_bytes()).collect();
            let numbers = |first: u64, slots: &mut [f64]| {
                for (slot, number) in slots.iter_mut().zip(&expected[first as usize..]) {
                    *slot = f64::from(*number);
                }
                Some(())
            };
            let reference = Reference {
                numbers: &numbers,
                scale: None,
                tolerance,
            };
            Comparison::of(&port, &found, &reference).expect("decodes")
        };
        let usual = Tolerance::of(port.element, 1.0);
        numbers[4] = 1.005;
        let (found, _) = compare(&numbers, usual);
        assert_eq!((found.agrees, found.differing, found.beyond), (true, 1, 0));
        assert!(!compare(&numbers, Tolerance::relative(0.001)).0.agrees);
        numbers[13] = -2.0;
        let (found, place) = compare(&numbers, usual);
        assert_eq!((found.max_abs, found.differing, place), (3.0, 2, 13));
        assert_eq!((found.agrees, found.beyond), (false, 1));
        assert_eq!(found.index, [2, 3]);
        assert_eq!(
            found.line(),
            "does not agree within 1 %: 1 element is beyond it; 2 of 15 differ, by 3 at most (300 % of the reference's root mean square), at [2, 3]; 80.18 % on the whole (relative error)"
        );
        numbers[0] = f32::INFINITY;
        let (found, _) = compare(&numbers, usual);
        assert_eq!(
            (found.max_abs, &found.index[..], found.beyond),
            (f64::INFINITY, &[0, 0][..], 2)
        );
        let (found, _) = compare(&expected, Tolerance::relative(0.0));
        assert_eq!((found.max_abs, found.differing), (0.0, 0));
        assert_eq!(found.line(), "equal");
    }

    /// Integers of up to 16 bits stand for reals and may be off by a step; longer ones count things.
    #[test]
    fn a_tolerance_follows_from_the_type() {
        let of = |element| Tolerance::of(element, 0.5);
        assert_eq!(of(ElementType::Float16).words(), " within 1 %");
        assert_eq!(of(ElementType::BFloat16), Tolerance::relative(0.01));
        assert_eq!(of(ElementType::Float8E5M2).words(), " within 25 %");
        assert_eq!(of(ElementType::Int8).words(), " within one step of 0.5000");
        assert_eq!(of(ElementType::Int64).words(), "");
        assert_eq!(of(ElementType::Bool), Tolerance::relative(0.0));
    }
}
