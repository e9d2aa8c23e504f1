//! IOSpec and FQIR: the contract between a host and Femtosense's sparse processing unit (SPU), and the program behind it.
//!
//! Four kinds of file belong to this target; [`File::read`] tells which one it is:
//!
//! | file | what it is | module |
//! |---|---|---|
//! | IOSpec (YAML) | inputs, outputs, and which come before which | [`iospec`] |
//! | graph (`.pt`) | the quantised program as fmot saves it, executable bit for bit | [`fqir`] |
//! | runtime plan (JSON) | the same program, without the branches of conditions | [`fqir`] |
//! | `.femto` | what a compile leaves for the firmware: vectors, sequences, encrypted memories | [`femto`] |
//!
//! # A contract, step by step
//!
//! `A = B + C`: once both inputs are written, in this order, the output can be read. Anything else is a violation.
//!
//! ```
//! use chipless_spu::iospec::{Document, RuleSet, Session};
//!
//! let text = "
//! inputs:
//!   B: {type: input, varname: B, length: 4, precision: 16, padded_length: 8, length_64b_words: 2, core_id: 0, pc: 0}
//!   C: {type: input, varname: C, length: 4, precision: 16, padded_length: 8, length_64b_words: 2, core_id: 0, pc: 9}
//! outputs:
//!   A: {type: output, varname: A, length: 4, precision: 16, padded_length: 8, length_64b_words: 2, mailbox_id: 0}
//! simple_sequences:
//!   main_seq: {type: simple_sequence, outputs: [A], inputs: [B, C]}
//! complex_sequences: {}
//! ";
//! let document = Document::read(text, RuleSet::Spec).expect("sound");
//! let mut session = Session::new(&document, RuleSet::Spec).with_wire();
//!
//! let sent = session.write(&[("B".into(), Some(vec![1, 2, 3, -4]))]).expect("the turn of B");
//! assert_eq!(sent.messages[0], [0, 0xfffc_0003_0002_0001, 0]); // header, then 64-bit words with padding
//!
//! let again = session.write(&[("B".into(), Some(vec![1, 2, 3, 4]))]).expect_err("the turn of C");
//! assert_eq!(again.to_string(), "kSpuSequenceError: it is the turn of C in main_seq: expected C, came B");
//!
//! session.write(&[("C".into(), Some(vec![0, 0, 0, 1]))]).expect("the turn of C");
//! assert_eq!(session.read().expect("sound").outputs, ["A"]);
//! ```
//!
//! `A = B + latchedC`, with the program behind it: a latched input is 0 until it is written, and keeps its value.
//!
//! ```
//! use chipless_model::Limits;
//! use chipless_spu::fqir::{MACHINE, Machine, Plan, Runner, lower};
//! use chipless_spu::iospec::{Document, RuleSet, Session};
//!
//! let text = "
//! inputs:
//!   B: {type: input, varname: B, length: 1, precision: 16, padded_length: null}
//!   latchedC: {type: input, varname: latchedC, length: 1, precision: 16, padded_length: null}
//! outputs:
//!   A: {type: output, varname: A, length: 1, precision: 16, padded_length: null}
//! simple_sequences:
//!   main_seq: {type: simple_sequence, outputs: [A], inputs: [B]} # sequence id 0
//!   latched_seq: {type: simple_sequence, outputs: [], inputs: [latchedC]} # sequence id 1
//! ";
//! let plan = r#"{"name": "sum", "nodes": [], "subgraphs": {"ARITH": {
//!     "inputs": [{"name": "B", "dtype": "int16", "shape": [1]}, {"name": "latchedC", "dtype": "int16", "shape": [1]}],
//!     "outputs": [{"name": "A", "dtype": "int16", "shape": [1]}],
//!     "nodes": [{"op_name": "vvadd", "inputs": {"x": "B", "y": "latchedC"}, "outputs": ["A"],
//!                "constants": {"shamt_x": 0, "shamt_y": 0, "shamt_bwred": 0, "bw": 16}}]}}}"#;
//! let limits = Limits::default();
//! let plan = Plan::read(plan.as_bytes(), &limits).expect("a plan");
//! let lowered = lower(&plan, &Machine::parse(MACHINE).expect("sound"), &limits).expect("executable");
//! let document = Document::read(text, RuleSet::Spec).expect("sound");
//! let runner = Runner::new(&lowered, &limits).expect("fits");
//! let mut session = Session::new(&document, RuleSet::Spec).with_program(runner).expect("the program of this contract");
//!
//! let mut step = |values: &[(&str, i64)]| {
//!     let act: Vec<_> = values.iter().map(|(name, value)| (name.to_string(), Some(vec![*value]))).collect();
//!     session.write(&act).expect("in order");
//!     session.read().expect("sound").values[0].1[0]
//! };
//! assert_eq!(step(&[("latchedC", 1), ("B", 1)]), 2);
//! assert_eq!(step(&[("B", 2)]), 3);
//! assert_eq!(step(&[("B", 3)]), 4);
//! assert_eq!(step(&[("latchedC", 2), ("B", 4)]), 6);
//! ```

pub mod femto;
pub mod fqir;
mod info;
pub mod iospec;
mod kernels;
mod lint;
mod lower;
pub mod machine;
mod raw;
mod read;
mod saved;
pub use chipless_yaml as yaml;

pub use read::{File, recognize};

use chipless_model::Rule;

/// Every rule of this target.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    iospec::rules::ALL
        .iter()
        .map(|law| law.under(iospec::RuleSet::Spec))
        .chain(fqir::rules::ALL.iter().copied())
        .chain(femto::rules::ALL.iter().copied())
}
