//! The language server behind `chipless lsp`, and the fixes of `chipless check --fix`.
//!
//! [`serve`] speaks the Language Server Protocol over a connection. [`check`] finds out what is wrong with a text of any kind that people write:
//! programs as the targets read them, and workloads, plans, machine files and assembler beside them. [`fix`] mends what has one mechanical mend;
//! the server's quick fixes are the same edits.
//!
//! A language is a module of `languages`: data about a text ([`analysis::Analysis`]) behind one small trait ([`language::Language`]). Hover,
//! definition, references, rename, outline, folding, colours and hints are made of that data, once for all languages.

pub mod analysis;
mod check;
pub mod language;
mod languages;
mod mend;
mod server;
pub mod text;

pub use check::check;
pub use mend::{Fixed, Mend, fix, mends};
pub use server::serve;
