//! Writes a schedule of a made-up network and its front-end file: `generate DIRECTORY COLUMNS ROWS BLOCKS [SIZE CHANNELS TILES]`.
//! 4 x 4 cores and 700 blocks give a file of about 100 MB.

#[path = "../tests/generate/mod.rs"]
mod generate;

use generate::Plan;
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments
        .first()
        .ok_or("usage: generate DIRECTORY COLUMNS ROWS BLOCKS [SIZE CHANNELS TILES]")?;
    let number = |index: usize, otherwise: u32| {
        arguments
            .get(index)
            .map_or(Ok(otherwise), |text| text.parse())
    };
    let plan = Plan {
        columns: number(1, 2)?,
        rows: number(2, 2)?,
        blocks: number(3, 1)?,
        size: number(4, 32)?,
        channels: number(5, 32)?,
        tiles: number(6, 2)?,
        ..Plan::default()
    };
    for (name, value) in [
        ("schedule.json", generate::schedule(&plan)),
        ("network.json", generate::network(&plan)),
    ] {
        let mut file = BufWriter::new(std::fs::File::create(
            std::path::Path::new(directory).join(name),
        )?);
        serde_json::to_writer(&mut file, &value)?;
        file.flush()?;
    }
    Ok(())
}
