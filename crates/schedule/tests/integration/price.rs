//! What a machine takes and costs.

use crate::machine;
use chipless_schedule::price::{Memory, Price, Process};

/// What the script's own `calculate_cost` gives for one die on an organic substrate. Links are made as wide as the die needs to be that large.
#[test]
fn dies_cost_what_the_script_says() {
    let said = [
        (Process::Nm12, 10.0, 1.118_824_976),
        (Process::Nm12, 100.0, 11.850_094_77),
        (Process::Nm12, 400.0, 65.165_215_05),
        (Process::Nm7, 10.0, 1.718_762_345),
        (Process::Nm7, 100.0, 18.379_682_44),
        (Process::Nm7, 400.0, 104.407_681_1),
    ];
    for (process, area, dollars) in said {
        let with_links = |bytes: f64| {
            let mut machine = machine();
            machine.link.0 = bytes;
            Price::of(&machine, process, Memory::Hbm)
        };
        let [none, one] = [0.0, 1.0].map(|bytes| with_links(bytes).cores);
        let price = with_links((area - none) / (one - none));
        assert!((price.cores / area - 1.0).abs() < 1e-12, "{price:?}");
        assert!(
            (price.die / dollars - 1.0).abs() < 1e-8,
            "{process:?} {area}: {price:?}"
        );
    }
}

/// A mesh of 6 × 6 cores of 1024 multipliers and 1 MiB, 144 GB/s, in the terms of the script, by hand.
#[test]
fn areas_follow_from_the_densities() {
    let mut machine = machine();
    machine.mesh = [6, 6];
    machine.l2.bytes = 1 << 20;
    machine.weight_buffer = [0, 0];
    machine.dram.0 = 144.0;
    let price = Price::of(&machine, Process::Nm12, Memory::Gddr6x);
    let sram = (1_048_576.0 + 16.0 * (8192.0 + 4096.0 + 2048.0)) * 0.7712;
    let logic = (1024.0 + 64.0 * 8.0) * 57.9 + 24.0 * 16_781.312;
    let cores = 36.0 * (sram + logic) * 2.2 * 1.1025 / 1e6;
    assert!((price.cores / cores - 1.0).abs() < 1e-12, "{price:?}");
    let interfaces = 144.0 * (204_187.5 + 23_437.5) * 1.1025 / 1e6;
    assert!((price.interfaces / interfaces - 1.0).abs() < 1e-12);
    assert!((price.memory - 15.75).abs() < 1e-12);
    machine.mesh = [64, 64];
    assert_eq!(
        Price::of(&machine, Process::Nm12, Memory::Hbm).dollars(),
        None
    );
}
