//! A sixth target, from its bytes to its numbers: what `info`, `check`, `list` and `run` need is here, and nothing else.
//!
//! Its files are a line, `negate 64 in 4`: negate so many bytes, in so many tasks.

use chipless::{Document, Failure, Lowered, Options, Package, Source, Target};
use chipless_model::{
    Access, Buffer, BufferId, Builder, ElementType, Fault, Finding, Info, Kernel, MemoryKind,
    NewTask, Node, Pattern, Place, Port, Role, Rule, Storage, TensorInfo, Value,
};
use std::borrow::Cow;

struct Sixth;

chipless_model::rules! {
    UNEVEN Fault Error Format "sixth-uneven" "the bytes do not divide among the tasks"
        "Each task negates as many bytes as the others." "Choose another number of tasks." "this file";
    SYNTAX Fault Error Format "sixth-syntax" "not a line of the format"
        "A file is `negate BYTES in TASKS`." "Write it so." "this file";
}

impl Target for Sixth {
    fn name(&self) -> &'static str {
        "sixth"
    }

    fn files(&self) -> &'static [&'static str] {
        &["a line that says what to negate"]
    }

    fn recognize(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(b"negate ")
    }

    fn rules(&self) -> Vec<&'static Rule> {
        ALL.to_vec()
    }

    fn open<'f>(&self, source: Source<'f>) -> Result<Box<dyn Package + 'f>, Failure> {
        Ok(Box::new(File(source)))
    }
}

struct File<'f>(Source<'f>);

impl Package for File<'_> {
    fn read(&self) -> Result<Box<dyn Document + '_>, Failure> {
        let text = String::from_utf8_lossy(self.0.bytes);
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["negate", bytes, "in", tasks] = *words else {
            let place = Place::bytes(0, self.0.bytes.len() as u64);
            let finding = SYNTAX.at(place, "expected `negate BYTES in TASKS`");
            return Err(Failure::reading(vec![finding]));
        };
        let number = |word: &str| word.parse::<u64>().map_err(Failure::unsupported);
        let (bytes, tasks) = (number(bytes)?, number(tasks)?);
        let mut findings = Vec::new();
        if tasks == 0 || !bytes.is_multiple_of(tasks) {
            let text = format!("expected tasks that divide {bytes} bytes, found {tasks}");
            findings.push(UNEVEN.at(Place::bytes(7, 1), text));
        }
        Ok(Box::new(Line {
            bytes,
            tasks,
            findings,
            options: self.0.options,
        }))
    }
}

struct Line<'f> {
    bytes: u64,
    tasks: u64,
    findings: Vec<Finding>,
    options: &'f Options,
}

impl Document for Line<'_> {
    fn info(&self) -> Info {
        let tensor = |name: &str| TensorInfo {
            name: name.to_owned(),
            element: ElementType::Int8,
            dtype: "int8".to_owned(),
            shape: vec![self.bytes],
            facts: Vec::new(),
        };
        Info {
            target: "sixth",
            inputs: vec![tensor("x")],
            outputs: vec![tensor("y")],
            counts: vec![("tasks".to_owned(), self.tasks)],
            ..Info::default()
        }
    }

    fn raw(&self) -> Node {
        Node {
            name: "line".to_owned(),
            value: Some(Value::Integer(self.bytes.into())),
            ..Node::default()
        }
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn lower(&self) -> Result<Lowered<'_>, Failure> {
        // Without so many bytes for each task there is no program. Where there is one, errors in it stop nothing here: who runs it decides.
        if !self.findings.is_empty() {
            return Err(Failure::program(self.findings.clone()));
        }
        let mut builder = Builder::new("sixth", &self.options.limits);
        let part = builder.part("file");
        let memory = builder.memory("dram", 2 * self.bytes, MemoryKind::Dram);
        let mut buffer = |name: &str, role, address| {
            let new = Buffer::new(name, memory, self.bytes, role);
            builder.buffer(Buffer {
                address: Some(address),
                ..new
            })
        };
        let (x, y) = (
            buffer("x", Role::Input, 0),
            buffer("y", Role::Output, self.bytes),
        );
        let queue = builder.queue("negate", 1);
        let size = self.bytes / self.tasks;
        for task in 0..self.tasks {
            let pattern = Pattern::contiguous(task * size, size);
            let kernel = builder.kernel(Negate { x, y, pattern });
            let mut new = NewTask::new(queue, kernel);
            new.location.part = part;
            let first = builder
                .task(new)
                .map_err(|error| Failure::building(&error))?;
            builder.release(queue, first);
        }
        let mut program = builder
            .finish()
            .map_err(|error| Failure::building(&error))?;
        let port = |name: &str, buffer| Port {
            name: name.to_owned(),
            alias: None,
            buffer,
            element: ElementType::Int8,
            shape: vec![self.bytes],
            host_element: None,
            scale: None,
        };
        program.interface.inputs.push(port("x", x));
        program.interface.outputs.push(port("y", y));
        Ok(program.into())
    }
}

#[derive(Debug)]
struct Negate {
    x: BufferId,
    y: BufferId,
    pattern: Pattern,
}

impl Kernel for Negate {
    fn operation(&self) -> Cow<'static, str> {
        "negate".into()
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        visit(Access::read(self.x, self.pattern.clone()));
        visit(Access::write(self.y, self.pattern.clone()));
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        for run in self.pattern.runs() {
            for at in run as usize..(run + self.pattern.run) as usize {
                let byte = storage.bytes(self.x)[at];
                storage.bytes_mut(self.y)[at] = byte.wrapping_neg();
            }
        }
        Ok(())
    }
}

const LINE: &[u8] = b"negate 64 in 4\n";

fn with_document(then: impl FnOnce(&chipless::OpenDocument<'_>)) {
    let options = Options::default();
    let file = chipless::open_as(&Sixth, "line", LINE, &options).expect("it opens");
    then(&file.read().expect("it can be read"));
}

#[test]
fn info() {
    assert!(Sixth.recognize(LINE) && !Sixth.recognize(b"negative"));
    with_document(|document| {
        let info = document.info();
        assert_eq!((info.target, &*info.inputs[0].shape), ("sixth", &[64][..]));
        // What it cannot do it says.
        let refused = document.capabilities().draws().err().expect("no pictures");
        assert_eq!(refused.kind, chipless::FailureKind::Unsupported);
    });
}

#[test]
fn check() {
    let codes = |bytes: &[u8], limits: chipless_model::Limits| {
        let mut options = Options::default();
        options.limits = limits;
        let checked = chipless::check_as(&Sixth, "line", bytes, &options).expect("checked");
        let codes = checked.findings.iter().map(|finding| finding.rule.code);
        codes.collect::<Vec<_>>()
    };
    let limits = chipless_model::Limits::default();
    assert_eq!(codes(LINE, limits.clone()), Vec::<&str>::new());
    assert_eq!(codes(b"negate 64 in 5", limits.clone()), ["sixth-uneven"]);
    assert_eq!(codes(b"negate all", limits), ["sixth-syntax"]);
}

#[test]
fn list() {
    with_document(|document| {
        let lowered = document.lower().expect("it has a program");
        let names = lowered.program.tasks.indices();
        let names: Vec<String> = names.map(|task| lowered.program.task_name(task)).collect();
        assert_eq!(names, ["negate[0]", "negate[1]", "negate[2]", "negate[3]"]);
    });
}

#[test]
fn run() {
    with_document(|document| {
        let lowered = document.lower().expect("it has a program");
        let verified = lowered.verify().expect("it is right");
        assert!(verified.warnings().is_empty());
        let run = |seed| {
            let finished = chipless::run(document, &lowered, &verified, seed);
            finished.expect("it runs").output("y").expect("y").to_vec()
        };
        assert!(run(0) == run(0) && run(0) != run(1));
        // The random inputs of small signed integers lie in -8 to 7.
        assert!(run(0).iter().all(|byte| (-7..=8).contains(&(*byte as i8))));
    });
}
