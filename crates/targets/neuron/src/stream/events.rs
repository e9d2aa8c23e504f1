//! What an instruction waits for and signals, in the vendor's notation (`$S[45]>=16`, `$S[8]++@complete`).

use chipless_model::{Condition, Moment};
use std::fmt;
use zerocopy::byteorder::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// One wait and one signal, which share a value.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(C)]
pub struct Events {
    /// How it waits, see [`WaitMode`].
    pub wait_mode: u8,
    /// Semaphore waited for.
    pub wait_index: u8,
    /// How it signals, see [`UpdateMode`].
    pub update_mode: u8,
    /// Semaphore signalled.
    pub update_index: u8,
    /// What the wait compares with, and what an addition adds.
    pub value: U32,
}

/// How an instruction waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// Not at all.
    None,
    /// For a semaphore to equal, exceed or reach the value.
    Immediate(Comparison),
    /// The same with a register in place of the value.
    Register(u8),
    /// Out of order (its rules are not public).
    Unordered,
    /// Not known.
    Unknown(u8),
}

/// What a wait compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// How an instruction signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMode {
    /// Not at all.
    None,
    /// A semaphore changes.
    Semaphore(Change, Moment),
    /// Not known.
    Unknown(u8),
}

/// How a semaphore changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// By one upwards.
    Increment,
    /// By one downwards.
    Decrement,
    /// By the value upwards.
    Add,
    /// By the value downwards.
    Subtract,
}

impl WaitMode {
    /// What the byte means.
    pub const fn from_byte(byte: u8) -> WaitMode {
        match byte {
            0 => WaitMode::None,
            1 => WaitMode::Immediate(Comparison::Equal),
            4 => WaitMode::Immediate(Comparison::Greater),
            5 => WaitMode::Immediate(Comparison::AtLeast),
            0x81..=0x85 => WaitMode::Register(byte),
            0xfe => WaitMode::Unordered,
            _ => WaitMode::Unknown(byte),
        }
    }

    /// Whether a program that ran to the right numbers has it.
    pub const fn proven(self) -> bool {
        matches!(
            self,
            WaitMode::None | WaitMode::Immediate(Comparison::AtLeast)
        )
    }
}

impl UpdateMode {
    /// What the byte means.
    pub const fn from_byte(byte: u8) -> UpdateMode {
        let moment = if byte & 0x10 == 0 {
            Moment::Read
        } else {
            Moment::Completion
        };
        match byte & !0x10 {
            0 if byte == 0 => UpdateMode::None,
            3 => UpdateMode::Semaphore(Change::Increment, moment),
            4 => UpdateMode::Semaphore(Change::Decrement, moment),
            5 => UpdateMode::Semaphore(Change::Add, moment),
            6 => UpdateMode::Semaphore(Change::Subtract, moment),
            _ => UpdateMode::Unknown(byte),
        }
    }

    /// Whether a program that ran to the right numbers has it.
    pub const fn proven(self) -> bool {
        matches!(
            self,
            UpdateMode::None | UpdateMode::Semaphore(Change::Increment, Moment::Completion)
        )
    }
}

impl Events {
    /// Neither waits nor signals.
    pub const NONE: Events = Events {
        wait_mode: 0,
        wait_index: 0,
        update_mode: 0,
        update_index: 0,
        value: U32::ZERO,
    };

    /// Waits until a semaphore has at least this value.
    #[must_use]
    pub fn waiting(self, semaphore: u8, at_least: u32) -> Events {
        Events {
            wait_mode: 5,
            wait_index: semaphore,
            value: at_least.into(),
            ..self
        }
    }

    /// Adds one to a semaphore at completion.
    #[must_use]
    pub fn signalling(self, semaphore: u8) -> Events {
        Events {
            update_mode: 0x13,
            update_index: semaphore,
            ..self
        }
    }

    /// As much of it as its text says: the rest has no meaning.
    pub(super) fn said(self) -> Events {
        let waits = self.wait() != WaitMode::None;
        let (signals, counts) = match self.update() {
            UpdateMode::None => (false, false),
            UpdateMode::Semaphore(Change::Increment | Change::Decrement, _) => (true, false),
            UpdateMode::Semaphore(Change::Add | Change::Subtract, _) | UpdateMode::Unknown(_) => {
                (true, true)
            }
        };
        Events {
            wait_index: if waits { self.wait_index } else { 0 },
            update_index: if signals { self.update_index } else { 0 },
            value: if waits || counts {
                self.value
            } else {
                0.into()
            },
            ..self
        }
    }

    /// How it waits.
    pub const fn wait(&self) -> WaitMode {
        WaitMode::from_byte(self.wait_mode)
    }

    /// How it signals.
    pub const fn update(&self) -> UpdateMode {
        UpdateMode::from_byte(self.update_mode)
    }

    /// The condition that the model checks, and on which semaphore; `None` where it does not wait or where the mode is
    /// one that the model cannot check.
    pub fn condition(&self) -> Option<(u8, Condition)> {
        let value = i64::from(self.value.get());
        let condition = match self.wait() {
            WaitMode::Immediate(Comparison::Equal) => Condition::Equal(value),
            WaitMode::Immediate(Comparison::Greater) => Condition::AtLeast(value + 1),
            WaitMode::Immediate(Comparison::AtLeast) => Condition::AtLeast(value),
            WaitMode::None | WaitMode::Register(_) | WaitMode::Unordered | WaitMode::Unknown(_) => {
                return None;
            }
        };
        Some((self.wait_index, condition))
    }

    /// The change of a semaphore, and when; `None` where it does not signal or where the mode is not known.
    pub fn change(&self) -> Option<(u8, i64, Moment)> {
        let UpdateMode::Semaphore(change, moment) = self.update() else {
            return None;
        };
        let by = match change {
            Change::Increment => 1,
            Change::Decrement => -1,
            Change::Add => i64::from(self.value.get()),
            Change::Subtract => -i64::from(self.value.get()),
        };
        Some((self.update_index, by, moment))
    }

    /// What keeps it from being executed, by name.
    pub fn refusal(&self) -> Option<String> {
        match self.wait() {
            WaitMode::Register(mode) => {
                return Some(format!(
                    "wait mode {mode:#04x} compares with a register; registers are not supported"
                ));
            }
            WaitMode::Unordered => {
                return Some("wait mode 0xfe (unordered) is not supported".to_owned());
            }
            WaitMode::Unknown(mode) => {
                return Some(format!(
                    "wait mode {mode:#04x} is not supported: its meaning is not known"
                ));
            }
            WaitMode::None | WaitMode::Immediate(_) => {}
        }
        match self.update() {
            UpdateMode::Unknown(mode) => Some(format!(
                "update mode {mode:#04x} is not supported: its meaning is not known"
            )),
            UpdateMode::None | UpdateMode::Semaphore(..) => None,
        }
    }
}

/// When a signal is given, as the vendor's tools write it.
const fn at(moment: Moment) -> &'static str {
    match moment {
        Moment::Read => "read",
        Moment::Completion => "complete",
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (semaphore, value) = (self.wait_index, self.value.get());
        let waits = match self.wait() {
            WaitMode::None => false,
            WaitMode::Immediate(comparison) => {
                let sign = match comparison {
                    Comparison::Equal => "==",
                    Comparison::Greater => ">",
                    Comparison::AtLeast => ">=",
                };
                write!(f, "$S[{semaphore}]{sign}{value}")?;
                true
            }
            WaitMode::Register(_) | WaitMode::Unordered | WaitMode::Unknown(_) => {
                let mode = self.wait_mode;
                write!(f, "$S[{semaphore}]?wait={mode:#04x}({value})")?;
                true
            }
        };
        let space = if waits { " " } else { "" };
        let semaphore = self.update_index;
        match self.update() {
            UpdateMode::None => Ok(()),
            UpdateMode::Semaphore(Change::Increment, moment) => {
                write!(f, "{space}$S[{semaphore}]++@{}", at(moment))
            }
            UpdateMode::Semaphore(Change::Decrement, moment) => {
                write!(f, "{space}$S[{semaphore}]--@{}", at(moment))
            }
            UpdateMode::Semaphore(Change::Add, moment) => {
                write!(f, "{space}$S[{semaphore}]+={value}@{}", at(moment))
            }
            UpdateMode::Semaphore(Change::Subtract, moment) => {
                write!(f, "{space}$S[{semaphore}]-={value}@{}", at(moment))
            }
            UpdateMode::Unknown(mode) => {
                write!(f, "{space}$S[{semaphore}]?update={mode:#04x}({value})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vendors_notation() {
        let text = |events: Events| events.to_string();
        assert_eq!(text(Events::default()), "");
        assert_eq!(text(Events::default().waiting(45, 16)), "$S[45]>=16");
        assert_eq!(
            text(Events::default().waiting(45, 16).signalling(8)),
            "$S[45]>=16 $S[8]++@complete"
        );
        assert_eq!(
            text(Events {
                update_mode: 0x05,
                update_index: 3,
                value: 7.into(),
                ..Events::default()
            }),
            "$S[3]+=7@read"
        );
        assert_eq!(
            text(Events {
                wait_mode: 0x77,
                ..Events::default()
            }),
            "$S[0]?wait=0x77(0)"
        );
    }

    #[test]
    fn above_a_value_is_at_least_the_next() {
        let above = Events {
            wait_mode: 4,
            ..Events::default().waiting(3, 7)
        };
        assert_eq!(above.condition(), Some((3, Condition::AtLeast(8))));
        let mut bytes = [0u8; crate::stream::SLOT_BYTES];
        (bytes[4], bytes[5], bytes[8]) = (4, 3, 7);
        let slot: crate::stream::Slot = zerocopy::transmute!(bytes);
        assert!(slot.waits_above(0));
        assert!(!slot.waits_above(1), "it has no second wait");
    }

    #[test]
    fn every_byte_is_a_mode_or_a_refusal() {
        for byte in 0..=u8::MAX {
            let wait = Events {
                wait_mode: byte,
                wait_index: 1,
                value: 9.into(),
                ..Events::default()
            };
            assert_eq!(
                wait.refusal().is_none(),
                byte == 0 || wait.condition().is_some(),
                "wait mode {byte:#x}"
            );
            let update = Events {
                update_mode: byte,
                update_index: 1,
                value: 9.into(),
                ..Events::default()
            };
            assert_eq!(
                update.refusal().is_none(),
                byte == 0 || update.change().is_some(),
                "update mode {byte:#x}"
            );
        }
    }
}
