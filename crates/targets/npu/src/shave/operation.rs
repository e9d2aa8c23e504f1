//! What a SHAVE kernel computes, and the tensors of its argument block.

use std::fmt;
use std::str::FromStr;

/// What a task does with a tensor of its argument block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorRole {
    /// Read.
    Input,
    /// Written.
    Output,
    /// Working memory, as unsigned bytes: contents before and after mean nothing.
    Scratch,
}

use TensorRole::{Input as I, Output as O, Scratch as S};
const UNARY: &[TensorRole] = &[I, O];
const BINARY: &[TensorRole] = &[I, I, O];
const TERNARY: &[TensorRole] = &[I, I, I, O];

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident $name:literal $roles:expr;)*) => {
        /// The operation of a SHAVE kernel. Names are stable: tables and command lines use them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation { $($(#[$doc])* $variant,)* }

        impl Operation {
            /// Every operation, in the order of their names.
            pub const ALL: &[Operation] = &[$(Operation::$variant,)*];

            /// The stable name in kebab case.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$variant => $name,)* }
            }

            /// The tensors of the argument block in their order. `interpolate` may have more inputs and `mvn6` may have
            /// inputs left out: there the block says which ones it holds.
            pub const fn roles(self) -> &'static [TensorRole] {
                match self { $(Operation::$variant => $roles,)* }
            }
        }
    };
}

operations! {
    /// Absolute value.
    Abs "abs" UNARY;
    /// Inverse cosine.
    Acos "acos" UNARY;
    /// Inverse hyperbolic cosine.
    Acosh "acosh" UNARY;
    /// a + b.
    Add "add" BINARY;
    /// Inverse sine.
    Asin "asin" UNARY;
    /// Inverse hyperbolic sine.
    Asinh "asinh" UNARY;
    /// Inverse tangent.
    Atan "atan" UNARY;
    /// Inverse hyperbolic tangent.
    Atanh "atanh" UNARY;
    /// Mean over windows of depth, height and width.
    AveragePool "average-pool" UNARY;
    /// The average pool whose argument block has a dilation; also serves output sizes rounded up.
    AveragePoolDilated "average-pool-dilated" UNARY;
    /// a & b.
    BitwiseAnd "bitwise-and" BINARY;
    /// !a.
    BitwiseNot "bitwise-not" UNARY;
    /// a | b.
    BitwiseOr "bitwise-or" BINARY;
    /// a ^ b.
    BitwiseXor "bitwise-xor" BINARY;
    /// Rounding up.
    Ceil "ceil" UNARY;
    /// Limits to a range.
    Clamp "clamp" UNARY;
    /// Change of element type.
    Convert "convert" UNARY;
    /// Cosine.
    Cos "cos" UNARY;
    /// Hyperbolic cosine.
    Cosh "cosh" UNARY;
    /// Running sum along an axis.
    CumulativeSum "cumulative-sum" UNARY;
    /// (x − zero point) · scale, per channel.
    Dequantize "dequantize" UNARY;
    /// a / b.
    Divide "divide" BINARY;
    /// Quantises to u8 with a scale made from the given extremes: x, minimum, maximum to q, scale, zero point.
    DynamicQuantize "dynamic-quantize" &[I, I, I, O, O, O];
    /// x for x ≥ 0, else alpha·(eˣ − 1).
    Elu "elu" UNARY;
    /// a = b.
    Equal "equal" BINARY;
    /// Error function.
    Erf "erf" UNARY;
    /// Exponential.
    Exp "exp" UNARY;
    /// Rounding down.
    Floor "floor" UNARY;
    /// Remainder with the sign of the divisor.
    FloorMod "floor-mod" BINARY;
    /// Selects single elements along an axis: x, indices to y.
    GatherElements "gather-elements" BINARY;
    /// Selects slices by coordinates: x, indices to y.
    GatherNd "gather-nd" BINARY;
    /// x · Φ(x), by the error function.
    Gelu "gelu" UNARY;
    /// a > b.
    Greater "greater" BINARY;
    /// a ≥ b.
    GreaterOrEqual "greater-or-equal" BINARY;
    /// Samples an image at given places: x, grid to y.
    GridSample "grid-sample" BINARY;
    /// One step of a gated recurrent unit, after its matrix products: W·x, h, R·h, bias to h.
    GruGates "gru-gates" &[I, I, I, I, O];
    /// clip(alpha·x + beta, 0, 1).
    HardSigmoid "hard-sigmoid" UNARY;
    /// x · clip(x + 3, 0, 6) / 6.
    HardSwish "hard-swish" UNARY;
    /// Resizes height and width; two more inputs (columns, weights) may come after the first.
    Interpolate "interpolate" UNARY;
    /// a < b.
    Less "less" BINARY;
    /// a ≤ b.
    LessOrEqual "less-or-equal" BINARY;
    /// Natural logarithm.
    Log "log" UNARY;
    /// Logarithm of softmax.
    LogSoftmax "log-softmax" UNARY;
    /// a ≠ 0 and b ≠ 0.
    LogicalAnd "logical-and" BINARY;
    /// a = 0.
    LogicalNot "logical-not" UNARY;
    /// a ≠ 0 or b ≠ 0.
    LogicalOr "logical-or" BINARY;
    /// Exactly one of a ≠ 0, b ≠ 0.
    LogicalXor "logical-xor" BINARY;
    /// Local response normalisation.
    Lrn "lrn" UNARY;
    /// Long short-term memory over a sequence, after the input's matrix product: W·x, h, c, R, bias, scratch to Y, h, c.
    LstmSequence "lstm-sequence" &[I, I, I, I, I, S, O, O, O];
    /// Maximum over windows of depth, height and width.
    MaxPool "max-pool" UNARY;
    /// The same with the flat index of each maximum.
    MaxPoolIndices "max-pool-indices" &[I, O, O];
    /// The larger of a and b.
    Maximum "maximum" BINARY;
    /// The smaller of a and b.
    Minimum "minimum" BINARY;
    /// x · tanh(ln(1 + eˣ)).
    Mish "mish" UNARY;
    /// a · b.
    Multiply "multiply" BINARY;
    /// Mean and variance normalisation over height and width.
    Mvn1 "mvn1" UNARY;
    /// Mean and variance normalisation over given axes, with optional scale and bias: x, scale, bias to y.
    Mvn6 "mvn6" TERNARY;
    /// −a.
    Negative "negative" UNARY;
    /// Selects boxes; known by name, not executed.
    NonMaxSuppression "non-max-suppression" &[I, I, I, I, S, O, O, O, S];
    /// Division by the Euclidean norm over given axes.
    NormalizeL2 "normalize-l2" UNARY;
    /// Indices to rows of one "on" among "off".
    OneHot "one-hot" UNARY;
    /// a to the power of b.
    Power "power" BINARY;
    /// x for x ≥ 0, else slope·x.
    Prelu "prelu" BINARY;
    /// Sum of absolute values over axes.
    ReduceL1 "reduce-l1" UNARY;
    /// Euclidean norm over axes.
    ReduceL2 "reduce-l2" UNARY;
    /// Maximum over axes.
    ReduceMax "reduce-max" UNARY;
    /// Mean over axes.
    ReduceMean "reduce-mean" UNARY;
    /// Minimum over axes.
    ReduceMin "reduce-min" UNARY;
    /// Product over axes.
    ReduceProd "reduce-prod" UNARY;
    /// Sum over axes.
    ReduceSum "reduce-sum" UNARY;
    /// Reverses the first elements of each sequence: x, lengths to y.
    ReverseSequence "reverse-sequence" BINARY;
    /// Division by the root of the mean square along the innermost dim: x, gamma to y.
    RmsNorm "rms-norm" BINARY;
    /// Pools regions of a feature map: x, regions, batch indices to y.
    RoiAlign "roi-align" TERNARY;
    /// x · cos + rotated x · sin.
    RotaryEmbedding "rotary-embedding" TERNARY;
    /// Rounding to the nearest integer.
    Round "round" UNARY;
    /// Writes single elements along an axis: x, indices, updates to y.
    ScatterElements "scatter-elements" TERNARY;
    /// Writes slices at coordinates: x, indices, updates to y.
    ScatterNd "scatter-nd" TERNARY;
    /// condition ≠ 0 ? a : b.
    Select "select" TERNARY;
    /// lambda · (x for x > 0, else alpha·(eˣ − 1)).
    Selu "selu" UNARY;
    /// 1 / (1 + e⁻ˣ).
    Sigmoid "sigmoid" UNARY;
    /// −1, 0 or 1.
    Sign "sign" UNARY;
    /// Sine.
    Sin "sin" UNARY;
    /// Hyperbolic sine.
    Sinh "sinh" UNARY;
    /// Exponentials along an axis, divided by their sum.
    Softmax "softmax" UNARY;
    /// ln(1 + eˣ).
    Softplus "softplus" UNARY;
    /// x / (1 + |x|).
    Softsign "softsign" UNARY;
    /// Square root.
    Sqrt "sqrt" UNARY;
    /// a − b.
    Subtract "subtract" BINARY;
    /// x / (1 + e^(−beta·x)).
    Swish "swish" UNARY;
    /// Hyperbolic tangent.
    Tanh "tanh" UNARY;
    /// The k largest or smallest along an axis: x, scratch to values, indices, scratch.
    TopK "top-k" &[I, S, O, O, S];
    /// Remainder with the sign of the dividend.
    TruncatedMod "truncated-mod" BINARY;
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no operation has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no SHAVE operation is named `{name}`{}", did_you_mean(.close))]
pub struct UnknownOperation {
    /// The name as given.
    pub name: String,
    /// Operations whose names are close to it, the closest first.
    pub close: Vec<Operation>,
}

fn did_you_mean(close: &[Operation]) -> String {
    let names: Vec<String> = close
        .iter()
        .map(|operation| format!("`{operation}`"))
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", names.join(" or "))
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    fn from_str(name: &str) -> Result<Operation, UnknownOperation> {
        if let Some(operation) = Operation::ALL
            .iter()
            .find(|operation| operation.name() == name)
        {
            return Ok(*operation);
        }
        let given = name.to_lowercase().replace(['_', ' '], "-");
        let mut close: Vec<(f64, Operation)> = Operation::ALL
            .iter()
            .map(|operation| (strsim::jaro_winkler(&given, operation.name()), *operation))
            .filter(|(similarity, _)| *similarity > 0.85)
            .collect();
        close.sort_by(|a, b| b.0.total_cmp(&a.0));
        Err(UnknownOperation {
            name: name.to_owned(),
            close: close
                .into_iter()
                .take(3)
                .map(|(_, operation)| operation)
                .collect(),
        })
    }
}
