//! Boxes: selection of those that overlap little, and pooling of regions.

use super::tensor::{Call, Values};
use super::volume::Volume;
use chipless_model::Fault;

/// Greedy selection of boxes by score, each class by itself. Of boxes [batch, n, 4] and scores [batch, class, n] come rows
/// (batch, class, box) and (batch, class, score), filled up with −1, and their number.
#[derive(Clone, Debug, PartialEq)]
pub struct NonMaxSuppression {
    /// Boxes of a class, at most.
    pub boxes: u64,
    /// Overlap above which a box is dropped, and score that a box must exceed; tensors where missing.
    pub thresholds: Option<[f32; 2]>,
    /// Scores of overlapping boxes sink by this; 0 drops them.
    pub sigma: f32,
    /// A box is (x, y, width, height) of its middle, not two corners (y, x, y, x).
    pub centred: bool,
    /// Rows by falling score over all classes, not class by class.
    pub sorted: bool,
}

/// Left, top, right and bottom.
type Corners = [f32; 4];

impl NonMaxSuppression {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Vec<Values>, Fault> {
        if self.sigma != 0.0 {
            return Err(call.unsupported(format_args!("soft suppression (sigma {})", self.sigma)));
        }
        let (boxes, scores) = (call.floats(0)?, call.floats(1)?);
        let [overlap, least] = match self.thresholds {
            Some(thresholds) => thresholds,
            None => [threshold(call, 2)?, threshold(call, 3)?],
        };
        let dims = |index: usize| -> Result<[usize; 3], Fault> {
            let shape = &call.input(index)?.shape;
            match *shape.dims.as_slice() {
                [inner, middle, outer] => Ok([inner as usize, middle as usize, outer as usize]),
                _ => Err(call.fault(format_args!("expected three dims, found {shape}"))),
            }
        };
        let ([four, count, batches], [scored, classes, score_batches]) = (dims(0)?, dims(1)?);
        if four != 4 || scored != count || score_batches != batches {
            return Err(call.fault(format_args!(
                "boxes {} and scores {} do not fit",
                call.input(0)?.shape,
                call.input(1)?.shape
            )));
        }
        let mut selected: Vec<(usize, usize, usize, f32)> = Vec::new();
        for batch in 0..batches {
            let corners: Vec<Corners> = boxes[batch * 4 * count..][..4 * count]
                .chunks_exact(4)
                .map(|numbers| self.corners(numbers))
                .collect();
            for class in 0..classes {
                let scores = &scores[(batch * classes + class) * count..][..count];
                let kept = self.select(&corners, scores, overlap, least);
                selected.extend(kept.into_iter().map(|at| (batch, class, at, scores[at])));
            }
        }
        if self.sorted {
            selected.sort_by(|a, b| b.3.total_cmp(&a.3));
        }
        let rows = call.output(0)?.elements() as usize / 3;
        call.expect_elements("scores of the selection", call.output(1)?, 3 * rows)?;
        call.expect_elements("number of boxes", call.output(2)?, 1)?;
        if selected.len() > rows {
            return Err(call.fault(format_args!(
                "{} boxes are selected, the output has room for {rows}",
                selected.len()
            )));
        }
        let (mut indices, mut results) = (vec![-1; 3 * rows], vec![-1.0; 3 * rows]);
        for (row, (batch, class, at, score)) in selected.iter().enumerate() {
            indices[3 * row..][..3].copy_from_slice(&[*batch as i64, *class as i64, *at as i64]);
            results[3 * row..][..3].copy_from_slice(&[*batch as f32, *class as f32, *score]);
        }
        Ok(vec![
            Values::Integer(indices),
            Values::Float(results),
            Values::Integer(vec![selected.len() as i64]),
        ])
    }

    fn corners(&self, numbers: &[f32]) -> Corners {
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| numbers[at]);
        if self.centred {
            [a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0]
        } else {
            [b.min(d), a.min(c), b.max(d), a.max(c)]
        }
    }

    fn select(&self, corners: &[Corners], scores: &[f32], overlap: f32, least: f32) -> Vec<usize> {
        let mut candidates: Vec<usize> =
            (0..scores.len()).filter(|at| scores[*at] > least).collect();
        candidates.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let mut kept: Vec<usize> = Vec::new();
        for candidate in candidates {
            if kept.len() as u64 >= self.boxes {
                break;
            }
            let free = |other: &usize| {
                intersection_over_union(&corners[*other], &corners[candidate]) <= overlap
            };
            if kept.iter().all(free) {
                kept.push(candidate);
            }
        }
        kept
    }
}

fn intersection_over_union(a: &Corners, b: &Corners) -> f32 {
    let area = |c: &Corners| (c[2] - c[0]) * (c[3] - c[1]);
    let width = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let height = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let union = area(a) + area(b) - width * height;
    if area(a) <= 0.0 || area(b) <= 0.0 {
        0.0
    } else {
        width * height / union
    }
}

/// The maximum of each part of regions (batch, x, y, x, y) of a feature map, ends included.
#[derive(Clone, Debug, PartialEq)]
pub struct RoiPooling {
    /// Height of the output.
    pub height: u32,
    /// Width of the output.
    pub width: u32,
    /// From the coordinates of regions to those of the feature map.
    pub scale: f32,
    /// One interpolated element of each part, not its maximum.
    pub bilinear: bool,
}

impl RoiPooling {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        if self.bilinear {
            return Err(call.unsupported("bilinear pooling"));
        }
        let (map, output) = (&call.input(0)?.shape, call.output(0)?);
        let (x, y) = (Volume::new(call, map)?, Volume::new(call, output)?);
        let (values, regions) = (call.floats(0)?, call.floats(1)?);
        let [count, channels, _, height, width] = y.sizes;
        if channels != x.sizes[1]
            || (height, width) != (self.height as usize, self.width as usize)
            || x.sizes[2] != 1
        {
            return Err(call.fault(format_args!("{map} does not give {output}")));
        }
        call.expect_elements("regions", &call.input(1)?.shape, 5 * count)?;
        let mut results = vec![0.0; output.elements() as usize];
        for (number, region) in regions.chunks_exact(5).enumerate() {
            let batch = batch_of(call, region[0], number, x.sizes[0])?;
            let across = self.parts(region[1], region[3], width, x.sizes[4]);
            let down = self.parts(region[2], region[4], height, x.sizes[3]);
            for channel in 0..channels {
                for (row, down) in down.iter().enumerate() {
                    for (column, across) in across.iter().enumerate() {
                        let element = |v: usize, h: usize| values[x.at([batch, channel, 0, v, h])];
                        let largest = down
                            .clone()
                            .flat_map(|v| across.clone().map(move |h| (v, h)))
                            .map(|(v, h)| element(v, h))
                            .reduce(f32::max);
                        results[y.at([number, channel, 0, row, column])] = largest.unwrap_or(0.0);
                    }
                }
            }
        }
        Ok(Values::Float(results))
    }

    /// The places of every part along a dim, as Caffe cuts them.
    fn parts(
        &self,
        start: f32,
        end: f32,
        parts: usize,
        size: usize,
    ) -> Vec<std::ops::Range<usize>> {
        let (start, end) = ((start * self.scale).round(), (end * self.scale).round());
        let length = (end - start + 1.0).max(1.0) / parts as f32;
        let bound = |place: f32| (place + start).clamp(0.0, size as f32) as usize;
        (0..parts)
            .map(|part| {
                bound((part as f32 * length).floor())..bound(((part + 1) as f32 * length).ceil())
            })
            .collect()
    }
}

/// Means of the parts of regions (batch, x, y, x, y), each part from channels of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionSensitiveRoiPooling {
    /// Channels of the output.
    pub channels: u32,
    /// From the coordinates of regions to those of the feature map.
    pub scale: f32,
    /// Parts of a region in each dim.
    pub parts: u32,
}

impl PositionSensitiveRoiPooling {
    pub(super) fn evaluate(&self, call: Call<'_>) -> Result<Values, Fault> {
        let (map, output) = (&call.input(0)?.shape, call.output(0)?);
        let (x, y) = (Volume::new(call, map)?, Volume::new(call, output)?);
        let (values, regions) = (call.floats(0)?, call.floats(1)?);
        let (channels, parts) = (self.channels as usize, self.parts as usize);
        let count = y.sizes[0];
        if channels.checked_mul(parts * parts) != Some(x.sizes[1])
            || y.sizes[1..] != [channels, 1, parts, parts]
        {
            return Err(call.fault(format_args!(
                "{map} does not give {output} with {parts} parts"
            )));
        }
        call.expect_elements("regions", &call.input(1)?.shape, 5 * count)?;
        let mut results = vec![0.0; output.elements() as usize];
        for (number, region) in regions.chunks_exact(5).enumerate() {
            let batch = batch_of(call, region[0], number, x.sizes[0])?;
            let across = self.bins(region[1], region[3], x.sizes[4]);
            let down = self.bins(region[2], region[4], x.sizes[3]);
            for channel in 0..channels {
                for (row, down) in down.iter().enumerate() {
                    for (column, across) in across.iter().enumerate() {
                        let from = (channel * parts + row) * parts + column;
                        let places = down
                            .clone()
                            .flat_map(|v| across.clone().map(move |h| (v, h)));
                        let sum: f32 = places
                            .map(|(v, h)| values[x.at([batch, from, 0, v, h])])
                            .sum();
                        let area = (down.len() * across.len()).max(1) as f32;
                        results[y.at([number, channel, 0, row, column])] = sum / area;
                    }
                }
            }
        }
        Ok(Values::Float(results))
    }

    /// The places of every part along a dim.
    fn bins(&self, start: f32, end: f32, size: usize) -> Vec<std::ops::Range<usize>> {
        let start = start.round() * self.scale;
        let length = ((end.round() + 1.0) * self.scale - start).max(0.1) / self.parts as f32;
        let bound = |place: f32| place.clamp(0.0, size as f32) as usize;
        (0..self.parts)
            .map(|part| {
                let (from, to) = (part as f32 * length, (part + 1) as f32 * length);
                bound((from + start).floor())..bound((to + start).ceil())
            })
            .collect()
    }
}

/// The batch of a region.
fn batch_of(call: Call<'_>, batch: f32, number: usize, batches: usize) -> Result<usize, Fault> {
    if batch >= 0.0 && (batch as usize) < batches {
        return Ok(batch as usize);
    }
    Err(call.fault(format_args!(
        "batch {batch} of region {number} is not below {batches}"
    )))
}

fn threshold(call: Call<'_>, index: usize) -> Result<f32, Fault> {
    call.expect_elements("threshold", &call.input(index)?.shape, 1)?;
    Ok(call.floats(index)?[0])
}
