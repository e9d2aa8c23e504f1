//! `chipless debug`

use crate::commands::Opened;
use crate::commands::order::{Asked, ORDERS};
use crate::commands::pool;
use crate::commands::run::{inputs, refusal, verify};
use crate::failure::{Exit, Failure};
use crate::files;
use crate::options::{InputOptions, TargetOptions};
use crate::policy::PolicyOptions;
use chipless_debug::dap::{self, Launch};
use chipless_debug::{Console, Debugger, Session, script, terminal};
use chipless_model::Storage;
use chipless_sim::Verified;
use clap::{Args, Parser};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::mem::ManuallyDrop;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

/// Step through a program, forwards and backwards.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
    ///
    /// With `--dap`, the editor passes it.
    #[arg(value_name = "FILE", required_unless_present_any = ["dap", "dap_port"])]
    file: Option<PathBuf>,
    /// Execute commands from a file, or `-` for stdin.
    ///
    /// One command per line. Without `--script`, the debugger opens a full screen in the terminal.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Answer each script command with one JSON line.
    #[arg(long, requires = "script")]
    json: bool,
    /// Speak the Debug Adapter Protocol over stdin and stdout.
    ///
    /// For editors such as VS Code, Neovim and Emacs.
    #[arg(long, conflicts_with = "script")]
    dap: bool,
    /// Serve one DAP client on this port of 127.0.0.1.
    #[arg(long, value_name = "N", conflicts_with_all = ["script", "dap"])]
    dap_port: Option<u16>,
    #[command(flatten)]
    data: InputOptions,
    /// Task order (see run): `timed`, `random:SEED`, `late:TASK`.
    #[arg(long, value_name = ORDERS, default_value = "timed")]
    order: Asked,
    /// Debug a program even if `check` finds errors.
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    policy: PolicyOptions,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless debug model.blob                       on a terminal: a full screen
  chipless debug model.blob --input x=x.npy --script commands.txt
  echo 'break dpu0[3]
  continue
  print dpu0[3].in[0]' | chipless debug model.blob --script - --json
  chipless debug --dap                            for an editor

The commands are gdb's: break, continue, step, next, print; reverse-continue, reverse-step and reverse-next go back. `help` shows \
all of them. docs/debugging.md goes from a wrong output to the guilty task.

Exit status: 0 done, 1 a command of the script failed or the program was refused, 2 a file cannot be used or the command was \
misused.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    pool::start(None)?;
    if arguments.dap {
        return serve(io::stdin(), io::stdout());
    }
    if let Some(port) = arguments.dap_port {
        return serve_port(port);
    }
    let Some(path) = &arguments.script else {
        return on_terminal(arguments);
    };
    let text = files::read_text(path)?;
    with_console(arguments, |mut console| {
        let mut out = BufWriter::new(io::stdout().lock());
        let good = script::run(&mut console, text.as_bytes(), &mut out, arguments.json)
            .map_err(|error| Failure::output(&error))?;
        Ok(if good { Exit::Done } else { Exit::Wrong })
    })
}

/// The full screen.
fn on_terminal(arguments: &Arguments) -> Result<Exit, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let text = "expected a terminal, found none; --script FILE executes commands, --dap serves an editor";
        return Err(Failure::misuse("debug", text));
    }
    let file = arguments
        .file
        .as_ref()
        .map(|file| file.display().to_string());
    with_console(arguments, |mut console| {
        terminal::run(&mut console, &file.unwrap_or_default())
            .map_err(|error| Failure::misuse("debug", error))?;
        Ok(Exit::Done)
    })
}

/// Serves an editor until it disconnects.
fn serve(input: impl Read + Send + 'static, output: impl Write + Send) -> Result<Exit, Failure> {
    let served = dap::serve(input, output, &mut |launch, then| {
        let arguments = Launched::arguments(launch)?;
        let opened = with_console(&arguments, |console| {
            then(console);
            Ok(())
        });
        opened.map_err(|failure| failure.text().trim_end().to_owned())
    });
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(error) => Err(Failure::misuse("--dap", error)),
    }
}

/// The same on a port, for the first who comes.
fn serve_port(port: u16) -> Result<Exit, Failure> {
    let failed = |error| Failure::misuse("--dap-port", error);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    let (stream, _) = listener.accept().map_err(failed)?;
    let output = stream.try_clone().map_err(failed)?;
    serve(stream, output)
}

/// What an editor asks for, as a command line.
#[derive(Debug, Parser)]
#[command(name = "debug")]
struct Launched {
    #[command(flatten)]
    arguments: Arguments,
}

impl Launched {
    fn arguments(launch: &Launch) -> Result<Arguments, String> {
        let mut words = vec!["debug".to_owned(), format!("--seed={}", launch.seed)];
        words.extend(
            launch
                .inputs
                .iter()
                .map(|(name, path)| format!("--input={name}={path}")),
        );
        words.extend(launch.order.iter().map(|order| format!("--order={order}")));
        words.extend(launch.no_verify.then(|| "--no-verify".to_owned()));
        words.extend(launch.options.iter().cloned());
        words.extend(["--".to_owned(), launch.program.clone()]);
        let launched = Launched::try_parse_from(words);
        launched
            .map(|l| l.arguments)
            .map_err(|error| error.render().to_string())
    }
}

/// Opens the program, gives it its inputs, and hands over a debugger that stands at the start.
fn with_console<T: Send>(
    arguments: &Arguments,
    then: impl FnOnce(Console<'_, '_>) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    let Some(path) = &arguments.file else {
        return Err(Failure::misuse("FILE", "expected a program, found none"));
    };
    let mut options = arguments.options.load()?;
    options.data = arguments.data.data(true);
    let policy = arguments.policy.load()?;
    let opened = Opened::open(path)?;
    opened.with_document(&options, |document| {
        // The process ends with it: to take it apart would be work for nobody.
        let lowered = ManuallyDrop::new(document.lower()?);
        let program = &lowered.program;
        let mut findings = document.findings().to_vec();
        policy.apply(&opened.path, &mut findings);
        if !arguments.no_verify
            && let Some((failure, _)) = refusal(
                &opened,
                document,
                program,
                &policy,
                &findings,
                verify(program),
            )
        {
            return Err(failure);
        }
        let given = inputs::open(&opened.path, program, &arguments.data.inputs)?;
        let mut storage =
            Storage::new(&program.buffers, &options.limits).map_err(chipless::no_room)?;
        inputs::fill(
            &opened.path,
            program,
            &given,
            &[],
            arguments.data.seed,
            &mut storage,
        )?;
        let order = arguments.order.of(&opened, program)?;
        // On a thread of the pool: kernels fork from there, and need not wake the pool each time.
        rayon::scope(|_| {
            let session = Session::new(&Verified::assume(program), order, storage);
            then(Console::new(Debugger::new(session)))
        })
    })
}
