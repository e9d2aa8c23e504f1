//! What the host gives: files that the user names, random data for the rest.

use crate::failure::Failure;
use crate::files::{self, Bytes};
use chipless::{npy, random, suggest};
use chipless_model::{Access, BufferId, Direction, Port, Program, Storage};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// A file that the user gave for an input.
pub(super) struct Given {
    /// Which one of the interface's inputs.
    pub(super) port: usize,
    pub(super) path: String,
    pub(super) bytes: Bytes,
}

/// Opens the files of `NAME=FILE` options.
pub(super) fn open(
    program_path: &str,
    program: &Program<'_>,
    options: &[String],
) -> Result<Vec<Given>, Failure> {
    let ports = &program.interface.inputs;
    let mut given: Vec<Given> = Vec::new();
    for option in options {
        let (port, path) = split(program_path, ports, option)?;
        if given.iter().any(|g| g.port == port) {
            return Err(Failure::misuse(
                program_path,
                format_args!(
                    "expected one file for input \"{}\", found another: {path}",
                    ports[port].name
                ),
            ));
        }
        let bytes =
            files::open(Path::new(path)).map_err(|error| Failure::unreadable(path, error))?;
        given.push(Given {
            port,
            path: path.to_owned(),
            bytes,
        });
    }
    Ok(given)
}

/// The port and the file of an option. Both may contain `=`, so every one of them is tried.
fn split<'o>(
    program_path: &str,
    ports: &[Port],
    option: &'o str,
) -> Result<(usize, &'o str), Failure> {
    let splits = option
        .match_indices('=')
        .map(|(at, _)| (&option[..at], &option[at + 1..]));
    let known = splits
        .clone()
        .find_map(|(name, path)| Some((ports.iter().position(|p| p.name == name)?, path)));
    known.ok_or_else(|| match splits.clone().next() {
        Some((name, _)) => {
            let names: Vec<&str> = ports.iter().map(|p| &*p.name).collect();
            let hint = suggest::hint(name, names.iter().copied());
            Failure::misuse(
                program_path,
                format_args!(
                    "expected the name of an input ({}), found \"{name}\"{hint}",
                    listed(&names)
                ),
            )
        }
        None => Failure::misuse(
            "--input",
            format_args!("expected NAME=FILE.npy, found \"{option}\""),
        ),
    })
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "there are none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Puts the data of every input into its buffer; those of `zeros` become zero. Returns the names of the inputs whose data are random.
pub(super) fn fill<'b>(
    program_path: &str,
    program: &Program<'_>,
    given: &'b [Given],
    zeros: &[usize],
    seed: u64,
    storage: &mut Storage<'b>,
) -> Result<Vec<String>, Failure> {
    let mut made = Vec::new();
    for (index, port) in program.interface.inputs.iter().enumerate() {
        let size = program.buffers[port.buffer].size;
        let bytes = port.bytes().filter(|n| *n <= size).ok_or_else(|| {
            let Port { name, element, shape, .. } = port;
            Failure::wrong(
                program_path,
                format_args!("expected input \"{name}\" ({element} {shape:?}) to fit its buffer, found {size} bytes"),
            )
        })?;
        let data = if zeros.contains(&index) {
            Cow::Owned(vec![0; bytes as usize])
        } else if let Some(Given { path, bytes, .. }) = given.iter().find(|g| g.port == index) {
            let refused =
                |error| Failure::unreadable(path, format_args!("input \"{}\": {error}", port.name));
            npy::read(bytes, port.element, &port.shape).map_err(refused)?
        } else {
            let mut data = vec![0; bytes as usize];
            for range in needed(program, port.buffer, data.len()) {
                let part = data.get_mut(range.clone()).unwrap_or_default();
                random::fill(port.element, seed, index, range.start as u64, part)
                    .map_err(|error| Failure::misuse(program_path, error))?;
            }
            made.push(port.name.clone());
            Cow::Owned(data)
        };
        storage.set(port.buffer, data);
    }
    Ok(made)
}

/// Inputs up to this size are filled whole.
const WHOLE: usize = 64 << 20;
/// Larger ones are filled by chunks of so many bytes, those that a task reads: the others are never committed.
const CHUNK: usize = 1 << 20;
/// Runs of an access that are looked at one by one. Of one with more, everything between its first and last byte counts.
const RUNS: u64 = 1 << 16;

/// The parts of the first `size` bytes of a buffer that tasks may read.
fn needed(program: &Program<'_>, buffer: BufferId, size: usize) -> Vec<Range<usize>> {
    if size <= WHOLE {
        return std::iter::once(0..size).collect();
    }
    let mut chunks = vec![false; size.div_ceil(CHUNK)];
    let mut mark = |low: u64, high: u64| {
        let (low, high) = (
            low.min(size as u64) as usize,
            high.min(size as u64) as usize,
        );
        if let Some(read) = chunks.get_mut(low / CHUNK..high.div_ceil(CHUNK)) {
            read.fill(true);
        }
    };
    for kernel in &program.kernels {
        kernel.accesses(&mut |Access {
                                  buffer: touched,
                                  pattern,
                                  direction,
                                  ..
                              }| {
            if touched != buffer || direction != Direction::Read {
                return;
            }
            let runs = pattern
                .bytes()
                .and_then(|bytes| bytes.checked_div(pattern.run))
                .unwrap_or(0);
            if runs <= RUNS && pattern.fits(size as u64) {
                pattern
                    .runs()
                    .for_each(|start| mark(start, start + pattern.run));
            } else {
                let bound = |at: i128| at.clamp(0, size as i128) as u64;
                let extent = pattern.extent();
                mark(bound(extent.start), bound(extent.end));
            }
        });
    }
    let read = chunks.iter().enumerate().filter(|(_, read)| **read);
    read.map(|(chunk, _)| chunk * CHUNK..((chunk + 1) * CHUNK).min(size))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::{Fault, Kernel, Location, Loop, PartId, Pattern, Span, Task, Time};

    #[derive(Debug)]
    struct Reads(Pattern);

    impl Kernel for Reads {
        fn operation(&self) -> Cow<'static, str> {
            "read".into()
        }
        fn accesses(&self, visit: &mut dyn FnMut(Access)) {
            visit(Access::read(0usize.into(), self.0.clone()));
            visit(Access::write(
                0usize.into(),
                Pattern::contiguous(0, 1 << 40),
            ));
        }
        fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
            Ok(())
        }
    }

    #[test]
    fn only_what_is_read_of_a_large_input_is_made() {
        let mut program = Program::default();
        let pattern = Pattern::new(
            5 << 20,
            100,
            [Loop {
                count: 2,
                stride: 512 << 20,
            }],
        );
        let kernel = program.kernels.push(Box::new(Reads(pattern)));
        let (none, location) = (
            Span::default(),
            Location {
                part: PartId::from_raw(0),
                offset: 0,
                size: 0,
            },
        );
        let (waits, signals, demands) = (none, none, none);
        let queue = 0usize.into();
        program.tasks.push(Task {
            queue,
            index: 0,
            kernel,
            waits,
            signals,
            demands,
            fixed: Time::ZERO,
            location,
            label: None,
        });
        let chunk = |n: usize| n << 20..(n + 1) << 20;
        assert_eq!(
            needed(&program, 0usize.into(), 4 << 30),
            [chunk(5), chunk(517)]
        );
        assert_eq!(needed(&program, 0usize.into(), 1 << 20), [chunk(0)]);
        assert!(needed(&program, 1usize.into(), 4 << 30).is_empty());
    }
}
