//! Elements of a tensor at places that follow from strides: what transposes, slices, repeats and pads at once.

use serde_json::Value;

/// An axis of the result as it is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Elements.
    pub extent: u64,
    /// Elements of the input from one to the next.
    pub stride: i64,
    /// First element that is there and the one behind the last; others are filled.
    pub valid: [u64; 2],
}

/// A view of a tensor of channels, rows and columns as another one, with a number for what lies outside.
///
/// The axes of the view, outermost first, follow each other as channels, rows and columns of the result: those that multiply to its
/// channels first, then its rows, then its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Strided {
    /// Axes, outermost first.
    axes: Vec<Axis>,
    /// How many axes make channels, and how many channels and rows.
    cuts: [usize; 2],
    /// The place of the first element, with every index at the first that is valid.
    offset: i64,
    /// What is put where nothing is read.
    pub(crate) fill: f64,
    /// Channels, rows and columns of the input.
    input: [i64; 3],
}

/// Axes of a view, at most.
const MOST_AXES: usize = 32;

impl Strided {
    /// A view of an input of these channels, rows and columns as an output of those.
    ///
    /// # Errors
    /// Axes that are not the output's, or that reach outside of the input.
    pub fn new(
        axes: &[Axis],
        offset: i64,
        fill: f64,
        input: [u64; 3],
        output: [u64; 3],
    ) -> Result<Strided, String> {
        if axes.len() > MOST_AXES {
            return Err(format!("{} axes, more than {MOST_AXES}", axes.len()));
        }
        let known = |extents: [u64; 3]| {
            let all = extents.iter().try_fold(1_u64, |n, e| n.checked_mul(*e));
            all.is_some_and(|all| all > 0 && all < 1 << 40)
        };
        if !known(input) || !known(output) {
            return Err(format!("a view of {input:?} as {output:?}"));
        }
        let input = input.map(|extent| extent as i64);
        let mut cuts = [0; 2];
        let (mut at, mut all) = (0, Vec::new());
        for (d, extent) in output.into_iter().enumerate() {
            let mut product = 1;
            while product < extent && at < axes.len() || d == 2 && at < axes.len() {
                let axis = axes[at];
                product *= axis.extent.max(1);
                if axis.valid[0] > axis.valid[1] || axis.valid[1] > axis.extent || product > extent
                {
                    return Err(format!("axes {axes:?} do not make {output:?}"));
                }
                split(axis, input, &mut all);
                at += 1;
            }
            if product != extent {
                return Err(format!("axes {axes:?} do not make {output:?}"));
            }
            if d < 2 {
                cuts[d] = all.len();
            }
        }
        let strided = Strided {
            axes: all,
            cuts,
            offset,
            fill,
            input,
        };
        let [low, high] = strided.flat(&strided.whole());
        let count = input.iter().product::<i64>();
        if strided.reads() && (low < 0 || high >= count) {
            return Err(format!("it reads the elements {low} to {high} of {count}"));
        }
        Ok(strided)
    }

    /// Reads one as a layer says it: `extents`, `strides`, `valid`, `offset` and `fill`.
    pub(crate) fn read(
        of: &serde_json::Map<String, Value>,
        input: [u64; 3],
        output: [u64; 3],
    ) -> Result<Strided, String> {
        let list = |key: &str| -> Result<Vec<i64>, String> {
            let values = of.get(key).and_then(Value::as_array);
            values
                .and_then(|values| values.iter().map(Value::as_i64).collect())
                .ok_or_else(|| format!("expected whole numbers as `{key}`"))
        };
        let (extents, strides) = (list("extents")?, list("strides")?);
        if extents.len() != strides.len() {
            return Err("`extents` and `strides` are not of one length".to_owned());
        }
        let valid = match of.get("valid") {
            None | Some(Value::Null) => None,
            Some(valid) => Some(
                serde_json::from_value::<Vec<[u64; 2]>>(valid.clone())
                    .ok()
                    .filter(|valid| valid.len() == extents.len())
                    .ok_or("`valid` is not a range for each axis")?,
            ),
        };
        let mut axes = Vec::new();
        for (at, (extent, stride)) in extents.iter().zip(&strides).enumerate() {
            let extent = u64::try_from(*extent).map_err(|_| "an extent is negative")?;
            axes.push(Axis {
                extent,
                stride: *stride,
                valid: valid.as_ref().map_or([0, extent], |valid| valid[at]),
            });
        }
        let offset = of.get("offset").and_then(Value::as_i64).unwrap_or(0);
        let fill = of.get("fill").and_then(Value::as_f64).unwrap_or(0.0);
        Strided::new(&axes, offset, fill, input, output)
    }

    /// Whether any element is read.
    fn reads(&self) -> bool {
        self.axes.iter().all(|axis| axis.valid[0] < axis.valid[1])
    }

    fn group(&self, d: usize) -> &[Axis] {
        let [first, second] = self.cuts;
        match d {
            0 => &self.axes[..first],
            1 => &self.axes[first..second],
            _ => &self.axes[second..],
        }
    }

    /// The first and last index of every axis for all of the result.
    fn whole(&self) -> Vec<[u64; 2]> {
        let axes = self.axes.iter();
        axes.map(|axis| [0, axis.extent.saturating_sub(1)])
            .collect()
    }

    /// Indices of every axis for ranges (first, last) of channels, rows and columns of the result.
    fn indices(&self, block: [[u64; 2]; 3]) -> Vec<[u64; 2]> {
        let mut indices = Vec::with_capacity(self.axes.len());
        for (d, [mut low, mut high]) in block.into_iter().enumerate() {
            let start = indices.len();
            for axis in self.group(d).iter().rev() {
                let extent = axis.extent.max(1);
                indices.push(if low / extent == high / extent {
                    [low % extent, high % extent]
                } else {
                    [0, extent - 1]
                });
                (low, high) = (low / extent, high / extent);
            }
            indices[start..].reverse();
        }
        indices
    }

    /// What an axis adds to the place, least and most, for a range of its indices.
    fn span(axis: &Axis, [low, high]: [u64; 2]) -> [i64; 2] {
        let index = |at: u64| {
            let last = axis.valid[1].max(1) - 1;
            at.clamp(axis.valid[0].min(last), last) as i64 - axis.valid[0] as i64
        };
        let (a, b) = (index(low) * axis.stride, index(high) * axis.stride);
        [a.min(b), a.max(b)]
    }

    /// The first and last place for indices of every axis.
    fn flat(&self, indices: &[[u64; 2]]) -> [i64; 2] {
        let spans = self.axes.iter().zip(indices);
        spans.fold([self.offset; 2], |[low, high], (axis, range)| {
            let [least, most] = Self::span(axis, *range);
            [low + least, high + most]
        })
    }

    /// The box of the input, channels, rows and columns with both corners inside, that a box of the result needs.
    pub fn needs(&self, block: [[u64; 2]; 3]) -> [[u64; 2]; 3] {
        let [_, rows, columns] = self.input;
        let plane = rows * columns;
        let indices = self.indices(block);
        let place = |flat: i64| [flat / plane, flat / columns % rows, flat % columns];
        let mut axes = place(self.offset).map(|at| [at, at]);
        for (axis, range) in self.axes.iter().zip(&indices) {
            let [least, most] = Self::span(axis, *range);
            let stride = axis.stride.abs();
            let of = if stride % plane == 0 {
                0
            } else if stride % columns == 0 {
                1
            } else {
                2
            };
            let unit = [plane, columns, 1][of];
            axes[of] = [axes[of][0] + least / unit, axes[of][1] + most / unit];
        }
        let inside = (0..3).all(|d| axes[d][0] >= 0 && axes[d][1] < self.input[d]);
        if !inside {
            // Places carry from one axis into the next: what lies between the first and the last.
            let [low, high] = self.flat(&indices);
            let (first, last) = (place(low), place(high));
            axes = [[first[0], last[0]], [0, rows - 1], [0, columns - 1]];
            if first[0] == last[0] {
                axes[1] = [first[1], last[1]];
                if first[1] == last[1] {
                    axes[2] = [first[2], last[2]];
                }
            }
        }
        [0, 1, 2].map(|d| axes[d].map(|at| at.clamp(0, self.input[d] - 1) as u64))
    }

    /// The place in the input of an element of the result; nothing where it is filled.
    pub(crate) fn source(&self, at: [u64; 3]) -> Option<[u64; 3]> {
        let mut flat = self.offset;
        for (d, mut rest) in at.into_iter().enumerate() {
            for axis in self.group(d).iter().rev() {
                let extent = axis.extent.max(1);
                let index = rest % extent;
                rest /= extent;
                if index < axis.valid[0] || index >= axis.valid[1] {
                    return None;
                }
                flat += (index - axis.valid[0]) as i64 * axis.stride;
            }
        }
        let [_, rows, columns] = self.input;
        let flat = u64::try_from(flat).ok()?;
        let (rows, columns) = (rows as u64, columns as u64);
        Some([
            flat / (rows * columns),
            flat / columns % rows,
            flat % columns,
        ])
    }
}

/// An axis, cut where it goes over the borders of rows and channels, so that each part moves along one of them.
fn split(axis: Axis, [_, rows, columns]: [i64; 3], all: &mut Vec<Axis>) {
    let mut axis = axis;
    let whole = axis.valid == [0, axis.extent];
    let mut inner = Vec::new();
    for unit in [columns, rows * columns] {
        let stride = axis.stride;
        if whole && stride > 0 && stride < unit && unit % stride == 0 {
            let part = (unit / stride) as u64;
            if axis.extent > part && axis.extent.is_multiple_of(part) {
                inner.push(Axis {
                    extent: part,
                    stride,
                    valid: [0, part],
                });
                let extent = axis.extent / part;
                axis = Axis {
                    extent,
                    stride: unit,
                    valid: [0, extent],
                };
            }
        }
    }
    all.push(axis);
    all.extend(inner.into_iter().rev());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(list: &[(u64, i64)]) -> Vec<Axis> {
        let axis = |(extent, stride): &(u64, i64)| Axis {
            extent: *extent,
            stride: *stride,
            valid: [0, *extent],
        };
        list.iter().map(axis).collect()
    }

    /// Every element comes from inside the box that its own box needs.
    fn agrees(strided: &Strided, output: [u64; 3]) {
        for low in 0..output[0] {
            for row in 0..output[1] {
                let block = [[low, output[0] - 1], [row, row], [0, output[2] - 1]];
                let needs = strided.needs(block);
                for c in low..output[0] {
                    for w in 0..output[2] {
                        let Some(from) = strided.source([c, row, w]) else {
                            continue;
                        };
                        assert!(
                            (0..3).all(|d| (needs[d][0]..=needs[d][1]).contains(&from[d])),
                            "{from:?} outside {needs:?} of {strided:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn boxes_hold_what_is_read() {
        // A transpose, a reversed slice, a flattening, a repeat, a padding.
        let cases = [
            (axes(&[(4, 1), (2, 12), (3, 4)]), 0, [2, 3, 4], [4, 2, 3]),
            (axes(&[(2, 12), (3, -4), (2, 2)]), 8, [2, 3, 4], [2, 3, 2]),
            (axes(&[(24, 1)]), 0, [2, 3, 4], [24, 1, 1]),
            (axes(&[(6, 4), (4, 1)]), 0, [2, 3, 4], [1, 6, 4]),
            (
                axes(&[(2, 12), (3, 4), (2, 0), (4, 1)]),
                0,
                [2, 3, 4],
                [2, 6, 4],
            ),
            (axes(&[(3, 5), (5, 1)]), 3, [2, 3, 4], [3, 1, 5]),
        ];
        for (axes, offset, input, output) in cases {
            agrees(
                &Strided::new(&axes, offset, 0.0, input, output).expect("a view"),
                output,
            );
        }
        let padded = [
            Axis {
                extent: 2,
                stride: 12,
                valid: [0, 2],
            },
            Axis {
                extent: 5,
                stride: 4,
                valid: [1, 4],
            },
            Axis {
                extent: 7,
                stride: 1,
                valid: [2, 6],
            },
        ];
        let strided = Strided::new(&padded, 0, -1.0, [2, 3, 4], [2, 5, 7]).expect("a view");
        agrees(&strided, [2, 5, 7]);
        assert_eq!(strided.source([1, 0, 3]), None);
        assert_eq!(strided.source([1, 1, 2]), Some([1, 0, 0]));
    }

    #[test]
    fn what_reaches_outside_is_refused() {
        let outside = Strided::new(&axes(&[(5, 12)]), 0, 0.0, [2, 3, 4], [5, 1, 1]);
        assert!(outside.is_err());
        assert!(Strided::new(&axes(&[(4, 1)]), 0, 0.0, [2, 3, 4], [5, 1, 1]).is_err());
    }
}
