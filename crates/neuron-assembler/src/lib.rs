//! Makes AWS NEFF programs from text, for people who write test programs by hand. docs/neuron-files.md describes the form.
//!
//! ```text
//! neff rows trn2
//! input  x   float32 [32, 64]
//! output out float32 [16, 32]
//! subgraph sg00
//! queue qData data owner=sp queues=4
//! var x input
//! var out output
//! engine sp
//! dma id=0 queue=qData semaphore=9
//!   copy out [1:128, 128:16] <- x+128 [1:128, 512:16]
//! NOP $S[9]>=4
//! ```

mod address;
mod functions;
mod line;
mod lines;
mod slot;

use address::names;
use chipless_model::{ElementType, suggest};
use chipless_neuron::DraftFunctions;
use chipless_neuron::Member;
use chipless_neuron::stream::SLOT_BYTES;
use chipless_neuron::{AccessPattern, ConstantType, DataType, Descriptor, DmaEntry, Operation};
use chipless_neuron::{Architecture, Engine, Tensor};
use chipless_neuron::{Draft, DraftEngine, DraftSubgraph};
use chipless_neuron::{DynamicDma, FabricPath, QueueSet, QueueType, Variable, VariableType};
use line::Line;
pub use lines::Lines;

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct AssembleError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What was expected and what was found.
    pub message: String,
}

/// Reads a program.
///
/// # Errors
/// The first line that does not follow the form. Whether the program makes sense is the linter's to say: a program with
/// a fault can be assembled on purpose.
pub fn assemble(text: &str) -> Result<Draft<'_>, AssembleError> {
    Ok(assemble_with_lines(text)?.0)
}

/// Reads a program, and remembers where its parts stand.
///
/// # Errors
/// As [`assemble`].
pub fn assemble_with_lines(text: &str) -> Result<(Draft<'_>, Lines), AssembleError> {
    let mut assembler = Assembler {
        draft: Draft::default(),
        lines: Lines::default(),
        engine: None,
        member: None,
    };
    for (index, text) in text.lines().enumerate() {
        if let Some(content) = text.strip_prefix('|') {
            assembler.content(content, index + 1)?;
            continue;
        }
        let mut line = Line::new(text, index + 1);
        if !line.at_end() {
            assembler.line(&mut line)?;
        }
    }
    Ok((assembler.draft, assembler.lines))
}

/// Said of what belongs to a subgraph and stands in none.
const NO_SUBGRAPH: &str = "a `subgraph` line must come before";

/// Words that a line can begin with, besides instructions.
pub const STATEMENTS: &[&str] = &[
    "member",
    "stream",
    "neff",
    "input",
    "output",
    "subgraph",
    "queue",
    "var",
    "engine",
    "dma",
    "functions",
    "segment",
    "control",
    "function",
];

struct Assembler<'a> {
    draft: Draft<'a>,
    lines: Lines,
    engine: Option<Engine>,
    /// The member whose content is read.
    member: Option<Content>,
}

/// How the content of a member stands in the text.
enum Content {
    /// Lines, and whether any was read.
    Text(String, bool),
    /// Bytes.
    Hex(String),
    /// Slots, and bytes behind the last whole one.
    Stream(String),
}

impl<'a> Assembler<'a> {
    /// `|…`: a line of a member.
    fn content(&mut self, content: &str, number: usize) -> Result<(), AssembleError> {
        let error = |message: &str| AssembleError {
            line: number,
            column: 1,
            message: message.to_owned(),
        };
        match &mut self.member {
            Some(Content::Text(path, has_lines)) => {
                let bytes = self.draft.members.entry(path.clone()).or_default();
                if std::mem::replace(has_lines, true) {
                    bytes.push(b'\n');
                }
                self.lines.text(path, bytes.len(), number);
                bytes.extend_from_slice(content.as_bytes());
            }
            Some(Content::Hex(path) | Content::Stream(path)) => {
                let bytes = slot::from_hex(content.trim())
                    .ok_or_else(|| error("expected bytes in hexadecimal, two digits each"))?;
                let member = self.draft.members.entry(path.clone()).or_default();
                self.lines.bytes(path, member.len(), number);
                member.extend_from_slice(&bytes);
            }
            None => return Err(error("a `member` or `stream` line must come before")),
        }
        Ok(())
    }

    fn line(&mut self, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let word = line.word("a statement")?;
        if let Some(Content::Stream(path)) = &self.member
            && !matches!(word, "member" | "stream" | "subgraph")
        {
            let slot = slot::slot(word, line, &DraftSubgraph::default())?;
            let member = self.draft.members.entry(path.clone()).or_default();
            self.lines.bytes(path, member.len(), line.number());
            member.extend_from_slice(slot.bytes());
            return line.end();
        }
        self.member = None;
        match word {
            "member" => self.member(line)?,
            "stream" => {
                let path = line.path("the member's path")?.to_owned();
                self.begin(path.clone(), Content::Stream(path), line)?;
            }
            "neff" => {
                line.word("the program's name")?
                    .clone_into(&mut self.draft.name);
                if !line.at_end() {
                    self.draft.architecture = architecture(line)?;
                }
            }
            "input" => {
                let tensor = tensor(line)?;
                self.draft.inputs.push(tensor);
            }
            "output" => {
                let tensor = tensor(line)?;
                self.draft.outputs.push(tensor);
            }
            "subgraph" => {
                let name = line.word("the subgraph's name")?.to_owned();
                self.draft.subgraphs.push(DraftSubgraph {
                    name,
                    ..DraftSubgraph::default()
                });
                self.engine = None;
            }
            "queue" => self.queue(line)?,
            "var" => self.variable(line)?,
            "engine" => self.begin_engine(line)?,
            "dma" => self.transfer(line)?,
            "functions" => {
                let name = line.word("the set's name")?.to_owned();
                let set = DraftFunctions {
                    name,
                    ..DraftFunctions::default()
                };
                self.work(line)?.functions.push(set);
            }
            "segment" | "control" | "function" => {
                let Some(set) = self.work(line)?.functions.last_mut() else {
                    return Err(line.error("a `functions` line must come before"));
                };
                functions::line(word, line, set)?;
            }
            operation if Operation::from_name(operation) != Operation::Unknown => {
                self.descriptor(Operation::from_name(operation), line)?;
            }
            _ => self.instruction(word, line)?,
        }
        line.end()
    }

    /// `member PATH text` or `member PATH hex`: its content follows.
    fn member(&mut self, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let path = line.path("the member's path")?.to_owned();
        let content = match line.word("text or hex")? {
            "text" => Content::Text(path.clone(), false),
            "hex" => Content::Hex(path.clone()),
            other => return Err(line.refuse(format!("`{other}` is neither text nor hex"))),
        };
        self.begin(path, content, line)
    }

    /// `queue NAME …`.
    fn queue(&mut self, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let (name, queue) = queue_set(line)?;
        let pointer = format!("/dma_queue/{name}");
        let number = line.number();
        let Some(subgraph) = self.draft.subgraphs.last_mut() else {
            return Err(line.error(NO_SUBGRAPH));
        };
        self.lines.definition(&subgraph.name, pointer, number);
        subgraph.queues.insert(name.into(), queue);
        Ok(())
    }

    /// `engine NAME`: what follows is its work.
    fn begin_engine(&mut self, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let name = line.word("the engine's name")?;
        let engine = Engine::from_name(name);
        if engine == Engine::Unknown {
            return Err(line.refuse(format!(
                "`{name}` is no engine; pe, act, dve, pool and sp are"
            )));
        }
        self.engine = Some(engine);
        Ok(())
    }

    /// `dma …`: the descriptors follow.
    fn transfer(&mut self, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let entry = entry(line)?;
        let dma = &mut self.work(line)?.dma;
        dma.push(entry);
        let pointer = format!("/dma/{}", dma.len() - 1);
        self.remember(line, |lines, subgraph, engine, number| {
            lines.descriptor(subgraph, engine, pointer, number);
        });
        Ok(())
    }

    /// A descriptor of the last transfer.
    fn descriptor(
        &mut self,
        operation: Operation,
        line: &mut Line<'a>,
    ) -> Result<(), AssembleError> {
        let descriptor = descriptor(operation, line)?;
        let dma = &mut self.work(line)?.dma;
        let at = dma.len().wrapping_sub(1);
        let Some(entry) = dma.last_mut() else {
            return Err(line.error("a transfer needs a `dma` line before it"));
        };
        let pointer = format!("/dma/{at}/desc/{}", entry.descriptors.len());
        entry.descriptors.push(descriptor);
        self.remember(line, |lines, subgraph, engine, number| {
            lines.descriptor(subgraph, engine, pointer, number);
        });
        Ok(())
    }

    /// An instruction of the engine.
    fn instruction(&mut self, word: &'a str, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let Some(subgraph) = self.draft.subgraphs.last() else {
            let hint = suggest::hint(word, STATEMENTS.iter().copied());
            return Err(line.refuse(format!("`{word}` is no statement{hint}")));
        };
        let slot = slot::slot(word, line, subgraph)?;
        let slots = &mut self.work(line)?.slots;
        let offset = slots.len() * SLOT_BYTES;
        slots.push(slot);
        self.remember(line, |lines, subgraph, engine, number| {
            lines.instruction(subgraph, engine, offset, number);
        });
        Ok(())
    }

    /// Begins a member.
    fn begin(
        &mut self,
        path: String,
        content: Content,
        line: &Line<'_>,
    ) -> Result<(), AssembleError> {
        if self.draft.members.insert(path, Vec::new()).is_some() {
            return Err(line.error("a member of this path stands there already"));
        }
        self.member = Some(content);
        Ok(())
    }

    fn subgraph(&mut self, line: &Line<'_>) -> Result<&mut DraftSubgraph<'a>, AssembleError> {
        self.draft
            .subgraphs
            .last_mut()
            .ok_or_else(|| line.error(NO_SUBGRAPH))
    }

    fn work(&mut self, line: &Line<'_>) -> Result<&mut DraftEngine<'a>, AssembleError> {
        let engine = self
            .engine
            .ok_or_else(|| line.error("an `engine` line must come before"))?;
        let subgraph = self.subgraph(line)?;
        subgraph
            .engines
            .get_mut(engine.index())
            .ok_or_else(|| line.error("no such engine"))
    }

    /// Notes which line a part of the engine's work comes from.
    fn remember(&mut self, line: &Line<'_>, note: impl FnOnce(&mut Lines, &str, Engine, usize)) {
        if let (Some(subgraph), Some(engine)) = (self.draft.subgraphs.last(), self.engine) {
            note(&mut self.lines, &subgraph.name, engine, line.number());
        }
    }

    /// `var NAME TYPE …`: numbers go up from 0 in the order of declaration.
    fn variable(&mut self, line: &mut Line<'a>) -> Result<(), AssembleError> {
        let name = line.word("the variable's name")?;
        let kind = line.word("the variable's type")?;
        let kind = match VariableType::from_name(kind) {
            VariableType::Unknown => {
                return Err(line.refuse(format!("`{kind}` is no type of variable")));
            }
            kind => kind,
        };
        let tensors = self.draft.inputs.iter().chain(&self.draft.outputs);
        let shaped = tensors
            .into_iter()
            .find(|t| *t.name == *name)
            .and_then(Tensor::bytes);
        let Some(subgraph) = self.draft.subgraphs.last_mut() else {
            return Err(line.error(NO_SUBGRAPH));
        };
        let number = |line: &mut Line<'a>, subgraph: &DraftSubgraph<'_>| {
            let other = line.word("a variable's name")?;
            let known = subgraph.variables.get(other).and_then(|v| v.var_id);
            known.ok_or_else(|| {
                let hint = suggest::hint(other, names(subgraph));
                line.refuse(format!("no variable is called `{other}` so far{hint}"))
            })
        };
        let mut variable = Variable {
            kind: Some(kind),
            var_id: Some(subgraph.variables.len() as u64),
            size: shaped,
            ..Variable::default()
        };
        match kind {
            VariableType::File => {
                let file = line.word("the constant's file name")?;
                let bytes = constant(line, file)?;
                let data = if is_array(file) {
                    bytes.len().saturating_sub(NPY_HEADER)
                } else {
                    bytes.len()
                };
                variable.size = Some(data as u64);
                variable.file_name = Some(file.into());
                subgraph.files.push((file.to_owned(), bytes));
            }
            VariableType::DgeTable => {
                while !line.at_end() {
                    variable.list.push(number(line, subgraph)?);
                }
            }
            VariableType::Pointer => variable.size = Some(8),
            _ => {}
        }
        while !line.at_end() {
            let key = line.word("an option")?;
            line.expect("=")?;
            match key {
                "id" => variable.var_id = Some(line.integer("a number")?),
                "size" => variable.size = Some(line.integer("a number of bytes")?),
                "align" => variable.alignment = Some(line.integer("an alignment")?),
                "at" => variable.backing_variable_off = Some(line.integer("an offset")?),
                "to" => variable.referenced_var_id = Some(number(line, subgraph)?),
                "fabric" => variable.fabric_path = Some(fabric(line)?),
                other => return Err(line.refuse(format!("`{other}` is no option of a variable"))),
            }
        }
        if subgraph.variables.insert(name.into(), variable).is_some() {
            return Err(line.error(format!("`{name}` is declared twice")));
        }
        let pointer = format!("/var/{name}");
        self.lines
            .definition(&subgraph.name, pointer, line.number());
        Ok(())
    }
}

fn architecture(line: &mut Line<'_>) -> Result<Architecture, AssembleError> {
    match line.word("the hardware")? {
        "inf1" => Ok(Architecture::Inf1),
        "trn1" | "inf2" => Ok(Architecture::Trn1),
        "trn2" => Ok(Architecture::Trn2),
        "trn3" => Ok(Architecture::Trn3),
        other => Err(line.refuse(format!(
            "`{other}` is no hardware; inf1, trn1, inf2, trn2 and trn3 are"
        ))),
    }
}

/// `NAME TYPE [d0, d1]`.
fn tensor<'a>(line: &mut Line<'a>) -> Result<Tensor<'a>, AssembleError> {
    let name = line.word("the tensor's name")?;
    let dtype = line.word("the element type")?;
    let element = DataType::from_name(dtype)
        .element()
        .or_else(|| ElementType::from_name(dtype));
    if element.is_none() {
        return Err(line.refuse(format!("`{dtype}` is no element type")));
    }
    let shape = line.list(|l| l.integer("a dimension"))?;
    Ok(Tensor {
        name: name.into(),
        dtype: dtype.into(),
        element,
        shape,
        pointer: String::new(),
        times: 1,
    })
}

fn fabric(line: &mut Line<'_>) -> Result<FabricPath, AssembleError> {
    match FabricPath::from_name(line.word("main or alt")?) {
        FabricPath::Unknown => Err(line.error("expected main or alt")),
        path => Ok(path),
    }
}

/// `NAME TYPE owner=sp queues=4 semaphores=8,9 …`.
fn queue_set<'a>(line: &mut Line<'a>) -> Result<(&'a str, QueueSet<'a>), AssembleError> {
    let name = line.word("the queue set's name")?;
    let kind = line.word("the queue set's type")?;
    let kind = match QueueType::from_name(kind) {
        QueueType::Unknown => return Err(line.refuse(format!("`{kind}` is no type of queue set"))),
        kind => kind,
    };
    let mut queue = QueueSet {
        kind: Some(kind),
        ..QueueSet::default()
    };
    while !line.at_end() {
        let key = line.word("an option")?;
        if key == "pinned" {
            queue.pinned = Some(true);
            continue;
        }
        line.expect("=")?;
        match key {
            "owner" => queue.owner = Some(line.word("an engine")?.into()),
            "queues" => queue.num_queues = Some(line.integer("a number of queues")?),
            "instances" => {
                queue.queue_instances = line.series(|l| Ok(l.word("an instance")?.into()))?;
            }
            "semaphores" => queue.semaphore_set = line.series(|l| l.integer("a semaphore"))?,
            "semaphore" => queue.semaphore = Some(line.integer("a semaphore")?),
            "fabric" => queue.fabric_path = Some(fabric(line)?),
            "scratch" => {
                let partition_offset = line.integer("an offset")?;
                line.expect(":")?;
                queue.dynamic_dma = Some(DynamicDma {
                    partition_offset,
                    partition_size: line.integer("a size")?,
                });
            }
            other => return Err(line.refuse(format!("`{other}` is no option of a queue set"))),
        }
    }
    Ok((name, queue))
}

/// `id=0 queue=q semaphore=9 …`.
fn entry<'a>(line: &mut Line<'a>) -> Result<DmaEntry<'a>, AssembleError> {
    let mut entry = DmaEntry::default();
    while !line.at_end() {
        let key = line.word("an option")?;
        if key == "section" {
            entry.section_start_desc = true;
            continue;
        }
        line.expect("=")?;
        match key {
            "id" => entry.id = Some(line.integer("a number")?),
            "queue" => entry.queue = Some(line.word("a queue set")?.into()),
            "instance" => entry.instance_name = Some(line.word("an instance")?.into()),
            "function" => entry.function_start = Some(line.word("a function")?.into()),
            "semaphore" => entry.semaphore = Some(line.integer("a semaphore")?),
            "event" => entry.event = Some(line.integer("an event")?),
            "remote" => entry.remote_semaphores = line.series(|l| l.integer("a semaphore"))?,
            other => return Err(line.refuse(format!("`{other}` is no option of a descriptor"))),
        }
    }
    Ok(entry)
}

/// `out+4 [1:8, 16:2] float32 *0.5`: variable, offset, step and size of each dimension, type, factor.
fn side<'a>(line: &mut Line<'a>) -> Result<AccessPattern<'a>, AssembleError> {
    let variable = line.word("a variable")?;
    let offset = if line.eat("+") {
        line.integer("an offset")?
    } else {
        0
    };
    let dimensions = line.list(|l| {
        let step: i64 = l.integer("a step")?;
        l.expect(":")?;
        Ok((step, l.integer::<u64>("a size")?))
    })?;
    let (steps, sizes): (Vec<i64>, Vec<u64>) = dimensions.into_iter().unzip();
    let mut pattern = AccessPattern {
        variable: Some(variable.into()),
        offset: Some(offset),
        ..AccessPattern::default()
    };
    (pattern.steps, pattern.sizes) = (steps.into(), sizes.into());
    let named = line
        .rest()
        .split(|c: char| c.is_whitespace() || c == ',')
        .next()
        .map(DataType::from_name);
    if let Some(dtype) = named.filter(|d| *d != DataType::Unknown) {
        line.word("a type")?;
        pattern.dtype = Some(dtype);
    }
    if line.eat("*") {
        pattern.scale = Some(line.parse("a factor")?);
    }
    Ok(pattern)
}

/// `add out [...] <- a [...], b [...] scale=2`.
fn descriptor<'a>(
    operation: Operation,
    line: &mut Line<'a>,
) -> Result<Descriptor<'a>, AssembleError> {
    let mut descriptor = Descriptor::new(operation, side(line)?);
    line.expect("<-")?;
    let sources = line.series(side)?;
    if operation.is_compute() {
        descriptor.from_arr = sources;
    } else {
        descriptor.from = sources.into_iter().next();
    }
    if operation == Operation::Fma {
        descriptor.scale_dtype = Some(DataType::Float32);
    }
    while !line.at_end() {
        let key = line.word("an option")?;
        line.expect("=")?;
        match key {
            "scale" => descriptor.scale = Some(line.parse("a factor")?),
            "constant" => {
                let dtype = ConstantType::from_name(line.word("float32, int32 or uint32")?);
                descriptor.constant_dtype = Some(dtype);
                descriptor.constant = Some(line.parse("a constant")?);
            }
            "shape" => {
                descriptor.transpose_shape = Some(line.list(|l| l.integer("a dimension"))?.into());
            }
            "element" => {
                descriptor.transpose_element_size = Some(line.integer("a number of bytes")?);
            }
            "tiling" => {
                descriptor.num_tiling_dimensions = Some(line.integer("a number of dimensions")?);
            }
            other => return Err(line.refuse(format!("`{other}` is no option of a transfer"))),
        }
    }
    Ok(descriptor)
}

/// Files of arrays are told by their name, as [`Constant`](chipless_neuron::Constant) tells them.
fn is_array(file: &str) -> bool {
    Member {
        path: file,
        bytes: &[],
    }
    .has_extension("npy")
}

/// Bytes of the npy headers that are written: short ones end at a multiple of 64.
const NPY_HEADER: usize = 128;

/// `float32 [2, 2] 1 2 3 4`, or `hex 00 ff`. A file called `.npy` gets the array's header.
fn constant(line: &mut Line<'_>, file: &str) -> Result<Vec<u8>, AssembleError> {
    let dtype = line.word("an element type or `hex`")?;
    let mut bytes = Vec::new();
    if dtype == "hex" {
        while !line.at_end() {
            let byte = line.word("a byte")?;
            bytes.push(
                u8::from_str_radix(byte, 16)
                    .map_err(|_| line.refuse(format!("`{byte}` is no byte")))?,
            );
        }
        return Ok(bytes);
    }
    let shape: Vec<u64> = line.list(|l| l.integer("a dimension"))?;
    let count = shape
        .iter()
        .try_fold(1u64, |n, d| n.checked_mul(*d))
        .ok_or_else(|| line.error("too many elements"))?;
    let mut data = Vec::new();
    let mut found = 0;
    while !line.at_end() {
        match dtype {
            "float32" => data.extend(line.parse::<f32>("a number")?.to_le_bytes()),
            "float16" => data.extend(half::f16::from_f32(line.parse("a number")?).to_le_bytes()),
            "int32" => data.extend(line.integer::<i32>("a number")?.to_le_bytes()),
            "uint8" => data.push(line.integer("a number")?),
            other => {
                return Err(line.error(format!(
                    "constants of {other} cannot be written; float32, float16, int32 and uint8 can"
                )));
            }
        }
        found += 1;
    }
    if found != count {
        return Err(line.error(format!("{found} numbers, the shape has {count}")));
    }
    if is_array(file) {
        let descr = match dtype {
            "float32" => "<f4",
            "float16" => "<f2",
            "int32" => "<i4",
            _ => "|u1",
        };
        let dimensions: Vec<String> = shape.iter().map(|d| format!("{d},")).collect();
        let header = format!(
            "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
            dimensions.join(" ")
        );
        if header.len() >= NPY_HEADER - 10 {
            return Err(line.error("the shape has too many dimensions"));
        }
        bytes.extend(b"\x93NUMPY\x01\x00");
        bytes.extend((NPY_HEADER as u16 - 10).to_le_bytes());
        bytes.extend(format!("{header:<width$}\n", width = NPY_HEADER - 11).bytes());
    }
    bytes.append(&mut data);
    Ok(bytes)
}
