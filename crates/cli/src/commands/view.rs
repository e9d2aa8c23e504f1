//! `chipless view`

mod bytes;

use super::Opened;
use super::page::{self, AgainstOptions};
use crate::failure::{Exit, Failure};
use crate::options::{InputOptions, TargetOptions};
use crate::terminal;
use chipless::Options;
use chipless_report::page::Served;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tiny_http::{Header, Method, Request, Response, Server};

/// Show a run in the browser; reload when the file changes.
///
/// The page is served to this machine only. If the file later becomes invalid, the page shows the error. Click in the picture of a memory to see
/// the bytes there at that instant. Press Ctrl-C to stop.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A program file of any target.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    against: AgainstOptions,
    /// The port to serve it at; any free one without.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    #[command(flatten)]
    data: InputOptions,
    /// Only keep time: the page shows no bytes.
    #[arg(long)]
    timing_only: bool,
    /// Do not open a browser.
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    options: TargetOptions,
}

const EXAMPLES: &str = "\
Examples:
  chipless view model.blob
  chipless view model.blob --input x=x.npy                                  bytes of these data
  chipless view schedule.json --network network.json --port 8000 --no-open
  chipless view old.blob --against new.blob

Exit status: 1 the program is wrong, 2 the file cannot be read, or the port is taken. A file that becomes wrong later is told of on the page.";

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let mut options = arguments.options.load()?;
    options.data = arguments.data.data(!arguments.timing_only);
    terminal::complain(&format!(
        "{}: making the page; its address follows\n",
        arguments.file.display()
    ));
    let mut page = Page::of(arguments, &options)?;
    let server = Server::http(("127.0.0.1", arguments.port))
        .map_err(|error| Failure::misuse("--port", error))?;
    let address = server.server_addr().to_string();
    let address = format!("http://{address}/");
    terminal::print(&format!("{address}\n"))?;
    if !arguments.no_open && open::that_detached(&address).is_err() {
        terminal::complain("no browser could be started: open the address in one\n");
    }
    for request in server.incoming_requests() {
        page.refresh(arguments, &options);
        page.answer(request, &options);
    }
    Ok(Exit::Done)
}

/// The page as it was last made.
struct Page {
    /// The file, unless it was wrong when it was last looked at.
    opened: Option<Opened>,
    html: String,
    is_timing_only: bool,
    /// How often it was made.
    version: usize,
    /// When the files that it shows were written.
    stamps: Vec<Option<SystemTime>>,
}

impl Page {
    fn of(arguments: &Arguments, options: &Options) -> Result<Page, Failure> {
        let stamps = stamps(arguments);
        let (opened, html) = make(arguments, options)?;
        if !arguments.data.inputs.is_empty() {
            bytes::check_inputs(&opened, options)?;
        }
        Ok(Page {
            opened: Some(opened),
            html,
            is_timing_only: arguments.timing_only,
            version: 1,
            stamps,
        })
    }

    /// Makes it again if a file was written since.
    fn refresh(&mut self, arguments: &Arguments, options: &Options) {
        let now = stamps(arguments);
        // While a file is replaced, it may be gone for a moment.
        if now == self.stamps || now.contains(&None) {
            return;
        }
        self.stamps = now;
        self.version += 1;
        (self.opened, self.html) = match make(arguments, options) {
            Ok((opened, html)) => (Some(opened), html),
            Err(failure) => (None, trouble(&failure)),
        };
    }

    /// What stands in a memory at an instant, or why nobody can say.
    fn bytes(&self, query: &str, options: &Options) -> Result<String, String> {
        let Some(opened) = self.opened.as_ref().filter(|_| !self.is_timing_only) else {
            return Err(
                "no bytes were computed: the run is timing-only, or the file is wrong".to_owned(),
            );
        };
        let question = bytes::Question::of(query)?;
        bytes::answer(opened, options, &question).map_err(|failure| plain(&failure))
    }

    fn answer(&self, request: Request, options: &Options) {
        // Only names of this machine, and only its own pages: a page from elsewhere cannot make a browser ask.
        let are_local = |field: &'static str| {
            let mut values = request
                .headers()
                .iter()
                .filter(move |h| h.field.equiv(field));
            values.all(|header| {
                let host = header.value.as_str().trim_start_matches("http://");
                let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
                matches!(name, "127.0.0.1" | "localhost")
            })
        };
        let has_host = request.headers().iter().any(|h| h.field.equiv("Host"));
        let is_local = has_host && are_local("Host") && are_local("Origin");
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        let (status, kind, body) = match (request.method(), path) {
            _ if !is_local => (403, "text/plain", "not for other hosts".to_owned()),
            (Method::Get | Method::Head, "/") => {
                (200, "text/html; charset=utf-8", self.html.clone())
            }
            (Method::Get | Method::Head, "/version") => {
                (200, "text/plain", self.version.to_string())
            }
            (Method::Get, "/bytes") => match self.bytes(query, options) {
                Ok(found) => (200, "application/json", found),
                Err(why) => (400, "text/plain; charset=utf-8", why),
            },
            _ => (404, "text/plain", "there is nothing here".to_owned()),
        };
        let mut response = Response::from_string(body).with_status_code(status);
        let headers = [("Content-Type", kind), ("Cache-Control", "no-store")];
        for (name, value) in headers {
            if let Ok(header) = Header::from_bytes(name, value) {
                response.add_header(header);
            }
        }
        // Whoever asked may be gone.
        let _ = request.respond(response);
    }
}

fn make(arguments: &Arguments, options: &Options) -> Result<(Opened, String), Failure> {
    let opened = Opened::open(&arguments.file)?;
    let served = if arguments.timing_only {
        Served::TimesAlone
    } else {
        Served::Whole
    };
    let second = arguments.against.load(options, "view")?;
    let html = page::html(&opened, options, second.as_ref(), served)?;
    Ok((opened, html))
}

fn stamps(arguments: &Arguments) -> Vec<Option<SystemTime>> {
    let written = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    let files = [Some(&arguments.file), arguments.against.against.as_ref()];
    files
        .into_iter()
        .flatten()
        .map(|path| written(path))
        .collect()
}

/// A failure without the colours that a terminal would get.
fn plain(failure: &Failure) -> String {
    anstream::adapter::strip_str(&failure.text()).to_string()
}

/// What is shown while the file cannot be: why, and the question whether it has changed.
fn trouble(failure: &Failure) -> String {
    let text = plain(failure);
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"><title>Chipless</title>\
         <pre style=\"white-space: pre-wrap; margin: 2em\">{text}</pre><script>\
         let version = null; setInterval(async () => {{ const now = await (await fetch('version')).text(); \
         if (version !== null && now !== version) location.reload(); version = now; }}, 700);</script></html>\n"
    )
}
