//! The Debug Adapter Protocol: a debugger for editors.
//!
//! Messages are read and written as JSON values: of the crates on crates.io that have types for the protocol, one writes field names that
//! the protocol does not have (`dap`), and the other is of 2019 (`debugserver-types`).

mod adapter;
mod requests;
mod variables;
mod wire;

use crate::command::Console;
use adapter::Adapter;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The arguments of `launch`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Launch {
    /// The file.
    pub program: String,
    /// Files of inputs by name.
    pub inputs: BTreeMap<String, String>,
    /// Seed of random inputs.
    pub seed: u64,
    /// `timed` or `random:SEED`.
    pub order: Option<String>,
    /// Whether to debug a program with errors.
    pub no_verify: bool,
    /// Whether to stop before the first effect.
    pub stop_on_entry: bool,
    /// Options as on the command line.
    pub options: Vec<String>,
}

/// Opens what `launch` asks for and hands over a debugger that stands at the start; the error is what to tell the user.
pub type Open<'o> =
    dyn FnMut(&Launch, &mut (dyn FnMut(Console<'_, '_>) + Send)) -> Result<(), String> + 'o;

/// A request of the client.
#[derive(Debug, Deserialize)]
struct Request {
    seq: i64,
    command: String,
    #[serde(default)]
    arguments: Json,
}

/// Serves one client until it disconnects or goes away.
///
/// # Errors
/// What it sends is not the protocol; nobody reads the answers.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send,
    open: &mut Open<'_>,
) -> io::Result<()> {
    let interrupt: Arc<AtomicBool> = Arc::default();
    let (sender, requests) = channel();
    let flag = interrupt.clone();
    std::thread::spawn(move || read(input, &sender, &flag));
    let mut link = Link {
        output,
        seq: 0,
        requests,
    };
    while let Some(request) = link.next()? {
        match request.command.as_str() {
            "initialize" => link.answer(&request, Ok(capabilities()))?,
            "launch" => {
                if launch(&mut link, &request, &interrupt, open)? {
                    return Ok(());
                }
            }
            "disconnect" | "terminate" => {
                link.answer(&request, Ok(json!({})))?;
                return Ok(());
            }
            "attach" => {
                let text = "expected launch: there is no process to attach to";
                link.answer(&request, Err(text.to_owned()))?;
            }
            other => link.answer(&request, Err(format!("expected launch before {other}")))?,
        }
    }
    Ok(())
}

/// Serves a program until the client disconnects. Returns whether it was opened.
fn launch<W: Write + Send>(
    link: &mut Link<W>,
    request: &Request,
    interrupt: &Arc<AtomicBool>,
    open: &mut Open<'_>,
) -> io::Result<bool> {
    let launch: Launch = match serde_json::from_value(request.arguments.clone()) {
        Ok(launch) => launch,
        Err(error) => {
            link.answer(request, Err(format!("launch: {error}")))?;
            return Ok(false);
        }
    };
    let mut served: Option<io::Result<()>> = None;
    let opened = open(&launch, &mut |mut console| {
        console.interrupt = interrupt.clone();
        let started = link
            .answer(request, Ok(json!({})))
            .and_then(|()| link.event("initialized", &json!({})));
        served = Some(started.and_then(|()| Adapter::new(&launch, console, link).serve()));
    });
    match (opened, served) {
        (_, Some(served)) => served.map(|()| true),
        (Err(error), None) => link.answer(request, Err(error)).map(|()| false),
        (Ok(()), None) => Ok(true),
    }
}

/// Reads requests on a thread of its own, so that one can end what another started.
fn read(input: impl Read, sender: &Sender<io::Result<Request>>, interrupt: &AtomicBool) {
    let mut input = BufReader::new(input);
    loop {
        let message = wire::read(&mut input).transpose();
        let Some(message) = message else {
            interrupt.store(true, Ordering::Relaxed);
            return;
        };
        let request = message.and_then(|message| {
            serde_json::from_value::<Request>(message)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
        });
        let ends = match &request {
            Ok(request) => ["pause", "disconnect", "terminate"].contains(&&*request.command),
            Err(_) => true,
        };
        if ends {
            interrupt.store(true, Ordering::Relaxed);
        }
        let failed = request.is_err();
        if sender.send(request).is_err() || failed {
            return;
        }
    }
}

/// The way to the client and back.
struct Link<W> {
    output: W,
    seq: i64,
    requests: Receiver<io::Result<Request>>,
}

impl<W: Write> Link<W> {
    /// The next request; `None` when the client is gone.
    fn next(&mut self) -> io::Result<Option<Request>> {
        self.requests.recv().ok().transpose()
    }

    fn send(&mut self, mut message: Json) -> io::Result<()> {
        self.seq += 1;
        message["seq"] = self.seq.into();
        wire::write(&mut self.output, &message)
    }

    fn answer(&mut self, request: &Request, body: Result<Json, String>) -> io::Result<()> {
        let mut message = json!({
            "type": "response",
            "request_seq": request.seq,
            "command": request.command,
            "success": body.is_ok(),
        });
        match body {
            Ok(body) => message["body"] = body,
            Err(error) => {
                message["body"] = json!({"error": {
                    "id": 1,
                    "format": "{text}",
                    "variables": {"text": error},
                    "showUser": true,
                }});
                message["message"] = error.into();
            }
        }
        self.send(message)
    }

    fn event(&mut self, event: &str, body: &Json) -> io::Result<()> {
        self.send(json!({"type": "event", "event": event, "body": body}))
    }
}

fn capabilities() -> Json {
    let filter = |name: &str, label: &str, default: bool| json!({"filter": name, "label": label, "default": default});
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsStepBack": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsDataBreakpointBytes": false,
        "supportsReadMemoryRequest": true,
        "supportsEvaluateForHovers": true,
        "supportsTerminateRequest": true,
        "supportsRestartRequest": true,
        "supportsLoadedSourcesRequest": true,
        "supportsExceptionInfoRequest": true,
        "exceptionBreakpointFilters": [
            filter("nan", "NaN written", false),
            filter("inf", "Infinity written", false),
            filter("fault", "Fault", true),
            filter("deadlock", "Deadlock", true),
        ],
    })
}
