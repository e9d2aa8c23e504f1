//! Programs of files, ready to run on a device.

use crate::failure::Failure;
use crate::file::{File, OpenDocument, open};
use crate::options::{Bytes, Options};
use crate::run::stopped;
use crate::target::Lowered;
use chipless_device::{FileProgram, Route, Touches, layers};
use chipless_model::{IndexVec, MemoryKind, QueueId};
use chipless_report::attribution::lives;
use chipless_sim::{Outcome, Timeline, TimingOnly, Verified};

/// Opens programs, proves them safe and runs each alone; then does something with all of them. There is one for each path and each of the
/// options for the NPU, those of a path one after another. The numbers of errors count the paths.
///
/// # Errors
/// A program that cannot be read or that is refused: its number, and why.
pub(super) fn with_programs<T>(
    paths: &[&str],
    options: &Options,
    npu: &[Options],
    then: impl FnOnce(&[FileProgram<'_, '_>]) -> T,
) -> Result<T, (usize, Failure)> {
    let about = |number: usize| move |failure: Failure| (number, failure.about(paths[number]));
    let all = npu.len();
    let inputs = paths.iter().enumerate().map(|(number, path)| {
        let input = options.open(path).map_err(about(number))?;
        Ok(input.bytes)
    });
    let bytes: Vec<Bytes> = inputs.collect::<Result<_, _>>()?;
    let files = bytes.iter().enumerate().flat_map(|(number, bytes)| {
        let is_npu =
            crate::file::recognize(paths[number], bytes).is_some_and(|t| t.name() == "npu");
        let chosen = npu
            .iter()
            .map(move |npu| if is_npu { npu } else { options });
        chosen.map(move |options| open(paths[number], bytes, options).map_err(about(number)))
    });
    let files: Vec<File<'_>> = files.collect::<Result<_, _>>()?;
    let documents = files.iter().enumerate();
    let documents = documents.map(|(number, file)| file.read().map_err(about(number / all)));
    let documents: Vec<OpenDocument<'_>> = documents.collect::<Result<_, _>>()?;
    let lowered = documents.iter().enumerate();
    let lowered = lowered.map(|(number, document)| document.lower().map_err(about(number / all)));
    let lowered: Vec<Lowered<'_>> = lowered.collect::<Result<_, _>>()?;
    let programs = lowered.iter().zip(&documents).enumerate();
    let programs = programs.map(|(number, (lowered, document))| {
        let number = number / all;
        let verified = lowered
            .verify()
            .map_err(Failure::program)
            .map_err(about(number))?;
        let (program, _) = alone(verified, document).map_err(about(number))?;
        Ok(program)
    });
    let programs: Vec<FileProgram<'_, '_>> = programs.collect::<Result<_, _>>()?;
    Ok(then(&programs))
}

/// Opens one program, proves it safe and runs it alone; then does something with it.
///
/// # Errors
/// A program that cannot be read or that is refused.
pub fn with_program<T>(
    path: &str,
    options: &Options,
    then: impl FnOnce(&FileProgram<'_, '_>, &Timeline) -> T,
) -> Result<T, Failure> {
    let input = options.open(path)?;
    let file = open(path, &input.bytes, options)?;
    let document = file.read()?;
    let lowered = document.lower().map_err(|failure| failure.about(path))?;
    let verified = lowered
        .verify()
        .map_err(Failure::program)
        .map_err(|f| f.about(path))?;
    let (program, timeline) = alone(verified, &document).map_err(|f| f.about(path))?;
    Ok(then(&program, &timeline))
}

/// Runs a program alone.
fn alone<'p, 'a>(
    verified: Verified<'p, 'a>,
    document: &OpenDocument<'_>,
) -> Result<(FileProgram<'p, 'a>, Timeline), Failure> {
    let program = verified.program();
    let Outcome { timeline, end } = chipless_sim::run(&verified, &mut TimingOnly);
    end.map_err(|stop| stopped(program, &stop))?;
    let mut changes: Vec<(u64, i128)> = Vec::new();
    for (memory, lives) in lives(program, &timeline).of.iter_enumerated() {
        if program.memories[memory].kind == MemoryKind::Scratchpad {
            for live in lives {
                let size = i128::from(live.size);
                // A task that starts at the instant of a request does not.
                changes.push((live.start.0 + 1, size));
                changes.push((live.end.0, -size));
            }
        }
    }
    changes.sort_unstable();
    let (mut level, mut levels) = (0i128, Vec::new());
    for (at, change) in changes {
        level += change;
        let bytes = u64::try_from(level).unwrap_or(0);
        match levels.last_mut() {
            Some((last, known)) if *last == at => *known = bytes,
            _ => levels.push((at, bytes)),
        }
    }
    let shares = document.capabilities().shares_device;
    let queues = program.queues.iter();
    let routes: Vec<Option<Route>> = queues
        .map(|queue| shares.and_then(|shares| shares.route(&queue.name)))
        .collect();
    let mut entries: IndexVec<QueueId, u64> = program.queues.iter().map(|_| 0).collect();
    for piece in &program.pieces {
        entries[piece.queue] += 1;
    }
    let fifos = program.queues.iter_enumerated();
    let fifos = fifos.map(|(id, queue)| Some((shares?.fifo(&queue.name)?, entries[id])));
    // What passes the device's resources is counted there.
    let carried = timeline.carried(program);
    let carried = carried
        .iter_enumerated()
        .filter(|_| routes.iter().all(Option::is_none))
        .map(|(resource, bytes)| (program.resources[resource].name.clone(), *bytes));
    let named = program.tasks.indices().filter_map(|task| {
        let record = &timeline.tasks[task];
        Some((program.layer(task)?, record.start.0, record.end.0))
    });
    let program = FileProgram {
        layers: layers(named),
        latency: timeline.end.0,
        longest: timeline
            .tasks
            .iter()
            .map(|r| r.end.0 - r.start.0)
            .max()
            .unwrap_or(0),
        tiles: shares.map(|shares| u64::from(shares.tiles())),
        levels,
        carried: carried.collect(),
        touches: Touches::of(program),
        fifos: fifos.collect(),
        deepest: timeline.deepest.iter().copied().collect(),
        routes,
        verified,
    };
    Ok((program, timeline))
}
