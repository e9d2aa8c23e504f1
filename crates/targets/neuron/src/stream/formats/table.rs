//! The table of formats, and the macros that make views of it.

use super::{Code, Field, Format, Generator, Kind, Microscaled, Tensor};
use crate::stream::{DmaSide, Events, Evidence, Scalars, Slot};
use Direction::{Read, Write};
use chipless_model::Direction;

/// The method of a field.
macro_rules! get {
    ($(#[$doc:meta])* $field:ident $at:literal Tensor($dimensions:literal, $direction:expr, $element:expr, $partitions:expr)) => {
        $(#[$doc])* pub fn $field(self) -> Tensor { self.0.tensor($at, $dimensions) }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Microscaled($direction:expr, $element:expr, $partitions:expr)) => {
        $(#[$doc])* pub fn $field(self) -> Microscaled { self.0.microscaled($at) }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Generator) => {
        $(#[$doc])* pub fn $field(self) -> Generator {
            let Tensor { address, steps, counts, .. } = self.0.tensor($at, 4);
            Generator { base: address.cast_signed(), steps, counts }
        }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Element($code:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { $code.of(self.0) } };
    ($(#[$doc:meta])* $field:ident $at:literal Alu) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Byte) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Flags($names:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Choice($names:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Signed) => { $(#[$doc])* pub fn $field(self) -> i32 { i32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Word) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Value) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Bits) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Array($size:literal)) => { $(#[$doc])* pub fn $field(self) -> [u8; $size] { self.0.array($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Name) => { $(#[$doc])* pub fn $field(self) -> &'a [u8] { self.0.name_at($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Side($element:expr)) => { $(#[$doc])* pub fn $field(self) -> DmaSide { zerocopy::transmute!(self.0.array::<22>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Scalars($element:expr)) => { $(#[$doc])* pub fn $field(self) -> Scalars { zerocopy::transmute!(self.0.array::<18>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal SymbolicScalars($element:expr)) => { $(#[$doc])* pub fn $field(self) -> Scalars { zerocopy::transmute!(self.0.array::<18>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Events) => { $(#[$doc])* pub fn $field(self) -> Events { zerocopy::transmute!(self.0.array::<8>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Completion) => { $(#[$doc])* pub fn $field(self) -> (u8, u8) { (self.0.byte($at), self.0.byte($at + 1)) } };
}

/// The kind of a field.
macro_rules! kind {
    (Tensor($dimensions:literal, $direction:expr, $element:expr, $partitions:expr)) => {
        Kind::Tensor { dimensions: $dimensions, direction: $direction, element: $element, partitions: $partitions }
    };
    (Microscaled($direction:expr, $element:expr, $partitions:expr)) => {
        Kind::Microscaled { direction: $direction, element: $element, partitions: $partitions }
    };
    ($kind:ident $(($argument:expr))?) => { Kind::$kind $(($argument))? };
}

macro_rules! formats {
    ($(
        $(#[$doc:meta])*
        $name:ident { $(
            $(#[$field_doc:meta])*
            $at:literal $field:ident: $kind:ident $(($($argument:tt)*))?, $evidence:ident $(= $default:literal)? $($refused:ident)?;
        )* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name<'a>(pub &'a Slot);

            impl<'a> $name<'a> {
                /// The table of the format.
                pub const FORMAT: &'static Format = {
                    static FIELDS: &[Field] = &[$(Field {
                        name: stringify!($field),
                        at: $at,
                        kind: kind!($kind $(($($argument)*))?),
                        evidence: Evidence::$evidence,
                        default: 0 $(+ $default)?,
                        refused: false $(|| formats!(@ $refused))?,
                    },)*];
                    static FORMAT: Format = Format::new(stringify!($name), FIELDS);
                    &FORMAT
                };

                $(get!($(#[$field_doc])* $field $at $kind $(($($argument)*))?);)*
            }
        )*

        /// A slot with the format of its opcode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Instruction<'a> {
            $($(#[$doc])* $name($name<'a>),)*
        }

        /// Which format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::stream) enum FormatId {
            $(#[doc = stringify!($name)] $name,)*
        }

        impl FormatId {
            /// Its table.
            pub(in crate::stream) const fn format(self) -> &'static Format {
                match self { $(FormatId::$name => $name::FORMAT,)* }
            }

            /// A slot of this format.
            pub(in crate::stream) const fn view(self, slot: &Slot) -> Instruction<'_> {
                match self { $(FormatId::$name => Instruction::$name($name(slot)),)* }
            }
        }

        /// Every format.
        pub static FORMATS: &[&Format] = &[$($name::FORMAT,)*];
    };
    (@ refused) => { true };
}

use Code::{At, High, Low, Sums};

/// Where an immediate comes from.
const SOURCES: &[&str] = &["instruction", "address", "register"];
/// Where operands of the sequencer come from.
const REGISTER_SOURCES: &[&str] = &["registers", "instruction"];
/// Where the bias of an activation comes from: coded the other way round.
const BIAS_SOURCES: &[&str] = &["address", "instruction"];
/// What becomes of an accumulator.
const ACCUMULATORS: &[&str] = &[
    "leave",
    "zero",
    "accumulate",
    "zero_and_accumulate",
    "load_and_accumulate",
];
/// In place of the byte with the number of partitions, for a tensor that lies in one.
pub(in crate::stream) const ONE_PARTITION: u8 = 0;
/// Which operands are swapped.
const REVERSED: &[&str] = &["op0", "op1"];

formats! {
    /// `LDWEIGHTS`: fills the matrix engine's array, last column first.
    LoadWeights {
        /// Columns in the order in which they enter the array.
        0x10 src: Tensor(3, Read, At(0x20), 0x26), Proven;
        /// Rows of the array: partitions of the source.
        0x26 rows: Byte, Proven;
        /// Columns of the array.
        0x27 columns: Byte, Proven;
        /// Which part of a binary32 enters: 0 all of it, 1 low, 2 high, 3 both.
        0x21 fp32_pass: Choice(&["none", "low", "high", "low_and_high"]), Assumed;
        /// 1 for weights of a transposition.
        0x22 transpose: Byte, Proven;
        /// Performance mode.
        0x23 mode: Byte, Quoted refused;
        /// Bit for each group of 32 rows.
        0x2c row_groups: Flags(&[]), Quoted = 0xf;
        /// Bit for each group of 32 columns.
        0x2d column_groups: Flags(&[]), Quoted = 0xf;
    }

    /// `LDWEIGHTS_MX`: fills the array with weights in groups that share a scale, last column first.
    LoadWeightsMx {
        /// Columns in the order in which they enter the array.
        0x10 src: Microscaled(Read, At(0x20), 0x26), Quoted;
        /// Rows of the array: partitions of the source.
        0x26 rows: Byte, Quoted;
        /// Columns of the array.
        0x27 columns: Byte, Quoted;
        /// Bit for each group of 32 rows.
        0x2c row_groups: Flags(&[]), Quoted = 0xf;
        /// Bit for each group of 32 columns.
        0x2d column_groups: Flags(&[]), Quoted = 0xf;
    }

    /// `MATMUL_MX`: streams data in groups that share a scale through the array into PSUM.
    MatmulMx {
        /// Sums in PSUM.
        0x30 dst: Tensor(3, Write, At(0x28), 0x27), Quoted;
        /// The moving data.
        0x10 src: Microscaled(Read, At(0x20), 0x26), Quoted;
        /// Rows of the array: partitions of the source.
        0x26 rows: Byte, Quoted;
        /// Columns of the array: partitions of the destination.
        0x27 columns: Byte, Quoted;
        /// As for `MATMUL`.
        0x2b sums: Flags(&["start", "stop", "accumulate"]), Quoted;
        /// Bit for each group of 32 rows.
        0x2c row_groups: Flags(&[]), Quoted = 0xf;
        /// Bit for each group of 32 columns.
        0x2d column_groups: Flags(&[]), Quoted = 0xf;
        /// Region of PSUM that is set to zero.
        0x2f zero_region: Byte, Quoted refused;
    }

    /// `QUANTIZE_MX`: gives each group of 8 partitions and 4 elements a scale, and rounds what is left.
    QuantizeMx {
        /// The results and their scales.
        0x30 dst: Microscaled(Write, At(0x23), 0x21), Quoted;
        /// Four elements for each place. That they are counted one by one is assumed.
        0x10 src: Tensor(3, Read, At(0x22), 0x21), Assumed;
        /// Partitions.
        0x21 channels: Byte, Quoted;
    }

    /// `MATMUL`: streams data through the array into PSUM.
    Matmul {
        /// Sums in PSUM.
        0x30 dst: Tensor(3, Write, Sums, 0x27), Proven;
        /// The moving data.
        0x10 src: Tensor(3, Read, At(0x20), 0x26), Proven;
        /// Rows of the array: partitions of the source.
        0x26 rows: Byte, Proven;
        /// Columns of the array: partitions of the destination.
        0x27 columns: Byte, Proven;
        /// Bit 0: first of a sum, overwrites; bit 1: last of a sum.
        0x2b sums: Flags(&["start", "stop", "accumulate"]), Proven;
        /// Which part of a binary32 enters, as for the weights.
        0x21 fp32_pass: Choice(&["none", "low", "high", "low_and_high"]), Assumed;
        /// 1 for a transposition: PSUM then gets elements of the source's type.
        0x22 transpose: Byte, Proven;
        /// Performance mode.
        0x23 mode: Byte, Quoted refused;
        /// Offset of quantised weights.
        0x24 weight_offset: Byte, Quoted refused;
        /// Offset of quantised moving data.
        0x25 moving_offset: Byte, Quoted refused;
        /// Bit for each group of 32 rows.
        0x2c row_groups: Flags(&[]), Quoted = 0xf;
        /// Bit for each group of 32 columns.
        0x2d column_groups: Flags(&[]), Quoted = 0xf;
        /// Which bus carries the moving data.
        0x2e bus: Byte, Quoted refused;
        /// Region of PSUM that is set to zero.
        0x2f zero_region: Byte, Quoted refused;
    }

    /// `COPY` and `CAST`: moves elements, the latter from one type to another.
    Copy {
        /// Elements written.
        0x2c dst: Tensor(4, Write, At(0x21), 0x22), Proven;
        /// Elements read.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Proven;
        /// Partitions.
        0x22 channels: Byte, Proven;
    }

    /// One source, one destination and an operation: reductions, cumulative sums, `RECIPROCAL`, transpositions of blocks.
    Reduce {
        /// Elements written.
        0x2c dst: Tensor(4, Write, At(0x21), 0x22), Proven;
        /// Elements read.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Proven;
        /// The operation.
        0x24 op: Alu, Quoted;
        /// Which dimensions are reduced, counted from the innermost.
        0x25 dimensions: Choice(&["none", "1", "x", "xy", "xyz", "xyzw"]), Quoted;
        /// 1: the result is multiplied by -1.
        0x23 negate: Byte, Quoted;
        /// Mask of elements.
        0x26 mask: Byte, Quoted refused;
        /// Partitions.
        0x22 channels: Byte, Proven;
    }

    /// `MEMSET`: writes one value everywhere. `RNG` and others have the same format.
    Memset {
        /// Elements written.
        0x2c dst: Tensor(4, Write, At(0x20), 0x22), Proven;
        /// The value's bits.
        0x28 value: Bits, Quoted;
        /// Elements of one partition.
        0x1c elements: Word, Proven;
        /// How it fills.
        0x24 mode: Byte, Quoted refused;
        /// Partitions.
        0x22 channels: Byte, Proven;
    }

    /// `TENSOR_TENSOR`: one operation on two operands, element by element.
    TensorTensor {
        /// Result.
        0x30 dst: Tensor(3, Write, At(0x0d), 0x0f), Proven;
        /// First operand.
        0x10 src0: Tensor(3, Read, Low(0x0c), 0x0f), Proven;
        /// Second operand.
        0x20 src1: Tensor(3, Read, High(0x0c), 0x0f), Proven;
        /// The operation.
        0x0e op: Alu, Proven;
        /// Partitions.
        0x0f channels: Byte, Proven;
    }

    /// `TENSOR_SCALAR`: `(src op0 imm0) op1 imm1`.
    TensorScalar {
        /// Result.
        0x30 dst: Tensor(3, Write, At(0x21), 0x22), Quoted;
        /// Elements read.
        0x10 src: Tensor(3, Read, At(0x20), 0x22), Quoted;
        /// First operation.
        0x24 op0: Alu, Quoted;
        /// Second operand of the first operation.
        0x28 imm0: Value, Quoted;
        /// Where the first immediate comes from.
        0x23 imm0_source: Choice(SOURCES), Quoted;
        /// Second operation.
        0x25 op1: Alu, Quoted;
        /// Second operand of the second operation.
        0x2c imm1: Value, Quoted;
        /// Where the second immediate comes from.
        0x27 imm1_source: Choice(SOURCES), Quoted;
        /// Which operations have their operands swapped.
        0x26 reverse: Flags(REVERSED), Quoted;
        /// What becomes of the accumulator.
        0x0c accumulator: Choice(ACCUMULATORS), Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `SCALAR_TENSOR_TENSOR`: `(src0 op0 imm) op1 src1`.
    ScalarTensorTensor {
        /// Result.
        0x30 dst: Tensor(2, Write, At(0x29), 0x2a), Quoted;
        /// First operand.
        0x0c src0: Tensor(2, Read, Low(0x28), 0x2a), Quoted;
        /// Second operand.
        0x18 src1: Tensor(2, Read, High(0x28), 0x2a), Quoted;
        /// First operation.
        0x24 op0: Alu, Quoted;
        /// Second operand of the first operation.
        0x3c imm: Value, Quoted;
        /// Where the immediate comes from.
        0x27 imm_source: Choice(SOURCES), Quoted;
        /// Its type.
        0x2b imm_type: Element(At(0x2b)), Quoted;
        /// Second operation.
        0x25 op1: Alu, Quoted;
        /// Which operations have their operands swapped.
        0x26 reverse: Flags(REVERSED), Quoted;
        /// What becomes of the accumulator.
        0x2c accumulator: Choice(ACCUMULATORS), Quoted;
        /// Partitions.
        0x2a channels: Byte, Quoted;
    }

    /// `ACTIVATE`: `function(scale * src + bias)`.
    Activate {
        /// Result.
        0x30 dst: Tensor(3, Write, At(0x21), 0x22), Quoted;
        /// Elements read.
        0x10 src: Tensor(3, Read, Low(0x20), 0x22), Quoted;
        /// `func_id` of a function of the loaded tables.
        0x23 function: Byte, Quoted;
        /// Factor.
        0x24 scale: Value, Quoted;
        /// Where the factor comes from.
        0x0d scale_source: Choice(SOURCES), Quoted;
        /// Addend.
        0x28 bias: Value, Quoted;
        /// Where the addend comes from.
        0x0f bias_source: Choice(BIAS_SOURCES), Quoted;
        /// Type of the addend.
        0x20 bias_type: Element(High(0x20)), Quoted;
        /// Parameter of the function.
        0x2c imm: Value, Quoted;
        /// Where the parameter comes from.
        0x0c imm_source: Choice(SOURCES), Quoted;
        /// What becomes of the accumulator.
        0x0e accumulator: Choice(ACCUMULATORS), Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `ACTIVATE_QUANTIZE`.
    ActivateQuantize {
        /// Result.
        0x30 dst: Tensor(3, Write, At(0x21), 0x22), Quoted;
        /// Elements read.
        0x10 src: Tensor(3, Read, At(0x20), 0x22), Quoted;
        /// `func_id` of a function of the loaded tables.
        0x23 function: Byte, Quoted;
        /// Factor of what is read.
        0x24 input_scale: Value, Quoted;
        /// Factor of the result.
        0x0c output_scale: Value, Quoted;
        /// Address of the addend.
        0x28 bias: Bits, Quoted;
        /// Zero point of the result.
        0x2c zero_point: Bits, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `ACTIVATION_READ_ACCUMULATOR` and `DVE_READ_ACCUMULATOR`.
    ReadAccumulator {
        /// One element in each partition.
        0x2c dst: Tensor(1, Write, At(0x20), 0x22), Quoted;
        /// Elements of one partition: 1.
        0x1c elements: Word, Quoted;
        /// 1: the result is multiplied by -1.
        0x21 negate: Byte, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `IOTA`: writes numbers.
    Iota {
        /// Elements written.
        0x2c dst: Tensor(4, Write, At(0x21), 0x22), Quoted;
        /// The numbers of the first partition.
        0x0c values: Generator, Quoted;
        /// From one partition to the next.
        0x24 per_channel: Signed, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `TENSOR_SCALAR_AFFINE_SELECT`: keeps elements where numbers compare with 0.
    AffineSelect {
        /// Result.
        0x30 dst: Tensor(2, Write, High(0x0d), 0x0c), Quoted;
        /// Elements read.
        0x24 src: Tensor(2, Read, Low(0x0d), 0x0c), Quoted;
        /// The numbers of the first partition.
        0x10 values: Generator, Quoted;
        /// From one partition to the next.
        0x3c per_channel: Signed, Quoted;
        /// How they compare with 0.
        0x0e comparison: Choice(&["greater", "at_least", "equal", "not_equal"]), Quoted;
        /// Register with what stands where they do not.
        0x0f fill_register: Byte, Quoted;
        /// Partitions.
        0x0c channels: Byte, Quoted;
    }

    /// `RANGE_SELECT`: keeps elements whose index lies within bounds.
    RangeSelect {
        /// Result.
        0x30 dst: Tensor(2, Write, High(0x0d), 0x0c), Quoted;
        /// Elements read.
        0x18 src: Tensor(2, Read, Low(0x0d), 0x0c), Quoted;
        /// Index of the first element.
        0x10 start: Value, Quoted;
        /// What stands where the index is outside.
        0x14 fill: Bits, Quoted;
        /// How the index compares with the first bound.
        0x24 comparison0: Alu, Quoted;
        /// First bound.
        0x28 bound0: Value, Quoted;
        /// Where the first bound comes from.
        0x26 bound0_source: Choice(SOURCES), Quoted;
        /// How the index compares with the second bound.
        0x25 comparison1: Alu, Quoted;
        /// Second bound.
        0x2c bound1: Value, Quoted;
        /// Where the second bound comes from.
        0x27 bound1_source: Choice(SOURCES), Quoted;
        /// What becomes of the accumulator.
        0x0e accumulator: Choice(ACCUMULATORS), Quoted;
        /// How it accumulates.
        0x0f reduction: Alu, Quoted;
        /// Partitions.
        0x0c channels: Byte, Quoted;
    }

    /// `TENSOR_SCALAR_SELECT`: elements or a scalar, by a predicate.
    Select {
        /// Result.
        0x30 dst: Tensor(3, Write, At(0x22), 0x21), Quoted;
        /// Elements read.
        0x10 src: Tensor(3, Read, At(0x22), 0x21), Quoted;
        /// What stands where the predicate does not hold.
        0x28 scalar: Value, Quoted;
        /// Where the scalar comes from.
        0x26 scalar_source: Choice(SOURCES), Quoted;
        /// The predicate.
        0x2c predicate: Bits, Quoted;
        /// Where the predicate comes from.
        0x27 predicate_source: Choice(SOURCES), Quoted;
        /// Its type.
        0x23 predicate_type: Element(At(0x23)), Quoted;
        /// 1: elements where the predicate does not hold.
        0x20 reverse: Byte, Quoted;
        /// Partitions.
        0x21 channels: Byte, Quoted;
    }

    /// `COPY_PREDICATED_SCALAR`: a scalar where the predicate does not hold; the other elements stay.
    CopyPredicatedScalar {
        /// Elements written.
        0x30 dst: Tensor(3, Write, At(0x2a), 0x22), Quoted;
        /// The predicate.
        0x10 src: Tensor(3, Read, At(0x20), 0x22), Quoted;
        /// What is written.
        0x2c scalar: Value, Quoted;
        /// Where the scalar comes from.
        0x2b scalar_source: Choice(SOURCES), Quoted;
        /// Its type.
        0x29 scalar_type: Element(At(0x29)), Quoted;
        /// 1: where the predicate holds.
        0x21 reverse: Byte, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `BATCH_NORM_STATS2` and the like, `MAX8`, `FIND_INDEX8`: a few results from many elements.
    Statistics {
        /// Result.
        0x30 dst: Tensor(2, Write, At(0x21), 0x22), Quoted;
        /// Elements read.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Quoted;
        /// A count as binary32.
        0x28 count0: Value, Quoted;
        /// A second count as binary32.
        0x2c count1: Value, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `MATCH_VALUE_LOAD`, `BATCH_NORM_PARAM_LOAD`: elements into registers of the engine.
    LoadValues {
        /// Elements read.
        0x10 src: Tensor(2, Read, At(0x20), 0x22), Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `MATCH_REPLACE8`: elements that equal those loaded become a value.
    MatchReplace {
        /// Result.
        0x2c dst: Tensor(4, Write, At(0x21), 0x22), Quoted;
        /// Elements read.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Quoted;
        /// What stands in their place.
        0x28 value: Value, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `POOL_BUFFER_LOAD`: elements of each partition into the table of the engine, as they are.
    LoadTable {
        /// Elements read.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Quoted;
        /// Index of the first element.
        0x28 start: Bits, Quoted;
        /// Bits of an index that count elements; the others must be those of the first.
        0x2c mask: Bits, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `GATHER`: elements of the table, by their indices.
    Gather {
        /// Elements written.
        0x2c dst: Tensor(4, Write, At(0x21), 0x22), Quoted;
        /// Indices.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Quoted;
        /// What becomes of elements whose index is not in the table.
        0x24 missing: Choice(&["immediate", "skip"]), Quoted;
        /// What is written for them.
        0x28 imm: Value, Quoted;
        /// 1: the table is free afterwards.
        0x25 free: Byte, Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `NONZERO_WITH_COUNT`: where elements are not 0, and how many.
    Nonzero {
        /// Indices, then padding, then the number of indices.
        0x2c dst: Tensor(3, Write, At(0x0e), 0x0c), Quoted;
        /// Elements that are looked at.
        0x10 src: Tensor(3, Read, At(0x0d), 0x0c), Quoted;
        /// Index of the first element.
        0x20 offset: Signed, Quoted;
        /// What stands between the indices and their number.
        0x28 padding: Signed, Quoted;
        /// Partitions.
        0x0c channels: Byte, Quoted;
    }

    /// `CROSS_LANE_REDUCE` and its form on bits: many partitions become one.
    CrossLaneReduce {
        /// Result, in one partition.
        0x2c dst: Tensor(4, Write, At(0x21), ONE_PARTITION), Quoted;
        /// Elements read.
        0x0c src: Tensor(4, Read, At(0x20), 0x22), Quoted;
        /// The operation.
        0x23 op: Choice(&["add", "average", "max", "or", "and", "xor"]), Quoted;
        /// What becomes one: everything, or the elements at the same place of all partitions.
        0x24 axis: Choice(&["all", "partitions"]), Quoted;
        /// Factor of each element of an average.
        0x28 scale: Value, Quoted;
        /// Partitions of the source.
        0x22 channels: Byte, Quoted;
    }

    /// `LOAD_MASK_SELECT`: where the partitions of a shuffle come from.
    LoadMask {
        /// For each of 32 partitions the one that it takes its elements from; 255 leaves it as it is.
        0x20 partitions: Array(32), Quoted;
    }

    /// `DROPOUT`: elements by chance, else 0.
    Dropout {
        /// Result.
        0x30 dst: Tensor(3, Write, At(0x21), 0x22), Quoted;
        /// Elements read.
        0x10 src: Tensor(3, Read, At(0x20), 0x22), Quoted;
        /// The rate.
        0x2c threshold: Value, Quoted;
        /// Where the rate comes from.
        0x23 threshold_source: Choice(SOURCES), Quoted;
        /// Its type; 0 is binary32.
        0x24 threshold_type: Element(At(0x24)), Quoted;
        /// Whether the rate is that of what is dropped or of what is kept.
        0x2b rate: Choice(&["drop", "keep"]), Quoted;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `MOVE`: up to eight registers of the engine.
    Move {
        /// How many.
        0x0c moves: Byte, Quoted;
        /// Type of what is moved.
        0x0d element: Element(At(0x0d)), Quoted;
        /// From registers or from the instruction.
        0x0e from: Choice(REGISTER_SOURCES), Quoted;
        /// Registers read.
        0x10 sources: Array(8), Quoted;
        /// Registers written.
        0x18 destinations: Array(8), Quoted;
        /// Eight words.
        0x20 immediates: Array(32), Quoted;
    }

    /// `ALU_OP`: one operation on registers of the engine, `src0 op src1` or `src0 op imm`.
    RegisterOperation {
        /// The operation.
        0x0c op: Alu, Quoted;
        /// Type of the operands.
        0x0d element: Element(At(0x0d)), Quoted;
        /// Type of the result, where it says one.
        0x0f result: Element(At(0x0f)), Quoted;
        /// Register of the result.
        0x14 dst: Byte, Quoted;
        /// Register of its high half, of 64 bits.
        0x15 dst_high: Byte, Quoted;
        /// Register of the first operand.
        0x10 src0: Byte, Quoted;
        /// Register of its high half, of 64 bits.
        0x11 src0_high: Byte, Quoted;
        /// Where the second operand comes from.
        0x0e from: Choice(REGISTER_SOURCES), Quoted;
        /// Register of the second operand.
        0x12 src1: Byte, Quoted;
        /// Register of its high half, of 64 bits.
        0x13 src1_high: Byte, Quoted;
        /// The second operand.
        0x18 imm: Bits, Quoted;
        /// Its high half, of 64 bits.
        0x1c imm_high: Bits, Quoted;
    }

    /// `TENSOR_LOAD` and `TENSOR_STORE`: elements of memory into registers of the engine, and back.
    RegisterMemory {
        /// The elements.
        0x0e memory: Scalars(At(0x0c)), Quoted;
        /// What a store takes them from.
        0x0d from: Choice(REGISTER_SOURCES), Quoted;
        /// A register for each element, in their order; or the elements themselves.
        0x20 registers: Array(32), Quoted;
    }

    /// The same, with the number of a variable in place of an address.
    RegisterVariable {
        /// The elements.
        0x0e memory: SymbolicScalars(At(0x0c)), Quoted;
        /// What a store takes them from.
        0x0d from: Choice(REGISTER_SOURCES), Quoted;
        /// A register for each element, in their order; or the elements themselves.
        0x20 registers: Array(32), Quoted;
    }

    /// `PSEUDO_CORE_BARRIER`: the engine waits for one of each other core of the logical core.
    CoreBarrier {
        /// Which barrier: the same number on all cores.
        0x0c id: Word, Quoted;
        /// The semaphore that the runtime takes for it.
        0x10 semaphore: Word, Quoted;
    }

    /// `SB2SB_COLLECTIVE`: elements of each core go to the other.
    Exchange {
        /// Elements written, in the other core.
        0x30 dst: Tensor(3, Write, At(0x0d), 0x21), Quoted;
        /// Elements read.
        0x10 src: Tensor(3, Read, At(0x0c), 0x21), Quoted;
        /// Cores that exchange elements.
        0x20 cores: Choice(&["one", "two", "four", "eight"]), Quoted;
        /// Partitions.
        0x21 channels: Byte, Quoted;
    }

    /// `EVENT_SEMAPHORE` and `NOP`: wait and signal, nothing else.
    EventSemaphore {
        /// A second wait and a second signal; both waits must hold.
        0x20 second: Events, Proven;
    }

    /// Instructions without operands.
    NoOperands {}

    /// `PSEUDO_DMA_DIRECT2D`: hands a transfer to the queue set of its engine.
    Dma {
        /// Where to.
        0x28 dst: Side(At(0x3f)), Proven;
        /// Where from.
        0x10 src: Side(At(0x3e)), Proven;
        /// How the rows are found.
        0x0f kind: Choice(&["direct", "indirect", "transpose", "gather_transpose"]), Proven;
        /// Class of service: has no effect on memory.
        0x0c quality: Byte, Quoted;
        /// Register with a bound for the source: its number, with 0x80 where the bound counts and 0x40 where nobody is told.
        0x26 src_bound: Byte, Assumed;
        /// Register with a bound for the destination.
        0x27 dst_bound: Byte, Assumed;
        /// The semaphore that rises at completion, and by how much: 16 in real programs.
        0x0d completion: Completion, Proven;
    }

    /// `PSEUDO_EXTENSION`: more of the transfer before it. It has no length, no wait and no signal: its operands begin behind the opcode.
    DmaExtension {
        /// Whose rows the indices find: neither bit the source's, `scatter` the destination's, `both` those of both. Then whether an index
        /// out of bounds is an error, whether indices of the destination may be equal, and the dimensions that indices count in.
        0x01 flags: Flags(&["scatter", "both", "error", "repeated", "src_y", "src_z", "dst_y", "dst_z"]), Quoted;
        /// Partitions with indices.
        0x02 channels: Byte, Quoted;
        /// What the destination becomes with what it held.
        0x03 compute: Choice(&["none", "add", "multiply", "max", "min"]), Quoted;
        /// Address of the first index of a row of the source.
        0x04 src_index: Bits, Quoted;
        /// Address of the first index of a row of the destination.
        0x08 dst_index: Bits, Quoted;
        /// Bytes that the source has.
        0x0c src_bytes: Word, Quoted;
        /// Their high half.
        0x38 src_bytes_high: Word, Quoted;
        /// Bytes that the destination has.
        0x10 dst_bytes: Word, Quoted;
        /// Their high half.
        0x3c dst_bytes_high: Word, Quoted;
        /// Bytes from one row of a tile to the next.
        0x14 tile_step: Signed, Quoted;
        /// Rows of a tile.
        0x18 tile_rows: Byte, Quoted;
        /// Columns of a tile.
        0x19 tile_columns: Byte, Quoted;
    }

    /// `PSEUDO_DMA_TRIGGER`: starts descriptors of the engine's file.
    Trigger {
        /// The queue set, or an instance of it.
        0x0c queue: Name, Quoted;
        /// What the number below says.
        0x2c by: Word, Quoted;
        /// The id of entries, or how many transfers.
        0x30 number: Word, Quoted;
    }

    /// `PSEUDO_LOAD_ACT_FUNC_SET`: loads a set of functions.
    FunctionSet {
        /// The name of the set.
        0x0c name: Name, Quoted;
    }

    /// Pseudo instructions with a name: functions, instances of queue sets.
    Named {
        /// The name.
        0x0c name: Name, Assumed;
    }

    /// Operands that nobody outside the vendor knows.
    Raw {}
}

impl DmaExtension<'_> {
    /// Whether indices find the rows of the source, and those of the destination.
    pub fn by_index(self) -> [bool; 2] {
        match self.flags() & 3 {
            0 => [true, false],
            1 => [false, true],
            _ => [true, true],
        }
    }
}

impl Dma<'_> {
    /// Kind of a transfer whose rows indices find.
    pub const INDIRECT: u8 = 1;
    /// Kind of one that is transposed besides.
    pub const GATHER_TRANSPOSE: u8 = 3;

    /// Whether indices find the rows of a side.
    pub fn has_indices(self) -> bool {
        matches!(self.kind(), Dma::INDIRECT | Dma::GATHER_TRANSPOSE)
    }

    /// Element type codes of source and destination.
    pub fn codes(self) -> (u8, u8) {
        (At(0x3e).of(self.0), At(0x3f).of(self.0))
    }

    /// Whether elements change their type on the way.
    pub fn casts(self) -> bool {
        let (source, destination) = self.codes();
        source != destination
    }
}
