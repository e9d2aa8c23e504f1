//! The Debug Adapter Protocol as a client sees it.

use crate::{NPU, PLAIN, fixture, opened};
use chipless_debug::dap;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The client's end of a pipe.
struct Pipe {
    messages: Receiver<Vec<u8>>,
    left: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            let Ok(message) = self.messages.recv() else {
                return Ok(0);
            };
            self.left = message;
        }
        let count = buffer.len().min(self.left.len());
        buffer[..count].copy_from_slice(&self.left[..count]);
        self.left.drain(..count);
        Ok(count)
    }
}

struct Client {
    requests: Sender<Vec<u8>>,
    answers: Receiver<Value>,
    seq: i64,
    events: Vec<Value>,
    ended: Receiver<io::Result<()>>,
}

/// Takes messages apart as they come.
struct Answers {
    held: Vec<u8>,
    sender: Sender<Value>,
}

impl Write for Answers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        loop {
            let text = String::from_utf8_lossy(&self.held);
            let Some((header, _)) = text.split_once("\r\n\r\n") else {
                return Ok(bytes.len());
            };
            let size: usize = header
                .strip_prefix("Content-Length: ")
                .unwrap()
                .parse()
                .unwrap();
            let end = header.len() + 4 + size;
            if self.held.len() < end {
                return Ok(bytes.len());
            }
            let message = serde_json::from_slice(&self.held[header.len() + 4..end]).unwrap();
            self.held.drain(..end);
            let _ = self.sender.send(message);
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Client {
    fn new() -> Client {
        let (requests, messages) = channel();
        let (sender, answers) = channel();
        let (done, ended) = channel();
        std::thread::spawn(move || {
            let input = Pipe {
                messages,
                left: Vec::new(),
            };
            let output = Answers {
                held: Vec::new(),
                sender,
            };
            let mut open =
                |launch: &dap::Launch,
                 then: &mut (dyn FnMut(chipless_debug::Console<'_, '_>) + Send)| {
                    opened(&launch.program, &PLAIN, then)
                };
            let _ = done.send(dap::serve(input, output, &mut open));
        });
        Client {
            requests,
            answers,
            seq: 0,
            events: Vec::new(),
            ended,
        }
    }

    fn send(&mut self, command: &str, arguments: &Value) -> Value {
        self.seq += 1;
        let body =
            json!({"seq": self.seq, "type": "request", "command": command, "arguments": arguments})
                .to_string();
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.requests.send(message.into_bytes()).unwrap();
        loop {
            let message = self.answers.recv().unwrap();
            if message["type"] == "response" && message["request_seq"] == self.seq {
                return message;
            }
            self.events.push(message);
        }
    }

    fn event(&mut self, name: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|e| e["event"] == name) {
                return self.events.remove(at);
            }
            self.events.push(self.answers.recv().unwrap());
        }
    }

    fn go(&mut self, command: &str, thread: &Value) -> Value {
        let answer = self.send(command, &json!({"threadId": thread}));
        assert_eq!(answer["success"], true, "{answer}");
        self.event("stopped")["body"].clone()
    }

    fn launch(name: &str) -> Client {
        let mut client = Client::new();
        client.send("initialize", &json!({"adapterID": "chipless"}));
        let launch = json!({"program": fixture(name), "stopOnEntry": true});
        let launched = client.send("launch", &launch);
        assert_eq!(launched["success"], true, "{launched}");
        client.event("initialized");
        client
    }
}

#[test]
fn a_client_steps_looks_and_goes_back() {
    let mut client = Client::launch(NPU);
    let set = client.send(
        "setFunctionBreakpoints",
        &json!({"breakpoints": [{"name": "dpu0[1]"}, {"name": "nothing[1]"}]}),
    );
    assert_eq!(set["body"]["breakpoints"][0]["verified"], true);
    assert_eq!(set["body"]["breakpoints"][1]["verified"], false);
    client.send("configurationDone", &json!({}));
    let entry = client.event("stopped");
    assert_eq!(entry["body"]["reason"], "entry");
    let stop = client.go("continue", &json!(1));
    assert_eq!(stop["reason"], "function breakpoint");
    let thread = stop["threadId"].clone();
    let stack = client.send("stackTrace", &json!({"threadId": thread}));
    let frame = stack["body"]["stackFrames"][0].clone();
    assert_eq!(frame["name"], "dpu0[1] conv 3x3 stride 1");
    let source = client.send(
        "source",
        &json!({"sourceReference": frame["source"]["sourceReference"]}),
    );
    let line = frame["line"].as_u64().unwrap() as usize - 1;
    let text = source["body"]["content"]
        .as_str()
        .unwrap()
        .lines()
        .nth(line)
        .unwrap();
    assert!(text.trim_start().starts_with("dpu0[1]"), "{text}");
    let scopes = client.send("scopes", &json!({"frameId": frame["id"]}));
    let operands = scopes["body"]["scopes"][0]["variablesReference"].clone();
    let variables = client.send("variables", &json!({"variablesReference": operands}));
    let input = variables["body"]["variables"][2].clone();
    assert!(
        input["value"]
            .as_str()
            .unwrap()
            .starts_with("float16[7, 24, 32] "),
        "{input}"
    );
    let pages = client.send(
        "variables",
        &json!({"variablesReference": input["variablesReference"]}),
    );
    assert_eq!(pages["body"]["variables"].as_array().unwrap().len(), 54);
    let memory = client.send(
        "readMemory",
        &json!({"memoryReference": input["memoryReference"], "count": 6, "offset": 10750}),
    );
    assert_eq!(memory["body"]["unreadableBytes"], 4);
    let info = client.send(
        "dataBreakpointInfo",
        &json!({"variablesReference": operands, "name": "out[0]"}),
    );
    let data = info["body"]["dataId"].clone();
    assert_eq!(data, "dpu0[1].out[0]");
    client.send(
        "setDataBreakpoints",
        &json!({"breakpoints": [{"dataId": data, "accessType": "read"}]}),
    );
    assert_eq!(client.go("continue", &thread)["reason"], "data breakpoint");
    let back = client.go("stepBack", &thread);
    assert_eq!(back["reason"], "step");
    assert_eq!(
        client.go("reverseContinue", &thread)["reason"],
        "function breakpoint"
    );
    client.send("setFunctionBreakpoints", &json!({"breakpoints": []}));
    client.send("setDataBreakpoints", &json!({"breakpoints": []}));
    let end = client.go("continue", &thread);
    assert_eq!(
        (&end["reason"], &end["text"]),
        (&json!("pause"), &json!("end"))
    );
    let line = json!({"source": {"sourceReference": 1}, "breakpoints": [{"line": line + 1}]});
    let set = client.send("setBreakpoints", &line);
    assert_eq!(
        set["body"]["breakpoints"][0]["line"].as_u64().unwrap() as usize,
        line["breakpoints"][0]["line"].as_u64().unwrap() as usize
    );
    assert_eq!(
        client.go("reverseContinue", &thread)["reason"],
        "breakpoint"
    );
    let asked = client.send(
        "evaluate",
        &json!({"expression": "writer dpu0[1].in[2]", "context": "repl"}),
    );
    assert!(
        asked["body"]["result"].as_str().unwrap().contains("dma"),
        "{asked}"
    );
    client.send("terminate", &json!({}));
    client.event("terminated");
    assert_eq!(client.send("disconnect", &json!({}))["success"], true);
    assert!(client.ended.recv().unwrap().is_ok());
}

#[test]
fn what_cannot_be_is_refused_and_the_adapter_stays() {
    let mut client = Client::new();
    assert_eq!(client.send("threads", &json!({}))["success"], false);
    assert_eq!(client.send("attach", &json!({}))["success"], false);
    let missing = client.send("launch", &json!({"program": "/no/such/file"}));
    assert!(
        missing["message"]
            .as_str()
            .unwrap()
            .contains("No such file"),
        "{missing}"
    );
    assert_eq!(
        client.send("launch", &json!({"program": 3}))["success"],
        false
    );
    drop(client.requests);
    assert!(client.ended.recv().unwrap().is_ok());

    let mut client = Client::launch(NPU);
    for (command, arguments) in [
        ("frobnicate", json!({})),
        ("evaluate", json!({"expression": "[[["})),
        ("stackTrace", json!({"threadId": 0})),
        ("stackTrace", json!({"threadId": 1i64 << 40})),
        ("stackTrace", json!({})),
        ("variables", json!({"variablesReference": 99})),
        (
            "readMemory",
            json!({"memoryReference": "cmx0", "count": -1}),
        ),
        ("next", json!({"threadId": -5})),
        ("stepOut", json!({"threadId": 1})),
        ("source", json!({"sourceReference": 77})),
    ] {
        let answer = client.send(command, &arguments);
        assert_eq!(answer["success"], false, "{answer}");
        assert!(!answer["message"].as_str().unwrap().is_empty());
    }
    client.requests.send(b"rubbish\r\n\r\n".to_vec()).unwrap();
    assert!(client.ended.recv().unwrap().is_err());
}
