//! `chipless unpack` and `chipless pack`

use super::Opened;
use crate::failure::{Exit, Failure};
use crate::files;
use crate::targets::Target;
use crate::terminal;
use chipless_model::Limits;
use chipless_neuron::{Container, pack};
use clap::Args;
use std::path::{Path, PathBuf};

/// Takes a container (NEFF) apart: its members and its header, as files.
#[derive(Args, Debug)]
#[command(after_help = UNPACK_EXAMPLES)]
pub(crate) struct UnpackArguments {
    /// A NEFF.
    file: PathBuf,
    /// Where its members go; made if it is not there. The header goes to neff-header.json.
    directory: PathBuf,
}

/// Makes a container (NEFF) of a directory that `unpack` wrote.
#[derive(Args, Debug)]
#[command(after_help = PACK_EXAMPLES)]
pub(crate) struct PackArguments {
    /// The members, and neff-header.json with the header's fields; without it, those of a program for one core.
    directory: PathBuf,
    /// The NEFF to write.
    file: PathBuf,
}

const UNPACK_EXAMPLES: &str = "\
Examples:
  chipless unpack model.neff model

Exit status: 0 done, 2 the file cannot be read or is no container, or something cannot be written.";

const PACK_EXAMPLES: &str = "\
Examples:
  chipless unpack model.neff model && vi model/sg00/def.json && chipless pack model new.neff

The same directory gives the same bytes. Hash and sizes of the header are computed anew.

Exit status: 0 done, 2 something cannot be read, packed or written.";

pub(crate) fn unpack(arguments: &UnpackArguments) -> Result<Exit, Failure> {
    let opened = Opened::open(&arguments.file)?;
    if opened.target != Target::Neuron {
        return Err(Failure::unusable(
            &opened.path,
            format_args!("expected a container (NEFF), found a program of target {}", opened.target.name()),
        ));
    }
    let refuse = |finding: Box<chipless_model::Finding>| opened.refuse("cannot be unpacked", &[*finding], Exit::Unusable);
    let container = Container::open(&opened.bytes, &Limits::default()).map_err(refuse)?;
    let (members, header) = pack::unpack(&container).map_err(refuse)?;
    let count = members.len();
    for member in members {
        // Paths of members are relative and stay below the directory: opening the container has refused all others.
        let path = arguments.directory.join(member.path);
        if let Some(parent) = path.parent() {
            files::make_directory(parent)?;
        }
        files::write(&path, &[member.bytes])?;
    }
    files::make_directory(&arguments.directory)?;
    files::write(&arguments.directory.join(pack::HEADER_FILE), &[header.as_bytes()])?;
    terminal::print(&format!("{}: {count} members in {}\n", opened.path, arguments.directory.display()))?;
    Ok(Exit::Done)
}

pub(crate) fn pack(arguments: &PackArguments) -> Result<Exit, Failure> {
    let mut found = Vec::new();
    collect(&arguments.directory, "", &mut found)?;
    found.sort();
    let header = found.iter().position(|name| name == pack::HEADER_FILE).map(|at| found.remove(at));
    let header = header.map(|name| files::read_text(&arguments.directory.join(name))).transpose()?;
    let read = |name: String| -> Result<(String, files::Bytes), Failure> {
        let path = arguments.directory.join(&name);
        let bytes = files::open(&path).map_err(|error| Failure::unusable(path.display(), error))?;
        Ok((name, bytes))
    };
    let members = found.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let packed = pack::pack(members.iter().map(|(name, bytes)| (name.as_str(), &**bytes)), header.as_deref(), &Limits::default())
        .map_err(|finding| Failure::unusable(arguments.directory.display(), finding))?;
    files::write(&arguments.file, &[&packed])?;
    terminal::print(&format!("{}: {} members, {} bytes\n", arguments.file.display(), members.len(), packed.len()))?;
    Ok(Exit::Done)
}

/// Names of the regular files below a directory, with `/` between the parts.
fn collect(directory: &Path, prefix: &str, found: &mut Vec<String>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::unusable(directory.display(), format_args!("cannot be read: {error}"));
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(Failure::unusable(path.display(), "expected a name in UTF-8"));
        };
        let name = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_dir() {
            collect(&path, &format!("{name}/"), found)?;
        } else if kind.is_file() {
            found.push(name);
        } else {
            return Err(Failure::unusable(path.display(), "expected a file or a directory"));
        }
    }
    Ok(())
}
