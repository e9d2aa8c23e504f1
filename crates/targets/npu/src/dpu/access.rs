//! Which bytes a workload touches.

use super::activations::Tensor;
use super::geometry::Axes;
use super::operation::Operation;
use super::ranges::{Ranges, strided};
use super::region::{Operand, Region};
use super::weights::{Entry, NO_MAP, Weights, count_bits};
use super::workload::Workload;
use crate::address::CMX_REACH;
use chipless_model::{ElementType, Pattern, Swizzle};

/// What bytes of the own tile are known before anything runs: `known(offset, size)`.
pub(crate) type Known<'a> = &'a dyn Fn(u64, u64) -> Option<Vec<u8>>;

impl Workload {
    /// Every byte that the workload may touch, where nothing is known of its tables: weights and storage elements,
    /// whose addresses are data, may then stand anywhere in the tile. Everything else is exact.
    pub fn accesses(&self, visit: &mut dyn FnMut(Region)) {
        self.accesses_with(&|_, _| None, visit);
    }

    /// Every byte that the workload may touch. `known(offset, size)` gives bytes of the own tile that are certain to
    /// stand there when the workload runs: with the bytes of weight tables, sparsity maps and storage element pointers,
    /// what these point at becomes exact.
    pub fn accesses_with(
        &self,
        known: &dyn Fn(u64, u64) -> Option<Vec<u8>>,
        visit: &mut dyn FnMut(Region),
    ) {
        let each = |tensor, role, pattern: Pattern, may: bool, visit: &mut dyn FnMut(Region)| {
            visit(Region {
                role,
                tile: self.tile,
                pattern,
                swizzle: Swizzle::OFF,
                write: false,
                may,
                tensor,
            });
        };
        let mut read = |role, pattern, may| each(Operand::Activations, role, pattern, may, visit);
        match self.input.sparse {
            None => self.dense(Operand::Activations, &self.input, visit),
            Some(elements) => {
                self.input
                    .sparse_patterns(elements, &self.geometry, &mut |pattern| {
                        read("pointers and map of activations", pattern, false);
                    });
                match self.input.storage_elements(elements, &self.geometry, known) {
                    Some(found) => strided(found, |pattern| read("activations", pattern, false)),
                    None => read("activations", Pattern::contiguous(0, self.reach), true),
                }
            }
        }
        if let Some(second) = &self.second {
            self.dense(Operand::Second, second, visit);
        }
        let mut read = |role, pattern, may| each(Operand::Weights, role, pattern, may, visit);
        if let Some(lookup) = self.lookup {
            read("lookup table", lookup.pattern(known), false);
        }
        if self.uses_weight_table() {
            let size = Weights::table_bytes(self.geometry.outputs);
            self.swizzled(self.weights.table, size, &mut |pattern| {
                read("weight table", pattern, false);
            });
            if self.uses_weights() {
                if let Some(table) = self.known_bytes(self.weights.table, size, known) {
                    self.weight_accesses(&self.weights.parse_table(&table), known, &mut read);
                } else {
                    let entries = self.known_entries(known);
                    self.weight_accesses(&entries, known, &mut read);
                    read("weights", Pattern::contiguous(0, self.reach), true);
                }
            }
        }
        self.written(visit);
    }

    /// What the workload writes: nothing where its sums stay in the accumulators.
    pub fn written(&self, visit: &mut dyn FnMut(Region)) {
        if self.continued {
            return;
        }
        self.output.patterns(self.tile, &mut |tile, pattern| {
            visit(Region {
                tile,
                swizzle: inside(self.output.swizzle, &pattern),
                pattern,
                write: true,
                may: false,
                tensor: Operand::Activations,
                role: "result",
            });
        });
    }

    /// Type and dimensions (rows, columns, channels) of what an access of the workload holds: one of its operands by number, at this offset in
    /// its tile, or what it writes. Pointers and maps of sparse tensors are none.
    pub fn tensor(
        &self,
        operand: u8,
        is_write: bool,
        offset: u64,
    ) -> Option<(ElementType, Vec<u64>)> {
        let dimensions = |axes: Axes| vec![axes.y as u64, axes.x as u64, axes.z as u64];
        if is_write {
            return Some((self.result_element()?, dimensions(self.geometry.extent())));
        }
        let dense = |tensor: &Tensor| {
            let is_dense = tensor.sparse.is_none();
            is_dense.then(|| (tensor.format, dimensions(self.geometry.window())))
        };
        if operand == Operand::Activations as u8 {
            dense(&self.input)
        } else if operand == Operand::Second as u8 {
            dense(self.second.as_ref()?)
        } else {
            let mut tables = self.weight_table_ranges();
            let is_table = tables.any(|(start, size)| (start..start + size).contains(&offset));
            let element = if is_table {
                ElementType::Int32
            } else {
                self.weights.format
            };
            Some((element, Vec::new()))
        }
    }

    /// Where in its tile the first byte stands of its table, its weights and their map, and of the pointers and the map of a sparse input,
    /// as far as its table is known: how many bits an element of each has, and the offset.
    pub(crate) fn constants(&self, known: Known<'_>, visit: &mut dyn FnMut(u64, u64)) {
        if let Some(elements) = self.input.sparse {
            visit(32, elements.table);
            if let Some(map) = elements.map {
                visit(1, map);
            }
        }
        if !self.uses_weight_table() {
            return;
        }
        let physical = |offset| self.weights.swizzle.physical(offset);
        visit(32, physical(self.weights.table));
        if !self.uses_weights() {
            return;
        }
        let first = self.known_bytes(self.weights.table, Weights::table_bytes(1), known);
        let entries = first.map(|bytes| self.weights.parse_table(&bytes));
        if let Some(entry) = entries.and_then(|entries| entries.into_iter().next()) {
            visit(self.weights.stored_bits(), physical(entry.weights));
            if let Some(map) = entry.map.filter(|_| !self.weights.dense) {
                visit(1, physical(map));
            }
        }
    }

    /// What the workload reads of its dense operands, and then what it writes.
    pub fn activations(&self, visit: &mut dyn FnMut(Region)) {
        let tensors = [
            (Operand::Activations, Some(&self.input)),
            (Operand::Second, self.second.as_ref()),
        ];
        for (tensor, input) in tensors {
            if let Some(input) = input.filter(|input| input.sparse.is_none()) {
                self.dense(tensor, input, visit);
            }
        }
        self.written(visit);
    }

    /// What the workload reads of a dense tensor.
    fn dense(&self, tensor: Operand, input: &Tensor, visit: &mut dyn FnMut(Region)) {
        input.dense_patterns(&self.geometry, &mut |pattern| {
            visit(Region {
                tile: self.tile,
                swizzle: inside(input.swizzle, &pattern),
                pattern,
                write: false,
                may: false,
                tensor,
                role: match tensor {
                    Operand::Second => "second activations",
                    Operand::Activations | Operand::Weights => "activations",
                },
            });
        });
    }

    /// Where the first of its weights stands, if its table is known.
    pub(crate) fn first_weight(&self, known: Known<'_>) -> Option<u64> {
        let first = self.known_bytes(self.weights.table, Weights::table_bytes(1), known)?;
        let entry = self.weights.parse_table(&first).into_iter().next()?;
        Some(self.weights.swizzle.physical(entry.weights))
    }

    /// Which bytes of the own tile hold its weights and their maps, as far as its table is known.
    pub(crate) fn weights_read(&self, known: Known<'_>, visit: &mut dyn FnMut(Pattern)) {
        let entries = self.known_entries(known);
        self.weight_accesses(&entries, known, &mut |_, pattern, _| visit(pattern));
    }

    /// Entries of a weight table that is not known as a whole.
    fn known_entries(&self, known: Known<'_>) -> Vec<Entry> {
        let size = Weights::table_bytes(1);
        let entry = |number| {
            let start = self.weights.table + Weights::table_bytes(number);
            self.known_bytes(start, size, known)
        };
        let found = (0..self.geometry.outputs).filter_map(entry);
        found
            .flat_map(|bytes| self.weights.parse_table(&bytes))
            .collect()
    }

    /// Weights and sparsity maps, from the entries of the table.
    fn weight_accesses(
        &self,
        table: &[Entry],
        known: Known<'_>,
        read: &mut dyn FnMut(&'static str, Pattern, bool),
    ) {
        let channels = if self.operation == Operation::Depthwise {
            1
        } else {
            self.input.channels(&self.geometry)
        };
        let each = (self.geometry.taps() * channels) as u64;
        let (mut exact, mut bound, mut maps) = (Vec::new(), Vec::new(), Vec::new());
        for entry in table {
            if self.weights.dense {
                exact.push((entry.weights, self.weights.stored_bytes(each)));
                continue;
            }
            // Without a map the pointer leads beyond the memory.
            let map = entry.map.unwrap_or(u64::from(NO_MAP));
            let size = each.div_ceil(8);
            maps.push((map, size));
            match self.known_bytes(map, size, known) {
                Some(bytes) => {
                    let stored = count_bits(&bytes, 0, each as usize);
                    exact.push((entry.weights, self.weights.stored_bytes(stored as u64)));
                }
                None => bound.push((entry.weights, self.weights.stored_bytes(each))),
            }
        }
        for (role, ranges, may) in [
            ("weights", exact, false),
            ("map of sparse weights", maps, false),
            ("weights", bound, true),
        ] {
            let mut turned = Ranges::new(self.weights.swizzle);
            for (start, size) in ranges {
                turned.add(start, size);
            }
            strided(turned.finish(), |pattern| read(role, pattern, may));
        }
    }

    /// The part of its sparse weights that is there; `None` where its table or a map is not known.
    pub(crate) fn present(&self, known: Known<'_>) -> Option<f64> {
        let channels = self.geometry.extent().z;
        let table = self.known_bytes(self.weights.table, Weights::table_bytes(channels), known)?;
        let each = (self.geometry.taps() * self.input.channels(&self.geometry)) as u64;
        let (mut stored, mut all) = (0, 0);
        for entry in self.weights.parse_table(&table) {
            let map = self.known_bytes(entry.map?, each.div_ceil(8), known)?;
            stored += count_bits(&map, 0, each as usize);
            all += each as usize;
        }
        (all > 0).then(|| stored as f64 / all as f64)
    }

    /// Patterns of bytes that are swizzled as weights are.
    fn swizzled(&self, start: u64, size: u64, emit: &mut dyn FnMut(Pattern)) {
        let mut ranges = Ranges::new(self.weights.swizzle);
        ranges.add(start, size);
        strided(ranges.finish(), emit);
    }

    /// Logical bytes that are swizzled as weights are.
    pub(super) fn known_bytes(&self, start: u64, size: u64, known: Known<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        // Most tables come in one transfer: all of its rows at once, or else piece by piece.
        let rows = self.weights.swizzle.rows(start, size);
        let whole = known(rows.start, rows.end - rows.start);
        for (start, size) in self.weights.swizzle.pieces(start, size) {
            match &whole {
                Some(whole) => bytes.extend_from_slice(
                    whole
                        .get((start - rows.start) as usize..)?
                        .get(..size as usize)?,
                ),
                None => bytes.extend(known(start, size)?),
            }
        }
        (bytes.len() as u64 == size).then_some(bytes)
    }
}

/// The swizzle of a pattern; none of one that leaves the tile.
fn inside(swizzle: Swizzle, pattern: &Pattern) -> Swizzle {
    if pattern.fits(CMX_REACH) {
        swizzle
    } else {
        Swizzle::OFF
    }
}
