//! What the screen shows of the present: made once for each stop, drawn as often as the terminal asks.

use crate::command::{
    Console, described, operands, server_name, shown, sync_text, syncs_of, waiting,
};
use crate::place::role;
use crate::tensor::Tensor;
use chipless_model::{TaskId, Time};

/// Effects before and behind the present that lists and timeline reach.
const REACH: usize = 100;

/// The present.
pub(super) struct View {
    /// `effect 3 of 412  9.1 µs`.
    pub(super) place: String,
    pub(super) now: Time,
    /// Servers of queues with the spans of their tasks near the present.
    pub(super) lanes: Vec<Lane>,
    /// Effects near the present: number, text, whether something stops there.
    pub(super) effects: Vec<(usize, String, bool)>,
    pub(super) at: usize,
    /// Operands of the current task, a line each.
    pub(super) operands: Vec<String>,
    /// The one that is shown large.
    pub(super) operand: usize,
    pub(super) tensor: Option<Tensor>,
    pub(super) syncs: Vec<String>,
    /// The number of a breakpoint at the current task.
    pub(super) breakpoint: Option<u32>,
}

/// A server of a queue.
pub(super) struct Lane {
    pub(super) name: String,
    /// Start and end of each task, and whether it is the current one.
    pub(super) spans: Vec<(Time, Time, bool)>,
    pub(super) is_current: bool,
}

impl View {
    pub(super) fn of(console: &Console<'_, '_>, operand: Option<usize>) -> View {
        let debugger = &console.debugger;
        let session = &debugger.session;
        let (program, at) = (session.program(), session.at());
        let near = at.saturating_sub(REACH)..(at + REACH).min(session.effects());
        let stops = |effect: usize| debugger.breakpoints().values().any(|b| b.stops_at(effect));
        let mut effects: Vec<(usize, String, bool)> = Vec::new();
        for effect in near.clone() {
            if let Some(task) = session.task(effect) {
                effects.push((effect, described(program, task), stops(effect)));
            }
        }
        let end = session.effects();
        if near.end == end {
            effects.push((end, "end".to_owned(), false));
        }
        let current = session.current();
        let (operands, operand, tensor) = View::operands(console, current, operand);
        let here = debugger.breakpoints().iter().find(|(_, b)| b.stops_at(at));
        View {
            place: match session.time() {
                Some(time) => format!("effect {at} of {end}  {time}"),
                None => format!("effect {at} of {end}"),
            },
            now: session.instant(),
            lanes: View::lanes(console, near),
            effects,
            at,
            operands,
            operand,
            tensor,
            syncs: View::syncs(console, current),
            breakpoint: here.map(|(number, _)| *number),
        }
    }

    fn lanes(console: &Console<'_, '_>, near: std::ops::Range<usize>) -> Vec<Lane> {
        let session = &console.debugger.session;
        let (program, timeline) = (session.program(), session.timeline());
        let servers = program.queues.iter_enumerated();
        let servers = servers.flat_map(|(id, q)| (0..q.servers).map(move |n| (id, n)));
        let mut lanes: Vec<((_, u32), Lane)> = Vec::new();
        for (queue, server) in servers {
            let lane = Lane {
                name: server_name(program, queue, server),
                spans: Vec::new(),
                is_current: false,
            };
            lanes.push(((queue, server), lane));
        }
        for effect in near {
            let Some(task) = session.task(effect) else {
                continue;
            };
            let record = timeline.tasks[task];
            let key = (program.tasks[task].queue, record.server);
            if let Ok(at) = lanes.binary_search_by_key(&key, |(key, _)| *key) {
                let lane = &mut lanes[at].1;
                let is_current = Some(task) == session.current();
                lane.is_current |= is_current;
                lane.spans.push((record.start, record.end, is_current));
            }
        }
        lanes
            .into_iter()
            .map(|(_, lane)| lane)
            .filter(|lane| !lane.spans.is_empty())
            .collect()
    }

    fn operands(
        console: &Console<'_, '_>,
        task: Option<TaskId>,
        chosen: Option<usize>,
    ) -> (Vec<String>, usize, Option<Tensor>) {
        let program = console.debugger.session.program();
        let Some(task) = task else {
            return (Vec::new(), 0, None);
        };
        let all = operands(program, task);
        // Who does not choose sees a tensor, not the description of the task.
        let first = all.iter().position(|(_, place)| {
            !role(program, place).is_some_and(|(_, is_description)| is_description)
        });
        let chosen = chosen.unwrap_or(first.unwrap_or(0));
        let (mut lines, mut tensor) = (Vec::new(), None);
        for (index, (name, place)) in all.into_iter().enumerate() {
            let (place, value, read) = shown(console, &place);
            lines.push(format!("{name}  {value}  {place}"));
            if index == chosen {
                tensor = read;
            }
        }
        (lines, chosen, tensor)
    }

    fn syncs(console: &Console<'_, '_>, task: Option<TaskId>) -> Vec<String> {
        let session = &console.debugger.session;
        let program = session.program();
        let own = task.map(|task| syncs_of(program, task)).unwrap_or_default();
        let each = own.into_iter().filter_map(|id| {
            let state = sync_text(program, *session.moment().syncs.get(id)?);
            let waiting = waiting(console, id);
            let who = if waiting.is_empty() {
                String::new()
            } else {
                format!("; waited for by {}", waiting.join(", "))
            };
            Some(format!("{}  {state}{who}", program.syncs[id].name))
        });
        each.collect()
    }
}
