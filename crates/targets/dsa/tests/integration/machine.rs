//! The machine file of the target.

use chipless_dsa::Machine;

#[test]
fn figures_that_make_no_sense_are_refused_by_name() {
    assert!((Machine::default().dma.read - 32.0).abs() < 1e-9);
    let text = include_str!("../../machine.toml");
    assert!(
        Machine::from_toml(&text.replace("clock = 100.0", "clock = 0.0"))
            .unwrap_err()
            .contains("clock")
    );
    assert!(
        Machine::from_toml(&text.replacen("read = 32.0", "read = -1.0", 1))
            .unwrap_err()
            .contains("dma")
    );
    assert!(
        Machine::from_toml(&text.replace("clock =", "clokc ="))
            .unwrap_err()
            .contains("clokc")
    );
}
