//! Bytes read as a tensor: shape, numbers, slices, statistics.

use chipless_kernels::cast::{decode_f64, decode_i64};
use chipless_model::{ElementType, Kind};
use chipless_report::{Statistics, number};
use std::fmt::Write;

/// Elements that are printed before the rest is left out.
const SHOWN: usize = 64;

/// Elements of one type in row-major order, packed as they are in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Their type.
    pub element: ElementType,
    /// Dimensions, outermost first; none of a single element.
    pub shape: Vec<u64>,
    /// The bytes, in the order of the access.
    pub bytes: Vec<u8>,
}

/// One dimension of a slice, as numpy writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// `3` or `-1`: one element; the dimension goes away.
    At(i64),
    /// `start:stop:step`.
    Range(Option<i64>, Option<i64>, i64),
}

impl Tensor {
    /// How many elements the shape has, at most as many as there are bytes for.
    pub fn len(&self) -> usize {
        let there = self.bytes.len() as u64 * 8 / self.element.bits();
        let asked = self.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        asked.unwrap_or(u64::MAX).min(there) as usize
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `float16[1, 48, 12, 12]`.
    pub fn form(&self) -> String {
        form(self.element, &self.shape)
    }

    /// `count` elements from `first` on as numbers.
    pub fn numbers(&self, first: usize, count: usize) -> Vec<f64> {
        let count = count.min(self.len().saturating_sub(first));
        let bits = self.element.bits() as usize;
        // Packed elements start at a byte.
        let from = first / 8 * 8;
        let mut values = vec![0.0; first - from + count];
        let bytes = &self.bytes[from * bits / 8..((first + count) * bits).div_ceil(8)];
        let _ = decode_f64(self.element, bytes, &mut values);
        values.split_off(first - from)
    }

    /// All elements as numbers.
    pub fn all(&self) -> Vec<f64> {
        self.numbers(0, self.len())
    }

    /// An element as text: integers in full, floats as short as they can be told apart.
    pub fn text_of(&self, at: usize) -> String {
        let bits = self.element.bits() as usize;
        if self.element.kind() != Kind::Float && bits >= 8 {
            let mut value = [0];
            let size = bits / 8;
            if let Some(bytes) = self.bytes.get(at * size..(at + 1) * size)
                && decode_i64(self.element, bytes, &mut value).is_ok()
            {
                return if self.element == ElementType::UInt64 {
                    (value[0] as u64).to_string()
                } else {
                    value[0].to_string()
                };
            }
        }
        match (self.numbers(at, 1).first(), self.element) {
            (Some(value), ElementType::Float64) => format!("{value}"),
            (Some(value), _) => format!("{}", *value as f32),
            (None, _) => String::new(),
        }
    }

    /// Minimum, maximum and mean of the finite elements.
    pub fn statistics(&self) -> Statistics {
        Statistics::of(self.element, self.len() as u64, &self.bytes)
    }

    /// `float16[1, 48, 12, 12] min 0 max 9.969 mean 1.984`.
    pub fn summary(&self) -> String {
        let s = self.statistics();
        let mut text = self.form();
        if s.elements == 1 {
            let _ = write!(text, " {}", self.text_of(0));
        } else if s.elements > s.not_finite {
            let (min, max, mean) = (number(s.min), number(s.max), number(s.mean));
            let _ = write!(text, " min {min} max {max} mean {mean}");
        }
        if s.not_finite > 0 {
            let _ = write!(text, " {} not finite", s.not_finite);
        }
        text
    }

    /// The CRC-32 (IEEE) of the bytes.
    pub fn crc(&self) -> u32 {
        crc32fast::hash(&self.bytes)
    }

    /// The first elements in brackets.
    pub fn preview(&self) -> String {
        let shown: Vec<String> = (0..self.len().min(SHOWN))
            .map(|i| self.text_of(i))
            .collect();
        let more = if self.len() > SHOWN { ", …" } else { "" };
        format!("[{}{more}]", shown.join(", "))
    }

    /// The same bytes as elements of another type: as many of them in a row as fit, or one row where rows do not divide.
    #[must_use]
    pub fn read_as(self, element: ElementType) -> Tensor {
        let bits = self.bytes.len() as u64 * 8;
        let mut shape = self.shape;
        let row = shape.last_mut();
        let row = row.filter(|row| (**row * self.element.bits()).is_multiple_of(element.bits()));
        if let Some(row) = row {
            *row = *row * self.element.bits() / element.bits();
        }
        let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        if elements.and_then(|n| n.checked_mul(element.bits())) != Some(bits) {
            shape = vec![bits / element.bits()];
        }
        Tensor {
            element,
            shape,
            bytes: self.bytes,
        }
    }

    /// Elements of less than a byte get a byte each.
    #[must_use]
    pub fn whole_bytes(self) -> Tensor {
        if self.element.bits() >= 8 {
            return self;
        }
        let numbers = self.all();
        let (element, bytes) = if self.element.kind() == Kind::Signed {
            let bytes = numbers.iter().map(|n| (*n as i8) as u8).collect();
            (ElementType::Int8, bytes)
        } else {
            (
                ElementType::UInt8,
                numbers.iter().map(|n| *n as u8).collect(),
            )
        };
        Tensor {
            element,
            shape: self.shape,
            bytes,
        }
    }

    /// Some of the elements, as numpy slices them.
    ///
    /// # Errors
    /// More indices than dimensions, an index outside its dimension.
    pub fn slice(self, indices: &[Index]) -> Result<Tensor, String> {
        let whole = self.whole_bytes();
        if indices.len() > whole.shape.len() {
            return Err(format!(
                "expected at most {} indices of {}, found {}",
                whole.shape.len(),
                whole.form(),
                indices.len()
            ));
        }
        let mut picked: Vec<Vec<usize>> = Vec::new();
        let mut shape = Vec::new();
        for (axis, size) in whole.shape.iter().enumerate() {
            let index = indices.get(axis).copied();
            let chosen = pick(index.unwrap_or(Index::Range(None, None, 1)), *size as i64)
                .map_err(|error| format!("dimension {axis} of {}: {error}", whole.form()))?;
            if !matches!(index, Some(Index::At(_))) {
                shape.push(chosen.len() as u64);
            }
            picked.push(chosen);
        }
        let mut places = vec![0usize];
        for (chosen, size) in picked.iter().zip(&whole.shape) {
            let outer = places.iter();
            places = outer
                .flat_map(|at| chosen.iter().map(move |i| at * *size as usize + i))
                .collect();
        }
        let size = whole.element.bits() as usize / 8;
        let mut bytes = Vec::with_capacity(places.len() * size);
        for at in places {
            bytes.extend_from_slice(whole.bytes.get(at * size..(at + 1) * size).unwrap_or(&[]));
        }
        Ok(Tensor {
            element: whole.element,
            shape,
            bytes,
        })
    }
}

/// `float16[1, 48, 12, 12]`.
pub(crate) fn form(element: ElementType, shape: &[u64]) -> String {
    let dimensions: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{element}[{}]", dimensions.join(", "))
}

/// The places of a dimension that an index names.
fn pick(index: Index, size: i64) -> Result<Vec<usize>, String> {
    match index {
        Index::At(at) => {
            let place = if at < 0 { at + size } else { at };
            if (0..size).contains(&place) {
                Ok(vec![place as usize])
            } else {
                Err(format!("expected an index of {size}, found {at}"))
            }
        }
        Index::Range(start, stop, step) => {
            if step == 0 {
                return Err("expected a step that is not 0".to_owned());
            }
            let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
            let bound = |at: Option<i64>, default: i64| {
                let at = at.map(|at| if at < 0 { at.saturating_add(size) } else { at });
                at.map_or(default, |at| at.clamp(low, high))
            };
            let (first, last) = if step > 0 { (low, high) } else { (high, low) };
            let (mut at, stop) = (bound(start, first), bound(stop, last));
            let mut places = Vec::new();
            while (step > 0 && at < stop) || (step < 0 && at > stop) {
                places.push(at as usize);
                at = at.saturating_add(step);
            }
            Ok(places)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(shape: &[u64]) -> Tensor {
        let count: u64 = shape.iter().product();
        Tensor {
            element: ElementType::Int16,
            shape: shape.to_vec(),
            bytes: (0..count as i16).flat_map(i16::to_le_bytes).collect(),
        }
    }

    #[test]
    fn slices_are_those_of_numpy() {
        let slice = |indices: &[Index]| numbers(&[3, 4]).slice(indices).unwrap();
        let one = slice(&[Index::At(-1), Index::At(1)]);
        assert_eq!((one.shape.clone(), one.all()), (vec![], vec![9.0]));
        let row = slice(&[Index::At(1)]);
        assert_eq!(
            (row.shape.clone(), row.all()),
            (vec![4], vec![4.0, 5.0, 6.0, 7.0])
        );
        let columns = slice(&[Index::Range(None, None, 2), Index::Range(Some(-2), None, 1)]);
        assert_eq!(columns.all(), [2.0, 3.0, 10.0, 11.0]);
        let back = slice(&[Index::At(0), Index::Range(None, None, -2)]);
        assert_eq!(back.all(), [3.0, 1.0]);
        assert!(numbers(&[3]).slice(&[Index::At(3)]).is_err());
        assert!(numbers(&[3]).slice(&[Index::At(0), Index::At(0)]).is_err());
    }

    #[test]
    fn packed_elements_are_read_from_any_place() {
        let tensor = Tensor {
            element: ElementType::UInt4,
            shape: vec![12],
            bytes: vec![0x10, 0x32, 0x54, 0x76, 0x98, 0xba],
        };
        assert_eq!(tensor.numbers(9, 3), [9.0, 10.0, 11.0]);
        assert_eq!(
            tensor
                .slice(&[Index::Range(Some(1), Some(3), 1)])
                .unwrap()
                .bytes,
            [1, 2]
        );
    }
}
