//! The life of a debugged program: what runs, what stops, what the client is told.

use super::variables::Handles;
use super::{Launch, Link, Request};
use crate::command::Console;
use crate::debugger::{Reason, Stop};
use chipless_model::{QueueId, TaskId};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// The number of the listing among the sources.
pub(super) const LISTING: i64 = 1;

/// A client's view of a debugger.
pub(super) struct Adapter<'c, 'p, 'a, W> {
    pub(super) console: Console<'p, 'a>,
    link: &'c mut Link<W>,
    stop_on_entry: bool,
    /// The file.
    pub(super) path: PathBuf,
    /// Servers of queues, in the order of their numbers as threads, from 1.
    pub(super) threads: Vec<(QueueId, u32)>,
    pub(super) handles: Handles,
    /// Numbers of the breakpoints of each source, of functions and of data.
    pub(super) lines: BTreeMap<String, Vec<u32>>,
    pub(super) functions: Vec<u32>,
    pub(super) data: Vec<u32>,
    /// The thread of the last stop.
    thread: i64,
    ended: bool,
}

/// What follows an answer.
pub(super) enum Then {
    Nothing,
    Stopped(Stop),
    Entry,
    Terminated,
    Gone,
}

impl<'c, 'p, 'a, W: Write> Adapter<'c, 'p, 'a, W> {
    pub(super) fn new(
        launch: &Launch,
        console: Console<'p, 'a>,
        link: &'c mut Link<W>,
    ) -> Adapter<'c, 'p, 'a, W> {
        let queues = console.debugger.session.program().queues.iter_enumerated();
        let threads = queues.flat_map(|(id, queue)| (0..queue.servers).map(move |n| (id, n)));
        let path = PathBuf::from(&launch.program);
        Adapter {
            threads: threads.collect(),
            console,
            link,
            stop_on_entry: launch.stop_on_entry,
            path: std::path::absolute(&path).unwrap_or(path),
            handles: Handles::default(),
            lines: BTreeMap::new(),
            functions: Vec::new(),
            data: Vec::new(),
            thread: 1,
            ended: false,
        }
    }

    /// Answers requests until the client disconnects.
    pub(super) fn serve(mut self) -> io::Result<()> {
        while let Some(request) = self.link.next()? {
            let then = if let Some(then) = self.movement(&request) {
                self.handles.clear();
                then?
            } else {
                let body = self.look(&request.command, &request.arguments);
                self.link.answer(&request, body)?;
                Then::Nothing
            };
            match then {
                Then::Nothing => {}
                Then::Stopped(stop) => self.stopped(&stop)?,
                Then::Entry => {
                    let body = json!({"reason": "entry", "allThreadsStopped": true, "threadId": self.here()});
                    self.link.event("stopped", &body)?;
                }
                Then::Terminated => {
                    self.ended = true;
                    self.link.event("exited", &json!({"exitCode": 0}))?;
                    self.link.event("terminated", &json!({}))?;
                }
                Then::Gone => {
                    if !self.ended {
                        self.link.event("terminated", &json!({}))?;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Requests that move, start or end the program: answered before they are done. `None`: it is none of them.
    fn movement(&mut self, request: &Request) -> Option<io::Result<Then>> {
        let thread = request.arguments["threadId"].as_i64();
        let queue = thread.and_then(|id| self.threads.get(usize::try_from(id - 1).ok()?));
        let queue = queue.map(|(queue, _)| *queue);
        let session = &self.console.debugger.session;
        let at = session.at();
        type Move<'m> = (usize, bool);
        let target: Move<'_> = match request.command.as_str() {
            "continue" => (session.effects(), true),
            "reverseContinue" => (0, false),
            "stepIn" => (at + 1, true),
            "stepBack" => (at.saturating_sub(1), false),
            "next" => {
                let Some(queue) = queue else {
                    let text = format!("expected the number of a thread, found {thread:?}");
                    return Some(self.refuse(request, text));
                };
                (self.console.debugger.after(queue, 1), true)
            }
            "stepOut" => match self.end_of_layer(thread) {
                Ok(end) => (end, true),
                Err(text) => return Some(self.refuse(request, text)),
            },
            _ => return self.life(request),
        };
        Some(self.go(request, target))
    }

    fn refuse(&mut self, request: &Request, text: String) -> io::Result<Then> {
        self.link.answer(request, Err(text)).map(|()| Then::Nothing)
    }

    fn go(&mut self, request: &Request, (target, forward): (usize, bool)) -> io::Result<Then> {
        self.link
            .answer(request, Ok(json!({"allThreadsContinued": true})))?;
        let steps = ["stepIn", "next", "stepOut"].contains(&&*request.command);
        let interrupt = self.console.interrupt.clone();
        let debugger = &mut self.console.debugger;
        if steps {
            debugger.seen();
        }
        Ok(Then::Stopped(if forward {
            debugger.run_to(target, Reason::Step, &interrupt)
        } else {
            debugger.run_back_to(target, Reason::Step, &interrupt)
        }))
    }

    /// Requests about the life of the program.
    fn life(&mut self, request: &Request) -> Option<io::Result<Then>> {
        let ok = |adapter: &mut Self, then: Then| {
            Some(adapter.link.answer(request, Ok(json!({}))).map(|()| then))
        };
        match request.command.as_str() {
            "configurationDone" | "restart" => {
                if request.command == "restart" {
                    self.console.debugger.restart();
                }
                if self.stop_on_entry {
                    return ok(self, Then::Entry);
                }
                let go = (self.console.debugger.session.effects(), true);
                Some(self.go(request, go))
            }
            "pause" => {
                // If it ended a run, that stop has been told; if nothing ran, nothing is to be ended.
                self.console.interrupt.store(false, Ordering::Relaxed);
                ok(self, Then::Nothing)
            }
            "terminate" => ok(self, Then::Terminated),
            "disconnect" => ok(self, Then::Gone),
            _ => None,
        }
    }

    /// The end of the layer that a thread is at.
    fn end_of_layer(&self, thread: Option<i64>) -> Result<usize, String> {
        let session = &self.console.debugger.session;
        let current = thread
            .and_then(|id| self.task_of(id))
            .or_else(|| session.current());
        let task = current.ok_or("expected a current task, found the end of the run")?;
        let layer = session.program().layer(task).ok_or_else(|| {
            let name = session.program().task_name(task);
            format!("expected a task of a layer, found {name}, which names none")
        })?;
        let layers = self.console.debugger.layers();
        Ok(layers.get(layer).map_or(0, |(_, last)| last + 1))
    }

    /// The thread of the current task; at the end, the one of the last stop.
    fn here(&mut self) -> i64 {
        let session = &self.console.debugger.session;
        if let Some(task) = session.current() {
            let at = (
                session.program().tasks[task].queue,
                session.timeline().tasks[task].server,
            );
            if let Some(index) = self.threads.iter().position(|own| *own == at) {
                self.thread = index as i64 + 1;
            }
        }
        self.thread
    }

    /// The task that a thread runs or runs next.
    pub(super) fn task_of(&self, thread: i64) -> Option<TaskId> {
        let session = &self.console.debugger.session;
        let (queue, server) = *self.threads.get(usize::try_from(thread - 1).ok()?)?;
        let (program, timeline) = (session.program(), session.timeline());
        let mut coming = timeline.order.iter().skip(session.at());
        let is_own = |task: &&TaskId| {
            program.tasks[**task].queue == queue && timeline.tasks[**task].server == server
        };
        coming.find(is_own).copied().or_else(|| {
            // One that never comes to its effect.
            let servers = session.moment().servers.iter();
            let mut own = servers.filter(|at| at.queue == queue && at.server == server);
            own.next()?.task
        })
    }

    fn stopped(&mut self, stop: &Stop) -> io::Result<()> {
        let reason = match stop.reason {
            Reason::Breakpoint if stop.breakpoints.iter().any(|n| self.functions.contains(n)) => {
                "function breakpoint"
            }
            Reason::Breakpoint => "breakpoint",
            Reason::Watch => "data breakpoint",
            Reason::Catch => "exception",
            Reason::Step => "step",
            Reason::Start => "entry",
            Reason::End | Reason::Interrupt => "pause",
        };
        let text = match stop.reason {
            Reason::End => "end",
            Reason::Start => "start",
            _ => &stop.detail,
        };
        let body: Json = json!({
            "reason": reason,
            "description": stop.detail,
            "text": text,
            "threadId": self.here(),
            "allThreadsStopped": true,
            "hitBreakpointIds": stop.breakpoints,
        });
        self.link.event("stopped", &body)
    }
}
