//! What a sweep has done so far, on disk: a line for each run, so that a killed sweep goes on where it was.

use crate::row::Row;
use chipless::Failure;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long rows may wait to be written.
const PATIENCE: Duration = Duration::from_millis(200);

/// The journal of a shard.
pub(crate) struct Journal {
    path: PathBuf,
    file: BufWriter<File>,
    flushed: Instant,
}

impl Journal {
    /// Opens or makes the journal beside the results, and reads the rows that are in it. `head` is its first line.
    ///
    /// # Errors
    /// Another process that writes it, or a journal of another plan.
    pub(crate) fn open(
        results: &Path,
        head: &str,
        restart: bool,
    ) -> Result<(Journal, BTreeMap<u64, Row>), Failure> {
        let path = beside(results);
        let cannot = |error: std::io::Error| {
            Failure::misuse(path.display(), format_args!("cannot be written: {error}"))
        };
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = "another process is writing it; give this one another output";
                return Err(Failure::misuse(path.display(), text));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let mut text = String::new();
        if restart {
            file.set_len(0).map_err(cannot)?;
        } else {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(cannot)?;
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        let mut rows = BTreeMap::new();
        let mut good = 0;
        if let Some(lines) = text.strip_prefix(head) {
            good = head.len();
            // The last line may have been cut off.
            for line in lines.split_inclusive('\n') {
                match serde_json::from_str::<Row>(line) {
                    Ok(row) if line.ends_with('\n') => {
                        good += line.len();
                        rows.insert(row.run, row);
                    }
                    _ => break,
                }
            }
        } else if text.contains('\n') {
            let text = "is of another plan, other files, or another version of Chipless (--restart begins anew)";
            return Err(Failure::misuse(path.display(), text));
        }
        file.set_len(good as u64).map_err(cannot)?;
        file.seek(SeekFrom::Start(good as u64)).map_err(cannot)?;
        if good == 0 {
            file.write_all(head.as_bytes()).map_err(cannot)?;
        }
        let journal = Journal {
            path,
            file: BufWriter::new(file),
            flushed: Instant::now(),
        };
        Ok((journal, rows))
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: &Row) -> Result<(), Failure> {
        let mut put = || -> std::io::Result<()> {
            serde_json::to_writer(&mut self.file, row)?;
            self.file.write_all(b"\n")?;
            if self.flushed.elapsed() > PATIENCE {
                self.file.flush()?;
                self.flushed = Instant::now();
            }
            Ok(())
        };
        put().map_err(|error| {
            Failure::misuse(
                self.path.display(),
                format_args!("cannot be written: {error}"),
            )
        })
    }

    /// Everything is done.
    pub(crate) fn close(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| {
            Failure::misuse(
                self.path.display(),
                format_args!("cannot be written: {error}"),
            )
        })
    }
}

fn beside(results: &Path) -> PathBuf {
    let mut name = results.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

/// Removes the journal of results that are written. One that is left over is taken up to the same end.
pub fn forget(results: &Path) {
    let _ = fs::remove_file(beside(results));
}
