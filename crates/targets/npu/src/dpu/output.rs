//! The output stage (ODU): a box of elements in memory order, its writes to the own tile and to halo regions of others.

use super::geometry::Axes;
use super::region::TileMemory;
use super::registers::DecodeError;
use super::registers::{HaloRegion, Invariant, Variant};
use crate::address::CMX_REACH;
use chipless_model::{Fault, Loop, Pattern, Swizzle};
use std::ops::Range;

/// An axis of the DPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    fn of(self, axes: Axes) -> usize {
        match self {
            Axis::X => axes.x,
            Axis::Y => axes.y,
            Axis::Z => axes.z,
        }
    }
}

/// Memory orders by the number of the permutation register, innermost axis first, and their names.
const PERMUTATIONS: [([Axis; 3], &str); 6] = [
    ([Axis::Z, Axis::X, Axis::Y], "ZXY"),
    ([Axis::Z, Axis::Y, Axis::X], "ZYX"),
    ([Axis::Y, Axis::Z, Axis::X], "YZX"),
    ([Axis::Y, Axis::X, Axis::Z], "YXZ"),
    ([Axis::X, Axis::Z, Axis::Y], "XZY"),
    ([Axis::X, Axis::Y, Axis::Z], "XYZ"),
];

/// Where a workload's results go.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Tile offset of element (0, 0, 0) of the output tensor.
    base: u64,
    /// Bits of an element.
    pub(super) element_bits: u32,
    permutation: usize,
    /// Extent of the output tensor.
    tensor: Axes,
    /// First element of the box.
    pub(super) begin: Axes,
    /// Extent of the box.
    pub(super) extent: Axes,
    pub(super) swizzle: Swizzle,
    halos: Vec<Halo>,
}

/// A part of the box that goes to other tiles as well.
#[derive(Clone, Debug)]
struct Halo {
    /// One bit for each tile.
    tiles: u32,
    /// Bytes from the own address to the one in the other tile.
    offset: i64,
    /// Extent of the middle axis in the tensor of the other tile.
    width: usize,
    /// Coordinates of the middle axis.
    middle: Range<usize>,
    /// Coordinates of the outer axis.
    outer: Range<usize>,
}

/// A part of the box, as it is written to one tile.
struct Destination {
    tile: u8,
    /// Tile offset of element (0, 0, 0).
    base: i64,
    /// Bytes from one outer coordinate to the next.
    outer_pitch: i64,
    middle: Range<usize>,
    outer: Range<usize>,
}

impl Output {
    pub(super) fn decode(
        i: &Invariant,
        v: &Variant,
        halos: impl Iterator<Item = HaloRegion>,
    ) -> Result<Output, DecodeError> {
        if i.dtype > 5 {
            return Err(DecodeError::new(
                "odu dtype",
                "an element width, 0 to 5",
                i.dtype,
            ));
        }
        if i.permutation as usize >= PERMUTATIONS.len() {
            return Err(DecodeError::new("permutation", "0 to 5", i.permutation));
        }
        for (field, begin, end, last) in [
            ("te_end_x", v.te_beg_x, v.te_end_x, i.te_dim_x),
            ("te_end_y", v.te_beg_y, v.te_end_y, i.te_dim_y),
            ("te_end_z", v.te_beg_z, v.te_end_z, i.te_dim_z),
        ] {
            if end < begin || end > last {
                return Err(DecodeError::new(
                    field,
                    format_args!("{begin} (te_beg) to {last} (te_dim)"),
                    end,
                ));
            }
        }
        let swizzle = Swizzle::from_key(i.swizzle_key).ok_or_else(|| {
            DecodeError::new("swizzle_key", "a swizzle key, 0 to 5", i.swizzle_key)
        })?;
        let axes = |x: u32, y: u32, z: u32| Axes {
            x: x as usize,
            y: y as usize,
            z: z as usize,
        };
        let mut output = Output {
            base: u64::from(i.ac_base) * 16,
            element_bits: 1 << i.dtype,
            permutation: i.permutation as usize,
            tensor: axes(i.te_dim_x + 1, i.te_dim_y + 1, i.te_dim_z + 1),
            begin: axes(v.te_beg_x, v.te_beg_y, v.te_beg_z),
            extent: axes(
                v.te_end_x - v.te_beg_x + 1,
                v.te_end_y - v.te_beg_y + 1,
                v.te_end_z - v.te_beg_z + 1,
            ),
            swizzle,
            halos: Vec::new(),
        };
        for region in halos.filter(|region| region.enable == 1) {
            output.halos.push(output.halo(&region, v.conv_cond == 1)?);
        }
        Ok(output)
    }

    /// Writes the whole box a second time, this many bytes further.
    pub(super) fn repeat(&mut self, offset: i64) {
        let [_, middle, outer] = self.order();
        self.halos.push(Halo {
            tiles: 1,
            offset,
            width: middle.of(self.tensor),
            middle: 0..middle.of(self.tensor),
            outer: 0..outer.of(self.tensor),
        });
    }

    fn halo(&self, region: &HaloRegion, continued: bool) -> Result<Halo, DecodeError> {
        if region.tile_select >= 1 << 6 {
            return Err(DecodeError::new(
                "halo tile_select",
                "tiles 0 to 5",
                format_args!("{:#09b}", region.tile_select),
            ));
        }
        if region.end_x < region.begin_x {
            return Err(DecodeError::new(
                "halo end_x",
                format_args!("at least begin_x, {}", region.begin_x),
                region.end_x,
            ));
        }
        if region.end_y < region.begin_y {
            return Err(DecodeError::new(
                "halo end_y",
                format_args!("at least begin_y, {}", region.begin_y),
                region.end_y,
            ));
        }
        let halo = Halo {
            tiles: region.tile_select,
            // 22 bits, two's complement.
            offset: i64::from(region.ac_adr_offset as i32)
                - if region.ac_adr_offset >= 1 << 21 {
                    1 << 22
                } else {
                    0
                },
            width: (region.target_width_msb << 10 | region.target_width_lsb) as usize,
            middle: region.begin_x as usize..region.end_x as usize + 1,
            outer: region.begin_y as usize..region.end_y as usize + 1,
        };
        let lowest = self
            .destination(0, &halo)
            .filter(|_| !continued)
            .map_or(0, |d| self.address(&d, d.outer.start, d.middle.start));
        if lowest < 0 {
            return Err(DecodeError::new(
                "halo ac_adr_offset",
                "an offset that stays in the tile",
                halo.offset,
            ));
        }
        Ok(halo)
    }

    fn order(&self) -> [Axis; 3] {
        PERMUTATIONS[self.permutation].0
    }

    /// The name of the memory order where it is not the usual one, channels innermost.
    pub(super) fn permutation(&self) -> Option<&'static str> {
        (self.permutation != 0).then_some(PERMUTATIONS[self.permutation].1)
    }

    /// Tiles that halo regions go to.
    pub(super) fn halo_tiles(&self) -> impl Iterator<Item = u8> {
        let tiles = self.halos.iter().fold(0, |all, halo| all | halo.tiles);
        (0..6).filter(move |tile| tiles >> tile & 1 == 1)
    }

    fn element_bytes(&self) -> usize {
        self.element_bits as usize / 8
    }

    /// Bytes from one middle coordinate to the next.
    fn middle_pitch(&self) -> usize {
        self.order()[0].of(self.tensor) * self.element_bytes()
    }

    /// The own tile first, then every tile of every halo region.
    fn destinations(&self, own: u8) -> impl Iterator<Item = Destination> {
        let [_, middle, outer] = self.order();
        let range = |axis: Axis| axis.of(self.begin)..axis.of(self.begin) + axis.of(self.extent);
        let local = Destination {
            tile: own,
            base: self.base as i64,
            outer_pitch: (middle.of(self.tensor) * self.middle_pitch()) as i64,
            middle: range(middle),
            outer: range(outer),
        };
        let halos = self.halos.iter().flat_map(move |halo| {
            (0..6)
                .filter(|tile| halo.tiles >> tile & 1 == 1)
                .filter_map(|tile| self.destination(tile, halo))
        });
        std::iter::once(local).chain(halos)
    }

    /// The part of the box that a halo region sends to a tile, where they meet.
    fn destination(&self, tile: u8, halo: &Halo) -> Option<Destination> {
        let [_, middle, outer] = self.order();
        let meet = |axis: Axis, range: &Range<usize>| {
            let start = axis.of(self.begin).max(range.start);
            let end = (axis.of(self.begin) + axis.of(self.extent)).min(range.end);
            (start < end).then_some(start..end)
        };
        Some(Destination {
            tile,
            base: self.base as i64 + halo.offset,
            outer_pitch: (halo.width * self.middle_pitch()) as i64,
            middle: meet(middle, &halo.middle)?,
            outer: meet(outer, &halo.outer)?,
        })
    }

    /// Tile offset of the first element of the box at these coordinates.
    fn address(&self, destination: &Destination, outer: usize, middle: usize) -> i64 {
        let inner = self.order()[0].of(self.begin) * self.element_bytes();
        destination.base
            + outer as i64 * destination.outer_pitch
            + (middle * self.middle_pitch() + inner) as i64
    }

    /// Bytes of a run along the inner axis, and whether runs of neighbouring middle coordinates touch.
    fn run(&self) -> (usize, bool) {
        let inner = self.order()[0];
        (
            inner.of(self.extent) * self.element_bytes(),
            inner.of(self.extent) == inner.of(self.tensor),
        )
    }

    /// First byte and the end of the last, before swizzling.
    fn span(&self, destination: &Destination) -> (i64, i64) {
        let start = self.address(
            destination,
            destination.outer.start,
            destination.middle.start,
        );
        let last = self.address(
            destination,
            destination.outer.end - 1,
            destination.middle.end - 1,
        );
        (start, last + self.run().0 as i64)
    }

    /// Whether the box can be written: checked before anything is computed.
    pub(super) fn check<'t>(
        &self,
        own: u8,
        tiles: &dyn Fn(u8) -> Option<&'t [u8]>,
    ) -> Result<(), Fault> {
        for destination in self.destinations(own) {
            let tile = destination.tile;
            let size = tiles(tile)
                .ok_or_else(|| Fault::program(format!("output: tile {tile} does not exist")))?
                .len();
            let (_, end) = self.span(&destination);
            if end > size as i64 {
                return Err(Fault::program(format!(
                    "output: ends at {end:#x} of tile {tile}, beyond its {size:#x} bytes"
                )));
            }
        }
        Ok(())
    }

    /// Writes the box, `[y][x][z]`, to all its destinations. Only after [`check`](Output::check).
    pub(super) fn write<const SIZE: usize>(
        &self,
        own: u8,
        elements: &[[u8; SIZE]],
        memory: &mut dyn TileMemory,
    ) -> Result<(), Fault> {
        let ordered = self.permute(elements);
        let bytes = ordered.as_deref().unwrap_or(elements).as_flattened();
        let [_, middle, outer] = self.order();
        let (run, touching) = self.run();
        let row = run * middle.of(self.extent);
        let pitch = self.middle_pitch() as u64;
        for destination in self.destinations(own) {
            let tile = destination.tile;
            let memory = memory
                .tile_mut(tile)
                .ok_or_else(|| Fault::program(format!("output: tile {tile} does not exist")))?;
            let first = destination.middle.start - middle.of(self.begin);
            for o in destination.outer.clone() {
                let row = &bytes[(o - outer.of(self.begin)) * row..][..row];
                let part = &row[first * run..][..destination.middle.len() * run];
                let length = if touching { part.len() } else { run };
                let mut place = self.address(&destination, o, destination.middle.start) as u64;
                for run in part.chunks_exact(length) {
                    self.swizzle
                        .write(memory, place, run)
                        .ok_or_else(|| Fault::program(format!("output: leaves tile {tile}")))?;
                    // Inside the tile, as the run was, but for the place after the last one.
                    place = place.wrapping_add(pitch);
                }
            }
        }
        Ok(())
    }

    /// The box in memory order; `None` where `[y][x][z]` is the memory order.
    fn permute<const SIZE: usize>(&self, elements: &[[u8; SIZE]]) -> Option<Vec<[u8; SIZE]>> {
        if self.permutation == 0 {
            return None;
        }
        let Axes { x, z, .. } = self.extent;
        let stride = |axis| match axis {
            Axis::X => z,
            Axis::Y => x * z,
            Axis::Z => 1,
        };
        let [inner, middle, outer] = self.order();
        let mut ordered = Vec::with_capacity(elements.len());
        for o in 0..outer.of(self.extent) {
            for m in 0..middle.of(self.extent) {
                let start = o * stride(outer) + m * stride(middle);
                let along = elements[start..].iter().step_by(stride(inner));
                ordered.extend(along.take(inner.of(self.extent)));
            }
        }
        Some(ordered)
    }

    /// Tile, start and size of the bytes of chosen elements, `[y][x][z]`, wherever they are written.
    pub(super) fn written(&self, own: u8, elements: &[bool], visit: &mut dyn FnMut(u8, u64, u64)) {
        let Axes { x, z, .. } = self.extent;
        let stride = |axis| match axis {
            Axis::X => z,
            Axis::Y => x * z,
            Axis::Z => 1,
        };
        let [inner, middle, outer] = self.order();
        let size = self.element_bytes() as u64;
        for destination in self.destinations(own) {
            for o in destination.outer.clone() {
                for m in destination.middle.clone() {
                    let first = (o - outer.of(self.begin)) * stride(outer)
                        + (m - middle.of(self.begin)) * stride(middle);
                    let start = self.address(&destination, o, m) as u64;
                    let chosen = |i: &u64| elements[first + *i as usize * stride(inner)];
                    let mut rest = 0..inner.of(self.extent) as u64;
                    while let Some(low) = rest.find(chosen) {
                        let high = rest.find(|i| !chosen(i)).unwrap_or(rest.end);
                        for (at, length) in
                            self.swizzle.pieces(start + low * size, (high - low) * size)
                        {
                            visit(destination.tile, at, length);
                        }
                    }
                }
            }
        }
    }

    /// The bytes that are written, tile by tile, before swizzling.
    pub(super) fn patterns(&self, own: u8, emit: &mut dyn FnMut(u8, Pattern)) {
        let (run, _) = self.run();
        for destination in self.destinations(own) {
            let (start, end) = self.span(&destination);
            let pattern = if end > CMX_REACH as i64 {
                // Nowhere to be written to: one piece says so as well as millions.
                Pattern::contiguous(start as u64, (end - start) as u64)
            } else {
                let loops = [
                    Loop {
                        count: destination.middle.len() as u64,
                        stride: self.middle_pitch() as i64,
                    },
                    Loop {
                        count: destination.outer.len() as u64,
                        stride: destination.outer_pitch,
                    },
                ];
                Pattern::new(start as u64, run as u64, loops)
            };
            emit(destination.tile, pattern);
        }
    }
}
