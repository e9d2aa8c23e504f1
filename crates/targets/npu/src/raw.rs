//! The file's own structures as a tree, for `info --raw`. Nothing is relocated or interpreted.

use crate::document::Document;
use crate::info::section_records;
use crate::metadata::{Metadata, ModelNode, Name, TensorRef, data_type_name, model_type_name};
use crate::relocation::RelocationKind;
use crate::section::{Section, section_type};
use crate::structures::{Barrier, TaskKind, WorkItem};
use crate::trailer::Trailer;
use chipless_model::{Node, Value};
use object::LittleEndian as LE;
use std::fmt;

fn text(value: impl fmt::Display) -> Node {
    Node::from(value.to_string())
}

fn count(value: impl Into<u64>) -> Node {
    Node::from(value.into())
}

fn signed(value: i64) -> Node {
    Node {
        value: Some(Value::Integer(value.into())),
        ..Node::default()
    }
}

fn real(value: f32) -> Node {
    Node {
        value: Some(Value::Number(value.into())),
        ..Node::default()
    }
}

fn record(parts: Vec<(&str, Node)>) -> Node {
    let children = parts
        .into_iter()
        .map(|(name, node)| Node {
            name: name.to_owned(),
            ..node
        })
        .collect();
    Node {
        children,
        ..Node::default()
    }
}

fn list<T>(values: impl IntoIterator<Item = T>, mut node: impl FnMut(T) -> Node) -> Node {
    let children = values
        .into_iter()
        .enumerate()
        .map(|(index, value)| Node {
            name: index.to_string(),
            ..node(value)
        })
        .collect();
    Node {
        children,
        ..Node::default()
    }
}

/// The bytes of the file. What the document borrows from them has an offset; what was read into values of its own has none.
#[derive(Clone, Copy)]
struct File<'f>(&'f [u8]);

impl File<'_> {
    /// The node of something that stands in the file.
    fn at<T: ?Sized>(self, value: &T, node: Node) -> Node {
        let offset = std::ptr::from_ref(value)
            .addr()
            .wrapping_sub(self.0.as_ptr().addr());
        Node {
            offset: (offset < self.0.len()).then_some(offset as u64),
            ..node
        }
    }

    /// A number that stands in the file.
    fn number<T: Copy + Into<u64>>(self, value: &T) -> Node {
        self.at(value, count(*value))
    }

    /// A text that stands in the file.
    fn text(self, value: &str) -> Node {
        self.at(value, value.into())
    }
}

/// The whole file, level by level.
pub(crate) fn raw(document: &Document<'_>) -> Node {
    let file = File(document.bytes());
    let mut parts = vec![
        ("elf_header", header(file, document)),
        ("sections", sections(document)),
    ];
    let tables = |kind: u32| {
        document
            .sections()
            .iter()
            .enumerate()
            .filter(move |(_, section)| section.kind == kind)
    };
    parts.push((
        "symbols",
        list(tables(section_type::SYMTAB), |(index, section)| {
            symbols(file, document, index, section)
        }),
    ));
    parts.push((
        "relocations",
        list(tables(section_type::RELA), |(index, section)| {
            relocations(file, document, index, section)
        }),
    ));
    parts.push(("notes", notes(file, document)));
    parts.push(("platform", text(document.platform())));
    parts.push(("compiler_hash", file.text(document.compiler_hash())));
    parts.push(("compatibility", file.text(document.compatibility())));
    parts.push((
        "performance_metrics",
        document.performance().map_or(Node::default(), |metrics| {
            record(vec![
                ("frequency_base_mhz", file.number(&metrics.frequency_base)),
                ("frequency_step_mhz", file.number(&metrics.frequency_step)),
                ("bandwidth_base_mbps", file.number(&metrics.bandwidth_base)),
                ("bandwidth_step_mbps", file.number(&metrics.bandwidth_step)),
                (
                    "ticks",
                    list(&metrics.ticks, |row| list(row, |ticks| file.number(ticks))),
                ),
                (
                    "scalability",
                    list(&metrics.scalability, |row| {
                        list(row, |value| file.at(value, real(value.get())))
                    }),
                ),
                (
                    "activity_factor",
                    file.at(
                        &metrics.activity_factor,
                        real(metrics.activity_factor.get()),
                    ),
                ),
            ])
        }),
    ));
    parts.push(("metadata", metadata(file, document.metadata())));
    parts.push((
        "barriers",
        list(
            section_records::<Barrier>(document, "program.managedBarrier"),
            |barrier| {
                record(vec![
                    (
                        "next_same_id",
                        file.at(
                            &barrier.next_same_id,
                            signed(i64::from(barrier.next_same_id.get() as i32)),
                        ),
                    ),
                    ("producers", file.number(&barrier.producers)),
                    ("consumers", file.number(&barrier.consumers)),
                    ("real_id", file.number(&barrier.real_id)),
                    ("work_item", file.number(&barrier.work_item)),
                    ("enqueue_count", file.number(&barrier.enqueue_count)),
                ])
            },
        ),
    ));
    parts.push((
        "work_items",
        list(
            section_records::<WorkItem>(document, "program.workItem"),
            |item| {
                record(vec![
                    ("descriptor", file.number(&item.descriptor)),
                    ("type", file.number(&item.kind)),
                    ("unit", file.number(&item.unit)),
                    ("sub_unit", file.number(&item.sub_unit)),
                    ("next", file.number(&item.next)),
                ])
            },
        ),
    ));
    parts.push(("tasks", tasks(file, document)));
    if let Some(trailer) = document.trailer() {
        parts.push(("plugin_metadata", self::trailer(file, trailer)));
    }
    record(parts)
}

/// Every descriptor, section by section, as its 32-bit words; `list` says what they mean.
fn tasks(file: File<'_>, document: &Document<'_>) -> Node {
    let sections = document
        .sections()
        .iter()
        .enumerate()
        .filter_map(|(index, section)| Some((index, section, TaskKind::of_section(section.name)?)));
    let children = sections.map(|(index, section, list)| {
        let records = document
            .elf()
            .section_bytes(index)
            .chunks_exact(list.record_size());
        let words = |record: &[u8]| {
            let words = record.chunks_exact(4).map(|word| {
                word.iter()
                    .rev()
                    .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
            });
            file.at(record, text(words.collect::<Vec<_>>().join(" ")))
        };
        Node {
            name: section.name.to_owned(),
            offset: Some(section.offset),
            ..self::list(records, words)
        }
    });
    Node {
        children: children.collect(),
        ..Node::default()
    }
}

/// Fields of a structure of which only the place is known, each with its offset there.
fn fields(start: u64, parts: Vec<(&str, u64, Node)>) -> Node {
    record(
        parts
            .into_iter()
            .map(|(name, at, node)| {
                (
                    name,
                    Node {
                        offset: start.checked_add(at),
                        ..node
                    },
                )
            })
            .collect(),
    )
}

fn header(file: File<'_>, document: &Document<'_>) -> Node {
    let header = document.elf().header();
    record(vec![
        (
            "EI_CLASS",
            file.at(&header.e_ident.class, count(header.e_ident.class.0)),
        ),
        (
            "EI_DATA",
            file.at(&header.e_ident.data, count(header.e_ident.data.0)),
        ),
        (
            "EI_VERSION",
            file.at(&header.e_ident.version, count(header.e_ident.version.0)),
        ),
        (
            "e_type",
            file.at(&header.e_type, count(header.e_type.get(LE).0)),
        ),
        (
            "e_machine",
            file.at(&header.e_machine, count(header.e_machine.get(LE).0)),
        ),
        (
            "e_version",
            file.at(&header.e_version, count(header.e_version.get(LE))),
        ),
        (
            "e_entry",
            file.at(&header.e_entry, count(header.e_entry.get(LE))),
        ),
        (
            "e_phoff",
            file.at(&header.e_phoff, count(header.e_phoff.get(LE))),
        ),
        (
            "e_shoff",
            file.at(&header.e_shoff, count(header.e_shoff.get(LE))),
        ),
        (
            "e_flags",
            file.at(&header.e_flags, count(header.e_flags.get(LE).0)),
        ),
        (
            "e_phnum",
            file.at(&header.e_phnum, count(header.e_phnum.get(LE))),
        ),
        (
            "e_shnum",
            file.at(&header.e_shnum, count(header.e_shnum.get(LE))),
        ),
        (
            "e_shstrndx",
            file.at(&header.e_shstrndx, count(header.e_shstrndx.get(LE).0)),
        ),
    ])
}

/// Section headers; offsets of fields are those of ELF-64.
fn sections(document: &Document<'_>) -> Node {
    list(
        document.sections().iter().enumerate(),
        |(index, section)| {
            let parts = vec![
                ("name", 0, section.name.into()),
                ("type", 4, text(section.kind_name())),
                ("flags", 8, text(section.flag_names())),
                ("address", 16, section.address.into()),
                ("offset", 24, section.offset.into()),
                ("size", 32, section.size.into()),
                ("link", 40, count(section.link)),
                ("info", 44, count(section.info)),
                ("alignment", 48, section.alignment.into()),
                ("entry_size", 56, section.entry_size.into()),
            ];
            fields(document.elf().header_offset(index), parts)
        },
    )
}

/// Where the entry of a symbol table or a table of relocations stands; both have 24 bytes in ELF-64.
fn entry(section: &Section<'_>, index: usize) -> u64 {
    section.offset.saturating_add(24 * index as u64)
}

fn symbols(file: File<'_>, document: &Document<'_>, index: usize, section: &Section<'_>) -> Node {
    let symbols = list(
        document.elf().symbols(index).enumerate(),
        |(index, symbol)| {
            let parts = vec![
                ("name", 0, symbol.name.into()),
                ("type", 4, count(symbol.kind)),
                ("binding", 4, count(symbol.binding)),
                ("section", 6, count(symbol.section)),
                ("value", 8, symbol.value.into()),
                ("size", 16, symbol.size.into()),
            ];
            fields(entry(section, index), parts)
        },
    );
    record(vec![
        ("table", file.text(section.name)),
        ("symbols", symbols),
    ])
}

fn relocations(
    file: File<'_>,
    document: &Document<'_>,
    index: usize,
    section: &Section<'_>,
) -> Node {
    let relocations = list(
        document.elf().relocations(index).enumerate(),
        |(index, relocation)| {
            let kind = RelocationKind::of(relocation.kind)
                .map_or_else(|| text(relocation.kind), |kind| kind.name.into());
            let parts = vec![
                ("offset", 0, relocation.offset.into()),
                ("kind", 8, kind),
                ("symbol", 12, count(relocation.symbol)),
                ("addend", 16, signed(relocation.addend)),
            ];
            fields(entry(section, index), parts)
        },
    );
    record(vec![
        ("section", file.text(section.name)),
        ("symbols", count(section.link)),
        ("target", count(section.info)),
        ("relocations", relocations),
    ])
}

fn metadata(file: File<'_>, metadata: &Metadata<'_>) -> Node {
    let name = |name: &Name| file.at(name, name.text().unwrap_or_default().into());
    let tensors = |tensors: &[TensorRef]| {
        list(tensors, |tensor| {
            let rank = tensor.shape().count();
            record(vec![
                ("name", name(&tensor.name)),
                (
                    "dtype",
                    file.at(
                        &tensor.data_type,
                        data_type_name(tensor.data_type.get()).into(),
                    ),
                ),
                (
                    "shape",
                    file.at(&tensor.dimensions, list(tensor.shape(), count)),
                ),
                ("element_bits", file.number(&tensor.strides[0])),
                (
                    "strides_bits",
                    list(tensor.strides.iter().skip(1).take(rank), |stride| {
                        file.number(stride)
                    }),
                ),
                (
                    "order",
                    file.at(&tensor.order, text(format!("{:#x}", tensor.order.get()))),
                ),
                ("flags", file.number(&tensor.flags)),
            ])
        })
    };
    let nodes = |nodes: &[ModelNode]| {
        list(nodes, |node| {
            let names = node
                .tensor_names
                .iter()
                .take(node.tensor_name_count.get() as usize);
            record(vec![
                ("friendly_name", name(&node.friendly_name)),
                ("input_name", name(&node.input_name)),
                ("tensor_names", list(names, name)),
                (
                    "dtype",
                    file.at(&node.element, model_type_name(node.element.get()).into()),
                ),
                (
                    "shape",
                    list(node.shape.iter().take(node.rank.get() as usize), |size| {
                        file.number(size)
                    }),
                ),
            ])
        })
    };
    record(vec![
        ("architecture", name(&metadata.identification.architecture)),
        ("network", name(&metadata.identification.network)),
        (
            "slice_length",
            file.number(&metadata.resources.slice_length),
        ),
        ("tiles", file.number(&metadata.resources.tiles)),
        ("barriers", file.number(&metadata.resources.barriers)),
        ("inputs", tensors(metadata.inputs)),
        ("outputs", tensors(metadata.outputs)),
        ("host_inputs", tensors(metadata.host_inputs)),
        ("host_outputs", tensors(metadata.host_outputs)),
        ("profiling_outputs", tensors(metadata.profiling_outputs)),
        (
            "preprocessing",
            list(metadata.preprocessing, |step| {
                record(vec![
                    ("input", name(&step.input)),
                    ("input_format", file.number(&step.input_format)),
                    ("output_format", file.number(&step.output_format)),
                    ("algorithm", file.number(&step.algorithm)),
                ])
            }),
        ),
        ("parameters", nodes(metadata.parameters)),
        ("results", nodes(metadata.results)),
    ])
}

/// The trailer's fields have variable places; it is read into values of its own.
fn trailer(file: File<'_>, trailer: &Trailer<'_>) -> Node {
    record(vec![
        ("offset", trailer.offset.into()),
        ("version", text(trailer.version)),
        ("openvino", list(trailer.openvino, count)),
        (
            "init_sizes",
            list(trailer.init_sizes.iter().copied(), count),
        ),
        ("batch", signed(trailer.batch)),
        ("input_layouts", list(&trailer.input_layouts, text)),
        ("output_layouts", list(&trailer.output_layouts, text)),
        ("compiler", trailer.compiler.map_or_else(|| "".into(), text)),
        ("encrypted", count(u8::from(trailer.encrypted))),
        ("compatibility", file.text(trailer.compatibility)),
        ("payload_kind", count(trailer.payload_kind)),
        (
            "padding",
            file.at(trailer.padding, count(trailer.padding.len() as u64)),
        ),
        ("payload_size", trailer.payload_size.into()),
    ])
}

/// The notes of the ELF file, their content as words.
fn notes(file: File<'_>, document: &Document<'_>) -> Node {
    list(document.notes(), |note| {
        let words = note.description.chunks(4);
        let word = |word: &[u8]| {
            file.at(
                word,
                count(
                    word.iter()
                        .rev()
                        .fold(0, |value, byte| value << 8 | u64::from(*byte)),
                ),
            )
        };
        record(vec![
            (
                "name",
                file.at(note.name, text(String::from_utf8_lossy(note.name))),
            ),
            ("type", count(note.kind)),
            ("content", list(words, word)),
        ])
    })
}
