//! How much the verifier finds: good programs with one change each, against what runs of the changed program show.
//!
//! The tasks of each fixture keep their waits, signals and accesses, and get a simple effect: what they write is a mix of
//! everything that they read. A mutant is *shown to be faulty* if a run hangs or breaks a protocol, if two orders give
//! different outputs, or if outputs depend on bytes that nothing has written. All of these must be found. The table of
//! the documentation is checked against what is measured here, where all rounds are asked for.

use chipless_model::{
    Access, Action, Certainty, Condition, Counter, Direction, Fault, Finding, IndexVec, Kernel,
    KernelId, Limits, Loop, Pattern, Program, Role, Severity, Storage, SyncId, SyncKind, TaskId,
};
use chipless_rounds::are_all;
use chipless_sim::{Functional, Order, Verified, run_in};
use std::borrow::Cow;
use std::fmt::Write;

/// Mutants of each operator in each fixture, at most.
const PLACES: usize = 8;
/// Random orders of each mutant.
const SEEDS: u64 = 4;
/// Bytes that the tasks of a fixture touch together, at most: larger ones take too long.
const BYTES: u64 = 1 << 20;

/// What a task touches, with a simple effect.
#[derive(Clone, Debug)]
struct Mix {
    seed: u64,
    accesses: Vec<Access>,
}

impl Mix {
    fn exact(&self, direction: Direction) -> impl Iterator<Item = &Access> {
        self.accesses
            .iter()
            .filter(move |a| a.direction == direction && a.certainty == Certainty::Exact)
    }
}

impl Kernel for Mix {
    fn operation(&self) -> Cow<'static, str> {
        "mix".into()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.accesses.iter().cloned().for_each(visit);
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let mut sum = self.seed;
        for access in self.exact(Direction::Read) {
            let bytes = storage.bytes(access.buffer);
            for start in access.pattern.runs() {
                let run = &bytes[start as usize..][..access.pattern.run as usize];
                sum = run.iter().fold(sum, |sum, byte| {
                    (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
                });
            }
        }
        for access in self.exact(Direction::Write) {
            let bytes = storage.bytes_mut(access.buffer);
            for start in access.pattern.runs() {
                for byte in &mut bytes[start as usize..][..access.pattern.run as usize] {
                    sum = sum.rotate_left(5).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    *byte = (sum >> 56) as u8;
                }
            }
        }
        Ok(())
    }
}

/// A program and the effects of its tasks, apart so that these can be changed.
type Mixes = IndexVec<KernelId, Mix>;

/// Calls back with the program of each fixture that is small enough.
fn each(mut with: impl FnMut(&mut Program<'_>, &Mixes)) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/npu");
    let entries = std::fs::read_dir(folder).expect("the fixtures are there");
    let mut paths: Vec<_> = entries
        .map(|e| e.expect("an entry").path().join("program.blob"))
        .filter(|p| p.exists())
        .collect();
    paths.sort();
    for path in paths {
        let bytes = std::fs::read(path).expect("a readable fixture");
        let document = chipless_npu::Document::read(&bytes).expect("a blob");
        let image = chipless_npu::Image::load(&document, &Limits::default()).expect("an image");
        let mut program = chipless_npu::lower(&document, &image, &chipless_npu::Options::default())
            .expect("a program");
        // What is held up here may be held up for ever.
        program.meant.clear();
        let mixes: Mixes = program
            .kernels
            .iter_enumerated()
            .map(|(id, kernel)| mix(id, &**kernel))
            .collect();
        let touched: u64 = mixes
            .iter()
            .flat_map(|m| &m.accesses)
            .filter_map(|a| a.pattern.bytes())
            .sum();
        if touched > BYTES {
            continue;
        }
        install(&mut program, &mixes);
        // Programs that read padding depend on it here, where nothing cancels it.
        let is_note = |finding: &Finding| finding.rule.severity == Severity::Note;
        if chipless_verify::verify(&program)
            .is_ok_and(|verified| verified.warnings().iter().all(is_note))
        {
            with(&mut program, &mixes);
        }
    }
}

fn mix(id: KernelId, kernel: &dyn Kernel) -> Mix {
    let mut accesses = Vec::new();
    kernel.accesses(&mut |access| accesses.push(access));
    Mix {
        seed: u64::from(id.raw()),
        accesses,
    }
}

fn install(program: &mut Program<'_>, mixes: &Mixes) {
    program.kernels = mixes
        .iter()
        .map(|mix| Box::new(mix.clone()) as Box<dyn Kernel>)
        .collect();
}

/// What the host gets after a run, with this byte in all memory that nobody has written; `None` if it does not end well.
fn outputs(program: &Program<'_>, order: Order, unwritten: u8) -> Option<Vec<u8>> {
    let mut storage = Storage::new(&program.buffers, &Limits::default()).expect("memory");
    for (id, buffer) in program.buffers.iter_enumerated() {
        let known = buffer.initial.len();
        match buffer.role {
            Role::Input => storage
                .bytes_mut(id)
                .iter_mut()
                .enumerate()
                .for_each(|(i, byte)| *byte = i as u8),
            Role::Scratch | Role::Output | Role::Profile => {
                storage.bytes_mut(id)[known..].fill(unwritten);
            }
            Role::Constant | Role::State => {}
        }
    }
    run_in(
        &Verified::assume(program),
        order,
        &mut Functional::new(&mut storage),
    )
    .end
    .ok()?;
    let ports = program.interface.outputs.iter();
    Some(
        ports
            .flat_map(|p| storage.bytes(p.buffer)[..p.bytes().unwrap_or(0) as usize].to_vec())
            .collect(),
    )
}

fn is_shown_faulty(program: &Program<'_>) -> bool {
    let Some(timed) = outputs(program, Order::Timed, 0) else {
        return true;
    };
    outputs(program, Order::Timed, 0xa5).as_ref() != Some(&timed)
        || (0..SEEDS).any(|seed| outputs(program, Order::Random(seed), 0).as_ref() != Some(&timed))
}

fn is_found(program: &Program<'_>) -> bool {
    match chipless_verify::verify(program) {
        // Transfers that look alike and race may write the same bytes; here they do not.
        Ok(verified) => verified
            .warnings()
            .iter()
            .any(|f| f.rule.code == "race-duplicate-write"),
        Err(findings) => findings.iter().any(Finding::is_error),
    }
}

#[derive(Debug, Default)]
struct Rate {
    mutants: u32,
    faulty: u32,
    faulty_found: u32,
    found: u32,
}

impl Rate {
    fn take(&mut self, program: &Program<'_>) {
        let found = is_found(program);
        // Runs of what is found are of use to the table alone.
        let faulty = (!found || are_all()) && is_shown_faulty(program);
        self.mutants += 1;
        self.faulty += u32::from(faulty);
        self.found += u32::from(found);
        self.faulty_found += u32::from(faulty && found);
    }
}

/// Some places of a table, evenly.
fn places(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(len.div_ceil(PLACES).max(1))
}

type Operator = fn(&mut Program<'_>, &Mixes, &mut Rate);

const OPERATORS: &[(&str, Operator)] = &[
    ("drop a wait", drop_waits),
    ("drop a signal", drop_signals),
    ("give a signal to another barrier", misdirect_signals),
    ("change a count by one", change_counts),
    ("reuse a barrier early", reuse_early),
    ("swap two tasks of a queue", swap_tasks),
    ("shift an access by a byte", |program, mixes, rate| {
        change_accesses(program, mixes, rate, |p| p.offset += 1);
    }),
    ("shift an access by its length", |program, mixes, rate| {
        change_accesses(program, mixes, rate, |p| p.offset += p.run);
    }),
    ("lengthen an access by a byte", |program, mixes, rate| {
        change_accesses(program, mixes, rate, |p| p.run += 1);
    }),
    ("repeat an access once more", |program, mixes, rate| {
        change_accesses(program, mixes, rate, repeat);
    }),
];

fn drop_waits(program: &mut Program<'_>, _: &Mixes, rate: &mut Rate) {
    let always = program.syncs.push(chipless_model::Sync {
        name: "always".into(),
        kind: SyncKind::Counter(Counter::FLAG),
    });
    for index in places(program.waits.len()) {
        let before = program.waits[index];
        program.waits[index] = chipless_model::Wait {
            sync: always,
            condition: Condition::AtLeast(0),
        };
        rate.take(program);
        program.waits[index] = before;
    }
    program.syncs.pop();
}

fn of_barriers(program: &Program<'_>) -> Vec<usize> {
    let is_of_barrier = |i: &usize| {
        matches!(
            program.signals[*i].action,
            Action::Produce(_) | Action::Consume(_)
        )
    };
    (0..program.signals.len()).filter(is_of_barrier).collect()
}

fn drop_signals(program: &mut Program<'_>, _: &Mixes, rate: &mut Rate) {
    let nothing = program.syncs.push(chipless_model::Sync {
        name: "nothing".into(),
        kind: SyncKind::Counter(Counter::FLAG),
    });
    let signals = of_barriers(program);
    for index in places(signals.len()).map(|i| signals[i]) {
        let before = program.signals[index];
        program.signals[index].action = Action::Add(nothing, 0);
        rate.take(program);
        program.signals[index] = before;
    }
    program.syncs.pop();
}

fn misdirect_signals(program: &mut Program<'_>, _: &Mixes, rate: &mut Rate) {
    let others = program.syncs.len() as u32;
    let next = |sync: SyncId| SyncId::from_raw((sync.raw() + 1) % others);
    let signals = of_barriers(program);
    for index in places(signals.len())
        .map(|i| signals[i])
        .filter(|_| others > 1)
    {
        let before = program.signals[index];
        program.signals[index].action = match before.action {
            Action::Produce(sync) => Action::Produce(next(sync)),
            Action::Consume(sync) => Action::Consume(next(sync)),
            other => other,
        };
        rate.take(program);
        program.signals[index] = before;
    }
}

fn change_counts(program: &mut Program<'_>, _: &Mixes, rate: &mut Rate) {
    for index in places(program.configurations.len()) {
        let id = chipless_model::ConfigurationId::from_usize(index);
        let before = program.configurations[id].clone();
        for (producers, by) in [(true, 1), (true, -1), (false, 1), (false, -1)] {
            // Who waits for the end of the program is not one of its tasks.
            if program.completion == Some(id) && !producers {
                continue;
            }
            let configuration = &mut program.configurations[id];
            let count = if producers {
                &mut configuration.producers
            } else {
                &mut configuration.consumers
            };
            let Some(changed) = count.checked_add_signed(by) else {
                continue;
            };
            *count = changed;
            rate.take(program);
            program.configurations[id] = before.clone();
        }
    }
}

/// One physical barrier serves for two that follow each other, whether the first use is over by then or not.
fn reuse_early(program: &mut Program<'_>, _: &Mixes, rate: &mut Rate) {
    let single = |sync: SyncId| match &program.syncs[sync].kind {
        SyncKind::Barrier { preloaded, .. }
            if preloaded.len() == 1 && program.completion != Some(preloaded[0]) =>
        {
            Some((sync, preloaded[0]))
        }
        _ => None,
    };
    let mut uses: Vec<_> = program.syncs.indices().filter_map(single).collect();
    uses.sort_by_key(|(_, configuration)| program.configurations[*configuration].number);
    let pairs: Vec<_> = uses
        .windows(2)
        .chain(uses.windows(4))
        .map(|uses| (uses[0], uses[uses.len() - 1]))
        .collect();
    for ((kept, first), (given_up, second)) in places(pairs.len()).map(|i| pairs[i]) {
        let before = (
            program.waits.clone(),
            program.signals.clone(),
            program.syncs.clone(),
        );
        program
            .waits
            .iter_mut()
            .filter(|wait| wait.sync == given_up)
            .for_each(|wait| wait.sync = kept);
        for signal in &mut program.signals {
            match &mut signal.action {
                Action::Produce(sync) | Action::Consume(sync) if *sync == given_up => *sync = kept,
                _ => {}
            }
        }
        program.configurations[second].barrier = kept;
        for (sync, held) in [(kept, vec![first, second]), (given_up, Vec::new())] {
            program.syncs[sync].kind = SyncKind::Barrier {
                preloaded: held,
                depth: None,
            };
        }
        rate.take(program);
        program.configurations[second].barrier = given_up;
        (program.waits, program.signals, program.syncs) = before;
    }
}

fn swap_tasks(program: &mut Program<'_>, _: &Mixes, rate: &mut Rate) {
    let pairs: Vec<TaskId> = program
        .pieces
        .iter()
        .flat_map(|piece| {
            piece
                .tasks()
                .zip(piece.tasks().skip(1))
                .map(|(first, _)| first)
        })
        .collect();
    for first in places(pairs.len()).map(|i| pairs[i]) {
        let swap = |program: &mut Program<'_>| program.tasks.swap(first, first + 1usize);
        swap(program);
        rate.take(program);
        swap(program);
    }
}

fn repeat(pattern: &mut Pattern) {
    match pattern.loops.last_mut() {
        Some(last) => last.count += 1,
        None => pattern.loops.push(Loop {
            count: 2,
            stride: pattern.run as i64,
        }),
    }
}

fn change_accesses(
    program: &mut Program<'_>,
    mixes: &Mixes,
    rate: &mut Rate,
    change: fn(&mut Pattern),
) {
    let exact = |mix: &Mix| -> Vec<usize> {
        mix.accesses
            .iter()
            .enumerate()
            .filter(|(_, a)| a.certainty == Certainty::Exact)
            .map(|(i, _)| i)
            .collect()
    };
    let all: Vec<(KernelId, usize)> = mixes
        .iter_enumerated()
        .flat_map(|(id, mix)| exact(mix).into_iter().map(move |i| (id, i)))
        .collect();
    for (id, index) in places(all.len()).map(|i| all[i]) {
        let mut mutant = mixes[id].clone();
        change(&mut mutant.accesses[index].pattern);
        program.kernels[id] = Box::new(mutant);
        rate.take(program);
        program.kernels[id] = Box::new(mixes[id].clone());
    }
}

#[test]
fn what_runs_show_is_found_and_the_table_says_how_much() {
    let mut table = String::new();
    let mut missed = Vec::new();
    for (name, operator) in OPERATORS {
        let mut rate = Rate::default();
        each(|program, mixes| operator(program, mixes, &mut rate));
        let Rate {
            mutants,
            faulty,
            faulty_found,
            found,
        } = rate;
        _ = writeln!(
            table,
            "| {name} | {mutants} | {faulty} | {faulty_found} | {found} |"
        );
        if faulty_found < faulty {
            missed.push(*name);
        }
    }
    assert!(
        missed.is_empty(),
        "faulty mutants are missed by {missed:?}:\n{table}"
    );
    if !are_all() {
        return;
    }
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/verifier.md"
    ))
    .expect("docs/verifier.md");
    assert!(
        page.contains(&table),
        "docs/verifier.md should have this table:\n{table}"
    );
}

#[test]
fn unchanged_programs_are_not_found() {
    let mut programs = 0;
    each(|program, _| {
        assert!(!is_shown_faulty(program) && !is_found(program));
        programs += 1;
    });
    assert!(programs > 5, "only {programs} programs are small enough");
}
