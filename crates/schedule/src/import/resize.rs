//! Resizing: each axis by itself, as places to take or as weights.

use super::Reader;
use super::array::{Array, axis_of, types};
use super::builder::numbers;
use super::node::Node;
use super::value::Value;

/// How an axis is resized.
struct Side<'n> {
    from: i64,
    to: i64,
    scale: f64,
    coordinates: &'n str,
    /// Part of the axis that is resized.
    roi: [f64; 2],
}

impl Side<'_> {
    /// Where an element of the result lies in the input.
    fn place(&self, at: i64) -> f64 {
        let (at, scale) = (at as f64, self.scale);
        // By scales, the result ends where it would without being cut to whole elements.
        let (from, to) = (self.from as f64, self.scale * self.from as f64);
        match self.coordinates {
            "asymmetric" => at / scale,
            "align_corners" if to > 1.0 => at * (from - 1.0) / (to - 1.0),
            "align_corners" => 0.0,
            "pytorch_half_pixel" if self.to == 1 => -0.5,
            "half_pixel_symmetric" => {
                let adjustment = self.to as f64 / to;
                let centre = from / 2.0;
                centre * (1.0 - adjustment) + (at + 0.5) / scale - 0.5
            }
            "tf_crop_and_resize" if to > 1.0 => {
                let [start, end] = self.roi;
                start * (from - 1.0) + at * (end - start) * (from - 1.0) / (to - 1.0)
            }
            "tf_crop_and_resize" => {
                let [start, end] = self.roi;
                0.5 * (start + end) * (from - 1.0)
            }
            _ => (at + 0.5) / scale - 0.5,
        }
    }

    /// The nearest element of each of the result.
    fn nearest(&self, how: &str) -> Vec<i64> {
        let round = |place: f64| match how {
            "floor" => place.floor(),
            "ceil" => place.ceil(),
            "round_prefer_ceil" => (place + 0.5).floor(),
            _ => (place - 0.5).ceil(),
        };
        let place = |at: i64| (round(self.place(at)) as i64).clamp(0, self.from - 1);
        (0..self.to).map(place).collect()
    }

    /// What each element of the result takes of each of the input: result by input.
    fn weights(&self, cubic: Option<f64>, outside: bool, antialias: bool) -> Vec<f64> {
        let mut weights = vec![0.0; (self.from * self.to) as usize];
        let stretch = if antialias && self.scale < 1.0 {
            self.scale
        } else {
            1.0
        };
        let reach = if cubic.is_some() { 2.0 } else { 1.0 } / stretch;
        let kernel = |x: f64| {
            let x = (x * stretch).abs();
            match cubic {
                None => (1.0 - x).max(0.0),
                Some(a) if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
                Some(a) if x < 2.0 => a * (((x - 5.0) * x + 8.0) * x - 4.0),
                Some(_) => 0.0,
            }
        };
        for to in 0..self.to {
            let centre = self.place(to);
            let (low, high) = (
                (centre - reach).ceil() as i64,
                (centre + reach).floor() as i64,
            );
            let row = &mut weights[(to * self.from) as usize..][..self.from as usize];
            let mut sum = 0.0;
            for at in low..=high {
                let weight = kernel(centre - at as f64);
                let is_outside = !(0..self.from).contains(&at);
                if is_outside && outside {
                    continue;
                }
                sum += weight;
                row[at.clamp(0, self.from - 1) as usize] += weight;
            }
            if sum != 0.0 {
                for weight in row {
                    *weight /= sum;
                }
            }
        }
        weights
    }
}

impl Reader<'_> {
    pub(super) fn resize(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let rank = shape.len();
        let old = node.kind == "Upsample" || self.version < 11;
        let given = |at: usize| -> Result<Option<&Array>, String> {
            Ok(node.constant(at)?.filter(|array| !array.values.is_empty()))
        };
        let axes: Vec<usize> = match node.ints("axes") {
            Some(axes) => axes
                .iter()
                .map(|a| axis_of(*a, rank))
                .collect::<Result<_, _>>()?,
            None => (0..rank).collect(),
        };
        let listed = node.floats("scales").filter(|all| !all.is_empty());
        let scales: Option<Vec<f64>> = match (given(if old { 1 } else { 2 })?, listed) {
            (Some(scales), _) => Some(scales.values.to_vec()),
            (None, Some(scales)) => Some(scales.iter().map(|v| f64::from(*v)).collect()),
            (None, None) => None,
        };
        let sizes = if old {
            None
        } else {
            given(3)?.map(Array::whole)
        };
        let roi = if old { None } else { given(1)? };
        let policy = node.text("keep_aspect_ratio_policy").unwrap_or("stretch");
        let mut of_axes: Vec<(i64, f64)> = Vec::new();
        for (at, axis) in axes.iter().enumerate() {
            let from = shape[*axis] as f64;
            of_axes.push(match (&scales, &sizes) {
                (Some(scales), _) => {
                    let scale = *scales.get(at).ok_or("its scales are too few")?;
                    // A scale in binary32 may fall just short of a whole extent.
                    ((from * scale + 1e-6).floor() as i64, scale)
                }
                (None, Some(sizes)) => {
                    let size = *sizes.get(at).ok_or("its sizes are too few")?;
                    (size, size as f64 / from)
                }
                (None, None) => return Err("it has neither scales nor sizes".to_owned()),
            });
        }
        if policy != "stretch" && scales.is_none() {
            let ratios = of_axes.iter().map(|(_, scale)| *scale);
            let scale = if policy == "not_larger" {
                ratios.fold(f64::INFINITY, f64::min)
            } else {
                ratios.fold(0.0, f64::max)
            };
            for (of, axis) in of_axes.iter_mut().zip(&axes) {
                *of = ((scale * shape[*axis] as f64).round() as i64, scale);
            }
        }
        let coordinates = match node.text("coordinate_transformation_mode") {
            _ if old => "asymmetric",
            None => "half_pixel",
            Some(known) => known,
        };
        let mode = node.text("mode").unwrap_or("nearest");
        let mut x = x;
        for (at, (axis, (to, scale))) in axes.iter().zip(of_axes).enumerate() {
            let crops = coordinates == "tf_crop_and_resize";
            let roi = match roi {
                Some(roi) if crops => [roi.values[at], roi.values[at + axes.len()]],
                _ => [0.0, 1.0],
            };
            let from = shape[*axis];
            let is_whole = !crops || roi[0] == 0.0 && roi[1] - 1.0 == 0.0;
            if to == from && scale - 1.0 == 0.0 && is_whole {
                continue;
            }
            if !(1..1 << 20).contains(&to) {
                return Err(format!("{to} elements along the axis {axis}"));
            }
            let side = Side {
                from,
                to,
                scale,
                coordinates,
                roi,
            };
            if crops && (0..to).any(|at| !(0.0..=(from - 1) as f64).contains(&side.place(at))) {
                return Err("a crop that reaches outside is not supported".to_owned());
            }
            if mode == "nearest" {
                let how = if old {
                    "floor"
                } else {
                    node.text("nearest_mode").unwrap_or("round_prefer_floor")
                };
                x = self.taken(&x, *axis, &side.nearest(how))?;
                continue;
            }
            let cubic = (mode == "cubic").then(|| node.float("cubic_coeff_a", -0.75));
            let outside = node.int("exclude_outside", 0) != 0;
            let antialias = node.int("antialias", 0) != 0;
            let weights = side.weights(cubic, outside, antialias);
            x = self.mixed(&x, *axis, Array::new(vec![to, from], types::FLOAT, weights))?;
        }
        Ok(x)
    }

    /// Sums of the elements along an axis by weights: result by input.
    pub(super) fn mixed(
        &mut self,
        x: &Value,
        axis: usize,
        weights: Array,
    ) -> Result<Value, String> {
        let rank = x.shape().len();
        let to = weights.shape[0];
        let first = match x {
            Value::Tensor(tensor) => {
                let weights = numbers(weights.shape.clone(), weights.values.to_vec());
                self.linear(&tensor.clone(), axis, weights, to, false)?
            }
            Value::Array(_) => {
                let order: Vec<usize> = [axis]
                    .into_iter()
                    .chain((0..rank).filter(|d| *d != axis))
                    .collect();
                let turned = x.transposed(&order)?;
                let of = turned.shape();
                let flat = self.reshaped(&turned, &[of[0], of[1..].iter().product()])?;
                let product = self.product(&Value::Array(weights), &flat)?;
                self.reshaped(&product, &[&[to], &of[1..]].concat())?
            }
        };
        let mut order: Vec<usize> = (1..rank).collect();
        order.insert(axis, 0);
        first.transposed(&order)
    }

    pub(super) fn running_sum(&mut self, node: &Node<'_>) -> Result<Value, String> {
        let x = node.input(0)?.clone();
        let shape = x.shape();
        let axis = node
            .constant(1)?
            .and_then(Array::single)
            .ok_or("its axis is missing")?;
        let axis = axis_of(axis as i64, shape.len())?;
        let n = shape[axis];
        let (exclusive, reverse) = (node.int("exclusive", 0) != 0, node.int("reverse", 0) != 0);
        let taken = |at: i64| {
            let (to, from) = if reverse {
                (at % n, at / n)
            } else {
                (at / n, at % n)
            };
            super::elements::truth(if exclusive { from < to } else { from <= to })
        };
        let weights = Array::new(vec![n, n], types::FLOAT, (0..n * n).map(taken).collect());
        self.mixed(&x, axis, weights)
    }
}
