//! Formats of instructions that work on elements.

use super::{
    Code, Direction, Field, Format, Generator, Kind, Microscaled, Tensor, get, kind, views,
};
use crate::stream::{Evidence, Slot};
use Code::{At, High, Low, Sums};
use Direction::{Read, Write};

/// Where an immediate comes from.
const SOURCES: &[&str] = &["instruction", "address", "register"];
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

views! {
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

    /// `QUANTIZE_MX`: gives each group of 8 partitions and 4 elements a scale, and rounds what is left.
    QuantizeMx {
        /// The results and their scales.
        0x30 dst: Microscaled(Write, At(0x23), 0x21), Quoted;
        /// Four elements for each place. That they are counted one by one is assumed.
        0x10 src: Tensor(3, Read, At(0x22), 0x21), Assumed;
        /// Partitions.
        0x21 channels: Byte, Quoted;
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

    /// `INDIRECT_COPY`: within each 16 partitions, runs of elements by the indices that lie across them.
    IndirectCopy {
        /// Elements written: a run for each index.
        0x2c dst: Tensor(4, Write, At(0x21), 0x22), Quoted;
        /// Address of the indices, with bit 29 set: uint16, one in each partition before the second in the first.
        0x0c index: Bits, Quoted;
        /// Address of the elements.
        0x10 data: Bits, Quoted;
        /// Their type.
        0x20 data_type: Element(At(0x20)), Quoted;
        /// Elements of each partition that are read by indices.
        0x26 size: Word, Quoted;
        /// Elements of each partition that are written.
        0x14 elements: Word, Quoted;
        /// Elements of a run.
        0x23 run: Byte, Quoted;
        /// Elements of a run that is scattered.
        0x24 scattered: Byte, Quoted refused;
        /// Partitions.
        0x22 channels: Byte, Quoted;
    }

    /// `GET_SEQUENCE_BOUNDS`: for each element where the run of elements equal to it begins, and for each where it ends.
    SequenceBounds {
        /// The first elements, then those behind the last; the highest dimension has 2.
        0x20 dst: Tensor(3, Write, At(0x0f), 0x0c), Quoted;
        /// Numbers of segments; 0 belongs to none.
        0x10 src: Tensor(3, Read, At(0x0e), 0x0c), Quoted;
        /// Partitions: 1.
        0x0c channels: Byte, Quoted;
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
}
