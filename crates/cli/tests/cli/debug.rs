//! `chipless debug` from the outside: scripts, the adapter on a port, and the full screen in tmux.

use crate::support::{chipless, root, run};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "fixtures/npu/resblock/program.blob";

/// Exit status, answers, standard error of a script.
fn script(arguments: &[&str], text: &str) -> (i32, Vec<Value>, String) {
    let mut command = chipless();
    command
        .args(["debug", "--json", "--script", "-"])
        .args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    // A program that is refused is told of in one object over many lines.
    let whole = serde_json::from_str::<Value>(&lines).into_iter();
    let each = lines
        .lines()
        .map_while(|line| serde_json::from_str(line).ok());
    let answers = whole.filter(|all| !all["failure"].is_null()).chain(each);
    (
        output.status.code().unwrap(),
        answers.collect(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn options_of_targets_say_themselves_whether_a_debugged_program_has_them() {
    let (_, help, _) = run(&["debug", "--help"]);
    for option in ["--set", "--limit", "--kernel-table", "--network", "--map"] {
        assert!(help.contains(option), "{option}: {help}");
    }
    // What executes a whole mapping has no steps.
    let (code, _, err) = run(&["debug", PROGRAM, "--cycles", "--script", "-"]);
    assert!(
        code == 2 && err.contains("unexpected argument '--cycles'"),
        "{err}"
    );
}

#[test]
fn the_end_of_a_debugged_run_is_that_of_run() {
    let directory = std::env::temp_dir().join(format!("chipless-debug-{}", std::process::id()));
    let folder = directory.display().to_string();
    let file = format!("{folder}/by_debug.npy");
    let (code, out, err) = run(&[
        "run",
        PROGRAM,
        "--seed",
        "5",
        "--json",
        "--output-dir",
        &folder,
    ]);
    assert_eq!((code, &*err), (0, ""));
    let summary: Value = serde_json::from_str(&out).unwrap();
    let output = &summary["outputs"][0];
    let (name, path) = (
        output["name"].as_str().unwrap(),
        output["path"].as_str().unwrap(),
    );
    let commands = format!("continue\nsave {file} \"{name}\"\n");
    let (code, answers, err) = script(&[PROGRAM, "--seed", "5"], &commands);
    assert_eq!((code, &*err), (0, ""), "{answers:?}");
    assert_eq!(std::fs::read(path).unwrap(), std::fs::read(&file).unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn exit_status_says_whether_commands_failed() {
    assert_eq!(script(&[PROGRAM], "step\nquit\n").0, 0);
    let (code, answers, _) = script(&[PROGRAM], "print nonsense\n");
    assert_eq!((code, &answers[0]["ok"]), (1, &json!(false)));
    let (code, answers, err) = script(&["fixtures/broken/ring.neff"], "quit\n");
    assert!(code == 1 && err.contains("deadlock"), "{err}");
    assert_eq!(answers[0]["failure"]["kind"], "refused");
    assert_eq!(
        script(&["fixtures/broken/ring.neff", "--no-verify"], "quit\n").0,
        0
    );
    assert_eq!(script(&["no/such/file"], "quit\n").0, 2);
    let (code, _, err) = run(&["debug", PROGRAM]);
    assert!(code == 2 && err.contains("expected a terminal"), "{err}");
    assert_eq!(run(&["debug"]).0, 2);
    assert_eq!(run(&["debug", PROGRAM, "--json"]).0, 2);
}

/// The page that leads from a wrong output to its task shows what the commands print.
#[test]
fn the_page_shows_real_output() {
    let page = std::fs::read_to_string(root().join("docs/debugging.md")).unwrap();
    let behind = page.split("```text\n").nth(1).unwrap();
    let session = behind.split("```").next().unwrap();
    let lines = session.lines().filter_map(|line| line.strip_prefix("> "));
    let commands: Vec<&str> = lines.collect();
    assert_eq!(commands.len(), 10);
    let mut command = chipless();
    let program = "fixtures/broken/early_read.neff";
    command.args(["debug", program, "--no-verify", "--script", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(commands.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), session);
}

/// Sends a request and returns its answer.
fn ask(stream: &mut BufReader<TcpStream>, seq: i64, command: &str, arguments: &Value) -> Value {
    let body = json!({"seq": seq, "type": "request", "command": command, "arguments": arguments})
        .to_string();
    write!(
        stream.get_mut(),
        "Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).unwrap();
        let size = header
            .trim_end()
            .strip_prefix("Content-Length: ")
            .unwrap()
            .parse()
            .unwrap();
        let mut bytes = vec![0; size];
        stream.read_line(&mut header).unwrap();
        stream.read_exact(&mut bytes).unwrap();
        let message: Value = serde_json::from_slice(&bytes).unwrap();
        if message["request_seq"] == seq {
            return message;
        }
    }
}

#[test]
fn an_editor_is_served_on_a_port() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut command = chipless();
    command.args(["debug", "--dap-port", &port.to_string()]);
    let mut child = command.spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    let stream = loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < patience, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut stream = BufReader::new(stream);
    let answer = ask(
        &mut stream,
        1,
        "initialize",
        &json!({"adapterID": "chipless"}),
    );
    assert_eq!(answer["body"]["supportsStepBack"], true);
    let refused = ask(
        &mut stream,
        2,
        "launch",
        &json!({"program": "fixtures/broken/ring.neff"}),
    );
    assert!(
        refused["message"].as_str().unwrap().contains("deadlock"),
        "{refused}"
    );
    let options = ask(
        &mut stream,
        3,
        "launch",
        &json!({"program": PROGRAM, "options": ["--nonsense"]}),
    );
    assert!(
        options["message"].as_str().unwrap().contains("--nonsense"),
        "{options}"
    );
    let launched = ask(
        &mut stream,
        4,
        "launch",
        &json!({"program": PROGRAM, "order": "random:3"}),
    );
    assert_eq!(launched["success"], true);
    assert_eq!(
        ask(&mut stream, 5, "disconnect", &json!({}))["success"],
        true
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A terminal of tmux with a program in it.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn new(width: u32, height: u32) -> Terminal {
        let socket = format!("chipless-{}-{width}x{height}", std::process::id());
        let terminal = Terminal { socket };
        let program = root().join(PROGRAM).display().to_string();
        let binary = env!("CARGO_BIN_EXE_chipless");
        let (width, height) = (width.to_string(), height.to_string());
        // The server outlives the program: what is asked of it has an answer.
        let start = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            binary,
            "debug",
            &program,
        ];
        terminal.tmux(&start);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-L", &self.socket])
            .args(arguments)
            .output();
        String::from_utf8(output.expect("tmux is there").stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// The screen once it has all of these texts: tmux shows it while it is drawn, too.
    fn shows(&self, texts: &[&str]) -> String {
        let patience = Instant::now() + Duration::from_secs(30);
        loop {
            let screen = self.screen();
            let Some(text) = texts.iter().find(|text| !screen.contains(**text)) else {
                return screen;
            };
            assert!(Instant::now() < patience, "expected {text} on\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn the_full_screen_opens_breaks_continues_goes_back_and_quits() {
    // `.ci/run` installs it; who tests by hand need not have it.
    if Command::new("tmux").arg("-V").output().is_err() {
        return;
    }
    for (width, height) in [(80, 24), (200, 60)] {
        let terminal = Terminal::new(width, height);
        let opened = terminal.shows(&[
            "effect 0 of 51",
            "timeline",
            "effects",
            "operands",
            "syncs of the task",
            "output",
            "(debug)",
            "F5 continue",
        ]);
        assert_eq!(opened.lines().count(), height as usize);
        assert!(
            opened
                .lines()
                .all(|line| line.chars().count() <= width as usize)
        );
        terminal.keys(&["break dpu0[1]", "Enter"]);
        terminal.shows(&["breakpoint 1: dpu0[1]"]);
        terminal.keys(&["F5"]);
        terminal.shows(&[
            "effect 27 of 51",
            "▶●",
            "float16[7, 24, 32]",
            "heat map of operand 2",
            "▓",
        ]);
        terminal.keys(&["F2"]);
        terminal.shows(&["numbers of operand 2"]);
        terminal.keys(&["F7"]);
        terminal.shows(&["effect 26 of 51", "dma1.ddr[4]"]);
        terminal.keys(&["nonsense", "Enter"]);
        terminal.shows(&["error: expected a command, found \"nonsense\""]);
        terminal.keys(&["reverse-continue", "Enter"]);
        terminal.shows(&["effect 0 of 51"]);
        terminal.keys(&["quit", "Enter"]);
        let patience = Instant::now() + Duration::from_secs(30);
        while !terminal.tmux(&["list-sessions"]).is_empty() {
            assert!(
                Instant::now() < patience,
                "it does not quit:\n{}",
                terminal.screen()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
