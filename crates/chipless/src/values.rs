//! Two programs on the same inputs: where their numbers first differ.

use crate::failure::Failure;
use crate::file::OpenDocument;
use crate::npy;
use crate::options::Input;
use crate::run::{fill, input_named, no_room, output, stopped};
use chipless_kernels::cast::decode_f64;
use chipless_model::{
    Access, Direction, ElementType, IndexVec, Kind, Limits, Port, Program, Storage, TaskId, count,
};
use chipless_report::diff::{FirstDifference, Side, Values};
use chipless_report::{Comparison, Reference, Tolerance, difference};
use chipless_sim::{Functional, Verified};
use rustc_hash::FxHasher;
use std::borrow::Cow;
use std::hash::Hasher as _;

/// What both programs compute with.
pub(crate) struct Inputs<'i> {
    seed: u64,
    /// Files of some inputs, by the number of the input.
    given: Vec<(usize, Input)>,
    limits: &'i Limits,
}

impl<'i> Inputs<'i> {
    /// The arrays of a document's options, for inputs of its program, and random data of this seed for the others.
    pub(crate) fn of(
        document: &'i OpenDocument<'_>,
        program: &Program<'_>,
        seed: u64,
    ) -> Result<Inputs<'i>, Failure> {
        let options = document.options();
        let mut given: Vec<(usize, Input)> = Vec::new();
        for option in &options.data.arrays {
            let ports = &program.interface.inputs;
            let (port, path) = input_named(document.name(), ports, option)?;
            if given.iter().any(|(known, _)| *known == port) {
                let name = &ports[port].name;
                let text = format!("expected one file for input \"{name}\", found another: {path}");
                return Err(Failure::misuse(document.name(), text));
            }
            given.push((port, options.open(path)?));
        }
        Ok(Inputs {
            seed,
            given,
            limits: document.limits(),
        })
    }

    fn read(&self, index: usize, port: &Port) -> Result<Option<Cow<'_, [u8]>>, Failure> {
        let Some((_, file)) = self.given.iter().find(|(known, _)| *known == index) else {
            return Ok(None);
        };
        let refused =
            |error| Failure::misuse(&file.name, format_args!("input \"{}\": {error}", port.name));
        npy::read_port(&file.bytes, port).map(Some).map_err(refused)
    }
}

/// Executes two programs on the same inputs and finds the first pair of tasks that write other numbers, in the first program's order.
///
/// # Errors
/// Inputs that differ, buffers beyond the limit, faults.
pub(crate) fn values(
    a: Side<'_, '_>,
    b: Side<'_, '_>,
    pairs: &[(TaskId, TaskId)],
    inputs: &Inputs<'_>,
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
    let (done_a, done_b) = (
        Written::of(a.program, inputs)?,
        Written::of(b.program, inputs)?,
    );
    let mut partner: IndexVec<TaskId, Option<TaskId>> =
        a.program.tasks.iter().map(|_| None).collect();
    for (x, y) in pairs {
        partner[*x] = Some(*y);
    }
    let order = a.timeline.order.iter();
    // Parts of another size are of another cut: they hold other elements, not other numbers.
    let first = order
        .filter_map(|x| Some((*x, partner[*x]?)))
        .find(|(x, y)| {
            let (of_x, of_y) = (done_a.tasks[*x], done_b.tasks[*y]);
            of_x.size == of_y.size && of_x.numbers != of_y.numbers
        });
    let first = first.map(|(x, y)| first_difference(a.program, b.program, (x, y), inputs));
    Ok(Values {
        first: first.transpose()?,
        outputs: outputs((a.program, &done_a), (b.program, &done_b)),
        notes: [("A", a.program), ("B", b.program)]
            .into_iter()
            .filter_map(|(name, program)| errors_note(name, program))
            .collect(),
    })
}

/// What to say of a program that a run would refuse.
fn errors_note(name: &str, program: &Program<'_>) -> Option<String> {
    let found = chipless_verify::verify(program).err()?;
    let errors = found.iter().filter(|finding| finding.is_error()).count();
    (errors > 0).then(|| {
        format!(
            "{name} has {} (chipless check): these are its numbers in one order of its tasks, others may give others",
            count(errors, "error")
        )
    })
}

/// What two tasks write, beside each other.
fn first_difference(
    a: &Program<'_>,
    b: &Program<'_>,
    (x, y): (TaskId, TaskId),
    inputs: &Inputs<'_>,
) -> Result<FirstDifference, Failure> {
    let left = numbers(a, x, inputs)?;
    let right = numbers(b, y, inputs)?;
    let differing = left.iter().zip(&right).find(|((_, l), (_, r))| l != r);
    let buffer = differing.or(left.iter().zip(&right).next());
    let largest = |l: &[f64], r: &[f64]| {
        let pairs = l.iter().zip(r);
        pairs.map(|(l, r)| difference(*l, *r)).fold(0.0, f64::max)
    };
    let all = left.iter().zip(&right);
    Ok(FirstDifference {
        task_a: a.task_name(x),
        task_b: b.task_name(y),
        buffer: buffer.map_or_else(String::new, |((name, _), _)| name.clone()),
        max_abs: all
            .map(|((_, l), (_, r))| largest(l, r))
            .fold(0.0, f64::max),
    })
}

/// The outputs that both programs have: those of the second beside those of the first.
fn outputs(
    (a, of_a): (&Program<'_>, &Written),
    (b, of_b): (&Program<'_>, &Written),
) -> Vec<Comparison> {
    let (a, b) = (&a.interface.outputs, &b.interface.outputs);
    let both = a.iter().zip(&of_a.outputs);
    both.filter_map(|(port, expected)| {
        let at = Port::position(b, &port.name)?;
        let other = b.get(at).filter(|other| other.shape == port.shape)?;
        let bits = port.element.bits();
        let numbers = |first: u64, slots: &mut [f64]| {
            // It begins at a multiple of 8 elements.
            let from = usize::try_from(first * bits / 8).ok()?;
            let bytes = expected.get(from..)?;
            let count = (slots.len() as u64 * bits).div_ceil(8) as usize;
            decode_f64(port.element, &bytes[..count.min(bytes.len())], slots).ok()
        };
        let reference = Reference {
            numbers: &numbers,
            scale: None,
            tolerance: Tolerance::of(other.element, 1.0),
        };
        let (comparison, _) = Comparison::of(other, of_b.outputs.get(at)?, &reference)?;
        Some(comparison)
    })
    .collect()
}

/// Runs a program and shows the storage after each task; gives it as it is in the end.
fn execute(
    program: &Program<'_>,
    inputs: &Inputs<'_>,
    mut see: impl FnMut(TaskId, &Storage<'_>),
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut storage = Storage::new(&program.buffers, inputs.limits).map_err(no_room)?;
    let data = |index, port: &Port, _| inputs.read(index, port);
    fill(program, data, inputs.seed, &mut storage)?;
    let mut observe = |task: TaskId, storage: &Storage<'_>| see(task, storage);
    let outcome = chipless_sim::run(
        &Verified::assume(program),
        &mut Functional::new(&mut storage).observed_by(&mut observe),
    );
    outcome.end.map_err(|stop| stopped(program, &stop))?;
    let ports = program.interface.outputs.iter();
    ports
        .map(|port| Ok(output(port, &storage)?.to_vec()))
        .collect()
}

/// The bytes of an access in order, run by run.
fn runs<'s>(access: &'s Access, storage: &'s Storage<'_>) -> impl Iterator<Item = &'s [u8]> {
    let bytes = storage.bytes(access.buffer);
    let fits = access.pattern.fits(bytes.len() as u64);
    let starts = fits.then(|| access.pattern.runs()).into_iter().flatten();
    starts.map(move |at| &bytes[at as usize..][..access.pattern.run as usize])
}

/// What a program writes.
struct Written {
    tasks: IndexVec<TaskId, OfTask>,
    /// The bytes of each output.
    outputs: Vec<Vec<u8>>,
}

/// What a task writes: a number for its bytes by access, and one for its numbers.
#[derive(Clone, Copy, Default)]
struct OfTask {
    size: u64,
    numbers: u64,
}

impl Written {
    fn of(program: &Program<'_>, inputs: &Inputs<'_>) -> Result<Written, Failure> {
        let mut tasks: IndexVec<TaskId, OfTask> =
            program.tasks.iter().map(|_| OfTask::default()).collect();
        let outputs = execute(program, inputs, |task, storage| {
            let (mut size, mut numbers) = (FxHasher::default(), FxHasher::default());
            writes(program, task, &mut |access, element| {
                let bytes: Vec<u8> = runs(access, storage).flatten().copied().collect();
                size.write_usize(bytes.len());
                match element.and_then(|element| floats(element, &bytes)) {
                    // Both zeros are one number, and so are all NaNs.
                    Some(floats) => floats.iter().for_each(|n| {
                        numbers.write_u64(if n.is_nan() { f64::NAN } else { n + 0.0 }.to_bits());
                    }),
                    None => numbers.write(&bytes),
                }
            });
            tasks[task] = OfTask {
                size: size.finish(),
                numbers: numbers.finish(),
            };
        })?;
        Ok(Written { tasks, outputs })
    }
}

/// The write accesses of a task, with the type of their elements where the kernel or the interface says it.
fn writes(
    program: &Program<'_>,
    task: TaskId,
    visit: &mut dyn FnMut(&Access, Option<ElementType>),
) {
    let kernel = program.kernel(task);
    let mut typed: Vec<(Access, ElementType)> = Vec::new();
    kernel.results(&mut |access, element| typed.push((access, element)));
    kernel.accesses(&mut |access| {
        if access.direction != Direction::Write {
            return;
        }
        let known = typed.iter().find(|(other, _)| *other == access);
        let tensor = || kernel.tensor(&access).map(|(element, _)| element);
        let mut ports = program.interface.outputs.iter();
        let port = || ports.find(|p| p.buffer == access.buffer).map(|p| p.element);
        let element = known.map(|(_, element)| *element);
        visit(&access, element.or_else(tensor).or_else(port));
    });
}

/// Bytes as numbers, where they are floating-point ones.
fn floats(element: ElementType, bytes: &[u8]) -> Option<Vec<f64>> {
    let is_float = element.kind() == Kind::Float;
    is_float.then(|| decoded(element, bytes)).flatten()
}

fn decoded(element: ElementType, bytes: &[u8]) -> Option<Vec<f64>> {
    let count = (bytes.len() as u64 * 8).checked_div(element.bits())? as usize;
    let mut numbers = vec![0.0; count];
    decode_f64(element, bytes, &mut numbers).ok()?;
    Some(numbers)
}

/// What one task writes: of each access the buffer and the numbers, as the kernel or the interface types them, bytes where nobody does.
fn numbers(
    program: &Program<'_>,
    wanted: TaskId,
    inputs: &Inputs<'_>,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    let mut found = Vec::new();
    execute(program, inputs, |task, storage| {
        if task != wanted {
            return;
        }
        writes(program, task, &mut |access, element| {
            let bytes: Vec<u8> = runs(access, storage).flatten().copied().collect();
            let plain = || bytes.iter().map(|byte| f64::from(*byte)).collect();
            let numbers = element.and_then(|element| decoded(element, &bytes));
            let name = program.buffers[access.buffer].name.clone();
            found.push((name, numbers.unwrap_or_else(plain)));
        });
    })?;
    Ok(found)
}
