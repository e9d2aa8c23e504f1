//! Writes right schedules of made-up networks with their front-end files: `schedules DIRECTORY FIRST COUNT`, one folder for each seed.

#[path = "../tests/scheduler/mod.rs"]
mod scheduler;

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, first, count] = &arguments[..] else {
        return Err("usage: schedules DIRECTORY FIRST COUNT".into());
    };
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    for seed in first..first + count {
        let folder = Path::new(directory).join(format!("made_{seed}"));
        std::fs::create_dir_all(&folder)?;
        let program = scheduler::random(seed);
        std::fs::write(folder.join("schedule.json"), program.schedule().to_string())?;
        std::fs::write(folder.join("frontend.json"), program.network().to_string())?;
    }
    Ok(())
}
