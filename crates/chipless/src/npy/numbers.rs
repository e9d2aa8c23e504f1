//! Arrays of numbers of any type, for whoever converts them.

use super::header::{header, name};
use super::{in_order, read};
use chipless_kernels::cast::decode_f64;
use chipless_kernels::npy::NumpyKind;
use chipless_model::{ElementType, Port};
use std::borrow::Cow;

/// An array of numbers of any type, row by row.
#[derive(Debug)]
pub struct Numbers<'b> {
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    kind: NumpyKind,
    size: usize,
    bytes: Cow<'b, [u8]>,
}

impl Numbers<'_> {
    /// Whether the elements are integers.
    pub fn is_integer(&self) -> bool {
        self.kind != NumpyKind::Float
    }

    /// Integers from element `start` on; reals are cut off.
    pub fn integers(&self, start: usize, count: usize) -> impl Iterator<Item = i64> {
        self.elements(start, count).map(|b| {
            let mut wide = [0; 8];
            wide[..b.len()].copy_from_slice(b);
            let value = u64::from_le_bytes(wide);
            match self.kind {
                NumpyKind::Float => real(b) as i64,
                NumpyKind::Signed => (value << (64 - 8 * self.size)) as i64 >> (64 - 8 * self.size),
                _ => i64::try_from(value).unwrap_or(i64::MAX),
            }
        })
    }

    /// Reals from element `start` on.
    pub fn reals(&self, start: usize, count: usize) -> impl Iterator<Item = f64> {
        let integers = self.is_integer();
        let whole = self
            .integers(start, if integers { count } else { 0 })
            .map(|v| v as f64);
        whole.chain(
            self.elements(start, if integers { 0 } else { count })
                .map(real),
        )
    }

    fn elements(&self, start: usize, count: usize) -> std::slice::ChunksExact<'_, u8> {
        let end = (start + count) * self.size;
        self.bytes
            .get(start * self.size..end)
            .unwrap_or_default()
            .chunks_exact(self.size)
    }
}

fn real(bytes: &[u8]) -> f64 {
    match *bytes {
        [_, _] => {
            let mut number = [0.0];
            let decoded = decode_f64(ElementType::Float16, bytes, &mut number);
            decoded.map_or(0.0, |()| number[0])
        }
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => 0.0,
    }
}

/// Reads an array of integers or of reals of 16 to 64 bits, of any shape. The error is what to say after the file's name.
pub fn numbers(file: &[u8]) -> Result<Numbers<'_>, String> {
    let (header, data) = header(file)?;
    let Some(found) = &header.element else {
        return Err("expected numbers, found a structured array".to_owned());
    };
    let (kind, size) = (found.kind, found.size as usize);
    let known = match kind {
        NumpyKind::Bool => size == 1,
        NumpyKind::Signed | NumpyKind::Unsigned => matches!(size, 1 | 2 | 4 | 8),
        NumpyKind::Float => matches!(size, 2 | 4 | 8),
        _ => false,
    };
    if !known {
        return Err(format!(
            "expected integers or reals of 16 to 64 bits, found {}: pass x.astype(numpy.float32)",
            name(found)
        ));
    }
    let wanted = header
        .shape
        .iter()
        .try_fold(size as u64, |n, d| n.checked_mul(*d));
    if wanted != Some(data.len() as u64) {
        let wanted = wanted.map_or_else(|| "more than 2^64".to_owned(), |n| n.to_string());
        return Err(format!(
            "expected {:?}, which is {wanted} bytes, found {} after the header",
            header.shape,
            data.len()
        ));
    }
    let bytes = in_order(&header, found, data);
    Ok(Numbers {
        shape: header.shape,
        kind,
        size,
        bytes,
    })
}

/// What an output should be: an array of the output's own type, or numbers of any other.
#[derive(Debug)]
pub enum Reference<'b> {
    /// Bytes as the output has them.
    Same(Cow<'b, [u8]>),
    /// Numbers.
    Numbers(Numbers<'b>),
}

/// Reads the reference of an output. Its shape is the output's, but for dimensions of one element. The error is what to say after the
/// file's name.
pub fn reference<'b>(file: &'b [u8], port: &Port) -> Result<Reference<'b>, String> {
    let misfit = match read(file, port.element, &port.shape) {
        Ok(bytes) => return Ok(Reference::Same(bytes)),
        Err(misfit) => misfit,
    };
    let Ok(numbers) = numbers(file) else {
        return Err(misfit);
    };
    let long = |shape: &[u64]| -> Vec<u64> { shape.iter().copied().filter(|d| *d != 1).collect() };
    if long(&numbers.shape) == long(&port.shape) {
        Ok(Reference::Numbers(numbers))
    } else {
        Err(misfit)
    }
}

impl Reference<'_> {
    /// Puts elements from `start` on into the slice, as the numbers that an output of this type holds. `None` where they cannot be decoded.
    pub fn fill(&self, element: ElementType, start: u64, slots: &mut [f64]) -> Option<()> {
        match self {
            Reference::Same(bytes) => {
                let bits = element.bits();
                let from = usize::try_from(start * bits / 8).ok()?;
                let held = bytes.get(from..)?;
                let held = held.get(..(slots.len() as u64 * bits).div_ceil(8) as usize)?;
                decode_f64(element, held, slots).ok()
            }
            Reference::Numbers(numbers) => {
                let reals = numbers.reals(usize::try_from(start).ok()?, slots.len());
                let mut filled = 0;
                for (slot, real) in slots.iter_mut().zip(reals) {
                    *slot = real;
                    filled += 1;
                }
                (filled == slots.len()).then_some(())
            }
        }
    }
}
