//! Where addresses and descriptors lead.

use super::{Lowering, UNMAPPED};
use crate::address::{self, Target};
use crate::kernels::Descriptors;
use crate::npu3720;
use crate::schedule::{Fetched, Slice};
use chipless_model::{BufferId, PartId, Pattern, Place};

impl<'i> Lowering<'_, 'i> {
    /// The descriptor of a DMA, which the engine reads from DDR.
    pub(super) fn in_ddr(&self, slice: Slice) -> Descriptors<'i> {
        Descriptors(
            self.buffers[slice.section]
                .map(|buffer| (buffer, slice.offset, self.bytes(slice)))
                .into_iter()
                .collect(),
        )
    }

    /// Descriptors that were fetched into the CMX of a tile, or that stand in their list.
    pub(super) fn in_cmx(&self, tile: u8, fetched: [&Fetched; 2]) -> Descriptors<'i> {
        let buffer = self.cmx.buffer(tile);
        Descriptors(
            fetched
                .into_iter()
                .filter_map(|f| match f.offset {
                    Some(offset) => Some((buffer?, offset, self.bytes(f.from))),
                    None => Some((
                        self.buffers[f.from.section]?,
                        f.from.offset,
                        self.bytes(f.from),
                    )),
                })
                .collect(),
        )
    }

    /// The byte that an address names, if it names exactly one.
    pub(super) fn one(
        &mut self,
        address: u64,
        role: &str,
        place: &Place,
    ) -> Option<(BufferId, u64)> {
        let found = match self.image.resolve(address) {
            Target::Section(section, offset) => self.buffers[section].map(|b| (b, offset)),
            Target::Cmx { .. } => self.cmx.locate(address),
            Target::Register(_) | Target::Unmapped => None,
        };
        if found.is_none() {
            self.findings.push(
                UNMAPPED.at(
                    place.clone(),
                    format!("its {role} {address:#x} is neither in a section nor in the CMX of one tile of the program"),
                ),
            );
        }
        found
    }

    /// Every byte that a destination names: several for a multicast.
    pub(super) fn all(&mut self, address: u64, place: &Place) -> Vec<(BufferId, u64)> {
        if let Some(offsets) = npu3720::multicast(address) {
            let found = offsets.map(|offset| Some((self.cmx.buffer(0)?, offset)));
            return found.into_iter().flatten().collect();
        }
        let Some((mask, offset)) = address::cmx(address) else {
            return self
                .one(address, "destination", place)
                .into_iter()
                .collect();
        };
        let found: Vec<_> = address::tiles(mask)
            .map(|tile| (tile, self.cmx.buffer(tile)))
            .collect();
        if let Some((tile, _)) = found.iter().find(|(_, buffer)| buffer.is_none()) {
            self.findings.push(
                UNMAPPED.at(
                    place.clone(),
                    format!("its destination {address:#x} names the CMX of tile {tile}, which the program does not use"),
                ),
            );
        }
        found
            .into_iter()
            .filter_map(|(_, buffer)| Some((buffer?, offset)))
            .collect()
    }

    /// Every byte of the buffers that a destination names, whether it is legal or not.
    pub(super) fn around(&self, address: u64) -> Vec<(BufferId, Pattern)> {
        let buffers: Vec<BufferId> = match (address::cmx(address), self.image.resolve(address)) {
            (Some((mask, _)), _) => address::tiles(mask)
                .filter_map(|tile| self.cmx.buffer(tile))
                .collect(),
            (None, Target::Section(section, _)) => self.buffers[section].into_iter().collect(),
            _ => Vec::new(),
        };
        buffers
            .into_iter()
            .map(|buffer| {
                (
                    buffer,
                    Pattern::contiguous(0, self.build.program.buffers[buffer].size),
                )
            })
            .collect()
    }

    pub(super) fn shifted(&mut self, pattern: &Pattern, offset: u64, place: &Place) -> Pattern {
        // Offsets are below 2^48, so shifting cannot leave 64 bits.
        pattern.shifted(offset as i64).unwrap_or_else(|| {
            self.findings.push(UNMAPPED.at(
                place.clone(),
                format!("offset {offset:#x} is beyond every memory"),
            ));
            pattern.clone()
        })
    }

    pub(super) fn bytes(&self, slice: Slice) -> &'i [u8] {
        &self.image.bytes(slice.section)[slice.offset as usize..][..slice.size as usize]
    }

    pub(super) fn place(&self, slice: Slice) -> Place {
        self.image.place(slice.section, slice.offset, slice.size)
    }

    pub(super) fn part(&mut self, section: usize) -> PartId {
        *self.parts.entry(section).or_insert_with(|| {
            self.build
                .part(self.image.sections()[section].name.clone().into_owned())
        })
    }
}
