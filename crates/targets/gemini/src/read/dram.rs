//! What crosses the edge to DRAM.

use super::section::Section;
use crate::json::{Reader, Result};
use crate::schedule::{At, DramIn, DramOut, Schedule};
use std::collections::HashMap;

impl Section<'_> {
    /// `in` and `out` of DRAM or of one of its groups.
    pub(super) fn dram(&mut self, group: Option<u32>) -> Result<(Vec<DramIn>, Vec<DramOut>)> {
        let groups = group.map_or(0, |group| 1 << group);
        let (mut dram_in, mut dram_out) = (None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "in" => {
                    self.once(dram_in.is_some())?;
                    dram_in = Some(self.entries(|section| section.dram_in(groups))?);
                }
                "out" => {
                    self.once(dram_out.is_some())?;
                    dram_out = Some(self.entries(|section| section.dram_out(groups))?);
                }
                key => self.keep(object.at, key)?,
            }
        }
        if self.context.spec() {
            // IR-tiling leaves out what is empty; the others do not.
            self.need(dram_in.as_ref(), "in", object.at)?;
            self.need(dram_out.as_ref(), "out", object.at)?;
        }
        Ok((dram_in.unwrap_or_default(), dram_out.unwrap_or_default()))
    }

    pub(super) fn once(&mut self, there: bool) -> Result<()> {
        let mut slot = there.then_some(());
        if there {
            self.reader.put(&mut slot, |_| Ok(()))
        } else {
            Ok(())
        }
    }

    /// A list of entries; null counts as empty.
    pub(super) fn entries<T>(&mut self, read: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut entries = Vec::new();
        if self.reader.null()? {
            return Ok(entries);
        }
        let mut list = self.reader.list()?;
        while self.reader.item(&mut list)? {
            entries.push(read(self)?);
        }
        Ok(entries)
    }

    fn dram_in(&mut self, groups: u32) -> Result<DramIn> {
        let (mut transfer, mut core, mut workload, mut layer) = (None, None, None, None);
        let (mut lower, mut upper, mut related) = (None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "transfer_id" => self.reader.put(&mut transfer, Reader::u32)?,
                // All dialects say core_id here.
                "core_id" => self
                    .reader
                    .put(&mut core, |reader| Ok((reader.u32()?, reader.offset())))?,
                "workload_id" => self.reader.put(&mut workload, Reader::u32)?,
                "layer_name" => self.put_name(&mut layer)?,
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "related_ofmap" => self.put_transfers(&mut related)?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let (core, core_at) = self.need(core, "core_id", at)?;
        let core = self.context.core(core, core_at)?;
        Ok(DramIn {
            transfer: self.need(transfer, "transfer_id", at)?,
            core,
            workload: self.need(workload, "workload_id", at)?,
            layer,
            bounds: self.bounds(lower, upper, at)?,
            related,
            groups,
            at: At(at as u32),
        })
    }

    fn dram_out(&mut self, groups: u32) -> Result<DramOut> {
        let (mut transfer, mut kind, mut layer, mut destinations) = (None, None, None, None);
        let (mut lower, mut upper, mut size, mut related, mut priority) =
            (None, None, None, None, None);
        let mut object = self.reader.object()?;
        while let Some(key) = self.reader.key(&mut object)? {
            match &*key {
                "transfer_id" => self.reader.put(&mut transfer, Reader::u32)?,
                "type" => self
                    .reader
                    .put(&mut kind, |reader| match reader.clone().string() {
                        Ok(text) if ["weight", "fmap", "constant"].contains(&&*text) => {
                            reader.string()
                        }
                        _ => reader.expected("\"weight\", \"fmap\" or \"constant\""),
                    })?,
                "layer_name" => self.put_name(&mut layer)?,
                "destination" => {
                    self.once(destinations.is_some())?;
                    destinations = Some(self.destinations(object.at)?);
                }
                "lower" => self.put_corner(&mut lower)?,
                "upper" => self.put_corner(&mut upper)?,
                "size" => self.put_size(&mut size)?,
                "related_ifmap" => self.put_transfers(&mut related)?,
                "priority" => self.reader.put(&mut priority, Reader::u32)?,
                key => self.keep(object.at, key)?,
            }
        }
        let at = object.at;
        let kind = self.need(kind, "type", at)?;
        Ok(DramOut {
            transfer: self.need(transfer, "transfer_id", at)?,
            weight: kind == "weight",
            constant: kind == "constant",
            layer,
            destinations: self.need(destinations, "destination", at)?,
            bounds: self.bounds(lower, upper, at)?,
            size: self.need(size, "size", at)?,
            related,
            priority,
            groups,
            at: At(at as u32),
        })
    }
}

/// Adds the entries of a DRAM section. IR-tiling lists an interleaved transfer in each group that it uses: they become one.
pub(super) fn merge(schedule: &mut Schedule, dram_in: Vec<DramIn>, dram_out: Vec<DramOut>) {
    if !schedule.dialect.is_tiling() {
        schedule.dram_in = dram_in;
        schedule.dram_out = dram_out;
        return;
    }
    let known: HashMap<(u32, u32, u32), usize> = schedule
        .dram_in
        .iter()
        .enumerate()
        .map(|(index, entry)| ((entry.transfer, entry.core, entry.workload), index))
        .collect();
    for entry in dram_in {
        match known
            .get(&(entry.transfer, entry.core, entry.workload))
            .and_then(|index| schedule.dram_in.get_mut(*index))
        {
            Some(first) if first.groups & entry.groups == 0 && first.bounds == entry.bounds => {
                first.groups |= entry.groups;
            }
            _ => schedule.dram_in.push(entry),
        }
    }
    let known: HashMap<u32, usize> = schedule
        .dram_out
        .iter()
        .enumerate()
        .map(|(index, entry)| (entry.transfer, index))
        .collect();
    for entry in dram_out {
        match known
            .get(&entry.transfer)
            .and_then(|index| schedule.dram_out.get_mut(*index))
        {
            Some(first)
                if first.groups & entry.groups == 0
                    && first.bounds == entry.bounds
                    && first.size == entry.size =>
            {
                first.groups |= entry.groups;
                for destination in entry.destinations {
                    if !first.destinations.contains(&destination) {
                        first.destinations.push(destination);
                    }
                }
            }
            _ => schedule.dram_out.push(entry),
        }
    }
}
