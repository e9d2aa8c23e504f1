//! Which elements of the outputs of an invocation depend on elements of its inputs that are in doubt.
//!
//! Most operations work element by element, or on each line along some dims by itself. Of the others every output
//! depends on every input.

use super::arguments::{Invocation, TensorRef};
use super::elementwise;
use super::operation::Operation;
use super::parameters::Parameters;
use super::tensor::Shape;

/// Elements of one tensor that are looked at one by one. Tensors of a tile have fewer.
const MOST: u64 = 1 << 22;

/// By output, the elements that depend on doubtful elements of the inputs; `doubtful(tensor, number)` says which these are.
/// `None` where it is not known: all of them may.
pub fn dependent_elements(
    invocation: &Invocation,
    doubtful: &dyn Fn(&TensorRef, u64) -> bool,
) -> Option<Vec<Vec<u64>>> {
    let mixed = mixed_dims(invocation)?;
    let unused = unused(invocation);
    let mut dependent = Vec::with_capacity(invocation.outputs.len());
    for output in &invocation.outputs {
        let mut hits: Option<Vec<bool>> = None;
        if output.shape.elements() > MOST {
            return None;
        }
        for input in &invocation.inputs {
            let steps = steps(&input.shape, &output.shape, &mixed)?;
            let count: usize = output.shape.dims.iter().map(|dim| *dim as usize).product();
            for number in (0..input.shape.elements()).filter(|n| doubtful(input, *n)) {
                if unused.is_some_and(|(axis, from)| place(&input.shape, number, axis) >= from) {
                    continue;
                }
                let found = hits.get_or_insert_with(|| vec![false; count]);
                mark(&input.shape, &output.shape, &steps, number, found);
            }
        }
        let elements = hits.map(|found| {
            let numbers = found.iter().enumerate().filter(|(_, hit)| **hit);
            let numbers = numbers.map(|(number, _)| number as u64);
            numbers
                .filter(|n| unused.is_none_or(|(axis, from)| place(&output.shape, *n, axis) < from))
                .collect()
        });
        dependent.push(elements.unwrap_or_default());
    }
    Some(dependent)
}

/// Memory dims along which elements of one line depend on each other; `None` where all depend on all.
fn mixed_dims(invocation: &Invocation) -> Option<Vec<usize>> {
    let operation = invocation.operation;
    let shape = &invocation.inputs.first()?.shape;
    Some(match &invocation.parameters {
        Parameters::Activation(_) | Parameters::Dequantize(_) => Vec::new(),
        Parameters::Softmax(softmax) => vec![softmax.axis],
        Parameters::Reduce(reduce) => reduce.axes.clone(),
        Parameters::CumulativeSum(sum) => vec![sum.axis],
        Parameters::TopK(top_k) => vec![top_k.axis],
        Parameters::Lrn(lrn) => lrn.axes.clone(),
        Parameters::RmsNorm(_) => vec![0],
        Parameters::Mvn6(mvn) => mvn.axes.clone(),
        Parameters::Mvn1(mvn) => {
            let first = if mvn.across_channels { 1 } else { 2 };
            (first..shape.dims.len())
                .map(|logical| shape.memory_axis(logical))
                .collect::<Option<_>>()?
        }
        Parameters::NormalizeL2(normalize) => normalize
            .logical_axes
            .iter()
            .map(|logical| shape.memory_axis(*logical))
            .collect::<Option<_>>()?,
        Parameters::None
            if matches!(
                operation,
                Operation::Convert | Operation::DynamicExpand | Operation::Select
            ) || elementwise::covers(operation) =>
        {
            Vec::new()
        }
        _ => return None,
    })
}

/// A dim of which the elements from one on take no part.
fn unused(invocation: &Invocation) -> Option<(usize, u64)> {
    let Parameters::Softmax(softmax) = &invocation.parameters else {
        return None;
    };
    let size = invocation.inputs.first()?.shape.dims.get(softmax.axis)?;
    Some((softmax.axis, u64::from(*size) - softmax.pad as u64))
}

/// The index along a dim of the element of this number.
fn place(shape: &Shape, number: u64, axis: usize) -> u64 {
    let inner: u64 = shape
        .dims
        .iter()
        .take(axis)
        .map(|dim| u64::from(*dim))
        .product();
    number / inner.max(1) % u64::from(shape.dims.get(axis).copied().unwrap_or(1).max(1))
}

/// By dim of the output, whether an element of the input counts for all of its places there, not only for its own.
fn steps(input: &Shape, output: &Shape, mixed: &[usize]) -> Option<Vec<bool>> {
    if input.dims.len() > output.dims.len() {
        return None;
    }
    (0..output.dims.len())
        .map(|dim| {
            let (from, to) = (input.dims.get(dim).copied().unwrap_or(1), output.dims[dim]);
            if mixed.contains(&dim) || from == 1 {
                Some(true)
            } else {
                (from == to).then_some(false)
            }
        })
        .collect()
}

/// Marks the outputs that depend on one element of an input.
fn mark(input: &Shape, output: &Shape, steps: &[bool], number: u64, found: &mut [bool]) {
    // Numbers of the outputs, dim by dim.
    let (mut numbers, mut inner, mut rest) = (vec![0usize], 1, number);
    for (dim, size) in output.dims.iter().enumerate() {
        let own = u64::from(input.dims.get(dim).copied().unwrap_or(1).max(1));
        let index = (rest % own) as usize;
        rest /= own;
        if steps[dim] {
            let all = 0..*size as usize;
            numbers = all
                .flat_map(|i| numbers.iter().map(move |n| n + i * inner))
                .collect();
        } else {
            for n in &mut numbers {
                *n += index * inner;
            }
        }
        inner *= *size as usize;
    }
    if numbers.iter().all(|n| found[*n]) {
        return;
    }
    for n in numbers {
        found[n] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::ElementType;

    fn shape(dims: &[u32]) -> Shape {
        Shape {
            element: ElementType::Float16,
            dims: dims.to_vec(),
            order: 0x4321,
        }
    }

    #[test]
    fn an_element_counts_for_its_line_and_where_it_is_repeated() {
        let (input, output) = (shape(&[3, 1, 2]), shape(&[3, 4, 2]));
        let marked = |mixed: &[usize], number| {
            let mut found = vec![false; 24];
            let steps = steps(&input, &output, mixed).expect("the dims agree");
            mark(&input, &output, &steps, number, &mut found);
            let numbers = found.iter().enumerate().filter(|(_, hit)| **hit);
            numbers.map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(marked(&[], 4), [13, 16, 19, 22]);
        assert_eq!(marked(&[0], 4), (12..24).collect::<Vec<_>>());
        assert_eq!(steps(&shape(&[2]), &shape(&[3]), &[]), None);
    }
}
