//! What all sections share: values as the dialect writes them, in the units of the document.

use super::Part;
use super::outline::Outline;
use crate::json::{FaultKind, Reader, Result};
use crate::names::{Name, Names};
use crate::schedule::{At, Bounds, Destination, Dialect, Ofmap, Peer, TransferIds, Unknown};
use smallvec::SmallVec;

/// Unknown keys that are kept for one section; a file may consist of nothing else.
const KEPT_UNKNOWN: usize = 100_000;

/// Keys of a workload that only the spec's dialect has.
const SPEC_KEYS: [&str; 5] = [
    "tile_info",
    "wl0_buffer",
    "wl1_buffer",
    "ring_buffer_info",
    "tile_padding_tblr",
];

/// What every section needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) dialect: Dialect,
    pub(super) columns: u32,
    pub(super) rows: u32,
}

impl Context {
    /// Recognises the dialect by its keys.
    pub(super) fn new(text: &str, outline: &Outline) -> Result<Context> {
        let reader = Reader::new(text, 0);
        let tiling = outline.has_dram_groups || outline.has_metadata;
        if tiling && outline.has_plain_dram {
            let message = "expected one dialect, found the key \"-1\" of the spec's and SET's beside the keys DRAM or metadata of IR-tiling";
            return reader.fault_at(0, FaultKind::Dialect, message);
        }
        let dialect = if tiling {
            Dialect::IrTiling
        } else if outline.buffer_size.is_some() || spec_workload(text, outline.first_workload())? {
            Dialect::Spec
        } else {
            Dialect::Set
        };
        Ok(Context {
            dialect,
            columns: outline.columns,
            rows: outline.rows,
        })
    }

    pub(super) fn spec(self) -> bool {
        self.dialect == Dialect::Spec
    }

    /// The number in the mesh of a core of the file.
    pub(super) fn core(self, id: u32, at: usize) -> Result<u32> {
        if self.spec() {
            return Ok(id);
        }
        let Context { columns, rows, .. } = self;
        let (row, column) = (
            id / columns.saturating_add(2),
            id % columns.saturating_add(2),
        );
        if row < rows && (1..=columns).contains(&column) {
            return Ok(row * columns + column - 1);
        }
        let message = format!(
            "expected a core of the {columns} x {rows} mesh, found {id}: cores are row * (xlen + 2) + column + 1"
        );
        Reader::new("", 0).fault_at(at, FaultKind::Value, message)
    }
}

/// Whether the first workload has keys that only the spec's dialect has.
fn spec_workload(text: &str, at: Option<usize>) -> Result<bool> {
    let Some(at) = at else { return Ok(false) };
    let mut reader = Reader::new(text, at);
    let mut object = reader.object()?;
    while let Some(key) = reader.key(&mut object)? {
        if SPEC_KEYS.contains(&&*key) {
            return Ok(true);
        }
        reader.skip()?;
    }
    Ok(false)
}

/// A section under the reader, with the names and unknown keys that it has so far.
pub(super) struct Section<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) context: Context,
    pub(super) names: Names,
    pub(super) unknown: Vec<Unknown>,
    /// Pieces of output that IR-tiling lists in snapshots, with their layers.
    pub(super) pieces: Vec<(Option<Name>, Ofmap)>,
}

/// The other end of a transfer as it is read, key by key.
#[derive(Default)]
pub(super) struct PeerKeys {
    /// `core_id` or `id`: -1 for DRAM in the spec's dialect.
    core: Option<(i64, usize)>,
    /// Bits of a list of DRAM groups.
    groups: u32,
    dram: Option<bool>,
}

impl<'a> Section<'a> {
    pub(super) fn new(text: &'a str, at: usize, context: Context) -> Section<'a> {
        Section {
            reader: Reader::new(text, at),
            context,
            names: Names::default(),
            unknown: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Keeps a key that the format does not know.
    #[cold]
    pub(super) fn keep(&mut self, owner: usize, key: &str) -> Result<()> {
        self.keep_nested(owner, None, key)
    }

    /// Keeps a key that the format does not know, of an object in a list of its owner.
    #[cold]
    pub(super) fn keep_nested(
        &mut self,
        owner: usize,
        nested: Option<usize>,
        key: &str,
    ) -> Result<()> {
        self.reader.peek();
        let at = self.reader.offset();
        self.reader.skip()?;
        if self.unknown.len() >= KEPT_UNKNOWN {
            let message = format!("more than {KEPT_UNKNOWN} keys that the format does not know");
            return self.reader.fault_at(at, FaultKind::Limit, message);
        }
        let value = self.reader.slice(at, self.reader.offset()).into();
        self.unknown.push(Unknown {
            owner: At(owner as u32),
            nested: nested.map(|index| index as u32),
            key: key.into(),
            value,
        });
        Ok(())
    }

    /// A key of another dialect.
    #[cold]
    pub(super) fn foreign<T>(&mut self, key: &str, instead: &str) -> Result<T> {
        self.reader.peek();
        let (own, other) = if self.context.spec() {
            ("the spec's", "SET and IR-tiling")
        } else {
            (self.context.dialect.name(), "spec")
        };
        let at = self.reader.offset();
        self.reader.fault_at(
            at,
            FaultKind::Dialect,
            format!("expected `{instead}` in {own} dialect, found `{key}`, which is of the dialect {other}"),
        )
    }

    /// The value of a key that must be there.
    pub(super) fn need<T>(&self, value: Option<T>, key: &str, owner: usize) -> Result<T> {
        match value {
            Some(value) => Ok(value),
            None => self.missing(key, owner),
        }
    }

    #[cold]
    fn missing<T>(&self, key: &str, owner: usize) -> Result<T> {
        self.reader.fault_at(
            owner,
            FaultKind::Missing,
            format!("expected the key `{key}`, found none"),
        )
    }

    pub(super) fn put_name(&mut self, slot: &mut Option<Name>) -> Result<()> {
        let names = &mut self.names;
        self.reader
            .put(slot, |reader| Ok(names.intern(&reader.string()?)))
    }

    /// A size in bytes; the ancestors count bits.
    pub(super) fn put_size(&mut self, slot: &mut Option<u64>) -> Result<()> {
        let bits = !self.context.spec();
        self.reader.put(slot, |reader| {
            let size = reader.size()?;
            Ok(if bits { size.div_ceil(8) } else { size })
        })
    }

    /// A corner of a box: four numbers; in the ancestors also three (an activation as weight) or one (output channels).
    pub(super) fn put_corner(&mut self, slot: &mut Option<[u32; 4]>) -> Result<()> {
        let ancestor = !self.context.spec();
        self.reader.put(slot, |reader| {
            if ancestor && matches!(reader.peek(), Some(b'0'..=b'9' | b'-')) {
                return Ok([0, reader.u32()?, 0, 0]);
            }
            let mut corner = [0; 4];
            let mut list = reader.list()?;
            let mut count = 0;
            while reader.item(&mut list)? {
                let value = reader.u32()?;
                if let Some(slot) = corner.get_mut(count) {
                    *slot = value;
                }
                count += 1;
            }
            if count == 4 || ancestor && count == 3 {
                Ok(corner)
            } else {
                reader.fault_at(
                    list.at,
                    FaultKind::Value,
                    format!("expected a list of 4 numbers, found {count}"),
                )
            }
        })
    }

    pub(super) fn bounds(
        &self,
        lower: Option<[u32; 4]>,
        upper: Option<[u32; 4]>,
        owner: usize,
    ) -> Result<Bounds> {
        Ok(Bounds {
            lower: self.need(lower, "lower", owner)?,
            upper: self.need(upper, "upper", owner)?,
        })
    }

    /// Numbers of transfers: a list of numbers, some writers nest them.
    pub(super) fn put_transfers(&mut self, slot: &mut Option<TransferIds>) -> Result<()> {
        self.reader.put(slot, |reader| {
            let mut ids = TransferIds::new();
            reader.each(|reader| {
                if reader.peek() == Some(b'[') {
                    return reader.each(|reader| reader.u32().map(|id| ids.push(id)));
                }
                ids.push(reader.u32()?);
                Ok(())
            })?;
            Ok(ids)
        })
    }

    /// `core_id` or `id`.
    pub(super) fn put_core(&mut self, slot: &mut PeerKeys) -> Result<()> {
        if self.reader.peek() == Some(b'[') && self.context.dialect.is_tiling() {
            let groups = &mut slot.groups;
            return self.reader.each(|reader| {
                *groups |= 1 << reader.integer(31)?;
                Ok(())
            });
        }
        self.reader.put(&mut slot.core, |reader| {
            if reader.peek() == Some(b'-') {
                let at = reader.offset();
                let minus = reader.f64()?;
                if minus.to_bits() != (-1f64).to_bits() {
                    return reader.fault_at(
                        at,
                        FaultKind::Value,
                        format!("expected a core or -1 for DRAM, found {minus}"),
                    );
                }
                return Ok((-1, at));
            }
            let at = reader.offset();
            Ok((i64::from(reader.u32()?), at))
        })
    }

    /// `type` of a peer.
    pub(super) fn put_peer_type(&mut self, slot: &mut PeerKeys) -> Result<()> {
        self.reader
            .put(&mut slot.dram, |reader| match reader.clone().string() {
                Ok(text) if text == "DRAM" => reader.string().map(|_| true),
                Ok(text) if text == "core" => reader.string().map(|_| false),
                _ => reader.expected("\"core\" or \"DRAM\""),
            })
    }

    pub(super) fn peer(&self, keys: &PeerKeys, owner: usize) -> Result<Peer> {
        let spec = self.context.spec();
        let key = if spec { "core_id" } else { "id" };
        let dram = self.need(keys.dram, "type", owner)?;
        match (dram, keys.core) {
            (true, None) if keys.groups != 0 => Ok(Peer::Dram(keys.groups)),
            // A bare 0 is DRAM, as in the other dialects: it names no group.
            (true, Some((group @ 1..32, _))) if self.context.dialect.is_tiling() => {
                Ok(Peer::Dram(1 << group))
            }
            (true, Some((id, at))) if spec && id != -1 => self.reader.fault_at(
                at,
                FaultKind::Value,
                format!("expected core_id -1 beside type DRAM, found {id}"),
            ),
            (true, Some(_)) => Ok(Peer::Dram(0)),
            (false, Some((id, at))) => match u32::try_from(id) {
                Ok(id) => Ok(Peer::Core(self.context.core(id, at)?)),
                Err(_) => self.reader.fault_at(
                    at,
                    FaultKind::Value,
                    format!("expected a core beside type core, found {id}"),
                ),
            },
            (_, None) => self.missing(key, owner),
        }
    }

    /// Who gets a piece of data; `owner` is where its entry begins.
    pub(super) fn destinations(&mut self, owner: usize) -> Result<SmallVec<[Destination; 2]>> {
        let mut destinations: SmallVec<[Destination; 2]> = SmallVec::new();
        let mut list = self.reader.list()?;
        while self.reader.item(&mut list)? {
            let (mut keys, mut layer, mut workload) = (PeerKeys::default(), None, None);
            let mut object = self.reader.object()?;
            while let Some(key) = self.reader.key(&mut object)? {
                match &*key {
                    "core_id" if self.context.spec() => self.put_core(&mut keys)?,
                    "id" if !self.context.spec() => self.put_core(&mut keys)?,
                    "id" => return self.foreign("id", "core_id"),
                    "core_id" => return self.foreign("core_id", "id"),
                    "type" => self.put_peer_type(&mut keys)?,
                    "layer_name" => self.put_name(&mut layer)?,
                    "workload_id" => self.reader.put(&mut workload, Reader::u32)?,
                    key => self.keep_nested(owner, Some(destinations.len()), key)?,
                }
            }
            let peer = self.peer(&keys, object.at)?;
            if let (Peer::Core(_), None) = (peer, workload) {
                return self.missing("workload_id", object.at);
            }
            destinations.push(Destination {
                peer,
                layer,
                workload,
            });
        }
        Ok(destinations)
    }
}

/// Replaces the names of a part.
pub(super) fn rename(part: &mut Part, map: &[Name]) {
    let new = |name: &mut Name| *name = map.get(name.index()).copied().unwrap_or(*name);
    let renew = |name: &mut Option<Name>| {
        if let Some(name) = name {
            *name = map.get(name.index()).copied().unwrap_or(*name);
        }
    };
    match part {
        Part::Dram(dram_in, dram_out) => {
            for entry in dram_in.iter_mut() {
                renew(&mut entry.layer);
            }
            for entry in dram_out {
                renew(&mut entry.layer);
                entry
                    .destinations
                    .iter_mut()
                    .for_each(|d| renew(&mut d.layer));
            }
        }
        Part::Workloads(workloads, pieces) => {
            for (layer, piece) in pieces {
                renew(layer);
                piece
                    .destinations
                    .iter_mut()
                    .for_each(|d| renew(&mut d.layer));
            }
            for workload in workloads {
                new(&mut workload.layer);
                workload
                    .ofmaps
                    .iter_mut()
                    .flat_map(|o| &mut o.destinations)
                    .for_each(|d| renew(&mut d.layer));
                for tensor in &mut workload.buffer {
                    renew(&mut tensor.layer);
                    tensor.sources.iter_mut().for_each(|s| renew(&mut s.layer));
                }
                workload
                    .weight_buffer
                    .iter_mut()
                    .flatten()
                    .for_each(|w| renew(&mut w.layer));
                for pe in workload
                    .tiles
                    .iter_mut()
                    .filter_map(|tile| tile.pe.as_mut())
                {
                    renew(&mut pe.layer);
                    renew(&mut pe.loop_order);
                    renew(&mut pe.cut_mode);
                }
            }
        }
    }
}
