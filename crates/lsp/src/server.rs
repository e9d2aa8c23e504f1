//! The server: one loop that answers requests, one thread that answers those about whole documents, one that finds out what is wrong.
//!
//! Requests are answered from the text as it was when they came. An answer that is as long as the document delays none of the short ones, a
//! check delays nobody; of several changes in a row only the last is checked. What a document says is found once for each version, when somebody asks.

mod answers;
mod capabilities;
mod document;
mod findings;

use crate::text::Encoding;
use answers::Answerer;
use chipless::Options;
use crossbeam_channel::{Receiver, Sender};
use document::Document;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    InitializeParams, PublishDiagnosticsParams, Uri,
};
use serde::de::DeserializeOwned;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Serves one client until it says goodbye. `options` says where the files are that texts name.
///
/// # Errors
/// A client that does not follow the protocol.
pub fn serve(connection: &Connection, options: &Options) -> Result<(), String> {
    let (id, params) = connection.initialize_start().map_err(|e| e.to_string())?;
    let params: InitializeParams = match serde_json::from_value(params) {
        Ok(params) => params,
        Err(error) => {
            let response =
                Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string());
            let _ = connection.sender.send(response.into());
            return Err(format!("the request initialize cannot be read: {error}"));
        }
    };
    let encoding = capabilities::encoding(&params);
    let answer = serde_json::json!({
        "capabilities": capabilities::capabilities(encoding),
        "serverInfo": { "name": "chipless", "version": env!("CARGO_PKG_VERSION") },
    });
    connection
        .initialize_finish(id, answer)
        .map_err(|e| e.to_string())?;
    let (checks, checked) = crossbeam_channel::unbounded();
    // Nobody waits for these threads at the end: a check may take long, and its findings are nobody's any more.
    let (options, shared) = (Arc::new(options.clone()), Arc::new(Shared::default()));
    let (sender, files) = (connection.sender.clone(), Arc::clone(&options));
    std::thread::spawn(move || publish(&checked, &sender, encoding, &files));
    let (long, asked) = crossbeam_channel::unbounded();
    let (sender, files) = (connection.sender.clone(), Arc::clone(&options));
    let known = Arc::clone(&shared);
    std::thread::spawn(move || answer_long(&asked, &sender, &known, encoding, &files));
    let mut server = Server {
        connection,
        options,
        encoding,
        documents: HashMap::new(),
        checks,
        long,
        shared,
        waiting: VecDeque::new(),
    };
    server.run()
}

/// What the thread that checks is told.
enum Check {
    /// A document is there, or is there in another version.
    Changed(Arc<Document>),
    /// A document was closed: its findings go.
    Closed(Uri),
}

impl Check {
    fn uri(&self) -> &Uri {
        match self {
            Check::Changed(document) => &document.uri,
            Check::Closed(uri) => uri,
        }
    }
}

/// Publishes findings until nobody asks for any.
fn publish(
    checks: &Receiver<Check>,
    sender: &Sender<Message>,
    encoding: Encoding,
    options: &Options,
) {
    let mut waiting: VecDeque<Check> = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match checks.recv() {
                Ok(check) => waiting.push_back(check),
                Err(_) => return,
            }
        }
        for check in checks.try_iter() {
            // Only the newest of a document counts.
            waiting.retain(|other| other.uri() != check.uri());
            waiting.push_back(check);
        }
        let Some(check) = waiting.pop_front() else {
            continue;
        };
        let params = match check {
            Check::Closed(uri) => PublishDiagnosticsParams::new(uri, Vec::new(), None),
            Check::Changed(document) => {
                let found = catch_unwind(AssertUnwindSafe(|| {
                    findings::diagnostics(&document, encoding, options)
                }));
                let found = found.unwrap_or_default();
                PublishDiagnosticsParams::new(document.uri.clone(), found, Some(document.version))
            }
        };
        let notification = Notification::new("textDocument/publishDiagnostics".to_owned(), params);
        if sender.send(notification.into()).is_err() {
            return;
        }
    }
}

struct Server<'c> {
    connection: &'c Connection,
    options: Arc<Options>,
    encoding: Encoding,
    documents: HashMap<String, Arc<Document>>,
    checks: Sender<Check>,
    /// Requests about whole documents, for a thread of their own.
    long: Sender<Asked>,
    shared: Arc<Shared>,
    /// Messages that have come and are not yet answered.
    waiting: VecDeque<Message>,
}

/// A request and the document that it is about, as it was when the request came.
struct Asked {
    request: Request,
    document: Option<Arc<Document>>,
}

/// What the thread for long requests must know of the others.
#[derive(Default)]
struct Shared {
    /// Requests that wait there, and whether the client has taken them back.
    waiting: Mutex<HashMap<RequestId, bool>>,
    /// The newest version of each open document.
    versions: Mutex<HashMap<String, i32>>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, HashMap<RequestId, bool>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<String, i32>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests whose answers are as long as the document, or take a check of it.
const LONG: [&str; 6] = [
    "textDocument/documentSymbol",
    "textDocument/semanticTokens/full",
    "textDocument/foldingRange",
    "textDocument/formatting",
    "textDocument/rename",
    "textDocument/codeAction",
];

/// Those of them whose answers are edits, which fit one version only.
const EDITS: [&str; 3] = [
    "textDocument/formatting",
    "textDocument/rename",
    "textDocument/codeAction",
];

/// Answers long requests, one after the other, until nobody asks for any.
fn answer_long(
    asked: &Receiver<Asked>,
    sender: &Sender<Message>,
    shared: &Shared,
    encoding: Encoding,
    options: &Options,
) {
    for Asked { request, document } in asked {
        let (id, edits) = (request.id.clone(), EDITS.contains(&request.method.as_str()));
        let taken_back = shared.waiting().remove(&id).unwrap_or(false);
        let mut response = if taken_back {
            cancelled(id.clone())
        } else {
            respond(request, document.as_ref(), encoding, options)
        };
        let stale = document.is_some_and(|document| {
            let newest = shared.versions().get(document.uri.as_str()).copied();
            newest != Some(document.version)
        });
        if edits && stale && !taken_back {
            let text = "the document has changed since the request".to_owned();
            response = Response::new_err(id, ErrorCode::ContentModified as i32, text);
        }
        if sender.send(response.into()).is_err() {
            return;
        }
    }
}

fn cancelled(id: RequestId) -> Response {
    let text = "the client cancelled the request".to_owned();
    Response::new_err(id, ErrorCode::RequestCanceled as i32, text)
}

/// The answer to a request. What goes wrong in it leaves everything else unharmed.
fn respond(
    request: Request,
    document: Option<&Arc<Document>>,
    encoding: Encoding,
    options: &Options,
) -> Response {
    let id = request.id.clone();
    let answerer = Answerer {
        options,
        encoding,
        document,
    };
    match catch_unwind(AssertUnwindSafe(|| answerer.answer(request))) {
        Ok(Ok(result)) => Response::new_ok(id, result),
        Ok(Err(refused)) => Response::new_err(id, refused.code as i32, refused.message),
        Err(_) => {
            let text = "the request made the server panic; the document is unharmed".to_owned();
            Response::new_err(id, ErrorCode::InternalError as i32, text)
        }
    }
}

/// Why a request has no answer.
pub(crate) struct Refused {
    code: ErrorCode,
    message: String,
}

impl Refused {
    /// Something that the request asks for cannot be.
    pub(crate) fn failed(message: impl Into<String>) -> Refused {
        Refused {
            code: ErrorCode::RequestFailed,
            message: message.into(),
        }
    }
}

impl Server<'_> {
    fn run(&mut self) -> Result<(), String> {
        loop {
            if self.waiting.is_empty() {
                match self.connection.receiver.recv() {
                    Ok(message) => self.waiting.push_back(message),
                    Err(_) => return Ok(()),
                }
            }
            self.waiting.extend(self.connection.receiver.try_iter());
            match self.waiting.pop_front() {
                Some(Message::Request(request)) => {
                    if request.method == "shutdown" {
                        self.shut_down(request.id);
                        return Ok(());
                    }
                    self.answer(request);
                }
                Some(Message::Notification(notification)) => {
                    if notification.method == "exit" {
                        return Err("the client left without a shutdown".to_owned());
                    }
                    self.note(notification);
                }
                Some(Message::Response(_)) | None => {}
            }
        }
    }

    /// Answers nothing any more but that it is shut down, until the client says goodbye.
    fn shut_down(&mut self, id: RequestId) {
        let _ = self.connection.sender.send(Response::new_ok(id, ()).into());
        let waiting = std::mem::take(&mut self.waiting);
        for message in waiting.into_iter().chain(self.connection.receiver.iter()) {
            match message {
                Message::Notification(notification) if notification.method == "exit" => {
                    return;
                }
                Message::Request(request) => {
                    let text = "the server is shut down".to_owned();
                    let code = ErrorCode::InvalidRequest as i32;
                    let _ = self
                        .connection
                        .sender
                        .send(Response::new_err(request.id, code, text).into());
                }
                _ => {}
            }
        }
    }

    /// Whether the client has taken a request back.
    fn is_cancelled(&self, id: &RequestId) -> bool {
        self.waiting.iter().any(|message| {
            let Message::Notification(note) = message else {
                return false;
            };
            note.method == "$/cancelRequest"
                && note.params.get("id").is_some_and(|named| {
                    serde_json::from_value::<RequestId>(named.clone())
                        .is_ok_and(|named| named == *id)
                })
        })
    }

    /// Answers a request, or hands it on.
    fn answer(&self, request: Request) {
        let uri = request.params["textDocument"]["uri"].as_str();
        let document = uri.and_then(|uri| self.documents.get(uri)).cloned();
        if LONG.contains(&request.method.as_str()) {
            let taken_back = self.is_cancelled(&request.id);
            self.shared.waiting().insert(request.id.clone(), taken_back);
            let _ = self.long.send(Asked { request, document });
            return;
        }
        let response = if self.is_cancelled(&request.id) {
            cancelled(request.id)
        } else {
            respond(request, document.as_ref(), self.encoding, &self.options)
        };
        let _ = self.connection.sender.send(response.into());
    }

    fn note(&mut self, notification: Notification) {
        fn params<P: DeserializeOwned>(notification: Notification) -> Option<P> {
            serde_json::from_value(notification.params).ok()
        }
        match notification.method.as_str() {
            "$/cancelRequest" => {
                let id = notification.params.get("id").cloned();
                let id = id.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
                let mut waiting = self.shared.waiting();
                if let Some(taken_back) = id.and_then(|id| waiting.get_mut(&id)) {
                    *taken_back = true;
                }
            }
            "textDocument/didOpen" => {
                if let Some(DidOpenTextDocumentParams { text_document }) = params(notification) {
                    self.put(Document::open(text_document));
                }
            }
            "textDocument/didChange" => {
                let changed: Option<DidChangeTextDocumentParams> = params(notification);
                let Some(changed) = changed else { return };
                let Some(document) = self.documents.get(changed.text_document.uri.as_str()) else {
                    return;
                };
                let document = document.changed(changed, self.encoding);
                self.put(document);
            }
            "textDocument/didClose" => {
                let closed: Option<DidCloseTextDocumentParams> = params(notification);
                if let Some(DidCloseTextDocumentParams { text_document }) = closed {
                    self.documents.remove(text_document.uri.as_str());
                    self.shared.versions().remove(text_document.uri.as_str());
                    let _ = self.checks.send(Check::Closed(text_document.uri));
                }
            }
            _ => {}
        }
    }

    fn put(&mut self, document: Document) {
        let document = Arc::new(document);
        let uri = document.uri.as_str().to_owned();
        self.shared.versions().insert(uri, document.version);
        self.documents
            .insert(document.uri.as_str().to_owned(), Arc::clone(&document));
        let _ = self.checks.send(Check::Changed(document));
    }
}
