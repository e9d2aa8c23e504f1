//! The files of this machine: read whole, and written so that nobody ever sees half of one.

use crate::options::{Bytes, Files};
use chipless_kernels::map::Mapped;
use chipless_model::suggest;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read, Write};
use std::ops::Deref;
#[cfg(unix)]
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::NamedTempFile;

/// Links that are followed one after another, as on Linux.
const MOST_LINKS: usize = 40;

/// [`Limits::pipe_bytes`](chipless_model::Limits::pipe_bytes) of this process: a command opens its file before it knows whose options it has.
/// Zero stands for the default.
static PIPE_BYTES: AtomicU64 = AtomicU64::new(0);

/// Sets how much is read from what is no regular file.
pub fn set_pipe_bytes(bytes: u64) {
    PIPE_BYTES.store(bytes, Ordering::Relaxed);
}

fn pipe_bytes() -> u64 {
    match PIPE_BYTES.load(Ordering::Relaxed) {
        0 => chipless_model::Limits::default().pipe_bytes,
        bytes => bytes,
    }
}

/// The bytes of a file.
#[derive(Debug)]
pub enum Contents {
    /// Of a regular file, read by the system as they are touched.
    Mapped(Mapped),
    /// Of anything else.
    Read(Vec<u8>),
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Contents::Mapped(bytes) => bytes,
            Contents::Read(bytes) => bytes,
        }
    }
}

/// The files of this machine, for [`Options::with_files`](crate::Options::with_files).
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn open(&self, name: &str) -> Result<Bytes, String> {
        Ok(Box::new(open(Path::new(name))?))
    }

    fn exists(&self, name: &str) -> bool {
        Path::new(name).is_file()
    }
}

/// Opens a file. The error is what to say after the file's name.
pub fn open(path: &Path) -> Result<Contents, String> {
    let cannot = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => beside(path),
            _ => String::new(),
        };
        format!("cannot be read: {error}{hint}")
    };
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        return Err("cannot be read: expected a file, found a directory".to_owned());
    }
    // Such as /dev/zero, which never ends. What a person types does.
    #[cfg(unix)]
    if metadata.file_type().is_char_device() && !file.is_terminal() {
        return Err("cannot be read: expected a file, found a character device".to_owned());
    }
    if metadata.is_file() {
        return Mapped::open(&file).map(Contents::Mapped).map_err(cannot);
    }
    drain(file).map(Contents::Read)
}

/// Entries of a folder that are looked at for a name like one that is not there.
const BESIDE: usize = 10_000;

/// `; did you mean "x"?` of a file beside one that is not there, or nothing.
pub fn beside(path: &Path) -> String {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(name), Ok(entries)) = (name, fs::read_dir(folder)) else {
        return String::new();
    };
    let names = entries
        .take(BESIDE)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    // Folders have no order of their own.
    names.sort();
    suggest::hint(name, names.iter().map(String::as_str))
}

/// Reads what is no regular file to its end. The error is what to say after its name.
pub fn drain(source: impl Read) -> Result<Vec<u8>, String> {
    let (mut bytes, most) = (Vec::new(), pipe_bytes());
    source
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!(
            "cannot be read: it is not a regular file and gives more than {most} bytes (--limit pipe_bytes)"
        ));
    }
    Ok(bytes)
}

/// The files that a pattern (`*`, `?`, `[…]`, `**`) fits, sorted. The error is what to say.
pub fn matching(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = pattern.display();
    let text = pattern
        .to_str()
        .ok_or_else(|| format!("expected a pattern of text, found {shown}"))?;
    let paths = glob::glob(text)
        .map_err(|error| format!("expected a pattern, found {shown}: {}", error.msg))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|error| error.to_string())?;
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Writes a file so that nobody ever sees half of it: as [`Growing`] does.
pub fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = Growing::create(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.finish()
}

/// A file that is written under a temporary name in the same directory, and gets its name when it is complete. A link is followed: what it
/// points to is replaced, with the permissions that it has. What is no regular file (a device, a pipe) is written to directly.
#[derive(Debug)]
pub struct Growing(Place);

#[derive(Debug)]
enum Place {
    Direct(File),
    Temporary(NamedTempFile, PathBuf),
}

impl Growing {
    /// Begins a file of this name.
    ///
    /// # Errors
    /// A directory that is not there or takes no file, a file of this name that may not be written, a device that cannot be opened.
    pub fn create(path: &Path) -> io::Result<Growing> {
        let path = behind_links(path)?;
        // Whether it may be written is a question to the system: the permissions of a directory alone would let it be replaced.
        let existing = match File::options().write(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(existing) = existing else {
            return Ok(Growing(Place::Temporary(temporary(&path)?, path)));
        };
        let metadata = existing.metadata()?;
        if !metadata.is_file() {
            return Ok(Growing(Place::Direct(existing)));
        }
        let file = temporary(&path)?;
        file.as_file().set_permissions(metadata.permissions())?;
        Ok(Growing(Place::Temporary(file, path)))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// A directory that has vanished, or takes no file any more.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Place::Direct(mut file) => file.flush(),
            Place::Temporary(file, path) => {
                file.persist(path)?;
                Ok(())
            }
        }
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Place::Direct(file) => file.write(bytes),
            Place::Temporary(file, _) => file.as_file_mut().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Place::Direct(file) => file.flush(),
            Place::Temporary(file, _) => file.as_file_mut().flush(),
        }
    }
}

/// The path that a symbolic link stands for, however many follow one another; what they point to need not be there.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        write(&path, &[b"old"]).unwrap();
        write(&path, &[b"new ", b"bytes"]).unwrap();
        assert_eq!(*open(&path).unwrap(), *b"new bytes");
        let left = fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(left, 1, "temporary files are left");
    }

    #[test]
    fn what_is_no_file_is_said() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(
            open(directory.path()).unwrap_err(),
            "cannot be read: expected a file, found a directory"
        );
        let absent = open(&directory.path().join("absent")).unwrap_err();
        assert!(absent.starts_with("cannot be read: No such file"));
    }
}
