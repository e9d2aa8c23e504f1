//! The search: the schedule that it writes, and what the replay or the model says of it.

use super::compared::compared;
use super::told::{self, Told};
use super::{Arguments, interrupted, refused, short};
use crate::failure::Failure;
use crate::files;
use chipless_schedule::compare::{Comparison, Prepared};
use chipless_schedule::emit::{self, SegmentTime, Written};
use chipless_schedule::front::Front;
use chipless_schedule::machine::Machine;
use chipless_schedule::model::Impossible;
use chipless_schedule::reading::Network;
use chipless_schedule::report::{Figures, ModelFigures, ReplayDram, ReplayFloor, RunnerUp};
use chipless_schedule::search::{self, Found, Options, Progress};
use chipless_schedule::tree::Tree;
use cpu_time::ProcessTime;
use std::path::Path;
use std::time::Duration;

/// What is searched for, and where it goes.
pub(super) struct Job<'s> {
    pub(super) arguments: &'s Arguments,
    pub(super) read: &'s Network,
    pub(super) machine: &'s Machine,
    pub(super) options: &'s Options,
    pub(super) output: &'s Path,
}

/// What a search found.
pub(super) struct Searched {
    pub(super) found: Found,
    /// Processor time of the search.
    pub(super) worked: Duration,
    /// Trees that were replayed.
    pub(super) replayed: Option<u64>,
    pub(super) replay: Option<Figures>,
    pub(super) layer_by_layer: Option<Figures>,
    pub(super) floor: Option<ReplayFloor>,
    pub(super) dram: Option<ReplayDram>,
    pub(super) runner_up: Option<RunnerUp>,
    pub(super) comparison: Option<Comparison>,
    /// For the page.
    pub(super) segments: Vec<SegmentTime>,
}

/// How far above the floor a schedule is, at most, that no search makes much faster.
const NEAR: f64 = 1.05;

impl Searched {
    pub(super) fn is_near_floor(&self) -> bool {
        let floor = self.floor.as_ref().map(|floor| floor.delay_cycles as f64);
        let delay = self.replay.as_ref().map(|figures| figures.delay_cycles);
        matches!((delay, floor), (Some(delay), Some(floor)) if delay < floor * NEAR)
    }
}

impl Job<'_> {
    /// Searches by the replay, and writes the schedule with addresses and the order of DRAM.
    pub(super) fn replayed(
        &self,
        lowered: &Written,
        prepared: Option<&Prepared<'_>>,
    ) -> Result<Searched, Failure> {
        let Job {
            arguments, machine, ..
        } = *self;
        let front = &self.read.front;
        let network = &front.network;
        let short = |error| short(&arguments.network, &error);
        let mut told = Told::new(self.options.objective, machine.clock);
        let began = ProcessTime::now();
        let (mut found, best) = emit::searched(
            lowered,
            (network, machine),
            self.options,
            interrupted(),
            &mut |progress: &Progress| told.say(progress),
        )
        .map_err(short)?;
        let worked = began.elapsed();
        (found.tree, found.cost) = (best.tree, best.cost);
        files::write(self.output, &[best.text.as_bytes()])?;
        told::shorter_in_file(arguments, machine, best.replay.1, best.dram.all);
        let segments = match arguments.report {
            Some(_) => emit::segment_times(lowered, (network, machine), &found.tree, &best.text)
                .map_err(short)?,
            None => Vec::new(),
        };
        let comparison = match prepared {
            Some(prepared) => compared(arguments, prepared, front, &best.text)?,
            None => None,
        };
        let replayed = |(energy, delay)| Figures::new(energy, delay as f64);
        Ok(Searched {
            found,
            worked,
            replayed: Some(best.replayed),
            replay: Some(replayed(best.replay)),
            layer_by_layer: best.layer_by_layer.map(replayed),
            floor: Some(best.floor.into()),
            dram: Some(best.dram.into()),
            runner_up: best.runner_up.map(|(cost, run)| RunnerUp {
                model: ModelFigures::from(&cost),
                replay: Some(replayed(run)),
            }),
            comparison,
            segments,
        })
    }

    /// Searches by SET's model, and writes the schedule as SET does.
    pub(super) fn modelled(&self) -> Result<Searched, Failure> {
        let Job {
            arguments, machine, ..
        } = *self;
        let front = &self.read.front;
        let mut told = Told::new(self.options.objective, machine.clock);
        let began = ProcessTime::now();
        let found = search::search(
            &front.network,
            machine,
            self.options,
            interrupted(),
            &mut |progress: &Progress| told.say(progress),
        )
        .map_err(|impossible| refused(&arguments.network, &impossible))?;
        let worked = began.elapsed();
        write_set_dialect(arguments, self.output, front, machine, &found.tree)?;
        let runner_up = found.runner_up.as_ref().map(|cost| RunnerUp {
            model: ModelFigures::from(cost),
            replay: None,
        });
        Ok(Searched {
            found,
            worked,
            replayed: None,
            replay: None,
            layer_by_layer: None,
            floor: None,
            dram: None,
            runner_up,
            comparison: None,
            segments: Vec::new(),
        })
    }
}

/// Why a schedule is not written.
enum Stop {
    Write(Failure),
    Tree(Impossible),
}

impl From<Impossible> for Stop {
    fn from(impossible: Impossible) -> Stop {
        Stop::Tree(impossible)
    }
}

/// Writes a tree's schedule as SET does, a piece at a time.
pub(super) fn write_set_dialect(
    arguments: &Arguments,
    path: &Path,
    front: &Front,
    machine: &Machine,
    tree: &Tree,
) -> Result<(), Failure> {
    let mut file = files::Growing::create(path.to_owned())?;
    emit::set_dialect(&front.network, machine, tree, &mut |text| {
        file.put(text.as_bytes()).map_err(Stop::Write)
    })
    .map_err(|stop| match stop {
        Stop::Write(failure) => failure,
        Stop::Tree(impossible) => refused(&arguments.network, &impossible),
    })?;
    file.finish()?;
    Ok(())
}
