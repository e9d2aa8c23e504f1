//! Every opcode: its name, its [format](super::formats), who executes it, and where that is known from.
//!
//! docs/neuron-opcodes.md is made of this table.

use super::formats::{Format, FormatId, Instruction};
use super::{Evidence, Slot};
use crate::graph::Engine;

/// An opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opcode {
    /// Byte 0 of the slot.
    pub byte: u8,
    /// Its name.
    pub name: &'static str,
    /// What its operands are.
    format: FormatId,
    /// Who executes it.
    pub engines: Engines,
    /// Where its operands may live.
    pub operands: Operands,
    /// The first and the last generation of the hardware that has it.
    pub generations: (Generation, Generation),
    /// What Chipless does with it.
    pub support: Support,
    /// Where name and number come from, and for what is executed its meaning.
    pub evidence: Evidence,
    /// What else is known.
    pub remark: &'static str,
}

/// A generation of `NeuronCores`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Trainium 1, Inferentia 2.
    V2,
    /// Trainium 2.
    V3,
    /// Trainium 3.
    V4,
    /// Not for sale.
    V5,
}

impl Generation {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Generation::V2 => "NeuronCore-v2",
            Generation::V3 => "NeuronCore-v3",
            Generation::V4 => "NeuronCore-v4",
            Generation::V5 => "NeuronCore-v5",
        }
    }
}

/// Which engines execute an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engines(u8);

impl Engines {
    /// By letters: `P` tensor (pe), `A` scalar (act), `V` vector (dve), `G` `GpSimd` (pool), `S` any sequencer.
    const fn new(letters: &str) -> Engines {
        let (letters, mut bits, mut index) = (letters.as_bytes(), 0, 0);
        while index < letters.len() {
            bits |= match letters[index] {
                b'P' => 1 << Engine::Pe.index(),
                b'A' => 1 << Engine::Act.index(),
                b'V' => 1 << Engine::Dve.index(),
                b'G' => 1 << Engine::Pool.index(),
                _ => 0xff,
            };
            index += 1;
        }
        Engines(bits)
    }

    /// Whether an engine is among them.
    pub const fn has(self, engine: Engine) -> bool {
        self.0 & 1 << engine.index() != 0
    }

    /// Their names.
    pub fn names(self) -> String {
        if self.0 == 0xff {
            return "any".to_owned();
        }
        let all = [Engine::Pe, Engine::Act, Engine::Dve, Engine::Pool];
        let names: Vec<&str> = all
            .into_iter()
            .filter(|e| self.has(*e))
            .map(Engine::name)
            .collect();
        names.join(", ")
    }
}

/// Where operands may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// State buffer or PSUM; `GpSimd` never reaches PSUM.
    Any,
    /// State buffer only.
    StateBuffer,
    /// State buffer or PSUM, but not both sources in PSUM.
    OneInPsum,
    /// Sources in the state buffer, sums in PSUM.
    Matrix,
}

/// What Chipless does with an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Executes it.
    Executed,
    /// Knows that it has no effect on memory: waits and signals count, nothing else.
    NoEffect,
    /// Lists it; a functional run that reaches one stops there.
    Listed,
}

impl Support {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Support::Executed => "executed",
            Support::NoEffect => "no effect on memory",
            Support::Listed => "listed",
        }
    }
}

macro_rules! opcodes {
    ($($byte:literal $name:literal $format:ident $engines:ident $operands:ident $first:ident $last:ident $support:ident $evidence:ident $remark:literal;)*) => {
        /// Every opcode with a name, by byte.
        pub static OPCODES: &[Opcode] = &[$(Opcode {
            byte: $byte,
            name: $name,
            format: FormatId::$format,
            engines: Engines::new(stringify!($engines)),
            operands: Operands::$operands,
            generations: (Generation::$first, Generation::$last),
            support: Support::$support,
            evidence: Evidence::$evidence,
            remark: $remark,
        },)*];
    };
}

opcodes! {
    0x01 "LDWEIGHTS" LoadWeights P Matrix V2 V5 Executed Proven "";
    0x02 "MATMUL" Matmul P Matrix V2 V5 Executed Proven "";
    0x03 "PE_REG_WRITE" Raw P Any V2 V5 Listed Quoted "";
    0x04 "WEIGHT_MASK" Raw P Any V2 V5 Listed Quoted "no longer maintained";
    0x05 "WEIGHT_SHIFT" Raw P Any V2 V5 Listed Quoted "no longer maintained";
    0x06 "LDTAGS" Raw P Any V3 V5 Listed Quoted "";
    0x07 "MATMUL_SPARSE" Raw P Any V3 V5 Listed Quoted "";
    0x08 "PE_MANAGE_SEED" Raw P Any V4 V5 Listed Quoted "";
    0x09 "LDWEIGHTS_MX" LoadWeightsMx P Matrix V4 V5 Executed Assumed "";
    0x0a "MATMUL_MX" MatmulMx P Matrix V4 V5 Executed Assumed "";
    0x21 "ACTIVATE" Activate A Any V2 V5 Executed Quoted "";
    0x22 "ACTIVATE_QUANTIZE" ActivateQuantize A Any V2 V5 Listed Quoted "";
    0x23 "ACTIVATION_TABLE_LOAD" NoOperands A Any V2 V5 NoEffect Proven "loads the set of functions that the engine file names";
    0x24 "ACTIVATION_READ_ACCUMULATOR" ReadAccumulator A Any V2 V5 Executed Quoted "";
    0x25 "ACTIVATE2" Raw A Any V4 V5 Listed Quoted "";
    0x26 "ACTIVATE_MULTIPASS" Raw A Any V5 V5 Listed Quoted "";
    0x30 "EXPONENTIAL" TensorScalar V Any V4 V5 Executed Assumed "of src less imm0; the last digits are those of the exact function";
    0x41 "TENSOR_TENSOR" TensorTensor VGA OneInPsum V2 V5 Executed Proven "addition proven, other operations quoted";
    0x42 "TENSOR_REDUCE" Reduce V Any V2 V5 Executed Quoted "in order of the pattern";
    0x43 "TENSOR_SCALAR" TensorScalar VGA Any V2 V5 Executed Quoted "";
    0x44 "TENSOR_SCALAR_PTR" TensorScalar VGA Any V2 V5 Listed Quoted "no longer maintained";
    0x45 "POOL" Raw VG Any V2 V5 Listed Quoted "";
    0x46 "COPY" Copy VAG Any V2 V5 Executed Proven "";
    0x47 "CAST" Copy VAG Any V2 V5 Executed Proven "";
    0x48 "RECIPROCAL" Reduce V Any V2 V5 Executed Quoted "";
    0x49 "MEMSET" Memset VG Any V2 V5 Executed Proven "";
    0x4a "REG_LOAD" Memset VG Any V2 V5 Listed Quoted "no longer maintained";
    0x4b "REG_STORE" Memset VG Any V2 V5 Listed Quoted "no longer maintained";
    0x4c "REG_SHUFFLE" Memset VG Any V2 V5 Listed Quoted "no longer maintained";
    0x4d "RNG" Memset VG Any V2 V5 Listed Quoted "";
    0x4e "TENSOR_CUMULATIVE" Reduce V Any V2 V5 Executed Quoted "";
    0x4f "TENSOR_SCALAR_PTR_MULTI" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x51 "TENSOR_TENSOR_BITVEC" TensorTensor VGA OneInPsum V2 V5 Executed Quoted "";
    0x52 "TENSOR_REDUCE_BITVEC" Reduce V Any V2 V5 Executed Quoted "";
    0x53 "TENSOR_SCALAR_BITVEC" TensorScalar V Any V2 V5 Executed Quoted "";
    0x54 "TENSOR_SCALAR_PTR_BITVEC" TensorScalar V Any V2 V5 Listed Quoted "no longer maintained";
    0x58 "MAX_POOL_SELECT" Raw VG Any V2 V5 Listed Quoted "";
    0x5e "TENSOR_CUMULATIVE_BITVEC" Reduce V Any V2 V5 Listed Quoted "";
    0x5f "TENSOR_SCALAR_PTR_MULTI_BITVEC" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x60 "BATCH_NORM_STATS" Statistics V Any V2 V5 Listed Quoted "no longer maintained";
    0x61 "BATCH_NORM_STATS2" Statistics V Any V2 V5 Executed Quoted "";
    0x62 "BATCH_NORM_AGGREGATE" Statistics V Any V2 V5 Executed Quoted "";
    0x63 "BATCH_NORM_GRAD_ACCUMULATE" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x64 "BATCH_NORM_PARAM_LOAD" LoadValues V Any V2 V5 Listed Quoted "no longer maintained";
    0x65 "BATCH_NORM_BACK_PROP" TensorTensor V Any V2 V5 Listed Quoted "";
    0x66 "LOAD_PARAMETER_RAM" Raw V Any V2 V5 Listed Quoted "";
    0x67 "POOL_BUFFER_LOAD" LoadTable G StateBuffer V2 V5 Executed Quoted "how experts are picked in mixture models";
    0x68 "GATHER" Gather G StateBuffer V2 V5 Executed Quoted "by the table that the last POOL_BUFFER_LOAD filled";
    0x69 "LOAD_MASK_SELECT" LoadMask V Any V2 V5 Executed Quoted "";
    0x6a "STREAM_SHUFFLE" Reduce V Any V2 V5 Executed Quoted "by the last LOAD_MASK_SELECT";
    0x6b "STREAM_TRANSPOSE" Reduce V Any V2 V5 Executed Quoted "";
    0x6c "MAX8" Statistics V Any V2 V5 Executed Quoted "";
    0x6d "MATCH_VALUE_LOAD" LoadValues V Any V2 V5 Executed Quoted "";
    0x6e "FIND_INDEX8" Statistics V Any V2 V5 Executed Quoted "";
    0x6f "MATCH_REPLACE8" MatchReplace V Any V2 V5 Executed Quoted "";
    0x70 "TENSOR_SCALAR_IMM_LD" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x71 "TENSOR_SCALAR_IMM_LD_BITVEC" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x72 "COPY_PREDICATED" TensorTensor V OneInPsum V2 V5 Executed Quoted "";
    0x73 "ROI_ALIGN" Raw G Any V2 V5 Listed Quoted "no longer maintained";
    0x74 "TENSOR_SCALAR_ADDR" Raw G StateBuffer V2 V5 Listed Quoted "";
    0x76 "RAND" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x77 "RAND_GET_STATE" Raw V Any V2 V5 Listed Quoted "";
    0x78 "RAND_SET_STATE" Raw V Any V2 V5 Listed Quoted "";
    0x79 "EMBEDDING_UPDATE" Raw G Any V2 V5 Listed Quoted "";
    0x7a "LOAD_POOL_ARGUMENT" Raw G Any V2 V5 Listed Quoted "";
    0x7b "TENSOR_DEQUANTIZE" Raw G Any V2 V5 Listed Quoted "";
    0x7c "CROSS_LANE_REDUCE" CrossLaneReduce G StateBuffer V2 V5 Executed Quoted "partition by partition; the order of the hardware is not guaranteed";
    0x7d "CROSS_LANE_REDUCE_BITVEC" CrossLaneReduce G StateBuffer V2 V5 Executed Quoted "";
    0x7e "IOTA" Iota G StateBuffer V2 V5 Executed Quoted "";
    0x7f "DROPOUT" Dropout V Any V2 V5 Executed Quoted "";
    0x81 "JPEG_DECODE" Raw G Any V3 V5 Listed Quoted "no longer maintained";
    0x82 "TRANSPOSE_BATCH_NORM_STATS2" Statistics V Any V2 V5 Listed Quoted "";
    0x83 "TRANSPOSE_TENSOR_REDUCE" Reduce V Any V2 V5 Listed Quoted "";
    0x84 "TRANSPOSE_TENSOR_REDUCE_BITVEC" Reduce V Any V2 V5 Listed Quoted "";
    0x85 "CUSTOM_OP_HEADER" Raw G Any V2 V5 Listed Quoted "";
    0x86 "CUSTOM_OP_PAYLOAD" Raw G Any V2 V5 Listed Quoted "";
    0x87 "TENSOR_SCALAR_PTR_MULTI_DUAL" Raw V Any V2 V2 Listed Quoted "no longer maintained";
    0x88 "TENSOR_SCALAR_PTR_MULTI_DUAL_BITVEC" Raw V Any V2 V2 Listed Quoted "no longer maintained";
    0x8a "TENSOR_TENSOR_ADD_BF16" Raw V Any V2 V2 Listed Quoted "";
    0x8b "TENSOR_TENSOR_MULT_BF16" Raw V Any V2 V2 Listed Quoted "";
    0x8c "TENSOR_REDUCE_ADD_BF16" Raw V Any V2 V2 Listed Quoted "";
    0x8d "TENSOR_REDUCE_MAX_BF16" Raw V Any V2 V2 Listed Quoted "";
    0x8e "BATCH_NORM_PARAM_LOAD2" Raw V Any V2 V5 Listed Quoted "";
    0x8f "TENSOR_TENSOR_SUB_BF16" Raw V Any V2 V2 Listed Quoted "";
    0x92 "TENSOR_SCALAR_AFFINE_SELECT" AffineSelect G StateBuffer V2 V5 Executed Quoted "";
    0x93 "TRANSPOSE_TENSOR_SCALAR" TensorScalar VGA Any V2 V5 Listed Quoted "";
    0x94 "BATCH_NORM_GRAD_ACCUMULATE2" Raw V Any V2 V5 Listed Quoted "";
    0x95 "MODIFY_POOL_CONFIG" Raw G Any V2 V5 Listed Quoted "";
    0x96 "SORT" Raw G Any V2 V5 Listed Quoted "";
    0x98 "TENSOR_SCALAR_SELECT" Select V Any V2 V5 Executed Quoted "";
    0x99 "CAST_PREDICATED" TensorTensor V OneInPsum V2 V5 Executed Quoted "";
    0x9a "TENSOR_SCALAR_CACHE_REDUCE" TensorScalar V Any V2 V5 Executed Quoted "";
    0x9b "DVE_READ_ACCUMULATOR" ReadAccumulator V Any V2 V5 Executed Quoted "";
    0x9c "TENSOR_REDUCE_RANGE_CHECK" Raw V Any V2 V5 Listed Quoted "no longer maintained";
    0x9d "SCALAR_TENSOR_TENSOR" ScalarTensorTensor V OneInPsum V2 V5 Executed Quoted "";
    0x9e "SCALAR_TENSOR_TENSOR_BITVEC" ScalarTensorTensor V OneInPsum V2 V5 Executed Quoted "";
    0x9f "ENGINE_NOP" NoOperands S Any V2 V5 Listed Quoted "";
    0xa0 "EVENT_SEMAPHORE" EventSemaphore S Any V2 V5 Executed Proven "";
    0xa1 "HALT" NoOperands S Any V2 V5 Listed Quoted "";
    0xa2 "DRAIN" NoOperands S Any V2 V5 Listed Quoted "";
    0xa3 "INSTRUCTION_FLUSH" NoOperands S Any V2 V5 Listed Quoted "";
    0xa4 "NOP" EventSemaphore S Any V2 V5 Executed Proven "";
    0xa5 "WRITE" Raw S Any V2 V5 Listed Quoted "";
    0xa6 "NOTIFY" Raw S Any V2 V5 Listed Quoted "";
    0xa7 "MOVE" Move S Any V2 V5 Executed Quoted "";
    0xa8 "ALU_OP" RegisterOperation S Any V2 V5 Executed Quoted "";
    0xa9 "COMPARE_BRANCH" CompareBranch S Any V2 V5 Listed Quoted "which place a target names is not public";
    0xaa "TENSOR_LOAD" RegisterMemory S Any V2 V5 Executed Quoted "";
    0xab "TENSOR_STORE" RegisterMemory S Any V2 V5 Executed Quoted "";
    0xb0 "EVENT_SEMAPHORE_RANGE_CLEAR" Raw S Any V2 V5 Listed Quoted "";
    0xb1 "SET_ORDERING_MODE" NoOperands S Any V2 V5 NoEffect Proven "numbers come out right without it";
    0xb2 "MOVE_SHAPE" Raw S Any V2 V5 Listed Quoted "";
    0xb3 "POLL_SEM" Raw S Any V2 V5 Listed Quoted "";
    0xb4 "TEST_EVENT_SEM" Raw S Any V4 V5 Listed Quoted "";
    0xb5 "BRANCH_PREFETCH_HINT" Raw S Any V2 V5 Listed Quoted "";
    0xb6 "COMPACT_CONTROL_INST" Raw S Any V5 V5 Listed Quoted "";
    0xb8 "DMAMEMCPY" Raw S Any V2 V5 Listed Quoted "";
    0xb9 "DMA_MEMCPY2" Raw S Any V5 V5 Listed Quoted "";
    0xba "DMA_IMMEDIATE" Raw S Any V5 V5 Listed Quoted "";
    0xbb "DMA_INDIRECT" Raw S Any V2 V5 Listed Quoted "";
    0xbc "RANGE_SELECT" RangeSelect V Any V3 V5 Executed Quoted "";
    0xbd "DMA_TRANSPOSE" Raw S Any V3 V5 Listed Quoted "";
    0xbe "GET_SEQUENCE_BOUNDS" SequenceBounds G StateBuffer V3 V5 Executed Quoted "";
    0xbf "SB2SB_COLLECTIVE" Exchange G StateBuffer V3 V5 Executed Quoted "between two cores; that they wait for each other before and after is assumed";
    0xc1 "PSEUDO_DMA_TRIGGER" Trigger S Any V2 V5 Executed Quoted "";
    0xc2 "PSEUDO_DMA_REARM" Raw S Any V2 V5 Listed Quoted "";
    0xc3 "PSEUDO_DMA_BARRIER" Raw S Any V2 V5 Listed Quoted "";
    0xc4 "PSEUDO_DMA_MEMCPY" Raw S Any V2 V5 Listed Quoted "";
    0xc5 "PSEUDO_SEMAPHORE_SET" Raw S Any V2 V5 Listed Quoted "";
    0xc6 "PSEUDO_LOAD_ACT_FUNC_SET" FunctionSet S Any V2 V5 NoEffect Quoted "ACTIVATE behind it takes the functions of this set";
    0xc7 "PSEUDO_TRIGGER_ALL_REDUCE" Raw S Any V2 V5 Listed Quoted "";
    0xc8 "PSEUDO_TRIGGER_COLLECTIVE" Raw S Any V2 V5 Listed Quoted "";
    0xc9 "PSEUDO_READ_VAR_ADDR" Raw S Any V2 V5 Listed Quoted "";
    0xca "PSEUDO_EMBEDDING_UPDATE" Raw S Any V2 V5 Listed Quoted "";
    0xcb "PSEUDO_SEND_RECV" Raw S Any V2 V5 Listed Quoted "";
    0xcc "PSEUDO_BRANCH_LABEL" NoOperands S Any V2 V5 NoEffect Proven "marks a place for branches";
    0xcd "PSEUDO_TENSOR_STORE" RegisterVariable S Any V2 V5 Executed Quoted "";
    0xce "PSEUDO_TENSOR_LOAD" RegisterVariable S Any V2 V5 Executed Quoted "";
    0xcf "PSEUDO_DMA_SWAP_QUEUE_SET" Named S Any V2 V5 Executed Assumed "";
    0xd0 "PSEUDO_SET_RNG_SEED" Raw S Any V2 V5 Listed Quoted "";
    0xd1 "PSEUDO_FUNCTION_BEGIN" Named S Any V2 V5 Executed Assumed "";
    0xd2 "PSEUDO_FUNCTION_RETURN" NoOperands S Any V2 V5 Executed Assumed "";
    0xd3 "PSEUDO_FUNCTION_CALL" Named S Any V2 V5 Executed Assumed "";
    0xd4 "PSEUDO_DMA_DIRECT2D" Dma S Any V2 V5 Executed Proven "";
    0xd5 "PSEUDO_SYNC_BARRIER" Raw S Any V2 V5 Listed Quoted "";
    0xd6 "PSEUDO_RANGE_CHECK" Raw S Any V2 V5 Listed Documented "";
    0xd7 "PSEUDO_JPEG_DECODE" Raw S Any V3 V5 Listed Quoted "";
    0xd8 "PSEUDO_CORE_BARRIER" CoreBarrier S Any V2 V5 Executed Quoted "the k-th of each core meet; its own semaphore is left as it is";
    0xd9 "PSEUDO_TRIGGER_COLLECTIVE2" Raw S Any V2 V5 Listed Quoted "";
    0xda "PSEUDO_EXTENSION" DmaExtension S Any V2 V5 Executed Quoted "of the PSEUDO_DMA_DIRECT2D before it; of others it is not executed";
    0xdb "PSEUDO_CUR_PROCESSING_RANK_ID" Raw S Any V2 V5 Listed Quoted "";
    0xdc "PSEUDO_GID_LOAD" Raw S Any V2 V5 Listed Quoted "";
    0xdd "PSEUDO_BRANCH_PREFETCH_HINT" Raw S Any V2 V5 Listed Quoted "";
    0xde "PSEUDO_TENSOR_COMPLETION" Raw S Any V2 V5 Listed Quoted "";
    0xdf "PSEUDO_INST" Raw S Any V2 V5 Listed Quoted "second opcode at 0x0c; 1 ends the program";
    0xe0 "SPARSITY_COMPRESS" Raw V Any V4 V5 Listed Quoted "";
    0xe1 "SPARSITY_COMPRESS_TAG" Raw V Any V4 V5 Listed Quoted "";
    0xe2 "RAND2" Raw V Any V4 V5 Listed Quoted "";
    0xe3 "QUANTIZE_MX" QuantizeMx V StateBuffer V4 V5 Executed Quoted "";
    0xe4 "CONV_LUT_LOAD" Raw G Any V3 V5 Listed Quoted "";
    0xe5 "TENSOR_TENSOR_SCAN" ScalarTensorTensor V OneInPsum V2 V5 Executed Quoted "";
    0xe6 "TENSOR_SCALAR_CACHE_CUMULATIVE" TensorScalar V Any V2 V5 Executed Quoted "";
    0xe7 "INDIRECT_COPY" IndirectCopy G StateBuffer V2 V5 Executed Quoted "";
    0xe8 "COPY_PREDICATED_SCALAR" CopyPredicatedScalar V Any V2 V5 Executed Quoted "";
    0xe9 "DVE_READ_INDICES" Memset V Any V3 V5 Listed Quoted "";
    0xea "SELECT_REDUCE" ScalarTensorTensor V OneInPsum V2 V5 Executed Assumed "src0 is the predicate, imm stands where it does not hold";
    0xf0 "EXTENDED_INST" Raw G Any V2 V5 Listed Quoted "";
    0xf1 "DMA_GATHER_TRANSPOSE" Raw G Any V3 V5 Listed Quoted "";
    0xf2 "NONZERO_WITH_COUNT" Nonzero G StateBuffer V3 V5 Executed Quoted "of partitions 0, 16, 32 and so on; what it writes to others is not public: they keep what they held";
    0xf3 "TENSOR_TENSOR_INT_WIDE" Raw VG Any V5 V5 Listed Quoted "";
    0xf4 "TENSOR_SCALAR_INT_WIDE" Raw VG Any V5 V5 Listed Quoted "";
}

/// Where the opcode of a byte stands in [`OPCODES`], plus 1; 0 for a byte without a name.
static BY_BYTE: [u8; 256] = {
    let (mut places, mut index) = ([0; 256], 0);
    while index < OPCODES.len() {
        places[OPCODES[index].byte as usize] = index as u8 + 1;
        index += 1;
    }
    places
};

impl Opcode {
    /// The opcode of a byte; `None` where it has no name.
    pub fn of(byte: u8) -> Option<&'static Opcode> {
        OPCODES.get(usize::from(BY_BYTE[usize::from(byte)]).wrapping_sub(1))
    }

    /// The opcode of a name.
    pub fn named(name: &str) -> Option<&'static Opcode> {
        OPCODES.iter().find(|opcode| opcode.name == name)
    }

    /// Its name, or `OPCODE_0xee` for a byte without one.
    pub fn name_of(byte: u8) -> std::borrow::Cow<'static, str> {
        Opcode::of(byte).map_or_else(|| format!("{UNNAMED}{byte:02x}").into(), |o| o.name.into())
    }

    /// What its operands are.
    pub const fn format(&self) -> &'static Format {
        self.format.format()
    }
}

/// How the name of a byte without one begins.
pub const UNNAMED: &str = "OPCODE_0x";

impl Slot {
    /// Its opcode; `None` where the byte has no name.
    pub fn opcode(&self) -> Option<&'static Opcode> {
        Opcode::of(self.head.opcode)
    }

    /// What is done with it: what has no name is listed.
    pub fn support(&self) -> Support {
        self.opcode()
            .filter(|_| !self.exchanges_nothing())
            .map_or(Support::Listed, |opcode| opcode.support)
    }

    /// Whether it is a `SB2SB_COLLECTIVE` of one core, or of no partitions (bytes 0x20 and 0x21 of its format): what that means is not
    /// public, so it is listed as it stands.
    fn exchanges_nothing(&self) -> bool {
        const EXCHANGE: u8 = 0xbf;
        let [cores, channels] = [self.bytes()[0x20], self.bytes()[0x21]];
        self.head.opcode == EXCHANGE && (cores == 0 || channels == 0)
    }

    /// The format of its opcode.
    pub fn format(&self) -> &'static Format {
        self.opcode()
            .map_or(FormatId::Raw, |opcode| opcode.format)
            .format()
    }

    /// The slot with the format of its opcode.
    pub fn decode(&self) -> Instruction<'_> {
        self.opcode()
            .filter(|_| !self.exchanges_nothing())
            .map_or(FormatId::Raw, |opcode| opcode.format)
            .view(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_names_are_unique() {
        assert!(OPCODES.is_sorted_by(|a, b| a.byte < b.byte));
        for (i, opcode) in OPCODES.iter().enumerate() {
            assert!(
                OPCODES[..i].iter().all(|o| o.name != opcode.name),
                "{}",
                opcode.name
            );
            assert_eq!(Opcode::of(opcode.byte), Some(opcode));
        }
        assert_eq!(Opcode::of(0xee), None);
        assert_eq!(Opcode::name_of(0xee), "OPCODE_0xee");
    }
}
