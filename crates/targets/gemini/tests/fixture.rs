//! The schedule among the fixtures is what the generator makes: after a change of the generator, `UPDATE=1 cargo test -p chipless-gemini
//! the_schedule_of_four_cores` writes it again.

use crate::generate::Plan;
use std::path::Path;

#[test]
fn the_schedule_of_four_cores() {
    let plan = Plan {
        columns: 2,
        rows: 2,
        tiles: 2,
        through_dram: true,
        batch: 1,
        channels: 8,
        size: 8,
        ..Plan::default()
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/gemini/four_cores");
    for (name, made) in [
        ("schedule.json", crate::generate::schedule(&plan)),
        ("network.json", crate::generate::network(&plan)),
    ] {
        let path = folder.join(name);
        let made = serde_json::to_string(&made).expect("plain data") + "\n";
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(&folder).expect("writable");
            std::fs::write(&path, &made).expect("writable");
        }
        let kept = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(kept == made, "{} is stale", path.display());
    }
}
