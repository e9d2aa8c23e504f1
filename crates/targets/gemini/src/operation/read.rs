//! What a layer computes, from its entry in the front-end IR.

use super::{
    Across, Activation, Kind, MOST, Move, Operand, Operation, Quantisation, Second, Vector, Window,
};
use crate::function::{Function, Known, OF_TWO};
use crate::network::{Layer, Network, has_weights, placed_operands_of};
use crate::strided::Strided;
use chipless_model::ElementType;
use serde_json::{Map, Value};
use std::sync::Arc;

fn number(stage: Option<&Map<String, Value>>, key: &str, otherwise: f64) -> f64 {
    stage
        .and_then(|s| s.get(key))
        .and_then(Value::as_f64)
        .unwrap_or(otherwise)
}

impl Operation {
    /// What a layer of the network computes.
    ///
    /// # Errors
    /// What Chipless lacks, or what the front end leaves out.
    pub(crate) fn of(network: &Network, name: &str) -> Result<Operation, String> {
        let layer = network
            .layers
            .get(name)
            .ok_or_else(|| format!("the network has no layer `{name}`"))?;
        let named = Named { layer, name };
        let dilation = dilation(layer).map_err(|e| named.what(&e))?;
        let (places, previous): (Vec<usize>, Vec<String>) = placed_operands_of(layer)
            .map(|(place, name)| (place, name.to_owned()))
            .unzip();
        let operands = named.operands(&places)?;
        let Some(first) = operands.first() else {
            return Err(named.what("it reads nothing"));
        };
        let output = named.element(&layer.output_dtype, 0)?;
        named.check_elements(&operands, output)?;
        let whole = named.shape(&layer.output_shape, 0)?;
        let kind = named.kind(first, operands.len())?;
        named.check_operands(&kind, &operands, whole)?;
        named.check_groups(&kind, first, whole[1])?;
        let [kernel, stride, padding] = named.window(first)?;
        Ok(Operation {
            name: layer.operation.clone(),
            previous,
            shape: whole,
            output,
            channels: u32::try_from(whole[1])
                .map_err(|_| named.what("too many output channels"))?,
            operands,
            kernel,
            stride,
            dilation,
            padding,
            kind,
        })
    }
}

/// A layer with its name, for what is said of it.
struct Named<'n> {
    layer: &'n Layer,
    name: &'n str,
}

impl Named<'_> {
    fn what(&self, text: &str) -> String {
        format!("layer `{}` ({}): {text}", self.name, self.layer.operation)
    }

    fn element(&self, names: &[String], index: usize) -> Result<ElementType, String> {
        let named = names.get(index).or(names.first());
        let dtype = named.map_or("int8", String::as_str);
        ElementType::from_name(dtype)
            .ok_or_else(|| self.what(&format!("element type `{dtype}` is not supported")))
    }

    fn shape(&self, shapes: &[Vec<u64>], index: usize) -> Result<[u64; 4], String> {
        let shape = shapes
            .get(index)
            .ok_or_else(|| self.what("a shape is missing"))?;
        let mut four = [1; 4];
        if shape.len() > 4 {
            let text = "a shape of more than four dimensions is not supported";
            return Err(self.what(text));
        }
        four[..shape.len()].copy_from_slice(shape);
        Ok(four)
    }

    fn operands(&self, places: &[usize]) -> Result<Vec<Operand>, String> {
        let layer = self.layer;
        let operand = |i: &usize| {
            let i = (*i).min(layer.input_shape.len().saturating_sub(1));
            Ok(Operand {
                element: self.element(&layer.input_dtype, i)?,
                shape: self.shape(&layer.input_shape, i)?,
            })
        };
        places.iter().map(operand).collect()
    }

    fn check_elements(&self, operands: &[Operand], output: ElementType) -> Result<(), String> {
        let usable = [ElementType::Int8, ElementType::Int16, ElementType::Float16];
        if let Some(operand) = operands.iter().find(|o| !usable.contains(&o.element)) {
            let text = format!("inputs of type {} are not supported", operand.element);
            return Err(self.what(&text));
        }
        if !usable.contains(&output) {
            return Err(self.what(&format!("outputs of type {output} are not supported")));
        }
        Ok(())
    }

    fn kind(&self, first: &Operand, operands: usize) -> Result<Kind, String> {
        let layer = self.layer;
        if has_weights(layer) {
            let element = |names: &[String], index: usize| self.element(names, index);
            return convolution(layer, first.element, &element);
        }
        if layer.operation == "matmul" {
            return Ok(product(layer));
        }
        Ok(match moved(layer, operands).map_err(|e| self.what(&e))? {
            Some(moved) => Kind::Move(moved),
            None => Kind::Vector(vector(layer).map_err(|e| self.what(&e))?),
        })
    }

    /// Whether there are as many operands as the layer needs, and as many channels as it makes of them.
    fn check_operands(
        &self,
        kind: &Kind,
        operands: &[Operand],
        whole: [u64; 4],
    ) -> Result<(), String> {
        let wanted = match kind {
            Kind::Product { .. } => 2,
            Kind::Vector(vector) if vector.across == Some(Across::LstmCell) => 2,
            Kind::Vector(vector) if vector.second.is_some() => 2,
            _ => 1,
        };
        if operands.len() < wanted {
            return Err(self.what(&format!(
                "expected {wanted} operands in previous_layer, found {}",
                operands.len()
            )));
        }
        let (
            Kind::Vector(Vector {
                across: Some(across),
                groups,
                ..
            }),
            Some(first),
        ) = (kind, operands.first())
        else {
            return Ok(());
        };
        let groups = u64::from(*groups);
        let expected = across.outputs(first.shape[1], groups);
        if expected != whole[1] || !first.shape[1].is_multiple_of(groups) {
            return Err(self.what(&format!(
                "expected {expected} channels of {} in {groups} groups, found {}",
                first.shape[1], whole[1]
            )));
        }
        Ok(())
    }

    fn check_groups(&self, kind: &Kind, first: &Operand, channels: u64) -> Result<(), String> {
        let (Kind::Convolution { groups, .. } | Kind::Product { groups, .. }) = kind else {
            return Ok(());
        };
        let of_each = u64::from(*groups);
        if !first.shape[1].is_multiple_of(of_each) || !channels.is_multiple_of(of_each) {
            return Err(self.what("its groups do not divide its channels"));
        }
        let transposed = matches!(
            kind,
            Kind::Product {
                transposed: true,
                ..
            }
        );
        if transposed && *groups > 1 {
            return Err(self.what("a transposed second operand in groups is not supported"));
        }
        Ok(())
    }

    /// Kernel, stride, and padding of the first row and column.
    fn window(&self, first: &Operand) -> Result<[[u32; 2]; 3], String> {
        let layer = self.layer;
        let [mut kernel, mut stride] =
            [layer.kernel_size.or(layer.pool_size), layer.stride].map(|v| v.unwrap_or([1, 1]));
        if layer.operation == "dense" {
            // On a map of the size of its weights it flattens.
            let of_weights = self.shape(&layer.input_shape, 1)?;
            kernel = if first.shape[2..] == of_weights[2..] {
                [of_weights[2], of_weights[3]].map(|v| u32::try_from(v).unwrap_or(0))
            } else {
                [1, 1]
            };
            stride = [1, 1];
        }
        let padding = layer
            .padding
            .filter(|_| layer.operation != "dense")
            .unwrap_or_default();
        if kernel.iter().chain(&stride).any(|v| *v == 0 || *v > MOST)
            || padding.iter().any(|p| *p > MOST)
        {
            return Err(self.what(&format!(
                "kernel {kernel:?}, stride {stride:?} or padding {padding:?} is out of range"
            )));
        }
        Ok([kernel, stride, [padding[0], padding[2]]])
    }
}

/// How far the elements of a kernel lie apart.
fn dilation(layer: &Layer) -> Result<[u32; 2], String> {
    let given = match layer.other.get("dilation") {
        None | Some(Value::Null) => return Ok([1, 1]),
        Some(Value::Array(values)) => values.clone(),
        Some(value) => vec![value.clone(); 2],
    };
    let apart = |value: &Value| {
        let value = value.as_u64().and_then(|value| u32::try_from(value).ok());
        value.filter(|value| (1..=MOST).contains(value))
    };
    let all: Option<Vec<u32>> = given.iter().map(apart).collect();
    match all.as_deref() {
        Some(all) if all.iter().all(|value| *value == 1) => Ok([1, 1]),
        Some(_) if !has_weights(layer) => {
            Err("a dilation of anything but a convolution is not supported".to_owned())
        }
        Some([rows, columns]) => Ok([*rows, *columns]),
        _ => Err(format!("the dilation {given:?} is not supported")),
    }
}

fn product(layer: &Layer) -> Kind {
    let q = layer.quant_info.clone().unwrap_or_default();
    let or = |value: Option<f64>, otherwise| value.unwrap_or(otherwise);
    Kind::Product {
        groups: layer.group.unwrap_or(1).max(1),
        transposed: layer.other.get("transpose_b").and_then(Value::as_bool) == Some(true),
        zeros: [or(q.input_zero_point1, 0.0), or(q.input_zero_point2, 0.0)],
        scale: or(q.input_scale1, 1.0) * or(q.input_scale2, 1.0) * or(q.output_scale, 1.0),
        output_zero: or(q.output_zero_point, 0.0),
    }
}

/// How a layer moves elements, if that is what it does.
fn moved(layer: &Layer, operands: usize) -> Result<Option<Move>, String> {
    Ok(Some(match layer.operation.as_str() {
        "permute" => Move::Permute(permuted(layer)?),
        "slice" => Move::Slice(sliced(layer)?),
        "concat" => {
            let along = layer.other.get("axis").and_then(Value::as_i64);
            Move::Concat(axis(along.ok_or("`axis` is missing")?)?)
        }
        "reshape" => {
            let elements = |shapes: &[Vec<u64>]| {
                let all = shapes.first()?.iter().skip(1);
                Some(all.fold(1u64, |n, extent| n.saturating_mul(*extent)))
            };
            if operands != 1 || elements(&layer.input_shape) != elements(&layer.output_shape) {
                return Err("input and output have another number of elements".into());
            }
            Move::Reshape
        }
        "resize" => Move::Repeat(repeated(layer)?),
        "as_strided" => {
            let of = |shapes: &[Vec<u64>]| {
                let shape = shapes.first()?;
                Some([1, 2, 3].map(|d| shape.get(d).copied().unwrap_or(1)))
            };
            let shapes = of(&layer.input_shape).zip(of(&layer.output_shape));
            let (input, output) = shapes.ok_or("its shapes are missing")?;
            Move::Strided(Arc::new(Strided::read(&layer.other, input, output)?))
        }
        "gather" => taken(layer)?,
        _ => return Ok(None),
    }))
}

/// The order of the axes that `permute` brings about.
fn permuted(layer: &Layer) -> Result<[usize; 4], String> {
    let perm = list(layer, "perm").ok_or("`perm` is missing")?;
    let mut axes = [0, 1, 2, 3];
    for (to, from) in axes.iter_mut().zip(&perm) {
        *to = axis(*from)?;
    }
    let mut sorted = axes;
    sorted.sort_unstable();
    if sorted != [0, 1, 2, 3] || perm.len() > 4 {
        return Err(format!("`perm` {perm:?} is no order of the axes"));
    }
    Ok(axes)
}

/// Where `slice` begins along each axis.
fn sliced(layer: &Layer) -> Result<[u32; 4], String> {
    let (starts, axes) = (
        list(layer, "starts").ok_or("`starts` is missing")?,
        list(layer, "axes").ok_or("`axes` is missing")?,
    );
    if list(layer, "steps").is_some_and(|steps| steps.iter().any(|step| *step != 1)) {
        return Err("steps other than 1 are not supported".into());
    }
    let shape = layer.input_shape.first().map(Vec::as_slice);
    let mut from = [0; 4];
    for (start, of) in starts.iter().zip(&axes) {
        let of = axis(*of)?;
        let extent = shape.and_then(|s| s.get(of)).copied().unwrap_or(1) as i64;
        let start = if *start < 0 { start + extent } else { *start };
        from[of] =
            u32::try_from(start).map_err(|_| format!("it starts at {start} along axis {of}"))?;
    }
    Ok(from)
}

/// How often `resize` repeats rows and columns.
fn repeated(layer: &Layer) -> Result<[u32; 2], String> {
    let given = list(layer, "scales").ok_or("`scales` is missing")?;
    let shapes = [&layer.input_shape, &layer.output_shape].map(|shapes| shapes.first());
    let times = |d: usize| {
        let times = u32::try_from(given[d]).ok();
        let [from, to] = shapes.map(|shape| shape.and_then(|s| s.get(d + 2)).copied());
        times.filter(|times| {
            (1..=MOST).contains(times) && from.map(|from| from * u64::from(*times)) == to
        })
    };
    let scales = match given.len() {
        2 => times(0).zip(times(1)),
        _ => None,
    };
    let (rows, columns) = scales.ok_or_else(|| {
        format!("`scales` {given:?} are not how often rows and columns are repeated")
    })?;
    Ok([rows, columns])
}

/// What `gather` takes, and along which axis.
fn taken(layer: &Layer) -> Result<Move, String> {
    let along = layer.other.get("axis").and_then(Value::as_i64);
    let axis = axis(along.ok_or("`axis` is missing")?)?;
    let of = |shapes: &[Vec<u64>]| shapes.first()?.get(axis).copied();
    let extents = of(&layer.input_shape).zip(of(&layer.output_shape));
    let (from, to) = extents.ok_or("its shapes are missing")?;
    let places = list(layer, "indices").ok_or("`indices` is missing")?;
    let places: Option<Arc<[u32]>> = places
        .into_iter()
        .map(|at| u32::try_from(at).ok().filter(|at| u64::from(*at) < from))
        .collect();
    let places = places.filter(|places| places.len() as u64 == to && axis > 0);
    Ok(Move::Take(
        axis,
        places.ok_or_else(|| format!("expected {to} `indices` below {from}"))?,
    ))
}

/// A list of integers.
fn list(layer: &Layer, key: &str) -> Option<Vec<i64>> {
    let values = layer.other.get(key)?.as_array()?;
    values.iter().map(Value::as_i64).collect()
}

/// An axis, which may count from the last.
fn axis(value: i64) -> Result<usize, String> {
    usize::try_from(if value < 0 { value + 4 } else { value })
        .ok()
        .filter(|axis| *axis < 4)
        .ok_or_else(|| format!("there is no axis {value}"))
}

/// A scale and an offset for each channel.
type Affine = (Vec<f64>, Vec<f64>);

/// `channel_scale` and `channel_offset`: a number for each channel.
fn affine(layer: &Layer) -> Result<Option<Affine>, String> {
    let list = |key: &str| -> Option<Vec<f64>> {
        let values = layer.other.get(key)?.as_array()?;
        values.iter().map(Value::as_f64).collect()
    };
    let channels = layer
        .output_shape
        .first()
        .and_then(|shape| shape.get(1))
        .copied()
        .unwrap_or(1);
    match (list("channel_scale"), list("channel_offset")) {
        (None, None) => Ok(None),
        (Some(scale), Some(offset))
            if scale.len() as u64 == channels && offset.len() as u64 == channels =>
        {
            Ok(Some((scale, offset)))
        }
        _ => Err(format!(
            "`channel_scale` and `channel_offset` are not {channels} numbers each"
        )),
    }
}

fn convolution(
    layer: &Layer,
    input: ElementType,
    element: &impl Fn(&[String], usize) -> Result<ElementType, String>,
) -> Result<Kind, String> {
    let q = layer.quant_info.clone().unwrap_or_default();
    let weight = match element(&layer.input_dtype, 1)? {
        ElementType::Int8 => ElementType::Int8,
        _ if input == ElementType::Float16 => ElementType::Float16,
        other => other,
    };
    let groups = layer.group.unwrap_or(1).max(1);
    let activation = match layer.activation_type.as_deref() {
        None | Some("" | "none") => Activation::None,
        Some("relu") => Activation::Relu(None),
        Some("relu_x" | "relu6") => Activation::Relu(Some(layer.activation_attr.unwrap_or(6.0))),
        Some(other) => return Err(format!("activation `{other}` is not supported")),
    };
    let quantisation = Quantisation {
        input_zero: q.input_zero_point1.unwrap_or(0.0),
        input_scale: q.input_scale1.unwrap_or(1.0),
        output_scale: q.output_scale,
        output_zero: q.output_zero_point.unwrap_or(0.0),
    };
    Ok(Kind::Convolution {
        groups,
        weight,
        quantisation,
        activation,
    })
}

fn vector(layer: &Layer) -> Result<Vector, String> {
    let stage = |name: &str| layer.module_list.get(name);
    let (before, after) = (stage("pre_cal"), stage("post_cal"));
    let mut vector = Vector {
        inputs: [
            (
                number(before, "requan_scale_a", 1.0),
                number(before, "requan_zp_a", 0.0),
            ),
            (
                number(before, "requan_scale_b", 1.0),
                number(before, "requan_zp_b", 0.0),
            ),
        ],
        output: (number(after, "mul_k", 1.0), number(after, "sum_b", 0.0)),
        relu: stage("relu_group").is_some(),
        ..Vector::default()
    };
    if let Some(multiply) = stage("fp32_mul_group") {
        if multiply
            .get("mul_group_k_mux")
            .and_then(Value::as_str)
            .is_some_and(|mux| mux == "vector")
        {
            vector.second = Some(Second::Multiply);
        } else {
            vector.factor = Some(number(Some(multiply), "mul_group_k_scalar", 1.0));
        }
    }
    vector.groups = layer.group.unwrap_or(1).max(1);
    vector.affine = affine(layer)?;
    vector.mean_inside = layer
        .other
        .get("count_include_pad")
        .and_then(Value::as_bool)
        == Some(false);
    if layer.activation_type.as_deref() == Some("relu_x") {
        vector.relu = true;
        vector.bound = layer.activation_attr;
    }
    if stage("compare_group").is_some() {
        vector.window = Some(Window::Maximum);
    }
    if stage("acc_tree_group").is_some() {
        vector.window = Some(Window::Sum);
    }
    if let Some(sum) = stage("fp32_sum_sub_group0") {
        let subtracts = sum.get("sumsub_group_mode").and_then(Value::as_str) == Some("sub");
        vector.second = Some(if subtracts {
            Second::Subtract
        } else {
            Second::Add
        });
    }
    match layer.operation.as_str() {
        "quantize" | "dequantize" | "relu" => {}
        "softmax" => {
            let axis = layer.other.get("axis").and_then(Value::as_i64);
            if !matches!(axis, None | Some(1 | -3)) {
                return Err("softmax over another axis than the channels is not supported".into());
            }
            vector.across = Some(Across::Softmax);
        }
        "max_pool2d" => vector.window = Some(Window::Maximum),
        "avg_pool2d" => {
            if vector.mean_inside {
                vector.factor = None;
            } else if vector.window.is_none() || vector.factor.is_none() {
                let [rows, columns] = layer.pool_size.or(layer.kernel_size).unwrap_or([1, 1]);
                vector.factor = Some(1.0 / (f64::from(rows) * f64::from(columns)).max(1.0));
            }
            vector.window = Some(Window::Sum);
        }
        "element_wise_add" => vector.second = Some(vector.second.unwrap_or(Second::Add)),
        "element_wise_sub" => vector.second = Some(Second::Subtract),
        "element_wise_mult" => vector.second = Some(Second::Multiply),
        "div" => vector.second = Some(Second::Divide),
        "where" | "where_not" => {
            let otherwise = layer.other.get("otherwise").and_then(Value::as_f64);
            vector.second = Some(Second::Where {
                inverted: layer.operation == "where_not",
                otherwise: otherwise.unwrap_or(0.0),
            });
        }
        other => {
            let of_two = Known::find(other, OF_TWO);
            vector.second = vector.second.or(of_two.map(Second::Plain));
            vector.across = Across::of(layer);
            vector.function = Function::of(&layer.operation, &layer.other);
            if of_two.is_none() && vector.across.is_none() && vector.function.is_none() {
                return Err(format!("the operation `{other}` is not supported"));
            }
        }
    }
    Ok(vector)
}
