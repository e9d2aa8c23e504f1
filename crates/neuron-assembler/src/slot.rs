//! Slots from text: what [`Slot`]'s `Display` writes is read back, to the same bytes. The fields of a format may come in any order.
//! In [addresses](crate::address) of transfers, names of variables are taken for their numbers.

use crate::address::{dma_side, scalars};
use crate::{AssembleError, Line, STATEMENTS};
use chipless_model::suggest;
use chipless_neuron::DraftSubgraph;
use chipless_neuron::stream::formats::{Code, Field, Kind};
use chipless_neuron::stream::{
    ALU_OPERATIONS, AluOperation, ELEMENT_CODES, ElementCode, Events, Instruction, OPCODES, Opcode,
    PSUM_BASE, SLOT_BYTES, Slot, Support, UNNAMED,
};

/// The slot of a line whose first word has been taken.
pub(crate) fn slot(
    word: &str,
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<Slot, AssembleError> {
    let unnamed = word.strip_prefix(UNNAMED);
    let byte = match (Opcode::named(word), unnamed) {
        (Some(opcode), _) => opcode.byte,
        (None, Some(digits)) => u8::from_str_radix(digits, 16)
            .map_err(|_| line.refuse(format!("`{digits}` is no byte in hexadecimal")))?,
        (None, None) => {
            let instructions = OPCODES.iter().map(|opcode| opcode.name);
            let known = STATEMENTS.iter().copied().chain(instructions);
            let hint = suggest::hint(word, known);
            return Err(line.refuse(format!(
                "`{word}` is neither a statement nor an instruction{hint}"
            )));
        }
    };
    let mut slot = Slot::new(byte);
    let fields = slot.format().fields;
    for field in fields.iter().filter(|field| field.default != 0) {
        slot.bytes_mut()[usize::from(field.at)] = field.default;
    }
    let (mut given, mut is_raw) = (Vec::new(), false);
    let mut bytes = Vec::new();
    while !line.at_end() && !line.rest().starts_with(['$', '&']) {
        let before = line.place();
        let key = line.word("a field, a wait or a signal")?;
        if key == "byte" {
            bytes.push(byte_at(line)?);
            continue;
        }
        let field = fields.iter().find(|field| field.name == key);
        if field.is_none() && key != "bytes" {
            line.back_to(before);
            let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
            let hint = suggest::hint(key, names.iter().copied());
            return Err(line.error(format!(
                "{word} has no field `{key}`; {} are its fields, and waits are written `$S[8]>=16`{hint}",
                names.join(", ")
            )));
        }
        line.expect("=")?;
        if let Some(field) = field {
            put(&mut slot, field, line, subgraph)?;
            given.push(field.name);
        } else {
            is_raw = true;
            raw(&mut slot, line)?;
        }
    }
    let missing = fields.iter().find(|field| {
        let must_be_said = matches!(
            field.kind,
            Kind::Tensor { .. }
                | Kind::Microscaled { .. }
                | Kind::Side(_)
                | Kind::Scalars(_)
                | Kind::SymbolicScalars(_)
        );
        must_be_said && !given.contains(&field.name)
    });
    let is_listed = slot.support() == Support::Listed && given.is_empty();
    if let Some(missing) = missing.filter(|_| !is_raw && !is_listed) {
        return Err(line.expected(&format!("`{}=`", missing.name)));
    }
    if let Instruction::Memset(i) = slot.decode()
        && !is_raw
        && !given.contains(&"elements")
    {
        // The count follows from the destination.
        let elements = i.dst().elements() as u32;
        slot.bytes_mut()[0x1c..0x20].copy_from_slice(&elements.to_le_bytes());
    }
    events(&mut slot, is_raw, line)?;
    while line.rest().starts_with("byte[") {
        line.word("byte")?;
        bytes.push(byte_at(line)?);
    }
    let said = slot.head.events;
    for (at, value) in bytes {
        if slot.bytes_mut()[at] != value && is_said(said, at) {
            return Err(line.error(format!(
                "`byte[{at:#04x}]={value:#04x}` is another semaphore, mode or value than that of the wait or signal before it: remove the byte"
            )));
        }
        slot.bytes_mut()[at] = value;
    }
    Ok(slot)
}

/// Whether a byte of a slot is what a wait or a signal of the line says.
fn is_said(events: Events, at: usize) -> bool {
    match at {
        0x04 | 0x05 => events.wait_mode != 0,
        0x06 | 0x07 => events.update_mode != 0,
        0x08..0x0c => events.value.get() != 0,
        _ => false,
    }
}

/// `[0x26]=0x12`: one byte of the slot, whatever stands there.
fn byte_at(line: &mut Line<'_>) -> Result<(usize, u8), AssembleError> {
    line.expect("[")?;
    let at: u8 = line.integer("a place in the slot")?;
    if usize::from(at) >= SLOT_BYTES {
        return Err(line.error(format!("a slot has {SLOT_BYTES} bytes")));
    }
    line.expect("]")?;
    line.expect("=")?;
    Ok((usize::from(at), line.integer("a byte")?))
}

/// All operands as bytes; zeros at the end may be left out.
fn raw(slot: &mut Slot, line: &mut Line<'_>) -> Result<(), AssembleError> {
    let bytes = hex(line)?;
    let size = slot.operands.len();
    let place = slot.operands.get_mut(..bytes.len());
    let place = place.ok_or_else(|| line.error(format!("a slot has {size} bytes of operands")))?;
    place.copy_from_slice(&bytes);
    Ok(())
}

fn hex(line: &mut Line<'_>) -> Result<Vec<u8>, AssembleError> {
    let digits = line.word("bytes in hexadecimal")?;
    from_hex(digits).ok_or_else(|| line.error("expected bytes in hexadecimal, two digits each"))
}

/// Bytes of their digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    bytes.collect()
}

/// Gives a field what stands in the text.
fn put(
    slot: &mut Slot,
    field: &Field,
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<(), AssembleError> {
    let bytes: Vec<u8> = match field.kind {
        Kind::Tensor {
            dimensions,
            element,
            ..
        } => {
            let code = self::element(line)?;
            line.expect("@")?;
            set(slot, element, code);
            let first = address(line)?;
            pattern(first, dimensions.into(), line)?
        }
        Kind::Microscaled { element, .. } => {
            let code = self::element(line)?;
            line.expect("@")?;
            set(slot, element, code);
            groups(line)?
        }
        Kind::Generator => {
            let base: i32 = line.integer("a first number")?;
            pattern(base.cast_unsigned(), 4, line)?
        }
        Kind::Element(code) => {
            let value = element(line)?;
            set(slot, code, value);
            return Ok(());
        }
        Kind::Alu => vec![named(
            line,
            |name| AluOperation::named(name).map(|o| o.code),
            || {
                let names: Vec<&str> = ALU_OPERATIONS.iter().map(|o| o.name).collect();
                format!("is no operation; {} are", names.join(", "))
            },
        )?],
        Kind::Byte => vec![line.integer("a number up to 255")?],
        Kind::Flags(names) => vec![flags(line, names)?],
        Kind::Choice(names) => vec![named(
            line,
            |name| Some(names.iter().position(|n| *n == name)? as u8),
            || format!("is none of {}", names.join(", ")),
        )?],
        Kind::Word | Kind::Bits => line.integer::<u32>("a number")?.to_le_bytes().to_vec(),
        Kind::Signed => line.integer::<i32>("a number")?.to_le_bytes().to_vec(),
        Kind::Value if line.rest().starts_with("0x") => {
            line.integer::<u32>("a number")?.to_le_bytes().to_vec()
        }
        Kind::Value => line.parse::<f32>("a number")?.to_le_bytes().to_vec(),
        Kind::Array(size) => {
            let bytes = hex(line)?;
            if bytes.len() != usize::from(size) {
                return Err(line.error(format!("{} bytes, expected {size}", bytes.len())));
            }
            bytes
        }
        Kind::Name => {
            let name = line.word("a name")?;
            if name.len() > usize::from(field.kind.size()) {
                return Err(line.refuse(format!("`{name}` has more than 32 bytes")));
            }
            name.bytes().collect()
        }
        Kind::Side(element) => {
            let code = self::element(line)?;
            line.expect("@")?;
            set(slot, element, code);
            let side: [u8; 22] = zerocopy::transmute!(dma_side(line, subgraph)?);
            side.to_vec()
        }
        Kind::Scalars(element) | Kind::SymbolicScalars(element) => {
            let code = self::element(line)?;
            line.expect("@")?;
            set(slot, element, code);
            scalars(line, subgraph, matches!(field.kind, Kind::Scalars(_)))?
        }
        Kind::Events | Kind::Completion => {
            return Err(line.error(format!("{} is written as waits and signals", field.name)));
        }
    };
    let at = usize::from(field.at);
    slot.bytes_mut()[at..at + bytes.len()].copy_from_slice(&bytes);
    Ok(())
}

fn set(slot: &mut Slot, place: Code, code: u8) {
    // The sums' type follows from the operation; what is written there is for the reader.
    if let Some((at, mask)) = place.place() {
        let byte = &mut slot.bytes_mut()[usize::from(at)];
        let code = code << mask.trailing_zeros();
        *byte = *byte & !mask | code & mask;
    }
}

/// A name, or a number in its place.
fn named(
    line: &mut Line<'_>,
    code: impl FnOnce(&str) -> Option<u8>,
    why: impl FnOnce() -> String,
) -> Result<u8, AssembleError> {
    let before = line.place();
    let word = line.word("a name or a number")?;
    if let Some(code) = code(word) {
        return Ok(code);
    }
    line.back_to(before);
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return line.integer("a number up to 255");
    }
    Err(line.refuse(format!("`{word}` {}", why())))
}

/// `start+stop`, or a number.
fn flags(line: &mut Line<'_>, names: &[&str]) -> Result<u8, AssembleError> {
    let mut bits = 0;
    loop {
        bits |= named(
            line,
            |name| Some(1 << names.iter().position(|n| *n == name)?),
            || format!("is none of {}", names.join(", ")),
        )?;
        if !line.eat("+") {
            return Ok(bits);
        }
    }
}

/// `fp16`
fn element(line: &mut Line<'_>) -> Result<u8, AssembleError> {
    let before = line.place();
    let name = line.word("an element type")?;
    if let Some(known) = ElementCode::named(name) {
        return Ok(known.code);
    }
    let code = name
        .strip_prefix("type0x")
        .and_then(|digits| u8::from_str_radix(digits, 16).ok());
    code.ok_or_else(|| {
        line.back_to(before);
        let names: Vec<&str> = ELEMENT_CODES.iter().map(|c| c.name).collect();
        line.refuse(format!(
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

/// `[1,0,0][64,1,1]` behind an address, or what stands in its place. Dimensions that are left out have step 1 and one element.
fn pattern(first: u32, dimensions: usize, line: &mut Line<'_>) -> Result<Vec<u8>, AssembleError> {
    let mut steps: Vec<i16> = line.list(|l| l.integer("a step"))?;
    let mut counts: Vec<u16> = line.list(|l| l.integer("a number of elements"))?;
    if steps.len() != counts.len() || steps.len() > dimensions {
        return Err(line.error(format!(
            "{} steps and {} numbers of elements, up to {dimensions} dimensions are possible",
            steps.len(),
            counts.len()
        )));
    }
    steps.resize(dimensions, 1);
    counts.resize(dimensions, 1);
    let mut bytes = first.to_le_bytes().to_vec();
    bytes.extend(steps.iter().flat_map(|step| step.to_le_bytes()));
    bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
    Ok(bytes)
}

/// `[0x4000,0x6000,4][1][512]`: where the elements and their scales start, and the first partition of scales; step; elements.
fn groups(line: &mut Line<'_>) -> Result<Vec<u8>, AssembleError> {
    let places: Vec<u32> = line.list(|l| l.integer("an address"))?;
    let steps: Vec<i8> = line.list(|l| l.integer("a step"))?;
    let counts: Vec<u16> = line.list(|l| l.integer("a number of elements"))?;
    let ([address, scales, partition], [step], [count]) = (&places[..], &steps[..], &counts[..])
    else {
        return Err(
            line.error("elements with scales are `[address,scales,partition][step][elements]`")
        );
    };
    let partition = u8::try_from(*partition)
        .map_err(|_| line.error(format!("{partition} is no partition of a quadrant")))?;
    let mut bytes = Vec::new();
    bytes.extend(address.to_le_bytes());
    bytes.extend(scales.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend([step.cast_unsigned(), partition]);
    Ok(bytes)
}

/// The waits and signals of an instruction; the last signal of a transfer is the transfer's own.
fn events(slot: &mut Slot, is_raw: bool, line: &mut Line<'_>) -> Result<(), AssembleError> {
    let (is_transfer, is_event) = match slot.decode() {
        Instruction::Dma(_) => (true, false),
        Instruction::EventSemaphore(_) => (false, true),
        Instruction::DmaExtension(_) => return Ok(()),
        _ => (false, false),
    };
    if !is_transfer {
        slot.head.events = pair(line)?;
        if is_event {
            line.eat("&");
            let second: [u8; 8] = zerocopy::transmute!(pair(line)?);
            slot.bytes_mut()[0x20..0x28].copy_from_slice(&second);
        }
        if line.rest().starts_with("$S[") {
            return Err(line.error(
                "an instruction has one wait and one signal, the wait first: put a further wait into an EVENT_SEMAPHORE in front of it",
            ));
        }
        return Ok(());
    }
    let mut all = Vec::new();
    while line.rest().starts_with("$S[") {
        all.push(event(line)?);
    }
    match all.pop() {
        Some(Event {
            update: true,
            mode: 0x15,
            index,
            value: Some(value),
        }) if value <= 255 => {
            slot.bytes_mut()[0x0d..0x0f].copy_from_slice(&[index, value as u8]);
        }
        None if is_raw => {}
        _ => {
            return Err(line
                .error("a transfer ends with the semaphore that it raises: `$S[8]+=16@complete`"));
        }
    }
    for event in all {
        if !event.join(&mut slot.head.events) {
            return Err(
                line.error("an instruction has one wait and one signal, which share their value")
            );
        }
    }
    Ok(())
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
    let index = line.integer("a semaphore from 0 to 255")?;
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
    if line.eat("?") {
        let update = match line.word("wait or update")? {
            "wait" => false,
            "update" => true,
            other => return Err(line.refuse(format!("`{other}` is neither wait nor update"))),
        };
        line.expect("=")?;
        let mode = line.integer("a mode")?;
        line.expect("(")?;
        let value = Some(line.integer("a value")?);
        line.expect(")")?;
        return Ok(Event {
            update,
            mode,
            index,
            value,
        });
    }
    let (mode, value) = if line.eat("++") {
        (3, None)
    } else if line.eat("--") {
        (4, None)
    } else if line.eat("+=") {
        (5, Some(line.integer("a value")?))
    } else if line.eat("-=") {
        (6, Some(line.integer("a value")?))
    } else {
        return Err(line.expected("a comparison, `++`, `--`, `+=` or `-=`"));
    };
    if !line.eat("@") {
        return Err(line.expected("`@complete` or `@read`"));
    }
    let moment = match line.word("read or complete")? {
        "read" => 0,
        "complete" => 0x10,
        other => return Err(line.refuse(format!("`{other}` is neither read nor complete"))),
    };
    Ok(Event {
        update: true,
        mode: mode | moment,
        index,
        value,
    })
}

/// A wait and a signal, each of which may be missing.
fn pair(line: &mut Line<'_>) -> Result<Events, AssembleError> {
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
    use chipless_neuron::{Variable, VariableType};
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
        let slot = slot(word, &mut line, &subgraph)?;
        line.end()?;
        Ok(slot)
    }

    #[test]
    fn instructions_read_as_they_are_listed() {
        for text in [
            "LDWEIGHTS src=fp16@0x37cfe[-1,0,-32][32,1,4] rows=128 columns=128 transpose=1 $S[8]>=16",
            "LDWEIGHTS src=bf16@0x0[-1,0,0][32,1,1] rows=64 columns=32 row_groups=0x03 column_groups=0x01",
            "MATMUL dst=fp32@psum+0x800[1,0,0][64,1,1] src=fp16@0x37f00[1,0,0][64,1,1] rows=128 columns=128 sums=start $S[5]++@complete",
            "MATMUL dst=fp32@psum+0x0[1,0,0][8,1,1] src=fp8e4@0x100[1,0,0][8,1,1] rows=64 columns=32 sums=start+stop",
            "MATMUL dst=fp32@psum+0x0[1,0,0][8,1,1] src=fp16@0x100[1,0,0][8,1,1] rows=64 columns=32 byte[0x28]=0x02",
            "COPY dst=fp32@0x4000[1,1,1,1][64,1,1,1] src=fp32@psum+0x0[1,1,1,1][64,1,1,1] channels=64 $S[5]>=1 $S[4]++@complete",
            "CAST dst=bf16@0x4000[1,1,1,1][64,1,1,1] src=fp32@0x0[2,1,1,1][64,1,1,1] channels=128 $S[5]>2",
            "MEMSET dst=fp32@0x4000[1,0,0,0][64,1,1,1] value=0x3f800000 elements=64 channels=128",
            "TENSOR_TENSOR dst=fp32@0x0[1,0,0][4,1,1] src0=fp16@0x10[1,0,0][4,1,1] src1=fp32@0x20[1,0,0][4,1,1] op=add channels=2",
            "EVENT_SEMAPHORE $S[24]>=16 & $S[4]>=1 $S[7]++@complete",
            "EVENT_SEMAPHORE $S[24]==16 $S[3]++@read & $S[4]>=1 $S[7]--@complete",
            "NOP $S[45]>=16 $S[8]++@complete",
            "NOP $S[3]+=7@read",
            "NOP & $S[3]-=7@complete",
            "NOP $S[3]?wait=0x85(7) $S[4]?update=0x97(7)",
            "PSEUDO_DMA_TRIGGER queue=qData by=1 number=4",
            "PSEUDO_FUNCTION_CALL name=layer.1 $S[3]>=4",
            "OPCODE_0xee bytes=0102 byte[0x01]=0x11",
            "PSEUDO_DMA_DIRECT2D dst=fp16@table[2]+0x0[256,1][128,1]*128 src=fp32@var[0]+0x4200[262144,1][128,1]*65536 $S[4]>=2 $S[27]+=16@complete",
            "PSEUDO_DMA_DIRECT2D dst=fp16@var[70000]+0x0[1,1][1,1]*2 src=fp16@table[1]+register[5][1,1][1,1]*2 src_bound=134 $S[27]+=16@complete",
            "PSEUDO_DMA_DIRECT2D dst=fp16@registers[4,63][1,1][1,1]*2 src=fp16@tag0x2c00[1]+0x5[1,1][1,1]*2 $S[27]+=16@complete",
            "ALU_OP op=multiply element=int32 dst=5 src0=3 from=instruction imm=0x40 $S[3]>=4",
            "TENSOR_LOAD memory=int32@table[2]+0x10[1,0][4,1] registers=0001020300000000000000000000000000000000000000000000000000000000",
            "TENSOR_STORE memory=uint8@address+0x4000[-1,8][2,2] from=instruction registers=0102030400000000000000000000000000000000000000000000000000000000 $S[1]++@complete",
            "PSEUDO_TENSOR_LOAD memory=uint64@var[4294967295]+0x8[1,0][1,1] registers=0200000000000000000000000000000000000000000000000000000000000000",
            "PSEUDO_LOAD_ACT_FUNC_SET name=exp_and_others",
            "SET_ORDERING_MODE",
            "PSEUDO_BRANCH_LABEL",
        ] {
            let slot = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(slot.to_string(), text);
        }
    }

    #[test]
    fn variables_can_be_named() {
        let text = "PSEUDO_DMA_DIRECT2D dst=fp16@var[SB][256,1][2,1]*128 src=fp16@table[SB]+0x10[256,1][2,1]*128 $S[8]+=16@complete";
        let listed = parse(text).map(|slot| slot.to_string());
        assert!(listed.is_ok_and(
            |t| t.contains("dst=fp16@var[7]+0x0[") && t.contains("src=fp16@table[1]+0x10[")
        ));
    }

    #[test]
    fn mistakes_are_placed() {
        for (text, column, why) in [
            (
                "NOPE",
                1,
                "`NOPE` is neither a statement nor an instruction; did you mean \"NOP\"?",
            ),
            (
                "NOP $S[300]>=1",
                8,
                "expected a semaphore from 0 to 255, found `300`",
            ),
            (
                "NOP $S[3]++",
                12,
                "expected `@complete` or `@read`, found the end of the line",
            ),
            (
                "NOP $S[3]++@issue",
                13,
                "`issue` is neither read nor complete",
            ),
            (
                "COPY chanels=3",
                6,
                "written `$S[8]>=16`; did you mean \"channels\"?",
            ),
            (
                "PSEUDO_DMA_DIRECT2D dst=fp16@var[sb][1,1][1,1]*1",
                34,
                "no variable is called `sb`; did you mean \"SB\"?",
            ),
            ("COPY dst=fp99@0x0[1][1] src=", 10, "no element type"),
            (
                "COPY dst=fp32@0x0[1,2][1] src=",
                27,
                "2 steps and 1 numbers",
            ),
            ("COPY dst=fp32@0x0[1][1] channels=2", 35, "expected `src=`"),
            (
                "COPY size=3",
                6,
                "COPY has no field `size`; dst, src, channels",
            ),
            (
                "PSEUDO_DMA_DIRECT2D dst=fp16@var[0][1,1][1,1]*1 src=fp16@var[0][1,1][1,1]*1",
                76,
                "ends with the semaphore",
            ),
            (
                "NOP $S[1]>=1 $S[2]>=2 $S[3]>=3",
                23,
                "an instruction has one wait and one signal",
            ),
            (
                "NOP $S[5]>=3 byte[0x05]=0x05 byte[0x08]=0x04",
                45,
                "`byte[0x08]=0x04` is another",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.column, column, "{error}");
            assert!(error.message.contains(why), "{error}");
        }
    }

    proptest! {
        /// Whatever a slot holds, its text gives the same bytes.
        #[test]
        fn every_slot_comes_back(
            opcode in any::<u8>(),
            sparse in prop::collection::vec((1usize..SLOT_BYTES, any::<u8>()), 0..8),
            all in prop::option::of(prop::collection::vec(any::<u8>(), SLOT_BYTES)),
        ) {
            let mut slot = Slot::new(opcode);
            if let Some(all) = all {
                slot.bytes_mut()[1..].copy_from_slice(&all[1..]);
            }
            for (at, byte) in sparse {
                slot.bytes_mut()[at] = byte;
            }
            let text = slot.to_string();
            let again = parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
            prop_assert_eq!(again, slot, "{}", text);
        }

        #[test]
        fn any_text_is_an_instruction_or_an_error(
            opcode in prop::sample::select(chipless_neuron::stream::OPCODES), text in "[a-z0-9$S\\[\\]@+*=><, -]{0,60}",
        ) {
            let _ = parse(&format!("{} {text}", opcode.name));
        }
    }
}
