//! The machine file of the target.

use chipless_spu::machine::{MACHINE, MACHINES, Machine};

#[test]
fn the_machine_that_comes_along_is_sound() {
    let machine = Machine::parse(MACHINE).expect("sound");
    assert_eq!(
        (machine.data_bytes(), machine.table_bytes()),
        (512 << 10, 16 << 10)
    );
    for (name, text) in MACHINES {
        assert_eq!(Machine::parse(text).expect("sound").name, *name);
    }
    assert!(
        Machine::parse(&MACHINE.replace("mhz = 150", "mhz = 0"))
            .is_err_and(|e| e.contains("clock.mhz is 0"))
    );
}
