//! Instructions as text, in the notation of the vendor's profiler where it has one:
//! `fp16@0x37cfe[-1,0,-32][32,1,4]` are elements by type, address, steps and counts, `$S[8]>=16` is a wait.

use super::{
    Dma, DmaAddress, DmaSide, DmaTarget, ElementCode, Instruction, OnChip, Opcode, Slot, Space,
    Tensor3, Tensor4,
};
use std::fmt::{self, Display, Formatter};

impl Display for Instruction<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let opcode = self.head().opcode;
        match Opcode::of(opcode) {
            Some(opcode) => f.write_str(opcode.name)?,
            None => f.write_str(&Opcode::name_of(opcode))?,
        }
        match self {
            Instruction::LoadWeights(i) => {
                write!(
                    f,
                    " src={} {}*{}",
                    Tensor(i.element, i.source.view()),
                    i.rows,
                    i.columns
                )?;
                groups(f, i.row_groups, i.column_groups)?;
                transpose(f, i.transpose)?;
            }
            Instruction::Matmul(i) => {
                let result = if i.transpose == 0 {
                    ACCUMULATOR
                } else {
                    i.element
                };
                let (source, destination) = (
                    Tensor(i.element, i.source.view()),
                    Tensor(result, i.destination.view()),
                );
                write!(
                    f,
                    " dst={destination} src={source} {}*{}",
                    i.rows, i.columns
                )?;
                groups(f, i.row_groups, i.column_groups)?;
                transpose(f, i.transpose)?;
                match i.accumulate {
                    0 => f.write_str(" accumulate"),
                    1 => f.write_str(" start"),
                    2 => f.write_str(" accumulate stop"),
                    3 => f.write_str(" start stop"),
                    flags => write!(f, " accumulate={flags:#04x}"),
                }?;
            }
            Instruction::TensorTensor(i) => {
                let (low, high) = (i.operand_elements & 0xf, i.operand_elements >> 4);
                let destination = Tensor(i.element, i.destination.view());
                write!(
                    f,
                    " dst={destination} src0={} src1={}",
                    Tensor(low, i.first.view()),
                    Tensor(high, i.second.view())
                )?;
                match i.operation {
                    ADD => write!(f, " op=add channels={}", i.partitions),
                    other => write!(f, " op={other:#04x} channels={}", i.partitions),
                }?;
            }
            Instruction::Copy(i) | Instruction::Cast(i) => {
                let destination = Tensor(i.destination_element, i.destination.view());
                write!(
                    f,
                    " dst={destination} src={} channels={}",
                    Tensor(i.source_element, i.source.view()),
                    i.partitions
                )?;
            }
            Instruction::Memset(i) => {
                let destination = Tensor(i.element, i.destination.view());
                write!(
                    f,
                    " dst={destination} value={:#x} channels={}",
                    i.value, i.partitions
                )?;
            }
            Instruction::Dma(i) => dma(f, i)?,
            Instruction::EventSemaphore(_) | Instruction::NoEffect(_) => {}
            Instruction::Other(slot) => other(f, slot)?,
        }
        for events in self.events() {
            let events = events.to_string();
            if !events.is_empty() {
                write!(f, " {events}")?;
            }
        }
        if let Instruction::Dma(i) = self {
            write!(f, " $S[{}]+={}@complete", i.semaphore, i.increment)?;
        }
        Ok(())
    }
}

/// Element type code of PSUM sums.
pub(super) const ACCUMULATOR: u8 = 0xa;
/// The operation of `TENSOR_TENSOR` that adds.
pub(crate) const ADD: u8 = 4;

/// A tensor of three or four dimensions.
struct View<'a> {
    address: u32,
    steps: &'a [zerocopy::byteorder::little_endian::I16],
    counts: &'a [zerocopy::byteorder::little_endian::U16],
}

impl Tensor3 {
    fn view(&self) -> View<'_> {
        View {
            address: self.address.get(),
            steps: &self.steps,
            counts: &self.counts,
        }
    }
}

impl Tensor4 {
    fn view(&self) -> View<'_> {
        View {
            address: self.address.get(),
            steps: &self.steps,
            counts: &self.counts,
        }
    }
}

/// An element type code and a tensor of such elements.
struct Tensor<'a>(u8, View<'a>);

impl Display for Tensor<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Tensor(code, view) = self;
        write!(f, "{}@", Element(*code))?;
        match OnChip::at(view.address) {
            Some(OnChip {
                space: Space::Psum,
                partition,
                offset,
            }) => {
                write!(
                    f,
                    "psum+{:#x}",
                    partition * super::PARTITION_STRIDE + offset
                )?;
            }
            _ => write!(f, "{:#x}", view.address)?,
        }
        list(f, view.steps)?;
        list(f, view.counts)
    }
}

/// An element type code.
struct Element(u8);

impl Display for Element {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match ElementCode::of(self.0) {
            Some(code) => f.write_str(code.name),
            None => write!(f, "type{:#x}", self.0),
        }
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, numbers: &[T]) -> fmt::Result {
    let mut separator = '[';
    for number in numbers {
        write!(f, "{separator}{number}")?;
        separator = ',';
    }
    f.write_str("]")
}

/// Row and column groups are all set in every known program: shown only where they are not.
fn groups(f: &mut Formatter<'_>, rows: u8, columns: u8) -> fmt::Result {
    if (rows, columns) == (0xf, 0xf) {
        Ok(())
    } else {
        write!(f, " row_groups={rows:#x} column_groups={columns:#x}")
    }
}

fn transpose(f: &mut Formatter<'_>, flag: u8) -> fmt::Result {
    match flag {
        0 => Ok(()),
        1 => f.write_str(" transpose"),
        other => write!(f, " transpose={other:#x}"),
    }
}

impl Display for DmaAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.target() {
            DmaTarget::Variable(id) => write!(f, "var[{id}]+{:#x}", self.offset),
            DmaTarget::Table(index) => write!(f, "table[{index}]+{:#x}", self.offset),
            DmaTarget::Register => write!(f, "register[{}]+{:#x}", self.id, self.offset),
            DmaTarget::Unknown(tag) => write!(f, "tag{tag:#x}[{}]+{:#x}", self.id, self.offset),
        }
    }
}

impl Display for DmaSide {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.address)?;
        list(f, &self.steps)?;
        list(f, &self.counts)?;
        write!(f, "*{}", self.row())
    }
}

fn dma(f: &mut Formatter<'_>, i: &Dma) -> fmt::Result {
    let (source, destination) = (Element(i.source_element), Element(i.destination_element));
    write!(
        f,
        " dst={destination}@{} src={source}@{}",
        i.destination, i.source
    )?;
    match i.kind {
        0 => {}
        1 => f.write_str(" indirect")?,
        2 => f.write_str(" transpose")?,
        3 => f.write_str(" gather-transpose")?,
        kind => write!(f, " kind={kind:#x}")?,
    }
    if (i.source_bound, i.destination_bound) != (0, 0) {
        write!(f, " bounds=R{},R{}", i.source_bound, i.destination_bound)?;
    }
    if i.quality != 0 {
        write!(f, " qos={}", i.quality)?;
    }
    Ok(())
}

/// A trigger names its queue set in text; anything else that is not known is shown as it stands.
fn other(f: &mut Formatter<'_>, slot: &Slot) -> fmt::Result {
    if slot.head.opcode == 0xc1 {
        let name = &slot.operands[..32];
        let name = &name[..name.iter().position(|b| *b == 0).unwrap_or(name.len())];
        if !name.is_empty() && name.iter().all(u8::is_ascii_graphic) {
            write!(f, " queue={}", String::from_utf8_lossy(name))?;
        }
    }
    f.write_str(" bytes=")?;
    slot.operands
        .iter()
        .try_for_each(|byte| write!(f, "{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::super::*;

    fn text(hex: &str) -> String {
        let bytes: Vec<u8> = hex
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("hex"))
            .collect();
        let mut slot = [0; SLOT_BYTES];
        slot[..bytes.len()].copy_from_slice(&bytes);
        Stream::new(&slot).slots[0].decode().to_string()
    }

    #[test]
    fn instructions_as_text() {
        let load = "01 10 00 00 05 08 00 00 10 00 00 00 00 00 00 00 fe 7c 03 00 ff ff 00 00 e0 ff 20 00 01 00 04 00 \
                    07 00 01 00 00 00 80 80 00 00 00 00 0f 0f";
        assert_eq!(
            text(load),
            "LDWEIGHTS src=fp16@0x37cfe[-1,0,-32][32,1,4] 128*128 transpose $S[8]>=16"
        );
        let matmul = "02 10 00 00 00 00 13 05 00 00 00 00 00 00 00 00 00 7f 03 00 01 00 00 00 00 00 40 00 01 00 01 00 \
                      07 00 00 00 00 00 80 80 00 00 00 01 0f 0f 00 00 00 08 00 02 01 00 00 00 00 00 40 00 01 00 01 00";
        assert_eq!(
            text(matmul),
            "MATMUL dst=fp32@psum+0x800[1,0,0][64,1,1] src=fp16@0x37f00[1,0,0][64,1,1] 128*128 start $S[5]++@complete"
        );
        let both = "a0 10 00 00 05 18 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 05 04 13 07 01";
        assert_eq!(
            text(both),
            "EVENT_SEMAPHORE $S[24]>=16 $S[4]>=1 $S[7]++@complete"
        );
        let dma = "d4 10 00 00 05 04 00 00 02 00 00 00 00 1b 10 00 00 42 00 00 00 00 00 10 00 00 04 00 01 00 00 00 \
                   80 00 01 00 00 01 00 00 00 00 00 00 02 00 00 20 00 01 00 00 01 00 00 00 80 00 01 00 80 00 0a 07";
        assert_eq!(
            text(dma),
            "PSEUDO_DMA_DIRECT2D dst=fp16@table[2]+0x0[256,1][128,1]*128 src=fp32@var[0]+0x4200[262144,1][128,1]*256 \
             $S[4]>=2 $S[27]+=16@complete"
        );
        assert_eq!(
            text("c1 10 00 00 00 00 00 00 00 00 00 00 71 53 70")[..34],
            *"PSEUDO_DMA_TRIGGER queue=qSp bytes"
        );
        assert_eq!(text("ee")[..20], *"Operation(238) bytes");
    }
}
