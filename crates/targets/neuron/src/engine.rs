//! Engine JSON files: the DMA descriptors that an engine triggers, and the tables that Activation and DVE load.

use crate::json::{Error, MOST_FAULTS, Members, Name, Source, capped, names};
use crate::rules::container as rules;
use chipless_model::{ElementType, Finding, Loop, Pattern};
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use smallvec::SmallVec;
use std::fmt;

/// Dimensions of an access pattern, at most (NEFF specification, `from_steps`).
pub const MAX_DIMENSIONS: usize = 4;

/// Transfers of one entry, at most.
const MAX_ENTRY_TRANSFERS: usize = 1 << 20;
/// Sources that are read of one transfer; far more than are valid.
const MAX_LISTED_SOURCES: usize = 1 << 12;

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
        matches!(
            self,
            Operation::Fma | Operation::Add | Operation::Min | Operation::Max
        )
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
        self.sizes
            .iter()
            .try_fold(1u64, |n, size| n.checked_mul(*size))
    }

    /// Contiguous-in-index rows: the product of all sizes but the first, which is what becomes hardware descriptors.
    pub fn rows(&self) -> Option<u64> {
        self.sizes
            .iter()
            .skip(1)
            .try_fold(1u64, |n, size| n.checked_mul(*size))
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
        let loops = self
            .sizes
            .iter()
            .zip(&self.steps)
            .map(|(count, stride)| Loop {
                count: *count,
                stride: *stride,
            });
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
        self.from_arr
            .iter()
            .chain(self.from.as_ref().filter(|_| self.from_arr.is_empty()))
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
    /// Whether `desc` is an object instead of an array of one.
    pub bare: bool,
    /// Transfers in order.
    pub descriptors: Vec<Descriptor<'a>>,
    /// Whether it could not be read, so that nothing of it stands here.
    pub is_unread: bool,
}

impl DmaEntry<'_> {
    /// Name of the instance where there is one, else of the queue set; empty names count as none.
    pub fn queue_name(&self) -> Option<&str> {
        [&self.instance_name, &self.queue]
            .into_iter()
            .flatten()
            .map(|n| &**n)
            .find(|n| !n.is_empty())
    }
}

/// An engine JSON file.
#[derive(Clone, Debug, Default)]
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
    /// Entries that hold values of another type than the format has.
    pub faults: Vec<Finding>,
}

impl<'a> EngineFile<'a> {
    /// Reads an engine JSON file of at most so many transfers; entries without any count as one.
    ///
    /// # Errors
    /// What [`Source::parse`] says; more transfers.
    pub fn read(source: &Source<'a>, transfers: u64) -> Result<EngineFile<'a>, Error> {
        let members: Members<'a> = source.parse()?;
        let mut file = EngineFile::default();
        for (key, text) in members.0 {
            let at = || format!("/{key}");
            match &*key {
                "dma" => file.dma = entries(source, text, transfers, &mut file.faults)?,
                "name" => file.name = source.parse_at(text, at)?,
                "instr" => file.instr = source.parse_at(text, at)?,
                "activation_function_sets" => {
                    file.activation_function_sets = source.parse_at(text, at)?;
                }
                "act_info" => file.act_info = source.parse_at(text, at)?,
                "act_semaphore" => file.act_semaphore = source.parse_at(text, at)?,
                "dve_tables" => file.dve_tables = tables(source, text)?,
                _ => {}
            }
        }
        Ok(file)
    }

    /// Transfers, entries without any counted as one.
    pub(crate) fn transfers(&self) -> u64 {
        self.dma
            .iter()
            .map(|entry| entry.descriptors.len().max(1) as u64)
            .sum()
    }
}

/// The entries of `dma`, one by one: a file of nothing but faults must not fill memory before the first is found.
fn entries<'a>(
    source: &Source<'a>,
    text: &'a str,
    transfers: u64,
    faults: &mut Vec<Finding>,
) -> Result<Vec<DmaEntry<'a>>, Error> {
    let mut dma = Vec::new();
    let mut left = transfers;
    let mut entry = |index: usize, text: &'a str| -> Result<(), Error> {
        let pointer = || format!("/dma/{index}");
        let entry = match source.parse_at(text, pointer) {
            Ok(raw) => RawEntry::keep(raw, text),
            Err(fault)
                if fault.rule.code == rules::JSON_TYPE.code && faults.len() < MOST_FAULTS =>
            {
                faults.push(*fault);
                DmaEntry {
                    text,
                    is_unread: true,
                    ..DmaEntry::default()
                }
            }
            Err(fault) => return Err(fault),
        };
        left = left.checked_sub(entry.descriptors.len().max(1) as u64).ok_or_else(|| {
            let message = format!("more transfers than the limit transfers allows; {transfers} were left for this file");
            Box::new(rules::LIMIT.at(source.place(text, &pointer(), ""), message))
        })?;
        dma.push(entry);
        Ok(())
    };
    let mut fault = None;
    let walked = crate::json::items(text, |index, text| {
        fault = entry(index, text).err();
        fault.is_none()
    });
    match fault {
        Some(why) => Err(why),
        None if walked => Ok(dma),
        // Where there is no array, the typed parser says what there is.
        None => source
            .parse_at(text, || "/dma".to_owned())
            .map(|_: Vec<de::IgnoredAny>| dma),
    }
}

fn tables<'a>(source: &Source<'a>, text: &'a str) -> Result<Vec<Vec<(Name<'a>, Name<'a>)>>, Error> {
    let raw: Vec<Members<'a>> = source.parse_at(text, || "/dve_tables".to_owned())?;
    let mut tables = Vec::with_capacity(raw.len());
    for (index, table) in raw.into_iter().enumerate() {
        let mut files = Vec::new();
        for (role, value) in table.0 {
            // Other keys may hold anything.
            if value.starts_with('"') || role.ends_with("_table") {
                let file = source.parse_at(value, || format!("/dve_tables/{index}/{role}"))?;
                files.push((role, file));
            }
        }
        tables.push(files);
    }
    Ok(tables)
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

impl<'a> RawEntry<'a> {
    fn keep(self, text: &'a str) -> DmaEntry<'a> {
        let OneOrMany { bare, descriptors } = self.desc.unwrap_or_default();
        DmaEntry {
            text,
            id: self.id,
            queue: self.queue,
            instance_name: self.instance_name,
            function_start: self.function_start,
            section_start_desc: self.section_start_desc.unwrap_or(false),
            event: self.event,
            semaphore: self.semaphore,
            remote_semaphores: self.remote_semaphores.unwrap_or_default(),
            bare,
            descriptors,
            is_unread: false,
        }
    }
}

/// `desc`: real files hold an array, some writers a bare object.
#[derive(Default)]
struct OneOrMany<'a> {
    bare: bool,
    descriptors: Vec<Descriptor<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for OneOrMany<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<'a>, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = OneOrMany<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of descriptors or one descriptor")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                let descriptors = capped::<_, _, MAX_ENTRY_TRANSFERS>(
                    de::value::SeqAccessDeserializer::new(seq),
                )?;
                Ok(OneOrMany {
                    bare: false,
                    descriptors,
                })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let descriptors = vec![Descriptor::deserialize(
                    de::value::MapAccessDeserializer::new(map),
                )?];
                Ok(OneOrMany {
                    bare: true,
                    descriptors,
                })
            }
        }
        deserializer.deserialize_any(Either)
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
    #[serde(
        borrow,
        default,
        deserialize_with = "capped::<_, _, MAX_LISTED_SOURCES>"
    )]
    from_arr: Vec<RawSource<'a>>,
    scale_dtype: Option<DataType>,
    scale: Option<f64>,
    constant_dtype: Option<ConstantType>,
    constant: Option<f64>,
    transpose_shape: Option<SmallVec<[u64; MAX_DIMENSIONS]>>,
    transpose_element_size: Option<u64>,
}

impl<'a> From<RawDescriptor<'a>> for Descriptor<'a> {
    fn from(raw: RawDescriptor<'a>) -> Descriptor<'a> {
        let has_from = raw.from.is_some()
            || raw.from_off.is_some()
            || raw.from_steps.is_some()
            || raw.from_sizes.is_some();
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
            from_arr: raw.from_arr.into_iter().map(Into::into).collect(),
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
