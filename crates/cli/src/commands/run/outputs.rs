//! What comes out: outputs, and what single tasks wrote.

use crate::failure::Failure;
use crate::files::{self, Names};
use chipless::npy;
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Direction, ElementType, Program, Storage, TaskId};
use chipless_report::Statistics;
use chipless_report::summary::Output;
use std::path::Path;

/// Writes every output to `NAME.npy` in a directory, if there is one, and sums them up.
pub(in crate::commands) fn write(
    program_path: &str,
    program: &Program<'_>,
    storage: &Storage<'_>,
    directory: Option<&Path>,
    names: &mut Names,
) -> Result<Vec<Output>, Failure> {
    if let Some(directory) = directory {
        files::make_directory(directory)?;
    }
    let ports = program.interface.outputs.iter().enumerate();
    ports
        .map(|(index, port)| {
            let bytes =
                chipless::output(port, storage).map_err(|failure| failure.about(program_path))?;
            let path = match directory {
                Some(directory) => {
                    let path = names.npy(directory, &port.name);
                    let (header, data) = npy::write_port(port, bytes)
                        .map_err(|error| Failure::unreadable(path.display(), error))?;
                    files::write(&path, &[&header, &data])?;
                    Some(path.display().to_string())
                }
                None => None,
            };
            let elements = port.shape.iter().product();
            Ok(Output {
                port: index,
                path,
                statistics: Statistics::of(port.element, elements, bytes),
            })
        })
        .collect()
}

/// What the tasks that the user asked for wrote.
pub(super) struct Dumps {
    asked: Vec<TaskId>,
    written: Vec<(TaskId, BufferId, Vec<u8>)>,
}

impl Dumps {
    pub(super) fn new(asked: Vec<TaskId>) -> Dumps {
        Dumps {
            asked,
            written: Vec::new(),
        }
    }

    /// Whether none was asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Keeps what a task wrote, if it is one of those asked for: for each buffer the bytes of all write accesses, one after
    /// the other.
    pub(super) fn observe(&mut self, program: &Program<'_>, task: TaskId, storage: &Storage<'_>) {
        if !self.asked.contains(&task) {
            return;
        }
        program.kernel(task).accesses(&mut |access| {
            if access.direction == Direction::Read {
                return;
            }
            let known = self
                .written
                .iter()
                .position(|(t, buffer, _)| (*t, *buffer) == (task, access.buffer));
            let at = known.unwrap_or_else(|| {
                self.written.push((task, access.buffer, Vec::new()));
                self.written.len() - 1
            });
            // A bound that reaches further than the buffer has no bytes to show.
            let _ = strided::gather(
                storage.bytes(access.buffer),
                &access.pattern,
                &mut self.written[at].2,
            );
        });
    }

    /// Writes `TASK.npy`, or `TASK.BUFFER.npy` where a task wrote several buffers. Returns a line about each task.
    pub(super) fn write(
        self,
        program: &Program<'_>,
        directory: Option<&Path>,
        names: &mut Names,
    ) -> Result<Vec<String>, Failure> {
        if let Some(directory) = directory.filter(|_| !self.asked.is_empty()) {
            files::make_directory(directory)?;
        }
        let directory = directory.unwrap_or(Path::new(""));
        let mut lines = Vec::new();
        for id in &self.asked {
            let written: Vec<_> = self.written.iter().filter(|(t, ..)| t == id).collect();
            let task = program.task_name(*id);
            if written.is_empty() {
                lines.push(format!("{task} wrote nothing"));
            }
            for (_, buffer, bytes) in &written {
                let (element, shape) = form(program, *id, *buffer, bytes.len() as u64);
                let buffer = &program.buffers[*buffer].name;
                let path = names.npy(
                    directory,
                    &if written.len() == 1 {
                        task.clone()
                    } else {
                        format!("{task}.{buffer}")
                    },
                );
                let (header, data) = npy::write(element, &shape, bytes)
                    .map_err(|error| Failure::unreadable(path.display(), error))?;
                files::write(&path, &[&header, &data])?;
                lines.push(format!(
                    "{task} wrote {} bytes of {buffer}: {}",
                    bytes.len(),
                    path.display()
                ));
            }
        }
        Ok(lines)
    }
}

/// Element type and shape of what a task wrote to a buffer: those of its only write where the kernel knows its elements, bytes otherwise.
fn form(
    program: &Program<'_>,
    task: TaskId,
    buffer: BufferId,
    bytes: u64,
) -> (ElementType, Vec<u64>) {
    let (mut writes, mut known) = (0, None);
    let kernel = program.kernel(task);
    // As its bytes lie: what a run of bytes holds is the innermost dimension.
    let shaped = |access: &Access, element: ElementType| {
        let inner = access.pattern.run * 8 / element.bits();
        let loops = access.pattern.loops.iter().rev().map(|l| l.count);
        let inner = (inner > 1 || access.pattern.loops.is_empty()).then_some(inner);
        (element, loops.chain(inner).collect::<Vec<u64>>())
    };
    kernel.accesses(&mut |access| {
        if access.direction != Direction::Read && access.buffer == buffer {
            writes += 1;
            // Elements of less than a byte stay as they lie.
            let tensor = kernel.tensor(&access).filter(|(of, _)| of.bits() >= 8);
            known = tensor.map(|(element, shape)| {
                if shape.is_empty() {
                    shaped(&access, element)
                } else {
                    (element, shape)
                }
            });
        }
    });
    kernel.results(&mut |access, element| {
        if access.buffer == buffer {
            known = Some(shaped(&access, element));
        }
    });
    let whole = known.filter(|(element, shape)| {
        let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        writes == 1 && elements.and_then(|n| element.bytes_for(n)) == Some(bytes)
    });
    whole.unwrap_or((ElementType::UInt8, vec![bytes]))
}
