//! The formats of instructions: what each byte of a slot means, in one table.
//!
//! `formats!` below makes two things of every row: a view of a slot with a method for each field (what kernels use), and the
//! [`Format`] from which the listing ([`Display`](std::fmt::Display) of [`Slot`]), the assembler, the check for bytes that nobody
//! decodes ([`Slot::undecoded`]) and docs/neuron-opcodes.md come. Which opcode has which format says
//! [`OPCODES`](super::OPCODES).
//!
//! To execute one more instruction: give its opcode a format if it has none, say `Executed` in its row, and give it a meaning in
//! `kernels`. A field that is known but whose meaning is not executed is marked `refused`: a slot in which it is not 0 is refused by
//! name, like one with a byte that no field covers.

use super::{DmaSide, Events, Evidence, SLOT_BYTES, Slot};
use Direction::{Read, Write};
use chipless_model::Direction;

/// A format: its fields in the order in which the text form has them.
#[derive(Debug)]
pub struct Format {
    /// Its name.
    pub name: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// Bits of the slot that are decoded and executed, its head included.
    executed: [u8; SLOT_BYTES],
}

/// A field of a slot.
#[derive(Debug)]
pub struct Field {
    /// Its name in the text form.
    pub name: &'static str,
    /// First byte.
    pub at: u8,
    /// What stands there.
    pub kind: Kind,
    /// Where place and meaning come from.
    pub evidence: Evidence,
    /// What it is where the text form says nothing: 0 but for the groups of the matrix engine.
    pub default: u8,
    /// Whether it must be 0 in an instruction that is executed: it has a name, but what it does is not known well enough.
    pub refused: bool,
}

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Elements on the chip, in this many dimensions: address, steps, counts.
    Tensor {
        /// Dimensions: 1 to 4.
        dimensions: u8,
        /// Read or written.
        direction: Direction,
        /// Where the element type stands.
        element: Code,
        /// The byte with the number of partitions.
        partitions: u8,
    },
    /// Numbers instead of elements: a signed base, four steps, four counts.
    Generator,
    /// An element type code that belongs to no tensor.
    Element(Code),
    /// An operation of the arithmetic units, see [`ALU_OPERATIONS`](super::ALU_OPERATIONS).
    Alu,
    /// An unsigned byte.
    Byte,
    /// A byte of which each bit means something; names of the lowest bits.
    Flags(&'static [&'static str]),
    /// A byte with named values, from 0 on.
    Choice(&'static [&'static str]),
    /// An unsigned number of four bytes.
    Word,
    /// A signed number of four bytes.
    Signed,
    /// Four bytes that are a number or an address: a binary32 where that looks like one.
    Value,
    /// Four bytes, in hexadecimal.
    Bits,
    /// So many bytes, in hexadecimal.
    Array(u8),
    /// A name of up to 32 bytes, zeros behind.
    Name,
    /// One side of a transfer; where its element type stands.
    Side(Code),
    /// A second wait and a second signal.
    Events,
    /// The semaphore of a transfer, and by how much it rises.
    Completion,
}

/// Where an element type code stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A whole byte.
    At(u8),
    /// The low digit of a byte.
    Low(u8),
    /// The high digit of a byte.
    High(u8),
    /// Binary32, or with byte 0x22 set the type of byte 0x20: sums, and transposed elements, of the matrix engine.
    Sums,
}

impl Code {
    /// The code in a slot.
    pub fn of(self, slot: &Slot) -> u8 {
        let bytes = slot.bytes();
        match self {
            Code::At(at) => bytes[usize::from(at)],
            Code::Low(at) => bytes[usize::from(at)] & 0xf,
            Code::High(at) => bytes[usize::from(at)] >> 4,
            Code::Sums if bytes[0x22] == 0 => super::ACCUMULATOR,
            Code::Sums => bytes[0x20],
        }
    }

    /// The byte and the bits of it; `None` where it has none of its own.
    pub const fn place(self) -> Option<(u8, u8)> {
        match self {
            Code::At(at) => Some((at, 0xff)),
            Code::Low(at) => Some((at, 0x0f)),
            Code::High(at) => Some((at, 0xf0)),
            Code::Sums => None,
        }
    }
}

impl Kind {
    /// Bytes of it, without those of its element type.
    pub const fn size(self) -> u8 {
        match self {
            Kind::Tensor { dimensions, .. } => 4 + 4 * dimensions,
            Kind::Generator => 20,
            Kind::Element(_) => 0,
            Kind::Alu | Kind::Byte | Kind::Flags(_) | Kind::Choice(_) => 1,
            Kind::Word | Kind::Signed | Kind::Value | Kind::Bits => 4,
            Kind::Array(size) => size,
            Kind::Name => 32,
            Kind::Side(_) => 22,
            Kind::Events => 8,
            Kind::Completion => 2,
        }
    }

    /// Where its element type stands.
    pub const fn element(self) -> Option<Code> {
        match self {
            Kind::Tensor { element, .. } | Kind::Element(element) | Kind::Side(element) => {
                Some(element)
            }
            _ => None,
        }
    }
}

impl Field {
    /// Sets the bits of the field.
    const fn cover(&self, bits: &mut [u8; SLOT_BYTES]) {
        let (mut at, end) = (
            self.at as usize,
            self.at as usize + self.kind.size() as usize,
        );
        while at < end {
            bits[at] = 0xff;
            at += 1;
        }
        if let Some(element) = self.kind.element()
            && let Some((at, mask)) = element.place()
        {
            bits[at as usize] |= mask;
        }
    }
}

/// Bytes of the head, all of which are decoded.
const HEAD: usize = 12;

impl Format {
    const fn new(name: &'static str, fields: &'static [Field]) -> Format {
        let mut executed = [0; SLOT_BYTES];
        let mut at = 0;
        while at < HEAD {
            executed[at] = 0xff;
            at += 1;
        }
        let mut index = 0;
        while index < fields.len() {
            if !fields[index].refused {
                fields[index].cover(&mut executed);
            }
            index += 1;
        }
        Format {
            name,
            fields,
            executed,
        }
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A byte that keeps a slot from being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecoded {
    /// Where it stands.
    pub at: u8,
    /// What it is.
    pub value: u8,
    /// The field that it belongs to, if any is known.
    pub field: Option<&'static str>,
}

impl std::fmt::Display for Undecoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Undecoded { at, value, field } = self;
        match field {
            Some(field) => write!(
                f,
                "byte {at:#04x} ({field}) is {value:#04x}: that is not supported, only 0 is"
            ),
            None if *at == 1 => write!(
                f,
                "byte 0x01 (length in words) is {value:#04x}: that is not supported, only 0x10 is"
            ),
            None => write!(
                f,
                "byte {at:#04x} is {value:#04x}: that is not supported, nothing is known of this byte but that it is 0"
            ),
        }
    }
}

impl Slot {
    /// The first byte that is not 0 although nothing says what it does, or although what it does is not executed.
    pub fn undecoded(&self) -> Option<Undecoded> {
        let (bytes, format) = (self.bytes(), self.format());
        let strange =
            |at: &usize| bytes[*at] & !format.executed[*at] != 0 || (*at == 1 && bytes[1] != 0x10);
        let at = (0..SLOT_BYTES).find(strange)?;
        let covers = |field: &&Field| {
            let mut bits = [0; SLOT_BYTES];
            field.cover(&mut bits);
            field.refused && bits[at] != 0
        };
        let field = format.fields.iter().find(covers).map(|field| field.name);
        Some(Undecoded {
            at: at as u8,
            value: bytes[at],
            field,
        })
    }

    /// Whether [`undecoded`](Slot::undecoded) finds nothing, said quickly.
    #[inline]
    pub fn is_decoded(&self) -> bool {
        let (bytes, executed) = (self.bytes(), &self.format().executed);
        bytes[1] == 0x10
            && bytes
                .iter()
                .zip(executed)
                .fold(0, |strange, (byte, known)| strange | (byte & !known))
                == 0
    }

    /// The name at a place, as bytes: up to 32, without the zeros behind it.
    fn name_at(&self, at: usize) -> &[u8] {
        let bytes = &self.bytes()[at..at + usize::from(Kind::Name.size())];
        let size = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        &bytes[..size]
    }

    /// So many bytes from a place on.
    #[inline]
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes()[at..at + N]);
        array
    }

    /// The elements that stand in a slot.
    #[inline]
    pub(crate) fn tensor(&self, at: u8, dimensions: u8) -> Tensor {
        let bytes = &self.bytes()[usize::from(at)..];
        match dimensions {
            1 => tensor::<1>(bytes),
            2 => tensor::<2>(bytes),
            3 => tensor::<3>(bytes),
            _ => tensor::<4>(bytes),
        }
    }
}

/// Elements in so many dimensions, at the start of these bytes.
#[inline]
fn tensor<const N: usize>(bytes: &[u8]) -> Tensor {
    let bytes = &bytes[..4 + 4 * N];
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let mut tensor = Tensor {
        address: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        dimensions: N,
        steps: [0; 4],
        counts: [1; 4],
    };
    for d in 0..N {
        tensor.steps[d] = half(4 + 2 * d).cast_signed();
        tensor.counts[d] = half(4 + 2 * (N + d));
    }
    tensor
}

/// Elements of one partition; all partitions of an instruction are walked alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// On-chip address of the first element, see [`OnChip`](super::OnChip).
    pub address: u32,
    /// Dimensions; of those behind them the step is 0 and the count 1.
    pub dimensions: usize,
    /// Elements from one index to the next, innermost first.
    pub steps: [i16; 4],
    /// Elements of each dimension, innermost first.
    pub counts: [u16; 4],
}

impl Tensor {
    /// Elements in each partition. Only four counts of 65535 reach beyond 2^63, and none beyond 2^64.
    pub fn elements(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(*n)).product()
    }
}

/// Numbers from a base on: base plus the sum of index times step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// The first number.
    pub base: i32,
    /// From one index to the next, innermost first.
    pub steps: [i16; 4],
    /// Indices of each dimension, innermost first.
    pub counts: [u16; 4],
}

/// The method of a field.
macro_rules! get {
    ($(#[$doc:meta])* $field:ident $at:literal Tensor($dimensions:literal, $direction:expr, $element:expr, $partitions:literal)) => {
        $(#[$doc])* pub fn $field(self) -> Tensor { self.0.tensor($at, $dimensions) }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Generator) => {
        $(#[$doc])* pub fn $field(self) -> Generator {
            let Tensor { address, steps, counts, .. } = self.0.tensor($at, 4);
            Generator { base: address.cast_signed(), steps, counts }
        }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Element($code:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { $code.of(self.0) } };
    ($(#[$doc:meta])* $field:ident $at:literal Alu) => { $(#[$doc])* pub const fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Byte) => { $(#[$doc])* pub const fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Flags($names:expr)) => { $(#[$doc])* pub const fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Choice($names:expr)) => { $(#[$doc])* pub const fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Signed) => { $(#[$doc])* pub fn $field(self) -> i32 { i32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Word) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Value) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Bits) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Array($size:literal)) => { $(#[$doc])* pub fn $field(self) -> [u8; $size] { self.0.array($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Name) => { $(#[$doc])* pub fn $field(self) -> &'a [u8] { self.0.name_at($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Side($element:expr)) => { $(#[$doc])* pub fn $field(self) -> DmaSide { zerocopy::transmute!(self.0.array::<22>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Events) => { $(#[$doc])* pub fn $field(self) -> Events { zerocopy::transmute!(self.0.array::<8>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Completion) => { $(#[$doc])* pub const fn $field(self) -> (u8, u8) { (self.0.byte($at), self.0.byte($at + 1)) } };
}

/// The kind of a field.
macro_rules! kind {
    (Tensor($dimensions:literal, $direction:expr, $element:expr, $partitions:literal)) => {
        Kind::Tensor { dimensions: $dimensions, direction: $direction, element: $element, partitions: $partitions }
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
        pub(super) enum FormatId {
            $(#[doc = stringify!($name)] $name,)*
        }

        impl FormatId {
            /// Its table.
            pub(super) const fn format(self) -> &'static Format {
                match self { $(FormatId::$name => $name::FORMAT,)* }
            }

            /// A slot of this format.
            pub(super) const fn view(self, slot: &Slot) -> Instruction<'_> {
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
        0x0e from: Choice(&["registers", "instruction"]), Quoted;
        /// Registers read.
        0x10 sources: Array(8), Quoted;
        /// Registers written.
        0x18 destinations: Array(8), Quoted;
        /// Eight words.
        0x20 immediates: Array(32), Quoted;
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
        /// Register with a bound for the source.
        0x26 src_bound: Byte, Quoted refused;
        /// Register with a bound for the destination.
        0x27 dst_bound: Byte, Quoted refused;
        /// The semaphore that rises at completion, and by how much: 16 in real programs.
        0x0d completion: Completion, Proven;
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

    /// Pseudo instructions with a name: functions, sets of functions, instances of queue sets.
    Named {
        /// The name.
        0x0c name: Name, Assumed;
    }

    /// Operands that nobody outside the vendor knows.
    Raw {}
}

impl Dma<'_> {
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
