//! Products of matrices.

use super::Reader;
use super::array::{Array, broadcast, elements, types};
use super::builder::{Made, numbers};
use super::node::Node;
use super::value::{Groups, Tensor, Value};
use crate::front::{Action, Element, Numbers, Window};
use crate::network::Kind;

impl Reader<'_> {
    pub(super) fn matmul(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let (a, b) = (node.input(0)?.clone(), node.input(1)?.clone());
        self.product(&a, &b)
    }

    /// A product as `NumPy` has it.
    pub(super) fn product(&mut self, a: &Value, b: &Value) -> Result<Value, String> {
        let (ra, rb) = (a.shape().len(), b.shape().len());
        if ra == 0 || rb == 0 {
            return Err("a product with a single number".to_owned());
        }
        let left = if ra == 1 { a.unsqueezed(0)? } else { a.clone() };
        let right = if rb == 1 { b.unsqueezed(1)? } else { b.clone() };
        let mut product = self.matrices(&left, &right)?;
        let rank = product.shape().len();
        if rb == 1 {
            product = product.squeezed(rank - 1)?;
        }
        if ra == 1 {
            product = product.squeezed(product.shape().len() - if rb == 1 { 1 } else { 2 })?;
        }
        Ok(product)
    }

    /// A product of what has two dimensions at least.
    fn matrices(&mut self, a: &Value, b: &Value) -> Result<Value, String> {
        let (sa, sb) = (a.shape(), b.shape());
        let (batch_a, [m, inner]) = cut(&sa);
        let (batch_b, [also, n]) = cut(&sb);
        if inner != also {
            return Err(format!("a product of {sa:?} and {sb:?}"));
        }
        if let (Value::Array(a), Value::Array(b)) = (a, b) {
            return Ok(Value::Array(a.product(b)?));
        }
        let batch = broadcast(batch_a, batch_b)?;
        let shape = [&batch[..], &[m, n]].concat();
        match (a, b) {
            (Value::Tensor(x), Value::Array(w)) if elements(batch_b) == 1 => {
                let weight = numbers(vec![inner, n], w.values.to_vec());
                let value = self.linear(x, sa.len() - 1, weight, n, true)?;
                let value = value.transposed(&last_after(sa.len()))?;
                self.reshaped(&value, &shape)
            }
            (Value::Array(w), Value::Tensor(x)) if elements(batch_a) == 1 => {
                let weight = numbers(vec![m, inner], w.values.to_vec());
                let value = self.linear(x, sb.len() - 2, weight, m, false)?;
                // Its outputs stand first: M, batch, N.
                let rank = sb.len();
                let mut order: Vec<usize> = (1..rank - 1).collect();
                order.extend([0, rank - 1]);
                let value = value.transposed(&order)?;
                self.reshaped(&value, &shape)
            }
            (Value::Tensor(x), Value::Array(w)) => {
                let all = [&batch[..], &[inner, n]].concat();
                let turned = w.broadcast_to(&all)?;
                let weight = swapped(&turned)?;
                let x =
                    Value::Tensor(x.clone()).broadcast_to(&[&batch[..], &[m, inner]].concat())?;
                self.by_groups(&x, &weight, &batch, [m, inner, n])
            }
            (Value::Array(_), Value::Tensor(_)) => {
                // The transpose of the product of the transposes.
                let (ra, rb) = (sa.len(), sb.len());
                let product =
                    self.matrices(&b.transposed(&swap(rb))?, &a.transposed(&swap(ra))?)?;
                product.transposed(&swap(product.shape().len()))
            }
            _ => {
                let left = a.broadcast_to(&[&batch[..], &[m, inner]].concat())?;
                let right = b.broadcast_to(&[&batch[..], &[inner, n]].concat())?;
                self.of_two(&left, &right, &batch, [m, inner, n])
            }
        }
    }

    /// Every line along an axis times weights: what comes of it stands first, then the other dimensions in their order.
    pub(super) fn linear(
        &mut self,
        x: &Tensor,
        axis: usize,
        weight: Numbers,
        outputs: i64,
        columns: bool,
    ) -> Result<Value, String> {
        let x = self.real(x)?;
        let shape = x.shape();
        let others: Vec<usize> = (0..shape.len()).filter(|d| *d != axis).collect();
        // Where the axis is how the channels are stored, the others stay where they are.
        let own = x.storage(self.builder.extents(x.source));
        let stays =
            |groups: &Groups| groups[0] == [axis] || shape[axis] == 1 && groups[0].is_empty();
        let groups = if let Some(groups) = own.filter(stays) {
            groups
        } else {
            let many: Vec<usize> = others.iter().copied().filter(|d| shape[*d] != 1).collect();
            [vec![axis], many, Vec::new()]
        };
        let source = self.builder.arranged(&x, &groups)?;
        let [channels, rows, taps] = self.builder.extents(source);
        let is_vector = rows * taps == 1;
        let made = Made {
            kind: if is_vector { Kind::Fc } else { Kind::Conv },
            output: [outputs, rows, taps],
            action: Action::Weighted {
                window: Window::POINT,
                weight,
                columns,
                bias: None,
            },
            element: Element::Float16,
        };
        let made = self
            .builder
            .layer_of(made, &[source], |layer| layer.channels = channels)?;
        let mut of = shape.clone();
        of[axis] = outputs;
        let mut groups = groups;
        groups[0] = vec![axis];
        let stored = Tensor::stored(made, &of, &groups, x.kind);
        let order: Vec<usize> = [axis].into_iter().chain(others).collect();
        Value::Tensor(stored).transposed(&order)
    }

    /// A product with constants of its own for each of a batch: groups of channels.
    fn by_groups(
        &mut self,
        x: &Value,
        weight: &Array,
        batch: &[i64],
        [m, inner, n]: [i64; 3],
    ) -> Result<Value, String> {
        let (count, rank) = (elements(batch), batch.len());
        let x = Self::made(x)?;
        let x = self.real(&x)?;
        let groups = [
            (0..rank).chain([rank + 1]).collect(),
            vec![rank],
            Vec::new(),
        ];
        let source = self.builder.arranged(&x, &groups)?;
        let made = Made {
            kind: Kind::GroupConv,
            output: [count * n, m, 1],
            action: Action::Weighted {
                window: Window::POINT,
                weight: numbers(vec![count * n, inner, 1, 1], weight.values.to_vec()),
                columns: false,
                bias: None,
            },
            element: Element::Float16,
        };
        let made = self.builder.layer_of(made, &[source], |layer| {
            (layer.channels, layer.groups) = (count * inner, count);
        })?;
        let shape = [batch, &[m, n]].concat();
        Ok(Value::Tensor(Tensor::stored(made, &shape, &groups, x.kind)))
    }

    /// A product of what the network computes.
    fn of_two(
        &mut self,
        a: &Value,
        b: &Value,
        batch: &[i64],
        [m, inner, n]: [i64; 3],
    ) -> Result<Value, String> {
        let (count, rank) = (elements(batch), batch.len());
        let (a, b) = (Self::made(a)?, Self::made(b)?);
        let (a, b) = (self.real(&a)?, self.real(&b)?);
        let groups = [
            (0..rank).chain([rank + 1]).collect(),
            vec![rank],
            Vec::new(),
        ];
        let first = self.builder.arranged(&a, &groups)?;
        let mut second = self.builder.arranged(&b, &groups)?;
        if first == second {
            second = self.copied(second)?;
        }
        let made = Made {
            kind: Kind::GroupConv,
            output: [count * n, m, 1],
            action: Action::Product,
            element: Element::Float16,
        };
        let made = self.builder.layer_of(made, &[first, second], |layer| {
            (layer.channels, layer.groups) = (count * inner, count);
        })?;
        let shape = [batch, &[m, n]].concat();
        Ok(Value::Tensor(Tensor::stored(made, &shape, &groups, a.kind)))
    }

    /// Real numbers of what is stored as integers.
    pub(super) fn real(&mut self, x: &Tensor) -> Result<Tensor, String> {
        if !types::is_integer(x.kind) {
            return Ok(x.clone());
        }
        let real = self.cast(&Value::Tensor(x.clone()), types::FLOAT)?;
        Self::made(&real)
    }

    pub(super) fn gemm(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let of = |at: usize, name: &str| -> Result<Value, String> {
            let value = node.input(at)?;
            if node.int(name, 0) == 0 {
                Ok(value.clone())
            } else {
                value.transposed(&[1, 0])
            }
        };
        let (a, b) = (of(0, "transA")?, of(1, "transB")?);
        let mut product = self.product(&a, &b)?;
        let scalar = |value: f64| Value::Array(Array::scalar(types::FLOAT, value));
        let (alpha, beta) = (node.float("alpha", 1.0), node.float("beta", 1.0));
        if alpha - 1.0 != 0.0 {
            product = self.binary("Mul", &product, &scalar(alpha))?;
        }
        let Some(c) = node.optional(2).cloned() else {
            return Ok(product);
        };
        let c = if beta - 1.0 == 0.0 {
            c
        } else {
            self.binary("Mul", &c, &scalar(beta))?
        };
        self.binary("Add", &product, &c)
    }

    pub(super) fn einsum(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let equation: String = node
            .text("equation")
            .ok_or("its equation is missing")?
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let operands: Vec<Value> = (0..node.inputs.len())
            .map(|at| node.input(at).cloned())
            .collect::<Result<_, _>>()?;
        let (given, result) = match equation.split_once("->") {
            Some((given, result)) => (given.to_owned(), Some(result.to_owned())),
            None => (equation.clone(), None),
        };
        let wrong = || format!("the equation `{equation}` does not go with its operands");
        let mut terms = Vec::new();
        for (term, value) in given.split(',').zip(&operands) {
            terms.push(spelled(term, value.shape().len()).ok_or_else(wrong)?);
        }
        if terms.len() != operands.len() || given.split(',').count() != operands.len() {
            return Err(wrong());
        }
        let result = if let Some(result) = result {
            let dots = terms
                .iter()
                .map(|t| t.iter().filter(|c| c.is_ascii_digit()).count())
                .max();
            let letters = result.chars().filter(|c| c.is_alphabetic()).count();
            let rank = letters
                + if result.contains("...") {
                    dots.unwrap_or(0)
                } else {
                    0
                };
            spelled(&result, rank).ok_or_else(wrong)?
        } else {
            let all: Vec<char> = terms.iter().flatten().copied().collect();
            let mut once: Vec<char> = all
                .iter()
                .copied()
                .filter(|c| c.is_ascii_digit() || all.iter().filter(|d| *d == c).count() == 1)
                .collect();
            once.sort_unstable();
            once.dedup();
            once
        };
        let mut value = operands[0].clone();
        let (mut letters, rest) = (terms[0].clone(), &terms[1..]);
        (value, letters) = diagonal(value, letters)?;
        for (at, (term, operand)) in rest.iter().zip(&operands[1..]).enumerate() {
            let (operand, term) = diagonal(operand.clone(), term.clone())?;
            let later: Vec<char> = rest[at + 1..]
                .iter()
                .flatten()
                .chain(&result)
                .copied()
                .collect();
            (value, letters) = self.contracted(&value, &letters, &operand, &term, &later)?;
        }
        let away: Vec<usize> = (0..letters.len())
            .filter(|d| !result.contains(&letters[*d]))
            .collect();
        if !away.is_empty() {
            value = self.reduced("reduce_sum", &value, &away, false)?;
            letters.retain(|c| result.contains(c));
        }
        let order: Option<Vec<usize>> = result
            .iter()
            .map(|c| letters.iter().position(|own| own == c))
            .collect();
        value.transposed(&order.ok_or_else(wrong)?)
    }

    /// Two operands of an Einstein sum, where these letters are needed later.
    fn contracted(
        &mut self,
        a: &Value,
        of_a: &[char],
        b: &Value,
        of_b: &[char],
        later: &[char],
    ) -> Result<(Value, Vec<char>), String> {
        let only = |own: &[char], other: &[char]| -> Vec<char> {
            own.iter().copied().filter(|c| !other.contains(c)).collect()
        };
        let both: Vec<char> = of_a.iter().copied().filter(|c| of_b.contains(c)).collect();
        let batch: Vec<char> = both.iter().copied().filter(|c| later.contains(c)).collect();
        let inner = only(&both, later);
        let (left, right) = (only(of_a, of_b), only(of_b, of_a));
        let extent = |letter: &char| {
            let of = |value: &Value, letters: &[char]| {
                letters
                    .iter()
                    .position(|c| c == letter)
                    .map(|d| value.shape()[d])
            };
            let (x, y) = (of(a, of_a).unwrap_or(1), of(b, of_b).unwrap_or(1));
            x.max(y)
        };
        let extents = |letters: &[char]| letters.iter().map(extent).collect::<Vec<_>>();
        let arranged = |reader: &mut Self, value: &Value, own: &[char], parts: [&[char]; 3]| {
            let order: Vec<char> = parts.concat();
            let places: Vec<usize> = order
                .iter()
                .filter_map(|c| own.iter().position(|d| d == c))
                .collect();
            let value = value.transposed(&places)?.broadcast_to(&extents(&order))?;
            let [first, rows, columns] = parts.map(|part| elements(&extents(part)));
            reader.reshaped(&value, &[first, rows, columns])
        };
        let x = arranged(self, a, of_a, [&batch, &left, &inner])?;
        let y = arranged(self, b, of_b, [&batch, &inner, &right])?;
        let product = self.product(&x, &y)?;
        let letters: Vec<char> = [batch, left, right].concat();
        let value = self.reshaped(&product, &extents(&letters))?;
        Ok((value, letters))
    }
}

/// A term of an equation, a letter for each dimension; digits stand for those of the dots.
fn spelled(term: &str, rank: usize) -> Option<Vec<char>> {
    let letters = term.chars().filter(|c| c.is_alphabetic()).count();
    let dots = rank.checked_sub(letters)?;
    let mut spelled = Vec::new();
    match term.split_once("...") {
        Some((before, after)) => {
            spelled.extend(before.chars());
            // The last one is 9, so that those of several operands stand under each other.
            spelled.extend((0..dots).map(|d| char::from(b'9' - (dots - 1 - d) as u8)));
            spelled.extend(after.chars());
        }
        None if dots == 0 => spelled.extend(term.chars()),
        None => return None,
    }
    let known = spelled.iter().all(char::is_ascii_alphanumeric);
    (known && dots < 10).then_some(spelled)
}

/// Where a letter stands twice, the elements with the same index.
fn diagonal(mut value: Value, mut letters: Vec<char>) -> Result<(Value, Vec<char>), String> {
    while let Some((first, second)) = (0..letters.len()).find_map(|i| {
        let again = (i + 1..letters.len()).find(|j| letters[*j] == letters[i])?;
        Some((i, again))
    }) {
        value = value.viewed(|dims| {
            let mut dims = dims.to_vec();
            let (_, stride) = dims.remove(second);
            dims[first].1 += stride;
            (dims, 0)
        })?;
        letters.remove(second);
    }
    Ok((value, letters))
}

/// Dimensions before the last two, and these.
fn cut(shape: &[i64]) -> (&[i64], [i64; 2]) {
    let (batch, last) = shape.split_at(shape.len() - 2);
    (batch, [last[0], last[1]])
}

/// The order that exchanges the last two of so many dimensions.
fn swap(rank: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    order
}

/// The order that puts the first of so many dimensions behind the others.
fn last_after(rank: usize) -> Vec<usize> {
    (1..rank).chain([0]).collect()
}

/// Each matrix transposed.
fn swapped(array: &Array) -> Result<Array, String> {
    let dims = array.dims();
    let turned: Vec<(i64, i64)> = swap(dims.len()).iter().map(|d| dims[*d]).collect();
    array.viewed(&turned, 0)
}
