//! The numbers of a tile. See [`operation`](crate::operation) for what they are.

use super::tile::{MOST_ELEMENTS, Tile, assemble, needed, padding};
use crate::lower::pack::Row;
use crate::lower::region::fault;
use crate::operation::{Activation, Kind, Operation, Quantisation};
use chipless_kernels::cast::{Rounding, decode_f64, encode_f64};
use chipless_kernels::window::{self, convolve, depthwise};
use chipless_kernels::{Number, Update};
use chipless_model::{ElementType, Fault, Storage};

/// The result of a tile: N, H, W, C in its element type.
pub(crate) fn compute(
    tile: &Tile,
    operation: &Operation,
    storage: &Storage<'_>,
) -> Result<Vec<u8>, Fault> {
    if tile.bounds.elements() > MOST_ELEMENTS {
        return Err(Fault::program(format!(
            "a tile of {} elements is too large",
            tile.bounds.elements()
        )));
    }
    let results = match &operation.kind {
        Kind::Convolution {
            groups,
            weight,
            quantisation,
            activation,
        } => {
            let conv = Convolution {
                tile,
                operation,
                groups: *groups,
                weight: *weight,
                quantisation,
                activation: *activation,
            };
            match operation.operands[0].element {
                ElementType::Float16 | ElementType::Float32 => conv.run::<f32>(storage)?,
                ElementType::Int16 => conv.run::<i32>(storage)?,
                _ => conv.run::<i16>(storage)?,
            }
        }
        Kind::Vector(vector) => super::vector::stages(tile, operation, vector, storage)?,
        Kind::Product {
            groups: _,
            transposed,
            zeros,
            scale,
            output_zero,
        } => {
            let mut sums = super::vector::product(tile, operation, *transposed, *zeros, storage)?;
            for sum in &mut sums {
                *sum = *sum * scale + output_zero;
            }
            sums
        }
        Kind::Move(moved) => super::vector::moved(tile, operation, moved, storage)?,
    };
    encode(operation.output, &results)
}

/// Rounds and saturates results to their element type.
fn encode(element: ElementType, results: &[f64]) -> Result<Vec<u8>, Fault> {
    match element {
        ElementType::Int8 => Ok(results
            .iter()
            .map(|r| (r + 0.5).floor().clamp(-128.0, 127.0) as i8 as u8)
            .collect()),
        ElementType::Int16 => Ok(results
            .iter()
            .flat_map(|r| ((r + 0.5).floor().clamp(-32768.0, 32767.0) as i16).to_le_bytes())
            .collect()),
        _ => {
            let mut bytes = vec![0; results.len() * element.bits() as usize / 8];
            encode_f64(element, results, Rounding::NearestEven, &mut bytes)
                .map_err(|e| fault(&e))?;
            Ok(bytes)
        }
    }
}

/// A convolution of one tile.
struct Convolution<'t> {
    tile: &'t Tile,
    operation: &'t Operation,
    groups: u32,
    weight: ElementType,
    quantisation: &'t Quantisation,
    activation: Activation,
}

/// Operands of convolutions: stored numbers with their zero point added.
trait Value: Number {
    fn decode(element: ElementType, bytes: &[u8], zero: f64, values: &mut [Self]);
    fn sum(sum: Self::Sum) -> f64;
}

macro_rules! integer_value {
    ($type:ident) => {
        impl Value for $type {
            fn decode(element: ElementType, bytes: &[u8], zero: f64, values: &mut [$type]) {
                let zero = zero as $type;
                if element == ElementType::Int16 {
                    for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(2)) {
                        *value = $type::from(i16::from_le_bytes([bytes[0], bytes[1]]))
                            .saturating_add(zero);
                    }
                } else {
                    for (value, byte) in values.iter_mut().zip(bytes) {
                        *value = $type::from(*byte as i8).saturating_add(zero);
                    }
                }
            }
            fn sum(sum: Self::Sum) -> f64 {
                sum as f64
            }
        }
    };
}
integer_value!(i16);
integer_value!(i32);

impl Value for f32 {
    fn decode(element: ElementType, bytes: &[u8], zero: f64, values: &mut [f32]) {
        if element == ElementType::Float16 {
            for (value, bytes) in values.iter_mut().zip(bytes.chunks_exact(2)) {
                *value = half::f16::from_le_bytes([bytes[0], bytes[1]]).to_f32() + zero as f32;
            }
        } else if element == ElementType::Float32 {
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *value = f32::from_le_bytes(*bytes) + zero as f32;
            }
        } else {
            for (value, byte) in values.iter_mut().zip(bytes) {
                *value = f32::from(*byte as i8) + zero as f32;
            }
        }
    }
    fn sum(sum: f32) -> f64 {
        f64::from(sum)
    }
}

impl Convolution<'_> {
    fn run<T: Value>(&self, storage: &Storage<'_>) -> Result<Vec<f64>, Fault> {
        let Convolution {
            tile,
            operation,
            groups,
            ..
        } = *self;
        let operand = operation.operands[0];
        let inputs = u32::try_from(operand.shape[1])
            .map_err(|_| Fault::program("too many input channels"))?;
        if groups > inputs || inputs % groups != 0 || operation.channels % groups != 0 {
            return Err(Fault::program(format!(
                "{groups} groups do not divide {inputs} input and {} output channels",
                operation.channels
            )));
        }
        let (per_group, outputs_per_group) = (inputs / groups, operation.channels / groups);
        let (first, last) = (tile.bounds.lower[1], tile.bounds.upper[1]);
        if last >= operation.channels {
            return Err(Fault::program(format!(
                "the tile has output channel {last}, the layer has {}",
                operation.channels
            )));
        }
        let low_group = first / outputs_per_group;
        let bounds = needed(&tile.bounds, operation, 0)?;
        let [above, left] = padding(&tile.bounds, operation);
        let zero = self.quantisation.input_zero;
        let decode =
            |bytes: &[u8], values: &mut [T]| T::decode(operand.element, bytes, zero, values);
        let image = assemble(tile, 0, operand.element, &bounds, storage, decode)?;
        let (weights, parameters) = self.weights::<T>(per_group as usize, storage)?;

        let [images, c, h, w] = bounds.shape().map(|extent| extent as usize);
        let [_, k, out_h, out_w] = tile.bounds.shape().map(|extent| extent as usize);
        let [kernel_y, kernel_x] = operation.kernel.map(|v| v as usize);
        let geometry = |channels: usize| window::Window {
            size_x: w,
            size_y: h,
            channels,
            kernel_x,
            kernel_y,
            stride_x: operation.stride[1] as usize,
            stride_y: operation.stride[0] as usize,
            pad_left: left as usize,
            pad_up: above as usize,
            out_x: out_w,
            out_y: out_h,
        };
        let mut results = Vec::with_capacity(images * k * out_h * out_w);
        let mut sums = vec![T::Sum::default(); k * out_h * out_w];
        for image in image.chunks_exact((c * h * w).max(1)) {
            let dilation = operation.dilation;
            if groups == 1 {
                by_taps(
                    &geometry(c),
                    dilation,
                    image,
                    (&weights, c),
                    &mut sums,
                    convolve_all,
                )?;
            } else if per_group == 1 && outputs_per_group == 1 {
                by_taps(
                    &geometry(c),
                    dilation,
                    image,
                    (&weights, 1),
                    &mut sums,
                    depthwise,
                )?;
            } else {
                self.grouped(
                    image,
                    &weights,
                    &mut sums,
                    &geometry(per_group as usize),
                    [low_group, per_group, outputs_per_group],
                )?;
            }
            results.extend(
                sums.iter()
                    .zip(parameters.iter().cycle())
                    .map(|(sum, p)| self.finish(T::sum(*sum), *p)),
            );
        }
        Ok(results)
    }

    /// Group by group; the channels of a group are cut out of the image and its results put between those of the others.
    fn grouped<T: Value>(
        &self,
        image: &[T],
        weights: &[T],
        sums: &mut [T::Sum],
        geometry: &window::Window,
        [low_group, per_group, outputs_per_group]: [u32; 3],
    ) -> Result<(), Fault> {
        let (first, last) = (self.tile.bounds.lower[1], self.tile.bounds.upper[1]);
        let (per_group, k) = (per_group as usize, (last - first + 1) as usize);
        let channels = image.len() / (geometry.size_x * geometry.size_y).max(1);
        let depth = geometry.kernel_x * geometry.kernel_y * per_group;
        for group in low_group..=last / outputs_per_group {
            let (low, high) = (
                first.max(group * outputs_per_group),
                last.min((group + 1) * outputs_per_group - 1),
            );
            let (start, count) = ((low - first) as usize, (high - low + 1) as usize);
            let from = (group - low_group) as usize * per_group;
            let part: Vec<T> = image
                .chunks_exact(channels)
                .flat_map(|pixel| &pixel[from..from + per_group])
                .copied()
                .collect();
            let mut own = vec![T::Sum::default(); count * geometry.out_x * geometry.out_y];
            let weights = &weights[start * depth..(start + count) * depth];
            let dilation = self.operation.dilation;
            by_taps(
                geometry,
                dilation,
                &part,
                (weights, per_group),
                &mut own,
                convolve_all,
            )?;
            for (all, own) in sums.chunks_exact_mut(k).zip(own.chunks_exact(count)) {
                all[start..start + count].copy_from_slice(own);
            }
        }
        Ok(())
    }

    /// Weights of the tile's output channels, `[k][tap][c]`, and `k` and `b` of each.
    fn weights<T: Value>(
        &self,
        channels: usize,
        storage: &Storage<'_>,
    ) -> Result<(Vec<T>, Vec<[f64; 2]>), Fault> {
        let known = self.tile.parameters.as_deref();
        let row = Row::of(self.weight, channels, known.is_some());
        let lacking = |found: &str| Fault::program(format!("needs its weights, found {found}"));
        if let Some(found) = self.tile.lacking_weights(row, self.operation) {
            return Err(lacking(&found));
        }
        let region = self.tile.weights.as_ref().ok_or_else(|| lacking("none"))?;
        let bytes = region.gather(storage)?;
        let taps = self
            .operation
            .kernel
            .iter()
            .map(|v| *v as usize)
            .product::<usize>();
        let (size, padded) = (row.size, row.channels);
        let (run, used) = (region.run as usize, taps * padded * size);
        let count = self.tile.bounds.shape()[1] as usize;
        let mut weights = vec![T::default(); count * taps * channels];
        let mut parameters = Vec::with_capacity(count);
        for (bytes, weights) in bytes
            .chunks_exact(run)
            .zip(weights.chunks_exact_mut((taps * channels).max(1)))
        {
            for (bytes, weights) in bytes[..used]
                .chunks_exact(padded * size)
                .zip(weights.chunks_exact_mut(channels))
            {
                T::decode(self.weight, bytes, 0.0, weights);
            }
            if known.is_none() {
                let mut two = [0.0; 2];
                decode_f64(ElementType::Float64, &bytes[used..used + 16], &mut two)
                    .map_err(|e| fault(&e))?;
                parameters.push(two);
            }
        }
        if let Some(known) = known {
            let first = self.tile.bounds.lower[1] as usize;
            let own = known.get(first..first + count);
            parameters.extend_from_slice(
                own.ok_or_else(|| Fault::program("it has output channels that its layer has not"))?,
            );
        }
        Ok((weights, parameters))
    }

    fn finish(&self, sum: f64, [k, b]: [f64; 2]) -> f64 {
        let q = self.quantisation;
        let mut accumulated = sum + b;
        if matches!(self.activation, Activation::Relu(_)) {
            accumulated = accumulated.max(0.0);
        }
        let scale = |value: f64| match q.output_scale {
            Some(scale) => value * scale + q.output_zero,
            None => value,
        };
        let result = scale(accumulated * k * q.input_scale);
        match self.activation {
            Activation::Relu(Some(most)) => result.min(scale(most)),
            _ => result,
        }
    }
}

/// What a kernel says.
type Kernel = Result<(), chipless_kernels::Error>;

/// A convolution with so many output channels as the result has room for.
fn convolve_all<T: Number>(
    window: &window::Window,
    image: &[T],
    weights: &[T],
    sums: &mut [T::Sum],
    update: Update,
) -> Kernel {
    let outputs = sums.len() / (window.out_x * window.out_y).max(1);
    convolve(window, image, weights, outputs, sums, update)
}

/// A convolution whose elements of the kernel may lie apart: then tap by tap, each a kernel of one element over what is left of the image.
/// `per_tap` are an output channel's weights under one tap.
fn by_taps<T: Number>(
    window: &window::Window,
    dilation: [u32; 2],
    image: &[T],
    (weights, per_tap): (&[T], usize),
    sums: &mut [T::Sum],
    run: impl Fn(&window::Window, &[T], &[T], &mut [T::Sum], Update) -> Kernel,
) -> Result<(), Fault> {
    if dilation == [1, 1] {
        return run(window, image, weights, sums, Update::Set).map_err(|e| fault(&e));
    }
    let taps = window.kernel_y * window.kernel_x;
    for tap in 0..taps {
        let down = tap / window.kernel_x * dilation[0] as usize;
        let right = tap % window.kernel_x * dilation[1] as usize;
        let rows = down.saturating_sub(window.pad_up).min(window.size_y);
        let columns = right.saturating_sub(window.pad_left).min(window.size_x);
        let (row, left_out) = (window.size_x * window.channels, columns * window.channels);
        let left: Vec<T> = image
            .chunks_exact(row.max(1))
            .skip(rows)
            .flat_map(|row| &row[left_out..])
            .copied()
            .collect();
        let under: Vec<T> = weights
            .chunks_exact((taps * per_tap).max(1))
            .flat_map(|output| &output[tap * per_tap..][..per_tap])
            .copied()
            .collect();
        let shifted = window::Window {
            size_x: window.size_x - columns,
            size_y: window.size_y - rows,
            kernel_x: 1,
            kernel_y: 1,
            pad_left: window.pad_left.saturating_sub(right),
            pad_up: window.pad_up.saturating_sub(down),
            ..*window
        };
        let update = if tap == 0 {
            Update::Set
        } else {
            Update::Accumulate
        };
        run(&shifted, &left, &under, sums, update).map_err(|e| fault(&e))?;
    }
    Ok(())
}
