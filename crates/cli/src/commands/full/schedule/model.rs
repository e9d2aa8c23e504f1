//! What options say of a model: shapes of inputs, inputs that are constants.

use crate::failure::Failure;
use crate::files;
use chipless_schedule::import::Shapes;
use chipless_schedule::onnx::{self, Constants, Fixed};
use chipless_schedule::reading;
use std::borrow::Cow;
use std::path::Path;

/// Extents of inputs, as `--shape` gives them.
pub(super) fn shapes(given: &[String]) -> Result<Shapes, Failure> {
    given
        .iter()
        .map(|option| {
            // Names may have an equals sign, extents have none.
            let split = option.rsplit_once('=').and_then(|(name, shape)| {
                let shape: Result<Vec<i64>, _> =
                    shape.split(',').map(|e| e.trim().parse()).collect();
                Some((name.to_owned(), shape.ok()?))
            });
            split.ok_or_else(|| {
                let text = format!("expected NAME=1,3,224,224, found \"{option}\"");
                Failure::misuse("--shape", text)
            })
        })
        .collect()
}

/// What inputs are fixed at, as `--constant` says it.
fn constants(given: &[String]) -> Result<Constants, Failure> {
    let constant = |option: &String| {
        let (name, value) = option.rsplit_once('=').ok_or_else(|| {
            let text = format!("expected NAME=NUMBER or NAME=FILE.npy, found \"{option}\"");
            Failure::misuse("--constant", text)
        })?;
        let fixed = if let Ok(number) = value.parse() {
            Fixed::Number(number)
        } else if Path::new(value).extension().is_none() {
            let text = format!("expected a number or FILE.npy for {name}, found \"{value}\"");
            return Err(Failure::misuse("--constant", text));
        } else {
            let read = files::open(Path::new(value)).and_then(|bytes| chipless::npy::reals(&bytes));
            let (shape, numbers) = read.map_err(|error| Failure::unreadable(value, error))?;
            Fixed::Array(shape.iter().map(|e| e.cast_signed()).collect(), numbers)
        };
        Ok((name.to_owned(), fixed))
    };
    given.iter().map(constant).collect()
}

/// The bytes of the network's file, with constants for the inputs that are fixed.
pub(crate) fn fixed<'b>(
    (path, bytes): (&Path, &'b [u8]),
    given: &[String],
) -> Result<Cow<'b, [u8]>, Failure> {
    let fixed = onnx::with_constants(bytes, &constants(given)?);
    fixed.map_err(|refused| Failure::unreadable(path.display(), refused))
}

/// The bytes of a file that an ONNX file names.
pub(crate) fn beside(network: &Path, name: &str) -> Option<Vec<u8>> {
    let file = files::open(&reading::beside(network, name)?).ok();
    Some(file?.to_vec())
}
