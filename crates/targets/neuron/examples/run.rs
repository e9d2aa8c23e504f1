//! Runs corpus programs and compares with what their facts.json says.
#![allow(clippy::all, clippy::pedantic, clippy::print_stdout, clippy::print_stderr, unused_results, missing_docs)]

use chipless_kernels::map::Mapped;
use chipless_model::*;
use chipless_neuron::machine::Machine;
use chipless_neuron::*;
use chipless_sim::{Functional, TimingOnly};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

fn finals(program: &Program<'_>, timeline: &chipless_sim::Timeline) -> BTreeMap<String, i64> {
    let mut values = BTreeMap::new();
    for task in &timeline.order {
        for signal in program.signals(*task) {
            if let Action::Add(sync, by) = signal.action {
                *values.entry(program.syncs[sync].name.clone()).or_insert(0) += by;
            }
        }
    }
    values
}

fn machine(neff: &Neff<'_>) -> Machine {
    Machine::named(match neff.architecture {
        Architecture::Trn1 | Architecture::Inf1 => "trn1",
        Architecture::Trn3 => "trn3",
        _ => "trn2",
    })
    .unwrap()
}

fn one(dir: &str, inputs: &str, exact: bool) -> Result<String, String> {
    let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(format!("{dir}/facts.json")).unwrap()).unwrap();
    let file = std::fs::read(format!("{dir}/program.neff")).unwrap();
    let limits = Limits::default();
    let container = Container::open(&file, &limits).map_err(|e| e.to_string())?;
    let neff = Neff::read(&container, &limits).map_err(|e| e.to_string())?;
    let machine = machine(&neff);
    let findings = stream::rules::check(&neff, machine.memory.sbuf_partition_bytes, &limits);
    for f in &findings {
        println!("    finding {f}");
    }
    let Lowered { program, notes } = lower(&neff, &machine, &limits).map_err(|e| e.to_string())?;
    if std::env::var("LIST").is_ok() {
        for task in program.tasks.indices() {
            println!(
                "    {} {} {} {:?}",
                program.task_name(task),
                program.kernel(task).operation(),
                program.kernel(task).details(),
                program.tasks[task].label
            );
        }
        println!("    {notes:?}");
    }
    let mut storage = Storage::new(&program, &limits).unwrap();
    let mut maps = Vec::new();
    for x in facts["inputs"].as_array().unwrap() {
        let path = format!("{inputs}/{}", x["file"].as_str().unwrap());
        maps.push((x["name"].as_str().unwrap().to_owned(), Mapped::open(&std::fs::File::open(&path).unwrap()).unwrap()));
    }
    let arrays: Vec<(String, Constant<'_>)> =
        maps.iter().map(|(n, m)| (n.clone(), Constant::read(Member { path: "x.npy", bytes: m }).unwrap())).collect();
    for (name, c) in &arrays {
        let port = program.interface.inputs.iter().find(|p| p.name == *name).ok_or(format!("no input {name}"))?;
        storage.set(port.buffer, Cow::Borrowed(&c.bytes));
    }
    let start = Instant::now();
    let mut effects = Functional::new(&mut storage);
    let outcome = chipless_sim::run(&program, &mut effects);
    let wall = start.elapsed();
    if let Err(stop) = &outcome.end {
        return Err(match stop {
            chipless_sim::Stop::Fault { task, fault } => format!("fault in {}: {}", program.task_name(*task), fault.message),
            chipless_sim::Stop::Deadlock(d) => format!("deadlock {d:?}"),
        });
    }
    let values = finals(&program, &outcome.timeline);
    let mut wrong = Vec::new();
    if let Some(all) = facts["semaphores_final"].as_object() {
        for (sg, expected) in all {
            let got: BTreeMap<String, i64> = values
                .iter()
                .filter_map(|(n, v)| Some((n.strip_prefix(&format!("{sg} $S["))?.strip_suffix(']')?.to_owned(), *v)))
                .filter(|(_, v)| *v != 0)
                .collect();
            let want: BTreeMap<String, i64> = expected.as_object().unwrap().iter().map(|(k, v)| (k.clone(), v.as_i64().unwrap())).collect();
            if got != want {
                wrong.push(format!("{sg} semaphores {got:?}, expected {want:?}"));
            }
            let events: Vec<i64> = values
                .iter()
                .filter_map(|(n, v)| n.strip_prefix(&format!("{sg} $E["))?.strip_suffix(']')?.parse().ok().filter(|_| *v != 0))
                .collect();
            let want: Vec<i64> =
                facts["events_set"][sg].as_array().map(|a| a.iter().map(|v| v.as_i64().unwrap()).collect()).unwrap_or_default();
            if events != want {
                wrong.push(format!("{sg} events {events:?}, expected {want:?}"));
            }
        }
    }
    for x in facts["outputs"].as_array().unwrap() {
        let name = x["name"].as_str().unwrap();
        let port = program.interface.outputs.iter().find(|p| p.name == name).ok_or(format!("no output {name}"))?;
        let got = &storage.bytes(port.buffer)[..port.bytes().unwrap() as usize];
        let path = format!("{inputs}/{}", x["file"].as_str().unwrap());
        let bytes = std::fs::read(&path).unwrap();
        let want = Constant::read(Member { path: "x.npy", bytes: &bytes }).unwrap();
        if exact {
            if got != &*want.bytes {
                let nan = |b: &[u8]| match port.element {
                    ElementType::Float32 => f32::from_le_bytes(b.try_into().unwrap()).is_nan(),
                    _ => false,
                };
                let size = (port.element.bits() / 8) as usize;
                let differ = got.chunks(size).zip(want.bytes.chunks(size)).filter(|(a, b)| a != b && !(nan(a) && nan(b))).count();
                if differ > 0 {
                    wrong.push(format!(
                        "{name}: {differ} of {} differ; {:?} {:?}",
                        got.len() / size,
                        &got[..32.min(got.len())],
                        &want.bytes[..32.min(got.len())]
                    ));
                }
            }
        } else {
            let key = |b: &[u8]| {
                let i = i32::from(i16::from_le_bytes(b.try_into().unwrap()));
                if i < 0 { -(i & 0x7fff) } else { i }
            };
            let ulps: Vec<i32> = got.chunks(2).zip(want.bytes.chunks(2)).map(|(a, b)| (key(a) - key(b)).abs()).collect();
            let max = ulps.iter().max().unwrap();
            let equal = ulps.iter().filter(|u| **u == 0).count() as f64 / ulps.len() as f64;
            let value = |b: &[u8]| half::f16::from_le_bytes(b.try_into().unwrap()).to_f32();
            let bad = got
                .chunks(2)
                .zip(want.bytes.chunks(2))
                .filter(|(a, b)| (value(a) - value(b)).abs() > 0.01 && (key(a) - key(b)).abs() > 1)
                .count();
            if bad > 0 || equal < 0.99 {
                wrong.push(format!("{name}: max {max} ulp, {equal} equal"));
            } else {
                println!("    {name}: max {max} ulp, {equal} equal");
            }
        }
    }
    if wrong.is_empty() {
        Ok(format!("{} tasks, {}, wall {wall:?}", program.tasks.len(), outcome.timeline.end))
    } else {
        Err(wrong.join("; "))
    }
}

fn check(path: &str) {
    let name = path.rsplit('/').next().unwrap();
    let file = std::fs::read(path).unwrap();
    let limits = Limits::default();
    let container = match Container::open(&file, &limits) {
        Ok(c) => c,
        Err(e) => return println!("{name}: container: {e}"),
    };
    let neff = match Neff::read(&container, &limits) {
        Ok(c) => c,
        Err(e) => return println!("{name}: read: {e}"),
    };
    if !neff.dangling.is_empty() {
        return println!("{name}: dangling: {}", neff.dangling[0]);
    }
    let machine = machine(&neff);
    let findings = stream::rules::check(&neff, machine.memory.sbuf_partition_bytes, &limits);
    for f in &findings {
        println!("{name}: {:?} {f}", f.rule.severity);
    }
    match lower(&neff, &machine, &limits) {
        Err(e) => println!("{name}: lower: {e}"),
        Ok(l) => {
            let outcome = chipless_sim::run(&l.program, &mut TimingOnly);
            match outcome.end {
                Ok(()) => {
                    let mut storage = Storage::new(&l.program, &limits).unwrap();
                    let end = chipless_sim::run(&l.program, &mut Functional::new(&mut storage)).end;
                    println!(
                        "{name}: ran; functional {}",
                        match end {
                            Ok(()) => "ok".into(),
                            Err(s) => format!("{s:?}"),
                        }
                    );
                }
                Err(stop) => println!("{name}: {}", format!("{stop:?}")[..200.min(format!("{stop:?}").len())].to_owned()),
            }
        }
    }
}

fn cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

fn time(path: &str) {
    let file = std::fs::read(path).unwrap();
    let limits = Limits::default();
    let mut spent = [0.0; 5];
    let rounds = 40;
    let mut line = String::new();
    for _ in 0..rounds {
        let t0 = cpu();
        let container = Container::open(&file, &limits).unwrap();
        let neff = Neff::read(&container, &limits).unwrap();
        let machine = machine(&neff);
        let t1 = cpu();
        let slots: usize = neff.subgraphs.iter().flat_map(|s| &s.engines).filter_map(|e| e.instructions).map(|m| m.bytes.len() / 64).sum();
        let lowered = lower(&neff, &machine, &limits).unwrap();
        let t2 = cpu();
        let outcome = chipless_sim::run(&lowered.program, &mut TimingOnly);
        let t3 = cpu();
        let findings = stream::rules::check(&neff, machine.memory.sbuf_partition_bytes, &limits);
        let t4 = cpu();
        line = format!(
            "{slots} slots, {} tasks, {} {:?} findings {}",
            lowered.program.tasks.len(),
            outcome.timeline.end,
            outcome.end.is_ok(),
            findings.len()
        );
        drop(lowered);
        let t5 = cpu();
        for (s, d) in spent.iter_mut().zip([t1 - t0, t2 - t1, t3 - t2, t4 - t3, t5 - t4]) {
            *s += d / rounds as f64;
        }
        if let Some(n) = line.split(' ').next().and_then(|n| n.parse::<f64>().ok()) {
            line += &format!("; {:.2} M slots/s", n / (spent[1] + spent[2]) / 1e3);
        }
    }
    println!(
        "{line}; read {:.1}, lower {:.1}, run {:.1}, check {:.1}, drop {:.1} ms cpu",
        spent[0], spent[1], spent[2], spent[3], spent[4]
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args[0].as_str() {
        "time" => time(&args[1]),
        "plain" => {
            let n: Vec<usize> = args[1..].iter().map(|a| a.parse().unwrap()).collect();
            let (m, k, n) = (n[0], n[1], n[2]);
            let a = vec![1.0f32; m * k];
            let b: Vec<f32> = (0..k * n).map(|i| (i % 7) as f32).collect();
            let mut c = vec![0.0f32; m * n];
            for _ in 0..3 {
                let t = Instant::now();
                chipless_kernels::matrix::multiply(
                    chipless_kernels::matrix::Matrix::new(&a, m, k).unwrap(),
                    chipless_kernels::matrix::Matrix::new(&b, k, n).unwrap(),
                    chipless_kernels::matrix::MatrixMut::new(&mut c, m, n).unwrap(),
                    chipless_kernels::Update::Set,
                )
                .unwrap();
                let t = t.elapsed();
                println!("plain {t:?} {:.1} GFLOPS", 2.0 * (m * k * n) as f64 / t.as_secs_f64() / 1e9);
            }
        }
        "check" => args[1..].iter().for_each(|p| check(p)),
        _ => {
            for dir in &args {
                let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(format!("{dir}/facts.json")).unwrap()).unwrap();
                println!("{dir}: {:?}", one(dir, dir, facts["tolerance"] == "exact"));
                if facts["exact"].is_object() {
                    println!("{dir} exact: {:?}", one(dir, &format!("{dir}/exact"), true));
                }
            }
        }
    }
}
