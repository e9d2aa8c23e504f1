//! Tensors as `.npy` files.
//!
//! Bytes go to the program as they stand in the file. Types that numpy does not have travel as the array libraries write them: `bfloat16` as
//! `V2` or `u2`, the 8-bit floats as `V1`, `f1` or `u1`, types of less than a byte unpacked, an element a byte.

mod header;
mod misfit;
mod numbers;

use header::{header, name};
pub use numbers::{Numbers, Reference, numbers, reference};

use chipless_kernels::cast::{Rounding, decode_f64, decode_i16, encode_f64, encode_i64};
use chipless_kernels::npy::{self as headers, Header, NumpyKind, NumpyType, numpy_type};
use chipless_model::{ElementType, Kind, Port};
use std::borrow::Cow;

/// Whether elements of this numpy type hold elements of `element` bit by bit.
fn accepted(element: ElementType, found: &NumpyType) -> bool {
    let (kind, bytes) = numpy_type(element);
    let raw = kind == NumpyKind::Raw || element.bits() < 8;
    let alike = found.kind == kind
        || (raw && matches!(found.kind, NumpyKind::Raw | NumpyKind::Unsigned))
        || (element == ElementType::Bool && found.kind == NumpyKind::Unsigned);
    found.size == bytes && alike
}

/// How a numpy type compares with `element`.
fn compared(element: ElementType, found: &NumpyType) -> misfit::Found {
    match found.kind {
        _ if accepted(element, found) => misfit::Found::Same,
        NumpyKind::Bool | NumpyKind::Signed | NumpyKind::Unsigned | NumpyKind::Float => {
            misfit::Found::Numbers
        }
        _ => misfit::Found::Raw,
    }
}

/// Whether a file holds numpy's default integers where a program has a shorter type: they are taken where all of them fit.
pub fn is_narrowed(file: &[u8], element: ElementType) -> bool {
    let found = header(file).ok().and_then(|(header, _)| header.element);
    found.is_some_and(|found| narrows(element, &found))
}

fn narrows(element: ElementType, found: &NumpyType) -> bool {
    element.kind() != Kind::Float
        && element != ElementType::Bool
        && (8..64).contains(&element.bits())
        && (found.kind, found.size) == numpy_type(ElementType::Int64)
}

/// The bytes of a tensor of this type and shape, or of a number in any, row by row, as a program has them; see [`is_narrowed`]. The error is what to say
/// after the file's name.
pub fn read<'b>(
    file: &'b [u8],
    element: ElementType,
    shape: &[u64],
) -> Result<Cow<'b, [u8]>, String> {
    let (header, data) = header(file)?;
    let expected = || format!("expected {element} {shape:?}");
    let Some(found) = &header.element else {
        return Err(format!("{}, found a structured array", expected()));
    };
    // One number is the same in every shape.
    let is_one = |shape: &[u64]| shape.iter().all(|extent| *extent == 1);
    let has_shape = header.shape == shape || is_one(&header.shape) && is_one(shape);
    if narrows(element, found) && has_shape {
        let wide = read(file, ElementType::Int64, shape)?;
        return converted(&wide, ElementType::Int64, element).map(Cow::Owned);
    }
    if !accepted(element, found) || !has_shape {
        return Err(format!(
            "{}, found {} {:?}{}",
            expected(),
            name(found),
            header.shape,
            misfit::advice(compared(element, found), element, shape, &header.shape)
        ));
    }
    let size = found.size as usize;
    let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
    let wanted = elements
        .and_then(|n| n.checked_mul(size as u64))
        .ok_or_else(|| format!("{}, which is beyond 2^64 bytes", expected()))?;
    if wanted != data.len() as u64 {
        return Err(format!(
            "{}, which is {wanted} bytes, found {} after the header",
            expected(),
            data.len()
        ));
    }
    let bytes = in_order(&header, found, data);
    if element.bits() < 8 {
        pack(element, &bytes).map(Cow::Owned)
    } else {
        Ok(bytes)
    }
}

/// The bytes of a tensor as its port's buffer has them, from a file of the type that the host has it in, or of the buffer's own.
///
/// # Errors
/// As [`read`]; numbers that the buffer's type does not have.
pub fn read_port<'b>(file: &'b [u8], port: &Port) -> Result<Cow<'b, [u8]>, String> {
    let Some(host) = port.host_element else {
        return read(file, port.element, &port.shape);
    };
    match read(file, host, &port.shape) {
        Ok(bytes) => converted(&bytes, host, port.element).map(Cow::Owned),
        Err(error) => read(file, port.element, &port.shape).map_err(|_| error),
    }
}

/// A file of a tensor in the type that the host has it in: its header, and its data.
///
/// # Errors
/// As [`write()`].
pub fn write_port<'b>(port: &Port, bytes: &'b [u8]) -> Result<(Vec<u8>, Cow<'b, [u8]>), String> {
    let Some(host) = port.host_element else {
        return write(port.element, &port.shape, bytes);
    };
    let given = converted(bytes, port.element, host)?;
    let (header, data) = write(host, &port.shape, &given)?;
    Ok((header, Cow::Owned(data.into_owned())))
}

/// Numbers of one type as another.
fn converted(bytes: &[u8], from: ElementType, to: ElementType) -> Result<Vec<u8>, String> {
    let count = bytes.len() * 8 / from.bits() as usize;
    let mut numbers = vec![0.0; count];
    decode_f64(from, bytes, &mut numbers).map_err(|error| error.to_string())?;
    if matches!(to.kind(), Kind::Signed | Kind::Unsigned) {
        let bits = i32::try_from(to.bits()).unwrap_or(64);
        let (least, most) = if to.kind() == Kind::Signed {
            (-2f64.powi(bits - 1), 2f64.powi(bits - 1) - 1.0)
        } else {
            (0.0, 2f64.powi(bits) - 1.0)
        };
        if let Some(wrong) = numbers.iter().find(|v| !(least..=most).contains(*v)) {
            return Err(format!(
                "expected numbers from {least} to {most}, as {to} has them, found {wrong}"
            ));
        }
    }
    let mut converted = vec![0; count * to.bits() as usize / 8];
    encode_f64(to, &numbers, Rounding::NearestEven, &mut converted)
        .map_err(|error| error.to_string())?;
    Ok(converted)
}

/// The header of a file that holds an array of this type and shape, and whose data follow.
pub fn write_header(element: ElementType, shape: &[u64]) -> Vec<u8> {
    let (kind, size) = numpy_type(element);
    headers::write(kind, size, shape)
}

/// Element type and shape of a file's tensor, for programs that are as long as their inputs. Types that numpy lacks are not recognised.
pub fn describe(file: &[u8]) -> Result<(ElementType, Vec<u64>), String> {
    let (header, _) = header(file)?;
    let known = |found: &NumpyType| {
        ElementType::ALL
            .iter()
            .copied()
            .find(|e| e.bits() >= 8 && numpy_type(*e) == (found.kind, found.size))
    };
    match &header.element {
        Some(found) if found.kind != NumpyKind::Raw => {
            let element = known(found).ok_or_else(|| {
                format!("expected numbers of 8 to 64 bits, found {}", name(found))
            })?;
            Ok((element, header.shape))
        }
        _ => Err("expected an array of numbers".to_owned()),
    }
}

/// The parts of a file that holds these bytes of a program: header, data.
pub fn write<'b>(
    element: ElementType,
    shape: &[u64],
    bytes: &'b [u8],
) -> Result<(Vec<u8>, Cow<'b, [u8]>), String> {
    let (kind, size) = numpy_type(element);
    // What numpy has no type for travels as raw bits that it can hold.
    let kind = if kind == NumpyKind::Raw {
        NumpyKind::Unsigned
    } else {
        kind
    };
    Ok((
        headers::write(kind, size, shape),
        if element.bits() < 8 {
            Cow::Owned(unpack(element, shape, bytes)?)
        } else {
            Cow::Borrowed(bytes)
        },
    ))
}

/// Shape and numbers of an array of any plain type, row by row. The error is what to say after the file's name.
pub fn reals(file: &[u8]) -> Result<(Vec<u64>, Vec<f64>), String> {
    let (element, shape) = describe(file)?;
    let bytes = read(file, element, &shape)?;
    let mut reals = vec![0.0; bytes.len() / (element.bits() / 8) as usize];
    decode_f64(element, &bytes, &mut reals).map_err(|error| error.to_string())?;
    Ok((shape, reals))
}

/// The elements of a file as programs have them: least significant byte first, row by row.
fn in_order<'b>(header: &Header, found: &NumpyType, data: &'b [u8]) -> Cow<'b, [u8]> {
    let size = found.size as usize;
    let mut bytes = Cow::Borrowed(data);
    if found.is_big_endian && size > 1 {
        bytes
            .to_mut()
            .chunks_exact_mut(size)
            .for_each(<[u8]>::reverse);
    }
    if header.is_by_columns && !bytes.is_empty() {
        bytes = Cow::Owned(by_rows(&bytes, &header.shape, size));
    }
    bytes
}

/// Elements of a Fortran-ordered array, the first index fastest, in the order of rows.
fn by_rows(bytes: &[u8], shape: &[u64], size: usize) -> Vec<u8> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut step = size;
    for dimension in shape {
        strides.push(step);
        step *= *dimension as usize;
    }
    let mut rows = Vec::with_capacity(bytes.len());
    let (mut index, mut at) = (vec![0; shape.len()], 0);
    while rows.len() < bytes.len() {
        rows.extend_from_slice(&bytes[at..at + size]);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            at += strides[d];
            if index[d] < shape[d] {
                break;
            }
            at -= strides[d] * shape[d] as usize;
            index[d] = 0;
        }
    }
    rows
}

/// One element a byte to packed elements.
pub fn pack(element: ElementType, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let signed = element.kind() == Kind::Signed;
    let values: Vec<i64> = bytes
        .iter()
        .map(|b| {
            if signed {
                i64::from(*b as i8)
            } else {
                i64::from(*b)
            }
        })
        .collect();
    let bits = element.bits();
    let (low, high) = if signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    };
    if let Some((at, value)) = values
        .iter()
        .enumerate()
        .find(|(_, v)| !(low..=high).contains(*v))
    {
        return Err(format!(
            "expected {element} elements in {low}..={high}, found {value} as element {at}"
        ));
    }
    let mut packed = vec![0; (values.len() as u64 * bits).div_ceil(8) as usize];
    encode_i64(element, &values, &mut packed).map_err(|error| error.to_string())?;
    Ok(packed)
}

/// Packed elements to one element a byte.
pub fn unpack(element: ElementType, shape: &[u64], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let elements = shape
        .iter()
        .try_fold(1u64, |n, d| n.checked_mul(*d))
        .filter(|n| element.bytes_for(*n) == Some(bytes.len() as u64));
    let elements = elements.ok_or_else(|| {
        format!(
            "expected the bytes of {element} {shape:?}, found {}",
            bytes.len()
        )
    })?;
    let mut values = vec![0; elements as usize];
    decode_i16(element, bytes, &mut values).map_err(|error| error.to_string())?;
    Ok(values.into_iter().map(|v| v as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if fortran { "True" } else { "False" };
        let mut text =
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        text.push_str(&" ".repeat(117 - text.len()));
        text.push('\n');
        [b"\x93NUMPY\x01\x00\x76\x00", text.as_bytes(), data].concat()
    }

    #[test]
    fn every_type_comes_back_as_it_was() {
        for element in ElementType::ALL {
            let shape = [3, 5];
            let bytes: Vec<u8> = (0..element.bytes_for(15).unwrap() as u8)
                .map(|i| u8::from(i % 2 == 0))
                .collect();
            let (header, data) = write(*element, &shape, &bytes).unwrap();
            assert_eq!(header.len() % 64, 0, "{element}: data are aligned");
            let written = [&*header, &*data].concat();
            assert_eq!(
                read(&written, *element, &shape).unwrap(),
                bytes,
                "{element}"
            );
            let (header, data) =
                write(*element, &[], &bytes[..1.max(element.bits() as usize / 8)]).unwrap();
            let number = [&*header, &*data].concat();
            assert!(read(&number, *element, &[1, 1]).is_ok(), "{element}");
            let said = read(&written, *element, &[15]).unwrap_err();
            assert!(
                said.starts_with(&format!("expected {element} [15], found "))
                    && said.contains(" [3, 5]. It has as many elements"),
                "{said}"
            );
        }
    }

    #[test]
    fn types_that_numpy_does_not_know_come_as_the_libraries_write_them() {
        let two = [0x80, 0x3f, 0x00, 0xc0];
        for descr in ["'<V2'", "'|V2'", "'<u2'", "'bfloat16'"] {
            assert_eq!(
                *read(
                    &file(descr, false, "(2,)", &two),
                    ElementType::BFloat16,
                    &[2]
                )
                .unwrap(),
                two,
                "{descr}"
            );
        }
        for descr in ["'<V1'", "'|V1'", "'|u1'", "'<f1'", "'float8_e5m2'"] {
            assert_eq!(
                *read(
                    &file(descr, false, "(2,)", &[1, 2]),
                    ElementType::Float8E5M2,
                    &[2]
                )
                .unwrap(),
                [1, 2],
                "{descr}"
            );
        }
        assert_eq!(
            *read(
                &file("'|V1'", false, "(3,)", &[0xff, 7, 1]),
                ElementType::Int4,
                &[3]
            )
            .unwrap(),
            [0x7f, 0x01]
        );
        let said = read(
            &file("'|i1'", false, "(3,)", &[0, 8, 1]),
            ElementType::Int4,
            &[3],
        )
        .unwrap_err();
        assert_eq!(
            said,
            "expected int4 elements in -8..=7, found 8 as element 1"
        );
    }

    #[test]
    fn order_and_endianness_are_converted() {
        // [[0x0102, 0x0304, 0x0506], [0x0708, 0x090a, 0x0b0c]], column by column, big-endian.
        let data = [1, 2, 7, 8, 3, 4, 9, 10, 5, 6, 11, 12];
        let columns = file("'>u2'", true, "(2, 3)", &data);
        let rows = read(&columns, ElementType::UInt16, &[2, 3]).unwrap();
        assert_eq!(*rows, [2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11]);
        assert_eq!(
            *read(
                &file("'<f4'", true, "()", &[1, 2, 3, 4]),
                ElementType::Float32,
                &[]
            )
            .unwrap(),
            [1, 2, 3, 4]
        );
        assert!(
            read(
                &file("'<f4'", true, "(0, 3)", &[]),
                ElementType::Float32,
                &[0, 3]
            )
            .unwrap()
            .is_empty()
        );
    }

    #[test]
    fn what_does_not_fit_is_told_with_both_sides() {
        let said = |bytes: &[u8]| read(bytes, ElementType::Float16, &[2]).unwrap_err();
        assert_eq!(
            said(&file("'<f4'", false, "(2,)", &[0; 8])),
            "expected float16 [2], found float32 [2]. Pass x.astype(numpy.float16)"
        );
        assert_eq!(
            said(&file("'<f2'", false, "(1, 2)", &[0; 4])),
            "expected float16 [2], found float16 [1, 2]. It has as many elements: pass numpy.reshape(x, [2]) if they are in this order"
        );
        assert_eq!(
            said(&file("'<f2'", false, "(2,)", &[0; 3])),
            "expected float16 [2], which is 4 bytes, found 3 after the header"
        );
        assert_eq!(
            said(&file("[('a', '<f2')]", false, "(2,)", &[0; 4])),
            "expected float16 [2], found a structured array"
        );
        assert_eq!(
            said(b"PK\x03\x04"),
            "expected an .npy file, found a zip archive, as .npz files are: take the array out with numpy.save(\"x.npy\", numpy.load(\"FILE.npz\")[\"NAME\"])"
        );
        assert_eq!(
            said(b"\x89PNG\r\n"),
            "expected an .npy file, found a PNG image"
        );
        assert_eq!(
            said(b"hello"),
            "expected an .npy file (93 4e 55 4d 50 59 …), found 68 65 6c 6c 6f"
        );
        assert_eq!(
            said(b""),
            "expected an .npy file (93 4e 55 4d 50 59 …), found no bytes"
        );
        assert_eq!(
            said(b"\x93NUMPY\x07\x00\x00\x00"),
            "expected version 1, 2 or 3 of the .npy format, found 7.0"
        );
        assert_eq!(
            said(b"\x93NUMPY\x01\x00\x76\x00{"),
            "expected a header of 118 bytes, found the end of the file"
        );
        assert_eq!(
            said(b"\x93NUMPY\x02\x00\xff\xff\xff\xff"),
            "expected a header of at most 65536 bytes, found 4294967295"
        );
        assert!(
            said(&file("'<f2'", false, "('x',)", &[]))
                .starts_with("its header is not one of an .npy file: ")
        );
    }
}
