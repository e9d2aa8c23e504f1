//! Simulations, and how long a program takes alone.

use crate::failure::{Failure, FailureKind};
use crate::run::stopped;
use chipless_device::{
    ArrivalKind, Arrivals, CLOCKS, Context, Engine, FileProgram, Governor, Program, Record,
    Resolved, Setup, Simulated, Source, Stream, StreamSetup, simulate,
};

/// How long a program of a file takes at each clock.
pub(super) fn alone_of_file(
    program: Program<'_, '_, '_>,
    slower: &[FileProgram<'_, '_>],
) -> [u64; CLOCKS] {
    std::array::from_fn(|clock| match (program, clock.checked_sub(1)) {
        (Program::File(program), None) => program.latency,
        (_, Some(slow)) => slower.get(slow).map_or(0, |program| program.latency),
        (Program::Synthetic(_), None) => 0,
    })
}

/// Simulates a setup.
pub(super) fn go<'s, 'a>(
    setup: &'s Setup<'s, '_, 'a>,
    resolved: &'s Resolved,
    compute: Option<chipless_device::Compute<'s, 'a>>,
    observe: Option<&'s mut dyn FnMut(&Record)>,
) -> Result<Simulated<'a>, Failure> {
    let simulated = simulate(setup, &resolved.figures, compute, observe).map_err(|halted| {
        let programs = setup.streams.iter().find_map(|s| match s.program {
            Program::File(program) => Some(program),
            Program::Synthetic(_) => None,
        });
        match programs {
            Some(program) => stopped(program.verified.program(), &halted.stop),
            None => Failure::new(FailureKind::Fault, "", format_args!("{halted:?}")),
        }
    })?;
    if simulated.stuck > 0 {
        let text = format!(
            "{} jobs are stuck: nothing can move and they have not ended",
            simulated.stuck
        );
        return Err(Failure::new(FailureKind::Deadlock, "", text));
    }
    Ok(simulated)
}

/// The latency of one job of a stream on the idle device, in picoseconds; `None` where it does not come to its end.
pub(super) fn one_job(
    setup: &Setup<'_, '_, '_>,
    number: usize,
    figures: &chipless_device::Figures,
    mut observe: Option<&mut dyn FnMut(&Record)>,
) -> Result<Option<u64>, Failure> {
    let of = setup.streams[number];
    let stream = Stream {
        arrivals: Arrivals {
            kind: ArrivalKind::InFlight(1),
            offset: 0,
            count: Some(1),
        },
        ..of.stream.clone()
    };
    // The time of one job does not tell when its context has a doorbell.
    let contexts = setup.contexts.iter().map(|context| Context {
        granted: None,
        revoked: None,
        ..context.clone()
    });
    let contexts: Vec<Context> = contexts.collect();
    let alone = Setup {
        contexts: &contexts,
        streams: vec![StreamSetup {
            stream: &stream,
            ..of
        }],
        agents: &[],
        duration: None,
        with_tasks: observe.is_some(),
        with_traffic: false,
        ..setup.clone()
    };
    let resolved = Resolved {
        figures: figures.clone(),
        program: Vec::new(),
        changed: Vec::new(),
    };
    // For no longer than this simulation.
    let observe = observe
        .as_mut()
        .map(|observe| &mut **observe as &mut dyn FnMut(&Record));
    let simulated = go(&alone, &resolved, None, observe)?;
    Ok((simulated.done(0) == 1).then(|| simulated.mean(0) as u64))
}

/// The latency of one job of a program of a file, alone on the idle device, in picoseconds.
pub(super) fn one_job_of_file(
    program: &FileProgram<'_, '_>,
    figures: &chipless_device::Figures,
) -> Result<u64, Failure> {
    let contexts = [Context {
        name: "alone".to_owned(),
        process: 1,
        band: 1,
        priority: 0,
        percentage: None,
        granted: None,
        revoked: None,
    }];
    let stream = Stream {
        name: "alone".to_owned(),
        context: 0,
        program: Source::File(String::new()),
        span: chipless_spu::yaml::Span::default(),
        arrivals: Arrivals {
            kind: ArrivalKind::InFlight(1),
            offset: 0,
            count: Some(1),
        },
        deadline: None,
        engine: None,
    };
    let setup = Setup {
        contexts: &contexts,
        agents: &[],
        streams: vec![StreamSetup {
            stream: &stream,
            program: Program::File(program),
            engine: Engine::Nn,
            slower: &[],
            alone: alone_of_file(Program::File(program), &[]),
        }],
        duration: None,
        seed: 0,
        with_tasks: false,
        with_traffic: false,
    };
    // It is there at the full clock alone.
    let mut figures = figures.clone();
    figures.power.governor = Governor::Full;
    figures.power.thermal_period = 0;
    Ok(one_job(&setup, 0, &figures, None)?.unwrap_or(0))
}
