//! Constants: members whose bytes a variable of type `file` holds at the start.
//!
//! Members called `.npy` are arrays: their header is taken off and what remains is the array in row-major order. Every
//! other member is raw bytes. Only the three keys that the npy format fixes are understood, on the format's own
//! grammar: general parsers of Python literals recurse as deeply as the file wants.

use crate::container::Member;
use crate::json::Error;
use crate::rules::container as rules;
use chipless_model::{ElementType, Place};
use std::borrow::Cow;

/// Dimensions that an array may have: numpy's own bound.
const MAX_DIMENSIONS: usize = 64;

/// Data of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant<'a> {
    /// The member that holds it.
    pub member: Member<'a>,
    /// The bytes that go into the variable: borrowed, unless an array in column-major order had to be turned.
    pub bytes: Cow<'a, [u8]>,
    /// What the npy header says; `None` for raw bytes.
    pub array: Option<Array>,
}

/// What an npy header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Type description: `<f2`.
    pub descr: String,
    /// The model's type; `None` where the description does not tell (`|V2`, which is how bfloat16 travels).
    pub element: Option<ElementType>,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Dimensions, outermost first.
    pub shape: Vec<u64>,
    /// Whether the member holds the array in column-major order.
    pub fortran_order: bool,
}

impl<'a> Constant<'a> {
    /// The data of a member.
    ///
    /// # Errors
    /// An npy member whose header is malformed, or whose data is shorter or longer than its shape says.
    pub fn read(member: Member<'a>) -> Result<Constant<'a>, Error> {
        if !member.has_extension("npy") {
            return Ok(Constant {
                member,
                bytes: Cow::Borrowed(member.bytes),
                array: None,
            });
        }
        let fault = |message: String| {
            Box::new(rules::NPY.at(Place::file().in_part(member.path.to_owned()), message))
        };
        let (header, data) = split(member.bytes)
            .ok_or_else(|| fault("no npy header: magic, version or length is wrong".into()))?;
        let array = parse_header(header).map_err(|why| fault(format!("the npy header {why}")))?;
        let count = array.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let size = count.and_then(|n| n.checked_mul(array.element_bytes));
        if size != Some(data.len() as u64) {
            let wanted = size.map_or("more than 2^64".to_owned(), |s| s.to_string());
            let message = format!(
                "an array {:?} of {} has {wanted} bytes, the member holds {}",
                array.shape,
                array.descr,
                data.len()
            );
            return Err(fault(message));
        }
        let bytes = if array.fortran_order && array.shape.iter().filter(|d| **d > 1).count() > 1 {
            Cow::Owned(row_major(data, &array))
        } else {
            Cow::Borrowed(data)
        };
        Ok(Constant {
            member,
            bytes,
            array: Some(array),
        })
    }
}

/// Header text and data of an npy file.
fn split(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let rest = bytes.strip_prefix(b"\x93NUMPY")?;
    let ([major, _minor], rest) = rest.split_first_chunk::<2>()?;
    let (size, rest) = match major {
        1 => rest
            .split_first_chunk::<2>()
            .map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest))?,
        2 | 3 => rest
            .split_first_chunk::<4>()
            .map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest))?,
        _ => return None,
    };
    let (header, data) = rest.split_at_checked(size)?;
    Some((std::str::from_utf8(header).ok()?, data))
}

/// `{'descr': '<f2', 'fortran_order': False, 'shape': (8, 24), }`
fn parse_header(text: &str) -> Result<Array, String> {
    let mut rest = text
        .trim()
        .strip_prefix('{')
        .and_then(|t| t.strip_suffix('}'))
        .ok_or("is no dictionary")?
        .trim_start();
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = quoted(rest).ok_or("has a key that is no string")?;
        let value = after
            .trim_start()
            .strip_prefix(':')
            .ok_or("lacks a colon behind a key")?
            .trim_start();
        rest = match key {
            "descr" => {
                let (text, after) = quoted(value).ok_or(
                    "has a `descr` that is no string (structured types are not supported)",
                )?;
                descr = Some(text);
                after
            }
            "fortran_order" => {
                let (truth, after) = match (value.strip_prefix("True"), value.strip_prefix("False"))
                {
                    (Some(after), _) => (true, after),
                    (_, Some(after)) => (false, after),
                    _ => return Err("has a `fortran_order` that is neither True nor False".into()),
                };
                fortran_order = Some(truth);
                after
            }
            "shape" => {
                let inner = value
                    .strip_prefix('(')
                    .ok_or("has a `shape` that is no tuple")?;
                let (list, after) = inner.split_once(')').ok_or("has a `shape` without end")?;
                let numbers = list.split(',').map(str::trim).filter(|n| !n.is_empty());
                let numbers: Result<Vec<u64>, _> =
                    numbers.map(|n| n.trim_end_matches('L').parse()).collect();
                shape = Some(numbers.map_err(|e| {
                    format!("has a `shape` of other things than whole numbers: {e}")
                })?);
                after
            }
            other => return Err(format!("has the unknown key `{other}`")),
        };
        rest = rest.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err("lacks a comma between entries".into()),
        };
    }
    let (descr, shape) = (descr.ok_or("lacks `descr`")?, shape.ok_or("lacks `shape`")?);
    if shape.len() > MAX_DIMENSIONS {
        return Err(format!(
            "has {} dimensions, at most {MAX_DIMENSIONS} are possible",
            shape.len()
        ));
    }
    let (element, element_bytes) = element(descr)?;
    Ok(Array {
        descr: descr.to_owned(),
        element,
        element_bytes,
        shape,
        fortran_order: fortran_order.ok_or("lacks `fortran_order`")?,
    })
}

/// A string literal without escapes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (inside, rest) = text[1..].split_once(quote)?;
    (!inside.contains('\\')).then_some((inside, rest))
}

/// Type and size of an element: byte order, kind, bytes.
fn element(descr: &str) -> Result<(Option<ElementType>, u64), String> {
    let unknown = || format!("has the type `{descr}`, which is not supported");
    if let Some(named) = ElementType::from_name(descr) {
        return Ok((Some(named), named.bits().div_ceil(8)));
    }
    let mut chars = descr.chars();
    let (order, kind) = (
        chars.next().ok_or_else(unknown)?,
        chars.next().ok_or_else(unknown)?,
    );
    let bytes: u64 = chars.as_str().parse().map_err(|_| unknown())?;
    if order == '>' && bytes > 1
        || !matches!(order, '<' | '>' | '|' | '=')
        || !(1..=16).contains(&bytes)
    {
        return Err(unknown());
    }
    let element = match (kind, bytes) {
        ('f', 2) => ElementType::Float16,
        ('f', 4) => ElementType::Float32,
        ('f', 8) => ElementType::Float64,
        ('i', 1) => ElementType::Int8,
        ('i', 2) => ElementType::Int16,
        ('i', 4) => ElementType::Int32,
        ('i', 8) => ElementType::Int64,
        ('u', 1) => ElementType::UInt8,
        ('u', 2) => ElementType::UInt16,
        ('u', 4) => ElementType::UInt32,
        ('u', 8) => ElementType::UInt64,
        ('b', 1) => ElementType::Bool,
        ('V', _) => return Ok((None, bytes)),
        _ => return Err(unknown()),
    };
    Ok((Some(element), bytes))
}

/// A column-major array in row-major order. Sizes are known to fit the data.
fn row_major(data: &[u8], array: &Array) -> Vec<u8> {
    let size = array.element_bytes as usize;
    let shape: Vec<usize> = array.shape.iter().map(|d| *d as usize).collect();
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for dimension in &shape {
        strides.push(stride);
        stride *= dimension;
    }
    let mut index = vec![0; shape.len()];
    let mut turned = Vec::with_capacity(data.len());
    let mut at = 0;
    while turned.len() < data.len() {
        turned.extend_from_slice(&data[at..at + size]);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Constant<'_>, String> {
        Constant::read(Member {
            path: "c.npy",
            bytes,
        })
        .map_err(|f| f.message)
    }

    #[test]
    fn row_major_data_is_borrowed() {
        let bytes = npy(
            "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n",
            &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0],
        );
        let constant = read(&bytes).unwrap();
        assert!(matches!(constant.bytes, Cow::Borrowed(_)));
        assert_eq!(constant.array.unwrap().element, Some(ElementType::Int16));
    }

    #[test]
    fn column_major_data_is_turned() {
        // [[1, 2, 3], [4, 5, 6]] stands as 1 4 2 5 3 6.
        let bytes = npy(
            "{'shape': (2, 3), 'descr': '|u1', 'fortran_order': True}",
            &[1, 4, 2, 5, 3, 6],
        );
        assert_eq!(*read(&bytes).unwrap().bytes, [1, 2, 3, 4, 5, 6]);
        let bytes = npy(
            "{'shape': (2, 1, 2, 2), 'descr': '|u1', 'fortran_order': True}",
            &[0, 4, 2, 6, 1, 5, 3, 7],
        );
        assert_eq!(*read(&bytes).unwrap().bytes, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn scalars_and_bfloat16_are_known() {
        assert_eq!(
            read(&npy(
                "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
                &[0; 4]
            ))
            .unwrap()
            .bytes
            .len(),
            4
        );
        assert_eq!(
            read(&npy(
                "{'descr': '<V2', 'fortran_order': False, 'shape': (3,), }",
                &[0; 6]
            ))
            .unwrap()
            .array
            .unwrap()
            .element,
            None
        );
    }

    #[test]
    fn malformed_headers_say_why() {
        for (header, why) in [
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
                "has 8 bytes",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 4), }",
                "more than 2^64",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                "whole numbers",
            ),
            (
                "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
                "not supported",
            ),
            (
                "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
                "not supported",
            ),
            (
                "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
                "structured",
            ),
            ("{'fortran_order': False, 'shape': (1,), }", "lacks `descr`"),
            ("((((((((((((((((", "no dictionary"),
            ("", "no dictionary"),
        ] {
            let message = read(&npy(header, &[0; 4])).unwrap_err();
            assert!(message.contains(why), "{message} does not say {why}");
        }
        assert!(
            read(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}")
                .unwrap_err()
                .contains("no npy header")
        );
    }
}
