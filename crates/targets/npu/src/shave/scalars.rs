//! Scalars of an argument block that are more than one number, operation by operation.

use super::activation::Activation;
use super::arguments::Layout;
use super::arguments::{ArgumentError, Reader};
use super::boxes::{NonMaxSuppression, PositionSensitiveRoiPooling, RoiPooling};
use super::dynamic::StridedSlice;
use super::index::{GatherNd, OneHot, Reduction, ScatterElements, TopK, TopKOrder};
use super::interpolate::{CoordinateMode, Interpolate, InterpolateMode, NearestMode};
use super::invocation::Invocation;
use super::movement::{Gather, ImagePatches, Pad, PadMode, PatchPadding, SpaceBatch};
use super::normalize::{EpsilonPlace, Lrn, Mvn1, Mvn6, NormalizeL2, Softmax};
use super::operation::Operation;
use super::parameters::{MAX_SIZE, MAX_WINDOW, Parameters};
use super::pool::{Pool, TilePosition};
use super::product::Convolution;
use super::quantize::Dequantize;
use super::recurrent::GruSequence;
use super::reduce::CumulativeSum;
use super::sample::{GridSample, Padding, RegionAlignment, RoiAlign, SampleMode};
use super::tensor::Shape;
use super::yolo::RegionYolo;
use chipless_model::ElementType;

/// The figures of an operation on single elements.
pub(super) fn activation(
    reader: &mut Reader<'_>,
    operation: Operation,
) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::Activation(match operation {
        Operation::Clamp => Activation::Clamp {
            minimum: reader.f32("minimum")?,
            maximum: reader.f32("maximum")?,
        },
        Operation::Elu => Activation::Elu {
            alpha: reader.f32("alpha")?,
        },
        Operation::HardSigmoid => Activation::HardSigmoid {
            alpha: reader.f32("alpha")?,
            beta: reader.f32("beta")?,
        },
        Operation::LeakyRelu => Activation::LeakyRelu {
            slope: reader.f32("slope")?,
        },
        Operation::Round => Activation::Round {
            half_away: reader.choice("rounding mode", &[false, true])?,
        },
        Operation::Selu => Activation::Selu {
            alpha: reader.f32("alpha")?,
            lambda: reader.f32("lambda")?,
        },
        Operation::Swish => Activation::Swish {
            beta: reader.f32("beta")?,
        },
        _ => return Ok(Parameters::None),
    }))
}

/// Blocks, and pads or crops on both sides.
pub(super) fn space_batch(
    reader: &mut Reader<'_>,
    rank: usize,
) -> Result<Parameters, ArgumentError> {
    let mut numbers = |field: &str, low: i64| -> Result<Vec<u32>, ArgumentError> {
        // Five places each; those beyond the rank hold anything.
        let read = (0..rank.min(5))
            .map(|_| Ok(reader.between(field, low, MAX_SIZE)? as u32))
            .collect();
        reader.skip(8 * (5 - rank.min(5) as u64));
        read
    };
    Ok(Parameters::SpaceBatch(SpaceBatch {
        block: numbers("block", 1)?,
        begin: numbers("pad or crop before", 0)?,
        end: numbers("pad or crop after", 0)?,
    }))
}

/// Steps, pads, dilations and groups.
pub(super) fn convolution(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::Convolution(Convolution {
        stride: reader.array("stride", 1, MAX_WINDOW)?,
        pad_begin: reader.array("pad before", 0, MAX_WINDOW)?,
        pad_end: reader.array("pad after", 0, MAX_WINDOW)?,
        dilation: reader.array("dilation", 1, MAX_WINDOW)?,
        groups: reader.between("groups", 1, MAX_SIZE)? as u32,
    }))
}

/// An axis, and how the indices are laid out.
pub(super) fn gather(reader: &mut Reader<'_>, rank: usize) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::Gather(Gather {
        axis: reader.axis("axis", rank)?,
        batch_dims: reader.between("batch dims", 0, rank as i64)? as usize,
        index_rank: reader.between("rank of the indices", 0, 15)? as usize,
    }))
}

/// Sizes, direction and bound of a gated recurrent unit.
pub(super) fn gru_sequence(
    reader: &mut Reader<'_>,
    operation: Operation,
) -> Result<Parameters, ArgumentError> {
    reader.skip_optional_marker();
    let hidden = reader.between("hidden size", 1, MAX_SIZE)? as u32;
    let reverse = reader.choice("direction", &[false, true])?;
    reader.i64("length")?;
    Ok(Parameters::GruSequence(GruSequence {
        hidden,
        multiplied: operation == Operation::GruSequenceLastPart,
        reverse,
        reset_after: reader.flag("linear before reset")?,
        clip: reader.f32("clip")?,
    }))
}

/// Sizes, steps and dilations of patches.
pub(super) fn image_patches(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::ImagePatches(ImagePatches {
        kernel: reader.array("kernel", 1, MAX_WINDOW)?,
        stride: reader.array("stride", 1, MAX_WINDOW)?,
        rate: reader.array("rate", 1, MAX_WINDOW)?,
        padding: reader.choice(
            "padding",
            &[
                PatchPadding::SameLower,
                PatchPadding::SameUpper,
                PatchPadding::Valid,
            ],
        )?,
    }))
}

/// The size of the result, and how it is sampled.
pub(super) fn roi_pooling(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::RoiPooling(RoiPooling {
        height: reader.between("pooled height", 1, MAX_WINDOW)? as u32,
        width: reader.between("pooled width", 1, MAX_WINDOW)? as u32,
        scale: reader.f32("spatial scale")?,
        bilinear: reader.choice("method", &[false, true])?,
    }))
}

/// An axis and a direction.
pub(super) fn cumulative_sum(
    reader: &mut Reader<'_>,
    rank: usize,
) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::CumulativeSum(CumulativeSum {
        axis: reader.axis("axis", rank)?,
        exclusive: reader.flag("exclusive")?,
        reverse: reader.flag("reverse")?,
    }))
}

/// An axis, then scales and zero points along it.
pub(super) fn dequantize(
    reader: &mut Reader<'_>,
    invocation: &Invocation,
    rank: usize,
) -> Result<Parameters, ArgumentError> {
    let axis = reader.axis("axis", rank)?;
    let channels = invocation
        .inputs
        .first()
        .and_then(|tensor| tensor.shape.dims.get(axis))
        .copied()
        .unwrap_or(1);
    let count = reader.between("number of scales", 1, i64::from(channels))?;
    let output = invocation.outputs.first().map(|tensor| &tensor.shape);
    let wide = output.is_some_and(|shape| shape.element == ElementType::Float32);
    let scales = packed(reader, "scale", count, wide)?;
    Ok(Parameters::Dequantize(Dequantize {
        axis,
        scales,
        zero_points: packed(reader, "zero point", count, wide)?,
    }))
}

/// How places between elements, and outside, are sampled.
pub(super) fn grid_sample(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::GridSample(GridSample {
        align_corners: reader.flag("align corners")?,
        mode: reader.choice(
            "mode",
            &[
                SampleMode::Bilinear,
                SampleMode::Bicubic,
                SampleMode::Nearest,
            ],
        )?,
        padding: reader.choice(
            "padding",
            &[Padding::Zeros, Padding::Border, Padding::Reflection],
        )?,
    }))
}

/// The figures of local response normalisation.
pub(super) fn lrn(reader: &mut Reader<'_>, rank: usize) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::Lrn(Lrn {
        alpha: reader.f32("alpha")?,
        beta: reader.f32("beta")?,
        bias: reader.f32("bias")?,
        size: reader.between("size", 1, MAX_WINDOW)? as u32,
        axes: reader.axes(rank)?,
    }))
}

/// Which dims are normalised, by their meaning.
pub(super) fn mvn1(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::Mvn1(Mvn1 {
        across_channels: reader.flag("across channels")?,
        normalize_variance: reader.flag("normalize variance")?,
        epsilon: reader.f32("epsilon")?,
    }))
}

/// Which dims are normalised, by their numbers.
pub(super) fn mvn6(
    reader: &mut Reader<'_>,
    rank: usize,
    present: u64,
) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::Mvn6(Mvn6 {
        normalize_variance: reader.flag("normalize variance")?,
        epsilon_place: reader.choice(
            "epsilon mode",
            &[EpsilonPlace::InsideRoot, EpsilonPlace::OutsideRoot],
        )?,
        epsilon: reader.f32("epsilon")?,
        axes: reader.axes(rank)?,
        scale: present & 0b10 != 0,
        bias: present & 0b100 != 0,
    }))
}

/// How a norm is bounded, and along which dims it is taken.
pub(super) fn normalize_l2(
    reader: &mut Reader<'_>,
    rank: usize,
) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::NormalizeL2(NormalizeL2 {
        epsilon: reader.f32("epsilon")?,
        epsilon_is_minimum: reader.choice("epsilon mode", &[false, true])?,
        logical_axes: reader.axes(rank)?,
    }))
}

/// An axis, and what stands where.
pub(super) fn one_hot(
    reader: &mut Reader<'_>,
    output: Option<&Shape>,
) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::OneHot(OneHot {
        axis: {
            let rank = output.map_or(0, |shape| shape.dims.len() as i64);
            match reader.layout() {
                Layout::Short => reader.between("axis", 0, rank - 1)? as usize,
                Layout::Long => reader.between("axis, counted from 1", 1, rank)? as usize - 1,
            }
        },
        depth: reader.between("depth", 1, MAX_SIZE)? as u32,
        on: reader.f32("on value")?,
        off: reader.f32("off value")?,
        negative_from_end: reader.flag("negative indices")?,
    }))
}

/// A pool, and where the tile lies in its tensors.
pub(super) fn max_pool_indices(
    reader: &mut Reader<'_>,
    operation: Operation,
) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::PoolIndices(
        pool(reader, operation)?,
        TilePosition {
            axis: reader.i64("axis")?,
            input_dims: reader.array("input dims", 1, MAX_SIZE)?,
            output_dims: reader.array("output dims", 1, MAX_SIZE)?,
            input_offset: reader.array("input offset", 0, MAX_SIZE)?,
            output_offset: reader.array("output offset", 0, MAX_SIZE)?,
        },
    ))
}

/// The size of the result, and how it is sampled.
pub(super) fn roi_align(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::RoiAlign(RoiAlign {
        height: reader.between("pooled height", 1, MAX_WINDOW)? as u32,
        width: reader.between("pooled width", 1, MAX_WINDOW)? as u32,
        sampling_ratio: reader.between("sampling ratio", 0, MAX_WINDOW)? as u32,
        spatial_scale: reader.f32("spatial scale")?,
        maximum: reader.choice("pooling mode", &[false, true])?,
        alignment: reader.choice(
            "aligned mode",
            &[
                RegionAlignment::Asymmetric,
                RegionAlignment::HalfPixelForNearest,
                RegionAlignment::HalfPixel,
            ],
        )?,
    }))
}

/// Channels of the output, a scale, parts along each side, and how they are pooled: only means are compiled.
pub(super) fn position_sensitive(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::PositionSensitiveRoiPooling(
        PositionSensitiveRoiPooling {
            channels: reader.between("output channels", 1, MAX_SIZE)? as u32,
            scale: reader.f32("spatial scale")?,
            parts: reader.between("group size", 1, MAX_WINDOW)? as u32,
        },
    ))
}

/// Coordinates, classes, regions, softmax, and nine regions of which the first are used.
pub(super) fn region_yolo(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    let coordinates = reader.between("coordinates", 0, MAX_SIZE)? as u32;
    let classes = reader.between("classes", 0, MAX_SIZE)? as u32;
    let regions = reader.between("regions", 0, MAX_SIZE)? as u32;
    let softmax = reader.flag("softmax")?;
    let used = reader.between("used regions", 0, 9)? as u32;
    Ok(Parameters::RegionYolo(RegionYolo {
        coordinates,
        classes,
        regions: if softmax { regions } else { used },
        softmax,
    }))
}

/// An axis, and how updates meet what is there.
pub(super) fn scatter_elements(
    reader: &mut Reader<'_>,
    rank: usize,
) -> Result<Parameters, ArgumentError> {
    use Reduction::{Maximum, Mean, Minimum, None, Product, Sum};
    Ok(Parameters::ScatterElements(ScatterElements {
        axis: reader.axis("axis", rank)?,
        reduction: reader.choice("reduction", &[None, Sum, Product, Minimum, Maximum, Mean])?,
        use_initial: reader.flag("use of the initial value")?,
    }))
}

/// An axis, an order and a count.
pub(super) fn top_k(reader: &mut Reader<'_>, rank: usize) -> Result<Parameters, ArgumentError> {
    Ok(Parameters::TopK(TopK {
        axis: reader.axis("axis", rank)?,
        smallest: reader.choice("mode", &[false, true])?,
        order: reader.choice(
            "sort",
            &[TopKOrder::Unspecified, TopKOrder::Value, TopKOrder::Index],
        )?,
        k: reader.between("k", 1, MAX_SIZE)? as u32,
    }))
}

/// Two 32-bit words, and fourteen more that say the shape once again. The axis counts the dims that are not one.
pub(super) fn softmax(
    reader: &mut Reader<'_>,
    invocation: &Invocation,
) -> Result<Parameters, ArgumentError> {
    let dims = invocation
        .inputs
        .first()
        .map(|tensor| tensor.shape.dims.as_slice())
        .unwrap_or_default();
    let wide: Vec<usize> = (0..dims.len()).filter(|axis| dims[*axis] != 1).collect();
    let counted = reader.word("axis", 0, (wide.len() as i32 - 1).max(0))? as usize;
    // A tensor of one element has no such dim: any will do.
    let axis = wide.get(counted).copied().unwrap_or(0);
    let size = dims.get(axis).copied().unwrap_or(1);
    let pad = reader.word("pad", 0, i32::try_from(size).unwrap_or(i32::MAX) - 1)? as usize;
    Ok(Parameters::Softmax(Softmax { axis, pad }))
}

/// Two thresholds where they are not tensors, and how boxes are written and sorted.
pub(super) fn non_max_suppression(
    reader: &mut Reader<'_>,
    invocation: &Invocation,
) -> Result<Parameters, ArgumentError> {
    let boxes = reader.between("boxes of a class, at most", 0, i64::MAX)? as u64;
    // What follows them takes 20 bytes. Releases 2026.3 have them twice, as tensors and as scalars.
    let thresholds = if invocation.inputs.len() == 2 || reader.left() == 28 {
        Some([reader.f32("overlap")?, reader.f32("score")?])
    } else {
        None
    };
    Ok(Parameters::NonMaxSuppression(NonMaxSuppression {
        boxes,
        thresholds,
        sigma: reader.f32("soft sigma")?,
        centred: reader.choice("box encoding", &[false, true])?,
        sorted: reader.flag("sort")?,
    }))
}

pub(super) fn pad(reader: &mut Reader<'_>, rank: usize) -> Result<Parameters, ArgumentError> {
    use PadMode::{Constant, Edge, Reflect, Symmetric};
    reader.skip_optional_marker();
    let mut sizes = |field: &str| -> Result<Vec<u32>, ArgumentError> {
        (0..rank)
            .map(|_| Ok(reader.between(field, 0, MAX_SIZE)? as u32))
            .collect()
    };
    let (begin, end) = (sizes("pad before")?, sizes("pad after")?);
    Ok(Parameters::Pad(Pad {
        begin,
        end,
        value: reader.f32("value")?,
        mode: reader.choice("mode", &[Constant, Edge, Reflect, Symmetric])?,
    }))
}

/// A 64-bit count of batch dims, a 32-bit rank and room for five 32-bit dims, innermost first.
pub(super) fn gather_nd(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    let batch_dims = reader.between("batch dims", 0, 4)? as usize;
    let rank = reader.word("rank", 1, 5)?;
    let dims: Result<Vec<u32>, ArgumentError> = (0..rank)
        .map(|_| Ok(reader.word("dim", 1, i32::MAX)? as u32))
        .collect();
    Ok(Parameters::GatherNd(GatherNd {
        batch_dims,
        dims: dims?,
    }))
}

/// Numbers of 16 bits, or 32 where the output is binary32, filled up to whole words of 64 bits.
fn packed(
    reader: &mut Reader<'_>,
    field: &str,
    count: i64,
    wide: bool,
) -> Result<Vec<f32>, ArgumentError> {
    let values: Result<Vec<f32>, ArgumentError> = (0..count)
        .map(|_| {
            if wide {
                reader.f32(field)
            } else {
                reader.f16(field)
            }
        })
        .collect();
    let bytes = count as u64 * if wide { 4 } else { 2 };
    reader.skip(bytes.next_multiple_of(8) - bytes);
    values
}

/// Kernel, stride, dilation for some, pads, exclusion of pads for means; each for depth, height and width.
pub(super) fn pool(reader: &mut Reader<'_>, operation: Operation) -> Result<Pool, ArgumentError> {
    let dilated = matches!(
        operation,
        Operation::AveragePoolDilated | Operation::MaxPoolIndices
    );
    let mean = matches!(
        operation,
        Operation::AveragePool | Operation::AveragePoolDilated
    );
    Ok(Pool {
        kernel: reader.array("kernel", 1, MAX_WINDOW)?,
        stride: reader.array("stride", 1, MAX_WINDOW)?,
        dilation: if dilated {
            reader.array("dilation", 1, MAX_WINDOW)?
        } else {
            [1; 3]
        },
        pad_begin: reader.array("pad before", 0, MAX_WINDOW)?,
        pad_end: reader.array("pad after", 0, MAX_WINDOW)?,
        exclude_pads: if mean {
            reader.flag("exclude pads")?
        } else {
            true
        },
    })
}

pub(super) fn interpolate(reader: &mut Reader<'_>) -> Result<Parameters, ArgumentError> {
    let mode = {
        use InterpolateMode::{Cubic, Linear, LinearOnnx, Nearest};
        reader.choice("mode", &[Nearest, Linear, LinearOnnx, Cubic])?
    };
    let coordinate_mode = {
        use CoordinateMode::{
            AlignCorners, Asymmetric, HalfPixel, PytorchHalfPixel, TfHalfPixelForNearest,
        };
        reader.choice(
            "coordinate mode",
            &[
                HalfPixel,
                PytorchHalfPixel,
                Asymmetric,
                TfHalfPixelForNearest,
                AlignCorners,
            ],
        )?
    };
    let nearest_mode = {
        use NearestMode::{Ceil, Floor, RoundPreferCeil, RoundPreferFloor, Simple};
        reader.choice(
            "nearest mode",
            &[RoundPreferFloor, RoundPreferCeil, Floor, Ceil, Simple],
        )?
    };
    let antialias = reader.flag("antialias")?;
    // Four numbers of the compiler's tiling, zero in every program seen.
    reader.skip(16);
    let (input_dims, output_dims) = (
        reader.array("input dims", 1, MAX_SIZE)?,
        reader.array("output dims", 1, MAX_SIZE)?,
    );
    let axes = reader.array("axis", 0, 3)?;
    let cubic_coefficient = reader.f32("cubic coefficient")?;
    let (input_offset, output_offset) = (
        reader.array("input offset", 0, MAX_SIZE)?,
        reader.array("output offset", 0, MAX_SIZE)?,
    );
    // Releases with short references give no scales: the sizes decide.
    let scales = match reader.layout() {
        Layout::Short => None,
        Layout::Long => {
            let given = reader.choice("scale mode", &[false, true])?;
            let scales = [reader.f32("scale")?, reader.f32("scale")?];
            given.then_some(scales)
        }
    };
    Ok(Parameters::Interpolate(Interpolate {
        mode,
        coordinate_mode,
        nearest_mode,
        antialias,
        input_dims,
        output_dims,
        axes,
        cubic_coefficient,
        input_offset,
        output_offset,
        scales,
    }))
}

/// Begins, ends and steps of up to four dims, outermost first, zeros where there are fewer, and which of the three are these rather than
/// tensors.
pub(super) fn strided_slice(
    reader: &mut Reader<'_>,
    invocation: &Invocation,
) -> Result<Parameters, ArgumentError> {
    let mut figures = |field: &str, low: i64| -> Result<[i64; 4], ArgumentError> {
        let mut values = [0; 4];
        for value in &mut values {
            *value = reader.between(field, low, MAX_SIZE)?;
        }
        Ok(values)
    };
    let begin = figures("begin", -MAX_SIZE)?;
    let end = figures("end", -MAX_SIZE)?;
    let step = figures("step", 0)?;
    let mut given = || reader.choice("begins, ends or steps in the block", &[false, true]);
    let slice = StridedSlice {
        begin: given()?.then_some(begin),
        end: given()?.then_some(end),
        step: given()?.then_some(step),
    };
    let tensors = [slice.begin, slice.end, slice.step];
    let tensors = tensors.iter().filter(|given| given.is_none()).count();
    if invocation.inputs.len() != 1 + tensors {
        let found = invocation.inputs.len() - 1;
        return Err(reader.error(reader.place(), "tensors beside x", tensors, found));
    }
    Ok(Parameters::StridedSlice(slice))
}
