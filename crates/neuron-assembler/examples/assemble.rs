//! Makes a NEFF from assembler text: `cargo run -p chipless-neuron-assembler --example assemble program.asm program.neff`.

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let [source, target] = &std::env::args_os()
        .skip(1)
        .map(PathBuf::from)
        .collect::<Vec<_>>()[..]
    else {
        return Err("usage: assemble PROGRAM.asm PROGRAM.neff".into());
    };
    let text = std::fs::read_to_string(source)?;
    let draft = chipless_neuron_assembler::assemble(&text)?;
    std::fs::write(target, draft.write(&chipless_model::Limits::default())?)?;
    Ok(())
}
