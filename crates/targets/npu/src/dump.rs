//! The file's own structures as a tree, for `info --raw`. Nothing is relocated or interpreted.

use crate::info::section_records;
use crate::metadata::{Metadata, ModelNode, TensorRef, data_type_name, model_type_name};
use crate::raw::{Barrier, WorkItem};
use crate::read::Document;
use crate::relocation::RelocationKind;
use crate::section::{Section, section_type};
use crate::trailer::Trailer;
use chipless_model::{Node, Value};
use object::LittleEndian as LE;
use std::fmt;

fn text(value: impl fmt::Display) -> Node {
    Node::from(value.to_string())
}

fn number(value: impl Into<u64>) -> Node {
    Node::from(value.into())
}

fn signed(value: i64) -> Node {
    Node { value: Some(Value::Integer(value.into())), ..Node::default() }
}

fn real(value: f32) -> Node {
    Node { value: Some(Value::Number(value.into())), ..Node::default() }
}

fn record(parts: Vec<(&str, Node)>) -> Node {
    let children = parts.into_iter().map(|(name, node)| Node { name: name.to_owned(), ..node }).collect();
    Node { children, ..Node::default() }
}

fn list<T>(values: impl IntoIterator<Item = T>, mut node: impl FnMut(T) -> Node) -> Node {
    let children = values.into_iter().enumerate().map(|(index, value)| Node { name: index.to_string(), ..node(value) }).collect();
    Node { children, ..Node::default() }
}

/// The whole file, level by level.
pub fn dump(document: &Document<'_>) -> Node {
    let mut parts = vec![("elf_header", header(document)), ("sections", sections(document))];
    let tables = |kind: u32| document.sections().iter().enumerate().filter(move |(_, section)| section.kind == kind);
    parts.push(("symbols", list(tables(section_type::SYMTAB), |(index, section)| symbols(document, index, section))));
    parts.push(("relocations", list(tables(section_type::RELA), |(index, section)| relocations(document, index, section))));
    parts.push((
        "notes",
        list(document.notes(), |note| {
            let words = note.description.chunks(4).map(|word| word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)));
            record(vec![("name", text(String::from_utf8_lossy(note.name))), ("type", number(note.kind)), ("content", list(words, number))])
        }),
    ));
    parts.push(("platform", text(document.platform())));
    parts.push(("compiler_hash", document.compiler_hash().into()));
    parts.push(("compatibility", document.compatibility().into()));
    parts.push((
        "performance_metrics",
        document.performance().map_or(Node::default(), |metrics| {
            record(vec![
                ("frequency_base_mhz", number(metrics.frequency_base.get())),
                ("frequency_step_mhz", number(metrics.frequency_step.get())),
                ("bandwidth_base_mbps", number(metrics.bandwidth_base.get())),
                ("bandwidth_step_mbps", number(metrics.bandwidth_step.get())),
                ("ticks", list(&metrics.ticks, |row| list(row, |ticks| number(ticks.get())))),
                ("scalability", list(&metrics.scalability, |row| list(row, |value| real(value.get())))),
                ("activity_factor", real(metrics.activity_factor.get())),
            ])
        }),
    ));
    parts.push(("metadata", metadata(document.metadata())));
    parts.push((
        "barriers",
        list(section_records::<Barrier>(document, "program.managedBarrier"), |barrier| {
            record(vec![
                ("next_same_id", signed(i64::from(barrier.next_same_id.get() as i32))),
                ("producers", number(barrier.producers.get())),
                ("consumers", number(barrier.consumers.get())),
                ("real_id", number(barrier.real_id)),
                ("work_item", number(barrier.work_item.get())),
                ("enqueue_count", number(barrier.enqueue_count.get())),
            ])
        }),
    ));
    parts.push((
        "work_items",
        list(section_records::<WorkItem>(document, "program.workItem"), |item| {
            record(vec![
                ("descriptor", number(item.descriptor.get())),
                ("type", number(item.kind)),
                ("unit", number(item.unit)),
                ("sub_unit", number(item.sub_unit)),
                ("next", number(item.next.get())),
            ])
        }),
    ));
    if let Some(trailer) = document.trailer() {
        parts.push(("plugin_metadata", self::trailer(trailer)));
    }
    record(parts)
}

fn header(document: &Document<'_>) -> Node {
    let header = document.elf().header();
    record(vec![
        ("EI_CLASS", number(header.e_ident.class.0)),
        ("EI_DATA", number(header.e_ident.data.0)),
        ("EI_VERSION", number(header.e_ident.version.0)),
        ("e_type", number(header.e_type.get(LE).0)),
        ("e_machine", number(header.e_machine.get(LE).0)),
        ("e_version", number(header.e_version.get(LE))),
        ("e_entry", number(header.e_entry.get(LE))),
        ("e_phoff", number(header.e_phoff.get(LE))),
        ("e_shoff", number(header.e_shoff.get(LE))),
        ("e_flags", number(header.e_flags.get(LE).0)),
        ("e_phnum", number(header.e_phnum.get(LE))),
        ("e_shnum", number(header.e_shnum.get(LE))),
        ("e_shstrndx", number(header.e_shstrndx.get(LE).0)),
    ])
}

fn sections(document: &Document<'_>) -> Node {
    list(document.sections(), |section| {
        record(vec![
            ("name", section.name.into()),
            ("type", text(section.kind_name())),
            ("flags", text(section.flag_names())),
            ("address", section.address.into()),
            ("offset", section.offset.into()),
            ("size", section.size.into()),
            ("link", number(section.link)),
            ("info", number(section.info)),
            ("alignment", section.alignment.into()),
            ("entry_size", section.entry_size.into()),
        ])
    })
}

fn symbols(document: &Document<'_>, index: usize, section: &Section<'_>) -> Node {
    let symbols = list(document.elf().symbols(index), |symbol| {
        record(vec![
            ("name", symbol.name.into()),
            ("type", number(symbol.kind)),
            ("binding", number(symbol.binding)),
            ("section", number(symbol.section)),
            ("value", symbol.value.into()),
            ("size", symbol.size.into()),
        ])
    });
    record(vec![("table", section.name.into()), ("symbols", symbols)])
}

fn relocations(document: &Document<'_>, index: usize, section: &Section<'_>) -> Node {
    let relocations = list(document.elf().relocations(index), |relocation| {
        let kind = RelocationKind::of(relocation.kind).map_or_else(|| text(relocation.kind), |kind| kind.name.into());
        record(vec![
            ("offset", relocation.offset.into()),
            ("kind", kind),
            ("symbol", number(relocation.symbol)),
            ("addend", signed(relocation.addend)),
        ])
    });
    record(vec![
        ("section", section.name.into()),
        ("symbols", number(section.link)),
        ("target", number(section.info)),
        ("relocations", relocations),
    ])
}

fn metadata(metadata: &Metadata<'_>) -> Node {
    let tensors = |tensors: &[TensorRef]| {
        list(tensors, |tensor| {
            record(vec![
                ("name", tensor.name.text().unwrap_or_default().into()),
                ("dtype", data_type_name(tensor.data_type.get()).into()),
                ("shape", list(tensor.shape(), number)),
                ("element_bits", tensor.strides[0].get().into()),
                ("strides_bits", list(tensor.strides(), number)),
                ("order", text(format!("{:#x}", tensor.order.get()))),
                ("flags", number(tensor.flags)),
            ])
        })
    };
    let nodes = |nodes: &[ModelNode]| {
        list(nodes, |node| {
            let names = node.tensor_names.iter().take(node.tensor_name_count.get() as usize);
            record(vec![
                ("friendly_name", node.friendly_name.text().unwrap_or_default().into()),
                ("input_name", node.input_name.text().unwrap_or_default().into()),
                ("tensor_names", list(names, |name| name.text().unwrap_or_default().into())),
                ("dtype", model_type_name(node.element.get()).into()),
                ("shape", list(node.shape.iter().take(node.rank.get() as usize), |size| number(size.get()))),
            ])
        })
    };
    record(vec![
        ("architecture", metadata.identification.architecture.text().unwrap_or_default().into()),
        ("network", metadata.identification.network.text().unwrap_or_default().into()),
        ("slice_length", number(metadata.resources.slice_length.get())),
        ("tiles", number(metadata.resources.tiles)),
        ("barriers", number(metadata.resources.barriers)),
        ("inputs", tensors(metadata.inputs)),
        ("outputs", tensors(metadata.outputs)),
        ("host_inputs", tensors(metadata.host_inputs)),
        ("host_outputs", tensors(metadata.host_outputs)),
        ("profiling_outputs", tensors(metadata.profiling_outputs)),
        (
            "preprocessing",
            list(metadata.preprocessing, |step| {
                record(vec![
                    ("input", step.input.text().unwrap_or_default().into()),
                    ("input_format", number(step.input_format.get())),
                    ("output_format", number(step.output_format.get())),
                    ("algorithm", number(step.algorithm.get())),
                ])
            }),
        ),
        ("parameters", nodes(metadata.parameters)),
        ("results", nodes(metadata.results)),
    ])
}

fn trailer(trailer: &Trailer<'_>) -> Node {
    record(vec![
        ("offset", trailer.offset.into()),
        ("version", text(trailer.version)),
        ("openvino", list(trailer.openvino, number)),
        ("init_sizes", list(trailer.init_sizes.iter().copied(), number)),
        ("batch", signed(trailer.batch)),
        ("input_layouts", list(&trailer.input_layouts, text)),
        ("output_layouts", list(&trailer.output_layouts, text)),
        ("compiler", trailer.compiler.map_or_else(|| "".into(), text)),
        ("encrypted", number(u8::from(trailer.encrypted))),
        ("compatibility", trailer.compatibility.into()),
        ("payload_kind", number(trailer.payload_kind)),
        ("padding", number(trailer.padding.len() as u64)),
        ("payload_size", trailer.payload_size.into()),
    ])
}
