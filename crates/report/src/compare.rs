//! Outputs beside what they should be, and the first NaN: for the person with wrong numbers.

mod words;

use crate::statistics::number;
use crate::style::{Paint, clean};
use chipless_kernels::cast::decode_f64;
use chipless_model::{ElementType, Kind, Port, Scale, count};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;

/// An output beside a reference.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    /// Its name.
    pub output: String,
    /// Whether every element is within the tolerance, and no slice of smaller numbers is off by half of them or more: the tolerance of an element
    /// goes by the root mean square of all, which says nothing of scores beside coordinates.
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
    /// The greatest difference as a part of the expected element, or of the root mean square of the reference's finite elements where that is
    /// more, as the tolerance has it; null where one is infinite, or the reference is all zeros.
    pub max_relative: Option<f64>,
    /// Where that is, outermost dimension first.
    pub max_relative_index: Vec<u64>,
    /// What is expected at the place of the greatest difference; null where nothing differs, or that is NaN or an infinity.
    pub expected: Option<f64>,
    /// What is found there; null where nothing differs, or that is NaN or an infinity.
    pub found: Option<f64>,
    /// The norm of the differences as a part of the norm of the reference, over elements that are finite in both; null where that is 0.
    pub relative_error: Option<f64>,
    /// The same of the model itself, computed with every layer's result rounded to half precision: what rounding alone explains. Missing unless the
    /// output was compared with a model and does not agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<f64>,
    /// Elements that are NaN or an infinity in one of the two, and not the same in the other.
    pub not_finite: u64,
    /// The greatest magnitude of a finite element of the reference.
    pub largest_expected: f64,
    /// Where the greatest difference is, outermost dimension first.
    pub index: Vec<u64>,
    /// The slice, at one index of one axis, that is furthest off for its own size, of those with a smaller root mean square than the whole: the
    /// tolerance sees little of it. Missing where no slice has 16 elements and smaller numbers; axes of more than 4096 indices are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_slice: Option<SliceError>,
    /// Elements of the output.
    pub elements: u64,
    /// Elements that differ at all.
    pub differing: u64,
    /// The task that computed this element, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// A slice of an output beside that of the reference.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct SliceError {
    /// The axis, counted from 0, outermost first.
    pub axis: usize,
    /// The index on it.
    pub index: u64,
    /// The root mean square of the slice of the reference, over elements that are finite in both.
    pub root_mean_square: f64,
    /// The norm of the differences as a part of the norm of the slice of the reference.
    pub relative_error: f64,
}

impl SliceError {
    /// Whether it is off by more than rounding explains, which is large where numbers are smaller than the normal ones of float16.
    fn is_wrong(&self) -> bool {
        self.relative_error >= WRONG && self.root_mean_square >= LEAST_NORMAL
    }
}

/// A slice that is off by this part of its own size is wrong.
const WRONG: f64 = 0.5;

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
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct NanSearch(pub Option<FirstNan>);

/// Where numbers went wrong in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// The first that is none.
    pub first_nan: NanSearch,
    /// Those that are smaller than what was computed.
    pub clipped: Clipped,
}

/// Computed elements that are ±65504, the largest float16, as what is beyond it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Clipped {
    /// How many.
    pub values: u64,
    /// Tasks that wrote them.
    pub tasks: usize,
    /// The first of these, if there is one.
    pub first: Option<String>,
}

/// The smallest float16 of full precision.
const LEAST_NORMAL: f64 = 1.0 / 16384.0;

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
        let (mut max_relative, mut relative_place, mut expected) = (0.0f64, 0, 0.0);
        let (mut not_finite, mut largest_expected, mut there) = (0, 0.0f64, 0.0);
        let mut whole = Norms::default();
        let mut slices = Slices::new(&port.shape);
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
                    whole.add(difference, *right);
                    slices.add(first + index as u64, difference, *right);
                }
                beyond += u64::from(difference > allowed || difference.is_infinite());
                not_finite += u64::from(difference.is_infinite());
                if right.is_finite() {
                    largest_expected = largest_expected.max(right.abs());
                }
                let here = first + index as u64;
                let relative = if difference.is_infinite() {
                    f64::INFINITY
                } else {
                    difference / right.abs().max(usual)
                };
                if relative > max_relative {
                    (max_relative, relative_place) = (relative, here);
                }
                if difference > max_abs {
                    (max_abs, place, expected, there) = (difference, here, *right, left);
                }
            }
            first += count as u64;
        }
        let worst_slice = slices.worst(usual);
        // What is compared exactly, or by steps, is judged element by element.
        let is_wrong = |slice: &SliceError| {
            let relative = tolerance.relative;
            slice.is_wrong() && relative > 0.0 && slice.relative_error > relative
        };
        let has_wrong_slice = worst_slice.as_ref().is_some_and(is_wrong);
        let comparison = Comparison {
            output: port.name.clone(),
            agrees: beyond == 0 && !has_wrong_slice,
            tolerance: *tolerance,
            beyond,
            max_abs,
            max_of_rms: (usual > 0.0).then(|| max_abs / usual),
            max_relative: Some(max_relative).filter(|part| part.is_finite() && usual > 0.0),
            max_relative_index: index_of(relative_place, &port.shape),
            expected: Some(expected).filter(|number: &f64| differing > 0 && number.is_finite()),
            found: Some(there).filter(|number: &f64| differing > 0 && number.is_finite()),
            relative_error: whole.relative_error(),
            rounding: None,
            not_finite,
            largest_expected,
            index: index_of(place, &port.shape),
            worst_slice,
            elements: first,
            differing,
            task: None,
        };
        Some((comparison, place))
    }
}

/// Sums of squares of differences and of what is expected.
#[derive(Clone, Copy, Default)]
struct Norms {
    differences: f64,
    expected: f64,
    elements: u64,
}

impl Norms {
    fn add(&mut self, difference: f64, expected: f64) {
        self.differences += difference * difference;
        self.expected += expected * expected;
        self.elements += 1;
    }

    fn relative_error(self) -> Option<f64> {
        (self.expected > 0.0).then(|| (self.differences / self.expected).sqrt())
    }
}

/// Slices of so many elements have a size of their own.
const LEAST_SLICE: u64 = 16;

/// Indices of an axis, at most, whose slices are looked at.
const MOST_SLICES: u64 = 1 << 12;

/// The slices of an output along each axis that has some of enough elements.
struct Slices {
    axes: Vec<Axis>,
}

struct Axis {
    number: usize,
    extent: u64,
    /// Elements from one index to the next.
    stride: u64,
    norms: Vec<Norms>,
}

impl Slices {
    fn new(shape: &[u64]) -> Slices {
        let all: u64 = shape.iter().product();
        let mut stride = all;
        let mut axes = Vec::new();
        for (number, extent) in shape.iter().enumerate() {
            let elements = all / (*extent).max(1);
            stride /= (*extent).max(1);
            if (2..=MOST_SLICES).contains(extent) && elements >= LEAST_SLICE {
                axes.push(Axis {
                    number,
                    extent: *extent,
                    stride,
                    norms: vec![Norms::default(); *extent as usize],
                });
            }
        }
        Slices { axes }
    }

    fn add(&mut self, place: u64, difference: f64, expected: f64) {
        for axis in &mut self.axes {
            let index = place / axis.stride % axis.extent;
            if let Some(norms) = axis.norms.get_mut(index as usize) {
                norms.add(difference, expected);
            }
        }
    }

    /// The one that is furthest off for its own size, of those whose numbers are smaller than usual.
    fn worst(&self, usual: f64) -> Option<SliceError> {
        let all = self.axes.iter().flat_map(|axis| {
            (0..).zip(&axis.norms).filter_map(|(index, norms)| {
                Some(SliceError {
                    axis: axis.number,
                    index,
                    root_mean_square: (norms.expected / norms.elements.max(1) as f64).sqrt(),
                    relative_error: norms.relative_error()?,
                })
            })
        });
        all.filter(|slice| slice.root_mean_square < usual)
            .max_by(|a, b| {
                let larger = a.relative_error.total_cmp(&b.relative_error);
                a.is_wrong().cmp(&b.is_wrong()).then(larger)
            })
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
fn index_of(mut place: u64, shape: &[u64]) -> Vec<u64> {
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
    searched: Option<&Searched>,
    outputs_are_finite: bool,
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
    if let Some(Searched { first_nan, clipped }) = searched {
        let _ = writeln!(out, "\n{}", paint.strong("first NaN or infinity"));
        let _ = match &first_nan.0 {
            None => writeln!(out, "  no task wrote one"),
            Some(FirstNan {
                task,
                buffer,
                offset,
            }) => {
                let reach = if outputs_are_finite {
                    "; no output has one, so it lies in padding, or something later leaves it out"
                } else {
                    ""
                };
                writeln!(
                    out,
                    "  {} wrote it to {} at {offset:#x}{reach}",
                    clean(task),
                    clean(buffer)
                )
            }
        };
        if let Some(first) = &clipped.first {
            let _ = writeln!(
                out,
                "\n{}  {}\n  {} of {}, first {}",
                paint.strong("clipped"),
                paint.dim("results of ±65504, the largest float16: what is larger is stored as it"),
                count(clipped.values as usize, "value"),
                count(clipped.tasks, "task"),
                clean(first)
            );
        }
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
        numbers[4] = 1.000_01;
        let line = compare(&numbers, usual).0.line();
        let both = "where 1 is expected, and 1.0000100135803223 is found";
        assert!(line.contains(both), "{line}");
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
            "does not agree within 1 %: 1 element is beyond it; 2 of 15 differ, by 300 % at most; the largest difference is 3, where 1 is expected, and -2 is found, at [2, 3]; 80.18 % on the whole (relative error)"
        );
        numbers[0] = f32::INFINITY;
        let (found, _) = compare(&numbers, usual);
        assert_eq!(
            (found.max_abs, &found.index[..], found.beyond),
            (f64::INFINITY, &[0, 0][..], 2)
        );
        assert_eq!(
            found.line(),
            "does not agree within 1 %: 2 elements are beyond it; 3 of 15 differ; 1 by a NaN or an infinity, where 1 is expected, at [0, 0]; 83.21 % on the whole of the others (relative error)"
        );
        let (found, _) = compare(&expected, Tolerance::relative(0.0));
        assert_eq!((found.max_abs, found.differing), (0.0, 0));
        assert_eq!(found.line(), "equal");
    }

    /// Rows of scores beside rows of coordinates that are larger.
    #[test]
    fn small_rows_that_are_wrong_are_told_of() {
        let port = Port {
            name: "y".to_owned(),
            alias: None,
            buffer: BufferId::from_raw(0),
            element: ElementType::Float32,
            shape: vec![1, 4, 16],
            host_element: None,
            scale: None,
        };
        let compared = |coordinates: f64, scores: f32| {
            let expected: Vec<f64> = (0..64)
                .map(|i| f64::from(i) + if i < 32 { coordinates } else { 0.1 })
                .collect();
            let mut found: Vec<f32> = expected.iter().map(|n| *n as f32).collect();
            found[48..].iter_mut().for_each(|n| *n *= scores);
            let found: Vec<u8> = found.iter().flat_map(|n| n.to_le_bytes()).collect();
            let reference = Reference {
                numbers: &|first, slots| {
                    slots.copy_from_slice(&expected[first as usize..][..slots.len()]);
                    Some(())
                },
                scale: None,
                tolerance: Tolerance::of(port.element, 1.0),
            };
            Comparison::of(&port, &found, &reference)
                .expect("decodes")
                .0
        };
        let said = compared(300.0, 0.97).line();
        assert!(
            said.ends_with(", but 3.000 % at index 3 of axis 1, whose numbers are smaller than others (root mean square 55.79)"),
            "{said}"
        );
        let said = compared(300.0, 1.0 - 1e-5).line();
        assert!(said.ends_with("on the whole (relative error)"), "{said}");
        // No element is beyond a part of the whole's root mean square, and the scores are wrong all the same.
        let wrong = compared(30_000.0, 0.2);
        assert!(!wrong.agrees && wrong.beyond == 0, "{wrong:?}");
        let said = wrong.line();
        assert!(
            said.starts_with("does not agree in its smaller numbers; ")
                && said.contains("but 80.00 % at index 3 of axis 1"),
            "{said}"
        );
        assert!(compared(30_000.0, 0.9).agrees);
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
