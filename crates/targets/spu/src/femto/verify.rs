//! Whether a container fits the chip that it is for.

use super::{Core, Femto, FemtoVector, Page, VectorKind, rules};
use crate::machine::Machine;
use chipless_model::{Finding, Place, Rule};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// 32-bit words of a page.
const PAGE_WORDS: u16 = 62;
/// Keys of the encryption; the number behind them stands for none.
const NO_KEY: u8 = 32;
/// The last status of a core and the last state of a bank.
const LAST_STATUS: u8 = 2;
const LAST_STATE: u8 = 5;

impl Femto {
    /// What is wrong with the container, by the chip that it names.
    pub fn verify(&self) -> Vec<Finding> {
        let mut verifier = Verifier {
            femto: self,
            findings: Vec::new(),
        };
        verifier.sequences();
        let Some(machine) = Machine::of_part(self.part) else {
            let message = format!(
                "expected part 1 (SPU-001), 3 or 4 (SPU-150), found {}",
                self.part
            );
            verifier.say(&rules::PART, self.chip_at..self.chip_at + 1, message);
            return verifier.findings;
        };
        verifier.chip(&machine);
        for vector in &self.vectors {
            verifier.vector(vector, &machine);
        }
        verifier.cores(&machine);
        verifier.pages(&machine);
        verifier.findings
    }
}

struct Verifier<'f> {
    femto: &'f Femto,
    findings: Vec<Finding>,
}

impl Verifier<'_> {
    fn say(&mut self, rule: &'static Rule, bytes: Range<usize>, message: impl Into<String>) {
        let place = Place::bytes(bytes.start as u64, bytes.len() as u64);
        self.findings.push(rule.at(place, message));
    }

    /// Sequences name vectors of the file, on the right side.
    fn sequences(&mut self) {
        let mut known: HashMap<u8, &FemtoVector> = HashMap::new();
        for vector in &self.femto.vectors {
            if known.insert(vector.id, vector).is_some() {
                let message = format!("expected each vector once, found {} again", vector.id);
                self.say(&rules::FILE, vector.offset..vector.offset + 1, message);
            }
        }
        for (number, (inputs, outputs)) in self.femto.sequences.iter().enumerate() {
            for (ids, output) in [(inputs, false), (outputs, true)] {
                let side = if output { "output" } else { "input" };
                let fits = |id: &u8| {
                    known
                        .get(id)
                        .is_some_and(|v| (v.kind == VectorKind::Output) == output)
                };
                if let Some(id) = ids.iter().find(|id| !fits(id)) {
                    let message = format!(
                        "expected {side}s of the file in sequence {number}, found vector {id}, which is none"
                    );
                    self.findings.push(
                        rules::FILE.at(Place::file().in_part("model configuration"), message),
                    );
                }
            }
        }
    }

    fn chip(&mut self, machine: &Machine) {
        let (femto, at) = (self.femto, self.femto.chip_at);
        if femto.key > NO_KEY {
            self.say(
                &rules::KEY,
                at + 1..at + 2,
                format!(
                    "expected a key from 0 to {}, or {NO_KEY} for none, found {}",
                    NO_KEY - 1,
                    femto.key
                ),
            );
        }
        if f64::from(femto.mhz) > machine.clock.mhz {
            self.say(
                &rules::CLOCK,
                at + 2..at + 4,
                format!(
                    "expected at most {} MHz for {}, found {}",
                    machine.clock.mhz, machine.title, femto.mhz
                ),
            );
        }
        if usize::from(femto.stated_pages) != femto.pages.len() {
            let place = Place::file().in_part("model configuration");
            let message = format!(
                "expected {} pages as the configuration says, found {}",
                femto.stated_pages,
                femto.pages.len()
            );
            self.findings.push(rules::SIZE.at(place, message));
        }
    }

    fn vector(&mut self, vector: &FemtoVector, machine: &Machine) {
        let (at, id) = (vector.offset, vector.id);
        if u32::from(vector.core) >= machine.core.count {
            self.say(
                &rules::VECTOR,
                at + 2..at + 3,
                format!(
                    "expected core 0 to {} of {} for vector {id}, found {}",
                    machine.core.count - 1,
                    machine.title,
                    vector.core
                ),
            );
        }
        if !matches!(vector.precision, 8 | 16) {
            self.say(
                &rules::VECTOR,
                at + 3..at + 4,
                format!(
                    "expected elements of 8 or 16 bits in vector {id}, found {}",
                    vector.precision
                ),
            );
        }
        if vector.padded_length < vector.length {
            self.say(
                &rules::VECTOR,
                at + 4..at + 8,
                format!(
                    "expected vector {id} to be padded to at least {} elements, found {}",
                    vector.length, vector.padded_length
                ),
            );
        }
        let program = machine.core.program_words;
        if vector.kind != VectorKind::Output && vector.address >= program {
            self.say(&rules::VECTOR, at + 8..at + 12, format!("expected a start below {program}, the program memory of {}, for vector {id}, found {}", machine.title, vector.address));
        }
    }

    fn cores(&mut self, machine: &Machine) {
        let mut seen = HashSet::new();
        for core in &self.femto.cores {
            let (at, id) = (core.offset, core.id);
            if u32::from(id) >= machine.core.count {
                self.say(
                    &rules::CORE,
                    at..at + 1,
                    format!(
                        "expected core 0 to {} of {}, found {id}",
                        machine.core.count - 1,
                        machine.title
                    ),
                );
            }
            if !seen.insert(id) {
                self.say(
                    &rules::CORE,
                    at..at + 1,
                    format!("expected each core once, found core {id} again"),
                );
            }
            if core.status > LAST_STATUS {
                self.say(&rules::CORE, at + 1..at + 2, format!("expected a status of 0 (off), 1 (on) or 2 (sleeping) for core {id}, found {}", core.status));
            }
            self.banks(core, machine);
        }
    }

    fn banks(&mut self, core: &Core, machine: &Machine) {
        let mut seen = HashSet::new();
        for (index, bank) in core.banks.iter().enumerate() {
            let at = core.banks_offset + 2 * index;
            if !machine.has_bank(bank.uid) {
                self.say(
                    &rules::BANK,
                    at..at + 1,
                    format!(
                        "expected a bank that a core of {} has, found {:#04x} in core {}",
                        machine.title, bank.uid, core.id
                    ),
                );
            }
            if !seen.insert(bank.uid) {
                self.say(
                    &rules::BANK,
                    at..at + 1,
                    format!(
                        "expected each bank once, found {:#04x} of core {} again",
                        bank.uid, core.id
                    ),
                );
            }
            if bank.state > LAST_STATE {
                self.say(&rules::BANK, at + 1..at + 2, format!("expected a state of 0 to {LAST_STATE} for bank {:#04x} of core {}, found {}", bank.uid, core.id, bank.state));
            }
        }
    }

    fn pages(&mut self, machine: &Machine) {
        let femto = self.femto;
        // The simulator maps the cores elsewhere: then all of them.
        let simulated = femto
            .pages
            .first()
            .is_some_and(|page| machine.place(page.address.into(), true).is_some());
        let mut placed: Vec<(Range<u64>, &Page)> = Vec::new();
        for (index, page) in femto.pages.iter().enumerate() {
            let (at, number) = (page.offset, page.number);
            if usize::from(number) != index {
                self.say(
                    &rules::PAGE,
                    at..at + 2,
                    format!("expected page {index}, found the number {number}"),
                );
            }
            if page.words > PAGE_WORDS {
                self.say(
                    &rules::PAGE,
                    at + 2..at + 4,
                    format!(
                        "expected at most {PAGE_WORDS} words in page {index}, found {}",
                        page.words
                    ),
                );
                continue;
            }
            if page.address % 4 != 0 {
                self.say(
                    &rules::PAGE,
                    at + 4..at + 8,
                    format!(
                        "expected a multiple of 4 as address of page {index}, found {:#x}",
                        page.address
                    ),
                );
            }
            let (start, size) = (u64::from(page.address), 4 * u64::from(page.words));
            let Some((core, bank)) = machine.place(start, simulated) else {
                self.say(
                    &rules::PAGE,
                    at + 4..at + 8,
                    format!(
                        "expected an address in a memory of {} for page {index}, found {start:#x}",
                        machine.title
                    ),
                );
                continue;
            };
            if start + size > bank.end {
                let message = format!(
                    "expected page {index} to end at {:#x} or before, where its bank ends, found {:#x}",
                    bank.end,
                    start + size
                );
                self.say(&rules::PAGE, at + 2..at + 8, message);
            }
            if !femto
                .cores
                .iter()
                .any(|listed| u32::from(listed.id) == core)
            {
                self.say(&rules::CORE, at + 4..at + 8, format!("expected pages for cores that the file lists, found page {index} for core {core}"));
            }
            placed.push((start..start + size, page));
        }
        placed.sort_by_key(|(bytes, _)| bytes.start);
        for pair in placed.windows(2) {
            let [(first, before), (second, page)] = pair else {
                continue;
            };
            if second.start < first.end {
                let message = format!(
                    "expected pages apart from each other, found page {} at {:#x} within page {}",
                    page.number, second.start, before.number
                );
                self.say(&rules::PAGE, page.offset + 4..page.offset + 8, message);
            }
        }
    }
}
