//! A program behind a contract: of any target, driven call by call.

use crate::failure::Failure;
use crate::options::Options;
use crate::{file, npy, targets};
use chipless_model::{ElementType, Interface, Limits, Port, Program, Storage};
use chipless_sim::{Functional, Verified};
use chipless_spu::fqir::Runner;
use chipless_spu::iospec::{self, Expected};
use std::collections::HashMap;

/// A program behind a contract.
pub struct Behind<'p> {
    /// What makes its numbers.
    pub program: Box<dyn iospec::Behind + 'p>,
    /// What it says of its inputs and outputs.
    pub expected: Vec<Expected>,
    /// The types of inputs and outputs by name, where they are not integers with a sign as an SPU has them.
    pub elements: HashMap<String, ElementType>,
    /// Whether it is a program of an SPU.
    pub is_spu: bool,
}

/// Makes the program of a file ready to be driven: each firing of a sequence is one run of it, or one step of a program with state.
///
/// # Errors
/// A file that cannot be read, that holds no program, or one that is wrong.
pub fn with_behind<T, E: From<Failure>>(
    name: &str,
    bytes: &[u8],
    options: &Options,
    then: impl FnOnce(Behind<'_>) -> Result<T, E>,
) -> Result<T, E> {
    if let Some(target) = file::recognize(name, bytes).filter(|target| target.name() == "spu") {
        options.fit(target)?;
        return targets::spu::with_runner(name, bytes, options, |runner: Runner<'_>| {
            let expected = iospec::of_lowered(runner.lowered());
            then(Behind {
                program: Box::new(runner),
                expected,
                elements: HashMap::new(),
                is_spu: true,
            })
        });
    }
    // As `run` takes it: weights that are not given are made up.
    let mut options = options.clone();
    options.data.computes = true;
    let file = file::open(name, bytes, &options)?;
    let document = file.read()?;
    let lowered = document.lower().map_err(|failure| failure.about(name))?;
    if let Err(findings) = lowered.verify() {
        return Err(Failure::program(findings).about(name).into());
    }
    let interface = &lowered.program.interface;
    let ports = || interface.inputs.iter().chain(&interface.outputs);
    let behind = Runs {
        name,
        bytes,
        options: &options,
        program: &lowered.program,
        own: document.depends_on_data(),
        inputs: interface.inputs.iter().map(zeros).collect(),
        outputs: interface.outputs.iter().map(zeros).collect(),
        ports: (Vec::new(), Vec::new()),
        varying: Vec::new(),
    };
    then(Behind {
        expected: iospec::of_program(interface),
        elements: ports()
            .map(|port| (port.name.clone(), port.element))
            .collect(),
        program: Box::new(behind),
        is_spu: false,
    })
}

/// Runs of a program, each from its start.
struct Runs<'p> {
    name: &'p str,
    bytes: &'p [u8],
    options: &'p Options,
    program: &'p Program<'p>,
    /// Whether each run needs a program of its own.
    own: bool,
    /// Bytes of inputs and outputs, by port.
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
    /// Ports of the contract's inputs and outputs.
    ports: (Vec<usize>, Vec<Option<usize>>),
    /// Ports of outputs whose length the data decide.
    varying: Vec<usize>,
}

impl std::fmt::Debug for Runs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn zeros(port: &Port) -> Vec<u8> {
    vec![0; port.bytes().unwrap_or_default() as usize]
}

impl iospec::Behind for Runs<'_> {
    fn match_document(&mut self, document: &iospec::Document) -> Result<(), String> {
        let interface = &self.program.interface;
        let find = |ports: &[Port], vector: &iospec::Vector| {
            let index = vector.among(ports)?;
            let elements: u64 = ports[index].shape.iter().product();
            let bits = ports[index].element.bits();
            let name = &vector.varname;
            if u64::try_from(vector.length) != Ok(elements) && !vector.varies() {
                let advice = match vector.side {
                    _ if !self.own => "",
                    iospec::Side::Output => VARIES,
                    iospec::Side::Input => IN_LOOPS,
                };
                return Err(format!(
                    "expected {elements} elements of `{name}` as the program has them, found {}{advice}",
                    vector.length
                ));
            }
            if u64::try_from(vector.precision) != Ok(bits) {
                return Err(format!(
                    "expected {bits} bits of `{name}` as the program has them, found {}",
                    vector.precision
                ));
            }
            Ok(index)
        };
        let inputs = document.inputs.iter().map(|v| find(&interface.inputs, v));
        let inputs = inputs.collect::<Result<Vec<usize>, _>>()?;
        let outputs = document
            .outputs
            .iter()
            .map(|v| find(&interface.outputs, v).map(Some));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        if let Some(lacking) = (0..interface.inputs.len()).find(|port| !inputs.contains(port)) {
            return Err(format!(
                "expected the program's input `{}` in the document, found none",
                interface.inputs[lacking].name
            ));
        }
        let varying = document.outputs.iter().zip(&outputs);
        let varying = varying.filter(|(vector, _)| vector.varies());
        self.varying = varying.filter_map(|(_, port)| *port).collect();
        self.ports = (inputs, outputs);
        Ok(())
    }

    fn set_input(&mut self, input: usize, values: &[i64]) {
        let Some(port) = self.ports.0.get(input).copied() else {
            return;
        };
        let bits = self.program.interface.inputs[port].element.bits();
        pack(values, bits, &mut self.inputs[port]);
    }

    fn fire(&mut self, _sequence: usize) -> Result<(), String> {
        let Runs {
            name,
            bytes,
            options,
            program,
            own,
            inputs,
            outputs,
            varying,
            ..
        } = self;
        if !*own {
            return run(program, &options.limits, inputs, outputs);
        }
        let interface = &program.interface;
        let mut arrays = HashMap::new();
        for (port, bytes) in interface.inputs.iter().zip(&*inputs) {
            let (mut array, data) = npy::write(port.element, &port.shape, bytes)?;
            array.extend_from_slice(&data);
            arrays.insert(port.name.clone(), array);
        }
        let options = options.with_arrays(arrays);
        let said = |failure: Failure| failure.to_string();
        let file = file::open(name, bytes, &options).map_err(said)?;
        let document = file.read().map_err(said)?;
        let lowered = document.lower().map_err(said)?;
        same(interface, &lowered.program.interface, varying)?;
        for port in varying {
            outputs[*port] = zeros(&lowered.program.interface.outputs[*port]);
        }
        run(&lowered.program, &options.limits, inputs, outputs)
    }

    fn output(&self, output: usize, values: &mut Vec<i64>) {
        values.clear();
        if let Some(port) = self.ports.1.get(output).copied().flatten() {
            let declared = &self.program.interface.outputs[port];
            let (bytes, bits) = (&self.outputs[port], declared.element.bits());
            let count = if self.varying.contains(&port) {
                bytes.len() as u64 * 8 / bits
            } else {
                declared.shape.iter().product()
            };
            unpack(bytes, bits, count, values);
        }
    }

    fn reset(&mut self) {
        self.inputs
            .iter_mut()
            .chain(&mut self.outputs)
            .for_each(|bytes| bytes.fill(0));
    }
}

/// Runs a program once.
fn run(
    program: &Program<'_>,
    limits: &Limits,
    inputs: &[Vec<u8>],
    outputs: &mut [Vec<u8>],
) -> Result<(), String> {
    let mut storage =
        Storage::new(&program.buffers, limits).map_err(|no_room| no_room.to_string())?;
    for (port, bytes) in program.interface.inputs.iter().zip(inputs) {
        let room = storage.bytes_mut(port.buffer);
        let Some(room) = room.get_mut(..bytes.len()) else {
            return Err(format!(
                "expected input `{}` to fit its buffer, found {} bytes",
                port.name,
                bytes.len()
            ));
        };
        room.copy_from_slice(bytes);
    }
    let outcome = chipless_sim::run(
        &Verified::assume(program),
        &mut Functional::new(&mut storage),
    );
    outcome
        .end
        .map_err(|stop| format!("the program stopped: {stop:?}"))?;
    for (port, bytes) in program.interface.outputs.iter().zip(outputs) {
        let Some(found) = storage.bytes(port.buffer).get(..bytes.len()) else {
            return Err(format!(
                "expected output `{}` of {} bytes, found fewer",
                port.name,
                bytes.len()
            ));
        };
        bytes.copy_from_slice(found);
    }
    Ok(())
}

/// What to do about a length that is not one of whole rows.
const IN_LOOPS: &str = ". Give the contract the shape of the input: `comments: {shape: [rows, lanes]}`, or `[outer, inner, lanes]`";

/// What to do about a length that data decide.
const VARIES: &str = ". If the data decide how many come, say so in the contract: `comments: {length_depends_on_data: true}`";

/// Refuses other inputs and outputs than those that the contract was matched with, but for outputs whose length may vary.
fn same(interface: &Interface, now: &Interface, varying: &[usize]) -> Result<(), String> {
    let ports = |of: &Interface| -> Vec<(String, ElementType, Vec<u64>)> {
        let outputs = of.outputs.iter().enumerate();
        let outputs = outputs.filter(|(port, _)| !varying.contains(port));
        let all = of.inputs.iter().chain(outputs.map(|(_, output)| output));
        all.map(|p| (p.name.clone(), p.element, p.shape.clone()))
            .collect()
    };
    for (before, now) in ports(interface).iter().zip(ports(now)) {
        if *before != now {
            return Err(format!(
                "expected {:?} elements of `{}` as the contract has them, found {:?} with these inputs{VARIES}",
                before.2, before.0, now.2
            ));
        }
    }
    Ok(())
}

/// Elements as bits, low ones first; those of less than a byte stand side by side.
fn pack(values: &[i64], bits: u64, bytes: &mut [u8]) {
    bytes.fill(0);
    let size = (bits / 8) as usize;
    for (index, value) in values.iter().enumerate() {
        if size > 0 {
            if let Some(room) = bytes.get_mut(index * size..(index + 1) * size) {
                room.copy_from_slice(&value.to_le_bytes()[..size]);
            }
            continue;
        }
        let at = index as u64 * bits;
        if let Some(byte) = bytes.get_mut((at / 8) as usize) {
            let mask = (1u8 << bits) - 1;
            *byte |= (*value as u8 & mask) << (at % 8);
        }
    }
}

/// Elements of bits, each with its highest bit as a sign.
fn unpack(bytes: &[u8], bits: u64, count: u64, values: &mut Vec<i64>) {
    let extended = |word: u64| (word << (64 - bits)) as i64 >> (64 - bits);
    let size = (bits / 8) as usize;
    values.extend((0..count as usize).map(|index| {
        if size > 0 {
            let element = bytes
                .get(index * size..(index + 1) * size)
                .unwrap_or_default();
            return extended(
                element
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte)),
            );
        }
        let at = index as u64 * bits;
        extended(u64::from(
            bytes.get((at / 8) as usize).copied().unwrap_or_default() >> (at % 8),
        ))
    }));
}
