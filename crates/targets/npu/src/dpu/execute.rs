//! Executing a workload: gather, sum, post-process, write.

use super::geometry::Axes;
use super::lookup::Table;
use super::post::Elements;
use super::region::TileMemory;
use super::weights::Entry;
use super::workload::{ACCUMULATORS, Workload};
use chipless_kernels::room::Room;
use chipless_model::{Fault, Kind};

/// Sums that a [continued](Workload::is_continued) workload left in the accumulators of its DPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    extent: Axes,
    sums: Sums,
}

/// What a workload makes of what it reads.
pub enum Made {
    /// Sums for the accumulators.
    Sums(Partial),
    /// Elements for the tiles.
    Elements(Written),
}

/// Elements as they are stored.
pub struct Written(Elements);

/// Sums `[y][x][k]` of the two classes of numbers that the multipliers know.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sums {
    Floats(Room<f32>),
    /// Wrapping, as 32-bit accumulators do.
    Integers(Room<i32>),
}

impl Partial {
    /// The sums as the accumulators hold them: 32 bits each, little endian.
    pub(crate) fn write(&self, bytes: &mut [u8]) {
        let words = bytes.as_chunks_mut::<4>().0.iter_mut();
        match &self.sums {
            Sums::Floats(sums) => {
                for (word, sum) in words.zip(&**sums) {
                    *word = sum.to_le_bytes();
                }
            }
            Sums::Integers(sums) => {
                for (word, sum) in words.zip(&**sums) {
                    *word = sum.to_le_bytes();
                }
            }
        }
    }
}

impl Workload {
    /// Bytes of the accumulators that the sums of this workload's box take.
    pub(crate) fn accumulator_bytes(&self) -> u64 {
        4 * self.geometry.extent().volume().min(ACCUMULATORS) as u64
    }

    /// The sums that this workload, a continued one, has left in the accumulators.
    pub(crate) fn partial(&self, bytes: &[u8]) -> Partial {
        let words = bytes.as_chunks::<4>().0.iter();
        let sums = if self.input.format.kind() == Kind::Float {
            Sums::Floats(words.map(|word| f32::from_le_bytes(*word)).collect())
        } else {
            Sums::Integers(words.map(|word| i32::from_le_bytes(*word)).collect())
        };
        Partial {
            extent: self.geometry.extent(),
            sums,
        }
    }

    /// What the task makes: reads of the own tile. [`write`](Workload::write) does the rest.
    ///
    /// `earlier` is what the workload before on the tile's DPU left in its accumulators, if that was a [continued](Workload::is_continued) one.
    /// A continued workload leaves its sums there and writes nothing (the compiler gives such a task no output buffer but the accumulators);
    /// the next one adds its own and, unless it is continued itself, finishes them.
    ///
    /// # Errors
    /// What [`unsupported`](Workload::unsupported) names, pointers in tables that leave the tile, outputs that do, sums that do not belong to
    /// this box.
    pub fn compute<'t>(
        &self,
        tiles: &dyn Fn(u8) -> Option<&'t [u8]>,
        earlier: Option<Partial>,
    ) -> Result<Made, Fault> {
        if let Some(reason) = self.unsupported() {
            return Err(Fault::unsupported(reason));
        }
        if let Some(earlier) = &earlier {
            self.check_continues(earlier)?;
        }
        let tile = tiles(self.tile)
            .ok_or_else(|| Fault::program(format!("tile {} does not exist", self.tile)))?;
        if self.continued {
            self.check_accumulators(tile)?;
        } else {
            self.output.check(self.tile, tiles)?;
        }
        let table = if self.uses_weight_table() {
            self.weights.read_table(tile, self.geometry.outputs)?
        } else {
            Vec::new()
        };
        let sums = match (
            self.input.format.kind(),
            earlier.map(|earlier| earlier.sums),
        ) {
            (Kind::Float, None) => Sums::Floats(self.sums::<f32>(tile, &table, None)?),
            (Kind::Float, Some(Sums::Floats(earlier))) => {
                Sums::Floats(self.sums::<f32>(tile, &table, Some(earlier))?)
            }
            (Kind::Signed | Kind::Unsigned, None) => {
                Sums::Integers(self.sums::<i16>(tile, &table, None)?)
            }
            (Kind::Signed | Kind::Unsigned, Some(Sums::Integers(earlier))) => {
                Sums::Integers(self.sums::<i16>(tile, &table, Some(earlier))?)
            }
            _ => {
                return Err(Fault::program(
                    "the accumulators hold continued sums of another type",
                ));
            }
        };
        if self.continued {
            return Ok(Made::Sums(Partial {
                extent: self.geometry.extent(),
                sums,
            }));
        }
        let lookup = self.lookup.map(|lookup| lookup.read(tile)).transpose()?;
        let elements = self.finish(sums, &table, lookup.as_ref())?;
        Ok(Made::Elements(Written(elements)))
    }

    /// Writes what a workload has made to its tile and to those of halo regions, or gives back the sums that it leaves in the accumulators.
    ///
    /// # Errors
    /// A tile that is not there any more.
    pub fn write(&self, made: Made, memory: &mut dyn TileMemory) -> Result<Option<Partial>, Fault> {
        let Written(elements) = match made {
            Made::Sums(partial) => return Ok(Some(partial)),
            Made::Elements(elements) => elements,
        };
        match elements {
            Elements::One(elements) => self.output.write(self.tile, &elements, memory),
            Elements::Two(elements) => self.output.write(self.tile, &elements, memory),
            Elements::Four(elements) => self.output.write(self.tile, &elements, memory),
        }?;
        Ok(None)
    }

    fn finish(
        &self,
        sums: Sums,
        table: &[Entry],
        lookup: Option<&Table>,
    ) -> Result<Elements, Fault> {
        let channels = self.geometry.outputs;
        match sums {
            Sums::Floats(sums) => self.post.floats(sums, channels, table, lookup),
            Sums::Integers(sums) => self.post.integers(&sums, channels, table, lookup),
        }
    }

    /// Sums that are not written do not have to fit a tile, but no accumulators hold more than a tile does.
    fn check_accumulators(&self, tile: &[u8]) -> Result<(), Fault> {
        let extent = self.geometry.extent();
        if extent.volume() > tile.len() {
            return Err(Fault::program(format!(
                "continued sums of {} do not fit into any accumulators",
                extent.describe()
            )));
        }
        Ok(())
    }

    /// Whether the sums that the accumulators hold belong to this box.
    fn check_continues(&self, earlier: &Partial) -> Result<(), Fault> {
        let extent = self.geometry.extent();
        if !self.uses_weights() {
            return Err(Fault::program(format!(
                "the accumulators hold a continued convolution, this workload is {}",
                self.operation()
            )));
        }
        if earlier.extent != extent {
            return Err(Fault::program(format!(
                "the accumulators hold a continued box of {}, this workload computes {}",
                earlier.extent.describe(),
                extent.describe()
            )));
        }
        Ok(())
    }
}
