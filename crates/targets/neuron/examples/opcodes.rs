//! Writes docs/neuron-opcodes.md to the standard output.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

fn main() {
    print!("{}", chipless_neuron::stream::reference());
}
