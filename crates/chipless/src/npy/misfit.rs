//! What to do about an array that is not what a program takes.

use chipless_kernels::npy::{NumpyKind, numpy_type};
use chipless_model::{ElementType, Kind};

/// How the element type of an array compares with the one that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The same.
    Same,
    /// Another one whose numbers numpy can convert.
    Numbers,
    /// One that numpy has no numbers for.
    Raw,
}

/// What to do about an array of another type or shape; empty where nothing is certain.
pub(super) fn advice(
    found_type: Found,
    element: ElementType,
    shape: &[u64],
    found: &[u64],
) -> String {
    let mut pass = "x".to_owned();
    let (mut why, mut unless) = ("", "");
    if found != shape {
        if let Some(axes) = last_to_second(shape, found) {
            why = "Its channels come last and should come second";
            pass = format!("numpy.transpose(x, {axes})");
        } else if let Some((axes, is_whole)) = permutation(shape, found) {
            why = "Its axes are in another order";
            pass = format!("numpy.transpose(x, {axes})");
            if !is_whole {
                pass += &format!(".reshape({shape:?})");
            }
        } else if elements(found).is_some_and(|n| elements(shape) == Some(n)) {
            why = "It has as many elements";
            unless = " if they are in this order";
            pass = format!("numpy.reshape(x, {shape:?})");
        } else {
            return String::new();
        }
    }
    let is_float = element.kind() == Kind::Float;
    match found_type {
        Found::Same if found == shape => return String::new(),
        Found::Same => {}
        Found::Numbers if is_of_numpy(element) => {
            pass += &format!(".astype(numpy.{element})");
        }
        Found::Numbers | Found::Raw => return String::new(),
    }
    if found_type == Found::Numbers && !is_float {
        let and = if unless.is_empty() { " if" } else { " and" };
        let whole = "it holds whole numbers; quantise reals first, by the scale of this input";
        return sentence(why, &pass, &format!("{unless}{and} {whole}"));
    }
    sentence(why, &pass, unless)
}

/// Whether numpy has an element type, under the same name.
fn is_of_numpy(element: ElementType) -> bool {
    numpy_type(element).0 != NumpyKind::Raw && element.bits() >= 8
}

fn sentence(why: &str, pass: &str, unless: &str) -> String {
    if why.is_empty() {
        format!(". Pass {pass}{unless}")
    } else {
        format!(". {why}: pass {pass}{unless}")
    }
}

/// The axes that bring the last dimension to the second place.
fn last_to_second(shape: &[u64], found: &[u64]) -> Option<String> {
    let [n, between @ .., channels] = found else {
        return None;
    };
    let is_it = found.len() > 2 && [&[*n, *channels], between].concat() == shape;
    let axes = || [0, found.len() - 1].into_iter().chain(1..found.len() - 1);
    is_it.then(|| tuple(axes()))
}

/// The axes of an array in the order of a shape that has the same dimensions in another order, whatever stands at those of one element; and whether the
/// array then has this shape. Nothing where it has the dimensions in the same order.
fn permutation(shape: &[u64], found: &[u64]) -> Option<(String, bool)> {
    let long = |shape: &[u64]| -> Vec<u64> { shape.iter().copied().filter(|d| *d != 1).collect() };
    if long(shape) == long(found) || long(shape).len() != long(found).len() {
        return None;
    }
    let mut free: Vec<usize> = (0..found.len()).collect();
    let mut axes = Vec::new();
    for extent in shape {
        // An axis of one element is taken where there is one, and made by a reshape otherwise.
        match free.iter().position(|axis| found[*axis] == *extent) {
            Some(at) => axes.push(free.remove(at)),
            None if *extent == 1 => {}
            None => return None,
        }
    }
    let is_whole = free.is_empty() && axes.len() == shape.len();
    axes.extend(free);
    Some((tuple(axes.into_iter()), is_whole))
}

fn tuple(axes: impl Iterator<Item = usize>) -> String {
    let axes: Vec<String> = axes.map(|axis| axis.to_string()).collect();
    format!("({})", axes.join(", "))
}

/// Elements of a shape; `None` beyond 64 bits.
fn elements(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misfit_says_what_to_do() {
        let of = |found_type, element, shape: &[u64], found: &[u64]| {
            advice(found_type, element, shape, found)
        };
        let said = |shape: &[u64], found: &[u64]| of(Found::Same, ElementType::Int8, shape, found);
        let last = said(&[1, 3, 8, 6], &[1, 8, 6, 3]);
        assert!(
            last.contains("pass numpy.transpose(x, (0, 3, 1, 2))"),
            "{last}"
        );
        // A sequence N, L, D as N, D, L, 1: reshape would mix its numbers.
        let sequence = said(&[1, 64, 32, 1], &[1, 32, 64]);
        assert!(
            sequence.ends_with("pass numpy.transpose(x, (0, 2, 1)).reshape([1, 64, 32, 1])"),
            "{sequence}"
        );
        let less = said(&[32, 64], &[1, 64, 32, 1]);
        assert!(
            less.ends_with("numpy.transpose(x, (2, 1, 0, 3)).reshape([32, 64])"),
            "{less}"
        );
        assert!(said(&[4, 6], &[6, 4]).ends_with("pass numpy.transpose(x, (1, 0))"));
        let same = said(&[1, 3, 8, 6], &[3, 8, 6]);
        assert!(
            same.contains("pass numpy.reshape(x, [1, 3, 8, 6]) if they are"),
            "{same}"
        );
        assert_eq!(said(&[4, 4], &[5]), "");
        assert_eq!(said(&[], &[]), "");

        let typed =
            |element, shape: &[u64], found: &[u64]| of(Found::Numbers, element, shape, found);
        assert!(
            typed(ElementType::Int8, &[4, 4], &[4, 4]).contains("Pass x.astype(numpy.int8) if")
        );
        assert_eq!(
            typed(ElementType::Float32, &[4], &[4]),
            ". Pass x.astype(numpy.float32)"
        );
        assert!(
            typed(ElementType::Int8, &[1, 64, 32, 1], &[1, 32, 64])
                .contains("(0, 2, 1)).reshape([1, 64, 32, 1]).astype(numpy.int8) if it holds")
        );
        assert_eq!(typed(ElementType::BFloat16, &[4], &[4]), "");
        assert_eq!(of(Found::Raw, ElementType::Float32, &[4], &[4]), "");
    }
}
