//! A variant of an invariant as one thing to do: registers resolved into operation, geometry, formats and addresses.

mod decode;

use super::activations::{StorageElements, Taken, Tensor};
use super::formats::{self, input_format};
use super::geometry::{Axes, Geometry};
use super::grid::Grid;
use super::lookup::Lookup;
use super::operation::{Elementwise, Operation};
use super::output::Output;
use super::post::Post;
use super::region::TILE_BYTES;
use super::registers::{self, DecodeError, Invariant, Variant};
use super::weights::{Palette, Weights};
use crate::generation::PostStages;
use chipless_model::{ElementType, Kind, Swizzle};
use std::ops::Range;

/// Sums that the accumulators of a DPU hold: 64 for each of 256 multipliers' groups.
pub(crate) const ACCUMULATORS: usize = 64 * 256;

/// The outputs that a workload computes: x, y, z.
pub type OutputBox = [Range<usize>; 3];

/// One DPU task: a variant of an invariant on one tile.
#[derive(Clone, Debug)]
pub struct Workload {
    pub(super) tile: u8,
    pub(super) operation: Operation,
    pub(super) geometry: Geometry,
    pub(super) input: Tensor,
    /// The second operand of an elementwise operation.
    pub(super) second: Option<Tensor>,
    pub(super) weights: Weights,
    pub(super) post: Post,
    /// The table of the post-processing engine, whose results it replaces.
    pub(super) lookup: Option<Lookup>,
    pub(super) output: Output,
    /// Channels of the input that it walks; the output box may have fewer.
    pub(super) channels: usize,
    /// The sums stay in the accumulators for the next workload of this DPU.
    pub(super) continued: bool,
    /// How the accumulator contexts are divided.
    pub(super) grid: Grid,
    /// Bytes of its memory: a bound where pointers are data.
    pub(super) reach: u64,
    pub(super) unsupported: Option<String>,
    pub(super) unproven: Option<String>,
}

impl Workload {
    /// Decodes a variant (224 bytes) and its invariant (352 bytes), as they stand in CMX, for the DPU of `tile`, whose post-processing
    /// counts by `stages`.
    ///
    /// # Errors
    /// Values that no DPU can execute: empty boxes, boxes outside their tensors, windows that do not give the output box,
    /// reserved numbers, formats that do not go together. What a DPU may do but Chipless does not know how decodes and
    /// says so in [`unsupported`](Workload::unsupported).
    pub fn decode(
        invariant: &[u8; Invariant::BYTES],
        variant: &[u8; Variant::BYTES],
        tile: u8,
        stages: PostStages,
    ) -> Result<Workload, DecodeError> {
        let (i, v) = (Invariant::decode(invariant), Variant::decode(variant));
        if tile >= 6 {
            return Err(DecodeError::new("tile", "0 to 5", tile));
        }
        let output = Output::decode(&i, &v, registers::halo_regions(variant))?;
        let mut workload =
            Workload::of_registers(&i, &v, output, tile, stages, registers::palette(invariant))?;
        if stages == PostStages::Float {
            workload.lookup = Lookup::decode(invariant);
        }
        if workload.lookup.is_some() && !workload.post.takes_lookup() {
            let reason = "a lookup table of integer sums";
            workload.unsupported.get_or_insert_with(|| reason.into());
        }
        Ok(workload)
    }

    /// A workload of registers, whose output is decoded.
    pub(super) fn of_registers(
        i: &Invariant,
        v: &Variant,
        output: Output,
        tile: u8,
        stages: PostStages,
        palette: [u16; 16],
    ) -> Result<Workload, DecodeError> {
        let operation = decode::operation(i)?;
        let geometry = decode::geometry(i, v, operation, stages)?;
        let activations = input_format(i.amode)
            .ok_or_else(|| DecodeError::new("amode", "a format, 0 to 9", i.amode))?;
        let weights = input_format(i.wmode)
            .ok_or_else(|| DecodeError::new("wmode", "a format, 0 to 9", i.wmode))?;
        if activations.kind() != Kind::Float
            && weights.kind() == Kind::Float
            && operation != Operation::MaxPool
        {
            return Err(DecodeError::new(
                "wmode",
                format_args!("an integer format for {activations} activations"),
                weights,
            ));
        }
        let key = |field, key| {
            Swizzle::from_key(key)
                .ok_or_else(|| DecodeError::new(field, "a swizzle key, 0 to 5", key))
        };
        let activation_swizzle = key("swizzle_key_offset", v.swizzle_key_offset)?;
        let weight_swizzle = key("wt_swizzle_key", v.wt_swizzle_key)?;

        let size = Axes {
            x: i.tensor_size_x as usize,
            y: i.tensor_size_y as usize,
            z: i.tensor_size_z as usize,
        };
        let input = Tensor {
            format: activations,
            zero_point: if operation == Operation::MaxPool {
                0
            } else {
                formats::zero_point(activations, i.mpe_actbias)
            },
            base: u64::from(i.act_offset0) + u64::from(i.tensor_start) * 16,
            size,
            swizzle: activation_swizzle,
            sparse: (i.act_dense == 0).then(|| StorageElements {
                table: u64::from(i.se_addr),
                // The newer DPU takes elements without a map, at an address where descriptors stand.
                map: (stages == PostStages::Separate || i.sparsity_addr != 0)
                    .then_some(u64::from(i.sparsity_addr)),
            }),
            taken: Taken::of(
                i.layer1_cmp_en == 1,
                i.layer1_wt_sp_ins == 1,
                i.cm_sp_pattern,
                size,
            ),
            first_rows: None,
        };
        let mut input = input;
        if let (PostStages::Float, 1.., Some(taken)) = (stages, i.tensor_cmp_size, &mut input.taken)
        {
            // The newer DPU pads pixels itself: memory holds only the channels that there are.
            taken.stored = i.tensor_cmp_size as usize;
        }
        let second = matches!(operation, Operation::Elementwise { .. }).then(|| Tensor {
            format: weights,
            zero_point: formats::zero_point(weights, i.mpe_wtbias),
            base: u64::from(v.weight_start) * 16,
            size,
            swizzle: weight_swizzle,
            sparse: None,
            taken: None,
            first_rows: None,
        });
        let weights = Weights {
            table: u64::from(v.weight_start),
            offset: u64::from(i.wt_offset),
            format: weights,
            zero_point: formats::zero_point(weights, i.mpe_wtbias),
            dense: i.wt_dense == 1,
            swizzle: weight_swizzle,
            palette: (i.wt_plt_cfg != 0).then_some(Palette { entries: palette }),
        };
        let mut workload = Workload {
            tile,
            operation,
            geometry,
            post: Post::decode(i, operation, activations, stages)?,
            lookup: None,
            output,
            input,
            second,
            weights,
            channels: v.workload_size_z as usize,
            continued: v.conv_cond == 1,
            grid: Grid::decode(v.nthw_ntk),
            reach: TILE_BYTES,
            unsupported: None,
            unproven: None,
        };
        workload.unsupported = workload.find_unsupported(i, v);
        workload.unproven = workload.find_unproven(i);
        Ok(workload)
    }

    /// Names what this workload needs and Chipless does not execute; `None` where it can be executed.
    pub fn unsupported(&self) -> Option<String> {
        self.unsupported.clone()
    }

    /// Names what this workload does by rules of public sources that no program at hand has proven.
    pub fn unproven(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.unproven.as_deref().map(Into::into)
    }

    /// Whether its results pass a lookup table.
    pub(crate) fn has_lookup(&self) -> bool {
        self.lookup.is_some()
    }

    /// Whether other tiles get a part of its results.
    pub(crate) fn has_halo(&self) -> bool {
        self.output.halo_tiles().next().is_some()
    }

    /// Whether the sums stay in the DPU's accumulators, for its next workload to go on with, and nothing is written.
    pub fn is_continued(&self) -> bool {
        self.continued
    }

    /// Channels of a dense input that the DPU cannot walk, and what they should be a multiple of.
    pub(crate) fn odd_channels(&self) -> Option<(usize, usize)> {
        let multiple = (128 / self.input.format.bits() as usize).max(16);
        let odd = self.input.taken.is_none() && !self.input.size.z.is_multiple_of(multiple);
        odd.then_some((self.input.size.z, multiple))
    }

    /// Channels that it walks, where each output channel sees one input channel only.
    pub(crate) fn channelwise(&self) -> Option<usize> {
        let is_channelwise = matches!(
            self.operation,
            Operation::Depthwise | Operation::MaxPool | Operation::AveragePool { .. }
        );
        is_channelwise.then_some(self.channels)
    }

    /// Tile offset of the weight table, where it has one.
    pub(crate) fn weight_table(&self) -> Option<u64> {
        self.uses_weight_table().then_some(self.weights.table)
    }

    /// Where the weight table of a workload with weights stands in the tile: start and size of each piece.
    pub(crate) fn weight_table_ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let count = if self.uses_weights() {
            self.geometry.outputs
        } else {
            0
        };
        let size = Weights::table_bytes(count);
        self.weights.swizzle.pieces(self.weights.table, size)
    }

    /// The tile whose DPU does it.
    pub(crate) fn tile(&self) -> u8 {
        self.tile
    }

    /// How its weights are swizzled, where it has any.
    pub(crate) fn weight_swizzle(&self) -> Option<Swizzle> {
        self.uses_weights().then_some(self.weights.swizzle)
    }

    /// Tensors that are swizzled, and where in the tile they start.
    pub(crate) fn swizzled_inputs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let second = self
            .second
            .as_ref()
            .map(|second| ("second operands", second));
        let inputs = [("activations", &self.input)].into_iter().chain(second);
        inputs
            .filter(|(_, tensor)| !tensor.swizzle.is_off())
            .map(|(name, tensor)| (name, tensor.base))
    }

    /// The swizzle key of what it writes, and those of its two inputs; where there is one input, it counts twice.
    pub(crate) fn swizzle_keys(&self) -> (u32, [u32; 2]) {
        let first = self.input.swizzle;
        let second = self.second.as_ref().map_or(first, |second| second.swizzle);
        (self.output.swizzle.key(), [first.key(), second.key()])
    }

    /// The outputs that it computes; `None` where it leaves sums for the next workload.
    pub(crate) fn output_box(&self) -> Option<OutputBox> {
        let range = |begin: usize, extent: usize| begin..begin + extent;
        let Output { begin, extent, .. } = &self.output;
        (!self.continued).then(|| {
            [
                range(begin.x, extent.x),
                range(begin.y, extent.y),
                range(begin.z, extent.z),
            ]
        })
    }

    /// Whether each output channel has an entry in the weight table.
    pub(super) fn uses_weight_table(&self) -> bool {
        self.uses_weights() || (self.post.scale_from_table() && self.second.is_none())
    }

    /// The formats of two operands that no compiled program takes together.
    pub(crate) fn mixed_formats(&self) -> Option<(ElementType, ElementType)> {
        let (first, second) = (self.input.format, self.weights.format);
        let is_mixed = match self.operation {
            Operation::Elementwise { .. }
            | Operation::AveragePool { .. }
            | Operation::Reduce { .. } => first != second,
            Operation::Convolution | Operation::Depthwise => {
                first != second && second.kind() == Kind::Float
            }
            Operation::MaxPool => false,
        };
        is_mixed.then_some((first, second))
    }

    /// Whether weights are read.
    pub(super) fn uses_weights(&self) -> bool {
        matches!(
            self.operation,
            Operation::Convolution | Operation::Depthwise
        )
    }

    /// Whether every pixel, and the window's first channel in it, starts on a byte.
    fn starts_on_bytes(&self) -> bool {
        [Some(&self.input), self.second.as_ref()]
            .into_iter()
            .flatten()
            .all(|tensor| {
                [tensor.size.z, self.geometry.start.z]
                    .iter()
                    .all(|channels| (channels * tensor.format.bits() as usize).is_multiple_of(8))
            })
    }

    #[expect(
        clippy::too_many_lines,
        reason = "a table: one line for each thing that is not computed"
    )]
    fn find_unsupported(&self, i: &Invariant, v: &Variant) -> Option<String> {
        let sparse = self.input.sparse.is_some();
        let storage_element = match (i.npo2_se_z_split_en, i.se_z_split) {
            (1, _) => (i.npo2_se_size as usize + 1) * 16,
            (_, 0) => 8192,
            (_, split) => 8usize << split,
        };
        let reasons = [
            (
                i.write_sp == 1 || i.sp_out_en == 1,
                "sparse output (write_sp, sp_out_en)",
            ),
            (i.write_pt == 1, "pointer output (write_pt)"),
            (
                i.write_ac == 0 && v.conv_cond == 0,
                "an output that is not written (write_ac 0)",
            ),
            (
                i.cast_enable0 | i.cast_enable1 | i.cast_enable2 == 1,
                "output broadcast (odu_cast)",
            ),
            (
                self.uses_weights() && matches!(i.wt_plt_cfg, 1 | 2),
                "1- and 2-bit weight palettes (wt_plt_cfg)",
            ),
            (
                self.uses_weights() && i.wt_plt_cfg == 3 && self.weights.format.bits() < 8,
                "palettes of elements of less than a byte",
            ),
            (
                matches!(self.operation, Operation::Reduce { squares: true, .. }),
                "sums of squares (workload_operation 3)",
            ),
            (!self.starts_on_bytes(), "pixels that start inside a byte"),
            (
                i.zm_input == 0 || i.cm_input == 1,
                "channel-major input (cm_input)",
            ),
            (
                i.seed_wload == 1 || i.fifo_wr_wload == 1,
                "seed and FIFO workloads",
            ),
            (
                i.elop_wload == 1 && i.elop_wload_type == 1,
                "elementwise operations of another kind (elop_wload_type)",
            ),
            // Fields of NPU5010; zero before, and in every program seen.
            (
                i.tensor_cmp_offset != 0,
                "pixels that begin behind other channels (tensor_cmp_offset)",
            ),
            (
                i.repeat_dis == 1,
                "elementwise operands that are not repeated (repeat_dis)",
            ),
            (
                i.ppe_mode == 3 || i.ppe_mult2_mode == 1,
                "other modes of the post-processing engine (ppe_mode, ppe_mult2_mode)",
            ),
            (
                i.ppe_rnd_fd != 0 || i.ppe_rnd_int != 0,
                "other roundings (ppe_rnd_fd, ppe_rnd_int)",
            ),
            (
                v.sb_read_en == 1 || v.tensor2_act_dense == 1,
                "a second tensor beside the activations (sb_read_en, tensor2_act_dense)",
            ),
            (
                matches!(
                    self.operation,
                    Operation::Elementwise {
                        function: Elementwise::Multiply,
                        ..
                    }
                ) && self.input.format.kind() != Kind::Float,
                "elementwise products of integers",
            ),
            (
                v.bin_cfg == 1 || i.amode == 7 || (i.wmode == 7 && self.uses_weights()),
                "binary elements",
            ),
            (i.pad_en != 0, "padding with a value (pad_*_en)"),
            (sparse && i.elop_wload == 1, "sparse elementwise operands"),
            (
                sparse && (i.num_ses_in_z_dir != 0 || storage_element < self.input.size.z),
                "several storage elements in z",
            ),
            (
                sparse && i.sp_se_tbl_segment == 1,
                "segmented storage element tables",
            ),
            (
                sparse && v.dense_se == 1,
                "activation sparsity without a storage element table",
            ),
            (
                !sparse && v.dense_se == 0,
                "a storage element table without a sparsity map",
            ),
            (
                sparse && !self.input.swizzle.is_off(),
                "swizzled storage elements",
            ),
            (
                sparse && self.input.taken.is_some(),
                "compressed input channels with storage elements",
            ),
            (
                self.input.taken.is_some_and(Taken::names_others),
                "compressed input of more channels than are stored",
            ),
            (
                self.input.taken.is_some() && self.operation != Operation::Convolution,
                "compressed input outside a convolution",
            ),
            (
                self.input.taken.is_some_and(|taken| !taken.is_compressed())
                    && (!self.weights.dense || self.geometry.channels != self.input.size.z),
                "inserted weights (layer1_wt_sp_ins) that are sparse or of a part of the channels",
            ),
            (
                self.continued && !self.uses_weights(),
                "continued operations other than convolution",
            ),
            (
                i.elop_wload == 1 && self.post.scale_from_table(),
                "elementwise scales from a weight table",
            ),
        ];
        let reasons = reasons
            .into_iter()
            .filter(|(found, _)| *found)
            .map(|(_, reason)| reason);
        let found: Vec<&str> = reasons.chain(self.post.unsupported()).collect();
        let mut found: Vec<String> = found.into_iter().map(str::to_owned).collect();
        let extent = self.geometry.extent();
        if self.continued && !self.grid.holds(extent) {
            found.push(format!(
                "convolution continue of a box of {}, which the accumulators ({} contexts of 4x4 positions and 16 channels) do not hold",
                extent.describe(),
                self.grid.describe()
            ));
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    fn find_unproven(&self, i: &Invariant) -> Option<String> {
        let (input, weights) = (self.input.format, self.weights.format);
        let mut found = self.post.unproven();
        if !matches!(input, ElementType::Float16 | ElementType::UInt8) {
            found.push(format!("{input} activations"));
        }
        let proven_weights = match input {
            ElementType::Float16 => matches!(weights, ElementType::Float16 | ElementType::Int8),
            _ => weights == input,
        };
        if !proven_weights && (self.uses_weights() || self.second.is_some()) {
            found.push(format!("{weights} weights for {input} activations"));
        }
        let keys = [
            self.input.swizzle,
            self.weights.swizzle,
            self.output.swizzle,
        ];
        let scaled = matches!(self.operation, Operation::Elementwise { scale_a, scale_b, .. } if (scale_a, scale_b) != (1, 1));
        let reasons = [
            (self.continued, "convolution continue (conv_cond)"),
            (
                keys.iter().any(|swizzle| (1..5).contains(&swizzle.key())),
                "swizzle keys 1 to 4",
            ),
            (
                self.operation == Operation::Depthwise && !self.weights.dense,
                "sparse depthwise weights",
            ),
            (
                self.uses_weights() && !self.weights.dense && i.wt_plt_cfg != 0,
                "sparse palettised weights",
            ),
            (
                scaled && input.kind() == Kind::Float,
                "scaled float operands",
            ),
            (
                i.mpe_daz == 1 || i.mpe_ftz == 1,
                "denormals as in IEEE arithmetic (mpe_daz and mpe_ftz are ignored)",
            ),
        ];
        found.extend(
            reasons
                .into_iter()
                .filter(|(found, _)| *found)
                .map(|(_, reason)| reason.to_owned()),
        );
        (!found.is_empty()).then(|| found.join("; "))
    }
}
