//! A client: requests and their answers, findings as they come.

use chipless::Options;
use chipless::disk::Disk;
use lsp_server::{Connection, Message, Notification, Request, RequestId};
use serde_json::{Value, json};
use std::time::Duration;

/// A server and its client.
pub(crate) struct Client {
    connection: Connection,
    server: Option<std::thread::JoinHandle<Result<(), String>>>,
    last: i32,
    /// The answer to `initialize`.
    pub(crate) first: Value,
    notes: Vec<Notification>,
}

impl Client {
    /// A client that counts columns in UTF-16.
    pub(crate) fn new() -> Client {
        Client::with(&["utf-16"])
    }

    /// A client that offers these encodings.
    pub(crate) fn with(encodings: &[&str]) -> Client {
        let (connection, other) = Connection::memory();
        let serve = move || chipless_lsp::serve(&other, &Options::with_files(Disk));
        let mut client = Client {
            connection,
            server: Some(std::thread::spawn(serve)),
            last: 0,
            first: Value::Null,
            notes: Vec::new(),
        };
        let capabilities = json!({ "general": { "positionEncodings": encodings } });
        client.first = client.ask(
            "initialize",
            json!({ "processId": null, "rootUri": null, "capabilities": capabilities }),
        );
        client.tell("initialized", json!({}));
        client
    }

    pub(crate) fn tell(&self, method: &str, params: Value) {
        let note = Notification::new(method.to_owned(), params);
        self.connection
            .sender
            .send(Message::Notification(note))
            .expect("a server");
    }

    /// Sends a request and does not wait for the answer.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> i32 {
        self.last += 1;
        let request = Request::new(RequestId::from(self.last), method.to_owned(), params);
        self.connection
            .sender
            .send(Message::Request(request))
            .expect("a server");
        self.last
    }

    /// The answer to a request: its result, or `{"error": …}`.
    pub(crate) fn answer(&mut self, id: i32) -> Value {
        loop {
            match self.receive() {
                Message::Response(response) if response.id == RequestId::from(id) => {
                    let response = serde_json::to_value(Message::Response(response)).expect("JSON");
                    return match response.get("error") {
                        Some(error) => json!({ "error": error }),
                        None => response["result"].clone(),
                    };
                }
                Message::Notification(note) => self.notes.push(note),
                _ => {}
            }
        }
    }

    fn receive(&self) -> Message {
        let waited = self
            .connection
            .receiver
            .recv_timeout(Duration::from_mins(1));
        waited.expect("a message within a minute")
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Opens a text; its findings.
    pub(crate) fn open(&mut self, uri: &str, language: &str, text: &str) -> Vec<Value> {
        let item = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": item }));
        self.findings(uri, 1)
    }

    /// The findings of this version of a document.
    pub(crate) fn findings(&mut self, uri: &str, version: i64) -> Vec<Value> {
        loop {
            let mine = |note: &Notification| {
                note.method == "textDocument/publishDiagnostics"
                    && note.params["uri"] == uri
                    && note.params["version"] == version
            };
            if let Some(at) = self.notes.iter().position(mine) {
                let note = self.notes.swap_remove(at);
                return note.params["diagnostics"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
            }
            if let Message::Notification(note) = self.receive() {
                self.notes.push(note);
            }
        }
    }

    /// A request about the place where a text has `mark`, from the `skip`th character of it on.
    pub(crate) fn about(
        &mut self,
        method: &str,
        uri: &str,
        text: &str,
        mark: &str,
        skip: usize,
    ) -> Value {
        let position = position(text, text.find(mark).expect("the mark") + skip);
        let mut params = json!({ "textDocument": { "uri": uri }, "position": position });
        if method.ends_with("references") {
            params["context"] = json!({ "includeDeclaration": true });
        }
        self.ask(method, params)
    }

    /// A request about a whole document.
    pub(crate) fn whole(&mut self, method: &str, uri: &str) -> Value {
        self.ask(method, json!({ "textDocument": { "uri": uri }, "options": { "tabSize": 2, "insertSpaces": true } }))
    }

    /// Says goodbye; what the server ends with.
    pub(crate) fn close(mut self) -> Result<(), String> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.server
            .take()
            .expect("a server")
            .join()
            .expect("no panic")
    }
}

/// A byte as the protocol counts it, in a text without characters beyond the first plane.
pub(crate) fn position(text: &str, at: usize) -> Value {
    let before = &text[..at];
    let line = before.matches('\n').count();
    let column = before
        .rsplit('\n')
        .next()
        .map_or(0, |line| line.encode_utf16().count());
    json!({ "line": line, "character": column })
}

/// The words at the ranges of locations or edits, in a text of ASCII.
pub(crate) fn words(text: &str, found: &Value) -> Vec<String> {
    let word = |found: &Value| {
        let range = &found["range"];
        let place = |end: &str| {
            let line = range[end]["line"].as_u64().expect("a line") as usize;
            let column = range[end]["character"].as_u64().expect("a column") as usize;
            (line, column)
        };
        let ((line, start), (_, end)) = (place("start"), place("end"));
        let row = text.lines().nth(line).unwrap_or_default();
        format!("{line}:{}", &row[start..end])
    };
    found
        .as_array()
        .map(|all| all.iter().map(word).collect())
        .unwrap_or_default()
}

/// A text with the edits of a workspace edit made.
pub(crate) fn edited(text: &str, edit: &Value, uri: &str) -> String {
    let at = |place: &Value| {
        let line = place["line"].as_u64().expect("a line") as usize;
        let column = place["character"].as_u64().expect("a column") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        (start + column).min(text.len())
    };
    let mut edits: Vec<(usize, usize, String)> = edit["changes"][uri]
        .as_array()
        .expect("edits")
        .iter()
        .map(|edit| {
            let new = edit["newText"].as_str().expect("a text").to_owned();
            (at(&edit["range"]["start"]), at(&edit["range"]["end"]), new)
        })
        .collect();
    edits.sort();
    let mut out = text.to_owned();
    for (start, end, new) in edits.into_iter().rev() {
        out.replace_range(start..end, &new);
    }
    out
}
