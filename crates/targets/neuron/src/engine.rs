//! Engine JSON files: the DMA descriptors that an engine triggers, and the tables that Activation and DVE load.

use crate::json::{Error, Members, Name, Source, names};
use chipless_model::{ElementType, Loop, Pattern};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use std::fmt;

/// Dimensions of an access pattern, at most (NEFF specification, `from_steps`).
pub const MAX_DIMENSIONS: usize = 4;

names! {
    /// What the DMA engine does on the way (`op`).
    Operation {
        /// Bytes as they are.
        Copy "copy",
        /// Elements converted from one type to another.
        Cast "cast",
        /// Sum of scaled sources.
        Fma "fma",
        /// Sum of sources.
        Add "add",
        /// Smallest of sources.
        Min "min",
        /// Largest of sources.
        Max "max",
        /// Elements in another order of dimensions.
        Transpose "transpose",
    }
}

impl Operation {
    /// Whether the DMA's compute engine works on a list of sources (`from_arr`).
    pub const fn is_compute(self) -> bool {
        matches!(self, Operation::Fma | Operation::Add | Operation::Min | Operation::Max)
    }
}

names! {
    /// Element types of descriptors (`from_dtype`, `to_dtype`).
    DataType {
        /// 3 exponent bits, 4 mantissa bits.
        Float8E3 "float8e3",
        /// 4 exponent bits, 3 mantissa bits, with infinity.
        Float8E4 "float8e4",
        /// 5 exponent bits, 2 mantissa bits.
        Float8E5 "float8e5",
        /// IEEE binary16.
        Float16 "float16",
        /// IEEE binary32.
        Float32 "float32",
        /// Binary32 that the matrix engine reads at reduced precision; the same bits in memory.
        Float32R "float32r",
        /// Upper half of binary32.
        BFloat16 "bfloat16",
        /// Unsigned byte.
        UInt8 "uint8",
        /// Unsigned 16 bit.
        UInt16 "uint16",
        /// Unsigned 32 bit.
        UInt32 "uint32",
        /// Unsigned 64 bit.
        UInt64 "uint64",
        /// Signed byte.
        Int8 "int8",
        /// Signed 16 bit.
        Int16 "int16",
        /// Signed 32 bit.
        Int32 "int32",
        /// Signed 64 bit.
        Int64 "int64",
    }
}

impl DataType {
    /// The model's type; `None` for an unknown name.
    pub const fn element(self) -> Option<ElementType> {
        Some(match self {
            DataType::Float8E3 => ElementType::Float8E3M4,
            DataType::Float8E4 => ElementType::Float8E4M3,
            DataType::Float8E5 => ElementType::Float8E5M2,
            DataType::Float16 => ElementType::Float16,
            DataType::Float32 | DataType::Float32R => ElementType::Float32,
            DataType::BFloat16 => ElementType::BFloat16,
            DataType::UInt8 => ElementType::UInt8,
            DataType::UInt16 => ElementType::UInt16,
            DataType::UInt32 => ElementType::UInt32,
            DataType::UInt64 => ElementType::UInt64,
            DataType::Int8 => ElementType::Int8,
            DataType::Int16 => ElementType::Int16,
            DataType::Int32 => ElementType::Int32,
            DataType::Int64 => ElementType::Int64,
            DataType::Unknown => return None,
        })
    }
}

names! {
    /// Type of the constant that `min` and `max` start with (`constant_dtype`).
    ConstantType {
        /// IEEE binary32.
        Float32 "float32",
        /// Signed 32 bit.
        Int32 "int32",
        /// Unsigned 32 bit.
        UInt32 "uint32",
    }
}

/// One side of a descriptor: the bytes `offset + Σ index·step` of a variable, the first dimension innermost.
///
/// The first size counts bytes, the others repetitions of what is inside them. Steps are bytes. Steps and sizes should
/// have equal length, 1 to 4; a file may break that, so code that relies on it asks [`pattern`](AccessPattern::pattern).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessPattern<'a> {
    /// Name of the variable; `None` where the file has none.
    pub variable: Option<Name<'a>>,
    /// First byte in the variable; `None` where the file has none.
    pub offset: Option<u64>,
    /// Bytes from one index to the next, innermost first; empty where the file has none.
    pub steps: SmallVec<[i64; MAX_DIMENSIONS]>,
    /// Bytes of the first dimension, counts of the others; empty where the file has none.
    pub sizes: SmallVec<[u64; MAX_DIMENSIONS]>,
    /// Element type; unsigned bytes by default.
    pub dtype: Option<DataType>,
    /// This source's own factor (in `from_arr`).
    pub scale: Option<f64>,
}

impl AccessPattern<'_> {
    /// Bytes enumerated, repeats counted; `None` beyond 2^64 and for a pattern without dimensions.
    pub fn bytes(&self) -> Option<u64> {
        if self.sizes.is_empty() {
            return None;
        }
        self.sizes.iter().try_fold(1u64, |n, size| n.checked_mul(*size))
    }

    /// Contiguous-in-index rows: the product of all sizes but the first, which is what becomes hardware descriptors.
    pub fn rows(&self) -> Option<u64> {
        self.sizes.iter().skip(1).try_fold(1u64, |n, size| n.checked_mul(*size))
    }

    /// The element type, unsigned bytes by default.
    pub fn data_type(&self) -> DataType {
        self.dtype.unwrap_or(DataType::UInt8)
    }

    /// The same bytes as the model says it, from the start of the variable; `None` where steps and sizes differ in
    /// length, where there are none or more than four, and where the offset is missing.
    pub fn pattern(&self) -> Option<Pattern> {
        let dimensions = self.sizes.len();
        if dimensions != self.steps.len() || dimensions == 0 || dimensions > MAX_DIMENSIONS {
            return None;
        }
        let loops = self.sizes.iter().zip(&self.steps).map(|(count, stride)| Loop { count: *count, stride: *stride });
        Some(Pattern::new(self.offset?, 1, loops))
    }
}

/// One transfer of a [`DmaEntry`] (an item of `desc`).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawDescriptor<'_>", bound(deserialize = "'de: 'a"))]
pub struct Descriptor<'a> {
    /// What happens on the way.
    pub operation: Operation,
    /// Source of moves; `None` where the file has no `from` field at all.
    pub from: Option<AccessPattern<'a>>,
    /// Destination.
    pub to: AccessPattern<'a>,
    /// Sources of compute operations.
    pub from_arr: Vec<AccessPattern<'a>>,
    /// Dimensions that make one tile.
    pub num_tiling_dimensions: Option<u64>,
    /// Factor of every source that has none of its own (`fma`).
    pub scale: Option<f64>,
    /// Type of the factor; only `float32` is valid.
    pub scale_dtype: Option<DataType>,
    /// One more operand of `min` and `max`, ignored without its type.
    pub constant: Option<f64>,
    /// Its type.
    pub constant_dtype: Option<ConstantType>,
    /// Shape of the result in elements, innermost first.
    pub transpose_shape: Option<SmallVec<[u64; MAX_DIMENSIONS]>>,
    /// Bytes of one transposed element.
    pub transpose_element_size: Option<u64>,
}

impl<'a> Descriptor<'a> {
    /// A transfer with nothing but its operation and its destination.
    pub fn new(operation: Operation, to: AccessPattern<'a>) -> Descriptor<'a> {
        Descriptor {
            operation,
            from: None,
            to,
            from_arr: Vec::new(),
            num_tiling_dimensions: None,
            scale: None,
            scale_dtype: None,
            constant: None,
            constant_dtype: None,
            transpose_shape: None,
            transpose_element_size: None,
        }
    }

    /// Every source: the list of a compute operation, or the one of a move.
    pub fn sources(&self) -> impl Iterator<Item = &AccessPattern<'a>> {
        self.from_arr.iter().chain(self.from.as_ref().filter(|_| self.from_arr.is_empty()))
    }

    /// The factor of a source: its own, else the descriptor's, else 1.
    pub fn scale_of(&self, source: &AccessPattern<'_>) -> f64 {
        source.scale.or(self.scale).unwrap_or(1.0)
    }
}

/// An item of `dma`: a block of transfers that one trigger starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DmaEntry<'a> {
    /// The entry's own text: unknown keys are in it, and its place in the member (see [`Source::offset`]).
    pub text: &'a str,
    /// Ties the entry to triggers in the engine's instructions.
    pub id: Option<u64>,
    /// Queue set.
    pub queue: Option<Name<'a>>,
    /// Queue set instance; wins over `queue`.
    pub instance_name: Option<Name<'a>>,
    /// Function that triggers this entry and those after it on the same queue set.
    pub function_start: Option<Name<'a>>,
    /// Whether the entry starts on the first ring of its queue set.
    pub section_start_desc: bool,
    /// Event set at completion.
    pub event: Option<u64>,
    /// Semaphore that rises by `num_queues` at completion.
    pub semaphore: Option<u64>,
    /// Semaphores of the other core that rise likewise.
    pub remote_semaphores: Vec<u64>,
    /// Transfers in order.
    pub descriptors: Vec<Descriptor<'a>>,
}

impl DmaEntry<'_> {
    /// Name of the instance where there is one, else of the queue set; empty names count as none.
    pub fn queue_name(&self) -> Option<&str> {
        [&self.instance_name, &self.queue].into_iter().flatten().map(|n| &**n).find(|n| !n.is_empty())
    }
}

/// An engine JSON file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineFile<'a> {
    /// DMA entries in list order.
    pub dma: Vec<DmaEntry<'a>>,
    /// Name that the file gives itself.
    pub name: Option<Name<'a>>,
    /// Instruction file, said once more.
    pub instr: Option<Name<'a>>,
    /// Activation: function sets used.
    pub activation_function_sets: Vec<Name<'a>>,
    /// Activation: index of all function sets.
    pub act_info: Option<Name<'a>>,
    /// Activation: a semaphore for its own use (meaning not public).
    pub act_semaphore: Option<u64>,
    /// DVE: tables in order, each a list of (role, file).
    pub dve_tables: Vec<Vec<(Name<'a>, Name<'a>)>>,
}

impl<'a> EngineFile<'a> {
    /// Reads an engine JSON file.
    ///
    /// # Errors
    /// What [`Source::parse`] says.
    pub fn read(source: &Source<'a>) -> Result<EngineFile<'a>, Error> {
        let raw: RawEngineFile<'a> = source.parse()?;
        let dma = raw.dma.iter().enumerate().map(|(index, entry)| {
            let text = entry.get();
            let entry: RawEntry<'a> = source.parse_at(text, || format!("/dma/{index}"))?;
            Ok(DmaEntry {
                text,
                id: entry.id,
                queue: entry.queue,
                instance_name: entry.instance_name,
                function_start: entry.function_start,
                section_start_desc: entry.section_start_desc.unwrap_or(false),
                event: entry.event,
                semaphore: entry.semaphore,
                remote_semaphores: entry.remote_semaphores.unwrap_or_default(),
                descriptors: entry.desc.unwrap_or_default().0,
            })
        });
        let mut dve_tables = Vec::new();
        for (index, table) in raw.dve_tables.unwrap_or_default().into_iter().enumerate() {
            let mut files = Vec::new();
            for (role, value) in table.0 {
                if value.starts_with('"') {
                    let file = source.parse_at(value, || format!("/dve_tables/{index}/{role}"))?;
                    files.push((role, file));
                }
            }
            dve_tables.push(files);
        }
        Ok(EngineFile {
            dma: dma.collect::<Result<_, Error>>()?,
            name: raw.name,
            instr: raw.instr,
            activation_function_sets: raw.activation_function_sets.unwrap_or_default(),
            act_info: raw.act_info,
            act_semaphore: raw.act_semaphore,
            dve_tables,
        })
    }
}

#[derive(Deserialize)]
struct RawEngineFile<'a> {
    #[serde(borrow, default)]
    dma: Vec<&'a RawValue>,
    #[serde(borrow)]
    name: Option<Name<'a>>,
    #[serde(borrow)]
    instr: Option<Name<'a>>,
    #[serde(borrow)]
    activation_function_sets: Option<Vec<Name<'a>>>,
    #[serde(borrow)]
    act_info: Option<Name<'a>>,
    act_semaphore: Option<u64>,
    #[serde(borrow)]
    dve_tables: Option<Vec<Members<'a>>>,
}

#[derive(Deserialize)]
struct RawEntry<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    queue: Option<Name<'a>>,
    #[serde(borrow)]
    instance_name: Option<Name<'a>>,
    #[serde(borrow)]
    function_start: Option<Name<'a>>,
    section_start_desc: Option<bool>,
    event: Option<u64>,
    semaphore: Option<u64>,
    remote_semaphores: Option<Vec<u64>>,
    #[serde(borrow)]
    desc: Option<OneOrMany<'a>>,
}

/// `desc`: real files hold an array, some writers a bare object.
#[derive(Default)]
struct OneOrMany<'a>(Vec<Descriptor<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for OneOrMany<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<'a>, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Vec<Descriptor<'de>>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of descriptors or one descriptor")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Ok(vec![Descriptor::deserialize(de::value::MapAccessDeserializer::new(map))?])
            }
        }
        deserializer.deserialize_any(Either).map(OneOrMany)
    }
}

#[derive(Deserialize)]
struct RawSource<'a> {
    #[serde(borrow)]
    from: Option<Name<'a>>,
    from_off: Option<u64>,
    from_steps: Option<SmallVec<[i64; MAX_DIMENSIONS]>>,
    from_sizes: Option<SmallVec<[u64; MAX_DIMENSIONS]>>,
    from_dtype: Option<DataType>,
    scale: Option<f64>,
}

impl<'a> From<RawSource<'a>> for AccessPattern<'a> {
    fn from(raw: RawSource<'a>) -> AccessPattern<'a> {
        AccessPattern {
            variable: raw.from,
            offset: raw.from_off,
            steps: raw.from_steps.unwrap_or_default(),
            sizes: raw.from_sizes.unwrap_or_default(),
            dtype: raw.from_dtype,
            scale: raw.scale,
        }
    }
}

#[derive(Deserialize)]
struct RawDescriptor<'a> {
    op: Option<Operation>,
    #[serde(borrow)]
    from: Option<Name<'a>>,
    from_off: Option<u64>,
    from_steps: Option<SmallVec<[i64; MAX_DIMENSIONS]>>,
    from_sizes: Option<SmallVec<[u64; MAX_DIMENSIONS]>>,
    from_dtype: Option<DataType>,
    #[serde(borrow)]
    to: Option<Name<'a>>,
    to_off: Option<u64>,
    to_steps: Option<SmallVec<[i64; MAX_DIMENSIONS]>>,
    to_sizes: Option<SmallVec<[u64; MAX_DIMENSIONS]>>,
    to_dtype: Option<DataType>,
    num_tiling_dimensions: Option<u64>,
    #[serde(borrow)]
    from_arr: Option<Vec<RawSource<'a>>>,
    scale_dtype: Option<DataType>,
    scale: Option<f64>,
    constant_dtype: Option<ConstantType>,
    constant: Option<f64>,
    transpose_shape: Option<SmallVec<[u64; MAX_DIMENSIONS]>>,
    transpose_element_size: Option<u64>,
}

impl<'a> From<RawDescriptor<'a>> for Descriptor<'a> {
    fn from(raw: RawDescriptor<'a>) -> Descriptor<'a> {
        let has_from = raw.from.is_some() || raw.from_off.is_some() || raw.from_steps.is_some() || raw.from_sizes.is_some();
        let from = RawSource {
            from: raw.from,
            from_off: raw.from_off,
            from_steps: raw.from_steps,
            from_sizes: raw.from_sizes,
            from_dtype: raw.from_dtype,
            scale: None,
        };
        Descriptor {
            operation: raw.op.unwrap_or(Operation::Copy),
            from: has_from.then(|| from.into()),
            to: AccessPattern {
                variable: raw.to,
                offset: raw.to_off,
                steps: raw.to_steps.unwrap_or_default(),
                sizes: raw.to_sizes.unwrap_or_default(),
                dtype: raw.to_dtype,
                scale: None,
            },
            from_arr: raw.from_arr.unwrap_or_default().into_iter().map(Into::into).collect(),
            num_tiling_dimensions: raw.num_tiling_dimensions,
            scale: raw.scale,
            scale_dtype: raw.scale_dtype,
            constant: raw.constant,
            constant_dtype: raw.constant_dtype,
            transpose_shape: raw.transpose_shape,
            transpose_element_size: raw.transpose_element_size,
        }
    }
}
