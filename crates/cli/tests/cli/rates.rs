//! A machine with a higher rate is no slower, task by task.

use chipless_model::{Program, TaskId, Time};
use rayon::prelude::*;
use std::fs;
use std::path::PathBuf;

/// What rounding to a whole byte may add.
const BYTE: Time = Time(100);

/// Programs of a target, one for each folder of its fixtures.
fn programs(target: &str, file: &str) -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let folders = fs::read_dir(root.join(target)).expect("fixtures");
    let paths = folders.map(|folder| folder.expect("a folder").path().join(file));
    paths.filter(|path| path.is_file()).collect()
}

/// What a task takes with nothing beside it.
fn alone(program: &Program<'_>, task: TaskId) -> Time {
    let demands = program.counted_demands(task).map(|demand| {
        let resource = &program.resources[demand.resource];
        demand.bytes as f64 / resource.capacity.min(resource.per_transfer)
    });
    let longest = demands.fold(0.0, f64::max);
    program.tasks[task].fixed + Time::from_ns(longest * 1e9)
}

/// The time of each task by itself, on a machine with this change, and the keys that the times rest on.
fn times(path: &PathBuf, change: Option<&str>) -> (Vec<Time>, Vec<String>) {
    let bytes = fs::read(path).expect("a file");
    let mut options = chipless::Options::default();
    options.data.computes = false;
    if let Some(change) = change {
        options.set("set", change).expect("a parameter");
    }
    let name = path.display().to_string();
    let file = chipless::open(&name, &bytes, &options).expect("a program");
    let document = file.read().expect("a document");
    let program = document.lower().expect("a program").program;
    let tasks = program.tasks.indices();
    let times = tasks.map(|task| alone(&program, task)).collect();
    (times, program.figures.iter().cloned().collect())
}

/// Bandwidths and clocks of the machines of these programs: whatever has more of a unit that counts something by time.
fn rates(target: &str) -> Vec<String> {
    let target = chipless::target(target).expect("a target");
    let machines = target.machines().iter();
    let figures = machines.flat_map(|(_, text)| chipless::figures(text));
    let is_rate = |figure: &chipless::Figure| {
        figure.better == Some(chipless::Better::Higher) && !figure.key.starts_with("silicon.")
    };
    let mut keys: Vec<String> = figures.filter(is_rate).map(|figure| figure.key).collect();
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn no_task_takes_longer_where_a_rate_is_higher() {
    for (target, file) in [("npu", "program.blob"), ("neuron", "program.neff")] {
        let rates = rates(target);
        assert!(rates.len() > 3, "{target}: {rates:?}");
        programs(target, file).par_iter().for_each(|path| {
            let (before, rests_on) = times(path, None);
            let own = rates
                .iter()
                .filter(|key| rests_on.is_empty() || rests_on.contains(key));
            for change in own.flat_map(|key| ["1.1x", "2x", "8x"].map(|by| format!("{key}={by}"))) {
                let (after, _) = times(path, Some(&change));
                let slower = before.iter().zip(&after).position(|(a, b)| *b > *a + BYTE);
                assert_eq!(slower, None, "{change} of {}", path.display());
            }
        });
    }
}

/// Bytes that count as fewer than they are pass a bound of their own as they are, and that bound once appeared with the rate of DDR.
#[test]
fn a_conversion_is_no_slower_with_a_faster_memory() {
    let path = programs("npu", "program.blob");
    let converts = path
        .iter()
        .find(|path| path.to_string_lossy().contains("conv_f32io"));
    let path = converts.expect("a program whose input is converted");
    let (before, _) = times(path, None);
    let (after, _) = times(path, Some("dma.ddr_bytes_per_second=1.1x"));
    assert_eq!(before, after);
}
