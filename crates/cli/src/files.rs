//! Reading whole files, and writing them so that nobody ever sees half of one.

use crate::failure::Failure;
use chipless::disk;
pub(crate) use chipless::disk::Contents as Bytes;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Characters of a file name that comes from a program.
const NAME_LIMIT: usize = 200;
/// Name of a file that is begun in a directory to see whether it takes one, and never finished.
#[cfg(feature = "full")]
const TRIED: &str = ".chipless-begun";

/// Files that have been opened: an output must not replace them.
static INPUTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Opens a file, or standard input for `-`. The error is what to say after the file's name.
pub(crate) fn open(path: &Path) -> Result<Bytes, String> {
    if path == Path::new("-") {
        return disk::drain(io::stdin().lock()).map(Bytes::Read);
    }
    let bytes = disk::open(path)?;
    if let Ok(path) = fs::canonicalize(path) {
        inputs(|inputs| inputs.insert(path));
    }
    Ok(bytes)
}

fn inputs<T>(ask: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    ask(&mut INPUTS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Refuses an output that would replace a file which was read: whoever gave one name twice would lose the source.
fn keep_inputs(path: &Path) -> Result<(), Failure> {
    let full = fs::canonicalize(path);
    let is_input = full.is_ok_and(|full| full.is_file() && inputs(|of| of.contains(&full)));
    if !is_input {
        return Ok(());
    }
    let text = "is an input of this command, and the output would replace it. Name another file for the output.";
    Err(Failure::misuse(path.display(), text))
}

/// Reads a text file, for options that name one.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = open(path).map_err(|error| Failure::unreadable(path.display(), error))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let kind = chipless::kind_of(&path.to_string_lossy(), &bytes);
            let found =
                kind.unwrap_or_else(|| format!("other bytes at offset {}", error.valid_up_to()));
            let text = format_args!("expected text in UTF-8, found {found}");
            Err(Failure::unreadable(path.display(), text))
        }
    }
}

/// Writes a file so that nobody ever sees half of it. Files that were read stay as they are.
pub(crate) fn write(path: &Path, parts: &[&[u8]]) -> Result<(), Failure> {
    keep_inputs(path)?;
    rewrite(path, parts)
}

/// Writes a file, also over what was read from it, for commands that change files in place.
pub(crate) fn rewrite(path: &Path, parts: &[&[u8]]) -> Result<(), Failure> {
    disk::write(path, parts).map_err(|error| cannot_write(path, &error))
}

/// Whether a file of this name can be written: asked before long work, so that its result is not lost.
#[cfg(feature = "full")]
pub(crate) fn can_write(path: &Path) -> Result<(), Failure> {
    // A pipe or a device is opened once, by what writes it: whoever reads it would take this for its end.
    let metadata = fs::metadata(path);
    if metadata.is_ok_and(|of| !of.is_file() && !of.is_dir()) {
        return Ok(());
    }
    let begun = disk::Growing::create(path);
    begun.map(drop).map_err(|error| cannot_write(path, &error))
}

/// Whether a directory is there or can be made, and takes files.
#[cfg(feature = "full")]
pub(crate) fn can_fill(directory: &Path) -> Result<(), Failure> {
    let there = directory.ancestors().find(|path| path.exists());
    let begun = disk::Growing::create(&there.unwrap_or(Path::new("")).join(TRIED));
    begun
        .map(drop)
        .map_err(|error| cannot_write(directory, &error))
}

/// A file cannot be written.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::misuse(path.display(), format_args!("cannot be written: {error}"))
}

/// A file that is written piece by piece, and is there under its name only when it is complete.
#[derive(Debug)]
pub(crate) struct Growing {
    path: PathBuf,
    file: BufWriter<disk::Growing>,
}

impl Growing {
    pub(crate) fn create(path: PathBuf) -> Result<Growing, Failure> {
        keep_inputs(&path)?;
        let file = disk::Growing::create(&path).map_err(|error| cannot_write(&path, &error))?;
        Ok(Growing {
            path,
            file: BufWriter::new(file),
        })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file
            .write_all(bytes)
            .map_err(|error| cannot_write(&self.path, &error))
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<PathBuf, Failure> {
        let file = self.file.into_inner();
        file.map_err(io::IntoInnerError::into_error)
            .and_then(disk::Growing::finish)
            .map_err(|error| cannot_write(&self.path, &error))?;
        Ok(self.path)
    }
}

/// The directory that outputs go to, made if it is not there.
pub(crate) fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .map_err(|error| Failure::misuse(path.display(), format_args!("cannot be made: {error}")))
}

/// File names made of names that come from a program.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// `NAME.npy` in `directory`, every character of the name outside `[A-Za-z0-9._-]` turned into `_`. Names that would
    /// meet in one file get a number.
    pub(crate) fn npy(&mut self, directory: &Path, name: &str) -> PathBuf {
        let plain: String = name
            .chars()
            .take(NAME_LIMIT)
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        let plain = if plain.is_empty() {
            "_".to_owned()
        } else {
            plain
        };
        let numbered = (2..).map(|n| format!("{plain}_{n}"));
        // File systems that ignore case would merge names that differ in nothing else.
        let unique = std::iter::once(plain.clone())
            .chain(numbered)
            .find(|n| self.taken.insert(n.to_lowercase()))
            .unwrap_or(plain);
        directory.join(format!("{unique}.npy"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_directory_and_apart() {
        let mut names = Names::default();
        let mut name = |n: &str| names.npy(Path::new("out"), n).display().to_string();
        assert_eq!(name("conv_1"), "out/conv_1.npy");
        assert_eq!(name("../../etc/passwd"), "out/.._.._etc_passwd.npy");
        assert_eq!(name(".."), "out/...npy");
        assert_eq!(name(""), "out/_.npy");
        assert_eq!(name("a/b"), "out/a_b.npy");
        assert_eq!(name("a:b"), "out/a_b_2.npy");
        assert_eq!(name("A b"), "out/A_b_3.npy");
        assert_eq!(name("dpu0[3]"), "out/dpu0_3_.npy");
        assert_eq!(name(&"x".repeat(1000)).len(), "out/.npy".len() + NAME_LIMIT);
    }

    #[test]
    #[cfg(feature = "full")]
    fn whether_something_can_be_written_is_known_before() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("there");
        fs::write(&file, "kept").unwrap();
        can_write(&file).unwrap();
        can_write(&directory.path().join("new")).unwrap();
        can_fill(&directory.path().join("new/and/deeper")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        for refused in [
            can_write(&directory.path().join("nowhere/new")),
            can_write(directory.path()),
            can_fill(&file),
            can_fill(&file.join("below")),
        ] {
            assert!(refused.unwrap_err().text().contains("cannot be written"));
        }
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let nowhere = Path::new("/no/such/place");
        assert_eq!(
            write(nowhere, &[b""]).unwrap_err().text(),
            "/no/such/place: cannot be written: No such file or directory (os error 2)\n"
        );
    }
}
