//! Slots as text, in the notation of the vendor's profiler where it has one: `fp16@0x37cfe[-1,0,-32][32,1,4]` are elements by type,
//! address, steps and counts, `$S[8]>=16` is a wait.
//!
//! The text of a slot is made from [its format](super::formats) and says all 64 bytes: fields by name, then waits and signals, then
//! whatever the names cannot say as `byte[0x26]=0x12`. The assembler reads it back to the same bytes. What is not executed is shown as
//! it stands.

use super::formats::{Code, Field, Kind, Tensor};
use super::{
    AluOperation, DmaAddress, DmaSide, DmaTarget, ElementCode, Events, Instruction, OnChip, Opcode,
    PSUM_BASE, SLOT_BYTES, Scalars, Slot, Space, Support,
};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&Opcode::name_of(self.head.opcode))?;
        self.write_operands(f, " ")
    }
}

/// What a slot does, without the name of its operation.
pub(crate) struct Details<'s>(pub(crate) &'s Slot);

impl Display for Details<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write_operands(f, "")
    }
}

impl Slot {
    /// Fields, waits and signals, and the bytes that none of them says. `gap` comes before the first of them.
    fn write_operands(&self, f: &mut Formatter<'_>, gap: &'static str) -> fmt::Result {
        let mut text = Text {
            slot: self,
            said: Slot::new(self.head.opcode),
            gap,
            out: f,
        };
        if self.support() == Support::Listed {
            text.operands()?;
        } else {
            for field in self.format().fields {
                text.field(field)?;
            }
        }
        text.events()?;
        text.rest()
    }
}

/// A text in the making.
struct Text<'t, 'f> {
    slot: &'t Slot,
    /// The slot that the text so far stands for.
    said: Slot,
    gap: &'static str,
    out: &'t mut Formatter<'f>,
}

impl Text<'_, '_> {
    /// Begins the next item.
    fn item(&mut self) -> fmt::Result {
        self.out.write_str(self.gap)?;
        self.gap = " ";
        Ok(())
    }

    /// All operands as bytes, without the zeros at the end.
    fn operands(&mut self) -> fmt::Result {
        let operands = &self.slot.operands;
        let size = operands
            .iter()
            .rposition(|b| *b != 0)
            .map_or(0, |at| at + 1);
        if size > 0 {
            self.item()?;
            self.out.write_str("bytes=")?;
            for byte in &operands[..size] {
                write!(self.out, "{byte:02x}")?;
            }
        }
        self.said.operands = *operands;
        Ok(())
    }

    fn field(&mut self, field: &Field) -> fmt::Result {
        let (at, size) = (usize::from(field.at), usize::from(field.kind.size()));
        let bytes = &self.slot.bytes()[at..at + size];
        if size > 0 {
            self.said.bytes_mut()[at] = field.default;
        }
        let is_shown = match field.kind {
            Kind::Tensor { .. }
            | Kind::Microscaled { .. }
            | Kind::Generator
            | Kind::Side(_)
            | Kind::Scalars(_)
            | Kind::SymbolicScalars(_) => true,
            // Written with the waits and signals.
            Kind::Events | Kind::Completion => return Ok(()),
            Kind::Element(code) => code.of(self.slot) != 0,
            Kind::Name => name(bytes).is_some_and(|name| !name.is_empty()),
            _ => *bytes != self.said.bytes()[at..at + size],
        };
        if !is_shown {
            return Ok(());
        }
        self.item()?;
        write!(self.out, "{}=", field.name)?;
        let word = || u32::from_le_bytes(self.slot.array(at));
        let byte = bytes.first().copied().unwrap_or_default();
        match field.kind {
            Kind::Tensor {
                dimensions,
                element,
                ..
            } => {
                write!(self.out, "{}@", Element(element.of(self.slot)))?;
                let tensor = self.slot.tensor(field.at, dimensions);
                write!(self.out, "{}", Elements(tensor))?;
            }
            Kind::Microscaled { element, .. } => {
                let groups = self.slot.microscaled(field.at);
                write!(
                    self.out,
                    "{}@[{:#x},{:#x},{}][{}][{}]",
                    Element(element.of(self.slot)),
                    groups.address,
                    groups.scales,
                    groups.scale_partition,
                    groups.step,
                    groups.elements
                )?;
            }
            Kind::Generator => {
                let tensor = self.slot.tensor(field.at, 4);
                write!(self.out, "{}", tensor.address.cast_signed())?;
                list(self.out, &tensor.steps)?;
                list(self.out, &tensor.counts)?;
            }
            Kind::Element(code) => write!(self.out, "{}", Element(code.of(self.slot)))?,
            Kind::Alu => match AluOperation::of(byte) {
                Some(operation) => self.out.write_str(operation.name)?,
                None => write!(self.out, "{byte:#04x}")?,
            },
            Kind::Byte => write!(self.out, "{byte}")?,
            Kind::Flags(names) => flags(self.out, byte, names)?,
            Kind::Choice(names) => match names.get(usize::from(byte)) {
                Some(name) => self.out.write_str(name)?,
                None => write!(self.out, "{byte:#04x}")?,
            },
            Kind::Word => write!(self.out, "{}", word())?,
            Kind::Signed => write!(self.out, "{}", word().cast_signed())?,
            Kind::Value => value(self.out, word())?,
            Kind::Bits => write!(self.out, "{:#x}", word())?,
            Kind::Array(_) => bytes.iter().try_for_each(|b| write!(self.out, "{b:02x}"))?,
            Kind::Name => self.out.write_str(name(bytes).unwrap_or_default())?,
            Kind::Side(element) => {
                let side: DmaSide = zerocopy::transmute!(self.slot.array::<22>(at));
                write!(self.out, "{}@{side}", Element(element.of(self.slot)))?;
            }
            Kind::Scalars(element) | Kind::SymbolicScalars(element) => {
                let scalars: Scalars = zerocopy::transmute!(self.slot.array::<18>(at));
                write!(self.out, "{}@", Element(element.of(self.slot)))?;
                match field.kind {
                    Kind::Scalars(_) => write!(self.out, "{}", scalars.address)?,
                    _ => write!(self.out, "{}", scalars.symbolic())?,
                }
                list(self.out, &scalars.steps)?;
                list(self.out, &scalars.counts)?;
            }
            Kind::Events | Kind::Completion => {}
        }
        let bytes = &self.slot.bytes()[at..at + size];
        self.said.bytes_mut()[at..at + size].copy_from_slice(bytes);
        if let Some((at, mask)) = field.kind.element().and_then(Code::place) {
            let at = usize::from(at);
            let byte = self.slot.bytes()[at] & mask;
            let said = &mut self.said.bytes_mut()[at];
            *said = *said & !mask | byte;
        }
        Ok(())
    }

    /// Waits and signals: the instruction's own, a second pair behind `&`, and that of a transfer.
    fn events(&mut self) -> fmt::Result {
        if !self.slot.has_events() {
            return Ok(());
        }
        self.pair(self.slot.head.events, "")?;
        self.said.head.events = self.slot.head.events.said();
        match self.slot.decode() {
            Instruction::EventSemaphore(i) => {
                let second = i.second();
                self.pair(second, "& ")?;
                let said: [u8; 8] = zerocopy::transmute!(second.said());
                self.said.bytes_mut()[0x20..0x28].copy_from_slice(&said);
            }
            Instruction::Dma(i) => {
                let (semaphore, increment) = i.completion();
                self.item()?;
                write!(self.out, "$S[{semaphore}]+={increment}@complete")?;
                self.said.bytes_mut()[0x0d..0x0f].copy_from_slice(&[semaphore, increment]);
            }
            _ => {}
        }
        Ok(())
    }

    fn pair(&mut self, events: Events, mark: &str) -> fmt::Result {
        if events.wait_mode == 0 && events.update_mode == 0 {
            return Ok(());
        }
        self.item()?;
        write!(self.out, "{mark}{events}")
    }

    /// Bytes that nothing before has said.
    fn rest(&mut self) -> fmt::Result {
        for at in 0..SLOT_BYTES {
            let byte = self.slot.bytes()[at];
            if byte != self.said.bytes()[at] {
                self.item()?;
                write!(self.out, "byte[{at:#04x}]={byte:#04x}")?;
            }
        }
        Ok(())
    }
}

/// A name, if it can be written as one: printable, without the marks of the assembler, and zeros behind it.
fn name(bytes: &[u8]) -> Option<&str> {
    let size = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    let (name, rest) = bytes.split_at(size);
    let is_plain = |b: &u8| b.is_ascii_graphic() && !super::MARKS.contains(char::from(*b));
    let is_name = name.iter().all(is_plain) && rest.iter().all(|b| *b == 0);
    is_name.then(|| std::str::from_utf8(name).ok()).flatten()
}

/// Names of the bits that are set; all of them as a number where one has no name.
fn flags(out: &mut Formatter<'_>, bits: u8, names: &[&str]) -> fmt::Result {
    if u32::from(bits) >= 1 << names.len() {
        return write!(out, "{bits:#04x}");
    }
    let mut gap = "";
    for (bit, name) in names.iter().enumerate() {
        if bits & 1 << bit != 0 {
            write!(out, "{gap}{name}")?;
            gap = "+";
        }
    }
    if bits == 0 {
        out.write_char('0')
    } else {
        Ok(())
    }
}

/// A number as binary32 where it looks like one, else its bits.
fn value(out: &mut Formatter<'_>, bits: u32) -> fmt::Result {
    let value = f32::from_bits(bits);
    let looks_like_one = (1e-30..1e30).contains(&value.abs()) || bits == 0;
    if looks_like_one {
        write!(out, "{value:?}")
    } else {
        write!(out, "{bits:#x}")
    }
}

/// Elements of one partition, without their type.
struct Elements(Tensor);

impl Display for Elements {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Elements(tensor) = self;
        match OnChip::at(tensor.address).map(|at| at.space) {
            Some(Space::Psum) => write!(f, "psum+{:#x}", tensor.address - PSUM_BASE)?,
            _ => write!(f, "{:#x}", tensor.address)?,
        }
        list(f, &tensor.steps[..tensor.dimensions])?;
        list(f, &tensor.counts[..tensor.dimensions])
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

impl Display for DmaTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DmaTarget::Variable { id, offset } => write!(f, "var[{id}]+{offset:#x}"),
            DmaTarget::Table { index, offset } => write!(f, "table[{index}]+{offset:#x}"),
            DmaTarget::TableRegister { index, register } => {
                write!(f, "table[{index}]+register[{register}]")
            }
            DmaTarget::Registers { low, high } => write!(f, "registers[{low},{high}]"),
            DmaTarget::Absolute(at) => write!(f, "address+{at:#x}"),
            DmaTarget::Unknown(tag) => write!(f, "tag{tag:#x}"),
        }
    }
}

impl Display for DmaAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.target() {
            DmaTarget::Unknown(tag) => write!(f, "tag{tag:#x}[{}]+{:#x}", self.id, self.offset),
            known => write!(f, "{known}"),
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
        Stream::new(&slot).slots[0].to_string()
    }

    #[test]
    fn slots_as_text() {
        let load = "01 10 00 00 05 08 00 00 10 00 00 00 00 00 00 00 fe 7c 03 00 ff ff 00 00 e0 ff 20 00 01 00 04 00 \
                    07 00 01 00 00 00 80 80 00 00 00 00 0f 0f";
        assert_eq!(
            text(load),
            "LDWEIGHTS src=fp16@0x37cfe[-1,0,-32][32,1,4] rows=128 columns=128 transpose=1 $S[8]>=16"
        );
        let matmul = "02 10 00 00 00 00 13 05 00 00 00 00 00 00 00 00 00 7f 03 00 01 00 00 00 00 00 40 00 01 00 01 00 \
                      07 00 00 00 00 00 80 80 00 00 00 01 0f 0f 00 00 00 08 00 02 01 00 00 00 00 00 40 00 01 00 01 00";
        assert_eq!(
            text(matmul),
            "MATMUL dst=fp32@psum+0x800[1,0,0][64,1,1] src=fp16@0x37f00[1,0,0][64,1,1] rows=128 columns=128 sums=start $S[5]++@complete"
        );
        let both = "a0 10 00 00 05 18 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 05 04 13 07 01";
        assert_eq!(
            text(both),
            "EVENT_SEMAPHORE $S[24]>=16 & $S[4]>=1 $S[7]++@complete"
        );
        let dma = "d4 10 00 00 05 04 00 00 02 00 00 00 00 1b 10 00 00 42 00 00 00 00 00 10 00 00 04 00 01 00 00 00 \
                   80 00 01 00 00 01 00 00 00 00 00 00 02 00 00 20 00 01 00 00 01 00 00 00 80 00 01 00 80 00 0a 07";
        assert_eq!(
            text(dma),
            "PSEUDO_DMA_DIRECT2D dst=fp16@table[2]+0x0[256,1][128,1]*128 src=fp32@var[0]+0x4200[262144,1][128,1]*256 \
             $S[4]>=2 $S[27]+=16@complete"
        );
        assert_eq!(
            text("c1 10 00 00 00 00 00 00 00 00 00 00 71 53 70"),
            "PSEUDO_DMA_TRIGGER queue=qSp"
        );
        assert_eq!(
            text("ee 10 00 00 00 09 00 00 00 00 00 00 01 02 00 04"),
            "OPCODE_0xee bytes=01020004 byte[0x05]=0x09"
        );
        assert_eq!(text("a4"), "NOP byte[0x01]=0x00");
    }
}
