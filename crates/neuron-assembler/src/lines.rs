//! Which line of the text each part of the program comes from, so that what is found in the program is shown in the text.

use chipless_model::Place;
use chipless_neuron::Engine;
use std::collections::HashMap;

/// The lines of a text, by member of the file.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    members: HashMap<String, Member>,
}

#[derive(Clone, Debug, Default)]
struct Member {
    /// Where the bytes of each line begin, in order.
    pieces: Vec<(u64, usize)>,
    /// Lines of what JSON declares, by pointer.
    values: HashMap<String, usize>,
    /// Whether the member is given as text: then each piece is one of its own lines, behind a `|`.
    is_text: bool,
}

impl Lines {
    /// Bytes of a member from `offset` on.
    pub(crate) fn bytes(&mut self, member: &str, offset: usize, line: usize) {
        let member = self.members.entry(member.to_owned()).or_default();
        member.pieces.push((offset as u64, line));
    }

    /// A line of a member that is text.
    pub(crate) fn text(&mut self, member: &str, offset: usize, line: usize) {
        self.bytes(member, offset, line);
        if let Some(member) = self.members.get_mut(member) {
            member.is_text = true;
        }
    }

    /// An instruction of an engine.
    pub(crate) fn instruction(
        &mut self,
        subgraph: &str,
        engine: Engine,
        offset: usize,
        line: usize,
    ) {
        self.bytes(
            &format!("{subgraph}/{}.bin", engine.file_name()),
            offset,
            line,
        );
    }

    /// A descriptor of an engine, or a transfer of one: the pointer of its JSON.
    pub(crate) fn descriptor(
        &mut self,
        subgraph: &str,
        engine: Engine,
        pointer: String,
        line: usize,
    ) {
        self.value(
            format!("{subgraph}/{}.json", engine.file_name()),
            pointer,
            line,
        );
    }

    /// A variable or queue set of a subgraph.
    pub(crate) fn definition(&mut self, subgraph: &str, pointer: String, line: usize) {
        self.value(format!("{subgraph}/def.json"), pointer, line);
    }

    fn value(&mut self, member: String, pointer: String, line: usize) {
        let member = self.members.entry(member).or_default();
        member.values.insert(pointer, line);
    }

    /// The line and column, from 1, of a place of the packed file; `None` where no single line says what stands there.
    pub fn of(&self, place: &Place) -> Option<(u32, u32)> {
        let member = self.members.get(&*place.part)?;
        let number = |line: usize| u32::try_from(line).ok();
        if member.is_text {
            let (line, column) = place.position?;
            let (_, line) = member.pieces.get((line as usize).checked_sub(1)?)?;
            return Some((number(*line)?, column.saturating_add(1)));
        }
        if let Some(offset) = place.offset {
            let behind = member.pieces.partition_point(|(start, _)| *start <= offset);
            let (_, line) = member.pieces.get(behind.checked_sub(1)?)?;
            return Some((number(*line)?, 1));
        }
        // What stands within a value stands in its line.
        let mut pointer = place.item.as_str();
        loop {
            if let Some(line) = member.values.get(pointer) {
                return Some((number(*line)?, 1));
            }
            (pointer, _) = pointer.rsplit_once('/')?;
        }
    }
}
