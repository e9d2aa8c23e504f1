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
    /// Mean over the parts of height and width that the output's sizes give: x, sizes to y.
    AdaptiveAveragePool "adaptive-average-pool" BINARY;
    /// Maximum over the same parts, and where in height and width it stands: x, sizes to y, indices.
    AdaptiveMaxPool "adaptive-max-pool" &[I, I, O, O];
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
    /// Blocks of the batch become blocks of space.
    BatchToSpace "batch-to-space" UNARY;
    /// a & b.
    BitwiseAnd "bitwise-and" BINARY;
    /// !a.
    BitwiseNot "bitwise-not" UNARY;
    /// a | b.
    BitwiseOr "bitwise-or" BINARY;
    /// a ^ b.
    BitwiseXor "bitwise-xor" BINARY;
    /// Numbers of intervals between sorted bounds: x, bounds to y.
    Bucketize "bucketize" BINARY;
    /// Rounding up.
    Ceil "ceil" UNARY;
    /// Limits to a range.
    Clamp "clamp" UNARY;
    /// Change of element type.
    Convert "convert" UNARY;
    /// Convolution over height and width: x, weights to y.
    Convolution "convolution" BINARY;
    /// Cosine.
    Cos "cos" UNARY;
    /// Hyperbolic cosine.
    Cosh "cosh" UNARY;
    /// Classes of a sequence by their largest scores, without blanks and, if asked, repeats: scores, mask to classes.
    CtcGreedyDecoder "ctc-greedy-decoder" BINARY;
    /// Running sum along an axis.
    CumulativeSum "cumulative-sum" UNARY;
    /// (x − zero point) · scale, per channel.
    Dequantize "dequantize" UNARY;
    /// a / b.
    Divide "divide" BINARY;
    /// Quantises to u8 with a scale made from the given extremes: x, minimum, maximum to q, scale, zero point.
    DynamicQuantize "dynamic-quantize" &[I, I, I, O, O, O];
    /// A tensor of computed sizes in the memory of its upper bounds.
    DynamicExpand "dynamic-expand" UNARY;
    /// The same elements in a shape that the program computes: x, shape to y.
    DynamicReshape "dynamic-reshape" BINARY;
    /// x for x ≥ 0, else alpha·(eˣ − 1).
    Elu "elu" UNARY;
    /// Sums of rows of a table, cut into bags by offsets: table, indices, offsets to y.
    EmbeddingBagOffsets "embedding-bag-offsets" TERNARY;
    /// Sums of rows of a table, one row of indices for each: table, indices, and weights in some, to y.
    EmbeddingBagPacked "embedding-bag-packed" BINARY;
    /// a = b.
    Equal "equal" BINARY;
    /// Error function.
    Erf "erf" UNARY;
    /// Exponential.
    Exp "exp" UNARY;
    /// exp(x − the maximum along an axis): softmax before its division, which the DPU does.
    ExpStabilized "exp-stabilized" UNARY;
    /// Quantises to a number of levels and back: x, input low, input high, output low, output high to y.
    FakeQuantize "fake-quantize" &[I, I, I, I, I, O];
    /// Rounding down.
    Floor "floor" UNARY;
    /// Remainder with the sign of the divisor.
    FloorMod "floor-mod" BINARY;
    /// Discrete Fourier transform: x, factors to y.
    Fourier "fourier" BINARY;
    /// Matrix product with transposed weights: x, weights, and a bias for each column in some, to y.
    FullyConnected "fully-connected" BINARY;
    /// Selects slices along an axis: x, indices to y.
    Gather "gather" BINARY;
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
    /// Gated recurrent unit over a sequence: x, h, W, R, bias to Y, h.
    GruSequence "gru-sequence" &[I, I, I, I, I, O, O];
    /// The same with W·x in place of x and W: W·x, h, R, bias to Y, h.
    GruSequenceLastPart "gru-sequence-last-part" &[I, I, I, I, O, O];
    /// clip(alpha·x + beta, 0, 1).
    HardSigmoid "hard-sigmoid" UNARY;
    /// clip(x + 3, 0, 6) / 6.
    HardSigmoidSixth "hard-sigmoid-sixth" UNARY;
    /// x · clip(x + 3, 0, 6) / 6.
    HardSwish "hard-swish" UNARY;
    /// A picture of planes Y, U and V to one of three colours.
    I420ToRgb "i420-to-rgb" TERNARY;
    /// Patches of height and width as channels.
    ImagePatches "image-patches" UNARY;
    /// Resizes height and width; two more inputs (columns, weights) may come after the first.
    Interpolate "interpolate" UNARY;
    /// Its inverse.
    InverseFourier "inverse-fourier" BINARY;
    /// The inverse of the transform of real numbers.
    InverseRealFourier "inverse-real-fourier" BINARY;
    /// Neither infinite nor no number.
    IsFinite "is-finite" UNARY;
    /// Infinite, of either sign.
    IsInfinite "is-infinite" UNARY;
    /// x for x ≥ 0, else slope·x with one slope.
    LeakyRelu "leaky-relu" UNARY;
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
    /// One step of long short-term memory, after its matrix products: gates, c to h, c.
    LstmGates "lstm-gates" &[I, I, O, O];
    /// Long short-term memory over a sequence, after the input's matrix product: W·x, h, c, lengths in some, R, bias, scratch to Y, h, c.
    LstmSequence "lstm-sequence" &[I, I, I, I, I, S, O, O, O];
    /// The same with recurrent products by the DPU, which the kernel starts itself: R and bias by gate.
    LstmSequenceDpu "lstm-sequence-dpu" &[I, I, I, I, I, S, O, O, O];
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
    /// Selects boxes that overlap little: boxes, scores, two thresholds in some releases, scratch to indices, scores, count.
    NonMaxSuppression "non-max-suppression" &[I, I, S, O, O, O, S];
    /// Division by the Euclidean norm over given axes.
    NormalizeL2 "normalize-l2" UNARY;
    /// a ≠ b.
    NotEqual "not-equal" BINARY;
    /// A picture of planes Y and UV to one of three colours.
    Nv12ToRgb "nv12-to-rgb" BINARY;
    /// Indices to rows of one "on" among "off".
    OneHot "one-hot" UNARY;
    /// Adds a border.
    Pad "pad" UNARY;
    /// Reorders the dims.
    Permute "permute" UNARY;
    /// Means of parts of regions, each part of channels of its own: x, regions to y.
    PositionSensitiveRoiPooling "position-sensitive-roi-pooling" BINARY;
    /// a to the power of b.
    Power "power" BINARY;
    /// x for x ≥ 0, else slope·x.
    Prelu "prelu" BINARY;
    /// Discrete Fourier transform of real numbers.
    RealFourier "real-fourier" BINARY;
    /// Whether no element over axes is 0.
    ReduceAnd "reduce-and" UNARY;
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
    /// Whether any element over axes is not 0.
    ReduceOr "reduce-or" UNARY;
    /// Product over axes.
    ReduceProd "reduce-prod" UNARY;
    /// Sum over axes.
    ReduceSum "reduce-sum" UNARY;
    /// Activations of a YOLO layer: logistic functions, and softmax over its classes if asked.
    RegionYolo "region-yolo" UNARY;
    /// The larger of x and 0.
    Relu "relu" UNARY;
    /// Blocks of space become channels in the order of YOLO.
    ReorgYolo "reorg-yolo" UNARY;
    /// Reverses the first elements of each sequence: x, lengths to y.
    ReverseSequence "reverse-sequence" BINARY;
    /// Division by the root of the mean square along the innermost dim: x, gamma to y.
    RmsNorm "rms-norm" BINARY;
    /// Pools regions of a feature map: x, regions, batch indices to y.
    RoiAlign "roi-align" TERNARY;
    /// Maximum or mean of the parts of regions: x, regions to y.
    RoiPooling "roi-pooling" BINARY;
    /// Elements move along some dims, those beyond the end to the start: x, shifts, axes to y.
    Roll "roll" TERNARY;
    /// x · cos + rotated x · sin; element i of the first half is paired with element i of the second.
    RotaryEmbedding "rotary-embedding" TERNARY;
    /// The same with a cosine and a sine for each pair.
    RotaryEmbeddingHalf "rotary-embedding-half" TERNARY;
    /// The same with neighbours as pairs, and a cosine and a sine for each pair.
    RotaryEmbeddingHalfInterleaved "rotary-embedding-half-interleaved" TERNARY;
    /// The same with neighbours as pairs.
    RotaryEmbeddingInterleaved "rotary-embedding-interleaved" TERNARY;
    /// Rounding to the nearest integer.
    Round "round" UNARY;
    /// softmax(q · kᵀ · scale + mask) · v: q, k, v, and a mask and a scale in some, scratch, y, scratch.
    ScaledDotProductAttention "scaled-dot-product-attention" &[I, I, I, S, O, S];
    /// Writes single elements along an axis: x, indices, updates to y.
    ScatterElements "scatter-elements" TERNARY;
    /// Writes slices at coordinates: x, indices, updates to y.
    ScatterNd "scatter-nd" TERNARY;
    /// Writes slices along an axis: x, indices, updates to y.
    ScatterUpdate "scatter-update" TERNARY;
    /// condition ≠ 0 ? a : b.
    Select "select" TERNARY;
    /// lambda · (x for x > 0, else alpha·(eˣ − 1)).
    Selu "selu" UNARY;
    /// The sizes of a tensor, outermost first: sizes as the program keeps them to sizes as the model counts them.
    ShapeOf "shape-of" UNARY;
    /// a · 2ᵇ.
    ShiftLeft "shift-left" BINARY;
    /// a / 2ᵇ, rounded down.
    ShiftRight "shift-right" BINARY;
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
    /// Blocks of space become blocks of the batch.
    SpaceToBatch "space-to-batch" UNARY;
    /// Square root.
    Sqrt "sqrt" UNARY;
    /// (a − b)².
    SquaredDifference "squared-difference" BINARY;
    /// Every so many elements of a part of each dim: x, and begins, ends or steps in some, to y.
    StridedSlice "strided-slice" UNARY;
    /// a − b.
    Subtract "subtract" BINARY;
    /// x / (1 + e^(−beta·x)).
    Swish "swish" UNARY;
    /// Tangent.
    Tan "tan" UNARY;
    /// Hyperbolic tangent.
    Tanh "tanh" UNARY;
    /// Repeats along the dims.
    Tile "tile" UNARY;
    /// The k largest or smallest along an axis: x, scratch to values, indices, and scratch again from release 2026.1 on.
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
