//! Reading whole files, and writing them so that nobody ever sees half of one.

use crate::failure::Failure;
use chipless_kernels::map::Mapped;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Bytes that are read from what cannot be mapped (a pipe) before it is taken to be endless.
const PIPE_LIMIT: u64 = 4 << 30;
/// Characters of a file name that comes from a program.
const NAME_LIMIT: usize = 200;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum Bytes {
    /// Of a regular file, read by the system as they are touched.
    Mapped(Mapped),
    /// Of anything else.
    Read(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Read(bytes) => bytes,
        }
    }
}

/// The files of this machine.
pub(crate) struct Disk;

impl chipless::Files for Disk {
    fn open(&self, name: &str) -> Result<chipless::Bytes, String> {
        Ok(Box::new(open(Path::new(name))?))
    }

    fn exists(&self, name: &str) -> bool {
        Path::new(name).is_file()
    }
}

/// Opens a file. The error is what to say after the file's name.
pub(crate) fn open(path: &Path) -> Result<Bytes, String> {
    let cannot = |error: io::Error| format!("cannot be read: {error}");
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        return Err("cannot be read: expected a file, found a directory".to_owned());
    }
    if metadata.is_file() {
        return Mapped::open(&file).map(Bytes::Mapped).map_err(cannot);
    }
    let mut bytes = Vec::new();
    file.take(PIPE_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > PIPE_LIMIT {
        return Err(format!(
            "cannot be read: it is not a regular file and gives more than {PIPE_LIMIT} bytes"
        ));
    }
    Ok(Bytes::Read(bytes))
}

/// Reads a text file, for options that name one.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = open(path).map_err(|error| Failure::unreadable(path.display(), error))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(Failure::unreadable(
            path.display(),
            format_args!(
                "expected text in UTF-8, found other bytes at offset {}",
                error.valid_up_to()
            ),
        )),
    }
}

/// Writes a file under a temporary name in the same directory and renames it when it is complete. What exists and is not
/// a regular file (a device, a pipe) is written to directly.
pub(crate) fn write(path: &Path, parts: &[&[u8]]) -> Result<(), Failure> {
    let put = || -> io::Result<()> {
        if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let mut file = File::options().write(true).open(path)?;
            return parts.iter().try_for_each(|part| file.write_all(part));
        }
        let mut file = temporary(path)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.persist(path)?;
        Ok(())
    };
    put().map_err(|error| cannot_write(path, &error))
}

/// A file under a temporary name, in the directory of the one that it becomes.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let directory = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".chipless-");
    // The permissions of an ordinary new file; temporary files are the owner's alone otherwise.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    fs::metadata(directory)?;
    // The error names the temporary file, which says nothing to people.
    builder
        .tempfile_in(directory)
        .map_err(|error| error.kind().into())
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::misuse(path.display(), format_args!("cannot be written: {error}"))
}

/// A file that is written piece by piece, and is there under its name only when it is complete.
#[derive(Debug)]
pub(crate) struct Growing {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl Growing {
    pub(crate) fn create(path: PathBuf) -> Result<Growing, Failure> {
        let file = temporary(&path).map_err(|error| cannot_write(&path, &error))?;
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
        let put = || -> io::Result<()> {
            self.file
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .persist(&self.path)?;
            Ok(())
        };
        put().map_err(|error| cannot_write(&self.path, &error))?;
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
    fn files_are_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write(&path, &[b"old"]).unwrap();
        write(&path, &[b"new ", b"bytes"]).unwrap();
        assert_eq!(*open(&path).unwrap(), *b"new bytes");
        assert_eq!(
            fs::read_dir(directory.path()).unwrap().count(),
            1,
            "temporary files are left"
        );
        let nowhere = directory.path().join("no/such/place");
        assert_eq!(
            write(&nowhere, &[b""]).unwrap_err().text(),
            format!(
                "{}: cannot be written: No such file or directory (os error 2)\n",
                nowhere.display()
            )
        );
    }

    #[test]
    fn what_is_no_file_is_said() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(
            open(directory.path()).unwrap_err(),
            "cannot be read: expected a file, found a directory"
        );
        assert!(
            open(&directory.path().join("absent"))
                .unwrap_err()
                .starts_with("cannot be read: No such file")
        );
    }
}
