//! Largest values and where they stand, elements by their indices, and transpositions of blocks.

use super::{Compute, Inputs, Results};
use chipless_model::{Fault, Kind, Storage};

/// Values that the search holds of each partition.
pub(super) const VALUES: usize = 8;
/// Partitions of a core of `GpSimd`: it counts elements of the first that are not 0, and all of them share indices.
pub(super) const CORE_PARTITIONS: usize = 16;
/// Elements, and partitions, of a block.
pub(super) const BLOCK: usize = 32;

impl Compute {
    /// The eight largest of each partition, smallest first: compilers walk the destination backwards.
    pub(super) fn largest(&self, values: &[f32]) -> Vec<f32> {
        let mut results = Vec::with_capacity(VALUES * self.partitions);
        for values in values.chunks(self.length.max(1)) {
            let mut largest = [f32::NEG_INFINITY; VALUES];
            for value in values {
                // Smallest first: what is smaller moves down by one.
                if largest[0] < *value {
                    let smaller = largest.iter().take_while(|known| **known < *value).count();
                    largest.copy_within(1..smaller, 0);
                    largest[smaller - 1] = *value;
                }
            }
            results.extend(largest);
        }
        results
    }

    /// Where elements are not 0, and how many, of each partition that is looked at; the others stay.
    pub(super) fn nonzero(
        &self,
        offset: i32,
        padding: i32,
        storage: &Storage<'_>,
    ) -> Result<Results, Fault> {
        let values = self.sources[0].read_bits(storage)?;
        let mut results = self.destinations[0].read_bits(storage)?;
        // The sign of a zero does not count.
        let is_float = self.sources[0].element.kind() == Kind::Float;
        let rows = values
            .chunks(self.length.max(1))
            .zip(results.chunks_mut(self.length + 1));
        for (values, row) in rows.step_by(CORE_PARTITIONS) {
            row.fill(padding as u32);
            let mut count = 0;
            for (index, bits) in values.iter().enumerate() {
                let bits = if is_float { bits << 1 } else { *bits };
                if bits != 0 {
                    row[count] = offset.wrapping_add(index as i32) as u32;
                    count += 1;
                }
            }
            row[self.length] = count as u32;
        }
        Ok(Results::Bits(results))
    }

    /// Of each value that is looked for, lowest register first, the first place that has it and is not taken.
    #[expect(clippy::float_cmp, reason = "the values are those of the elements")]
    fn places<'v>(
        &self,
        inputs: &'v [Vec<f32>],
    ) -> impl Iterator<Item = [Option<usize>; VALUES]> + use<'v> {
        let rows = inputs[0]
            .chunks(self.length.max(1))
            .zip(inputs[1].chunks(VALUES));
        rows.map(|(values, wanted)| {
            let mut places = [None; VALUES];
            for n in 0..VALUES {
                places[n] = (0..values.len())
                    .find(|k| values[*k] == wanted[n] && !places[..n].contains(&Some(*k)));
            }
            places
        })
    }

    /// Indices of the values; all ones where there is none.
    pub(super) fn find_indices(&self, inputs: &Inputs<f32>) -> Vec<i64> {
        let missing = (1i64 << self.destinations[0].element.bits()) - 1;
        let index = |place: Option<usize>| place.map_or(missing, |k| k as i64);
        self.places(inputs)
            .flat_map(|places| places.map(index))
            .collect()
    }

    pub(super) fn replace_values(&self, replacement: f32, inputs: &mut Inputs<f32>) -> Vec<f32> {
        let mut values = inputs[0].clone();
        for (values, places) in values
            .chunks_mut(self.length.max(1))
            .zip(self.places(inputs))
        {
            for place in places.into_iter().flatten() {
                values[place] = replacement;
            }
        }
        values
    }

    /// Elements of a table by their indices.
    pub(super) fn gather(
        &self,
        elements: usize,
        (start, mask): (u32, u32),
        missing: Option<u32>,
        storage: &Storage<'_>,
    ) -> Result<Results, Fault> {
        let indices = self.sources[0].read_bits(storage)?;
        let table = self.sources[1].read_bits(storage)?;
        let mut values = match missing {
            Some(value) => vec![value; indices.len()],
            None => self.destinations[0].read_bits(storage)?,
        };
        for (at, (value, index)) in values.iter_mut().zip(indices).enumerate() {
            if index & !mask != start {
                continue;
            }
            let (partition, element) = (at / self.length, (index & mask) as usize);
            if element >= elements {
                return Err(Fault::program(format!(
                    "index {index:#x} is that of element {element} of the table, which has {elements}"
                )));
            }
            *value = table[partition * elements + element];
        }
        Ok(Results::Bits(values))
    }

    /// Runs of elements by indices: the first of partitions that share them holds the first, the next the second.
    pub(super) fn copy_runs(
        &self,
        indices: usize,
        run: usize,
        inputs: &[Vec<u32>],
    ) -> Result<Vec<u32>, Fault> {
        let (columns, size) = (self.length, inputs[1].len() / self.partitions.max(1));
        let mut values = Vec::with_capacity(self.partitions * indices * run);
        for partition in 0..self.partitions {
            let elements = &inputs[1][partition * size..][..size];
            let first = partition / CORE_PARTITIONS * CORE_PARTITIONS;
            for n in 0..indices {
                let index = inputs[0][(first + n % CORE_PARTITIONS) * columns + n / CORE_PARTITIONS]
                    as usize;
                let run = elements.get(index..index + run).ok_or_else(|| {
                    Fault::program(format!(
                        "index {index} names elements up to {} of {size} of each partition",
                        index + run
                    ))
                })?;
                values.extend_from_slice(run);
            }
        }
        Ok(values)
    }

    /// For each element the first of the elements equal to it around it, then for each the one behind the last. Elements that are 0 belong to
    /// none: theirs would begin at the end and end before the start.
    pub(super) fn sequence_bounds(&self, bits: &[u32]) -> Vec<i64> {
        let is_float = self.sources[0].element.kind() == Kind::Float;
        let are_equal = |a: &u32, b: &u32| {
            if is_float {
                f32::from_bits(*a).eq(&f32::from_bits(*b))
            } else {
                a == b
            }
        };
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for run in bits.chunk_by(are_equal) {
            let first = starts.len();
            let (start, end) = if are_equal(&run[0], &0) {
                (bits.len() as i64, -1)
            } else {
                (first as i64, (first + run.len()) as i64)
            };
            starts.resize(first + run.len(), start);
            ends.resize(first + run.len(), end);
        }
        starts.extend(ends);
        starts
    }

    /// Element `j` of partition `i` and element `i` of partition `j` of each block change places.
    pub(super) fn transpose_blocks(&self, values: &[u32]) -> Vec<u32> {
        let (length, mut results) = (self.length, vec![0; values.len()]);
        for (at, result) in results.iter_mut().enumerate() {
            let (partition, element) = (at / length, at % length);
            let (row, column) = (partition % BLOCK, element % BLOCK);
            *result = values[(partition - row + column) * length + element - column + row];
        }
        results
    }
}
