//! The debugger on a full screen: timeline, tasks, operands, syncs, and a command line that has the keyboard.

mod picture;
mod screen;
mod view;

use crate::command::Console;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use view::View;

/// Lines of output that are kept.
const OUTPUT: usize = 10_000;
/// Rows that a page key scrolls by.
const PAGE: usize = 5;

/// What the user sees besides the program.
struct Screen {
    /// As the user named it.
    file: String,
    /// The command line, and the place in it in characters.
    line: Vec<char>,
    cursor: usize,
    /// Commands so far, and which of them is shown.
    history: Vec<String>,
    recalled: Option<usize>,
    output: Vec<String>,
    /// Lines between the last one that is shown and the end of the output.
    scrolled: usize,
    /// How the chosen operand is shown.
    picture: Picture,
}

/// How the chosen operand is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picture {
    HeatMap,
    Numbers,
    Hex,
}

/// Runs the interface on the terminal until the user quits.
///
/// # Errors
/// The terminal cannot be used.
pub fn run(console: &mut Console<'_, '_>, file: &str) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let ended = serve(console, file, &mut terminal);
    ratatui::try_restore()?;
    ended
}

fn serve(
    console: &mut Console<'_, '_>,
    file: &str,
    terminal: &mut ratatui::DefaultTerminal,
) -> io::Result<()> {
    let events = listen(console);
    let mut screen = Screen {
        file: file.to_owned(),
        line: Vec::new(),
        cursor: 0,
        history: Vec::new(),
        recalled: None,
        output: vec!["`help` shows the commands; an empty line repeats the last one".to_owned()],
        scrolled: 0,
        picture: Picture::HeatMap,
    };
    let mut view = View::of(console, None);
    loop {
        terminal.draw(|frame| screen::draw(frame, &screen, &view))?;
        let Ok(event) = events.recv() else {
            return Ok(());
        };
        let Event::Key(key) = event? else {
            continue;
        };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match screen.key(key) {
            Press::Nothing => {}
            Press::Quit => return Ok(()),
            Press::Operand => {
                let next = (view.operand + 1) % view.operands.len().max(1);
                view = View::of(console, Some(next));
            }
            Press::Command(command) => {
                let command = match &*command {
                    "@break" => toggle(&view),
                    _ => command,
                };
                screen.say(&format!("> {command}"));
                // What is about to run may take a while.
                terminal.draw(|frame| screen::draw(frame, &screen, &view))?;
                console.interrupt.store(false, Ordering::Relaxed);
                match console.execute(&command) {
                    Ok(answer) if answer.quits => return Ok(()),
                    Ok(answer) => screen.say(&answer.text),
                    Err(error) => screen.say(&format!("error: {error}")),
                }
                view = View::of(console, None);
            }
        }
    }
}

/// Sets a breakpoint at the current task, or deletes the one that is there.
fn toggle(view: &View) -> String {
    match view.breakpoint {
        Some(number) => format!("delete {number}"),
        None => "break".to_owned(),
    }
}

/// Reads the keyboard on a thread of its own, so that Ctrl-C ends a command that runs.
fn listen(console: &Console<'_, '_>) -> Receiver<io::Result<Event>> {
    let (sender, events) = channel();
    let interrupt = console.interrupt.clone();
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            if let Ok(Event::Key(key)) = &event
                && key.code == KeyCode::Char('c')
                && key.modifiers.contains(KeyModifiers::CONTROL)
            {
                interrupt.store(true, Ordering::Relaxed);
            }
            let failed = event.is_err();
            if sender.send(event).is_err() || failed {
                return;
            }
        }
    });
    events
}

/// What a key asks for.
enum Press {
    Nothing,
    Quit,
    Operand,
    Command(String),
}

impl Screen {
    fn say(&mut self, text: &str) {
        self.output.extend(text.lines().map(str::to_owned));
        let more = self.output.len().saturating_sub(OUTPUT);
        self.output.drain(..more);
        self.scrolled = 0;
    }

    fn key(&mut self, key: KeyEvent) -> Press {
        let command = |text: &str| Press::Command(text.to_owned());
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('d') if control && self.line.is_empty() => return Press::Quit,
            KeyCode::Char('c' | 'u') if control => self.set(""),
            KeyCode::Char('a') if control => self.cursor = 0,
            KeyCode::Char('e') if control => self.cursor = self.line.len(),
            KeyCode::Char(_) if control => {}
            KeyCode::Char(c) => {
                self.line.insert(self.cursor, c);
                self.cursor += 1;
            }
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.line.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < self.line.len() => {
                self.line.remove(self.cursor);
            }
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.line.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.line.len(),
            KeyCode::Up => self.recall(true),
            KeyCode::Down => self.recall(false),
            KeyCode::PageUp => {
                self.scrolled = (self.scrolled + PAGE).min(self.output.len().saturating_sub(1));
            }
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_sub(PAGE),
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab => return Press::Operand,
            KeyCode::F(2) => {
                self.picture = match self.picture {
                    Picture::HeatMap => Picture::Numbers,
                    Picture::Numbers => Picture::Hex,
                    Picture::Hex => Picture::HeatMap,
                };
            }
            KeyCode::F(5) => return command("continue"),
            KeyCode::F(6) => return command("reverse-continue"),
            KeyCode::F(7) => return command("reverse-step"),
            KeyCode::F(8) => return command("step"),
            KeyCode::F(9) => return command("@break"),
            KeyCode::F(10) => return command("next"),
            _ => {}
        }
        Press::Nothing
    }

    fn set(&mut self, text: &str) {
        self.line = text.chars().collect();
        self.cursor = self.line.len();
    }

    fn recall(&mut self, older: bool) {
        let last = self.history.len();
        let at = self.recalled.unwrap_or(last);
        let at = if older { at.saturating_sub(1) } else { at + 1 };
        let text = self.history.get(at).cloned();
        self.recalled = text.is_some().then_some(at);
        self.set(&text.unwrap_or_default());
    }

    fn enter(&mut self) -> Press {
        let line: String = self.line.iter().collect();
        let line = line.trim().to_owned();
        self.set("");
        self.recalled = None;
        if line.is_empty() {
            return self
                .history
                .last()
                .cloned()
                .map_or(Press::Nothing, Press::Command);
        }
        self.history.push(line.clone());
        Press::Command(line)
    }
}
