//! What a user may ask for, as data: options that all targets have, options of single targets, and the values that were given.

use crate::failure::Failure;
use crate::machine::{self, completed};
use crate::target::Target;
use crate::targets;
use chipless_device::figures::is_figure;
use chipless_model::Limits;
use chipless_model::suggest;
use chipless_report::TimedBy;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An option: a name, what it takes, and the commands that have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// Name, without dashes in front: `kernel-table`.
    pub name: &'static str,
    /// What it takes.
    pub kind: OptionKind,
    /// What the value is called in a help: `FILE.toml`.
    pub value: &'static str,
    /// What it does: a first sentence of at most 60 characters, then details.
    pub help: &'static str,
    /// The commands that have it.
    pub commands: &'static [&'static str],
    /// Whether it may be given several times.
    pub is_repeated: bool,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Any text.
    Text,
    /// A whole number from 1 on.
    Count,
    /// Nothing: it is given or not.
    Flag,
    /// The name of a file.
    File,
    /// The name of a directory.
    Directory,
    /// One of these names, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
}

impl OptionKind {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            OptionKind::Text => "text",
            OptionKind::Count => "count",
            OptionKind::Flag => "flag",
            OptionKind::File => "file",
            OptionKind::Directory => "directory",
            OptionKind::Choice(_) => "choice",
        }
    }
}

/// Commands that make a program of a file.
const LOWERING: &[&str] = &[
    "run", "debug", "check", "list", "report", "view", "diff", "iospec", "drive", "host",
];

/// The option that gives another machine.
const MACHINE: &str = "machine";

/// Options of all targets.
pub static COMMON: &[OptionSpec] = &[
    OptionSpec {
        name: MACHINE,
        kind: OptionKind::File,
        value: "NAME|FILE.toml",
        help: "Machine to use instead of the target's own. The name of a built-in machine, such as `npu5` (`chipless targets` lists them), or a machine file; \
               `chipless machine TARGET --template` prints one to edit. For a schedule: the mesh (JSON) that `chipless schedule` took, or the name of one, such \
               as `mesh4x4`. A name means the built-in machine even where a file is called so; pass that as `./npu5`",
        commands: LOWERING,
        is_repeated: false,
    },
    OptionSpec {
        name: "set",
        kind: OptionKind::Text,
        value: "KEY=VALUE",
        help: "Override a machine parameter. A value (`dma.latency=500`) or a factor (`clock.dpu=2x`); repeatable. `chipless machine TARGET` lists the keys",
        commands: LOWERING,
        is_repeated: true,
    },
    OptionSpec {
        name: "limit",
        kind: OptionKind::Text,
        value: "NAME=VALUE",
        help: "Override a limit on what a file may use. NAME is one of `memory_bytes`, `tasks`, `inflated_bytes`, `inflate_ratio`, `entries`, `path_bytes`, \
               `json_bytes`, `text_bytes`, `transfers`, `declarations`, `findings`; repeatable",
        commands: &[
            "run", "debug", "check", "info", "list", "report", "view", "diff", "iospec", "drive",
            "convert", "map", "explore",
        ],
        is_repeated: true,
    },
];

/// The calibration whose figures stand in a machine file by themselves.
const OWN_FIGURES: &str = "compiler";

/// The calibrations that there are, and what each is.
pub(crate) const CALIBRATIONS: &[(&str, &str)] = &[
    (
        OWN_FIGURES,
        "the vendor's cost model and its compiler's estimates",
    ),
    (
        "silicon",
        "fitted to published measurements, where the machine has such figures",
    ),
];

/// Which figures of the machine file count, of targets that have them from several sources.
pub(crate) const CALIBRATION: OptionSpec = OptionSpec {
    name: "calibration",
    kind: OptionKind::Choice(CALIBRATIONS),
    value: "SOURCE",
    help: "Time by the compiler's figures or by silicon's. With it, the summary shows both latencies; without, times are by the compiler's",
    commands: &["run", "debug", "report", "view", "diff"],
    is_repeated: false,
};

/// The bytes of a file.
pub type Bytes = Box<dyn Deref<Target = [u8]> + Send + Sync>;

/// Where the files are that options name. The library itself opens none.
pub trait Files: Send + Sync {
    /// Opens a file. The error is what to say after its name.
    fn open(&self, name: &str) -> Result<Bytes, String>;

    /// Whether there is a file of this name.
    fn exists(&self, name: &str) -> bool;
}

/// What names of arrays in memory start with.
const MEMORY: &str = "memory:";

/// Arrays in memory over other files.
struct Overlay {
    arrays: HashMap<String, Vec<u8>>,
    below: Option<Arc<dyn Files>>,
}

impl Files for Overlay {
    fn open(&self, name: &str) -> Result<Bytes, String> {
        let array = name
            .strip_prefix(MEMORY)
            .and_then(|name| self.arrays.get(name));
        match (array, &self.below) {
            (Some(array), _) => Ok(Box::new(array.clone())),
            (None, Some(below)) => below.open(name),
            (None, None) => Err("cannot be read: no files are at hand".to_owned()),
        }
    }

    fn exists(&self, name: &str) -> bool {
        self.below.as_ref().is_some_and(|below| below.exists(name))
    }
}

/// A file that an option names.
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub bytes: Bytes,
}

impl Input {
    /// Its text.
    pub fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            let at = error.valid_up_to();
            let text = format!("expected text in UTF-8, found other bytes at offset {at}");
            Failure::unreadable(&self.name, text)
        })
    }
}

/// The data of a run, for targets whose programs are as long as their inputs, or are made with their weights.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Whether somebody will compute with the program. Otherwise no weights are made up for it.
    pub computes: bool,
    /// `NAME=FILE.npy`.
    pub arrays: Vec<String>,
    /// Shapes of inputs by name, as a contract has them, for programs whose length follows from what they are given.
    pub shapes: HashMap<String, Vec<u64>>,
    /// Of the random data for inputs without an array.
    pub seed: u64,
}

/// What a user asks for.
#[derive(Clone, Default)]
pub struct Options {
    /// Bounds on what a file may ask for.
    pub limits: Limits,
    /// The data of a run.
    pub data: Data,
    given: Vec<(&'static OptionSpec, String)>,
    files: Option<Arc<dyn Files>>,
    machine: Option<Named>,
}

/// A machine that was given by its name, or as another kind of file.
#[derive(Clone)]
struct Named {
    /// The name or the file that was given.
    given: String,
    /// The machine's name for itself.
    name: String,
    /// The machine file that it changes.
    own: &'static str,
    /// The figures that it changes, as `--set` takes them.
    figures: Vec<String>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given.iter().map(|(spec, value)| (spec.name, value));
        f.debug_map().entries(given).finish()
    }
}

impl Options {
    /// Options that may name these files.
    pub fn with_files(files: impl Files + 'static) -> Options {
        Options {
            files: Some(Arc::new(files)),
            ..Options::default()
        }
    }

    /// Gives an option a value; one that is repeated, a further one.
    ///
    /// # Errors
    /// A name that no target has as an option, or a value of another kind.
    pub fn set(&mut self, name: &str, value: impl Into<String>) -> Result<(), Failure> {
        let (value, all) = (value.into(), targets::options());
        let Some((spec, _)) = all.iter().find(|(spec, _)| spec.name == name) else {
            let hint = suggest::hint(name, all.iter().map(|(spec, _)| spec.name));
            let names: Vec<&str> = all.iter().map(|(spec, _)| spec.name).collect();
            let text = format!(
                "expected the name of an option ({}), found \"{name}\"{hint}",
                names.join(", ")
            );
            return Err(Failure::misuse("options", text));
        };
        let wrong = |expected: &str| {
            let text = format!("expected {expected}, found \"{value}\"");
            Err(Failure::misuse(format_args!("--{name}"), text))
        };
        match spec.kind {
            OptionKind::Count if value.parse::<u32>().is_ok_and(|n| n > 0) => {}
            OptionKind::Count => return wrong("a whole number from 1 on"),
            OptionKind::Flag if value != "true" => return wrong("true"),
            OptionKind::Choice(choices) if !choices.iter().any(|(name, _)| *name == value) => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                return wrong(&format!("one of {}", names.join(", ")));
            }
            _ => {}
        }
        if name == "limit" {
            self.limit(&value)?;
        }
        if name == MACHINE {
            self.machine = machine::built_in(&value).map(|(.., own)| Named {
                given: value.clone(),
                name: machine::name(own).to_owned(),
                own,
                figures: Vec::new(),
            });
        }
        if !spec.is_repeated {
            self.given.retain(|(known, _)| known.name != name);
        }
        self.given.push((spec, value));
        Ok(())
    }

    /// `NAME=VALUE`.
    fn limit(&mut self, entry: &str) -> Result<(), Failure> {
        let misused = |text: String| Failure::misuse("--limit", text);
        let (name, value) = entry
            .split_once('=')
            .ok_or_else(|| misused(format!("expected NAME=VALUE, found \"{entry}\"")))?;
        let number = value.parse().map_err(|_| {
            misused(format!(
                "expected a whole number for {name}, found \"{value}\""
            ))
        })?;
        if self.limits.set(name, number) {
            return Ok(());
        }
        let known: Vec<&str> = Limits::NAMES.iter().map(|(name, _)| *name).collect();
        let hint = suggest::hint(name, known.iter().copied());
        Err(misused(format!(
            "expected one of {}, found \"{name}\"{hint}",
            known.join(", ")
        )))
    }

    /// The same options but one.
    #[must_use]
    pub fn without(&self, name: &str) -> Options {
        let mut options = self.clone();
        options.given.retain(|(spec, _)| spec.name != name);
        options
    }

    /// The values of an option, in the order in which they were given.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given
            .iter()
            .filter(move |(spec, _)| spec.name == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of an option.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values(name).last()
    }

    /// The file that an option names.
    pub fn file(&self, name: &str) -> Result<Option<Input>, Failure> {
        self.value(name).map(|path| self.open(path)).transpose()
    }

    /// The machine file that was given; `None` where a machine was given by its name.
    ///
    /// # Errors
    /// A file that cannot be read, and a name of no machine.
    pub fn machine_file(&self) -> Result<Option<Input>, Failure> {
        let Some(name) = self.value(MACHINE).filter(|_| self.machine.is_none()) else {
            return Ok(None);
        };
        let file = self.open(name).map_err(|mut failure| {
            // A name without an ending is hardly that of a file.
            if !name.contains(['/', '\\', '.']) {
                let known: Vec<&str> = machine::names().collect();
                let hint = suggest::hint(name, known.iter().copied());
                failure.message = format!(
                    "expected a machine file, or one of the built-in machines ({}), found no file of this name{hint}",
                    known.join(", ")
                );
            }
            failure
        });
        file.map(Some)
    }

    /// Opens a file.
    pub fn open(&self, name: &str) -> Result<Input, Failure> {
        let bytes = match &self.files {
            Some(files) => files.open(name),
            None => Err("cannot be read: no files are at hand".to_owned()),
        };
        match bytes {
            Ok(bytes) => Ok(Input {
                name: name.to_owned(),
                bytes,
            }),
            Err(error) => Err(Failure::unreadable(name, error)),
        }
    }

    /// The same options for a run with these arrays (`.npy`) as its inputs.
    #[must_use]
    pub fn with_arrays(&self, arrays: HashMap<String, Vec<u8>>) -> Options {
        let mut options = self.clone();
        options.data.arrays = arrays
            .keys()
            .map(|name| format!("{name}={MEMORY}{name}"))
            .collect();
        // No result may depend on the order of a hash table.
        options.data.arrays.sort();
        options.files = Some(Arc::new(Overlay {
            arrays,
            below: self.files.clone(),
        }));
        options
    }

    /// Whether there is a file of this name.
    pub fn exists(&self, name: &str) -> bool {
        self.files.as_ref().is_some_and(|files| files.exists(name))
    }

    /// The machine: the file that was given, or else the target's own with some figures that the program's file says; then the figures that
    /// were given.
    pub fn machine<T>(
        &self,
        own: &str,
        figures: &[String],
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let (name, text) = self.base_machine(own, figures)?;
        let given = self.changes(&text)?;
        let changed = machine::with_figures(&text, &given, false)?;
        let machine = match read(&changed) {
            // Some figures take whole numbers only.
            Err(_) if machine::has_factor(&given) => {
                read(&machine::with_figures(&text, &given, true)?)
            }
            read => read,
        };
        machine.map_err(|error| Failure::misuse(name, error.trim_end()))
    }

    /// The text of that machine.
    pub(crate) fn machine_text(&self, own: &str, figures: &[String]) -> Result<String, Failure> {
        let (_, text) = self.base_machine(own, figures)?;
        let given = self.changes(&text)?;
        machine::with_figures(&text, &given, false)
    }

    /// What to say of the machine that these options make of a program's own. The machine itself is
    /// not made: each run of a sweep says it.
    pub(crate) fn timed_by(&self, own: &str) -> Result<TimedBy, Failure> {
        let (text, named) = match &self.machine {
            // A built-in machine under its own name is no file.
            Some(of) => {
                let named = (!of.figures.is_empty()).then(|| of.given.clone());
                (Cow::Borrowed(of.own), named)
            }
            None => match self.machine_file()? {
                Some(file) => (Cow::Owned(file.text()?.to_owned()), Some(file.name)),
                None => (Cow::Borrowed(own), None),
            },
        };
        let name = self.machine.as_ref().map(|of| of.name.clone());
        let calibration = self.value(CALIBRATION.name).filter(|n| *n != OWN_FIGURES);
        let others = CALIBRATIONS.iter().map(|(name, _)| *name);
        let others =
            others.filter(|name| calibration.is_none() && machine::has_section(&text, name));
        let other_calibrations = others.map(str::to_owned).collect();
        let defaulted = match (&self.machine, &named) {
            (None, Some(_)) => completed(&text, own).defaulted,
            _ => BTreeSet::new(),
        };
        Ok(TimedBy {
            name: name.unwrap_or_else(|| machine::name(&text).to_owned()),
            file: named,
            set: self.values("set").map(str::to_owned).collect(),
            calibration: calibration.map(str::to_owned),
            other_calibrations,
            // Runs do not use those of the device.
            defaulted: defaulted
                .into_iter()
                .filter(|key| !is_figure(key))
                .collect(),
        })
    }

    /// The machine before figures were set, and where it comes from.
    pub(crate) fn base_machine(
        &self,
        own: &str,
        figures: &[String],
    ) -> Result<(String, String), Failure> {
        if let Some(of) = &self.machine {
            return Ok((of.given.clone(), of.own.to_owned()));
        }
        if let Some(file) = self.machine_file()? {
            return Ok((file.name.clone(), completed(file.text()?, own).text));
        }
        let text = machine::with_figures(own, figures, false)?;
        Ok(("--set".to_owned(), text))
    }

    /// Times programs by a machine that was given as another kind of file, and has this name for itself: by this machine file with these
    /// figures changed, as `--set` takes them.
    pub fn set_machine(
        &mut self,
        given: impl Into<String>,
        name: impl Into<String>,
        (own, figures): (&'static str, Vec<String>),
    ) {
        self.machine = Some(Named {
            given: given.into(),
            name: name.into(),
            own,
            figures,
        });
    }

    /// The changes of a machine that were asked for: those that it was given by, the figures of a calibration, which is a section of the machine file where it is not
    /// that of the figures themselves, then those of `--set`.
    fn changes(&self, machine: &str) -> Result<Vec<String>, Failure> {
        let section = self.value(CALIBRATION.name).filter(|n| *n != OWN_FIGURES);
        let own = self.machine.iter().flat_map(|of| &of.figures);
        let mut changes: Vec<String> = own.cloned().collect();
        if let Some(section) = section {
            let figures = machine::section(machine, section).ok_or_else(|| {
                let text = format!("expected a machine with a section [{section}], found none");
                Failure::misuse("--calibration", text)
            })?;
            changes.extend(figures);
        }
        changes.extend(self.values("set").map(str::to_owned));
        Ok(changes)
    }

    /// Targets that have all the options that were given and that not every target has; empty where there are none.
    pub(crate) fn owners(&self) -> Vec<&'static str> {
        let all = targets::options();
        let is_common = |spec: &OptionSpec| COMMON.iter().any(|known| known.name == spec.name);
        let mut owners: Option<Vec<&'static str>> = None;
        for (spec, _) in self.given.iter().filter(|(spec, _)| !is_common(spec)) {
            let of_this = all
                .iter()
                .find(|(known, _)| known.name == spec.name)
                .map(|(_, owners)| owners.clone())
                .unwrap_or_default();
            match &mut owners {
                Some(owners) => owners.retain(|owner| of_this.contains(owner)),
                None => owners = Some(of_this),
            }
        }
        owners.unwrap_or_default()
    }

    /// The options that were given, as arguments of a command line that may be started anywhere: paths are made absolute by `absolute`.
    ///
    /// # Errors
    /// Those of `absolute`.
    pub fn arguments<E>(
        &self,
        absolute: impl Fn(&str) -> Result<String, E>,
    ) -> Result<Vec<String>, E> {
        let mut arguments = Vec::new();
        for (spec, value) in &self.given {
            arguments.push(format!("--{}", spec.name));
            match spec.kind {
                OptionKind::Flag => {}
                OptionKind::File if machine::built_in(value).is_some() && spec.name == MACHINE => {
                    arguments.push(value.clone());
                }
                OptionKind::File | OptionKind::Directory => arguments.push(absolute(value)?),
                OptionKind::Text | OptionKind::Count | OptionKind::Choice(_) => {
                    arguments.push(value.clone());
                }
            }
        }
        Ok(arguments)
    }

    /// Refuses options that a target does not have.
    ///
    /// # Errors
    /// The first such option, with the targets that have it.
    pub fn fit(&self, target: &dyn Target) -> Result<(), Failure> {
        let all = targets::options();
        for (spec, _) in &self.given {
            let owners = all
                .iter()
                .find(|(known, _)| known.name == spec.name)
                .map(|(_, owners)| owners.as_slice())
                .unwrap_or_default();
            if !owners.contains(&target.name()) {
                let text = format!(
                    "expected a file of target {}, which has this option, found one of {}",
                    owners.join(" or "),
                    target.name()
                );
                return Err(Failure::misuse(format_args!("--{}", spec.name), text));
            }
        }
        // A machine that was given by its name is one of the target that has its figures.
        if let Some(Named { given, own, .. }) = &self.machine {
            let has_it = |of: &dyn Target| of.machines().iter().any(|(_, text)| text == own);
            if !has_it(target) {
                let owner = targets::TARGETS.iter().find(|of| has_it(**of));
                let others: Vec<&str> = target.machines().iter().map(|(name, _)| *name).collect();
                let text = format!(
                    "expected a machine of target {0} ({1}, or a file), found `{given}`, one of {2}. `chipless machine {0} --template > m.toml` prints a file to edit and to pass",
                    target.name(),
                    others.join(", "),
                    owner.map_or("none", |owner| owner.name()),
                );
                return Err(Failure::misuse("--machine", text));
            }
        }
        Ok(())
    }
}
