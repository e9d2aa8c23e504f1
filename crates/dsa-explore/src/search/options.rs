//! How to explore.

use crate::objective::Budget;
use std::sync::atomic::AtomicBool;

/// What is not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own: --freeze names them"
)]
pub struct Freeze {
    /// Processing elements and their registers.
    pub elements: bool,
    /// Switches.
    pub switches: bool,
    /// Links.
    pub links: bool,
    /// Operations of elements.
    pub operations: bool,
    /// Widths of memories.
    pub widths: bool,
    /// Depths of buffers.
    pub depths: bool,
    /// Ports.
    pub ports: bool,
    /// Memories.
    pub memories: bool,
    /// Cores, banks and bus.
    pub system: bool,
}

impl Freeze {
    /// Their names.
    pub const NAMES: [&str; 9] = [
        "elements",
        "switches",
        "links",
        "operations",
        "widths",
        "depths",
        "ports",
        "memories",
        "system",
    ];

    /// Adds a kind by its name; whether there is one of this name.
    pub fn add(&mut self, name: &str) -> bool {
        let field = match name {
            "elements" => &mut self.elements,
            "switches" => &mut self.switches,
            "links" => &mut self.links,
            "operations" => &mut self.operations,
            "widths" => &mut self.widths,
            "depths" => &mut self.depths,
            "ports" => &mut self.ports,
            "memories" => &mut self.memories,
            "system" => &mut self.system,
            _ => return false,
        };
        *field = true;
        true
    }
}

/// How to explore.
#[derive(Clone, Debug)]
pub struct Options {
    /// What a design may take.
    pub budget: Budget,
    /// What is not changed.
    pub freeze: Freeze,
    /// Seed of the random choices.
    pub seed: u64,
    /// Threads; the result does not depend on them.
    pub jobs: usize,
    /// Set from outside when the search is to end.
    pub stop: &'static AtomicBool,
}
