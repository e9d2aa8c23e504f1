//! Images that a network is calibrated with: `.npy` files of a directory, or the arrays of a `.npz` file.

use crate::failure::Failure;
use crate::files;
use chipless::npy::{self, Numbers};
use chipless_schedule::compare::Inputs;
use chipless_schedule::compute::Map;
use chipless_schedule::front::{Front, Input, Layout};
use std::io::{Cursor, Read as _};
use std::path::Path;
use zip::ZipArchive;

/// Images that are used, at most.
const MOST_IMAGES: usize = 1000;
/// Bytes of all arrays together, at most.
const MOST_BYTES: u64 = 4 << 30;

const TOO_MANY: &str = "expected at most 4 GiB of arrays to calibrate with, found more";

/// What a network is calibrated with.
#[derive(Default)]
pub(super) struct Samples {
    /// For each image, the inputs in order.
    pub(super) images: Vec<Vec<Map>>,
    /// The first image, as the model has its inputs.
    pub(super) first: Inputs,
}

/// Images of a file or directory.
pub(super) fn read(path: &Path, front: &Front) -> Result<Samples, Failure> {
    let arrays = if path.is_dir() {
        directory(path)?
    } else {
        archive(path)?
    };
    let wrong = |text: String| Failure::unreadable(path.display(), text);
    let mut inputs: Vec<Vec<Map>> = Vec::new();
    let mut first = Inputs::new();
    for (number, input) in front.inputs.iter().enumerate() {
        let model_name = front.called[0]
            .get(number)
            .map_or(&*input.name, |name| name);
        let mut own: Vec<_> = arrays
            .iter()
            .filter(|(known, _)| *known == input.name || known == model_name)
            .collect();
        // With one input, every array is for it.
        if own.is_empty() && front.inputs.len() == 1 {
            own = arrays.iter().collect();
        }
        if own.is_empty() {
            let known: Vec<&str> = arrays.iter().map(|(name, _)| &**name).collect();
            return Err(wrong(format!(
                "expected an array `{model_name}` for the input of this name, found {}",
                if known.is_empty() {
                    "no arrays".to_owned()
                } else {
                    known.join(", ")
                }
            )));
        }
        let mut images = Vec::new();
        for (name, bytes) in own {
            let wrong = |text| wrong(format!("`{name}`: {text}"));
            let numbers = npy::numbers(bytes).map_err(wrong)?;
            images.extend(split(input, &numbers).map_err(wrong)?);
            first
                .entry(model_name.to_owned())
                .or_insert_with(|| first_of(input, &numbers));
        }
        images.truncate(MOST_IMAGES);
        inputs.push(images);
    }
    let count = inputs.first().map_or(0, Vec::len);
    if let Some(other) = inputs.iter().position(|images| images.len() != count) {
        return Err(wrong(format!(
            "expected as many images for each input, found {count} for the first and {} for input {}",
            inputs[other].len(),
            other + 1
        )));
    }
    let image = |number: usize| inputs.iter().map(|images| images[number].clone()).collect();
    Ok(Samples {
        images: (0..count).map(image).collect(),
        first,
    })
}

/// The first image of an array, with an axis of one in the place of that which counts images.
fn first_of(input: &Input, numbers: &Numbers<'_>) -> (Vec<u64>, Vec<f64>) {
    let each = input.extents.iter().product::<i64>() as u64;
    let mut shape = numbers.shape.clone();
    if shape.iter().product::<u64>() != each
        && let Some(images) = shape.first_mut()
    {
        *images = 1;
    }
    (shape, numbers.reals(0, each as usize).collect())
}

/// The files of a directory that end in `.npy`, by name, in order.
fn directory(path: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let wrong = |error: std::io::Error| Failure::unreadable(path.display(), error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(wrong)? {
        let file = entry.map_err(wrong)?.path();
        if file.extension().is_some_and(|extension| extension == "npy") {
            found.push(file);
        }
    }
    found.sort();
    let mut left = MOST_BYTES;
    let named = |file: std::path::PathBuf| {
        let wrong = |error: String| Failure::unreadable(file.display(), error);
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let bytes = files::open(&file).map_err(wrong)?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| wrong(TOO_MANY.to_owned()))?;
        Ok((name.into_owned(), bytes.to_vec()))
    };
    found.into_iter().map(named).collect()
}

/// The arrays of a `.npz` file, by name.
fn archive(path: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let wrong = |text: String| Failure::unreadable(path.display(), text);
    let bytes = files::open(path).map_err(wrong)?;
    if bytes.starts_with(b"\x93NUMPY") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        return Ok(vec![(name.into_owned(), bytes.to_vec())]);
    }
    let damaged = |error: zip::result::ZipError| {
        wrong(format!(
            "expected a .npz file or a directory of .npy files: {error}"
        ))
    };
    let mut archive = ZipArchive::new(Cursor::new(&bytes[..])).map_err(damaged)?;
    let (mut arrays, mut left) = (Vec::new(), MOST_BYTES);
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(damaged)?;
        let name = member.name().map_err(damaged)?.into_owned();
        let Some(name) = name.strip_suffix(".npy") else {
            continue;
        };
        let mut array = Vec::new();
        member
            .take(left + 1)
            .read_to_end(&mut array)
            .map_err(|error| wrong(format!("`{name}`: {error}")))?;
        left = left
            .checked_sub(array.len() as u64)
            .ok_or_else(|| wrong(TOO_MANY.to_owned()))?;
        arrays.push((name.to_owned(), array));
    }
    Ok(arrays)
}

/// The images of an array, whose first axis counts them where it has more than one.
fn split(input: &Input, numbers: &Numbers<'_>) -> Result<Vec<Map>, String> {
    let extents = input.extents.map(|extent| extent as usize);
    let each: usize = extents.iter().product();
    let all: u64 = numbers.shape.iter().product();
    let all = all as usize;
    if all == 0 || !all.is_multiple_of(each) {
        return Err(format!(
            "expected images of {each} numbers, found an array of {:?}",
            numbers.shape
        ));
    }
    let turned = match input.layout {
        Layout::Map | Layout::Line | Layout::Vector => false,
        Layout::Sequence => true,
        _ => return Err("inputs of this layout cannot be calibrated".to_owned()),
    };
    let image = |number: usize| {
        let reals = numbers.reals(number * each, each).map(|real| real as f32);
        let mut values: Vec<f32> = reals.collect();
        if turned {
            let [channels, rows, _] = extents;
            let by_row = std::mem::take(&mut values);
            let place = |at: usize| by_row[at % rows * channels + at / rows];
            values = (0..each).map(place).collect();
        }
        Map { extents, values }
    };
    Ok((0..all / each).map(image).collect())
}
