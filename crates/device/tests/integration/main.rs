//! The device from the outside: a workload in, exact times out.

mod agents;
mod chains;
mod fifos;
mod files;
mod memory;
mod paths;
mod power;
mod rings;
mod scheduling;
mod translation;
mod workloads;
mod worst;

use chipless_device::{
    CLOCKS, Figures, Program, Record, Setup, Simulated, Source, StreamSetup, Workload, read,
    simulate,
};

/// An ideal device of six tiles and two places on the NN engine.
fn ideal() -> Figures {
    Figures {
        tiles: 6,
        nn_slots: 2,
        ..Figures::default()
    }
}

fn workload(text: &str) -> Workload {
    read(text, |path| match path {
        "gpu.csv" => Ok(agents::TRACE.to_owned()),
        _ => Err(format!("is not there: {path}")),
    })
    .unwrap_or_else(|finding| panic!("{finding}"))
}

/// Simulates a workload of synthetic programs: its jobs in the order of their ends.
fn jobs(text: &str, figures: &Figures) -> Vec<Record> {
    let mut records = Vec::new();
    with(
        text,
        figures,
        Some(&mut |record: &Record| records.push(record.clone())),
        |_| (),
    );
    records
}

/// Simulates a workload of synthetic programs, and looks at what was counted.
fn with<T>(
    text: &str,
    figures: &Figures,
    observe: Option<&mut dyn FnMut(&Record)>,
    then: impl FnOnce(&Simulated<'_>) -> T,
) -> T {
    with_times(text, figures, [0; CLOCKS], observe, then)
}

/// The same, where programs take so long alone at each clock.
fn with_times<T>(
    text: &str,
    figures: &Figures,
    alone: [u64; CLOCKS],
    observe: Option<&mut dyn FnMut(&Record)>,
    then: impl FnOnce(&Simulated<'_>) -> T,
) -> T {
    let workload = workload(text);
    with_setup(&workload, alone, |setup| {
        let observe: Option<&mut dyn FnMut(&Record)> = match observe {
            Some(observe) => Some(&mut *observe),
            None => None,
        };
        let simulated =
            simulate(setup, figures, None, observe).expect("no program of a file can fail");
        assert_eq!(simulated.stuck, 0);
        then(&simulated)
    })
}

fn job<'r>(records: &'r [Record], stream: &str, index: u64) -> &'r Record {
    let is_it = |r: &&Record| r.stream == stream && r.index == index;
    records
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no job {stream} {index}"))
}

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;

/// The setup of a workload of synthetic programs, which take so long alone at each clock.
fn with_setup<T>(
    workload: &Workload,
    alone: [u64; CLOCKS],
    then: impl FnOnce(&Setup<'_, '_, '_>) -> T,
) -> T {
    let streams = workload.streams.iter().map(|stream| {
        let Source::Synthetic(program) = &stream.program else {
            panic!("a synthetic program is expected")
        };
        StreamSetup {
            stream,
            program: Program::Synthetic(program),
            engine: program.engine,
            slower: &[],
            alone,
        }
    });
    let setup = Setup {
        contexts: &workload.contexts,
        agents: &workload.agents,
        streams: streams.collect(),
        duration: workload.duration,
        seed: workload.seed,
        with_tasks: true,
        with_traffic: true,
    };
    then(&setup)
}
