//! Sequence diagrams.

use crate::common::text;
use chipless_spu::iospec::{Document, RuleSet, diagram};

fn document(text: &str) -> Document {
    Document::read(text, RuleSet::Spec).unwrap_or_else(|f| panic!("{f:?}"))
}

#[test]
fn transactions_stand_in_order() {
    let latched = document(&text("latched", "iospec.yaml"));
    assert_eq!(
        diagram::text(&latched),
        "\
sequence 0: main_seq
  host → core 0  write B  60 × int16 in 16 words, pc 0
  core 0         fires
  core 0 → host  read A   60 × int16 in 16 words, mailbox 3
sequence 1: latched_seq, latched
  host → core 0  write latchedC  60 × int16 in 16 words, pc 12
"
    );
    let svg = diagram::svg(&latched, "Transactions");
    for part in [
        "core 0",
        "write latchedC",
        "read A",
        "fires",
        "sequence 1: latched_seq, latched",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
}

#[test]
fn complex_sequences_say_how_often() {
    let complex = document(
        "
inputs:
  x: {type: input, varname: x, length: 4, precision: 16, padded_length: null}
  free: {type: input, varname: '<free>', length: 4, precision: 8, padded_length: null}
outputs:
  y: {type: output, varname: y, length: 4, precision: 16, padded_length: null}
simple_sequences: {}
complex_sequences:
  slow: {type: complex_sequence, inputs: {x: 3}, outputs: {y: 2}}
",
    );
    assert_eq!(
        diagram::text(&complex),
        "\
complex sequence: slow
  host → SPU  write x, 3 times        4 × int16
  SPU         fires
  SPU → host  read y after 2 firings  4 × int16
at any time: write <free>
"
    );
    assert!(diagram::svg(&complex, "<title>").contains("write &lt;free&gt;"));
}

#[test]
fn cores_have_lifelines_of_their_own_and_many_sequences_are_cut() {
    let vector = |n: usize| {
        format!(
            "  x{n}: {{type: input, varname: x{n}, length: 4, precision: 16, core_id: {}, pc: 0, padded_length: 4, length_64b_words: 1}}\n",
            n % 2
        )
    };
    let sequence =
        |n: usize| format!("  s{n}: {{type: simple_sequence, inputs: [x{n}], outputs: []}}\n");
    let inputs: String = (0..150).map(vector).collect();
    let sequences: String = (0..150).map(sequence).collect();
    let many = document(&format!(
        "inputs:\n{inputs}outputs: {{}}\nsimple_sequences:\n{sequences}"
    ));
    let text = diagram::text(&many);
    assert!(
        text.contains("host → core 1  write x1  4 × int16 in 1 word, pc 0"),
        "{text}"
    );
    assert!(text.ends_with("and 50 more sequences\n"), "{text}");
    let svg = diagram::svg(&many, "many");
    assert!(svg.contains(">core 1<") && svg.contains("and 50 more sequences"));
}
