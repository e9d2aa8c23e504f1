//! What the file says about the network: serialised structures of the loader.
//!
//! A serialised structure is a chain of descriptors `{u64 offset of the data, u64 offset of the next descriptor, u64
//! count, u64 bytes of an element}`, offsets from the start of the section, the first descriptor at 0.
//!
//! Sources: `npu_compiler_elf` `metadata_primitives.hpp`, `serial_metadata.hpp`, `serial_struct_base.hpp`.

use crate::elf::range;
use crate::rules;
use chipless_model::{ElementType, Finding, Place, Rule};
use zerocopy::byteorder::little_endian::{F32, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Bytes of a descriptor of the chain.
const DESCRIPTOR: u64 = 32;
/// Most dimensions of a tensor.
const RANK: usize = 8;

/// A name in 256 bytes, NUL-terminated.
#[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Name(pub [u8; 256]);

impl Name {
    /// The text, where it is UTF-8 and has an end.
    pub fn text(&self) -> Option<&str> {
        std::ffi::CStr::from_bytes_until_nul(&self.0)
            .ok()?
            .to_str()
            .ok()
    }
}

/// The chip and the network by name, 512 bytes.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Identification {
    /// The chip: `NPU4000`.
    pub architecture: Name,
    /// The network.
    pub network: Name,
}

/// What the program needs of the chip, 12 bytes.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Resources {
    /// Bytes of CMX that it uses of each tile.
    pub slice_length: U32,
    _padding: [u8; 6],
    /// Tiles.
    pub tiles: u8,
    /// Barriers; 0 where the runtime is to count them.
    pub barriers: u8,
}

/// A tensor at the network's edge as the device sees it, 384 bytes.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TensorRef {
    /// In bits: of an element, then from the outermost to the innermost dimension.
    pub strides: [U64; RANK + 1],
    /// Outermost first.
    pub dimensions: [U32; RANK],
    /// Name.
    pub name: Name,
    /// Order of the dimensions in memory, one hexadecimal digit each: 0x1234 as written.
    pub order: U64,
    /// Element type; see [`element_type`].
    pub data_type: U32,
    /// Dimensions in use.
    pub rank: U32,
    /// Strides in use.
    pub stride_count: U32,
    /// Bit 0: strides may change from inference to inference.
    pub flags: u8,
    _padding: [u8; 3],
}

impl TensorRef {
    /// Dimensions, outermost first.
    pub fn shape(&self) -> impl Iterator<Item = u64> {
        self.dimensions
            .iter()
            .take(self.rank.get() as usize)
            .map(|size| u64::from(size.get()))
    }

    /// Strides in bits, outermost first.
    pub fn strides(&self) -> impl Iterator<Item = u64> {
        self.strides
            .iter()
            .skip(1)
            .take(self.rank.get() as usize)
            .map(|stride| stride.get())
    }

    /// Bytes from the first to the last element; `None` beyond 2^64 bits.
    pub fn bytes(&self) -> Option<u64> {
        let mut bits = self.strides[0].get();
        for (size, stride) in self.shape().zip(self.strides()) {
            let Some(steps) = size.checked_sub(1) else {
                return Some(0);
            };
            bits = bits.checked_add(steps.checked_mul(stride)?)?;
        }
        Some(bits.div_ceil(8))
    }

    /// Whether it is plain row-major: dimensions in their order, no gaps.
    pub fn is_row_major(&self) -> bool {
        let rank = (self.rank.get() as usize).min(RANK);
        let order = (1..=rank as u64).fold(0, |order, digit| order << 4 | digit);
        let mut expected = self.strides[0].get();
        self.order.get() == order
            && (0..rank).rev().all(|axis| {
                let (size, stride) = (
                    u64::from(self.dimensions[axis].get()),
                    self.strides[axis + 1].get(),
                );
                let fits = stride == expected || size == 1;
                expected = expected.saturating_mul(size);
                fits
            })
    }
}

/// How an input is to be converted before the network, 268 bytes.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Preprocessing {
    /// Of which input.
    pub input: Name,
    /// Colour space before.
    pub input_format: U32,
    /// Colour space after.
    pub output_format: U32,
    /// How to resize.
    pub algorithm: U32,
}

/// A parameter or result of the model that was compiled, 8784 bytes.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ModelNode {
    /// Its tensor's names.
    pub tensor_names: [Name; 32],
    /// Outermost first.
    pub shape: [U64; RANK],
    /// Name for people.
    pub friendly_name: Name,
    /// Name of the node that feeds it.
    pub input_name: Name,
    /// `OpenVINO`'s element type; see [`model_type_name`].
    pub element: U32,
    /// Dimensions in use.
    pub rank: U32,
    /// Tensor names in use.
    pub tensor_name_count: U32,
    _padding: [u8; 4],
}

/// The compiler's estimate of the latency, 320 bytes: a grid of five DPU frequencies by five memory bandwidths.
///
/// Source: `VpuPerformanceMetrics`, `vpu_nnrt_api`; meaning of the ticks from compiled programs.
#[derive(Debug, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct PerformanceMetrics {
    /// First frequency, MHz.
    pub frequency_base: U32,
    /// Step to the next, MHz.
    pub frequency_step: U32,
    /// First bandwidth, MB/s.
    pub bandwidth_base: U32,
    /// Step to the next, MB/s.
    pub bandwidth_step: U32,
    /// Duration in ticks of the chip's timer, by frequency, then bandwidth.
    pub ticks: [[U64; 5]; 5],
    /// How much of the speed-up of a faster clock is realised, by frequency, then bandwidth.
    pub scalability: [[F32; 5]; 5],
    /// Share of time that the DPU works.
    pub activity_factor: F32,
}

impl PerformanceMetrics {
    /// The duration in cycles of the DPU clock. Ticks are rounded down, so the largest row is nearest.
    pub fn cycles(&self, timer_mhz: f64) -> f64 {
        let mut frequency = f64::from(self.frequency_base.get());
        let mut cycles = 0.0_f64;
        for row in &self.ticks {
            let ticks = row.last().map_or(0, |ticks| ticks.get());
            cycles = cycles.max(ticks as f64 / timer_mhz * frequency);
            frequency += f64::from(self.frequency_step.get());
        }
        cycles
    }
}

/// The network's description. Everything borrows the file.
#[derive(Clone, Copy)]
pub struct Metadata<'f> {
    /// Names.
    pub identification: &'f Identification,
    /// Needs.
    pub resources: &'f Resources,
    /// Inputs in the order of `io.NetworkInput.N`.
    pub inputs: &'f [TensorRef],
    /// Outputs in the order of `io.NetworkOutput.N`.
    pub outputs: &'f [TensorRef],
    /// Inputs as the host gives them.
    pub host_inputs: &'f [TensorRef],
    /// Outputs as the host takes them.
    pub host_outputs: &'f [TensorRef],
    /// Profiling outputs in the order of `io.ProfilingOutput.N`.
    pub profiling_outputs: &'f [TensorRef],
    /// Conversions before the network.
    pub preprocessing: &'f [Preprocessing],
    /// The model's parameters.
    pub parameters: &'f [ModelNode],
    /// The model's results.
    pub results: &'f [ModelNode],
}

impl std::fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |tensors: &[TensorRef]| {
            tensors
                .iter()
                .map(|t| t.name.text().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        f.debug_struct("Metadata")
            .field("network", &self.identification.network.text())
            .field("inputs", &names(self.inputs))
            .field("outputs", &names(self.outputs))
            .finish_non_exhaustive()
    }
}

impl<'f> Metadata<'f> {
    /// Reads the section; `place` is where it lies in the file.
    pub fn read(bytes: &'f [u8], place: &Place) -> Result<Metadata<'f>, Box<Finding>> {
        let mut chain = Serialised::new(bytes, place);
        let metadata = Metadata {
            identification: chain.one("identification")?,
            resources: chain.one("resource requirements")?,
            inputs: chain.many("network inputs")?,
            outputs: chain.many("network outputs")?,
            host_inputs: chain.many("input descriptors")?,
            host_outputs: chain.many("output descriptors")?,
            profiling_outputs: chain.many("profiling outputs")?,
            preprocessing: chain.many("preprocessing")?,
            parameters: chain.many("model parameters")?,
            results: chain.many("model results")?,
        };
        metadata.check(place)?;
        Ok(metadata)
    }

    fn check(&self, place: &Place) -> Result<(), Box<Finding>> {
        let fault = |item: String, message: &str| {
            Err(Box::new(
                rules::METADATA_VALUE.at(place.clone().at(item), message),
            ))
        };
        if self.identification.network.text().is_none()
            || self.identification.architecture.text().is_none()
        {
            return fault(
                "identification".to_owned(),
                "a name is not NUL-terminated UTF-8 in 256 bytes",
            );
        }
        let lists = [
            ("input", self.inputs),
            ("output", self.outputs),
            ("input descriptor", self.host_inputs),
            ("output descriptor", self.host_outputs),
            ("profiling output", self.profiling_outputs),
        ];
        for (kind, list) in lists {
            for (index, tensor) in list.iter().enumerate() {
                if tensor.name.text().is_none() {
                    return fault(
                        format!("{kind} {index}"),
                        "the name is not NUL-terminated UTF-8 in 256 bytes",
                    );
                }
                let (rank, strides) = (tensor.rank.get(), tensor.stride_count.get());
                if rank as usize > RANK || strides as usize > RANK + 1 {
                    return fault(
                        format!("{kind} {index}"),
                        &format!("{rank} dimensions and {strides} strides; 8 and 9 are the most"),
                    );
                }
            }
        }
        for (kind, list) in [("parameter", self.parameters), ("result", self.results)] {
            for (index, node) in list.iter().enumerate() {
                let (rank, names) = (node.rank.get(), node.tensor_name_count.get());
                if rank as usize > RANK || names as usize > node.tensor_names.len() {
                    return fault(
                        format!("{kind} {index}"),
                        &format!("{rank} dimensions and {names} names; 8 and 32 are the most"),
                    );
                }
            }
        }
        Ok(())
    }
}

/// The content of a section that holds one serialised value of a known size, such as the platform.
pub(crate) fn single<'f, T: FromBytes + Immutable + KnownLayout + Unaligned>(
    bytes: &'f [u8],
    place: &Place,
    what: &str,
) -> Result<&'f [T], Box<Finding>> {
    Serialised {
        rule: &rules::SECTION_SIZE,
        ..Serialised::new(bytes, place)
    }
    .many(what)
}

/// Walks the chain of descriptors.
struct Serialised<'f, 'p> {
    bytes: &'f [u8],
    place: &'p Place,
    rule: &'static Rule,
    /// Of the next descriptor; 0 after the last.
    next: Option<u64>,
}

impl<'f, 'p> Serialised<'f, 'p> {
    fn new(bytes: &'f [u8], place: &'p Place) -> Serialised<'f, 'p> {
        Serialised {
            bytes,
            place,
            rule: &rules::METADATA_STRUCTURE,
            next: Some(0),
        }
    }

    fn many<T: FromBytes + Immutable + KnownLayout + Unaligned>(
        &mut self,
        what: &str,
    ) -> Result<&'f [T], Box<Finding>> {
        let Some(at) = self.next else { return Ok(&[]) };
        let fault = |message: String| {
            let start = self.place.offset.unwrap_or_default().saturating_add(at);
            let place = Place {
                offset: Some(start),
                size: DESCRIPTOR,
                ..self.place.clone()
            };
            Err(Box::new(self.rule.at(place.at(what), message)))
        };
        let total = self.bytes.len();
        let descriptor = range(self.bytes, at, DESCRIPTOR)
            .and_then(|bytes| <[U64; 4]>::ref_from_bytes(bytes).ok());
        let Some(descriptor) = descriptor else {
            return fault(format!(
                "a descriptor takes 32 bytes; the section has {total}"
            ));
        };
        let [data, next, count, size] = descriptor.map(U64::get);
        let last = (total as u64).saturating_sub(DESCRIPTOR);
        if next != 0 && !(at + 1..=last).contains(&next) {
            return fault(format!(
                "the next descriptor is said to be at {next:#x}; it should be behind {at:#x} and inside the {total} bytes"
            ));
        }
        let expected = size_of::<T>() as u64;
        if count != 0 && size != expected {
            return fault(format!(
                "elements of {what} are {expected} bytes, not {size}"
            ));
        }
        let values = count
            .checked_mul(expected)
            .and_then(|bytes| range(self.bytes, data, bytes));
        let Some(values) = values.and_then(|values| <[T]>::ref_from_bytes(values).ok()) else {
            return fault(format!(
                "{count} elements of {expected} bytes from {data:#x} reach beyond the {total} bytes of the section"
            ));
        };
        self.next = (next != 0).then_some(next);
        Ok(values)
    }

    fn one<T: FromBytes + Immutable + KnownLayout + Unaligned>(
        &mut self,
        what: &str,
    ) -> Result<&'f T, Box<Finding>> {
        match self.many(what)? {
            [value] => Ok(value),
            values => Err(Box::new(self.rule.at(
                self.place.clone().at(what),
                format!("expected one {what}, found {}", values.len()),
            ))),
        }
    }
}

/// Name of a tensor's element type (`elf::DType`).
pub fn data_type_name(code: u32) -> &'static str {
    const NAMES: [&str; 24] = [
        "unset",
        "float64",
        "float32",
        "float16",
        "float8_e5m2",
        "uint64",
        "uint32",
        "uint16",
        "uint8",
        "int64",
        "int32",
        "int16",
        "int8",
        "int4",
        "int2",
        "int4x",
        "uint1",
        "log",
        "int2x",
        "bfloat16",
        "uint4",
        "float8_e4m3fn",
        "float8_e8m0",
        "float4_e2m1",
    ];
    NAMES.get(code as usize).copied().unwrap_or("unknown")
}

/// A tensor's element type; `None` for those that no program here holds.
pub fn element_type(code: u32) -> Option<ElementType> {
    ElementType::from_name(data_type_name(code))
}

/// Name of a model node's element type (`elf::OVNodeType`).
pub fn model_type_name(code: u32) -> &'static str {
    const NAMES: [&str; 25] = [
        "undefined",
        "dynamic",
        "bool",
        "bfloat16",
        "float16",
        "float32",
        "float64",
        "int4",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint1",
        "uint4",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float8_e4m3fn",
        "float8_e5m2",
        "nf4",
        "float8_e8m0",
        "int2",
        "uint2",
        "float4_e2m1",
    ];
    NAMES.get(code as usize).copied().unwrap_or("unknown")
}
