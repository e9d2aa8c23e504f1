//! What to do about an array that is not what a program takes.

use chipless_model::{ElementType, Kind};

/// What to do about an array of another type or shape; empty where nothing is certain.
pub(super) fn advice(
    same_type: bool,
    element: ElementType,
    shape: &[u64],
    found: &[u64],
) -> String {
    let last_to_second = match found {
        [n, between @ .., channels] if found.len() > 2 => [&[*n, *channels], between].concat(),
        _ => Vec::new(),
    };
    if last_to_second == shape && found != shape {
        let axes = std::iter::once(found.len() - 1).chain(1..found.len() - 1);
        let axes: Vec<String> = axes.map(|axis| axis.to_string()).collect();
        format!(
            ". Its channels come last and should come second: pass numpy.transpose(x, (0, {}))",
            axes.join(", ")
        )
    } else if !same_type && found == shape && element.kind() != Kind::Float {
        format!(
            ". Pass x.astype(numpy.{element}) if it holds whole numbers; reals are quantised by the scale of this input first"
        )
    } else if same_type
        && found != shape
        && elements(found).is_some_and(|n| elements(shape) == Some(n))
    {
        format!(
            ". It has as many elements: numpy.reshape(x, {shape:?}) gives it this shape, if they are in this order"
        )
    } else {
        String::new()
    }
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
        let said =
            |same, shape: &[u64], found: &[u64]| advice(same, ElementType::Int8, shape, found);
        let last = said(true, &[1, 3, 8, 6], &[1, 8, 6, 3]);
        assert!(last.contains("numpy.transpose(x, (0, 3, 1, 2))"), "{last}");
        assert!(said(true, &[1, 3, 8, 6], &[3, 8, 6]).contains("numpy.reshape(x, [1, 3, 8, 6])"));
        assert!(said(false, &[4, 4], &[4, 4]).contains("x.astype(numpy.int8)"));
        assert_eq!(said(true, &[4, 4], &[5]), "");
        assert_eq!(said(true, &[], &[]), "");
    }
}
