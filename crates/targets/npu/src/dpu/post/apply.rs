//! Sums through the stages.

use super::{Elements, FloatPost, FloatTarget, IntegerPost, IntegerTarget, Post, Scale, Slope};
use crate::dpu::lookup::Table;
use crate::dpu::weights::Entry;
use chipless_kernels::cast::{Rounding, encode_f32};
use chipless_kernels::room::{self, Room};
use chipless_kernels::wide;
use chipless_model::{ElementType, Fault};
use half::f16;

/// Sums that go through the stages together: they stay in the first-level cache.
const BLOCK: usize = 2048;

/// Biases and scales of fewer channels are repeated.
const VECTOR: usize = 128;

impl Post {
    /// Float sums `[y][x][z]`, `table.len()` or else `channels` to a pixel, as elements.
    pub(in crate::dpu) fn floats(
        &self,
        sums: Room<f32>,
        channels: usize,
        table: &[Entry],
        lookup: Option<&Table>,
    ) -> Result<Elements, Fault> {
        match self {
            Post::Bypass { format } if format.bits() == 16 => {
                Ok(Elements::Two(encode(*format, &sums)?))
            }
            Post::Bypass { format } => Ok(Elements::One(encode(*format, &sums)?)),
            Post::Float(post) => post.elements(sums, channels, table, lookup),
            Post::Integer(_) | Post::Unknown { .. } => {
                Err(Fault::unsupported("float sums in the integer PPE"))
            }
        }
    }

    /// Integer sums `[y][x][z]` as elements.
    pub(in crate::dpu) fn integers(
        &self,
        sums: &[i32],
        channels: usize,
        table: &[Entry],
        lookup: Option<&Table>,
    ) -> Result<Elements, Fault> {
        if let Post::Float(_) = self {
            // Sums of 8-bit products are below 2^24 but for very long ones, which the float stages round.
            return self.floats(
                sums.iter().map(|sum| *sum as f32).collect(),
                channels,
                table,
                lookup,
            );
        }
        let Post::Integer(post) = self else {
            return Err(Fault::unsupported("integer sums in the float PPE"));
        };
        let scales = match post.scale {
            Some(scale) => vec![scale; channels],
            None => table
                .iter()
                .enumerate()
                .map(|(channel, entry)| {
                    let scale = Scale::from_word(entry.scale).ok_or_else(|| {
                        Fault::program(format!("weight table, channel {channel}: scale {:#010x} has a reserved rounding mode", entry.scale))
                    })?;
                    Ok((entry.bias as i32, scale))
                })
                .collect::<Result<Vec<_>, Fault>>()?,
        };
        let values = sums
            .chunks_exact(channels)
            .flat_map(|pixel| pixel.iter().zip(&scales));
        Ok(match post.target {
            IntegerTarget::Float16 => Elements::Two(
                values
                    .map(|(sum, (bias, scale))| post.half(*sum, *bias, *scale))
                    .collect(),
            ),
            IntegerTarget::Bytes(bytes) => {
                let values = values.map(|(sum, (bias, scale))| {
                    post.integer(i64::from(*sum) + i64::from(*bias), *scale)
                });
                match bytes {
                    1 => Elements::One(values.map(|v| [v as u8]).collect()),
                    2 => Elements::Two(values.map(|v| (v as i16).to_le_bytes()).collect()),
                    _ => Elements::Four(values.map(i32::to_le_bytes).collect()),
                }
            }
        })
    }
}

/// Bias and scale of some pixels' channels, one after the other; or one of each for all.
enum Scales {
    All(f32, f32),
    Each(Vec<f32>, Vec<f32>),
}

impl Scales {
    /// Replaces each sum by what `finish` makes of it, its bias and its scale. The sums begin with the first channel of a pixel.
    fn apply(&self, sums: &mut [f32], finish: impl Fn(f32, f32, f32) -> f32) {
        match self {
            Scales::All(bias, scale) => {
                let (bias, scale) = (*bias, *scale);
                wide(move || {
                    for sum in sums {
                        *sum = finish(*sum, bias, scale);
                    }
                });
            }
            Scales::Each(biases, scales) => wide(move || {
                for pixels in sums.chunks_mut(biases.len().max(1)) {
                    for ((sum, bias), scale) in pixels.iter_mut().zip(biases).zip(scales) {
                        *sum = finish(*sum, *bias, *scale);
                    }
                }
            }),
        }
    }
}

impl FloatPost {
    /// Sums `[y][x][z]` as elements, some pixels at a time, so that they stay in the cache from step to step.
    fn elements(
        &self,
        mut sums: Room<f32>,
        channels: usize,
        table: &[Entry],
        lookup: Option<&Table>,
    ) -> Result<Elements, Fault> {
        // So few channels are no loop for a vector.
        let together = (VECTOR / channels.max(1)).max(1);
        let scales = if let Some((bias, scale)) = self.scale {
            Scales::All(bias, scale)
        } else {
            let (biases, scales): (Vec<f32>, Vec<f32>) = table
                .iter()
                .map(|e| (f32::from_bits(e.bias), f32::from_bits(e.scale)))
                .unzip();
            Scales::Each(biases.repeat(together), scales.repeat(together))
        };
        let pixels = together * channels.max(1);
        let block = pixels * (BLOCK / pixels).max(1);
        let prepare = |sums: &mut [f32]| {
            match lookup {
                None => self.scale_and_slope(sums, &scales),
                // A table leaves no slope, and its results are scaled once more: of what is quantised, by the steps in one.
                Some(lookup) => {
                    scales.apply(sums, |sum, bias, scale| (sum + bias) * scale);
                    lookup.apply(sums);
                    if let Some(Slope::ForScale(factor) | Slope::OfScaled(factor)) = self.slope {
                        for value in &mut *sums {
                            *value *= factor;
                        }
                    }
                }
            }
            self.limit(sums);
        };
        if !matches!(self.target, FloatTarget::Float16 { .. }) {
            sums.chunks_mut(block).for_each(prepare);
        }
        match &self.target {
            FloatTarget::Float16 { saturate, flush } => {
                let mut halves = Room::<[u8; 2]>::take(sums.len());
                for (sums, halves) in sums.chunks_mut(block).zip(halves.chunks_mut(block)) {
                    prepare(sums);
                    self.halves(sums, *saturate, *flush, halves)?;
                }
                Ok(Elements::Two(halves))
            }
            FloatTarget::Float32 => {
                let clamp = |v: &f32| (v.to_bits() as i32).min(self.high_clamp).to_le_bytes();
                Ok(Elements::Four(sums.iter().map(clamp).collect()))
            }
            FloatTarget::BFloat16 { nearest } => {
                if !nearest {
                    // The upper half as it is; a NaN stays one.
                    sums.iter_mut()
                        .filter(|v| !v.is_nan())
                        .for_each(|v| *v = f32::from_bits(v.to_bits() & 0xffff_0000));
                }
                let mut halves = encode(ElementType::BFloat16, &sums)?;
                self.clamp_patterns(&mut halves, |pattern| pattern);
                Ok(Elements::Two(halves))
            }
            FloatTarget::Float8(format) => Ok(Elements::One(encode(*format, &sums)?)),
            FloatTarget::Integer(post) => {
                let Some((bias, scale)) = post.scale else {
                    return Err(Fault::unsupported("integer scales of the weight table"));
                };
                let sums = sums.iter().map(|v| {
                    post.integer(
                        i64::from(v.round_ties_even() as i32) + i64::from(bias),
                        scale,
                    )
                });
                Ok(match post.target {
                    IntegerTarget::Bytes(1) => Elements::One(sums.map(|v| [v as u8]).collect()),
                    IntegerTarget::Bytes(2) => {
                        Elements::Two(sums.map(|v| (v as i16).to_le_bytes()).collect())
                    }
                    _ => Elements::Four(sums.map(i32::to_le_bytes).collect()),
                })
            }
        }
    }

    fn scale_and_slope(&self, sums: &mut [f32], scales: &Scales) {
        match self.slope {
            None => scales.apply(sums, |sum, bias, scale| (sum + bias) * scale),
            // Both products, so that there is nothing to branch on.
            Some(Slope::ForScale(slope)) => scales.apply(sums, move |sum, bias, scale| {
                let value = sum + bias;
                let (sloped, scaled) = (value * slope, value * scale);
                if value < 0.0 { sloped } else { scaled }
            }),
            Some(Slope::OfScaled(slope)) => scales.apply(sums, move |sum, bias, scale| {
                let value = (sum + bias) * scale;
                let sloped = value * slope;
                if value < 0.0 { sloped } else { value }
            }),
        }
    }

    fn limit(&self, values: &mut [f32]) {
        let Some((low, high)) = self.limits else {
            return;
        };
        // Not `clamp`, which panics where the limits cross; a NaN stays one, an infinity what it is where there is no limit.
        let (has_low, has_high) = (low > f32::MIN, high < f32::MAX);
        if !has_low && !has_high {
            return;
        }
        let (below, above) = (
            if has_low { low } else { f32::NEG_INFINITY },
            if has_high { high } else { f32::INFINITY },
        );
        wide(move || {
            for value in values {
                let bounded = if *value > above { above } else { *value };
                *value = if *value < below { below } else { bounded };
            }
        });
    }

    fn halves(
        &self,
        values: &mut [f32],
        saturate: bool,
        flush: bool,
        halves: &mut [[u8; 2]],
    ) -> Result<(), Fault> {
        if saturate {
            let limit = f16::MAX.to_f32();
            let values = &mut *values;
            wide(move || {
                for value in values {
                    *value = value.clamp(-limit, limit);
                }
            });
        }
        let bytes = halves.as_flattened_mut();
        encode_f32(ElementType::Float16, values, Rounding::NearestEven, bytes)
            .map_err(|e| Fault::program(format!("results: {e}")))?;
        if flush {
            self.clamp_patterns(halves, |pattern| match pattern & 0x7c00 {
                0 => pattern & -0x8000,
                _ => pattern,
            });
        } else {
            self.clamp_patterns(halves, |pattern| pattern);
        }
        Ok(())
    }

    fn clamp_patterns(&self, halves: &mut [[u8; 2]], flush: impl Fn(i16) -> i16) {
        let high = self.high_clamp;
        wide(move || {
            for half in halves {
                let pattern = i32::from(flush(i16::from_le_bytes(*half))).min(high);
                *half = (pattern as i16).to_le_bytes();
            }
        });
    }
}

impl IntegerPost {
    fn integer(&self, biased: i64, scale: Scale) -> i32 {
        // 34 bits of sum and bias, 16 of multiplier, 11 of slope: 61 bits.
        let mut value = scale
            .round
            .shift(biased * i64::from(scale.multiplier), scale.shift);
        if value < 0 {
            value = scale.round.shift(value * self.slope.0, self.slope.1);
        }
        // Not `clamp`, which panics where the limits cross.
        (value + self.zero_point)
            .max(i64::from(self.low))
            .min(i64::from(self.high)) as i32
    }

    fn half(&self, sum: i32, bias: i32, scale: Scale) -> [u8; 2] {
        let scaled = (i64::from(sum) + i64::from(bias)) * i64::from(scale.multiplier);
        let mut value = scaled as f64 * power(scale.shift);
        if value < 0.0 {
            value *= self.slope.0 as f64 * power(self.slope.1);
        }
        let pattern = i32::from(f16::from_f64(value + self.zero_point as f64).to_bits() as i16)
            .min(self.high);
        (pattern as i16).to_le_bytes()
    }
}

/// `2^-shift`, exactly.
fn power(shift: u32) -> f64 {
    f64::from_bits((1023 - u64::from(shift)) << 52)
}

fn encode<const SIZE: usize>(format: ElementType, values: &[f32]) -> Result<Room<[u8; SIZE]>, Fault>
where
    [u8; SIZE]: room::Element,
{
    let mut elements = Room::take(values.len());
    encode_f32(
        format,
        values,
        Rounding::NearestEven,
        elements.as_flattened_mut(),
    )
    .map_err(|e| Fault::program(format!("results: {e}")))?;
    Ok(elements)
}
