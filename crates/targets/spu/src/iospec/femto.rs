//! The `.femto` container: what a compile for the SPU leaves for firmware to load.
//!
//! All numbers are little-endian. A header of 256 bytes names the model and four parts: the model's vectors and sequences,
//! the chip's cores and memory banks, pages of memory contents (mostly encrypted), and reference sequences.

use super::rules;
use super::{RuleSet, document::Side};
use crate::yaml::Node as Yaml;
use chipless_model::{ElementType, Finding, Info, Node, Place, TensorInfo, Value};

const MAGIC: &[u8] = b"f3mt0";
const HEADER_BYTES: usize = 256;
const VECTOR_BYTES: usize = 12;
const PAGE_BYTES: u64 = 256;

/// What a vector is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VectorKind {
    /// To the accelerator, with each firing.
    Input,
    /// To the host.
    Output,
    /// To the accelerator, now and then: a latched input.
    Parameter,
}

/// A vector of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FemtoVector {
    /// Its number.
    pub id: u8,
    /// What it is for.
    pub kind: VectorKind,
    /// Core that takes it.
    pub core: u8,
    /// Bits of an element.
    pub precision: u8,
    /// Elements of the model's vector.
    pub length: u16,
    /// Elements on the wire.
    pub padded_length: u16,
    /// Program counter of an input, mailbox of an output.
    pub address: u32,
}

/// A memory bank and its state at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    /// Data memory from 0x00, tables from 0x20, instructions 0x30.
    pub uid: u8,
    /// 0 off, 1 disabled, 2 sleeping, 3 in transition, 4 on, 5 by state machine.
    pub state: u8,
}

/// A core and its state at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// Its number.
    pub id: u8,
    /// 0 off, 1 on, 2 sleeping.
    pub status: u8,
    /// Its banks.
    pub banks: Vec<Bank>,
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Femto {
    /// Version of the format.
    pub version: u16,
    /// Version of the driver that wrote it.
    pub driver: String,
    /// The model.
    pub model: String,
    /// Its version.
    pub model_version: String,
    /// 1 keyword spotting, 2 speech to intent, 3 speech enhancement, 10 another one.
    pub model_type: u16,
    /// The chip: 1 SPU-001, 3 and 4 SPU-150.
    pub part: u8,
    /// Key of the encryption; 32 for none.
    pub key: u8,
    /// Clock in MHz.
    pub mhz: u16,
    /// Vectors in the order of the file.
    pub vectors: Vec<FemtoVector>,
    /// Inputs and outputs of each sequence, by vector number.
    pub sequences: Vec<FemtoSequence>,
    /// Cores.
    pub cores: Vec<Core>,
    /// Pages of memory contents.
    pub pages: u64,
    /// Bytes of the file.
    pub size: u64,
}

/// Inputs and outputs of a sequence, by vector number.
pub type FemtoSequence = (Vec<u8>, Vec<u8>);

/// Why a container cannot be read.
type Error = Box<Finding>;

/// Bytes at an offset, or where they are missing.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&self, offset: usize, size: usize, what: &str) -> Result<&'a [u8], Error> {
        offset
            .checked_add(size)
            .and_then(|end| self.0.get(offset..end))
            .ok_or_else(|| {
                let message = format!(
                    "expected {size} bytes of {what} at {offset:#x}, found a file of {} bytes",
                    self.0.len()
                );
                Box::new(rules::FEMTO.under(RuleSet::Spec).at(
                    Place::bytes(offset as u64, size as u64).in_part(what.to_owned()),
                    message,
                ))
            })
    }

    fn number(&self, offset: usize, size: usize, what: &str) -> Result<u64, Error> {
        Ok(self
            .take(offset, size, what)?
            .iter()
            .rev()
            .fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn text(&self, offset: usize, size: usize, what: &str) -> Result<String, Error> {
        let bytes = self.take(offset, size, what)?;
        let end = bytes
            .iter()
            .position(|b| matches!(b, 0 | 0xff))
            .unwrap_or(size);
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

fn wrong(offset: usize, size: usize, part: &'static str, message: String) -> Error {
    Box::new(rules::FEMTO.under(RuleSet::Spec).at(
        Place::bytes(offset as u64, size as u64).in_part(part),
        message,
    ))
}

impl Femto {
    /// Whether a file starts as a container does.
    pub fn recognize(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Reads a container.
    ///
    /// # Errors
    /// Which part is missing, or makes no sense.
    pub fn read(data: &[u8]) -> Result<Femto, Error> {
        let bytes = Bytes(data);
        bytes.take(0, HEADER_BYTES, "header")?;
        if !Femto::recognize(data) {
            return Err(wrong(
                0,
                5,
                "header",
                "expected the magic f3mt0, found another one".to_owned(),
            ));
        }
        if bytes.number(5, 1, "header")? != 1 {
            return Err(wrong(
                5,
                1,
                "header",
                "expected little-endian numbers (1), found another mark; big-endian is not supported".to_owned(),
            ));
        }
        let section = |size: usize, bytes_of_size: usize, offset: usize, bytes_of_offset: usize| {
            Ok::<_, Error>((
                bytes.number(size, bytes_of_size, "header")? as usize,
                bytes.number(offset, bytes_of_offset, "header")? as usize,
            ))
        };
        let (model_size, model) = section(78, 2, 80, 2)?;
        let (chip_size, chip) = section(82, 2, 84, 2)?;
        let (data_size, data_at) = section(86, 4, 90, 4)?;
        bytes.take(data_at, data_size, "memory pages")?;
        let model = Part {
            bytes: Bytes(bytes.take(model, model_size, "model configuration")?),
            name: "model configuration",
        };
        let chip = Part {
            bytes: Bytes(bytes.take(chip, chip_size, "chip configuration")?),
            name: "chip configuration",
        };
        Ok(Femto {
            version: bytes.number(8, 2, "header")? as u16,
            driver: bytes.text(10, 16, "header")?,
            model: bytes.text(26, 32, "header")?,
            model_version: bytes.text(58, 16, "header")?,
            model_type: model.number(0, 2)? as u16,
            part: chip.number(0, 1)? as u8,
            key: chip.number(1, 1)? as u8,
            mhz: chip.number(2, 2)? as u16,
            vectors: vectors(&model)?,
            sequences: sequences(&model)?,
            cores: cores(&chip)?,
            pages: data_size as u64 / PAGE_BYTES,
            size: data.len() as u64,
        })
    }

    /// The IOSpec of the container: names are the numbers of the vectors, scales are lost.
    pub fn iospec(&self) -> Yaml {
        let vector = |v: &FemtoVector| {
            let name = v.id.to_string();
            let side = if v.kind == VectorKind::Output {
                Side::Output
            } else {
                Side::Input
            };
            let words = (u64::from(v.padded_length) * u64::from(v.precision)).div_ceil(64);
            let mut fields = vec![
                ("type", side.name().into()),
                ("varname", Yaml::from(&*name)),
                ("length", Yaml::from(i64::from(v.length))),
                ("padded_length", Yaml::from(i64::from(v.padded_length))),
                ("length_64b_words", Yaml::from(words as i64)),
                ("precision", Yaml::from(i64::from(v.precision))),
                ("core_id", Yaml::from(i64::from(v.core))),
            ];
            match side {
                Side::Input => {
                    fields.push(("pc", Yaml::from(i64::from(v.address))));
                    let latch = crate::yaml::Value::Bool(v.kind == VectorKind::Parameter);
                    fields.push(("comments", Yaml::map([("latch", latch.into())])));
                }
                Side::Output => fields.push(("mailbox_id", Yaml::from(i64::from(v.address)))),
            }
            (Yaml::from(&*name), Yaml::map(fields))
        };
        let of = |output: bool| {
            let entries = self
                .vectors
                .iter()
                .filter(|v| (v.kind == VectorKind::Output) == output)
                .map(vector)
                .collect();
            Yaml::from(crate::yaml::Value::Map(entries))
        };
        let names = |ids: &[u8]| Yaml::list(ids.iter().map(|id| Yaml::from(&*id.to_string())));
        let sequence = |(number, (inputs, outputs)): (usize, &(Vec<u8>, Vec<u8>))| {
            let fields = [
                ("type", "simple_sequence".into()),
                ("inputs", names(inputs)),
                ("outputs", names(outputs)),
            ];
            (
                Yaml::from(&*format!("sequence_{number}")),
                Yaml::map(fields),
            )
        };
        let sequences =
            crate::yaml::Value::Map(self.sequences.iter().enumerate().map(sequence).collect());
        Yaml::map([
            ("inputs", of(false)),
            ("outputs", of(true)),
            ("simple_sequences", sequences.into()),
            ("complex_sequences", Yaml::map([])),
        ])
    }

    /// The file at a glance.
    pub fn info(&self) -> Info {
        let tensor = |v: &FemtoVector| TensorInfo {
            name: v.id.to_string(),
            element: if v.precision <= 8 {
                ElementType::Int8
            } else {
                ElementType::Int16
            },
            dtype: format!("int{}", v.precision),
            shape: vec![v.length.into()],
        };
        let of = |output: bool| {
            self.vectors
                .iter()
                .filter(|v| (v.kind == VectorKind::Output) == output)
                .map(tensor)
                .collect()
        };
        let text = |name: &str, value: String| (name.to_owned(), Value::Text(value));
        let number = |name: &str, value: u64| (name.to_owned(), Value::Integer(value.into()));
        let encryption = if self.key == 32 {
            "none".to_owned()
        } else {
            format!("key {}", self.key)
        };
        let banks = self.cores.iter().map(|c| c.banks.len() as u64).sum();
        Info {
            target: "spu",
            platform: self.part_name(),
            format_version: format!("femto {}.{}", self.version >> 8, self.version & 0xff),
            name: self.model.clone(),
            inputs: of(false),
            outputs: of(true),
            counts: vec![
                ("vectors".to_owned(), self.vectors.len() as u64),
                ("sequences".to_owned(), self.sequences.len() as u64),
                ("cores".to_owned(), self.cores.len() as u64),
                ("banks".to_owned(), banks),
                ("pages".to_owned(), self.pages),
            ],
            facts: vec![
                text("driver", self.driver.clone()),
                text("model_version", self.model_version.clone()),
                text("model_type", self.model_type_name()),
                text("encryption", encryption),
                number("clock_mhz", self.mhz.into()),
                number("file_bytes", self.size),
            ],
        }
    }

    fn part_name(&self) -> String {
        match self.part {
            1 => "Femtosense SPU-001".to_owned(),
            3 => "Femtosense SPU-150 (TC1)".to_owned(),
            4 => "Femtosense SPU-150 (MP)".to_owned(),
            other => format!("Femtosense part {other}"),
        }
    }

    fn model_type_name(&self) -> String {
        match self.model_type {
            0 => "none".to_owned(),
            1 => "keyword spotting".to_owned(),
            2 => "spoken language understanding".to_owned(),
            3 => "speech enhancement (CLARA)".to_owned(),
            10 => "custom".to_owned(),
            other => format!("{other}"),
        }
    }

    /// Vectors, sequences and banks as a tree.
    pub fn raw(&self) -> Node {
        let leaf = |name: String, value: String| Node {
            name,
            value: Some(Value::Text(value)),
            ..Node::default()
        };
        let vectors = self.vectors.iter().map(|v| {
            let (kind, address) = match v.kind {
                VectorKind::Input => ("input", "pc"),
                VectorKind::Output => ("output", "mailbox"),
                VectorKind::Parameter => ("latched input", "pc"),
            };
            let text = format!(
                "{kind}, {} (padded {}) elements of {} bits, core {}, {address} {}",
                v.length, v.padded_length, v.precision, v.core, v.address
            );
            leaf(v.id.to_string(), text)
        });
        let ids = |ids: &[u8]| ids.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        let sequences = self
            .sequences
            .iter()
            .enumerate()
            .map(|(n, (i, o))| leaf(n.to_string(), format!("({}) → ({})", ids(i), ids(o))));
        let cores = self.cores.iter().map(|core| {
            let status = ["off", "on", "sleeping"]
                .get(usize::from(core.status))
                .copied()
                .unwrap_or("unknown");
            let banks = core.banks.iter().map(|b| {
                let state = [
                    "off",
                    "disabled",
                    "sleeping",
                    "in transition",
                    "on",
                    "by state machine",
                ]
                .get(usize::from(b.state));
                leaf(
                    format!("bank {:#04x}", b.uid),
                    state.copied().unwrap_or("unknown").to_owned(),
                )
            });
            Node {
                name: format!("core {}", core.id),
                value: Some(Value::Text(status.to_owned())),
                children: banks.collect(),
                ..Node::default()
            }
        });
        let tree = |name: &str, children: Vec<Node>| Node {
            name: name.to_owned(),
            children,
            ..Node::default()
        };
        tree(
            "femto",
            vec![
                tree("vectors", vectors.collect()),
                tree("sequences", sequences.collect()),
                tree("cores", cores.collect()),
            ],
        )
    }
}

/// A part whose offsets count from its own start.
struct Part<'a> {
    bytes: Bytes<'a>,
    name: &'static str,
}

impl Part<'_> {
    fn number(&self, offset: usize, size: usize) -> Result<u64, Error> {
        self.bytes.number(offset, size, self.name)
    }

    fn list(&self, offset: usize, count: usize) -> Result<Vec<u8>, Error> {
        Ok(self.bytes.take(offset, count, self.name)?.to_vec())
    }
}

fn vectors(model: &Part<'_>) -> Result<Vec<FemtoVector>, Error> {
    let (count, start) = (model.number(4, 2)? as usize, model.number(6, 2)? as usize);
    let one = |index: usize| {
        let at = start + index * VECTOR_BYTES;
        let kind = match model.number(at + 1, 1)? {
            0 => VectorKind::Input,
            1 => VectorKind::Output,
            2 => VectorKind::Parameter,
            other => {
                return Err(wrong(
                    at + 1,
                    1,
                    "model configuration",
                    format!("expected a vector of kind 0 to 2, found {other}"),
                ));
            }
        };
        Ok(FemtoVector {
            id: model.number(at, 1)? as u8,
            kind,
            core: model.number(at + 2, 1)? as u8,
            precision: model.number(at + 3, 1)? as u8,
            length: model.number(at + 4, 2)? as u16,
            padded_length: model.number(at + 6, 2)? as u16,
            address: model.number(at + 8, 4)? as u32,
        })
    };
    (0..count).map(one).collect()
}

fn sequences(model: &Part<'_>) -> Result<Vec<FemtoSequence>, Error> {
    let (count, table) = (model.number(8, 2)? as usize, model.number(10, 2)? as usize);
    let one = |index: usize| {
        // Offsets count from the table.
        let at = table + model.number(table + index * 4 + 2, 2)? as usize;
        let (inputs, outputs) = (
            model.number(at + 1, 1)? as usize,
            model.number(at + 3, 1)? as usize,
        );
        let (inputs_at, outputs_at) = (
            model.number(at + 2, 1)? as usize,
            model.number(at + 4, 1)? as usize,
        );
        Ok((
            model.list(at + inputs_at, inputs)?,
            model.list(at + outputs_at, outputs)?,
        ))
    };
    (0..count).map(one).collect()
}

fn cores(chip: &Part<'_>) -> Result<Vec<Core>, Error> {
    let (count, table) = (chip.number(4, 1)? as usize, chip.number(5, 1)? as usize);
    let mut cores = Vec::new();
    for index in 0..count {
        let at = table + chip.number(table + index * 4 + 2, 2)? as usize;
        let (banks, banks_at) = (
            chip.number(at + 2, 1)? as usize,
            chip.number(at + 3, 1)? as usize,
        );
        let bank = |n: usize| {
            let at = at + banks_at + n * 2;
            Ok::<_, Error>(Bank {
                uid: chip.number(at, 1)? as u8,
                state: chip.number(at + 1, 1)? as u8,
            })
        };
        cores.push(Core {
            id: chip.number(at, 1)? as u8,
            status: chip.number(at + 1, 1)? as u8,
            banks: (0..banks).map(bank).collect::<Result<_, _>>()?,
        });
    }
    Ok(cores)
}
