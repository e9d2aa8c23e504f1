//! A graph that is executed part by part, and regular parts piece by piece.

use super::block::{self, Columns, Memory};
use super::plan::Plan;
use super::token::{self, Channels};
use super::{Rows, Settings, Stop, Stream};
use crate::graph::Graph;
use chipless_model::Limits;
use std::ops::Range;
use std::sync::OnceLock;

/// A graph with what it takes to execute it.
#[derive(Debug)]
pub(crate) struct Fabric<'g> {
    graph: &'g Graph,
    settings: Settings,
    limits: Limits,
    /// Made when something is executed: most programs are only looked at.
    plan: OnceLock<Result<Plan<'g>, Stop>>,
}

impl<'g> Fabric<'g> {
    pub(crate) fn new(graph: &'g Graph, settings: Settings, limits: &Limits) -> Fabric<'g> {
        Fabric {
            graph,
            settings,
            limits: limits.clone(),
            plan: OnceLock::new(),
        }
    }

    pub(crate) fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Executes parts on a stream for each of their input ports; for each of their output ports, by its index, what comes out. With `rows`
    /// only these, of parts that are regular; `memory` is then what instructions remember, before and behind them.
    pub(crate) fn run(
        &self,
        parts: Range<usize>,
        inputs: &[Stream<'_>],
        rows: Option<&Range<usize>>,
        memory: &mut [Memory],
    ) -> Result<Vec<(usize, Rows)>, Stop> {
        let plan = self.plan.get_or_init(|| {
            Plan::new(self.graph, self.settings.slices_as_ranges).map_err(Stop::Refused)
        });
        let plan = plan.as_ref().map_err(Clone::clone)?;
        let mut budget = self.limits.memory_bytes;
        let mut columns = Columns::default();
        let mut channels = None;
        let mut found = Vec::new();
        let mut memory = memory;
        for number in parts {
            let part = plan.part(number);
            let collected = if rows.is_some() || part.is_regular(inputs) {
                let all = 0..part.rows(inputs) as usize;
                let (own, rest) = memory.split_at_mut(part.memories().count());
                memory = rest;
                let rows = rows.cloned().unwrap_or(all);
                block::run(part, inputs, rows, own, &mut columns, true, &mut budget)
            } else {
                let channels = channels.get_or_insert_with(|| Channels::new(plan));
                token::run(plan, part, inputs, channels, true, &mut budget, 0)
                    .map(|ran| ran.outputs)
            }
            .map_err(|stop| stop.at(&self.limits))?;
            found.extend(collected.into_iter().map(|out| (out.index, out.rows)));
        }
        Ok(found)
    }
}
