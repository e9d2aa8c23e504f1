//! Contracts, plans and containers of the SPU: a document that was read prints so that it reads the same, and can be driven by
//! what it says may come next; a plan that was lowered can be stepped.

use crate::tally::past_the_reader;
use crate::targets::{limits, prove, tell};
use chipless::spu::fqir::{self, MACHINE, Machine, Plan, Runner};
use chipless::spu::iospec::{self, Document, Femto, RuleSet, Session};
use std::sync::LazyLock;

/// The machine that comes along.
static SPU: LazyLock<Machine> = LazyLock::new(|| Machine::parse(MACHINE).expect("it comes along"));

/// Writes that a session is followed for.
const WRITES: usize = 24;

/// Reads a file as an IOSpec under both rule sets, prints it, and drives it.
pub fn spu_iospec(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for rules in RuleSet::ALL {
        let document = match Document::read(text, rules).or_else(|_| iospec::convert(text, rules)) {
            Ok(document) => document,
            Err(findings) => {
                tell(&findings);
                continue;
            }
        };
        past_the_reader();
        tell(&iospec::lint(&document, rules));
        _ = (
            iospec::info(&document),
            iospec::raw(&document),
            iospec::host(&document, std::path::Path::new("iospec.yaml"), None),
            iospec::drivable(&document, rules),
        );
        let again = Document::read(&document.write(), rules).expect("what was printed reads again");
        assert_eq!(
            again.root,
            document.root,
            "another document: {}",
            document.write()
        );
        drive(&document, rules);
    }
}

/// What a session says may come must be in order.
fn drive(document: &Document, rules: RuleSet) {
    if document.inputs.len() > 64
        || iospec::lint(document, rules)
            .iter()
            .any(chipless_model::Finding::is_error)
    {
        return;
    }
    let mut session = Session::new(document, rules);
    for step in 0..WRITES {
        let (inputs, outputs) = session.next();
        if !outputs.is_empty() {
            _ = session.read();
        } else if let Some(input) = inputs.get(step % inputs.len().max(1)) {
            let name = if rules == RuleSet::Spec {
                &input.key
            } else {
                &input.varname
            };
            if session.write(&[(name.clone(), Some(vec![1, -1]))]).is_ok() {
                continue;
            }
            let written = session.write(&[(name.clone(), None)]);
            assert!(
                written.is_ok() || rules == RuleSet::Femtorun41,
                "said to be in order: {written:?}"
            );
        }
    }
    session.reset();
}

/// Reads a file as a plan, makes its program, and takes three steps of it.
pub fn spu_plan(bytes: &[u8]) {
    step(Plan::read(bytes, &limits()));
}

/// Reads a file as a `.pt`, or what stands in it from its pickle on, makes its program, and takes three steps of it.
pub fn spu_saved(bytes: &[u8]) {
    let limits = limits();
    step(Plan::read_saved(bytes, &limits));
    let pickle = bytes.windows(2).position(|window| window == [0x80, 2]);
    if let Some(pickle) = pickle.and_then(|at| bytes.get(at..)) {
        step(Plan::read_pickle(pickle, &limits));
    }
}

fn step(plan: Result<Plan<'_>, Box<chipless_model::Finding>>) {
    let limits = limits();
    let plan = match plan {
        Ok(plan) => plan,
        Err(finding) => return tell(&[*finding]),
    };
    past_the_reader();
    _ = (fqir::info(&plan), fqir::raw(&plan));
    match fqir::lower(&plan, &SPU, &limits) {
        Ok(lowered) => {
            prove(&lowered.program);
            if let Ok(mut runner) = Runner::new(&lowered, &limits) {
                _ = (0..3).try_for_each(|_| runner.step());
            }
        }
        Err(finding) => tell(&[*finding]),
    }
}

/// Reads a file as a `.femto` container; its IOSpec is one that the package loads, unless a vector stands twice.
pub fn spu_femto(bytes: &[u8]) {
    match Femto::read(bytes) {
        Ok(femto) => {
            past_the_reader();
            _ = (femto.info(), femto.raw(), femto.verify());
            spu_iospec(chipless::spu::yaml::write(&femto.iospec()).as_bytes());
        }
        Err(finding) => tell(&[*finding]),
    }
}
