//! What a container is at a glance, its structures as a tree, and its IOSpec.

use super::{Femto, FemtoVector, VectorKind};
use crate::iospec::Side;
use crate::yaml::Node as Yaml;
use chipless_model::{ElementType, Info, Node, TensorInfo, Value};

impl Femto {
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
            facts: Vec::new(),
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
            labels: Vec::new(),
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
                ("pages".to_owned(), self.pages.len() as u64),
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
