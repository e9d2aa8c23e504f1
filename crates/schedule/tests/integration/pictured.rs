//! The schedule among the fixtures and its picture are what their tree gives: after a change, `UPDATE=1 cargo test -p
//! chipless-schedule` writes them anew.

use crate::{fixture, machine, small};
use chipless_gemini::{Data, Network, Schedule};
use chipless_model::Limits;
use chipless_schedule::emit::{Written, spec_dialect};
use chipless_schedule::tree::Tree;
use chipless_sim::{TimingOnly, Verified};

fn compare(name: &str, made: &str) {
    let path = format!(
        "{}/../../fixtures/schedule/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = String::from_utf8(fixture(name)).unwrap();
    assert!(kept == made, "{path} is not what its tree gives");
}

#[test]
fn a_tree_gives_its_schedule_and_its_picture() {
    let (front, machine) = (small(1), machine());
    let tree = Tree::read(&String::from_utf8(fixture("small.tree.json")).unwrap()).unwrap();
    let written = Written::of(&front, 1, true).unwrap();
    let best = spec_dialect(&written, (&front.network, &machine), &tree).unwrap();
    compare("small.schedule.json", &best.text);
    compare("small.network.json", &written.network_text());
    let network = Network::read(written.network_text().as_bytes(), &Limits::default()).unwrap();
    let schedule = Schedule::read(&best.text).unwrap();
    let (_, text) = chipless_gemini::MACHINES
        .iter()
        .find(|(name, _)| *name == "set")
        .unwrap();
    let timed = chipless_gemini::Machine::parse(text).unwrap();
    let data = Data {
        network: Some(&network),
        weights: None,
    };
    let lowered = chipless_gemini::lower(&schedule, &data, &timed, &Limits::default()).unwrap();
    let timeline = chipless_sim::run(&Verified::assume(&lowered.program), &mut TimingOnly).timeline;
    let pictures = chipless_gemini::pictures::pictures(
        &schedule,
        &lowered.program,
        &lowered.workloads,
        &timeline,
        &timed,
    );
    compare("small.svg", &pictures[0].svg);
}
