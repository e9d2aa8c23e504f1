//! Instructions from text: what [`Instruction`]'s `Display` writes is read back. In addresses of transfers, names of
//! variables are taken for their numbers.

use super::{AssembleError, Line};
use crate::def::VariableType;
use crate::stream::{
    Copy, Dma, DmaAddress, DmaSide, ELEMENT_CODES, EventSemaphore, Events, Head, Instruction,
    LoadWeights, Matmul, Memset, OPCODES, PSUM_BASE, Slot, Tensor3, Tensor4, TensorTensor,
};
use crate::write::DraftSubgraph;
use zerocopy::FromZeros;

/// The operation of `TENSOR_TENSOR` that adds.
const ADD: u8 = 4;

/// The instruction of a line whose first word has been taken.
pub(super) fn slot(
    word: &str,
    start: &str,
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<Slot, AssembleError> {
    let byte = match OPCODES.iter().find(|o| o.name == word) {
        Some(opcode) => opcode.byte,
        None if start.starts_with("Operation(") => {
            line.expect("(")?;
            let byte = line.integer("an opcode")?;
            line.expect(")")?;
            byte
        }
        None => {
            return Err(line.error(format!(
                "`{word}` is neither a statement nor an instruction"
            )));
        }
    };
    let mut slot = Slot::new_zeroed();
    slot.head = Head::new(byte, Events::default());
    match slot.decode() {
        Instruction::LoadWeights(i) => {
            Ok(Instruction::LoadWeights(&load_weights(*i, line)?).encode())
        }
        Instruction::Matmul(i) => Ok(Instruction::Matmul(&matmul(*i, line)?).encode()),
        Instruction::TensorTensor(i) => {
            Ok(Instruction::TensorTensor(&tensor_tensor(*i, line)?).encode())
        }
        Instruction::Copy(i) => Ok(Instruction::Copy(&copy(*i, line)?).encode()),
        Instruction::Cast(i) => Ok(Instruction::Cast(&copy(*i, line)?).encode()),
        Instruction::Memset(i) => Ok(Instruction::Memset(&memset(*i, line)?).encode()),
        Instruction::EventSemaphore(i) => {
            Ok(Instruction::EventSemaphore(&event_semaphore(*i, line)?).encode())
        }
        Instruction::Dma(i) => Ok(Instruction::Dma(&dma(*i, line, subgraph)?).encode()),
        Instruction::NoEffect(i) | Instruction::Other(i) => other(*i, line),
    }
}

fn load_weights(mut i: LoadWeights, line: &mut Line<'_>) -> Result<LoadWeights, AssembleError> {
    line.expect("src=")?;
    (i.element, i.source) = tensor3(line)?;
    (i.rows, i.columns) = array(line)?;
    (i.row_groups, i.column_groups) = groups(line)?;
    i.transpose = transpose(line)?;
    i.head.events = events(line)?;
    Ok(i)
}

fn matmul(mut i: Matmul, line: &mut Line<'_>) -> Result<Matmul, AssembleError> {
    line.expect("dst=")?;
    // The sums' type follows from the operation; what is written here is for the reader.
    i.destination = tensor3(line)?.1;
    line.expect("src=")?;
    (i.element, i.source) = tensor3(line)?;
    (i.rows, i.columns) = array(line)?;
    (i.row_groups, i.column_groups) = groups(line)?;
    i.transpose = transpose(line)?;
    i.accumulate = if line.eat("accumulate=") {
        line.integer("flags")?
    } else if line.eat("accumulate stop") {
        2
    } else if line.eat("accumulate") {
        0
    } else if line.eat("start stop") {
        3
    } else {
        line.expect("start")?;
        1
    };
    i.head.events = events(line)?;
    Ok(i)
}

fn tensor_tensor(mut i: TensorTensor, line: &mut Line<'_>) -> Result<TensorTensor, AssembleError> {
    line.expect("dst=")?;
    (i.element, i.destination) = tensor3(line)?;
    line.expect("src0=")?;
    let (first, second);
    (first, i.first) = tensor3(line)?;
    line.expect("src1=")?;
    (second, i.second) = tensor3(line)?;
    i.operand_elements = first | second << 4;
    line.expect("op=")?;
    i.operation = if line.eat("add") {
        ADD
    } else {
        line.integer("an operation")?
    };
    i.partitions = channels(line)?;
    i.head.events = events(line)?;
    Ok(i)
}

fn copy(mut i: Copy, line: &mut Line<'_>) -> Result<Copy, AssembleError> {
    line.expect("dst=")?;
    (i.destination_element, i.destination) = tensor4(line)?;
    line.expect("src=")?;
    (i.source_element, i.source) = tensor4(line)?;
    i.partitions = channels(line)?;
    i.head.events = events(line)?;
    Ok(i)
}

fn memset(mut i: Memset, line: &mut Line<'_>) -> Result<Memset, AssembleError> {
    line.expect("dst=")?;
    (i.element, i.destination) = tensor4(line)?;
    line.expect("value=")?;
    i.value = line.integer::<u32>("the value's bits")?.into();
    i.partitions = channels(line)?;
    i.head.events = events(line)?;
    Ok(i)
}

fn event_semaphore(
    mut i: EventSemaphore,
    line: &mut Line<'_>,
) -> Result<EventSemaphore, AssembleError> {
    i.head.events = events(line)?;
    i.second = events(line)?;
    Ok(i)
}

/// The last signal is the transfer's own, the others are the instruction's.
fn dma(
    mut i: Dma,
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<Dma, AssembleError> {
    line.expect("dst=")?;
    i.destination_element = element(line)?;
    i.destination = dma_side(line, subgraph)?;
    line.expect("src=")?;
    i.source_element = element(line)?;
    i.source = dma_side(line, subgraph)?;
    i.kind = if line.eat("indirect") {
        1
    } else if line.eat("transpose") {
        2
    } else if line.eat("gather-transpose") {
        3
    } else if line.eat("kind=") {
        line.integer("a kind")?
    } else {
        0
    };
    if line.eat("bounds=R") {
        i.source_bound = line.integer("a register")?;
        line.expect(",")?;
        line.expect("R")?;
        i.destination_bound = line.integer("a register")?;
    }
    if line.eat("qos=") {
        i.quality = line.integer("a class")?;
    }
    let mut waits_and_signals = Vec::new();
    while !line.at_end() {
        waits_and_signals.push(event(line)?);
    }
    match waits_and_signals.pop() {
        Some(Event {
            update: true,
            mode: 0x15,
            index,
            value: Some(value),
        }) if value <= 255 => {
            (i.semaphore, i.increment) = (index, value as u8);
        }
        _ => {
            return Err(line
                .error("a transfer ends with the semaphore that it raises: `$S[8]+=16@complete`"));
        }
    }
    for event in waits_and_signals {
        if !event.join(&mut i.head.events) {
            return Err(
                line.error("an instruction has one wait and one signal, which share their value")
            );
        }
    }
    Ok(i)
}

/// An instruction whose operands are not known: as bytes, or none at all.
fn other(mut slot: Slot, line: &mut Line<'_>) -> Result<Slot, AssembleError> {
    if line.eat("queue=") {
        line.word("a queue set")?;
    }
    if line.eat("bytes=") {
        let digits = line.word("the operands in hexadecimal")?;
        let byte = |at: usize| {
            digits
                .get(2 * at..2 * at + 2)
                .and_then(|d| u8::from_str_radix(d, 16).ok())
        };
        let bytes: Option<Vec<u8>> = (0..slot.operands.len()).map(byte).collect();
        match bytes {
            Some(bytes) if digits.len() == 2 * bytes.len() => slot.operands.copy_from_slice(&bytes),
            _ => {
                return Err(line.error(format!(
                    "expected {} bytes in hexadecimal",
                    slot.operands.len()
                )));
            }
        }
    }
    slot.head.events = events(line)?;
    Ok(slot)
}

/// `fp16@`
fn element(line: &mut Line<'_>) -> Result<u8, AssembleError> {
    let name = line.word("an element type")?;
    line.expect("@")?;
    if let Some(known) = ELEMENT_CODES.iter().find(|c| c.name == name) {
        return Ok(known.code);
    }
    let code = name
        .strip_prefix("type0x")
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    code.ok_or_else(|| {
        let names: Vec<&str> = ELEMENT_CODES.iter().map(|c| c.name).collect();
        line.error(format!(
            "`{name}` is no element type; {} are",
            names.join(", ")
        ))
    })
}

/// `0x37f00` or `psum+0x800`
fn address(line: &mut Line<'_>) -> Result<u32, AssembleError> {
    if !line.eat("psum") {
        return line.integer("an address");
    }
    let offset: u32 = if line.eat("+") {
        line.integer("an offset")?
    } else {
        0
    };
    offset
        .checked_add(PSUM_BASE)
        .ok_or_else(|| line.error("the offset leaves PSUM"))
}

/// `fp16@0x37f00[1,0,0][64,1,1]`
fn tensor3(line: &mut Line<'_>) -> Result<(u8, Tensor3), AssembleError> {
    let (element, address) = (element(line)?, address(line)?);
    let steps = numbers::<i16, 3>(line)?.map(Into::into);
    let counts = numbers::<u16, 3>(line)?.map(Into::into);
    Ok((
        element,
        Tensor3 {
            address: address.into(),
            steps,
            counts,
        },
    ))
}

fn tensor4(line: &mut Line<'_>) -> Result<(u8, Tensor4), AssembleError> {
    let (element, address) = (element(line)?, address(line)?);
    let steps = numbers::<i16, 4>(line)?.map(Into::into);
    let counts = numbers::<u16, 4>(line)?.map(Into::into);
    Ok((
        element,
        Tensor4 {
            address: address.into(),
            steps,
            counts,
        },
    ))
}

fn numbers<T: TryFrom<i128>, const N: usize>(line: &mut Line<'_>) -> Result<[T; N], AssembleError> {
    let list = line.list(|l| l.integer("a number"))?;
    list.try_into()
        .map_err(|list: Vec<T>| line.error(format!("{} numbers, expected {N}", list.len())))
}

/// `128*64`: rows and columns.
fn array(line: &mut Line<'_>) -> Result<(u8, u8), AssembleError> {
    let rows = line.integer("rows")?;
    line.expect("*")?;
    Ok((rows, line.integer("columns")?))
}

fn groups(line: &mut Line<'_>) -> Result<(u8, u8), AssembleError> {
    if !line.eat("row_groups=") {
        return Ok((0xf, 0xf));
    }
    let rows = line.integer("a mask")?;
    line.expect("column_groups=")?;
    Ok((rows, line.integer("a mask")?))
}

fn transpose(line: &mut Line<'_>) -> Result<u8, AssembleError> {
    if line.eat("transpose=") {
        return line.integer("a flag");
    }
    Ok(u8::from(line.eat("transpose")))
}

fn channels(line: &mut Line<'_>) -> Result<u8, AssembleError> {
    line.expect("channels=")?;
    line.integer("a number of partitions")
}

/// `table[2]+0x80[256,1][128,1]*256`; instead of a number the name of a variable.
fn dma_side(line: &mut Line<'_>, subgraph: &DraftSubgraph<'_>) -> Result<DmaSide, AssembleError> {
    let kind = line.word("var, table or register")?;
    line.expect("[")?;
    let variable = subgraph
        .variables
        .get(line.rest().split(']').next().unwrap_or_default());
    let id = variable.and_then(|v| v.var_id);
    let (id, tag) = match (kind, id) {
        ("var", Some(id)) => (u16::try_from(id).ok(), 0x1000),
        ("table", Some(id)) => {
            let tables = subgraph
                .variables
                .values()
                .filter(|v| v.kind == Some(VariableType::DgeTable));
            let index = tables
                .flat_map(|t| &t.list)
                .position(|listed| *listed == id);
            (
                Some(
                    index.ok_or_else(|| line.error("the table does not list this variable"))?
                        as u16,
                ),
                0x2000,
            )
        }
        ("var", None) => (None, 0x1000),
        ("table", None) => (None, 0x2000),
        ("register", _) => (None, 0x2800),
        (other, _) => {
            let tag = other
                .strip_prefix("tag0x")
                .and_then(|digits| u16::from_str_radix(digits, 16).ok());
            (
                None,
                tag.ok_or_else(|| {
                    line.error(format!("`{other}` is none of var, table, register"))
                })?,
            )
        }
    };
    let id = match id {
        Some(id) => {
            line.word("a variable")?;
            id
        }
        None => line.integer("a variable or a number")?,
    };
    line.expect("]")?;
    let offset: u32 = if line.eat("+") {
        line.integer("an offset")?
    } else {
        0
    };
    let steps = numbers::<i32, 2>(line)?.map(Into::into);
    let counts = numbers::<u16, 2>(line)?.map(Into::into);
    line.expect("*")?;
    let row: u32 = line.integer("bytes of a row")?;
    let row_bytes = match row {
        1..=0xffff => row as u16,
        0x10000 => 0,
        _ => return Err(line.error("a row has 1 to 65536 bytes")),
    };
    let address = DmaAddress {
        offset: offset.into(),
        id: id.into(),
        tag: tag.into(),
    };
    Ok(DmaSide {
        address,
        steps,
        counts,
        row_bytes: row_bytes.into(),
    })
}

/// One wait or one signal.
struct Event {
    update: bool,
    mode: u8,
    index: u8,
    value: Option<u32>,
}

impl Event {
    /// Adds it to a pair; `false` where the pair has one already, or has another value.
    fn join(&self, events: &mut Events) -> bool {
        let taken = if self.update {
            events.update_mode != 0
        } else {
            events.wait_mode != 0
        };
        let alone = events.wait_mode == 0 && events.update_mode == 0;
        if taken
            || !alone
                && self
                    .value
                    .is_some_and(|v| v != events.value.get() && events.value.get() != 0)
        {
            return false;
        }
        // A wait comes before its signal.
        if !self.update && events.update_mode != 0 {
            return false;
        }
        if let Some(value) = self.value {
            events.value = value.into();
        }
        if self.update {
            (events.update_mode, events.update_index) = (self.mode, self.index);
        } else {
            (events.wait_mode, events.wait_index) = (self.mode, self.index);
        }
        true
    }
}

/// `$S[45]>=16`, `$S[8]++@complete`, `$S[3]+=7@read`.
fn event(line: &mut Line<'_>) -> Result<Event, AssembleError> {
    line.expect("$S[")?;
    let index = line.integer("a semaphore")?;
    line.expect("]")?;
    for (sign, mode) in [("==", 1), (">=", 5), (">", 4)] {
        if line.eat(sign) {
            return Ok(Event {
                update: false,
                mode,
                index,
                value: Some(line.integer("a value")?),
            });
        }
    }
    let (mode, value) = if line.eat("++") {
        (3, None)
    } else if line.eat("--") {
        (4, None)
    } else if line.eat("+=") {
        (5, Some(line.integer("a value")?))
    } else {
        return Err(line.expected("a comparison, `++`, `--` or `+=`"));
    };
    line.expect("@")?;
    let moment = match line.word("read or complete")? {
        "read" => 0,
        "complete" => 0x10,
        other => return Err(line.error(format!("`{other}` is neither read nor complete"))),
    };
    Ok(Event {
        update: true,
        mode: mode | moment,
        index,
        value,
    })
}

/// A wait and a signal, each of which may be missing.
fn events(line: &mut Line<'_>) -> Result<Events, AssembleError> {
    let mut events = Events::default();
    while line.rest().starts_with("$S[") {
        let before = line.place();
        if !event(line)?.join(&mut events) {
            line.back_to(before);
            break;
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::def::Variable;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Slot, AssembleError> {
        let mut subgraph = DraftSubgraph::default();
        subgraph.variables.insert(
            "SB".into(),
            Variable {
                var_id: Some(7),
                ..Variable::default()
            },
        );
        let table = Variable {
            kind: Some(VariableType::DgeTable),
            list: vec![9, 7],
            ..Variable::default()
        };
        subgraph.variables.insert("T".into(), table);
        let mut line = Line::new(text, 1);
        let word = line.word("a statement")?;
        let slot = slot(word, text, &mut line, &subgraph)?;
        line.end()?;
        Ok(slot)
    }

    #[test]
    fn instructions_read_as_they_are_listed() {
        for text in [
            "LDWEIGHTS src=fp16@0x37cfe[-1,0,-32][32,1,4] 128*128 transpose $S[8]>=16",
            "LDWEIGHTS src=bf16@0x0[-1,0,0][32,1,1] 64*32 row_groups=0x3 column_groups=0x1",
            "MATMUL dst=fp32@psum+0x800[1,0,0][64,1,1] src=fp16@0x37f00[1,0,0][64,1,1] 128*128 start $S[5]++@complete",
            "MATMUL dst=fp32@psum+0x0[1,0,0][8,1,1] src=fp8e4@0x100[1,0,0][8,1,1] 64*32 accumulate stop",
            "MATMUL dst=fp32@psum+0x0[1,0,0][8,1,1] src=fp16@0x100[1,0,0][8,1,1] 64*32 accumulate",
            "COPY dst=fp32@0x4000[1,1,1,1][64,1,1,1] src=fp32@psum+0x0[1,1,1,1][64,1,1,1] channels=64 $S[5]>=1 $S[4]++@complete",
            "CAST dst=bf16@0x4000[1,1,1,1][64,1,1,1] src=fp32@0x0[2,1,1,1][64,1,1,1] channels=128 $S[5]>2",
            "MEMSET dst=fp32@0x4000[1,0,0,0][64,1,1,1] value=0x3f800000 channels=128",
            "TENSOR_TENSOR dst=fp32@0x0[1,0,0][4,1,1] src0=fp16@0x10[1,0,0][4,1,1] src1=fp32@0x20[1,0,0][4,1,1] op=add channels=2",
            "EVENT_SEMAPHORE $S[24]>=16 $S[4]>=1 $S[7]++@complete",
            "EVENT_SEMAPHORE $S[24]==16 $S[3]++@read $S[4]>=1 $S[7]--@complete",
            "NOP $S[45]>=16 $S[8]++@complete",
            "NOP $S[3]+=7@read",
            "PSEUDO_DMA_DIRECT2D dst=fp16@table[2]+0x0[256,1][128,1]*128 src=fp32@var[0]+0x4200[262144,1][128,1]*65536 $S[4]>=2 $S[27]+=16@complete",
            "SET_ORDERING_MODE",
            "PSEUDO_BRANCH_LABEL",
        ] {
            let slot = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(slot.decode().to_string(), text);
        }
    }

    #[test]
    fn variables_can_be_named() {
        let text = "PSEUDO_DMA_DIRECT2D dst=fp16@var[SB][256,1][2,1]*128 src=fp16@table[SB]+0x10[256,1][2,1]*128 $S[8]+=16@complete";
        let listed = parse(text).map(|slot| slot.decode().to_string());
        assert!(listed.is_ok_and(
            |t| t.contains("dst=fp16@var[7]+0x0[") && t.contains("src=fp16@table[1]+0x10[")
        ));
    }

    #[test]
    fn mistakes_are_placed() {
        for (text, column, why) in [
            ("NOPE", 5, "neither a statement nor an instruction"),
            ("NOP $S[300]>=1", 8, "a semaphore"),
            ("COPY dst=fp99@0x0[1][1] src=", 15, "no element type"),
            (
                "COPY dst=fp32@0x0[1,2][1] src=",
                23,
                "2 numbers, expected 4",
            ),
            (
                "PSEUDO_DMA_DIRECT2D dst=fp16@var[0][1,1][1,1]*1 src=fp16@var[0][1,1][1,1]*1",
                76,
                "ends with the semaphore",
            ),
            ("NOP $S[1]>=1 $S[2]>=2 $S[3]>=3", 23, "the end of the line"),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains(why), "{error}");
        }
    }

    proptest! {
        /// Whatever can be printed in the canonical form comes back; no text makes the parser panic.
        #[test]
        fn bytes_of_unknown_instructions_survive(operands in prop::collection::vec(any::<u8>(), 52)) {
            let hex = crate::header::hex(&operands);
            let text = format!("HALT bytes={hex} $S[1]>=2");
            let slot = parse(&text).map_err(|e| TestCaseError::fail(e.to_string()))?;
            prop_assert_eq!(slot.decode().to_string(), text);
        }

        #[test]
        fn any_text_is_an_instruction_or_an_error(
            opcode in prop::sample::select(OPCODES), text in "[a-z0-9$S\\[\\]@+*=><, -]{0,60}",
        ) {
            let _ = parse(&format!("{} {text}", opcode.name));
        }
    }
}
