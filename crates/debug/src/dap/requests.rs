//! Requests that look, and those that say where to stop.

use super::adapter::{Adapter, LISTING};
use super::variables::Children;
use crate::debugger::Catch;
use crate::expression::{Expression, Value};
use crate::touches::Kind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chipless_model::TaskId;
use serde_json::{Value as Json, json};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Bytes that one request reads at most.
const READ: u64 = 1 << 24;
/// Frames of a stack: the task, and what it is a part of.
const FRAMES: i64 = 4;

impl<W: Write> Adapter<'_, '_, '_, W> {
    /// Answers a request that does not move.
    pub(super) fn look(&mut self, command: &str, arguments: &Json) -> Result<Json, String> {
        match command {
            "threads" => Ok(self.list_threads()),
            "stackTrace" => self.stack(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => {
                let handle = integer(arguments, "variablesReference")?;
                let variables = self.handles.list(&self.console, handle)?;
                Ok(json!({"variables": page(variables, arguments)}))
            }
            "evaluate" => self.evaluate(arguments),
            "readMemory" => self.read_memory(arguments),
            "source" => self.source_text(arguments),
            "loadedSources" => Ok(json!({"sources": self.sources()})),
            "setBreakpoints" => self.set_lines(arguments),
            "setFunctionBreakpoints" => self.set_functions(arguments),
            "setExceptionBreakpoints" => Ok(self.set_exceptions(arguments)),
            "dataBreakpointInfo" => self.data_info(arguments),
            "setDataBreakpoints" => self.set_data(arguments),
            "exceptionInfo" => {
                let stop = self.console.debugger.last();
                let id = stop.detail.split([':', '(']).next().unwrap_or_default();
                Ok(json!({
                    "exceptionId": id.trim(),
                    "description": stop.detail,
                    "breakMode": "always",
                }))
            }
            other => Err(format!(
                "expected a request that chipless answers, found {other}"
            )),
        }
    }

    fn list_threads(&self) -> Json {
        let program = self.console.debugger.session.program();
        let each = self.threads.iter().zip(1..).map(|((queue, server), id)| {
            json!({"id": id, "name": crate::command::server_name(program, *queue, *server)})
        });
        json!({"threads": each.collect::<Vec<Json>>()})
    }

    /// The text that the program's places point into, if it is one.
    fn is_text(&self) -> bool {
        let program = self.console.debugger.session.program();
        !program.text.as_str().is_empty()
    }

    fn sources(&self) -> Vec<Json> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let listing = json!({
            "name": format!("{name} (listing)"),
            "sourceReference": LISTING,
            "origin": "chipless list",
        });
        if self.is_text() {
            return vec![
                json!({"name": name, "path": self.path.display().to_string()}),
                listing,
            ];
        }
        vec![listing]
    }

    /// Source, line and column of a task.
    fn place(&self, task: TaskId) -> (Json, u32, u32) {
        let program = self.console.debugger.session.program();
        let position = program.place(task).position.filter(|_| self.is_text());
        let (source, (line, column)) = match position {
            Some(position) => (self.sources().swap_remove(0), position),
            None => (
                self.sources().pop().unwrap_or_default(),
                (self.console.listing().lines[task], 1),
            ),
        };
        (source, line, column)
    }

    fn stack(&self, arguments: &Json) -> Result<Json, String> {
        let thread = integer(arguments, "threadId")?;
        if thread < 1 || thread > self.threads.len() as i64 {
            return Err(format!(
                "expected a thread from 1 to {}, found {thread}",
                self.threads.len()
            ));
        }
        let program = self.console.debugger.session.program();
        let id = |level: i64| thread * FRAMES + level;
        let mut frames = Vec::new();
        if let Some(task) = self.task_of(thread) {
            let (source, line, column) = self.place(task);
            let mut frame = |name: String, hint: &str| {
                frames.push(json!({
                    "id": id(frames.len() as i64),
                    "name": name,
                    "source": source,
                    "line": line,
                    "column": column,
                    "presentationHint": hint,
                }));
            };
            let operation = program.kernel(task).operation();
            frame(format!("{} {operation}", program.task_name(task)), "normal");
            if let Some(part) = program.layer(task).or(program.tasks[task].label.as_deref()) {
                frame(part.to_owned(), "label");
            }
        } else {
            frames.push(json!({"id": id(0), "name": "end", "line": 0, "column": 0, "presentationHint": "label"}));
        }
        let total = frames.len();
        let start = arguments["startFrame"].as_u64().unwrap_or(0) as usize;
        let levels = arguments["levels"]
            .as_u64()
            .filter(|n| *n > 0)
            .unwrap_or(u64::MAX) as usize;
        let frames: Vec<Json> = frames.into_iter().skip(start).take(levels).collect();
        Ok(json!({"stackFrames": frames, "totalFrames": total}))
    }

    fn scopes(&mut self, arguments: &Json) -> Result<Json, String> {
        let task = self.task_of(integer(arguments, "frameId")? / FRAMES);
        let kinds = [
            ("Operands", Children::Operands(task), "locals"),
            ("Syncs", Children::Syncs(task), "registers"),
            ("Buffers", Children::Buffers, "globals"),
        ];
        let scopes = kinds.map(|(name, children, hint)| {
            json!({
                "name": name,
                "presentationHint": hint,
                "variablesReference": self.handles.give(children),
                "expensive": name == "Buffers",
            })
        });
        Ok(json!({"scopes": scopes}))
    }

    fn evaluate(&mut self, arguments: &Json) -> Result<Json, String> {
        let text = string(arguments, "expression")?;
        let debugger = &self.console.debugger;
        let parsed = debugger.parse(text);
        let value = parsed.clone().and_then(|parsed| debugger.value(&parsed));
        let value = match value {
            Ok(value) => value,
            Err(error) if arguments["context"] == "repl" => {
                // Commands that look are answered as well.
                let answer = self.console.ask(text).map_err(|_| error)?;
                return Ok(json!({"result": answer.text.trim_end(), "variablesReference": 0}));
            }
            Err(error) => return Err(error),
        };
        let mut body = json!({"result": value.text(), "variablesReference": 0});
        if let Ok(Expression::Place(place)) = parsed {
            body["memoryReference"] = debugger.text_of(&place).into();
        }
        if let Value::Tensor(tensor) = value {
            body["type"] = tensor.form().into();
            if tensor.len() > 1 {
                let count = tensor.len();
                let children = Children::Elements(Arc::new(tensor), 0, count);
                body["variablesReference"] = self.handles.give(children).into();
            }
        }
        Ok(body)
    }

    fn read_memory(&self, arguments: &Json) -> Result<Json, String> {
        let reference = string(arguments, "memoryReference")?;
        let count = integer(arguments, "count")?;
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let count = u64::try_from(count).ok().filter(|n| *n <= READ);
        let count = count.ok_or_else(|| format!("expected a count from 0 to {READ}"))?;
        let debugger = &self.console.debugger;
        let place = debugger.place(reference)?;
        let bytes = debugger.read(&place)?.bytes;
        let size = bytes.len() as u64;
        let Ok(start) = u64::try_from(offset) else {
            return Ok(json!({"address": reference, "unreadableBytes": count}));
        };
        let (start, end) = (start.min(size), start.saturating_add(count).min(size));
        let data = STANDARD.encode(&bytes[start as usize..end as usize]);
        Ok(json!({
            "address": format!("{start:#x}"),
            "data": data,
            "unreadableBytes": count - (end - start),
        }))
    }

    fn source_text(&self, arguments: &Json) -> Result<Json, String> {
        let inner = arguments["source"]["sourceReference"].as_i64();
        let reference = inner.or(arguments["sourceReference"].as_i64()).unwrap_or(0);
        if reference == LISTING {
            return Ok(json!({"content": self.console.listing().text, "mimeType": "text/plain"}));
        }
        if self.is_text() {
            let program = self.console.debugger.session.program();
            return Ok(json!({"content": program.text.as_str(), "mimeType": "text/plain"}));
        }
        Err(format!(
            "expected sourceReference {LISTING}, the listing, found {reference}"
        ))
    }

    /// The tasks at a line of a source, or at the first line behind it that has any; that line.
    fn tasks_at(&self, source: &Json, line: u32) -> Result<(u32, Vec<TaskId>), String> {
        let program = self.console.debugger.session.program();
        let nothing = || format!("no task stands at line {line} or behind it");
        if source["sourceReference"].as_i64().unwrap_or(0) == LISTING {
            let listing = self.console.listing();
            let task = listing.at(line).ok_or_else(nothing)?;
            return Ok((listing.lines[task], vec![task]));
        }
        let path = source["path"]
            .as_str()
            .map(|path| std::path::absolute(Path::new(path)));
        let is_own = path.is_some_and(|path| path.is_ok_and(|path| path == self.path));
        if !is_own || !self.is_text() {
            return Err(format!("the program is not made of this source: {source}"));
        }
        let lines = program
            .tasks
            .indices()
            .filter_map(|task| Some((program.place(task).position?.0, task)));
        let behind: Vec<(u32, TaskId)> = lines.filter(|(own, _)| *own >= line).collect();
        let first = behind
            .iter()
            .map(|(own, _)| *own)
            .min()
            .ok_or_else(nothing)?;
        let here = behind.into_iter().filter(|(own, _)| *own == first);
        Ok((first, here.map(|(_, task)| task).collect()))
    }

    fn set_lines(&mut self, arguments: &Json) -> Result<Json, String> {
        let source = &arguments["source"];
        let reference = source["sourceReference"].as_i64().unwrap_or(0);
        let path = source["path"].as_str().unwrap_or_default();
        let key = if reference > 0 {
            reference.to_string()
        } else {
            path.to_owned()
        };
        for number in self.lines.remove(&key).unwrap_or_default() {
            self.console.debugger.remove(number);
        }
        let (mut numbers, mut answers) = (Vec::new(), Vec::new());
        for asked in array(arguments, "breakpoints") {
            let line = u32::try_from(integer(asked, "line")?).unwrap_or(u32::MAX);
            let set = self.tasks_at(source, line).and_then(|(line, tasks)| {
                let text = format!("line {line}");
                let condition = condition_of(asked);
                let number = self
                    .console
                    .debugger
                    .add_break_on(&text, &tasks, condition)?;
                Ok((number, line))
            });
            answers.push(match set {
                Ok((number, line)) => {
                    numbers.push(number);
                    json!({"id": number, "verified": true, "line": line})
                }
                Err(error) => json!({"verified": false, "message": error, "line": line}),
            });
        }
        self.lines.insert(key, numbers);
        Ok(json!({"breakpoints": answers}))
    }

    fn set_functions(&mut self, arguments: &Json) -> Result<Json, String> {
        for number in std::mem::take(&mut self.functions) {
            self.console.debugger.remove(number);
        }
        let mut answers = Vec::new();
        for asked in array(arguments, "breakpoints") {
            let name = string(asked, "name")?;
            let (target, within) = crate::command::condition(name);
            let condition = condition_of(asked).or(within);
            let set = self.console.debugger.add_break(target, condition, false);
            self.functions.extend(set.as_ref().ok());
            answers.push(verified(set));
        }
        Ok(json!({"breakpoints": answers}))
    }

    fn set_exceptions(&mut self, arguments: &Json) -> Json {
        let debugger = &mut self.console.debugger;
        for number in debugger.catches().values().copied().collect::<Vec<u32>>() {
            debugger.remove(number);
        }
        let mut answers = Vec::new();
        for filter in array(arguments, "filters") {
            let catch = Catch::ALL.into_iter().find(|catch| filter == catch.name());
            let set = catch.map(|catch| debugger.add_catch(catch));
            answers.push(verified(set.ok_or_else(|| {
                format!("expected nan, inf, fault or deadlock, found {filter}")
            })));
        }
        json!({"breakpoints": answers})
    }

    fn data_info(&self, arguments: &Json) -> Result<Json, String> {
        let name = string(arguments, "name")?;
        let debugger = &self.console.debugger;
        let handle = arguments["variablesReference"]
            .as_i64()
            .filter(|handle| *handle > 0);
        let text = match handle.map(|handle| self.handles.get(handle)).transpose()? {
            Some(Children::Operands(Some(task))) => {
                format!("{}.{name}", debugger.session.program().task_name(task))
            }
            _ => name.to_owned(),
        };
        match debugger.place(&text) {
            Ok(place) => {
                let text = debugger.text_of(&place);
                Ok(json!({
                    "dataId": text,
                    "description": text,
                    "accessTypes": ["read", "write", "readWrite"],
                    "canPersist": true,
                }))
            }
            Err(error) => Ok(json!({"dataId": null, "description": error})),
        }
    }

    fn set_data(&mut self, arguments: &Json) -> Result<Json, String> {
        for number in std::mem::take(&mut self.data) {
            self.console.debugger.remove(number);
        }
        let mut answers = Vec::new();
        for asked in array(arguments, "breakpoints") {
            let id = string(asked, "dataId")?;
            let kind = match asked["accessType"].as_str() {
                Some("read") => Kind::Read,
                Some("readWrite") => Kind::Access,
                _ => Kind::Write,
            };
            let set = self
                .console
                .debugger
                .add_watch(id, kind, condition_of(asked));
            self.data.extend(set.as_ref().ok());
            answers.push(verified(set));
        }
        Ok(json!({"breakpoints": answers}))
    }
}

fn verified(set: Result<u32, String>) -> Json {
    match set {
        Ok(number) => json!({"id": number, "verified": true}),
        Err(error) => json!({"verified": false, "message": error}),
    }
}

fn condition_of(asked: &Json) -> Option<&str> {
    asked["condition"]
        .as_str()
        .filter(|condition| !condition.trim().is_empty())
}

fn integer(arguments: &Json, name: &str) -> Result<i64, String> {
    let found = &arguments[name];
    found
        .as_i64()
        .ok_or_else(|| format!("expected a whole number {name}, found {found}"))
}

fn string<'j>(arguments: &'j Json, name: &str) -> Result<&'j str, String> {
    let found = &arguments[name];
    found
        .as_str()
        .ok_or_else(|| format!("expected a text {name}, found {found}"))
}

fn array<'j>(arguments: &'j Json, name: &str) -> &'j [Json] {
    arguments[name].as_array().map_or(&[], Vec::as_slice)
}

/// The variables that a client asks for, if it asks for some.
fn page(variables: Vec<Json>, arguments: &Json) -> Vec<Json> {
    let start = arguments["start"].as_u64().unwrap_or(0) as usize;
    let count = arguments["count"]
        .as_u64()
        .filter(|n| *n > 0)
        .unwrap_or(u64::MAX) as usize;
    variables.into_iter().skip(start).take(count).collect()
}
