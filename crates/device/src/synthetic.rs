//! Programs that stand in a workload: computations, transfers and entries for FIFOs, in order on their queues.

use crate::engine::{Engine, engine};
use crate::fields::{Fields, Read, flag, integer, list, size, text, time, wrong};
use crate::fifos::{BLOCKS, Block, FifoName, Writer};
use crate::figures::RESOURCES;
use crate::layers::{Layer, layers};
use crate::mmu::Map;
use crate::rules;
use chipless_yaml::{Node, Span, Value};

/// A synthetic program.
#[derive(Clone, Debug, Default)]
pub struct Synthetic {
    /// On which engine.
    pub engine: Engine,
    /// Tiles that it holds.
    pub tiles: u64,
    /// Bytes that a preemption saves.
    pub state: u64,
    /// Mapped ranges; `None`: every address is mapped.
    pub maps: Option<Vec<Map>>,
    /// Tasks, each with its repetitions.
    pub tasks: Vec<Task>,
    /// For each queue its tasks.
    pub queues: Vec<Vec<u32>>,
    /// Names of agents, by the numbers that accesses have.
    pub agents: Vec<String>,
    /// Names of layers.
    pub layers: Vec<String>,
    /// FIFOs that it pushes into.
    pub fifos: Vec<FifoName>,
    /// Where its figures stand.
    pub span: Span,
}

/// A task, or several equal ones in a row.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which queue.
    pub queue: u32,
    /// Its number, of the first repetition.
    pub first: u64,
    /// How often.
    pub repeat: u64,
    /// Tasks and repetitions that must have ended.
    pub after: Vec<(u32, u64)>,
    /// Of which layer.
    pub layer: Option<u32>,
    /// What it does.
    pub kind: TaskKind,
}

/// What a task does.
#[derive(Clone, Debug)]
pub enum TaskKind {
    /// Takes so many picoseconds.
    Compute(u64),
    /// Moves bytes.
    Transfer(Transfer),
    /// Hands an entry to a FIFO.
    Push(Push),
    /// Never ends.
    Hang,
}

impl TaskKind {
    /// The bytes that it moves, or those of the list that it pushes.
    pub const fn transfer(&self) -> Option<&Transfer> {
        match self {
            TaskKind::Transfer(transfer)
            | TaskKind::Push(Push {
                entry: Entry::List(transfer),
                ..
            }) => Some(transfer),
            _ => None,
        }
    }
}

/// An entry for a FIFO.
#[derive(Clone, Debug)]
pub struct Push {
    /// Which of the FIFOs that the program names.
    pub fifo: u32,
    /// Who writes it; `None`: it is there at once.
    pub writer: Option<Writer>,
    /// What is done with it.
    pub entry: Entry,
}

/// What an entry of a FIFO points to.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A list of one transfer.
    List(Transfer),
    /// Work that takes so many picoseconds.
    Work(u64),
}

/// Bytes on their way.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// How many.
    pub bytes: u64,
    /// Numbers of the resources that they pass.
    pub path: Vec<u8>,
    /// The first address, where the memory path sees it.
    pub address: Option<u64>,
    /// What the address grows by from repetition to repetition.
    pub stride: u64,
    /// Whether they are written.
    pub write: bool,
    /// Whose ways of the cache they may fill.
    pub agent: u32,
}

impl Synthetic {
    /// Tasks with repetitions written out.
    pub fn count(&self) -> u64 {
        self.tasks.iter().map(|task| task.repeat).sum()
    }

    /// Entries for FIFOs.
    pub fn entries(&self) -> u64 {
        let push = |task: &&Task| matches!(task.kind, TaskKind::Push(..));
        self.tasks.iter().filter(push).map(|task| task.repeat).sum()
    }

    /// Whether any of its transfers is seen by the memory path.
    pub fn has_addresses(&self) -> bool {
        let mut transfers = self.tasks.iter().filter_map(|task| task.kind.transfer());
        transfers.any(|transfer| transfer.address.is_some())
    }

    /// Whether anything of it passes a resource that others pass, too.
    pub fn has_transfers(&self) -> bool {
        let mut kinds = self.tasks.iter().map(|task| &task.kind);
        kinds.any(|kind| kind.transfer().is_some())
    }
}

impl Synthetic {
    /// What its layers take, by the times of its tasks with repetitions written out.
    pub fn profile(&self, times: &[(u64, u64)]) -> Vec<Layer> {
        let of_layers = self.tasks.iter().filter_map(|task| {
            let name = &*self.layers[task.layer? as usize];
            let times = times.get(task.first as usize..(task.first + task.repeat) as usize)?;
            Some(times.iter().map(move |(start, end)| (name, *start, *end)))
        });
        layers(of_layers.flatten())
    }
}

fn senseless<T>(span: Span, text: impl Into<String>) -> Read<T> {
    wrong(&rules::SYNTHETIC, span, text)
}

/// Tasks of one program, repetitions written out.
const TASKS: u64 = 1 << 40;
/// The same of a program that names layers: the times of each task are kept.
const PROFILED: u64 = 1 << 20;

/// Reads a program of a workload.
pub(crate) fn read(node: &Node, asked: Option<Engine>) -> Read<Synthetic> {
    let outer = Fields::of(node, "a program", &["synthetic"])?;
    let Some(node) = outer.get("synthetic") else {
        return wrong(
            &rules::MISSING,
            node.span,
            "expected the name of a file or `synthetic`, found neither",
        );
    };
    let known = ["engine", "tiles", "state", "maps", "tasks"];
    let fields = Fields::of(node, "a synthetic program", &known)?;
    let own = match fields.get("engine") {
        Some(node) => Some((engine(node)?, node.span)),
        None => None,
    };
    if let (Some(asked), Some((own, span))) = (asked, own)
        && asked != own
    {
        return senseless(
            span,
            "expected the engine of the stream, found the other one",
        );
    }
    let engine = asked.or(own.map(|(own, _)| own)).unwrap_or_default();
    let tiles = match fields.get("tiles") {
        Some(node) => {
            let tiles = integer(node, 0, u32::MAX.into(), "a number of tiles")? as u64;
            if engine == Engine::Copy && tiles > 0 {
                let text = format!("expected no tiles on the copy engine, found {tiles}");
                return wrong(&rules::TILES, node.span, text);
            }
            tiles
        }
        None => u64::from(engine == Engine::Nn),
    };
    let mut program = Synthetic {
        engine,
        tiles,
        state: match fields.get("state") {
            Some(node) => size(node, "state")?,
            None => 0,
        },
        maps: match fields.get("maps") {
            Some(node) => Some(maps(node)?),
            None => None,
        },
        span: fields.get("tiles").map_or(node.span, |node| node.span),
        ..Synthetic::default()
    };
    let Some(tasks) = fields.get("tasks") else {
        return wrong(
            &rules::MISSING,
            node.span,
            "expected `tasks` in a synthetic program, found none",
        );
    };
    let items = list(tasks, "tasks")?;
    if items.is_empty() {
        return senseless(tasks.span, "expected a task at least, found none");
    }
    let (mut queues, mut next): (Vec<&str>, u64) = (Vec::new(), 0);
    for item in items {
        let task = program.task(item, &mut queues, next)?;
        next += task.repeat;
        if next > TASKS {
            return senseless(
                item.span,
                format!("expected at most 2^40 tasks, found {next}"),
            );
        }
        let number = program.tasks.len() as u32;
        let queue = task.queue as usize;
        if queue == program.queues.len() {
            program.queues.push(Vec::new());
        }
        program.queues[queue].push(number);
        program.tasks.push(task);
    }
    if !program.layers.is_empty() && next > PROFILED {
        return senseless(
            tasks.span,
            format!("expected at most 2^20 tasks in a program that names layers, found {next}"),
        );
    }
    Ok(program)
}

/// The number of a name among others; a new one has the next.
fn number_of(names: &mut Vec<String>, name: &str) -> u32 {
    let known = names.iter().position(|known| known == name);
    let number = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    number as u32
}

/// The block of work FIFOs that a task names.
fn block(fields: &Fields<'_>, span: Span) -> Read<Block> {
    let Some(node) = fields.get("fifo") else {
        return wrong(
            &rules::MISSING,
            span,
            "expected `fifo` beside enqueue, found none",
        );
    };
    let name = text(node, "the name of a block of FIFOs")?;
    let blocks = [Block::Dpu, Block::Spare, Block::Ipc, Block::Shave];
    match blocks.into_iter().find(|block| block.name() == name) {
        Some(block) => Ok(block),
        None => senseless(
            node.span,
            format!("expected one of {}, found \"{name}\"", BLOCKS.join(", ")),
        ),
    }
}

fn maps(node: &Node) -> Read<Vec<Map>> {
    let range = |item: &Node| {
        let known = ["base", "size", "page", "on_demand"];
        let fields = Fields::of(item, "a mapped range", &known)?;
        let (Some(base), Some(length)) = (fields.get("base"), fields.get("size")) else {
            return wrong(
                &rules::MISSING,
                item.span,
                "expected `base` and `size` in a mapped range, found one of them or none",
            );
        };
        let mut map = Map::new(
            integer(base, 0, 1 << 48, "an address of 48 bits")? as u64,
            size(length, "size")?,
        );
        if let Some(node) = fields.get("on_demand") {
            map.on_demand = flag(node, "on_demand")?;
        }
        if let Some(node) = fields.get("page") {
            let page = size(node, "page")?;
            if !page.is_power_of_two() || !(4096..=1 << 40).contains(&page) {
                return senseless(
                    node.span,
                    format!(
                        "expected a page of a power of two, 4 KiB at least, found {page} bytes"
                    ),
                );
            }
            if !map.base.is_multiple_of(page) || !map.size.is_multiple_of(page) {
                return senseless(
                    node.span,
                    format!(
                        "expected `base` and `size` to be multiples of the page of {page} bytes, found {:#x} and {}",
                        map.base, map.size
                    ),
                );
            }
            map.page = Some(page);
        }
        Ok(map)
    };
    list(node, "mapped ranges")?.iter().map(range).collect()
}

impl Synthetic {
    fn task<'n>(&mut self, item: &'n Node, queues: &mut Vec<&'n str>, first: u64) -> Read<Task> {
        const KINDS: [&str; 5] = ["compute", "transfer", "push", "enqueue", "hang"];
        let known = [
            "compute",
            "transfer",
            "push",
            "enqueue",
            "hang",
            "queue",
            "layer",
            "after",
            "repeat",
            "path",
            "address",
            "write",
            "agent",
            "stride",
            "link_agent",
            "fifo",
            "number",
            "shared",
            "writer",
        ];
        let fields = Fields::of(item, "a task", &known)?;
        let (kind, value) = fields.one_of(&KINDS, &rules::SYNTHETIC)?;
        only_beside(&fields, kind)?;
        let repeat = match fields.get("repeat") {
            Some(node) => integer(node, 1, TASKS.into(), "a number of repetitions")? as u64,
            None => 1,
        };
        let queue = match fields.get("queue") {
            Some(node) => text(node, "the name of a queue")?,
            None => "q",
        };
        let queue = queues
            .iter()
            .position(|known| *known == queue)
            .unwrap_or_else(|| {
                queues.push(queue);
                queues.len() - 1
            });
        let layer = match fields.get("layer") {
            Some(node) => Some(number_of(
                &mut self.layers,
                text(node, "the name of a layer")?,
            )),
            None => None,
        };
        let kind = match kind {
            "compute" => TaskKind::Compute(time(value, "compute")?),
            "transfer" => TaskKind::Transfer(self.transfer(&fields, value, repeat)?),
            "push" => {
                let entry = Entry::List(self.transfer(&fields, value, repeat)?);
                self.push(&fields, Block::LinkAgent, "link_agent", entry)?
            }
            "enqueue" => {
                let block = block(&fields, item.span)?;
                self.push(
                    &fields,
                    block,
                    "number",
                    Entry::Work(time(value, "enqueue")?),
                )?
            }
            _ if flag(value, "hang")? => TaskKind::Hang,
            _ => return senseless(value.span, "expected hang: true, found false"),
        };
        let after = match fields.get("after") {
            Some(node) => self.after(node, first)?,
            None => Vec::new(),
        };
        Ok(Task {
            queue: queue as u32,
            first,
            repeat,
            after,
            layer,
            kind,
        })
    }

    /// A push of an entry into a FIFO of a block, whose number stands in a field.
    fn push(
        &mut self,
        fields: &Fields<'_>,
        block: Block,
        field: &str,
        entry: Entry,
    ) -> Read<TaskKind> {
        let number = match fields.get(field) {
            Some(node) => integer(node, 0, 1 << 16, "the number of a FIFO")? as u32,
            None => 0,
        };
        let is_shared = match fields.get("shared") {
            Some(node) => flag(node, "shared")?,
            None => false,
        };
        let writer = match fields.get("writer") {
            Some(node) => Some(match text(node, "who writes an entry")? {
                "cpu" => Writer::Cpu,
                "dma" => Writer::Dma,
                other => {
                    let text = format!("expected cpu or dma, found \"{other}\"");
                    return senseless(node.span, text);
                }
            }),
            None => None,
        };
        let name = FifoName {
            block,
            number,
            is_shared,
        };
        let known = self.fifos.iter().position(|known| *known == name);
        let fifo = known.unwrap_or_else(|| {
            self.fifos.push(name);
            self.fifos.len() - 1
        });
        Ok(TaskKind::Push(Push {
            fifo: fifo as u32,
            writer,
            entry,
        }))
    }

    /// Tasks before this one, as numbers of tasks and repetitions.
    fn after(&self, node: &Node, first: u64) -> Read<Vec<(u32, u64)>> {
        let find = |item: &Node| {
            let number = match item.value {
                Value::Integer(n) if (0..i128::from(first)).contains(&n) => n as u64,
                Value::Integer(n) => {
                    let text = format!("expected the number of a task before {first}, found {n}");
                    return senseless(item.span, text);
                }
                _ => {
                    let text = format!("expected the number of a task, found {}", item.describe());
                    return wrong(&rules::TYPE, item.span, text);
                }
            };
            let task = self.tasks.partition_point(|task| task.first <= number) - 1;
            Ok((task as u32, number - self.tasks[task].first))
        };
        list(node, "tasks")?.iter().map(find).collect()
    }

    fn transfer(&mut self, fields: &Fields<'_>, value: &Node, repeat: u64) -> Read<Transfer> {
        let Some(path) = fields.get("path") else {
            return wrong(
                &rules::MISSING,
                fields.span,
                "expected `path` beside a transfer, found none",
            );
        };
        let mut passed: Vec<u8> = Vec::new();
        for item in list(path, "resources")? {
            let name = text(item, "the name of a resource")?;
            let Some(number) = RESOURCES.iter().position(|known| *known == name) else {
                let text = format!("expected one of {}, found \"{name}\"", RESOURCES.join(", "));
                return senseless(item.span, text);
            };
            if passed.contains(&(number as u8)) {
                return senseless(
                    item.span,
                    format!("expected each resource once, found \"{name}\" again"),
                );
            }
            passed.push(number as u8);
        }
        if passed.is_empty() {
            return senseless(
                path.span,
                "expected a resource at least, found an empty path",
            );
        }
        let address = match fields.get("address") {
            Some(node) => Some(integer(node, 0, (1 << 48) - 1, "an address of 48 bits")? as u64),
            None => None,
        };
        let stride = match fields.get("stride") {
            Some(node) if address.is_none() => {
                return senseless(
                    node.span,
                    "expected `stride` beside `address`, found no address",
                );
            }
            Some(node) => size(node, "stride")?,
            None => 0,
        };
        let bytes = size(value, "the bytes of a transfer")?;
        let end = address.map(|address| {
            u128::from(address) + u128::from(stride) * u128::from(repeat - 1) + u128::from(bytes)
        });
        if end.is_some_and(|end| end > 1 << 48) {
            return senseless(
                value.span,
                "expected addresses of 48 bits, found a transfer that goes beyond them",
            );
        }
        let agent = match fields.get("agent") {
            Some(node) => text(node, "the name of an agent")?,
            None => "dma",
        };
        let agent = number_of(&mut self.agents, agent);
        Ok(Transfer {
            bytes,
            path: passed,
            address,
            stride,
            write: match fields.get("write") {
                Some(node) => flag(node, "write")?,
                None => false,
            },
            agent,
        })
    }
}

/// Refuses fields beside a kind of task that they say nothing about.
fn only_beside(fields: &Fields<'_>, kind: &str) -> Read<()> {
    let moves = matches!(kind, "transfer" | "push");
    for only in ["path", "address", "write", "agent", "stride"] {
        if let (Some(node), false) = (fields.get(only), moves) {
            return senseless(
                node.span,
                format!("expected `{only}` beside transfer or push, found it beside {kind}"),
            );
        }
    }
    for (only, kinds) in [
        ("link_agent", &["push"][..]),
        ("fifo", &["enqueue"]),
        ("number", &["enqueue"]),
        ("shared", &["push", "enqueue"]),
        ("writer", &["push", "enqueue"]),
    ] {
        if let (Some(node), false) = (fields.get(only), kinds.contains(&kind)) {
            let kinds = kinds.join(" or ");
            return senseless(
                node.span,
                format!("expected `{only}` beside {kinds}, found it beside {kind}"),
            );
        }
    }
    Ok(())
}
