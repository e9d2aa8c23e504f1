//! Addresses of transfers, and of elements that belong to registers, from text.

use crate::{AssembleError, Line};
use chipless_model::suggest;
use chipless_neuron::DraftSubgraph;
use chipless_neuron::VariableType;
use chipless_neuron::stream::{DmaAddress, DmaSide, DmaTarget};

/// `table[2]+0x80[256,1][128,1]*256`
pub(crate) fn dma_side(
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<DmaSide, AssembleError> {
    let address = dma_address(line, subgraph)?;
    let steps = numbers::<i32>(line)?.map(Into::into);
    let counts = numbers::<u16>(line)?.map(Into::into);
    line.expect("*")?;
    let row: u32 = line.integer("bytes of a row")?;
    let row_bytes = match row {
        1..=0xffff => row as u16,
        0x10000 => 0,
        _ => return Err(line.error("a row has 1 to 65536 bytes")),
    };
    Ok(DmaSide {
        address,
        steps,
        counts,
        row_bytes: row_bytes.into(),
    })
}

/// `var[3]+0x40[1,0][4,1]`: elements that belong to registers. An address of eight bytes, or the number of a variable and an offset.
pub(crate) fn scalars(
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
    is_address: bool,
) -> Result<Vec<u8>, AssembleError> {
    let address: [u8; 8] = if is_address {
        zerocopy::transmute!(dma_address(line, subgraph)?)
    } else {
        let before = line.place();
        let DmaTarget::Variable { id, offset } = known_target(line, subgraph)? else {
            line.back_to(before);
            return Err(line.expected("`var[`"));
        };
        zerocopy::transmute!([id.to_le_bytes(), offset.to_le_bytes()])
    };
    let steps: [i32; 2] = numbers(line)?;
    let counts: [u8; 2] = numbers(line)?;
    let mut bytes = counts.to_vec();
    bytes.extend(address);
    bytes.extend(steps.iter().flat_map(|step| step.to_le_bytes()));
    Ok(bytes)
}

/// An address of eight bytes: what is known of them, or `tag0x3000[id]+offset`.
fn dma_address(
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<DmaAddress, AssembleError> {
    let before = line.place();
    if let Some(digits) = line.word("an address")?.strip_prefix("tag0x") {
        let tag = u16::from_str_radix(digits, 16)
            .map_err(|_| line.refuse(format!("`{digits}` is no tag in hexadecimal")))?;
        line.expect("[")?;
        let id: u16 = line.integer("a number")?;
        line.expect("]")?;
        let offset: u32 = offset(line)?;
        return Ok(DmaAddress {
            offset: offset.into(),
            id: id.into(),
            tag: tag.into(),
        });
    }
    line.back_to(before);
    let target = known_target(line, subgraph)?;
    let address = target.address();
    address.ok_or_else(|| line.error(format!("{target} does not fit into an address")))
}

/// `var[3]+0x40`, `table[2]+0x40`, `table[2]+register[5]`, `registers[4,5]`, `address+0x4000`; instead of a number the name of a variable.
fn known_target(
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<DmaTarget, AssembleError> {
    let before = line.place();
    let kind = line.word("an address")?;
    match kind {
        "var" => {
            line.expect("[")?;
            let id = match named_variable(line, subgraph)? {
                Some(id) => u32::try_from(id).map_err(|_| line.error("the number is too large"))?,
                None => line.integer("a variable or a number")?,
            };
            line.expect("]")?;
            let offset = offset(line)?;
            Ok(DmaTarget::Variable { id, offset })
        }
        "table" => {
            line.expect("[")?;
            let index = match named_variable(line, subgraph)? {
                Some(id) => {
                    let tables = subgraph
                        .variables
                        .values()
                        .filter(|v| v.kind == Some(VariableType::DgeTable));
                    let place = tables
                        .flat_map(|t| &t.list)
                        .position(|listed| *listed == id);
                    place.ok_or_else(|| line.refuse("the table does not list this variable"))?
                        as u16
                }
                None => line.integer("a variable or a number")?,
            };
            line.expect("]")?;
            if !line.rest().starts_with("+register[") {
                let offset = offset(line)?;
                return Ok(DmaTarget::Table { index, offset });
            }
            line.expect("+")?;
            line.word("register")?;
            line.expect("[")?;
            let register = line.integer("a register")?;
            line.expect("]")?;
            Ok(DmaTarget::TableRegister { index, register })
        }
        "registers" => {
            let list: Vec<u8> = line.list(|l| l.integer("a register"))?;
            let [low, high] = list[..] else {
                return Err(line.error(format!("{} registers, expected 2", list.len())));
            };
            Ok(DmaTarget::Registers { low, high })
        }
        "address" => {
            line.expect("+")?;
            Ok(DmaTarget::Absolute(line.integer("an address")?))
        }
        other => {
            line.back_to(before);
            Err(line.refuse(format!(
                "`{other}` is none of var, table, registers, address"
            )))
        }
    }
}

/// The number of a variable whose name stands here; nothing where a number does.
fn named_variable(
    line: &mut Line<'_>,
    subgraph: &DraftSubgraph<'_>,
) -> Result<Option<u64>, AssembleError> {
    if line.rest().starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    let name = line.word("a variable or a number")?;
    let known = subgraph.variables.get(name).and_then(|v| v.var_id);
    known.map(Some).ok_or_else(|| {
        let hint = suggest::hint(name, names(subgraph));
        line.refuse(format!("no variable is called `{name}`{hint}"))
    })
}

/// Names of the variables of a subgraph.
pub(crate) fn names<'s>(subgraph: &'s DraftSubgraph<'_>) -> impl Iterator<Item = &'s str> {
    subgraph.variables.keys().map(|name| &**name)
}

/// `+0x40`, or nothing.
fn offset(line: &mut Line<'_>) -> Result<u32, AssembleError> {
    if line.eat("+") {
        line.integer("an offset")
    } else {
        Ok(0)
    }
}

fn numbers<T: TryFrom<i128>>(line: &mut Line<'_>) -> Result<[T; 2], AssembleError> {
    let list = line.list(|l| l.integer("a number"))?;
    list.try_into()
        .map_err(|list: Vec<T>| line.error(format!("{} numbers, expected 2", list.len())))
}
