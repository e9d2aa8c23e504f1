//! Tiles of everything but convolutions: stages of the vector processor, products of two activations, elements that move.

use super::tile::{MOST_ELEMENTS, Tile, assemble, needed, padding};
use crate::lower::region::fault;
use crate::operation::{Across, Kind, Move, Operation, Reduction, Second, Vector, Window};
use crate::schedule::Bounds;
use chipless_kernels::Update;
use chipless_kernels::cast::decode_f64;
use chipless_kernels::window;
use chipless_model::{Fault, Storage};

/// The stages of the vector processor.
pub(super) fn stages(
    tile: &Tile,
    operation: &Operation,
    vector: &Vector,
    storage: &Storage<'_>,
) -> Result<Vec<f64>, Fault> {
    let load = |operand: usize, bounds: &Bounds| {
        let of = operation
            .operands
            .get(operand)
            .copied()
            .unwrap_or(operation.operands[0]);
        let (scale, offset) = vector.inputs[operand.min(1)];
        let mut failed = None;
        let decode = |bytes: &[u8], values: &mut [f64]| {
            if decode_f64(of.element, bytes, values).is_ok() {
                for v in values.iter_mut() {
                    *v = *v * scale + offset;
                }
            }
        };
        if of.element.bits() < 8 || of.element.bits() > 32 {
            failed = Some(Fault::unsupported(format!(
                "operands of type {} are not supported",
                of.element
            )));
        }
        failed.map_or_else(
            || assemble(tile, operand, of.element, bounds, storage, decode),
            Err,
        )
    };
    let bounds = needed(&tile.bounds, operation, 0)?;
    let mut values = load(0, &bounds)?;
    if let Some(function) = vector.function {
        for v in &mut values {
            *v = function.apply(*v);
        }
    }
    if let Some(Across::LstmCell) = vector.across {
        let gates = (values.as_slice(), &bounds);
        return lstm_cell(tile, operation, gates, &load);
    }
    if let Some(over) = vector.across {
        values = across_channels(tile, over, vector.groups as usize, &bounds, &mut values)?;
    }
    if let Some((scales, offsets)) = &vector.affine {
        let channels = if vector.across.is_some() {
            tile.bounds
        } else {
            bounds
        };
        let first = channels.lower[1] as usize;
        for pixel in values.chunks_mut((channels.shape()[1] as usize).max(1)) {
            for (value, (scale, offset)) in
                pixel.iter_mut().zip(scales.iter().zip(offsets).skip(first))
            {
                *value = *value * scale + offset;
            }
        }
    }
    if let Some(factor) = vector.factor {
        for v in &mut values {
            *v *= factor;
        }
    }
    if let Some(over) = vector.window {
        values = pooled(tile, operation, vector, over, &bounds, &values)?;
    }
    if let Some(second) = vector.second {
        let of = needed(&tile.bounds, operation, 1)?;
        values = spread(&values, &bounds, &tile.bounds);
        let others = spread(&load(1, &of)?, &of, &tile.bounds);
        for (value, other) in values.iter_mut().zip(others) {
            *value = match second {
                Second::Add => *value + other,
                Second::Subtract => *value - other,
                Second::Multiply => *value * other,
                Second::Divide => *value / other,
                Second::Plain(function) => (function.apply)(*value, other),
                Second::Where { inverted, .. } if (*value != 0.0) != inverted => other,
                Second::Where { otherwise, .. } => otherwise,
            };
        }
    }
    let (scale, offset) = vector.output;
    for value in &mut values {
        let positive = if vector.relu { value.max(0.0) } else { *value };
        let positive = vector.bound.map_or(positive, |bound| positive.min(bound));
        *value = positive * scale + offset;
    }
    Ok(values)
}

/// What a function of all channels of each group makes of them; of the result the tile's own channels stay.
fn across_channels(
    tile: &Tile,
    over: Across,
    groups: usize,
    bounds: &Bounds,
    values: &mut [f64],
) -> Result<Vec<f64>, Fault> {
    let channels = bounds.shape()[1] as usize;
    let of_tile = tile.bounds.lower[1] as usize..=tile.bounds.upper[1] as usize;
    let of_group = (channels / groups).max(1);
    let outputs = match over {
        Across::Reduce(_) => groups,
        _ => channels,
    };
    if *of_tile.end() >= outputs {
        return Err(Fault::program("the tile lies outside its layer"));
    }
    let mut kept = Vec::with_capacity(tile.bounds.elements() as usize);
    for pixel in values.chunks_exact_mut(channels.max(1)) {
        if let Across::Reduce(reduction) = over {
            let all = pixel.chunks(of_group).skip(*of_tile.start());
            kept.extend(
                all.take(of_tile.clone().count())
                    .map(|group| reduced(reduction, group)),
            );
            continue;
        }
        for group in pixel.chunks_mut(of_group) {
            across(over, group);
        }
        kept.extend_from_slice(&pixel[of_tile.clone()]);
    }
    Ok(kept)
}

/// What the channels of a group become.
fn reduced(reduction: Reduction, values: &[f64]) -> f64 {
    let sum = |of: &dyn Fn(f64) -> f64| values.iter().map(|v| of(*v)).sum::<f64>();
    let best = |better: &dyn Fn(f64, f64) -> bool| {
        let all = values.iter().enumerate();
        let found = all.reduce(|a, b| if better(*b.1, *a.1) { b } else { a });
        found.map_or(0.0, |(at, _)| at as f64)
    };
    let most = || values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match reduction {
        Reduction::Sum => sum(&|v| v),
        Reduction::Mean => sum(&|v| v) / values.len() as f64,
        Reduction::Maximum => most(),
        Reduction::Minimum => values.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Product => values.iter().product(),
        Reduction::Magnitudes => sum(&f64::abs),
        Reduction::Norm => sum(&|v| v * v).sqrt(),
        Reduction::Squares => sum(&|v| v * v),
        Reduction::LogSum => sum(&|v| v).ln(),
        Reduction::LogSumExp => {
            let most = most();
            most + sum(&|v| (v - most).exp()).ln()
        }
        Reduction::ArgMax(false) => best(&|b, a| b > a),
        Reduction::ArgMax(true) => best(&|b, a| b >= a),
        Reduction::ArgMin(false) => best(&|b, a| b < a),
        Reduction::ArgMin(true) => best(&|b, a| b <= a),
    }
}

/// The elements of a box of an operand.
type Load<'l> = dyn Fn(usize, &Bounds) -> Result<Vec<f64>, Fault> + 'l;

/// A step of an LSTM at each place: h and c; of the result the tile's own channels stay.
fn lstm_cell(
    tile: &Tile,
    operation: &Operation,
    (gates, bounds): (&[f64], &Bounds),
    load: &Load<'_>,
) -> Result<Vec<f64>, Fault> {
    let count = bounds.shape()[1] as usize;
    let of_state = needed(&tile.bounds, operation, 1)?;
    let size = of_state.shape()[1] as usize;
    let state = load(1, &of_state)?;
    let places = gates.len() / count.max(1);
    if size * 2 != count || state.len() != size * places {
        return Err(Fault::program(
            "the operands of an LSTM's step have other extents",
        ));
    }
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    // Of the state before, c alone is needed: h has gone into the gates.
    let size = size / 2;
    let of_tile = tile.bounds.lower[1] as usize..=tile.bounds.upper[1] as usize;
    let mut kept = Vec::with_capacity(tile.bounds.elements() as usize);
    let each = gates
        .chunks_exact(count.max(1))
        .zip(state.chunks_exact((2 * size).max(1)));
    for (gates, before) in each {
        for out in of_tile.clone() {
            let at = out % size;
            let [i, o, f, new] = [0, 1, 2, 3].map(|gate| gates[gate * size + at]);
            let c = sigmoid(f) * before[size + at] + sigmoid(i) * new.tanh();
            kept.push(if out < size { sigmoid(o) * c.tanh() } else { c });
        }
    }
    Ok(kept)
}

/// The maximum, the sum or the mean of each window.
fn pooled(
    tile: &Tile,
    operation: &Operation,
    vector: &Vector,
    over: Window,
    bounds: &Bounds,
    values: &[f64],
) -> Result<Vec<f64>, Fault> {
    let [above, left] = padding(&tile.bounds, operation);
    let [_, c, h, w] = bounds.shape().map(|extent| extent as usize);
    let [images, _, out_y, out_x] = tile.bounds.shape().map(|extent| extent as usize);
    let geometry = window::Window {
        size_x: w,
        size_y: h,
        channels: c,
        kernel_x: operation.kernel[1] as usize,
        kernel_y: operation.kernel[0] as usize,
        stride_x: operation.stride[1] as usize,
        stride_y: operation.stride[0] as usize,
        pad_left: left as usize,
        pad_up: above as usize,
        out_x,
        out_y,
    };
    let mut pooled = vec![0.0; images * out_y * out_x * c];
    let pixels = (h * w * c).max(1);
    for (image, out) in values
        .chunks_exact(pixels)
        .zip(pooled.chunks_exact_mut((out_y * out_x * c).max(1)))
    {
        match over {
            Window::Maximum => window::pool_max(&geometry, image, out),
            Window::Sum => window::pool_sum(&geometry, image, out, Update::Set),
        }
        .map_err(|e| fault(&e))?;
    }
    if vector.mean_inside {
        let rows = inside(out_y, operation.kernel[0], operation.stride[0], above, h);
        let columns = inside(out_x, operation.kernel[1], operation.stride[1], left, w);
        let counts = rows.iter().flat_map(|r| columns.iter().map(move |c| r * c));
        let all = counts.cycle().take(images * out_y * out_x);
        for (place, count) in pooled.chunks_exact_mut(c.max(1)).zip(all) {
            for value in place {
                *value /= count;
            }
        }
    }
    Ok(pooled)
}

/// For each of so many windows, how many of its places lie inside the extent that was read.
fn inside(windows: usize, kernel: u32, stride: u32, before: u32, extent: usize) -> Vec<f64> {
    (0..windows as i64)
        .map(|window| {
            let first = window * i64::from(stride) - i64::from(before);
            let end = (first + i64::from(kernel)).min(extent as i64);
            (end - first.max(0)).max(1) as f64
        })
        .collect()
}

/// Softmax or normalisation over the channels of one place.
fn across(over: Across, values: &mut [f64]) {
    let count = values.len().max(1) as f64;
    match over {
        Across::Softmax => {
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for v in values.iter_mut() {
                *v = (*v - most).exp();
            }
            let sum: f64 = values.iter().sum();
            for v in values.iter_mut() {
                *v /= sum;
            }
        }
        Across::Normalise { epsilon } => {
            let mean = values.iter().sum::<f64>() / count;
            let square = |v: &f64| (v - mean) * (v - mean);
            let variance = values.iter().map(square).sum::<f64>() / count;
            let scale = (variance + epsilon).sqrt();
            for v in values.iter_mut() {
                *v = (*v - mean) / scale;
            }
        }
        Across::NormaliseSquare { epsilon } => {
            let squares = values.iter().map(|v| v * v).sum::<f64>() / count;
            let scale = (squares + epsilon).sqrt();
            for v in values.iter_mut() {
                *v /= scale;
            }
        }
        Across::LogSoftmax => {
            let all = reduced(Reduction::LogSumExp, values);
            for v in values.iter_mut() {
                *v -= all;
            }
        }
        Across::Hardmax => {
            let first = reduced(Reduction::ArgMax(false), values) as usize;
            for (at, v) in values.iter_mut().enumerate() {
                *v = f64::from(u8::from(at == first));
            }
        }
        Across::LpNormalise { squares } => {
            let norm = reduced(
                if squares {
                    Reduction::Norm
                } else {
                    Reduction::Magnitudes
                },
                values,
            );
            // Zeros stay zeros, as ONNX's reference has it.
            if norm != 0.0 {
                for v in values.iter_mut() {
                    *v /= norm;
                }
            }
        }
        // They make another number of channels, and are computed where that is known.
        Across::Reduce(_) | Across::LstmCell => {}
    }
}

/// Elements of a box for a larger one: what has one image, channel, row or column for all is repeated.
fn spread(values: &[f64], from: &Bounds, to: &Bounds) -> Vec<f64> {
    if from.shape() == to.shape() {
        return values.to_vec();
    }
    let ([n, c, h, w], of) = (to.shape(), from.shape());
    let mut spread = Vec::with_capacity(to.elements() as usize);
    for (image, y, x, channel) in places(n, h, w, c) {
        let [image, channel, y, x] = [image, channel, y, x];
        let at = |index: u64, extent: u64| if extent == 1 { 0 } else { index };
        let place = ((at(image, of[0]) * of[2] + at(y, of[2])) * of[3] + at(x, of[3])) * of[1]
            + at(channel, of[1]);
        spread.push(values.get(place as usize).copied().unwrap_or(0.0));
    }
    spread
}

/// Image, row, column and channel of every element, in the order in which they lie in L2.
fn places(n: u64, h: u64, w: u64, c: u64) -> impl Iterator<Item = (u64, u64, u64, u64)> {
    (0..n).flat_map(move |image| {
        (0..h).flat_map(move |y| {
            (0..w).flat_map(move |x| (0..c).map(move |channel| (image, y, x, channel)))
        })
    })
}

/// The elements of an operand as numbers, N, H, W, C.
fn operand(
    tile: &Tile,
    operation: &Operation,
    index: usize,
    bounds: &Bounds,
    storage: &Storage<'_>,
) -> Result<Vec<f64>, Fault> {
    let element = operation.operands[index].element;
    let decode = |bytes: &[u8], values: &mut [f64]| {
        // The front end has been asked for types of whole bytes.
        let _ = decode_f64(element, bytes, values);
    };
    assemble(tile, index, element, bounds, storage, decode)
}

/// Sums of products along the channels of the first operand.
pub(super) fn product(
    tile: &Tile,
    operation: &Operation,
    transposed: bool,
    zeros: [f64; 2],
    storage: &Storage<'_>,
) -> Result<Vec<f64>, Fault> {
    let boxes = [0, 1].map(|index| needed(&tile.bounds, operation, index));
    let [of_a, of_b] = boxes;
    let (of_a, of_b) = (of_a?, of_b?);
    let mut a = operand(tile, operation, 0, &of_a, storage)?;
    let mut b = operand(tile, operation, 1, &of_b, storage)?;
    for v in &mut a {
        *v += zeros[0];
    }
    for v in &mut b {
        *v += zeros[1];
    }
    let [images, k, h, w] = tile.bounds.shape().map(|extent| extent as usize);
    let depth = of_a.shape()[1] as usize;
    // The second operand is C along rows and K along channels, or the other way round.
    let (of_rows, of_channels) = (of_b.shape()[2] as usize, of_b.shape()[1] as usize);
    // Channels of the first operand that an output channel takes: those of its group.
    let groups = match &operation.kind {
        Kind::Product { groups, .. } => *groups as usize,
        _ => 1,
    };
    let outputs = (operation.channels as usize / groups).max(1);
    let inner = operation.operands[0].shape[1] as usize / groups;
    let lower = tile.bounds.lower[1] as usize;
    let first_of =
        |out: usize| ((lower + out) / outputs * inner).saturating_sub(of_a.lower[1] as usize);
    if (0..k).any(|out| first_of(out) + inner > depth) {
        return Err(Fault::program("the tile lies outside its layer"));
    }
    if (if transposed { of_channels } else { of_rows }) != inner {
        return Err(Fault::program(
            "the operands of a product have other numbers of channels",
        ));
    }
    let mut sums = Vec::with_capacity(images * h * w * k);
    let image_of_b = (of_rows * of_channels).max(1);
    for (image, pixels) in a.chunks_exact((depth * h * w).max(1)).enumerate() {
        let b = &b[image * image_of_b..][..image_of_b];
        for pixel in pixels.chunks_exact(depth.max(1)) {
            for out in 0..k {
                let pixel = &pixel[first_of(out)..][..inner];
                let factor = |c: usize| {
                    if transposed {
                        b[out * of_channels + c]
                    } else {
                        b[c * of_channels + out]
                    }
                };
                sums.push(pixel.iter().enumerate().map(|(c, v)| v * factor(c)).sum());
            }
        }
    }
    Ok(sums)
}

/// Elements in other places.
pub(super) fn moved(
    tile: &Tile,
    operation: &Operation,
    how: &Move,
    storage: &Storage<'_>,
) -> Result<Vec<f64>, Fault> {
    let to = tile.bounds;
    let mut parts = Vec::with_capacity(operation.operands.len());
    for index in 0..operation.operands.len() {
        let Some(bounds) = operation.needs(index, &to) else {
            parts.push((Bounds::default(), Vec::new()));
            continue;
        };
        if bounds.elements() > MOST_ELEMENTS {
            return Err(Fault::program("a tile needs too many elements"));
        }
        let values = operand(tile, operation, index, &bounds, storage)?;
        parts.push((bounds, values));
    }
    let fill = match how {
        Move::Strided(strided) => strided.fill,
        _ => 0.0,
    };
    let [n, c, h, w] = to.shape();
    let mut moved = Vec::with_capacity(to.elements() as usize);
    for (image, y, x, channel) in places(n, h, w, c) {
        let offsets = [image, channel, y, x];
        let at: [u64; 4] = std::array::from_fn(|d| u64::from(to.lower[d]) + offsets[d]);
        let Some((part, from)) = source(operation, how, at) else {
            moved.push(fill);
            continue;
        };
        let value = parts.get(part).and_then(|(bounds, values)| {
            let shape = bounds.shape();
            let mut place = 0;
            for d in [0, 2, 3, 1] {
                let offset = from[d].checked_sub(u64::from(bounds.lower[d]))?;
                place = place * shape[d] + Some(offset).filter(|offset| *offset < shape[d])?;
            }
            values.get(place as usize).copied()
        });
        moved.push(value.ok_or_else(|| {
            Fault::program(format!(
                "the element {at:?} comes from outside the operands"
            ))
        })?);
    }
    Ok(moved)
}

/// The operand and the place in it that an element comes from; nothing where it comes from none.
fn source(operation: &Operation, how: &Move, at: [u64; 4]) -> Option<(usize, [u64; 4])> {
    let mut from = at;
    match how {
        Move::Permute(axes) => {
            for (d, axis) in axes.iter().enumerate() {
                from[*axis] = at[d];
            }
        }
        Move::Slice(starts) => {
            for d in 0..4 {
                from[d] += u64::from(starts[d]);
            }
        }
        Move::Reshape => {
            let (of, shape) = (operation.shape, operation.operands[0].shape);
            let mut rest = (at[1] * of[2] + at[2]) * of[3] + at[3];
            for d in [3, 2, 1] {
                from[d] = rest % shape[d].max(1);
                rest /= shape[d].max(1);
            }
        }
        Move::Repeat([rows, columns]) => {
            (from[2], from[3]) = (at[2] / u64::from(*rows), at[3] / u64::from(*columns));
        }
        Move::Strided(strided) => {
            let [c, h, w] = strided.source([at[1], at[2], at[3]])?;
            from = [at[0], c, h, w];
        }
        Move::Take(axis, places) => {
            let place = usize::try_from(at[*axis])
                .ok()
                .and_then(|at| places.get(at));
            from[*axis] = place.map_or(u64::MAX, |place| u64::from(*place));
        }
        Move::Concat(axis) => {
            let mut before = 0;
            for (index, operand) in operation.operands.iter().enumerate() {
                let end = before + operand.shape[*axis];
                if at[*axis] < end {
                    from[*axis] = at[*axis] - before;
                    from[0] = from[0].min(operand.shape[0].saturating_sub(1));
                    return Some((index, from));
                }
                before = end;
            }
            return Some((operation.operands.len(), from));
        }
    }
    Some((0, from))
}
