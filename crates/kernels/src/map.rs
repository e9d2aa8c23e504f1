//! A file as a slice of bytes.

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// The bytes of a file, read by the system as they are touched.
///
/// The bytes are those at the time of touching. A process that changes or truncates the file while it is mapped is
/// outside what a program can guard against: changed bytes are seen as changed, and touching bytes that were cut off
/// ends the process (`SIGBUS` on Unix). Whoever must withstand that reads the file instead.
#[derive(Debug)]
pub struct Mapped(Option<Mmap>);

impl Mapped {
    /// Maps the whole file for reading. An empty file gives an empty slice; what has no bytes of its own (a pipe, a
    /// terminal, a directory) is an error.
    pub fn open(file: &File) -> io::Result<Mapped> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "only regular files can be mapped",
            ));
        }
        if metadata.len() == 0 {
            return Ok(Mapped(None));
        }
        // SAFETY: the map is read-only and private to this value. That nobody else changes the file is outside the
        // guarantee, as the documentation of the type says.
        #[allow(unsafe_code)]
        let map = unsafe { Mmap::map(file) }?;
        Ok(Mapped(Some(map)))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Mapped;
    use std::io::Write;

    #[test]
    fn gives_the_bytes_of_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(*Mapped::open(&file).unwrap(), []);
        let bytes: Vec<u8> = (0..10_000_u32).map(|i| (i % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        assert_eq!(*Mapped::open(&file).unwrap(), bytes);
    }
}
