//! Operations element by element.

use super::Reader;
use super::array::{Array, broadcast, types};
use super::builder::{MOST, Made, attributes, element_of, numbers};
use super::value::{Groups, Tensor, Value, usual};
use crate::front::{Action, Activation, Element, Function, Named, Numbers};
use crate::network::Kind;
use chipless_gemini::{OfOne, of_one, of_two};
use serde_json::{Map, Value as Json};
use std::rc::Rc;

/// Operations of two operands: ONNX's name, the front end's.
pub(super) const OF_TWO: &[(&str, &str)] = &[
    ("Add", "element_wise_add"),
    ("Sub", "subtract"),
    ("Mul", "element_wise_mult"),
    ("Div", "divide"),
    ("Pow", "pow"),
    ("Max", "max"),
    ("Min", "min"),
    ("Mod", "mod"),
    ("FMod", "fmod"),
    ("DivTrunc", "div_trunc"),
    ("Equal", "equal"),
    ("Greater", "greater"),
    ("Less", "less"),
    ("GreaterOrEqual", "greater_or_equal"),
    ("LessOrEqual", "less_or_equal"),
    ("And", "and"),
    ("Or", "or"),
    ("Xor", "xor"),
    ("PRelu", "prelu"),
];

/// Functions of an element without parameters: ONNX's name, the front end's.
pub(super) const OF_ONE: &[(&str, &str)] = &[
    ("Abs", "abs"),
    ("Acos", "acos"),
    ("Acosh", "acosh"),
    ("Asin", "asin"),
    ("Asinh", "asinh"),
    ("Atan", "atan"),
    ("Atanh", "atanh"),
    ("Ceil", "ceil"),
    ("Cos", "cos"),
    ("Cosh", "cosh"),
    ("Erf", "erf"),
    ("Exp", "exp"),
    ("Floor", "floor"),
    ("HardSwish", "hard_swish"),
    ("IsNaN", "is_nan"),
    ("Log", "log"),
    ("Mish", "mish"),
    ("Neg", "neg"),
    ("Not", "not"),
    ("Reciprocal", "reciprocal"),
    ("Round", "round"),
    ("Sigmoid", "sigmoid"),
    ("Sign", "sign"),
    ("Sin", "sin"),
    ("Sinh", "sinh"),
    ("Softplus", "softplus"),
    ("Softsign", "softsign"),
    ("Sqrt", "sqrt"),
    ("Square", "square"),
    ("Tan", "tan"),
    ("Tanh", "tanh"),
    ("Trunc", "trunc"),
];

pub(super) fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// An operation of the vector processor.
pub(super) fn named(name: &'static str, attributes: Map<String, Json>) -> Named {
    Named {
        name,
        attributes,
        across: false,
    }
}

impl Reader<'_> {
    /// An operation on elements at the same place of operands that are broadcast, by ONNX's name of it.
    pub(super) fn binary(&mut self, kind: &str, a: &Value, b: &Value) -> Result<Value, String> {
        let known = OF_TWO.iter().find(|(of, _)| *of == kind);
        let (of, name) = *known.ok_or("the operation is not supported")?;
        let compares = matches!(
            of,
            "Equal" | "Greater" | "Less" | "GreaterOrEqual" | "LessOrEqual" | "And" | "Or" | "Xor"
        );
        let result = if compares { types::BOOL } else { a.kind() };
        if let (Value::Array(a), Value::Array(b)) = (a, b) {
            let function = match of {
                "Add" => |a, b| a + b,
                "Mul" => |a, b| a * b,
                _ => of_two(name).ok_or("of constants it is not supported")?,
            };
            return Ok(Value::Array(a.with(b, result, function)?));
        }
        if let Some(value) = self.with_constant(of, a, b)? {
            return Ok(value);
        }
        let shape = broadcast(&a.shape(), &b.shape())?;
        self.elementwise(named(name, Map::new()), &[a, b], &shape, result)
    }

    /// A sum, difference, product or quotient with one number, or with one for each channel: a factor and an offset.
    fn with_constant(&mut self, of: &str, a: &Value, b: &Value) -> Result<Option<Value>, String> {
        let (x, constant, first) = match (a, b) {
            (Value::Tensor(x), Value::Array(constant)) => (x, constant, false),
            (Value::Array(constant), Value::Tensor(x)) => (x, constant, true),
            _ => return Ok(None),
        };
        if types::is_integer(x.kind) || broadcast(&x.shape(), &constant.shape)? != x.shape() {
            return Ok(None);
        }
        let (factor, offset): (OfOne, OfOne) = match (of, first) {
            ("Add", _) => (|_| 1.0, |c| c),
            ("Sub", false) => (|_| 1.0, |c| -c),
            ("Sub", true) => (|_| -1.0, |c| c),
            ("Mul", _) => (|c| c, |_| 0.0),
            ("Div", false) => (|c| 1.0 / c, |_| 0.0),
            _ => return Ok(None),
        };
        let Some(each) = self.by_channel(x, constant)? else {
            return Ok(None);
        };
        let [factors, offsets]: [Vec<f64>; 2] =
            [factor, offset].map(|f| each.iter().map(|c| f(*c)).collect());
        let changes = |(f, o): (&f64, &f64)| *f - 1.0 != 0.0 || *o != 0.0;
        if !factors.iter().zip(&offsets).any(changes) {
            return Ok(Some(Value::Tensor(x.clone())));
        }
        self.affine(x, factors, offsets).map(Some)
    }

    /// The numbers of a constant for each channel of how a tensor is stored; nothing where it differs along rows or columns.
    fn by_channel(&self, x: &Tensor, constant: &Array) -> Result<Option<Vec<f64>>, String> {
        let groups = self.builder.storage(x);
        let shape = x.shape();
        let missing = shape.len() - constant.shape.len();
        let varies = |d: &usize| *d >= missing && constant.shape[*d - missing] != 1;
        if groups[1].iter().chain(&groups[2]).any(varies) {
            return Ok(None);
        }
        let all = constant.broadcast_to(&shape)?;
        let dims = all.dims();
        let channels: Vec<(i64, i64)> = groups[0].iter().map(|d| dims[*d]).collect();
        let each = all.viewed(&channels, 0)?.values.to_vec();
        Ok(each.iter().all(|v| v.is_finite()).then_some(each))
    }

    /// A factor and an offset for each channel of how a tensor is stored: a part of the layer before where that is one of weights.
    pub(super) fn affine(
        &mut self,
        x: &Tensor,
        factors: Vec<f64>,
        offsets: Vec<f64>,
    ) -> Result<Value, String> {
        let count = factors.len() as i64;
        if let Some(layer) = self.builder.open(x).filter(|_| self.is_sole(x))
            && self.builder.operations[layer].activation == Activation::None
            && self.builder.operations[layer].output.is_none()
            && self.builder.layers[layer].output[0] == count
        {
            let operation = &mut self.builder.operations[layer];
            match &mut operation.action {
                Action::Weighted {
                    weight,
                    columns,
                    bias,
                    ..
                } => {
                    scale_weights(weight, *columns, &factors)?;
                    let before = bias.as_ref().map(|bias| bias.values.clone()).transpose()?;
                    if let Some(own) = before.as_ref().filter(|own| own.len() != factors.len()) {
                        return Err(format!(
                            "expected a bias for each of {count} channels, found {}",
                            own.len()
                        ));
                    }
                    let sum = |(at, factor): (usize, &f64)| {
                        let own = before.as_ref().map_or(0.0, |own| own[at]);
                        own * factor + offsets[at]
                    };
                    let values = factors.iter().enumerate().map(sum).collect();
                    *bias = Some(numbers(vec![count], values));
                    return Ok(Value::Tensor(x.clone()));
                }
                Action::Affine(factor, offset) => {
                    let (own, more) = (factor.values.clone()?, offset.values.clone()?);
                    let both = |f: &dyn Fn(usize) -> f64| {
                        numbers(vec![count], (0..factors.len()).map(f).collect())
                    };
                    *factor = both(&|at| own[at] * factors[at]);
                    *offset = both(&|at| more[at] * factors[at] + offsets[at]);
                    return Ok(Value::Tensor(x.clone()));
                }
                Action::Named(named)
                    if named.across
                        && named.name.ends_with("_norm")
                        && !named.attributes.contains_key("channel_scale") =>
                {
                    for (name, all) in [("channel_scale", factors), ("channel_offset", offsets)] {
                        named.attributes.insert(name.to_owned(), Json::from(all));
                    }
                    return Ok(Value::Tensor(x.clone()));
                }
                _ => {}
            }
        }
        let groups = self.builder.storage(x);
        let source = self.builder.arranged(x, &groups)?;
        let made = Made {
            kind: Kind::PointToPoint,
            output: self.builder.extents(source),
            action: Action::Affine(numbers(vec![count], factors), numbers(vec![count], offsets)),
            element: Element::Float16,
        };
        let made = self.builder.layer(made, &[source])?;
        Ok(Value::Tensor(Tensor::stored(
            made,
            &x.shape(),
            &groups,
            x.kind,
        )))
    }

    /// An operation on elements at the same place of operands that are broadcast to a shape.
    pub(super) fn elementwise(
        &mut self,
        named: Named,
        operands: &[&Value],
        shape: &[i64],
        kind: i32,
    ) -> Result<Value, String> {
        let groups = self.common_storage(operands, shape);
        let mut reads = Vec::new();
        for operand in operands {
            let mut source = self.builder.beside(operand, shape, &groups)?;
            if reads.contains(&source) {
                source = self.copied(source)?;
            }
            reads.push(source);
        }
        let extents = [0, 1, 2].map(|g: usize| groups[g].iter().map(|d| shape[*d]).product());
        let made = self
            .builder
            .vector(named, extents, &reads, element_of(kind))?;
        Ok(Value::Tensor(Tensor::stored(made, shape, &groups, kind)))
    }

    /// How the first operand of the whole shape is stored, that of the others if there is none.
    fn common_storage(&self, operands: &[&Value], shape: &[i64]) -> Groups {
        let own = |value: &&Value| match value {
            Value::Tensor(tensor) if tensor.shape() == shape => {
                tensor.storage(self.builder.extents(tensor.source))
            }
            _ => None,
        };
        operands
            .iter()
            .find_map(own)
            .unwrap_or_else(|| usual(shape))
    }

    /// The same elements again: an operand that stands twice is two.
    pub(super) fn copied(
        &mut self,
        source: crate::front::Source,
    ) -> Result<crate::front::Source, String> {
        let made = Made {
            kind: Kind::PointToPoint,
            output: self.builder.extents(source),
            action: Action::Function(Function::Identity),
            element: self.builder.element(source),
        };
        self.builder.layer(made, &[source])
    }

    /// A function of each element, by ONNX's name of it.
    pub(super) fn unary(&mut self, kind: &str, x: &Value) -> Result<Value, String> {
        let known = OF_ONE.iter().find(|(of, _)| *of == kind);
        let (of, name) = *known.ok_or("the operation is not supported")?;
        let result = match of {
            "Not" | "IsNaN" => types::BOOL,
            _ => x.kind(),
        };
        match x {
            Value::Array(array) => {
                let function = of_one(name).ok_or("of constants it is not supported")?;
                Ok(Value::Array(array.map(result, function)))
            }
            Value::Tensor(_) => self.elementwise(named(name, Map::new()), &[x], &x.shape(), result),
        }
    }

    /// A function with parameters of each element.
    pub(super) fn function<const N: usize>(
        &mut self,
        name: &'static str,
        parameters: [(&str, f64); N],
        x: &Value,
        function: impl Fn(f64) -> f64,
    ) -> Result<Value, String> {
        match x {
            Value::Array(array) => Ok(Value::Array(array.map(array.kind, function))),
            Value::Tensor(_) => {
                let named = named(name, attributes(parameters));
                self.elementwise(named, &[x], &x.shape(), x.kind())
            }
        }
    }

    /// What bounds a result: a part of the layer before, where that can have it.
    pub(super) fn bounded(&mut self, x: &Value, least: f64, most: f64) -> Result<Value, String> {
        if let (Value::Tensor(tensor), true) = (x, least == 0.0 && !types::is_integer(x.kind()))
            && let Some(layer) = self.builder.open(tensor).filter(|_| self.is_sole(tensor))
        {
            let operation = &mut self.builder.operations[layer];
            let takes = matches!(
                operation.action,
                Action::Weighted { .. } | Action::Affine(..)
            );
            let is_plain = operation.activation == Activation::None && operation.output.is_none();
            if takes && is_plain {
                operation.activation = if most.is_finite() {
                    Activation::Bounded(most)
                } else {
                    Activation::Relu
                };
                return Ok(x.clone());
            }
        }
        let mut parameters = Map::new();
        for (name, bound) in [("min", least), ("max", most)] {
            if bound.is_finite() {
                parameters.insert(name.to_owned(), Json::from(bound));
            }
        }
        match x {
            Value::Array(array) => Ok(Value::Array(
                array.map(array.kind, |v| v.max(least).min(most)),
            )),
            Value::Tensor(_) => {
                self.elementwise(named("clip", parameters), &[x], &x.shape(), x.kind())
            }
        }
    }

    /// The second where the first is not zero, else the third.
    pub(super) fn chosen(&mut self, c: &Value, a: &Value, b: &Value) -> Result<Value, String> {
        let shape = broadcast(&c.shape(), &broadcast(&a.shape(), &b.shape())?)?;
        if let (Value::Array(c), Value::Array(a), Value::Array(b)) = (c, a, b) {
            let [c, a, b] = [c, a, b].map(|array| array.broadcast_to(&shape));
            let (c, a, b) = (c?, a?, b?);
            let of = (0..c.values.len()).map(|at| {
                if c.values[at] == 0.0 {
                    b.values[at]
                } else {
                    a.values[at]
                }
            });
            return Ok(Value::Array(Array::new(shape, a.kind, of.collect())));
        }
        if let Value::Array(c) = c
            && let Some(first) = c
                .values
                .first()
                .filter(|first| c.values.iter().all(|v| v.total_cmp(first).is_eq()))
        {
            return if *first == 0.0 { b } else { a }.broadcast_to(&shape);
        }
        // The vector processor has two operands: each side by itself, zero elsewhere, and their sum.
        let of = |name: &'static str, otherwise: f64| {
            let otherwise = otherwise.clamp(-MOST, MOST);
            named(name, attributes([("otherwise", otherwise)]))
        };
        let single = |value: &Value| match value {
            Value::Array(array) => array.single(),
            Value::Tensor(_) => None,
        };
        let kind = a.kind();
        if let Some(otherwise) = single(b) {
            return self.elementwise(of("where", otherwise), &[c, a], &shape, kind);
        }
        if let Some(otherwise) = single(a) {
            return self.elementwise(of("where_not", otherwise), &[c, b], &shape, kind);
        }
        let one = self.elementwise(of("where", 0.0), &[c, a], &shape, kind)?;
        let other = self.elementwise(of("where_not", 0.0), &[c, b], &shape, kind)?;
        self.binary("Add", &one, &other)
    }

    /// Numbers of another type.
    pub(super) fn cast(&mut self, x: &Value, to: i32) -> Result<Value, String> {
        let from = x.kind();
        let wraps = |v: f64| match to {
            types::BOOL => truth(v != 0.0),
            types::FLOAT => f64::from(v as f32),
            to if types::is_integer(to) => v.trunc(),
            _ => v,
        };
        match x {
            Value::Array(array) => Ok(Value::Array(array.map(to, wraps))),
            Value::Tensor(tensor) => {
                if to == types::BOOL && from != types::BOOL {
                    let zero = Value::Array(Array::scalar(from, 0.0));
                    let is_zero = self.binary("Equal", x, &zero)?;
                    return self.unary("Not", &is_zero);
                }
                if types::is_integer(to) && !types::is_integer(from) && from != types::BOOL {
                    let named = named("trunc", Map::new());
                    return self.elementwise(named, &[x], &x.shape(), to);
                }
                if element_of(from) == element_of(to) {
                    return Ok(Value::Tensor(Tensor {
                        kind: to,
                        ..tensor.clone()
                    }));
                }
                self.elementwise(named("quantize", Map::new()), &[x], &x.shape(), to)
            }
        }
    }
}

/// Weights whose output channels are multiplied by factors.
fn scale_weights(weight: &mut Numbers, columns: bool, factors: &[f64]) -> Result<(), String> {
    let values = weight.values.clone()?;
    let k = factors.len();
    let inner = values.len() / k.max(1);
    let of = |at: usize| if columns { at % k } else { at / inner.max(1) };
    let scaled = values.iter().enumerate().map(|(at, v)| v * factors[of(at)]);
    weight.values = Ok(Rc::new(scaled.collect()));
    Ok(())
}
