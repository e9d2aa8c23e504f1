//! The commands of the debugger, in gdb's words: what they are called, what they do, what they answer.

mod inspect;
mod movement;
mod stops;

pub(crate) use inspect::{described, operands, server_name, shown, sync_text, syncs_of, waiting};
pub(crate) use stops::condition;

use crate::debugger::{Debugger, Reason, Stop};
use crate::listing::Listing;
use chipless::suggest;
use serde_json::{Map, Value as Json, json};
use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a command answers.
#[derive(Debug, Default)]
pub struct Answer {
    /// For people: lines, each with its end.
    pub text: String,
    /// For programs.
    pub fields: Map<String, Json>,
    /// Whether the debugger should end.
    pub quits: bool,
}

impl Answer {
    fn said(text: impl Into<String>) -> Answer {
        Answer {
            text: text.into(),
            ..Answer::default()
        }
    }

    fn with(mut self, field: &str, value: impl Into<Json>) -> Answer {
        self.fields.insert(field.to_owned(), value.into());
        self
    }
}

/// A command.
struct Spec {
    name: &'static str,
    /// gdb's abbreviations, where the shortest prefix would be another command.
    short: &'static [&'static str],
    arguments: &'static str,
    help: &'static str,
    run: fn(&mut Console<'_, '_>, &str) -> Result<Answer, String>,
}

const COMMANDS: &[Spec] = &[
    Spec {
        name: "break",
        short: &["b"],
        arguments: "TASK|OPERATION|layer:NAME [if EXPR]",
        help: "Stop before a task, each task of an operation, or the first task of a layer",
        run: stops::set_break,
    },
    Spec {
        name: "tbreak",
        short: &["tb"],
        arguments: "TASK|OPERATION|layer:NAME [if EXPR]",
        help: "Set a breakpoint that is deleted when it is hit",
        run: stops::set_temporary,
    },
    Spec {
        name: "watch",
        short: &[],
        arguments: "RANGE [read|write|access] [if EXPR]",
        help: "Stop before a task that reads or writes these bytes; `write` is the default",
        run: stops::watch,
    },
    Spec {
        name: "catch",
        short: &[],
        arguments: "nan|inf|fault|deadlock",
        help: "Stop before the task that writes a NaN or an infinity or cannot run, or where the program hangs",
        run: stops::catch,
    },
    Spec {
        name: "delete",
        short: &["d"],
        arguments: "[N]",
        help: "Delete breakpoint, watchpoint or catchpoint N; without N, all of them",
        run: stops::delete,
    },
    Spec {
        name: "info",
        short: &["i"],
        arguments: "breakpoints|queues|syncs|buffers|locals|layers",
        help: "Show breakpoints, queues, …; locals are the operands of the current task",
        run: inspect::info,
    },
    Spec {
        name: "run",
        short: &["r"],
        arguments: "",
        help: "Go back to the start and continue",
        run: movement::run,
    },
    Spec {
        name: "continue",
        short: &["c"],
        arguments: "",
        help: "Continue to the next stop",
        run: movement::go,
    },
    Spec {
        name: "step",
        short: &["s"],
        arguments: "[N]",
        help: "Execute N effects of any queue; default 1",
        run: movement::step,
    },
    Spec {
        name: "next",
        short: &["n"],
        arguments: "[N]",
        help: "Execute until N effects of the current task's queue have happened; default 1",
        run: movement::next,
    },
    Spec {
        name: "finish",
        short: &["fin"],
        arguments: "",
        help: "Go to the end of the layer of the current task",
        run: movement::finish,
    },
    Spec {
        name: "until",
        short: &["u"],
        arguments: "TASK",
        help: "Continue to a task",
        run: movement::until,
    },
    Spec {
        name: "reverse-continue",
        short: &["rc"],
        arguments: "",
        help: "Go back to the previous stop",
        run: movement::reverse_go,
    },
    Spec {
        name: "reverse-step",
        short: &["rs"],
        arguments: "[N]",
        help: "Go back N effects of any queue; default 1",
        run: movement::reverse_step,
    },
    Spec {
        name: "reverse-next",
        short: &["rn"],
        arguments: "[N]",
        help: "Go back N effects of the current task's queue; default 1",
        run: movement::reverse_next,
    },
    Spec {
        name: "goto",
        short: &["g"],
        arguments: "K|TASK|end",
        help: "Jump to effect K, to a task or to the end, in either direction, past all stops",
        run: movement::goto,
    },
    Spec {
        name: "print",
        short: &["p"],
        arguments: "EXPR",
        help: "Evaluate an expression: a tensor, a statistic of it, a comparison",
        run: inspect::print,
    },
    Spec {
        name: "x",
        short: &[],
        arguments: "/COUNT TYPE ADDRESS",
        help: "Show COUNT elements from an address on",
        run: inspect::examine,
    },
    Spec {
        name: "list",
        short: &["l"],
        arguments: "[TASK]",
        help: "Show a task as `chipless list` does; default the current task",
        run: inspect::list,
    },
    Spec {
        name: "where",
        short: &["w", "bt"],
        arguments: "",
        help: "Show the current task, its effect and the time",
        run: inspect::place,
    },
    Spec {
        name: "writer",
        short: &[],
        arguments: "RANGE",
        help: "Show the tasks that wrote the current values of these bytes; BUFFER+OFFSET is one element",
        run: inspect::writer,
    },
    Spec {
        name: "readers",
        short: &[],
        arguments: "RANGE",
        help: "Show the tasks that read the current values of these bytes; BUFFER+OFFSET is one element",
        run: inspect::readers,
    },
    Spec {
        name: "save",
        short: &[],
        arguments: "FILE.npy EXPR",
        help: "Write a tensor to a file",
        run: inspect::save,
    },
    Spec {
        name: "help",
        short: &["h"],
        arguments: "[COMMAND]",
        help: "Show the commands, or one of them",
        run: help,
    },
    Spec {
        name: "quit",
        short: &["q"],
        arguments: "",
        help: "End",
        run: quit,
    },
];

/// A debugger that takes commands.
pub struct Console<'p, 'a> {
    /// What they are for.
    pub debugger: Debugger<'p, 'a>,
    /// Set from outside to end a command that runs the program.
    pub interrupt: Arc<AtomicBool>,
    listing: OnceCell<Listing>,
}

impl<'p, 'a> Console<'p, 'a> {
    /// For a debugger.
    pub fn new(debugger: Debugger<'p, 'a>) -> Console<'p, 'a> {
        Console {
            debugger,
            interrupt: Arc::default(),
            listing: OnceCell::new(),
        }
    }

    pub(crate) fn listing(&self) -> &Listing {
        let session = &self.debugger.session;
        self.listing
            .get_or_init(|| Listing::of(session.program(), session.timeline()))
    }

    /// The full name of the command of a line; `None` where it has none.
    pub fn name(line: &str) -> Option<&'static str> {
        find(words(line).0).ok().map(|spec| spec.name)
    }

    /// Does what a line says.
    ///
    /// # Errors
    /// It is no command, or cannot be done.
    pub fn execute(&mut self, line: &str) -> Result<Answer, String> {
        let (word, arguments) = words(line);
        (find(word)?.run)(self, arguments)
    }

    /// The same, only of commands that neither move nor write a file nor change what stops.
    ///
    /// # Errors
    /// As of [`execute`](Console::execute).
    pub fn ask(&mut self, line: &str) -> Result<Answer, String> {
        let (word, arguments) = words(line);
        let spec = find(word)?;
        let looks = [
            "info", "print", "x", "list", "where", "writer", "readers", "help",
        ];
        if looks.contains(&spec.name) {
            return (spec.run)(self, arguments);
        }
        Err(format!(
            "expected one of {}, found {}",
            looks.join(", "),
            spec.name
        ))
    }

    /// A stop as an answer: where it is, and why.
    fn stopped(&self, stop: &Stop) -> Answer {
        let mut answer = inspect::position(self);
        let mut text = match (&*stop.detail, stop.reason) {
            ("", reason) => reason.name().to_owned(),
            // It stands where it was told to: how it came there says more than the reason's name.
            (detail, Reason::Step) => detail.to_owned(),
            (detail, reason) => format!("{}: {detail}", reason.name()),
        };
        text.push('\n');
        text.push_str(&answer.text);
        answer.text = text;
        answer
            .with("reason", stop.reason.name())
            .with("detail", stop.detail.clone())
    }
}

/// The command of a line and its arguments. A number may follow `x` without a blank.
fn words(line: &str) -> (&str, &str) {
    let line = line.trim();
    let end = line
        .find(|c: char| c.is_whitespace() || c == '/')
        .unwrap_or(line.len());
    (&line[..end], line[end..].trim())
}

fn find(word: &str) -> Result<&'static Spec, String> {
    if let Some(exact) = COMMANDS
        .iter()
        .find(|c| c.name == word || c.short.contains(&word))
    {
        return Ok(exact);
    }
    let fitting: Vec<&Spec> = COMMANDS
        .iter()
        .filter(|c| !word.is_empty() && c.name.starts_with(word))
        .collect();
    match *fitting {
        [one] => Ok(one),
        [] => {
            let hint = suggest::hint(word, COMMANDS.iter().map(|c| c.name));
            Err(format!(
                "expected a command, found \"{word}\"{hint}; `help` shows them"
            ))
        }
        _ => {
            let names: Vec<&str> = fitting.iter().map(|c| c.name).collect();
            Err(format!(
                "expected one command, found \"{word}\", which may be {}",
                names.join(", ")
            ))
        }
    }
}

fn help(_: &mut Console<'_, '_>, arguments: &str) -> Result<Answer, String> {
    let one = |spec: &Spec| {
        format!("{} {}", spec.name, spec.arguments)
            .trim_end()
            .to_owned()
    };
    if !arguments.is_empty() {
        let spec = find(arguments)?;
        let short = match spec.short {
            [] => String::new(),
            short => format!(" Short: {}.", short.join(", ")),
        };
        let text = format!("{}\n  {}.{short}\n", one(spec), spec.help);
        return Ok(Answer::said(text).with("help", one(spec)));
    }
    let mut text = String::new();
    for spec in COMMANDS {
        text.push_str(&format!("{}\n    {}\n", one(spec), spec.help));
    }
    text.push_str(
        "\nRANGE is BUFFER+OFFSET..END, a tensor's name, TASK.in[K] or TASK.out[K].\n\
         EXPR is a RANGE as a tensor, with numpy slices; min max mean std nan inf sum shape dtype crc of it;\n\
         comparisons, and, or, not; time (ns), effect. `as TYPE` reads the bytes as another type, before slices.\n\
         TYPE is float32, bfloat16, int8, … or a short name: fp32, bf16, i8. A name may leave out what stands before a\n\
         dot, as psum for sg00.psum, where it stays unique.\n",
    );
    let names: Vec<&str> = COMMANDS.iter().map(|c| c.name).collect();
    Ok(Answer::said(text).with("commands", json!(names)))
}

#[expect(clippy::unnecessary_wraps, reason = "all commands have one form")]
fn quit(_: &mut Console<'_, '_>, _: &str) -> Result<Answer, String> {
    Ok(Answer {
        quits: true,
        ..Answer::default()
    })
}

/// Refuses arguments of a command that takes none.
fn nothing(arguments: &str) -> Result<(), String> {
    if arguments.is_empty() {
        Ok(())
    } else {
        Err(format!("expected no arguments, found \"{arguments}\""))
    }
}
