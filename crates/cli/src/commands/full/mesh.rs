//! The machines of `chipless schedule`, where other commands take them.

use crate::failure::Failure;
use crate::terminal;
use chipless::Options;
use chipless::suggest;
use chipless_schedule::emit::replay_machine;
use chipless_schedule::machine::Machine as Mesh;
use chipless_schedule::mesh;
use std::fmt::Display;

/// What to say of a machine that is neither a mesh nor a file.
pub(super) const NO_MESH: &str = "expected a mesh by name, such as mesh4x4 (at most 4096 cores), or a machine file; there is no such file";

/// Reads a mesh, and warns of keys that mean nothing.
pub(super) fn read(name: impl Display, text: &str) -> Result<Mesh, Failure> {
    let (mesh, unknown) = Mesh::read(text).map_err(|error| Failure::unreadable(&name, error))?;
    for key in unknown {
        let meant = suggest::hint(&key, mesh::FIELDS.iter().map(|field| field.key));
        terminal::complain(&format!(
            "{name}: warning: the key `{key}` is not known and means nothing{meant}\n"
        ));
    }
    Ok(mesh)
}

/// Takes the machine of `schedule`, a mesh as JSON or by its name, for the machine file by which its schedules were replayed.
pub(crate) fn take_mesh(options: &mut Options) -> Result<(), Failure> {
    let Some(name) = options.value("machine").map(str::to_owned) else {
        return Ok(());
    };
    let text = match mesh::file(&name) {
        Some(ready_made) => ready_made,
        None if name.starts_with("mesh") && !options.exists(&name) => {
            return Err(Failure::unreadable(&name, NO_MESH));
        }
        None => match options.machine_file()? {
            Some(file) => file.text().unwrap_or_default().to_owned(),
            None => return Ok(()),
        },
    };
    if text.trim_start().starts_with('{') {
        let mesh = read(&name, &text)?;
        let machine = replay_machine(&mesh);
        options.set_machine(name, mesh.name, machine);
    }
    Ok(())
}
