//! Commands that look.

use super::{Answer, Console, nothing};
use crate::debugger::Debugger;
use crate::expression::{self, Value};
use crate::place::{Place, Selection, accesses, is_open, role, where_text};
use crate::tensor::Tensor;
use crate::touches::{Bytes, Kind};
use chipless::{disk, npy};
use chipless_model::{Action, Direction, ElementType, Program, SyncId, TaskId, Time};
use chipless_report::{clean, joint, wait};
use chipless_sim::SyncState;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::path::Path;

/// Elements that `x` shows at most.
const EXAMINED: u64 = 1 << 16;
/// Elements in a line of `x`.
const ROW: usize = 8;
/// Bytes of an operand whose numbers are summed up unasked, at most.
const SUMMARISED: u64 = 64 << 20;

/// Where the debugger stands.
pub(super) fn position(console: &Console<'_, '_>) -> Answer {
    let session = &console.debugger.session;
    let program = session.program();
    let (at, effects, time) = (session.at(), session.effects(), session.time());
    let task = session.current();
    let here = task.map_or("end".to_owned(), |task| described(program, task));
    let shown = time.map_or(String::new(), |time| format!("  {time}"));
    let text = format!("effect {at} of {effects}{shown}  {here}\n");
    let of = |then: &dyn Fn(TaskId) -> Option<String>| task.and_then(then);
    Answer::said(text)
        .with("effect", at)
        .with("effects", effects)
        .with("task", of(&|task| Some(program.task_name(task))))
        .with(
            "queue",
            of(&|task| Some(program.queues[program.tasks[task].queue].name.clone())),
        )
        .with(
            "operation",
            of(&|task| Some(program.kernel(task).operation().into_owned())),
        )
        .with("time_ns", time.map(Time::ns))
        .with("layer", of(&|task| program.layer(task).map(str::to_owned)))
}

/// `dpu0[3] conv 3x3  layer conv_3`.
pub(crate) fn described(program: &Program<'_>, task: TaskId) -> String {
    let operation = program.kernel(task).operation();
    let mut text = format!("{} {}", program.task_name(task), clean(&operation));
    if let Some(layer) = program.layer(task) {
        let _ = write!(text, "  layer {}", clean(layer));
    }
    text
}

pub(super) fn place(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    nothing(arguments)?;
    Ok(position(console))
}

pub(super) fn print(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let value = console.debugger.evaluate(arguments)?;
    let mut text = format!("{}\n", value.text());
    if let Value::Tensor(tensor) = &value
        && tensor.len() != 1
    {
        let _ = writeln!(text, "{}", tensor.preview());
    }
    Ok(Answer::said(text).with("value", value.json()))
}

/// `/COUNT TYPE ADDRESS`; count and type may be left out.
pub(super) fn examine(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let debugger = &console.debugger;
    let Address {
        count,
        element,
        place,
        mut selection,
        ..
    } = address(debugger, arguments)?;
    let count = count.unwrap_or(1);
    if let Place::Range { .. } = place {
        // Only what is shown is read.
        first(&mut selection, element, count);
    }
    let tensor = crate::place::read(&debugger.session, &selection)?;
    let there = (tensor.bytes.len() as u64 * 8 / element.bits()).min(count);
    let tensor = Tensor {
        element,
        shape: vec![there],
        bytes: tensor.bytes,
    };
    let mut text = String::new();
    let texts: Vec<String> = (0..tensor.len()).map(|i| tensor.text_of(i)).collect();
    for (line, row) in texts.chunks(ROW).enumerate() {
        let index = format!("[{}]", line * ROW);
        let _ = writeln!(text, "{index:>6}  {}", row.join("  "));
    }
    let value: Vec<Json> = tensor
        .all()
        .into_iter()
        .map(|n| Value::Number(n).json())
        .collect();
    Ok(Answer::said(text)
        .with("dtype", element.name())
        .with("value", value))
}

/// What `/COUNT TYPE ADDRESS` names.
struct Address<'t> {
    count: Option<u64>,
    /// The type that is given, or that the bytes have.
    element: ElementType,
    place: Place,
    selection: Selection,
    /// The text of it without count.
    text: &'t str,
}

/// `/COUNT TYPE ADDRESS`; count and type may be left out.
fn address<'t>(debugger: &Debugger<'_, '_>, text: &'t str) -> Result<Address<'t>, String> {
    let (count, text) = match text.strip_prefix('/') {
        Some(rest) => {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let count = rest[..end]
                .parse::<u64>()
                .ok()
                .filter(|n| (1..=EXAMINED).contains(n));
            let count = count.ok_or_else(|| {
                format!("expected a count from 1 to {EXAMINED} behind /, found \"{rest}\"")
            })?;
            (Some(count), rest[end..].trim())
        }
        None => (None, text),
    };
    let (typed, place) = typed_place(debugger, text)?;
    let selection = debugger.select(&place);
    Ok(Address {
        count,
        element: typed.unwrap_or(selection.element),
        place,
        selection,
        text,
    })
}

/// Leaves the first elements of a range.
fn first(selection: &mut Selection, element: ElementType, count: u64) {
    let size = element.bytes_for(count).unwrap_or(u64::MAX);
    selection.pattern.run = selection.pattern.run.min(size);
}

/// `TYPE ADDRESS`, or an address alone.
fn typed_place(
    debugger: &Debugger<'_, '_>,
    text: &str,
) -> Result<(Option<ElementType>, Place), String> {
    let Some((word, address)) = text.split_once(char::is_whitespace) else {
        return Ok((None, debugger.place(text)?));
    };
    match (expression::element(word), debugger.place(address)) {
        (Ok(element), place) => Ok((Some(element), place?)),
        // A name may have a blank in it.
        (Err(no_type), place) => match debugger.place(text) {
            Ok(whole) => Ok((None, whole)),
            Err(no_place) => Err(if place.is_ok() { no_type } else { no_place }),
        },
    }
}

pub(super) fn list(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let task = match arguments {
        "" => console.debugger.session.current(),
        name => Some(console.debugger.task(name)?),
    };
    let Some(task) = task else {
        return Ok(Answer::said("end\n").with("task", Json::Null));
    };
    let text = console.listing().of_task(task);
    let name = console.debugger.session.program().task_name(task);
    Ok(Answer::said(text.clone())
        .with("task", name)
        .with("text", text))
}

pub(super) fn writer(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let bytes = range(console, arguments)?;
    let session = &console.debugger.session;
    let (mut left, mut writers) = (bytes.clone(), Vec::new());
    let effects = console
        .debugger
        .touching(&bytes, Kind::Write, 0..session.at());
    for effect in effects.into_iter().rev() {
        if let Some(task) = session.task(effect)
            && left.without_writes(session.program(), task)
        {
            writers.push(effect);
        }
        if left.is_empty() {
            break;
        }
    }
    let mut answer = tasks(console, &writers);
    if !left.is_empty() {
        let _ = match left.count() {
            1 => writeln!(answer.text, "1 byte has its initial value"),
            count => writeln!(answer.text, "{count} bytes have their initial values"),
        };
    }
    Ok(answer.with("initial_bytes", left.count()))
}

pub(super) fn readers(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let bytes = range(console, arguments)?;
    let session = &console.debugger.session;
    let program = session.program();
    let at = session.at();
    let past = console.debugger.touching(&bytes, Kind::Write, 0..at);
    let start = past.last().map_or(0, |effect| effect + 1);
    let mut left = bytes.clone();
    let mut readers = Vec::new();
    for effect in console
        .debugger
        .touching(&bytes, Kind::Access, start..session.effects())
    {
        let Some(task) = session.task(effect) else {
            continue;
        };
        if crate::touches::touches_bytes(program, task, &left, Kind::Read) {
            readers.push(effect);
        }
        if effect >= at {
            left.without_writes(program, task);
        }
        if left.is_empty() {
            break;
        }
    }
    Ok(tasks(console, &readers))
}

/// The bytes of an address as `x` takes it: of `BUFFER+OFFSET`, those of one element.
fn range(console: &Console<'_, '_>, text: &str) -> Result<Bytes, String> {
    let mut address = address(&console.debugger, text)?;
    if address.count.is_some() || is_open(&address.place, address.text) {
        let count = address.count.unwrap_or(1);
        first(&mut address.selection, address.element, count);
    }
    Ok(address.selection.bytes())
}

/// The tasks of effects, a line for each.
fn tasks(console: &Console<'_, '_>, effects: &[usize]) -> Answer {
    let session = &console.debugger.session;
    let program = session.program();
    let (mut text, mut found) = (String::new(), Vec::new());
    for effect in effects {
        if let Some(task) = session.task(*effect) {
            let _ = writeln!(text, "effect {effect}  {}", described(program, task));
            found.push(json!({
                "effect": effect,
                "task": program.task_name(task),
                "operation": program.kernel(task).operation(),
                "layer": program.layer(task),
            }));
        }
    }
    if found.is_empty() {
        text.push_str("none\n");
    }
    let first = found.first().map(|task| task["task"].clone());
    Answer::said(text).with("task", first).with("tasks", found)
}

pub(super) fn save(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let Some((path, text)) = arguments.split_once(char::is_whitespace) else {
        return Err(format!(
            "expected FILE.npy and a tensor, found \"{arguments}\""
        ));
    };
    let value = console.debugger.evaluate(text)?;
    let Value::Tensor(tensor) = value else {
        return Err(format!("expected a tensor, found {}", value.text()));
    };
    let (header, data) = npy::write(tensor.element, &tensor.shape, &tensor.bytes)?;
    disk::write(Path::new(path), &[&header, &data])
        .map_err(|error| format!("{path}: cannot be written: {error}"))?;
    let text = format!("{path}: {}\n", tensor.summary());
    Ok(Answer::said(text).with("path", path))
}

pub(super) fn info(console: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    type Show = fn(&Console<'_, '_>) -> (String, Json);
    let topics: [(&str, Show); 6] = [
        ("breakpoints", breakpoints),
        ("queues", queues),
        ("syncs", syncs),
        ("buffers", buffers),
        ("locals", locals),
        ("layers", layers),
    ];
    let mut fitting = topics
        .iter()
        .filter(|(name, _)| !arguments.is_empty() && name.starts_with(arguments));
    match (fitting.next(), fitting.next()) {
        (Some((name, show)), None) => {
            let (text, json) = show(console);
            Ok(Answer::said(text).with(name, json))
        }
        _ => Err(format!(
            "expected breakpoints, queues, syncs, buffers, locals or layers, found \"{arguments}\""
        )),
    }
}

fn breakpoints(console: &Console<'_, '_>) -> (String, Json) {
    let debugger = &console.debugger;
    let (mut text, mut found) = (String::new(), Vec::new());
    for (number, b) in debugger.breakpoints() {
        let kind = if b.watches.is_some() {
            "watchpoint"
        } else {
            "breakpoint"
        };
        let once = if b.temporary { "  once" } else { "" };
        let _ = writeln!(
            text,
            "{number}  {kind}  {}  hit {} times{once}",
            b.text, b.hits
        );
        found.push(json!({"number": number, "kind": kind, "text": b.text, "hits": b.hits, "temporary": b.temporary}));
    }
    for (catch, number) in debugger.catches() {
        let _ = writeln!(text, "{number}  catchpoint  {}", catch.name());
        found.push(json!({"number": number, "kind": "catchpoint", "text": catch.name()}));
    }
    if found.is_empty() {
        text.push_str("none\n");
    }
    (text, found.into())
}

fn queues(console: &Console<'_, '_>) -> (String, Json) {
    let session = &console.debugger.session;
    let program = session.program();
    let (mut text, mut found) = (String::new(), Vec::new());
    let mut idle: Vec<String> = Vec::new();
    for at in &session.moment().servers {
        let name = server_name(program, at.queue, at.server);
        let waits: Vec<String> = at.waits.iter().map(|w| wait(program, w)).collect();
        let state = match (at.task, at.runs, waits.is_empty()) {
            (None, ..) => "idle",
            (Some(_), true, _) => "runs",
            (Some(_), false, true) => "starts",
            (Some(_), false, false) => "waits",
        };
        let task = at.task.map(|task| program.task_name(task));
        found.push(json!({"queue": name, "state": state, "task": task, "waits": waits}));
        let Some(task) = at.task else {
            idle.push(name);
            continue;
        };
        let what = described(program, task);
        let _ = write!(text, "{name:12}  {state:6}  {what}");
        if !waits.is_empty() {
            let _ = write!(text, "  for {}", waits.join(" and "));
        }
        text.push('\n');
    }
    idle_text(&mut text, &idle);
    (text, found.into())
}

/// A line for idle servers whose names differ in numbers alone: there may be many, and the others are those that say something.
fn idle_text(out: &mut String, names: &[String]) {
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    for name in names {
        let kind: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, alike)) => alike.push(name),
            None => kinds.push((kind, vec![name])),
        }
    }
    for (_, alike) in kinds {
        let _ = write!(out, "{:12}  idle", clean(&joint(&alike)));
        if alike.len() > 1 {
            let _ = write!(out, "    {} of them", alike.len());
        }
        out.push('\n');
    }
}

/// A server of a queue: the queue's name, with a number where it has several.
pub(crate) fn server_name(
    program: &Program<'_>,
    queue: chipless_model::QueueId,
    server: u32,
) -> String {
    let queue = &program.queues[queue];
    if queue.servers > 1 {
        format!("{} ({server})", queue.name)
    } else {
        queue.name.clone()
    }
}

/// A sync's state in words.
pub(crate) fn sync_text(program: &Program<'_>, state: SyncState) -> String {
    match state {
        SyncState::Value(value) => value.to_string(),
        SyncState::Barrier { active: None, .. } => "no configuration".to_owned(),
        SyncState::Barrier {
            active: Some(active),
            producers,
            consumers,
            lit,
        } => {
            let c = &program.configurations[active];
            format!(
                "use {}{}, expects {producers} of {} producers and {consumers} of {} consumers",
                c.number,
                if lit { " (lit)" } else { "" },
                c.producers,
                c.consumers
            )
        }
    }
}

/// The tasks that wait for a sync at present.
pub(crate) fn waiting(console: &Console<'_, '_>, sync: SyncId) -> Vec<String> {
    let session = &console.debugger.session;
    let servers = session.moment().servers.iter();
    let waiting = servers.filter(|at| at.waits.iter().any(|wait| wait.sync == sync));
    waiting
        .filter_map(|at| at.task)
        .map(|task| session.program().task_name(task))
        .collect()
}

/// The syncs that a task waits for or signals.
pub(crate) fn syncs_of(program: &Program<'_>, task: TaskId) -> Vec<SyncId> {
    let waits = program.waits(task).iter().map(|wait| wait.sync);
    let signals = program.signals(task).iter().filter_map(|s| match s.action {
        Action::Add(sync, _) | Action::Consume(sync) | Action::Produce(sync) => Some(sync),
        Action::Configure(c) => Some(program.configurations[c].barrier),
        Action::Release(_) => None,
    });
    let mut syncs: Vec<SyncId> = waits.chain(signals).collect();
    syncs.sort_unstable();
    syncs.dedup();
    syncs
}

fn syncs(console: &Console<'_, '_>) -> (String, Json) {
    let session = &console.debugger.session;
    let program = session.program();
    let (mut text, mut found) = (String::new(), Vec::new());
    for (id, state) in session.moment().syncs.iter_enumerated() {
        let (name, state) = (&program.syncs[id].name, sync_text(program, *state));
        let waiting = waiting(console, id);
        let _ = write!(text, "{:16}  {state}", clean(name));
        if !waiting.is_empty() {
            let _ = write!(text, "; waited for by {}", waiting.join(", "));
        }
        text.push('\n');
        found.push(json!({"sync": name, "state": state, "waiting": waiting}));
    }
    (text, found.into())
}

fn buffers(console: &Console<'_, '_>) -> (String, Json) {
    let program = console.debugger.session.program();
    let (mut text, mut found) = (String::new(), Vec::new());
    for (output, ports) in [
        (false, &program.interface.inputs),
        (true, &program.interface.outputs),
    ] {
        for port in ports {
            let side = if output { "output" } else { "input" };
            let form = crate::tensor::form(port.element, &port.shape);
            let buffer = &program.buffers[port.buffer].name;
            let _ = writeln!(
                text,
                "{side} {}  {form}  in {}",
                clean(&port.name),
                clean(buffer)
            );
        }
    }
    for b in &program.buffers {
        let (role, memory) = (b.role.name(), &program.memories[b.memory].name);
        let _ = writeln!(
            text,
            "{}+0x0..{:#x}  {role}  in {memory}",
            clean(&b.name),
            b.size
        );
        found.push(json!({"buffer": b.name, "size": b.size, "role": role, "memory": memory}));
    }
    (text, found.into())
}

/// The operands of a task: `in[0]`, `out[0]`, …
pub(crate) fn operands(program: &Program<'_>, task: TaskId) -> Vec<(String, Place)> {
    let sides = [("in", Direction::Read), ("out", Direction::Write)];
    let each = sides.into_iter().flat_map(|(side, direction)| {
        let count = accesses(program, task, direction).len();
        (0..count).map(move |index| {
            let place = Place::Access {
                task,
                direction,
                index,
            };
            (format!("{side}[{index}]"), place)
        })
    });
    each.collect()
}

/// An operand: where it is, its value in a line, and its tensor. What describes the task is no tensor of it.
pub(crate) fn shown(console: &Console<'_, '_>, place: &Place) -> (String, String, Option<Tensor>) {
    let debugger = &console.debugger;
    let program = debugger.session.program();
    let selection = debugger.select(place);
    let (role, is_description) = role(program, place).unwrap_or_default();
    let mut text = where_text(program, &selection);
    if !role.is_empty() {
        let _ = write!(text, " ({role})");
    }
    let size = selection.pattern.bytes().unwrap_or(u64::MAX);
    if size > SUMMARISED {
        let form = crate::tensor::form(selection.element, &selection.shape);
        return (text, format!("{form}, {size} bytes: `print` it"), None);
    }
    match crate::place::read(&debugger.session, &selection) {
        Ok(tensor) if is_description => {
            let value = format!("descriptor of {} bytes", tensor.bytes.len());
            (text, value, Some(tensor))
        }
        Ok(tensor) => (text, tensor.summary(), Some(tensor)),
        Err(error) => (text, error, None),
    }
}

fn locals(console: &Console<'_, '_>) -> (String, Json) {
    let session = &console.debugger.session;
    let Some(task) = session.current() else {
        return ("none: the run is at its end\n".to_owned(), json!([]));
    };
    let (mut text, mut found) = (String::new(), Vec::new());
    for (name, place) in operands(session.program(), task) {
        let (place, value, _) = shown(console, &place);
        let _ = writeln!(text, "{name}  {value}  {}", clean(&place));
        found.push(json!({"name": name, "place": place, "value": value}));
    }
    (text, found.into())
}

fn layers(console: &Console<'_, '_>) -> (String, Json) {
    let layers = console.debugger.layers();
    let mut sorted: Vec<_> = layers.into_iter().collect();
    sorted.sort_by_key(|(_, (first, _))| *first);
    let (mut text, mut found) = (String::new(), Vec::new());
    for (layer, (first, last)) in sorted {
        let _ = writeln!(text, "{}  effects {first} to {last}", clean(layer));
        found.push(json!({"layer": layer, "first": first, "last": last}));
    }
    if found.is_empty() {
        text.push_str("none: the program does not name layers\n");
    }
    (text, found.into())
}
