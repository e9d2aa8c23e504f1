//! The verifier on real programs, and on the same programs with one fault each.
//!
//! Operators whose result is wrong by definition must be found every time. A dropped wait may be harmless, when other
//! waits order the same tasks: there the rate is bounded from below.

use chipless_model::{
    Access, Action, Condition, Direction, Fault, Finding, Kernel, Limits, Program, Role, Signal,
    Storage, Wait,
};
use chipless_npu::structures::Layout;
use chipless_npu::{Document, Image, Options};
use std::path::PathBuf;

fn fixtures() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/npu");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the fixtures are there")
        .map(|entry| entry.expect("a readable entry").path().join("program.blob"))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    assert!(found.len() > 10, "only {} fixtures", found.len());
    found
}

/// Calls back with each program.
fn each(mut with: impl FnMut(&str, &mut Program<'_>)) {
    for path in fixtures() {
        let bytes = std::fs::read(&path).expect("a readable fixture");
        let document = Document::read(&bytes).expect("a blob");
        let image = Image::load(&document, &Limits::default()).expect("an image");
        let mut program =
            chipless_npu::lower(&document, &image, &Options::default()).expect("a program");
        let name = path
            .parent()
            .and_then(|p| p.file_name())
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        with(&name, &mut program);
    }
}

fn errors(program: &Program<'_>) -> Vec<Finding> {
    chipless_verify::verify(program)
        .err()
        .unwrap_or_default()
        .into_iter()
        .filter(Finding::is_error)
        .collect()
}

#[test]
fn good_programs_are_clean() {
    each(|name, program| {
        let findings = errors(program);
        assert!(findings.is_empty(), "{name}: {}", findings[0]);
        let warnings = chipless_verify::verify(program).map_or(usize::MAX, |v| v.warnings().len());
        assert!(warnings <= 3, "{name} has {warnings} warnings");
    });
}

/// Every tenth place of a table, so that the test stays quick.
fn places(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by((len / 10).max(1))
}

#[test]
fn a_signal_that_is_dropped_or_given_to_another_barrier_is_found() {
    each(|name, program| {
        let barriers: Vec<usize> = (0..program.signals.len())
            .filter(|i| {
                matches!(
                    program.signals[*i].action,
                    Action::Produce(_) | Action::Consume(_)
                )
            })
            .collect();
        for index in places(barriers.len()).map(|i| barriers[i]) {
            let before = program.signals[index];
            // A subtraction of nothing from a counter that nobody looks at: no signal.
            let sync = program.syncs.push(chipless_model::Sync {
                name: "nothing".into(),
                kind: chipless_model::SyncKind::Counter(chipless_model::Counter::FLAG),
            });
            program.signals[index] = Signal {
                action: Action::Add(sync, 0),
                ..before
            };
            assert!(
                !errors(program).is_empty(),
                "{name}: signal {index} dropped ({before:?})"
            );
            program.syncs.pop();
            let others = program.syncs.len() as u32;
            if others < 2 {
                program.signals[index] = before;
                continue;
            }
            let turn = |sync: chipless_model::SyncId| {
                chipless_model::SyncId::from_raw((sync.raw() + 1) % others)
            };
            program.signals[index].action = match before.action {
                Action::Produce(sync) => Action::Produce(turn(sync)),
                Action::Consume(sync) => Action::Consume(turn(sync)),
                other => other,
            };
            assert!(
                !errors(program).is_empty(),
                "{name}: signal {index} to another barrier ({before:?})"
            );
            program.signals[index] = before;
        }
    });
}

#[test]
fn a_count_that_is_off_by_one_is_found() {
    each(|name, program| {
        for index in places(program.configurations.len()) {
            let id = chipless_model::ConfigurationId::from_usize(index);
            let before = program.configurations[id].clone();
            for (producers, by) in [(true, 1i64), (true, -1), (false, 1), (false, -1)] {
                let configuration = &mut program.configurations[id];
                let count = if producers {
                    &mut configuration.producers
                } else {
                    &mut configuration.consumers
                };
                let Some(changed) = count.checked_add_signed(by as i32) else {
                    continue;
                };
                *count = changed;
                // The end of a program may have somebody outside who waits for it.
                let is_end = program.completion == Some(id) && !producers;
                assert!(
                    is_end || !errors(program).is_empty(),
                    "{name}: configuration {index}, producers {producers}, by {by}"
                );
                program.configurations[id] = before.clone();
            }
        }
    });
}

#[test]
fn a_buffer_that_is_too_small_is_found() {
    each(|name, program| {
        let mut ends = vec![0i128; program.buffers.len()];
        for task in program.tasks.indices() {
            program.kernel(task).accesses(&mut |access| {
                if access.certainty == chipless_model::Certainty::Exact {
                    let end = &mut ends[access.buffer.index()];
                    *end = (*end).max(access.pattern.extent().end);
                }
            });
        }
        for (index, end) in ends.into_iter().enumerate().filter(|(_, end)| *end > 0) {
            let id = chipless_model::BufferId::from_usize(index);
            let before = program.buffers[id].size;
            program.buffers[id].size = end as u64 - 1;
            assert!(
                !errors(program).is_empty(),
                "{name}: {} one byte too small",
                program.buffers[id].name
            );
            program.buffers[id].size = before;
        }
    });
}

#[test]
fn an_input_that_does_not_arrive_is_found() {
    each(|name, program| {
        // An input whose bytes are not there at the start is as good as one that a dropped transfer should have brought.
        let inputs: Vec<_> = program.interface.inputs.iter().map(|p| p.buffer).collect();
        for input in inputs {
            program.buffers[input].role = Role::Scratch;
            let codes: Vec<_> = errors(program).iter().map(|f| f.rule.code).collect();
            assert!(codes.contains(&"read-before-write"), "{name}: {codes:?}");
            program.buffers[input].role = Role::Input;
        }
    });
}

/// A task that reads what it read and writes nothing.
#[derive(Debug)]
struct Reads(Vec<Access>);

impl Kernel for Reads {
    fn operation(&self) -> std::borrow::Cow<'static, str> {
        "read".into()
    }
    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.0.iter().cloned().for_each(visit);
    }
    fn execute(&self, _: &mut Storage<'_>) -> Result<(), Fault> {
        Ok(())
    }
}

/// What the memory holds in the place of a result is mostly an older tensor: bytes that have been written. Where it is a complete one,
/// nothing tells.
#[test]
fn results_that_are_not_written_are_found() {
    let (mut dropped, mut found, mut remnants) = (0, 0, 0);
    each(|_, program| {
        let workloads: Vec<_> = program
            .tasks
            .indices()
            .filter(|task| {
                program.queues[program.tasks[*task].queue]
                    .name
                    .starts_with("dpu")
            })
            .collect();
        for task in places(workloads.len()).map(|i| workloads[i]) {
            let mut reads = Vec::new();
            program.kernel(task).accesses(&mut |access| {
                if access.direction == Direction::Read {
                    reads.push(access);
                }
            });
            let kernel = program.tasks[task].kernel;
            program.tasks[task].kernel = program.kernels.push(Box::new(Reads(reads)));
            let codes: Vec<_> = errors(program).iter().map(|f| f.rule.code).collect();
            dropped += 1;
            found += usize::from(!codes.is_empty());
            remnants += usize::from(codes == ["stale-read"]);
            program.tasks[task].kernel = kernel;
            program.kernels.pop();
        }
    });
    assert!(
        remnants > 3,
        "only {remnants} of them are known by remnants alone"
    );
}

/// A workload takes its weight table from where results are that a later transfer replaces: the race is the cause of what the table holds.
#[test]
fn a_race_is_told_beside_what_it_leaves_in_a_weight_table() {
    let fixture = fixtures()
        .into_iter()
        .find(|path| path.to_string_lossy().contains("spill_ddr_t1"));
    let mut bytes = std::fs::read(fixture.expect("the fixture")).expect("a readable fixture");
    let document = Document::read(&bytes).expect("a blob");
    let (variants, _) = document.section("task.dpu.variant.0.0").expect("workloads");
    let at = variants.offset as usize + 10 * 224;
    let at = at
        + chipless_npu::dpu::register(Layout::Npu4000, "weight_start")
            .expect("a register")
            .offset;
    bytes[at..at + 4].copy_from_slice(&0x68400u32.to_le_bytes());
    let document = Document::read(&bytes).expect("a blob");
    let image = Image::load(&document, &Limits::default()).expect("an image");
    let program = chipless_npu::lower(&document, &image, &Options::default()).expect("a program");
    let codes: Vec<_> = errors(&program).iter().map(|f| f.rule.code).collect();
    for code in ["npu-weight-table-computed", "race-read-write"] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
}

/// Many waits of real programs are redundant: the first DPU task of a tile waits for a transfer whose completion also releases
/// its piece, and later tasks of a queue wait for what the first one has waited for. Dropping those is harmless.
#[test]
fn most_waits_that_are_dropped_are_found() {
    let (mut dropped, mut found) = (0, 0);
    each(|_, program| {
        // A counter that is always high enough stands for no wait.
        let always = program.syncs.push(chipless_model::Sync {
            name: "always".into(),
            kind: chipless_model::SyncKind::Counter(chipless_model::Counter::FLAG),
        });
        for index in places(program.waits.len()) {
            let before = program.waits[index];
            program.waits[index] = Wait {
                sync: always,
                condition: Condition::AtLeast(0),
            };
            dropped += 1;
            found += usize::from(!errors(program).is_empty());
            program.waits[index] = before;
        }
    });
    assert!(
        found * 10 >= dropped * 7,
        "{found} of {dropped} dropped waits are found"
    );
}
