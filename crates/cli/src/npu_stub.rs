//! Stand-in for the NPU target while it is built: a program of three tasks.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, dead_code)]

use chipless_model::*;
use std::borrow::Cow;

pub static RULES: &[&Rule] = &[&BAD, &UNSUPPORTED];
static BAD: Rule = Rule {
    code: "stub-bad",
    severity: Severity::Error,
    summary: "a bad byte",
    explanation: "The file holds a bad byte.",
    remedy: "mend it",
    source: "stub",
};
static ODD: Rule =
    Rule { code: "stub-odd", severity: Severity::Warning, summary: "an odd byte", explanation: "x", remedy: "", source: "stub" };
static UNSUPPORTED: Rule =
    Rule { code: "stub-unsupported-platform", severity: Severity::Error, summary: "platform", explanation: "", remedy: "", source: "" };

pub fn recognize(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF")
}

pub struct Document<'f> {
    bytes: &'f [u8],
    findings: Vec<Finding>,
}
impl<'f> Document<'f> {
    pub fn read(bytes: &'f [u8]) -> Result<Document<'f>, Vec<Finding>> {
        if bytes.contains(&b'!') {
            return Err(vec![
                BAD.at(Place::bytes(bytes.iter().position(|b| *b == b'!').unwrap() as u64, 1).in_part("stub"), "found 0x21, expected less"),
            ]);
        }
        let findings = if bytes.contains(&b'?') { vec![ODD.at(Place::bytes(5, 1), "odd")] } else { vec![] };
        Ok(Document { bytes, findings })
    }
    pub fn info(&self) -> Info {
        Info {
            target: "npu",
            platform: "stub".into(),
            format_version: "1".into(),
            inputs: vec![TensorInfo { name: "x".into(), element: ElementType::Float16, shape: vec![4, 8] }],
            counts: vec![("tasks".into(), 3)],
            ..Info::default()
        }
    }
    pub fn raw(&self) -> Node {
        Node { name: "file".into(), ..Node::default() }
    }
    pub fn supported(&self) -> Result<(), Box<Finding>> {
        if self.bytes.contains(&b'U') { Err(Box::new(UNSUPPORTED.at(Place::file(), "platform 3720 is not supported"))) } else { Ok(()) }
    }
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}
pub struct Image<'d>(&'d [u8]);
impl<'d> Image<'d> {
    pub fn load(d: &'d Document<'_>, _: &Limits) -> Result<Image<'d>, Vec<Finding>> {
        Ok(Image(d.bytes))
    }
}
#[derive(Default, Clone)]
pub struct Machine;
impl Machine {
    pub fn from_toml(t: &str) -> Result<Machine, String> {
        if t.is_empty() { Err("empty".into()) } else { Ok(Machine) }
    }
}
#[derive(Default, Clone)]
pub struct KernelTable;
impl KernelTable {
    pub fn insert_entry(&mut self, e: &str) -> Result<(), String> {
        if e.contains('=') { Ok(()) } else { Err(format!("kernel entry `{e}`: expected HASH=OPERATION")) }
    }
    pub fn extend_from_toml(&mut self, _: &str) -> Result<(), String> {
        Ok(())
    }
}
pub struct Options {
    pub machine: Machine,
    pub kernels: KernelTable,
    pub limits: Limits,
}

#[derive(Debug)]
struct Move {
    from: BufferId,
    to: BufferId,
    may_fault: bool,
}
impl Kernel for Move {
    fn operation(&self) -> Cow<'static, str> {
        "move".into()
    }
    fn accesses(&self, v: &mut dyn FnMut(Access)) {
        v(Access::read(self.from, Pattern::contiguous(0, 64)));
        v(Access::write(self.to, Pattern::contiguous(0, 64)));
    }
    fn execute(&self, s: &mut Storage<'_>) -> Result<(), Fault> {
        if self.may_fault {
            return Err(Fault::program("stub fault"));
        }
        if let Some((a, b)) = s.pair(self.from, self.to) {
            b[..64].copy_from_slice(&a[..64]);
        }
        Ok(())
    }
    fn unproven(&self) -> Option<Cow<'static, str>> {
        Some("the stub's rule".into())
    }
}
pub fn lower<'i>(document: &Document<'_>, image: &'i Image<'_>, _: &Options) -> Result<Program<'i>, Vec<Finding>> {
    let mut p = Program { target: "npu", name: "stub".into(), ..Program::default() };
    p.parts.push("stub".into());
    let m = p.memories.push(Memory { name: "ddr".into(), size: 1 << 20, kind: MemoryKind::Dram });
    let mut b =
        |n: &str, role| p.buffers.push(Buffer { name: n.into(), memory: m, address: None, size: 64, role, initial: Cow::Borrowed(&[]) });
    let (x, y, z) = (b("x", Role::Input), b("t", Role::Scratch), b("y", Role::Output));
    p.resources.push(Resource { name: "ddr".into(), capacity: 64e9, per_transfer: 32e9 });
    let q0 = p.queues.push(Queue { name: "dma0".into(), servers: 1 });
    let q1 = p.queues.push(Queue { name: "dma1".into(), servers: 1 });
    let s = p.syncs.push(Sync { name: "S[0]".into(), kind: SyncKind::Semaphore { initial: 0, low: 0, high: 1 } });
    let dead = image.0.contains(&b'D');
    for (q, from, to, waits, signal, f) in [(q0, x, y, None, !dead, false), (q1, y, z, Some(s), false, document.bytes.contains(&b'F'))] {
        let kernel = p.kernels.push(Box::new(Move { from, to, may_fault: f }));
        let waits = Span::push(&mut p.waits, waits.map(|sync| Wait { sync, condition: Condition::AtLeast(1) }));
        let signals = Span::push(&mut p.signals, signal.then_some(Signal::on_completion(Action::Add(s, 1))));
        let demands = Span::push(&mut p.demands, [Demand { resource: ResourceId::from_raw(0), bytes: 64 }]);
        let t = p.tasks.push(Task {
            queue: q,
            index: 0,
            kernel,
            waits,
            signals,
            demands,
            fixed: Time(1000),
            location: Location { part: PartId::from_raw(0), offset: 4, size: 2 },
            label: None,
        });
        let piece = p.pieces.push(Piece { queue: q, first: t, count: 1 });
        p.initial.push(piece);
    }
    let port = |n: &str, buffer| Port { name: n.into(), buffer, element: ElementType::Float16, shape: vec![4, 8] };
    p.interface = Interface { inputs: vec![port("x", x)], outputs: vec![port("y/out", z)] };
    Ok(p)
}
