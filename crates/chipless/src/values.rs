//! Two programs on the same inputs: where their numbers first differ.

use crate::failure::Failure;
use crate::run::{fill, no_room, stopped};
use chipless_kernels::cast::decode_f64;
use chipless_model::{Access, Direction, ElementType, IndexVec, Limits, Program, Storage, TaskId};
use chipless_report::diff::{FirstDifference, Side, Values};
use chipless_sim::{Functional, Verified};
use rustc_hash::FxHasher;
use std::hash::Hasher as _;

/// Executes two programs on the same random inputs and finds the first pair of tasks that write other numbers, in the first program's order.
///
/// # Errors
/// Inputs that differ, buffers beyond the limit, faults.
pub(crate) fn values(
    a: Side<'_, '_>,
    b: Side<'_, '_>,
    pairs: &[(TaskId, TaskId)],
    seed: u64,
    limits: &Limits,
) -> Result<Values, Failure> {
    let said = |program: &Program<'_>| {
        let inputs = program.interface.inputs.iter();
        inputs
            .map(|port| (port.element, port.shape.clone()))
            .collect::<Vec<_>>()
    };
    if said(a.program) != said(b.program) {
        let text = "expected programs with the same inputs, found others: their numbers cannot be compared";
        return Err(Failure::unsupported(text));
    }
    let (written_a, written_b) = (
        hashes(a.program, seed, limits)?,
        hashes(b.program, seed, limits)?,
    );
    let mut partner: IndexVec<TaskId, Option<TaskId>> =
        a.program.tasks.iter().map(|_| None).collect();
    for (x, y) in pairs {
        partner[*x] = Some(*y);
    }
    let order = a.timeline.order.iter();
    let first = order
        .filter_map(|x| Some((*x, partner[*x]?)))
        .find(|(x, y)| written_a[*x] != written_b[*y]);
    let Some((x, y)) = first else {
        return Ok(Values { first: None });
    };
    let left = numbers(a.program, x, seed, limits)?;
    let right = numbers(b.program, y, seed, limits)?;
    let differing = left.iter().zip(&right).find(|((_, l), (_, r))| l != r);
    let buffer = differing.or(left.iter().zip(&right).next());
    let largest = |l: &[f64], r: &[f64]| {
        let pairs = l.iter().zip(r);
        let differences = pairs.map(|(l, r)| {
            let same = l.total_cmp(r).is_eq() || (l.is_nan() && r.is_nan());
            let difference = if same { 0.0 } else { (l - r).abs() };
            if difference.is_nan() {
                f64::INFINITY
            } else {
                difference
            }
        });
        differences.fold(0.0, f64::max)
    };
    let all = left.iter().zip(&right);
    Ok(Values {
        first: Some(FirstDifference {
            task_a: a.program.task_name(x),
            task_b: b.program.task_name(y),
            buffer: buffer.map_or_else(String::new, |((name, _), _)| name.clone()),
            max_abs: all
                .map(|((_, l), (_, r))| largest(l, r))
                .fold(0.0, f64::max),
        }),
    })
}

/// Runs a program and shows the storage after each task.
fn execute(
    program: &Program<'_>,
    seed: u64,
    limits: &Limits,
    mut see: impl FnMut(TaskId, &Storage<'_>),
) -> Result<(), Failure> {
    let mut storage = Storage::new(&program.buffers, limits).map_err(no_room)?;
    fill(program, |_, _, _| Ok(None), seed, &mut storage)?;
    let mut observe = |task: TaskId, storage: &Storage<'_>| see(task, storage);
    let outcome = chipless_sim::run(
        &Verified::assume(program),
        &mut Functional::new(&mut storage).observed_by(&mut observe),
    );
    outcome.end.map_err(|stop| stopped(program, &stop))
}

/// The bytes of an access in order, run by run.
fn runs<'s>(access: &'s Access, storage: &'s Storage<'_>) -> impl Iterator<Item = &'s [u8]> {
    let bytes = storage.bytes(access.buffer);
    let fits = access.pattern.fits(bytes.len() as u64);
    let starts = fits.then(|| access.pattern.runs()).into_iter().flatten();
    starts.map(move |at| &bytes[at as usize..][..access.pattern.run as usize])
}

/// A number for what each task writes.
fn hashes(
    program: &Program<'_>,
    seed: u64,
    limits: &Limits,
) -> Result<IndexVec<TaskId, u64>, Failure> {
    let mut hashes: IndexVec<TaskId, u64> = program.tasks.iter().map(|_| 0).collect();
    execute(program, seed, limits, |task, storage| {
        let mut hasher = FxHasher::default();
        program.kernel(task).accesses(&mut |access| {
            if access.direction == Direction::Write {
                runs(&access, storage).for_each(|run| hasher.write(run));
            }
        });
        hashes[task] = hasher.finish();
    })?;
    Ok(hashes)
}

/// What one task writes: of each access the buffer and the numbers, as the kernel or the interface types them, bytes where nobody does.
fn numbers(
    program: &Program<'_>,
    wanted: TaskId,
    seed: u64,
    limits: &Limits,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    let mut found = Vec::new();
    execute(program, seed, limits, |task, storage| {
        if task != wanted {
            return;
        }
        let mut typed: Vec<(Access, ElementType)> = Vec::new();
        program
            .kernel(task)
            .results(&mut |access, element| typed.push((access, element)));
        program.kernel(task).accesses(&mut |access| {
            if access.direction != Direction::Write {
                return;
            }
            let known = typed.iter().find(|(other, _)| *other == access);
            let ports = || {
                program
                    .interface
                    .outputs
                    .iter()
                    .find(|p| p.buffer == access.buffer)
            };
            let element = known
                .map(|(_, element)| *element)
                .or_else(|| Some(ports()?.element));
            let bytes: Vec<u8> = runs(&access, storage).flatten().copied().collect();
            let decoded = element.and_then(|element| {
                let count = (bytes.len() as u64 * 8).checked_div(element.bits())? as usize;
                let mut numbers = vec![0.0; count];
                decode_f64(element, &bytes, &mut numbers).ok()?;
                Some(numbers)
            });
            let plain = || bytes.iter().map(|byte| f64::from(*byte)).collect();
            let name = program.buffers[access.buffer].name.clone();
            found.push((name, decoded.unwrap_or_else(plain)));
        });
    })?;
    Ok(found)
}
