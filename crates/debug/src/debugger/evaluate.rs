//! What expressions come to where the debugger stands.

use super::Debugger;
use crate::expression::{Expression, Value};
use crate::tensor::Tensor;

impl Debugger<'_, '_> {
    /// What an expression comes to at present.
    ///
    /// # Errors
    /// What does not fit together.
    pub fn value(&self, expression: &Expression) -> Result<Value, String> {
        Ok(match expression {
            Expression::Number(n) => Value::Number(*n),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::Time => {
                let time = self.session.time();
                let time = time.ok_or("expected the order `timed`: another has no times")?;
                Value::Number(time.ns())
            }
            Expression::Effect => Value::Number(self.session.at() as f64),
            Expression::Place(place) => Value::Tensor(self.read(place)?),
            Expression::Slice(inner, indices) => Value::Tensor(self.tensor(inner)?.slice(indices)?),
            Expression::As(inner, element) => Value::Tensor(self.tensor(inner)?.read_as(*element)),
            Expression::Apply(function, inner) => apply(function, &self.tensor(inner)?),
            Expression::Compare(operator, left, right) => {
                compare(operator, &self.value(left)?, &self.value(right)?)?
            }
            Expression::And(left, right) => {
                Value::Bool(self.value(left)?.holds()? && self.value(right)?.holds()?)
            }
            Expression::Or(left, right) => {
                Value::Bool(self.value(left)?.holds()? || self.value(right)?.holds()?)
            }
            Expression::Not(inner) => Value::Bool(!self.value(inner)?.holds()?),
        })
    }

    fn tensor(&self, expression: &Expression) -> Result<Tensor, String> {
        match self.value(expression)? {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(format!("expected a tensor, found {}", other.text())),
        }
    }
}

fn apply(function: &str, tensor: &Tensor) -> Value {
    let statistics = || tensor.statistics();
    Value::Number(match function {
        "min" => statistics().min,
        "max" => statistics().max,
        "mean" => statistics().mean,
        "nan" => tensor.all().iter().filter(|n| n.is_nan()).count() as f64,
        "inf" => tensor.all().iter().filter(|n| n.is_infinite()).count() as f64,
        "sum" => tensor.all().iter().sum(),
        "std" => {
            let values = tensor.all();
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|n| (n - mean) * (n - mean)).sum();
            (squares / count).sqrt()
        }
        "crc" => f64::from(tensor.crc()),
        "shape" => return Value::Shape(tensor.shape.clone()),
        _ => return Value::Text(tensor.element.name().to_owned()),
    })
}

fn compare(operator: &str, left: &Value, right: &Value) -> Result<Value, String> {
    if let (Value::Text(left), Value::Text(right)) = (left, right) {
        return match operator {
            "==" => Ok(Value::Bool(left == right)),
            "!=" => Ok(Value::Bool(left != right)),
            _ => Err(format!("expected == or != between texts, found {operator}")),
        };
    }
    let scalar = |value: &Value| match value {
        Value::Number(n) => Ok(*n),
        Value::Tensor(tensor) if tensor.len() == 1 => {
            Ok(tensor.numbers(0, 1).first().copied().unwrap_or(f64::NAN))
        }
        other => Err(format!(
            "expected a number on each side of {operator}, found {}; compare min, max or another number of a tensor",
            other.text()
        )),
    };
    let (left, right) = (scalar(left)?, scalar(right)?);
    #[expect(
        clippy::float_cmp,
        reason = "what is asked is whether two numbers are the same"
    )]
    let holds = match operator {
        "==" => left == right,
        "!=" => left != right,
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        _ => left >= right,
    };
    Ok(Value::Bool(holds))
}
