//! Sampling of feature maps at places that are data.

use super::interpolate::cubic_weights;
use super::tensor::{Call, Values};
use super::volume::Volume;
use chipless_model::Fault;

/// How a sample is made of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMode {
    /// The weighted four around.
    Bilinear,
    /// The weighted sixteen around.
    Bicubic,
    /// The nearest, halves to even.
    Nearest,
}

/// What lies outside of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Zeros.
    Zeros,
    /// The nearest element of the border.
    Border,
    /// The image, reflected.
    Reflection,
}

/// Samples at the places of a grid: −1 is the left or upper end of the image, 1 the right or lower end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridSample {
    /// The ends are the middles of the first and last element, not their outer edges.
    pub align_corners: bool,
    /// How a sample is made.
    pub mode: SampleMode,
    /// What lies outside.
    pub padding: Padding,
}

impl GridSample {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (image, grid, output) = (
            &call.input(0)?.shape,
            &call.input(1)?.shape,
            call.output(0)?,
        );
        let (x, y) = (Volume::new(call, image)?, Volume::new(call, output)?);
        let [batches, channels, _, height, width] = y.sizes;
        if x.sizes[..3] != y.sizes[..3] || grid.dims.first() != Some(&2) {
            return Err(call.fault(format_args!("{image} at {grid} does not give {output}")));
        }
        call.expect_elements("grid", grid, 2 * batches * height * width)?;
        let (values, places) = (call.floats(0)?, call.floats(1)?);
        let mut results = vec![0.0; output.elements() as usize];
        for (number, place) in places.chunks_exact(2).enumerate() {
            let (batch, row, column) = (
                number / (height * width),
                number / width % height,
                number % width,
            );
            let (across, down) = (
                self.taps(place[0], x.sizes[4]),
                self.taps(place[1], x.sizes[3]),
            );
            for channel in 0..channels {
                let mut sum = 0.0;
                for (v, row_weight) in down.iter().flatten() {
                    for (h, column_weight) in across.iter().flatten() {
                        sum +=
                            row_weight * column_weight * values[x.at([batch, channel, 0, *v, *h])];
                    }
                }
                results[y.at([batch, channel, 0, row, column])] = sum;
            }
        }
        Ok(Values::Float(results))
    }

    /// The elements along a dim that a grid coordinate takes, and their weights; `None` for those outside that count as zero.
    fn taps(&self, coordinate: f32, size: usize) -> [Option<(usize, f32)>; 4] {
        let length = size as f32;
        let (mut place, low, high) = if self.align_corners {
            ((coordinate + 1.0) * (length - 1.0) / 2.0, 0.0, length - 1.0)
        } else {
            (
                ((coordinate + 1.0) * length - 1.0) / 2.0,
                -0.5,
                length - 0.5,
            )
        };
        if self.mode == SampleMode::Nearest {
            place = place.round_ties_even();
        }
        // Of the sixteen elements of a bicubic sample each is padded by itself.
        if self.mode != SampleMode::Bicubic && (place < low || place > high) {
            match self.padding {
                Padding::Zeros => {}
                Padding::Border => place = place.clamp(0.0, length - 1.0),
                Padding::Reflection => place = reflect(place, low, high),
            }
        }
        let element = |place: f32, weight: f32| {
            let place = match self.padding {
                Padding::Zeros => Some(place).filter(|place| *place >= 0.0 && *place < length)?,
                Padding::Border => place,
                Padding::Reflection => reflect(place, low, high),
            };
            // A NaN becomes place 0.
            Some((place.clamp(0.0, length - 1.0) as usize, weight))
        };
        let left = place.floor();
        let fraction = place - left;
        match self.mode {
            SampleMode::Nearest => [element(place.round_ties_even(), 1.0), None, None, None],
            SampleMode::Bilinear => [
                element(left, 1.0 - fraction),
                element(left + 1.0, fraction),
                None,
                None,
            ],
            SampleMode::Bicubic => {
                let [a, b, c, d] =
                    cubic_weights(f64::from(fraction), -0.75).map(|weight| weight as f32);
                [
                    element(left - 1.0, a),
                    element(left, b),
                    element(left + 1.0, c),
                    element(left + 2.0, d),
                ]
            }
        }
    }
}

/// Folds a place into a range by reflection at its ends.
fn reflect(place: f32, low: f32, high: f32) -> f32 {
    let range = high - low;
    if (low..=high).contains(&place) || !place.is_finite() {
        return place;
    }
    if range <= 0.0 {
        return low;
    }
    let distance = if place < low {
        low - place
    } else {
        place - high
    };
    let (turns, rest) = ((distance / range).floor(), distance % range);
    let back = turns % 2.0 == 0.0;
    if (place < low) == back {
        low + rest
    } else {
        high - rest
    }
}

/// Samples of a region along one dim, at most: regions are data, and one of any size must not take all memory.
const MAX_SAMPLES: f32 = 65536.0;

/// Two elements along a dim and their weights; `None` for a sample outside of the map, which is zero.
type Sample = Option<[(usize, f32); 2]>;

/// How the coordinates of regions count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionAlignment {
    /// Elements lie on whole numbers; a region is one element wide at least.
    Asymmetric,
    /// Elements lie on halves after scaling: ONNX calls it `half_pixel`.
    HalfPixelForNearest,
    /// Elements lie on halves before and after scaling.
    HalfPixel,
}

/// Pools regions of a feature map to a fixed size.
#[derive(Clone, Debug, PartialEq)]
pub struct RoiAlign {
    /// Height of the output.
    pub height: u32,
    /// Width of the output.
    pub width: u32,
    /// Samples of a bin in each dim; 0 lets the size of the region decide.
    pub sampling_ratio: u32,
    /// From the coordinates of regions to those of the feature map.
    pub spatial_scale: f32,
    /// The largest sample of a bin, not their mean.
    pub maximum: bool,
    /// How coordinates count.
    pub alignment: RegionAlignment,
}

impl RoiAlign {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (map, output) = (&call.input(0)?.shape, call.output(0)?);
        let (x, y) = (Volume::new(call, map)?, Volume::new(call, output)?);
        let (values, regions, batches) = (call.floats(0)?, call.floats(1)?, call.integers(2)?);
        let [count, channels, _, height, width] = y.sizes;
        if channels != x.sizes[1]
            || y.sizes[2] != 1
            || x.sizes[2] != 1
            || (height, width) != (self.height as usize, self.width as usize)
        {
            return Err(call.fault(format_args!(
                "{map} does not give {output} with bins {}x{}",
                self.height, self.width
            )));
        }
        call.expect_elements("regions", &call.input(1)?.shape, 4 * count)?;
        call.expect_elements("batch indices", &call.input(2)?.shape, count)?;
        let mut results = vec![0.0; output.elements() as usize];
        for (number, (region, batch)) in regions.chunks_exact(4).zip(batches).enumerate() {
            let in_range = usize::try_from(*batch)
                .ok()
                .filter(|batch| *batch < x.sizes[0]);
            let batch = in_range.ok_or_else(|| {
                call.fault(format_args!(
                    "batch index {batch} of region {number} is not below {}",
                    x.sizes[0]
                ))
            })?;
            let across = self.samples(call, region[0], region[2], width, x.sizes[4])?;
            let down = self.samples(call, region[1], region[3], height, x.sizes[3])?;
            for channel in 0..channels {
                for (row, down) in down.iter().enumerate() {
                    for (column, across) in across.iter().enumerate() {
                        let samples = down.iter().flat_map(|v| across.iter().map(move |h| (v, h)));
                        let samples = samples.map(|(v, h)| {
                            let (Some(v), Some(h)) = (v, h) else {
                                return 0.0;
                            };
                            v.iter()
                                .flat_map(|v| h.iter().map(move |h| (v, h)))
                                .map(|((v, row_weight), (h, column_weight))| {
                                    row_weight
                                        * column_weight
                                        * values[x.at([batch, channel, 0, *v, *h])]
                                })
                                .sum::<f32>()
                        });
                        let taken = down.len() * across.len();
                        results[y.at([number, channel, 0, row, column])] =
                            match (taken, self.maximum) {
                                (0, _) => 0.0,
                                // OpenVINO's maximum begins at 0.
                                (_, true) => samples.fold(0.0, f32::max),
                                (_, false) => samples.sum::<f32>() / taken as f32,
                            };
                    }
                }
            }
        }
        Ok(Values::Float(results))
    }

    /// The samples of every bin along a dim.
    fn samples(
        &self,
        call: Call<'_>,
        start: f32,
        end: f32,
        bins: usize,
        size: usize,
    ) -> Result<Vec<Vec<Sample>>, Fault> {
        let (before, after) = match self.alignment {
            RegionAlignment::Asymmetric => (0.0, 0.0),
            RegionAlignment::HalfPixelForNearest => (0.0, -0.5),
            RegionAlignment::HalfPixel => (0.5, -0.5),
        };
        let start = (start + before) * self.spatial_scale + after;
        let mut length = (end + before) * self.spatial_scale + after - start;
        if self.alignment == RegionAlignment::Asymmetric {
            length = length.max(1.0);
        }
        let bin = length / bins as f32;
        let count = if self.sampling_ratio == 0 {
            bin.ceil().max(0.0)
        } else {
            self.sampling_ratio as f32
        };
        if count * bins as f32 > MAX_SAMPLES {
            let limit = format_args!("more than {MAX_SAMPLES} in all");
            return Err(call.fault(format_args!(
                "a region of length {length} takes {count} samples in each of {bins} bins, {limit}"
            )));
        }
        let sample = |place: f32| {
            if !(-1.0..=size as f32).contains(&place) {
                return None;
            }
            let place = place.clamp(0.0, (size - 1) as f32);
            let left = place.floor();
            let right = (left as usize + 1).min(size - 1);
            Some([(left as usize, 1.0 - (place - left)), (right, place - left)])
        };
        Ok((0..bins)
            .map(|number| {
                (0..count as usize)
                    .map(|step| {
                        sample(start + number as f32 * bin + bin / count * (step as f32 + 0.5))
                    })
                    .collect()
            })
            .collect())
    }
}
