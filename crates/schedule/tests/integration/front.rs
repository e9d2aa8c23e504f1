//! Networks and machines as they come in.

use crate::{fixture, small};
use chipless_schedule::machine::Machine;

#[test]
fn a_network_becomes_layers() {
    let network = small(1).network;
    let rows: Vec<String> = network
        .layers
        .iter()
        .map(|l| {
            format!(
                "{} {} {:?} {:?} {:?}",
                l.name,
                l.kind.name(),
                l.output,
                l.previous,
                l.external
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            "stem conv [8, 8, 8] [] Some([3, 8, 8])",
            "left conv [8, 8, 8] [0] None",
            "right conv [8, 8, 8] [0] None",
            "join eltwise [8, 8, 8] [1, 2] None",
            "shrink pool [8, 4, 4] [3] None",
            "logits fc [5, 1, 1] [4] None",
        ]
    );
}

#[test]
fn what_is_no_network_is_said() {
    let read = |bytes: &[u8]| {
        chipless_schedule::onnx::read(bytes, 1, &|_| None)
            .unwrap_err()
            .to_string()
    };
    assert!(read(b"").contains("empty"));
    assert!(read(b"hello").contains("not an ONNX model"));
    let whole = fixture("small.onnx");
    for end in (0..whole.len()).step_by(97) {
        read(&whole[..end]);
    }
}

#[test]
fn what_is_wrong_with_a_machine_is_named() {
    let text = String::from_utf8(fixture("mesh2x2.json")).unwrap();
    let refused = |from: &str, to: &str| {
        Machine::read(&text.replace(from, to))
            .unwrap_err()
            .to_string()
    };
    assert!(refused("\"mesh\": [2, 2]", "\"mesh\": [0, 2]").contains("`mesh`"));
    assert!(refused("\"polar\"", "\"abacus\"").contains("core.kind"));
    assert!(
        refused("\"bytes_per_cycle\": 4", "\"bytes_per_cycle\": -4")
            .contains("dram.bytes_per_cycle")
    );
    assert!(refused("\"clock_hz\": 1000000000,", "").contains("clock_hz"));
    let (_, unknown) =
        Machine::read(&text.replace("\"stride\"", "\"extra\": 1, \"stride\"")).unwrap();
    assert_eq!(unknown, ["extra"]);
}
