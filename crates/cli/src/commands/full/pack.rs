//! `chipless unpack` and `chipless pack`

use crate::commands::Opened;
use crate::failure::{Exit, Failure};
use crate::files::{self, Bytes};
use crate::terminal;
use chipless::neuron::{Container, pack};
use chipless_model::Limits;
use clap::Args;
use std::path::{Path, PathBuf};

/// Extract a NEFF into a directory.
#[derive(Args, Debug)]
#[command(after_help = UNPACK_EXAMPLES, override_usage = "chipless unpack [OPTIONS] --output <DIR> <FILE>")]
pub(crate) struct UnpackArguments {
    /// A NEFF.
    file: PathBuf,
    /// Empty or new directory for the members.
    ///
    /// The header goes to neff-header.json.
    #[arg(long, short, value_name = "DIR", required_unless_present = "last")]
    output: Option<PathBuf>,
    /// The same without -o.
    #[arg(hide = true, conflicts_with = "output")]
    last: Option<PathBuf>,
}

/// Build a NEFF from a directory or from assembler text.
#[derive(Args, Debug)]
#[command(after_help = PACK_EXAMPLES, override_usage = "chipless pack [OPTIONS] --output <FILE> <SOURCE>")]
pub(crate) struct PackArguments {
    /// Directory of members, or assembler text.
    ///
    /// A directory that `unpack` wrote, with neff-header.json; without that file the header is that of a program for one core. Or a file of
    /// assembler text.
    source: PathBuf,
    /// Write the NEFF to this file.
    #[arg(long, short, value_name = "FILE", required_unless_present = "last")]
    output: Option<PathBuf>,
    /// The same without -o.
    #[arg(hide = true, conflicts_with = "output")]
    last: Option<PathBuf>,
}

const UNPACK_EXAMPLES: &str = "\
Examples:
  chipless unpack model.neff -o model
  chipless list --asm model.neff > model.asm    the instructions as text, which `pack` takes

Instructions stay in their binary form (*.bin).

Exit status: 0 done, 2 the file cannot be read or is no container, or something cannot be written.";

const PACK_EXAMPLES: &str = "\
Examples:
  chipless unpack model.neff -o model && vi model/sg00/def.json && chipless pack model -o new.neff
  chipless list --asm model.neff > model.asm && vi model.asm && chipless pack model.asm -o new.neff

`chipless check model.asm` finds faults and names their lines. What it calls $S[5] ≥ 4 is written $S[5]>=4, in front of the signals.

The same directory gives the same bytes. Hash and sizes of the header are computed anew.

Exit status: 0 done, 2 something cannot be read, packed or written.";

/// Where to write, which is given in one of two ways; the command line asks for one of them.
fn target<'p>(output: Option<&'p Path>, last: Option<&'p Path>) -> &'p Path {
    output.or(last).unwrap_or(Path::new(""))
}

pub(crate) fn unpack(arguments: &UnpackArguments) -> Result<Exit, Failure> {
    let directory = target(arguments.output.as_deref(), arguments.last.as_deref());
    let opened = Opened::open(&arguments.file)?;
    opened.expect("neuron", "a container (NEFF)")?;
    let refuse = |finding: Box<chipless_model::Finding>| {
        opened.told(chipless::Failure::reading(vec![*finding]), None)
    };
    let container = Container::open(&opened.bytes, &Limits::default()).map_err(refuse)?;
    let (members, header) = pack::unpack(&container).map_err(refuse)?;
    // Members of another file would be packed again with those of this one.
    if std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::unreadable(
            directory.display(),
            "expected an empty directory, or none, found files in it",
        ));
    }
    let count = members.len();
    for member in members {
        // Paths of members are relative and stay below the directory: opening the container has refused all others.
        let path = directory.join(member.path);
        if let Some(parent) = path.parent() {
            files::make_directory(parent)?;
        }
        files::write(&path, &[member.bytes])?;
    }
    files::make_directory(directory)?;
    files::write(&directory.join(pack::HEADER_FILE), &[header.as_bytes()])?;
    terminal::print(&format!(
        "{}: {} in {}\n",
        opened.path,
        chipless_model::count(count, "member"),
        directory.display()
    ))?;
    Ok(Exit::Done)
}

pub(crate) fn pack(arguments: &PackArguments) -> Result<Exit, Failure> {
    let file = target(arguments.output.as_deref(), arguments.last.as_deref());
    let (packed, what) = if arguments.source.is_dir() {
        directory(&arguments.source)?
    } else {
        assembly(&arguments.source)?
    };
    files::write(file, &[&packed])?;
    terminal::print(&format!(
        "{}: {what}, {} bytes\n",
        file.display(),
        packed.len()
    ))?;
    Ok(Exit::Done)
}

/// Assembler text as a container, and what went into it.
fn assembly(path: &Path) -> Result<(Vec<u8>, String), Failure> {
    let text = files::read_text(path)?;
    let packed = assemble(path, &text)?;
    Ok((packed, format!("{} lines", text.lines().count())))
}

fn assemble(path: &Path, text: &str) -> Result<Vec<u8>, Failure> {
    let draft = chipless_neuron_assembler::assemble(text)
        .map_err(|error| Failure::unreadable(path.display(), error))?;
    draft
        .write(&Limits::default())
        .map_err(|finding| Failure::unreadable(path.display(), finding))
}

/// The program of a file: what assembler text says, packed, and anything else as it is.
pub(crate) fn program(path: &Path, bytes: Bytes) -> Result<Bytes, Failure> {
    let is_assembler = path.extension().is_some_and(|e| e == "asm");
    match std::str::from_utf8(&bytes) {
        Ok(text) if is_assembler => assemble(path, text).map(Bytes::Read),
        _ => Ok(bytes),
    }
}

/// The member that every NEFF has.
const GRAPH: &str = "neff.json";

/// The files of a directory as a container, and what went into it.
fn directory(directory: &Path) -> Result<(Vec<u8>, String), Failure> {
    let mut found = Vec::new();
    collect(directory, "", &mut found)?;
    found.sort();
    let header = found
        .iter()
        .position(|name| name == pack::HEADER_FILE)
        .map(|at| found.remove(at));
    let header = header
        .map(|name| files::read_text(&directory.join(name)))
        .transpose()?;
    if !found.iter().any(|name| name == GRAPH) {
        let files = match found.len() {
            0 => "none".to_owned(),
            several => format!("{}, and no {GRAPH}", chipless_model::count(several, "file")),
        };
        let text =
            format!("expected the members of a NEFF, as `unpack` writes them, found {files}");
        return Err(Failure::unreadable(directory.display(), text));
    }
    let read = |name: String| -> Result<(String, files::Bytes), Failure> {
        let path = directory.join(&name);
        let bytes =
            files::open(&path).map_err(|error| Failure::unreadable(path.display(), error))?;
        Ok((name, bytes))
    };
    let members = found.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let packed = pack::pack(
        members
            .iter()
            .map(|(name, bytes)| (name.as_str(), &**bytes)),
        header.as_deref(),
        &Limits::default(),
    )
    .map_err(|finding| Failure::unreadable(directory.display(), finding))?;
    Ok((packed, chipless_model::count(members.len(), "member")))
}

/// Names of the regular files below a directory, with `/` between the parts.
fn collect(directory: &Path, prefix: &str, found: &mut Vec<String>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::unreadable(directory.display(), format_args!("cannot be read: {error}"))
    };
    for entry in std::fs::read_dir(directory).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(Failure::unreadable(
                path.display(),
                "expected a name in UTF-8",
            ));
        };
        let name = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_dir() {
            collect(&path, &format!("{name}/"), found)?;
        } else if kind.is_file() {
            found.push(name);
        } else {
            return Err(Failure::unreadable(
                path.display(),
                "expected a file or a directory",
            ));
        }
    }
    Ok(())
}
