//! SHAVE invocations: prebuilt kernels, recognised by their code and executed by our own implementation of the operation.

use super::layer_of;
use super::pieces::{self, Pieces};
use super::{Cmx, Descriptors};
use crate::address;
use crate::shave::{self, Operation, TensorRef, Values};
use chipless_kernels::room::Room;
use chipless_kernels::{cast, strided};
use chipless_model::{
    Access, BufferId, Dependence, Direction, Doubt, ElementType, Fault, Halves, Kernel, Kind,
    Pattern, Storage, Write, Zero,
};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// An invocation of a SHAVE kernel.
#[derive(Debug)]
pub(crate) struct Invocation<'i> {
    pub(crate) descriptors: Descriptors<'i>,
    pub(crate) cmx: Cmx,
    pub(crate) work: Work,
}

/// What the kernel does.
#[derive(Debug)]
pub(crate) enum Work {
    /// An operation that is known.
    Known(Box<shave::Invocation>),
    /// A kernel that no table names: its code, and what looks like its tensors.
    Unknown {
        /// What is known of its code.
        identity: shave::Identity,
        /// The release of the compiler that wrote the program, where it says so.
        release: Option<String>,
        /// Tensors at the start of its arguments.
        tensors: Vec<TensorRef>,
    },
    /// Not a kernel: cache maintenance and the like, which has no effect on memory here.
    Maintenance(&'static str),
}

/// What an invocation makes.
enum Made {
    Nothing,
    /// The bytes of its only output.
    Halves(Room<u8>),
    Tensors(Vec<shave::Tensor>),
}

impl Kernel for Invocation<'_> {
    fn operation(&self) -> Cow<'static, str> {
        match &self.work {
            Work::Known(invocation) => invocation.operation.name().into(),
            Work::Unknown { identity, .. } => match &identity.name {
                Some(name) => format!("kernel {name}").into(),
                None => format!("kernel {}", identity.hash).into(),
            },
            Work::Maintenance(what) => (*what).into(),
        }
    }

    fn layer<'l>(&self, label: &'l str) -> Option<&'l str> {
        layer_of(label)
    }

    fn details(&self) -> String {
        let shapes = |tensors: &[TensorRef]| {
            tensors
                .iter()
                .map(|t| t.shape.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match &self.work {
            Work::Known(i) => format!("{} -> {}", shapes(&i.inputs), shapes(&i.outputs)),
            Work::Unknown {
                identity, tensors, ..
            } => {
                format!(
                    "{} bytes of code, tensors {}",
                    identity.size,
                    shapes(tensors)
                )
            }
            Work::Maintenance(_) => String::new(),
        }
    }

    fn arithmetic(&self) -> u64 {
        match &self.work {
            Work::Known(invocation) => invocation.elements(),
            Work::Unknown { .. } | Work::Maintenance(_) => 0,
        }
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.descriptors.accesses(visit);
        match &self.work {
            Work::Known(invocation) => {
                for (buffer, pattern) in self.sizes(&invocation.inputs) {
                    visit(Access::read(buffer, pattern).of(Access::DESCRIPTION));
                }
                for (buffer, pattern) in self.sizes(&invocation.outputs) {
                    visit(Access::write(buffer, pattern));
                }
                for (number, tensor) in (1..).zip(&invocation.inputs) {
                    if let Some((buffer, pattern)) = self.place(tensor) {
                        visit(Access::read(buffer, pattern).of(number));
                    }
                }
                let mut each = |tensors: &[TensorRef], make: fn(BufferId, Pattern) -> Access| {
                    for (buffer, pattern) in tensors.iter().filter_map(|t| self.place(t)) {
                        visit(make(buffer, pattern));
                    }
                };
                each(&invocation.outputs, Access::write);
                each(&invocation.scratch, |buffer, pattern| {
                    Access::write(buffer, pattern).may()
                });
            }
            // It may write anything in the memory of its tile.
            Work::Unknown { tensors, .. } => {
                for (buffer, pattern) in tensors.iter().filter_map(|t| self.place(t)) {
                    visit(Access::read(buffer, pattern).may());
                }
                if let Some((buffer, ..)) = self.descriptors.0.first() {
                    visit(Access::write(*buffer, Pattern::contiguous(0, self.cmx.size)).may());
                }
            }
            Work::Maintenance(_) => {}
        }
    }

    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        if self.descriptors.are_doubtful(doubtful) {
            return Dependence::Control;
        }
        // What an unknown kernel makes of what it reads is not known: nothing is held against it.
        let Work::Known(invocation) = &self.work else {
            return Dependence::Bytes;
        };
        let mut sizes = self.sizes(&invocation.inputs);
        if sizes.any(|(buffer, pattern)| {
            doubtful.any(buffer, pattern.offset..pattern.offset + pattern.run)
        }) {
            return Dependence::Control;
        }
        let in_doubt = |tensor: &TensorRef, visit: &mut dyn FnMut(Range<u64>)| {
            if let Some((buffer, pattern)) = self.place(tensor) {
                let each = |bytes, visit: &mut dyn FnMut(_)| doubtful.each(buffer, bytes, visit);
                elements_found(tensor, &pattern, &each, visit);
            }
        };
        let Some(dependent) = shave::dependent_elements(invocation, &in_doubt) else {
            return Dependence::Everything;
        };
        for (tensor, elements) in invocation.outputs.iter().zip(dependent) {
            self.visit_elements(tensor, elements, visit);
        }
        Dependence::Bytes
    }

    /// Elements that depend on nothing but zeros have the value that zeros give.
    fn zeros(&self, zero: &dyn Zero, visit: &mut dyn FnMut(BufferId, Pattern)) {
        let Work::Known(invocation) = &self.work else {
            return;
        };
        let others = |tensor: &TensorRef, visit: &mut dyn FnMut(Range<u64>)| {
            let Some((buffer, pattern)) = self.place(tensor) else {
                return visit(0..tensor.shape.elements());
            };
            let each = |bytes, visit: &mut dyn FnMut(_)| zero.each_other(buffer, bytes, visit);
            elements_found(tensor, &pattern, &each, visit);
        };
        let has_zero = |tensor: &TensorRef| {
            self.place(tensor).is_some_and(|(buffer, pattern)| {
                let mut runs = pattern.runs().map(|at| at..at + pattern.run);
                runs.any(|run| zero.first_other(buffer, run.clone()) != Some(run))
            })
        };
        if !invocation.inputs.iter().any(has_zero) {
            return;
        }
        let Some(others) = shave::dependent_elements(invocation, &others) else {
            return;
        };
        let outputs = invocation.outputs.iter().zip(others);
        let of_zeros: Vec<(&TensorRef, Vec<Range<u64>>)> = outputs
            .map(|(tensor, others)| (tensor, between(&others, tensor.shape.elements())))
            .collect();
        if of_zeros.iter().all(|(_, elements)| elements.is_empty()) {
            return;
        }
        let zeros = invocation
            .inputs
            .iter()
            .map(|tensor| shave::Tensor::zeros(&tensor.shape));
        let made = zeros
            .collect::<Result<Vec<_>, _>>()
            .and_then(|inputs| shave::evaluate(invocation, &inputs));
        let Ok(made) = made else { return };
        for ((tensor, elements), made) in of_zeros.into_iter().zip(made) {
            let is_zero = |number: &u64| made.values.is_zero(*number as usize);
            let zeros = elements.into_iter().flatten().filter(is_zero);
            self.visit_elements(tensor, zeros.map(|number| number..number + 1), visit);
        }
    }

    /// Both SHAVEs of a tile may be given one job, in two invocations that are alike.
    fn function(&self) -> Option<u64> {
        let Work::Known(invocation) = &self.work else {
            return None;
        };
        let mut hasher = DefaultHasher::new();
        format!("{invocation:?}").hash(&mut hasher);
        Some(hasher.finish())
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let made = self.made(storage)?;
        self.write(made, storage)
    }

    fn halves(&self) -> Option<&dyn Halves> {
        Some(self)
    }

    fn tensor(&self, access: &Access) -> Option<(ElementType, Vec<u64>)> {
        let Work::Known(invocation) = &self.work else {
            return None;
        };
        let tensors = match access.direction {
            Direction::Read => &invocation.inputs,
            Direction::Write => &invocation.outputs,
        };
        let is_meant = |tensor: &&TensorRef| {
            let place = self.place(tensor);
            place.is_some_and(|(buffer, pattern)| {
                buffer == access.buffer && pattern == access.pattern
            })
        };
        let shape = &tensors.iter().find(is_meant)?.shape;
        let outermost_first = shape.dims.iter().rev().map(|n| u64::from(*n));
        Some((shape.element, outermost_first.collect()))
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        match &self.work {
            Work::Known(invocation) => invocation
                .unproven()
                .map(|what| format!("{}: {what}", invocation.operation).into()),
            Work::Unknown { .. } | Work::Maintenance(_) => None,
        }
    }
}

impl Halves for Invocation<'_> {
    fn compute(&self, storage: &Storage<'_>) -> Result<Write<'_>, Fault> {
        let made = self.made(storage)?;
        Ok(Box::new(|storage| self.write(made, storage)))
    }
}

impl Invocation<'_> {
    /// Calls with the places of elements of a tensor, which are in order.
    fn visit_elements(
        &self,
        tensor: &TensorRef,
        elements: impl IntoIterator<Item = Range<u64>>,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) {
        let size = bytes_of_an_element(tensor);
        let place = self.place(tensor);
        let mut pieces = Pieces::new(place.as_slice());
        for run in elements {
            pieces.add(run.start * size..run.end * size, visit);
        }
        pieces.flush(visit);
    }

    fn place(&self, tensor: &TensorRef) -> Option<(BufferId, Pattern)> {
        let (buffer, offset) = self.cmx.locate(tensor.address)?;
        Some((buffer, tensor.pattern.shifted(offset as i64)?))
    }

    /// Where the computed sizes of a tensor stand: in the CMX of its tile.
    fn sizes_of(&self, tensor: &TensorRef) -> Option<(BufferId, Pattern)> {
        let sizes = tensor.sizes?;
        let (own, _) = self.cmx.locate(tensor.address)?;
        let named = self.cmx.locate(sizes);
        let (buffer, offset) = named.unwrap_or((own, address::in_tile(sizes)));
        let bytes = 4 * tensor.shape.dims.len() as u64;
        Some((buffer, Pattern::contiguous(offset, bytes)))
    }

    fn sizes(&self, tensors: &[TensorRef]) -> impl Iterator<Item = (BufferId, Pattern)> {
        tensors.iter().filter_map(|tensor| self.sizes_of(tensor))
    }

    /// Inputs of computed sizes must have those of their upper bounds, or what is read and written is not what the shapes say.
    fn expect_bounds(
        &self,
        storage: &Storage<'_>,
        invocation: &shave::Invocation,
    ) -> Result<(), Fault> {
        for tensor in &invocation.inputs {
            let Some((buffer, pattern)) = self.sizes_of(tensor) else {
                continue;
            };
            let mut bytes = Vec::new();
            strided::gather(storage.bytes(buffer), &pattern, &mut bytes).map_err(fault)?;
            let (sizes, _) = bytes.as_chunks::<4>();
            let sizes: Vec<u32> = sizes.iter().map(|size| u32::from_le_bytes(*size)).collect();
            let is_whole = match invocation.operation {
                // Where it works in place, its x has the bounds of y.
                Operation::DynamicReshape => {
                    let count = sizes
                        .iter()
                        .try_fold(1u64, |n, size| n.checked_mul(u64::from(*size)));
                    count == Some(tensor.shape.elements())
                }
                _ => sizes == tensor.shape.dims,
            };
            if !is_whole {
                return Err(Fault::unsupported(format!(
                    "a tensor with the upper bounds {} has the sizes {sizes:?}, innermost first: a run below the upper bounds",
                    tensor.shape
                )));
            }
        }
        Ok(())
    }

    fn store_sizes(&self, storage: &mut Storage<'_>, tensor: &TensorRef) -> Result<(), Fault> {
        match self.sizes_of(tensor) {
            Some((buffer, pattern)) => {
                strided::scatter(&sizes(tensor), storage.bytes_mut(buffer), &pattern).map_err(fault)
            }
            None => Ok(()),
        }
    }

    fn located(&self, tensor: &TensorRef) -> Result<(BufferId, Pattern), Fault> {
        self.place(tensor).ok_or_else(|| {
            Fault::program(format!(
                "tensor at {:#x}, which is not in the CMX of one tile of the program",
                tensor.address
            ))
        })
    }

    /// What the invocation makes of what it reads.
    fn made(&self, storage: &Storage<'_>) -> Result<Made, Fault> {
        self.descriptors.check(storage)?;
        let invocation = match &self.work {
            Work::Known(invocation) => invocation,
            Work::Maintenance(_) => return Ok(Made::Nothing),
            Work::Unknown {
                identity, release, ..
            } => return Err(Fault::unsupported(unknown(identity, release.as_deref()))),
        };
        self.expect_bounds(storage, invocation)?;
        if let Some(halves) = self.replaced_halves(storage, invocation)? {
            return Ok(Made::Halves(halves));
        }
        let inputs = invocation
            .inputs
            .iter()
            .map(|t| self.load(storage, t))
            .collect::<Result<Vec<_>, _>>()?;
        shave::evaluate(invocation, &inputs).map(Made::Tensors)
    }

    fn write(&self, made: Made, storage: &mut Storage<'_>) -> Result<(), Fault> {
        let Work::Known(invocation) = &self.work else {
            return Ok(());
        };
        match made {
            Made::Nothing => {}
            Made::Halves(bytes) => {
                for place in &invocation.outputs {
                    let (buffer, pattern) = self.located(place)?;
                    strided::scatter(&bytes, storage.bytes_mut(buffer), &pattern).map_err(fault)?;
                    self.store_sizes(storage, place)?;
                }
            }
            Made::Tensors(tensors) => {
                for (tensor, place) in tensors.iter().zip(&invocation.outputs) {
                    self.store(storage, place, &tensor.values)?;
                    self.store_sizes(storage, place)?;
                }
            }
        }
        Ok(())
    }

    /// The results of what makes one half from one half, without decoding them all; `None` where it is not that.
    fn replaced_halves(
        &self,
        storage: &Storage<'_>,
        invocation: &shave::Invocation,
    ) -> Result<Option<Room<u8>>, Fault> {
        let ([input], [output]) = (&invocation.inputs[..], &invocation.outputs[..]) else {
            return Ok(None);
        };
        let Some(function) = shave::HalfFunction::of(invocation) else {
            return Ok(None);
        };
        let ((buffer, from), (_, to)) = (self.located(input)?, self.located(output)?);
        let size = input.shape.elements().checked_mul(2);
        if (from.bytes(), to.bytes()) != (size, size) {
            return Ok(None);
        }
        let mut bytes = Room::take(from.bytes().unwrap_or(0) as usize);
        let packed = Pattern::contiguous(0, bytes.len() as u64);
        strided::copy(storage.bytes(buffer), &from, &mut bytes, &packed).map_err(fault)?;
        function.replace(&mut bytes).map_err(fault)?;
        Ok(Some(bytes))
    }

    fn load(&self, storage: &Storage<'_>, tensor: &TensorRef) -> Result<shave::Tensor, Fault> {
        let (buffer, pattern) = self.located(tensor)?;
        let source = storage.bytes(buffer);
        let mut gathered = Vec::new();
        let bytes = if let Some(run) = as_one_run(&pattern, source.len()) {
            &source[run]
        } else {
            strided::gather(source, &pattern, &mut gathered).map_err(fault)?;
            &gathered
        };
        let (element, count) = (tensor.shape.element, tensor.shape.elements() as usize);
        let values = if element.kind() == Kind::Float {
            let mut values = vec![0.0; count];
            cast::decode_f32(element, bytes, &mut values).map_err(fault)?;
            Values::Float(values)
        } else {
            let mut values = vec![0; count];
            cast::decode_i64(element, bytes, &mut values).map_err(fault)?;
            Values::Integer(values)
        };
        shave::Tensor::new(tensor.shape.clone(), values)
    }

    fn store(
        &self,
        storage: &mut Storage<'_>,
        tensor: &TensorRef,
        values: &Values,
    ) -> Result<(), Fault> {
        let (buffer, pattern) = self.located(tensor)?;
        let element = tensor.shape.element;
        let encode = |bytes: &mut [u8]| {
            match values {
                Values::Float(values) => {
                    cast::encode_f32(element, values, cast::Rounding::NearestEven, bytes)
                }
                Values::Integer(values) => cast::encode_i64(element, values, bytes),
            }
            .map_err(fault)
        };
        let destination = storage.bytes_mut(buffer);
        if let Some(run) = as_one_run(&pattern, destination.len()) {
            return encode(&mut destination[run]);
        }
        let mut bytes = vec![0; pattern.bytes().unwrap_or(0) as usize];
        encode(&mut bytes)?;
        strided::scatter(&bytes, destination, &pattern).map_err(fault)
    }
}

/// The bytes of a pattern, where they stand side by side in a buffer of this size.
fn as_one_run(pattern: &Pattern, size: usize) -> Option<Range<usize>> {
    let is_one = pattern.loops.is_empty() && pattern.fits(size as u64);
    is_one.then(|| pattern.offset as usize..(pattern.offset + pattern.run) as usize)
}

/// The upper bounds of a tensor as a program keeps sizes.
fn sizes(tensor: &TensorRef) -> Vec<u8> {
    let dims = tensor.shape.dims.iter();
    dims.flat_map(|dim| dim.to_le_bytes()).collect()
}

/// Why a kernel is not executed, and what to do.
fn unknown(identity: &shave::Identity, release: Option<&str>) -> String {
    let shave::Identity { hash, size, .. } = identity;
    let release = release.map_or_else(
        || "the compiler that wrote this program".to_owned(),
        |release| format!("release {release}"),
    );
    match &identity.name {
        Some(name) => format!(
            "SHAVE kernel {name} ({hash}, {release}) is not supported: Chipless does not know its arguments; if it computes what another operation does, pass --kernel {hash}=OPERATION"
        ),
        None => format!(
            "SHAVE kernel {hash} ({size} bytes of code) is not in the tables of Chipless: import those of {release} with `chipless kernels import LIBRARY -o TABLE.toml`, LIBRARY being its NPU compiler or driver, and pass --kernel-table TABLE.toml; or pass --kernel {hash}=OPERATION"
        ),
    }
}

fn fault(error: impl std::fmt::Display) -> Fault {
    Fault::program(error.to_string())
}

fn bytes_of_an_element(tensor: &TensorRef) -> u64 {
    tensor.shape.element.bits().div_ceil(8)
}

/// Calls with the elements of a tensor in whose bytes `each` finds something, in order.
fn elements_found(
    tensor: &TensorRef,
    pattern: &Pattern,
    each: pieces::Each<'_>,
    visit: &mut dyn FnMut(Range<u64>),
) {
    let size = bytes_of_an_element(tensor);
    pieces::found(pattern, each, &mut |found| {
        let elements = found
            .runs()
            .map(|run| run.start / size..run.end.div_ceil(size));
        elements.for_each(&mut *visit);
    });
}

/// The elements between runs of others, up to `count`.
fn between(others: &[Range<u64>], count: u64) -> Vec<Range<u64>> {
    let ends = others.iter().map(|run| run.start).chain([count]);
    let starts = [0].into_iter().chain(others.iter().map(|run| run.end));
    let runs = starts.zip(ends).map(|(start, end)| start..end);
    runs.filter(|run| !run.is_empty()).collect()
}
