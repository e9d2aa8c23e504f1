//! How the integers of a program fare: `run --calibrate`.

use super::{Outcomes, Session};
use crate::failure::{Exit, Failure};
use crate::{files, terminal};
use chipless::spu::fqir::{Health, NodeHealth};
use chipless_model::{ElementType, Kind, Port, Program};
use chipless_report::summary::RunReport;
use chipless_report::{clean, widest};
use chipless_sim::{Outcome, TimingOnly};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::sync::PoisonError;

/// The summary of a run with what was counted.
#[derive(JsonSchema, Serialize)]
pub(in crate::commands) struct Calibrated<'a> {
    #[serde(flatten)]
    run: RunReport<'a>,
    /// How the integers of each node fared, in order of execution.
    calibration: Vec<NodeReport<'a>>,
    /// The outputs beside those of the file; left out where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs_beside: Option<Beside>,
}

/// Outputs beside those that the file has for its steps.
#[derive(Default, JsonSchema, Serialize)]
struct Beside {
    /// Elements that were compared.
    elements: u64,
    /// Of these, those that differ.
    differing: u64,
    /// The first that differs.
    first: Option<Difference>,
}

/// An element that is not the expected one.
#[derive(JsonSchema, Serialize)]
struct Difference {
    /// The step, from 0.
    step: usize,
    /// The output.
    output: String,
    /// The element of it.
    element: usize,
    /// What came.
    found: i64,
    /// What the file has.
    expected: i64,
}

impl Beside {
    fn add(&mut self, step: usize, output: &str, found: &[i64], expected: &[i64]) {
        self.elements += expected.len() as u64;
        let pairs = found.iter().zip(expected).enumerate();
        for (element, (found, expected)) in pairs.filter(|(_, (found, expected))| found != expected)
        {
            self.differing += 1;
            self.first.get_or_insert_with(|| Difference {
                step,
                output: output.to_owned(),
                element,
                found: *found,
                expected: *expected,
            });
        }
    }

    fn text(&self) -> String {
        let Some(first) = &self.first else {
            let elements = chipless_model::count(self.elements as usize, "element");
            return format!("Outputs: {elements}, all as in the file.\n");
        };
        format!(
            "Outputs: {} of {} elements differ from the file, first `{}`[{}] of step {}: expected {}, found {}.\n",
            self.differing,
            self.elements,
            clean(&first.output),
            first.element,
            first.step,
            first.expected,
            first.found
        )
    }
}

/// How the integers of a node fared.
#[derive(JsonSchema, Serialize)]
struct NodeReport<'a> {
    /// The graph that it is in: `ARITH`, `ARITH/3/true`.
    graph: &'a str,
    /// Its position in that graph's list of nodes.
    index: usize,
    /// Its name in the file.
    name: &'a str,
    /// Its operation.
    operation: &'a str,
    /// Elements that it computed.
    values: u64,
    /// Of these, those that the clip to the output's width changed.
    saturated: u64,
    /// Addresses outside the table, before they were clipped.
    out_of_table: u64,
    /// Sums that do not fit the 32 bits of an accumulator.
    overflowed: u64,
    /// Distances from the exact results; null where a scale is not known.
    error: Option<ErrorReport>,
}

/// Distances from exact results, in steps of the output's scale.
#[derive(JsonSchema, Serialize)]
struct ErrorReport {
    /// The largest.
    max: f64,
    /// Their mean.
    mean: f64,
}

impl<'a> From<&'a NodeHealth> for NodeReport<'a> {
    fn from(node: &'a NodeHealth) -> NodeReport<'a> {
        NodeReport {
            graph: &node.graph,
            index: node.index,
            name: &node.name,
            operation: &node.operation,
            values: node.values,
            saturated: node.saturated,
            out_of_table: node.out_of_table,
            overflowed: node.overflowed,
            error: node.error.map(|error| ErrorReport {
                max: error.max,
                mean: error.mean(),
            }),
        }
    }
}

/// A step of a file.
struct Step {
    /// The integers of each input.
    inputs: Vec<Vec<i64>>,
    /// Those of outputs, by number, where the file has some.
    outputs: Vec<(usize, Vec<i64>)>,
}

impl Session<'_, '_> {
    /// Runs the steps of a file under observation, and prints what was counted. The timeline is that of one step.
    pub(super) fn calibrate(&self, path: &Path) -> Result<Exit, Failure> {
        if self.program.target != "spu" {
            let text = format_args!(
                "expected a program of quantised integers (.pt or its plan), found one of target {}",
                self.program.target
            );
            return Err(Failure::misuse("--calibrate", text));
        }
        let steps = read(path, self.program)?;
        let opened = self.opened;
        let mut beside = Beside::default();
        let counted = |mut runner: chipless::spu::fqir::Runner<'_>,
                       watching: &chipless::spu::fqir::Watching| {
            for (number, step) in steps.iter().enumerate() {
                for (input, values) in step.inputs.iter().enumerate() {
                    runner.set_input(input, values);
                }
                runner.step().map_err(|fault| {
                    Failure::wrong(&opened.path, format_args!("step {number}: {fault}"))
                })?;
                for (output, expected) in &step.outputs {
                    let mut found = Vec::new();
                    runner.output(*output, &mut found);
                    let port = &self.program.interface.outputs[*output];
                    beside.add(number, &port.name, &found, expected);
                }
            }
            Ok::<Health, Failure>(
                watching
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone(),
            )
        };
        let health =
            chipless::with_watched_runner(&opened.path, &opened.bytes, self.options, counted)?;
        let beside = Some(beside).filter(|beside| beside.elements > 0);
        let differs = beside.as_ref().is_some_and(|beside| beside.differing > 0);
        let exit = if differs { Exit::Wrong } else { Exit::Done };
        if !self.arguments.answer.is_json() {
            let mut text = table(&opened.path, steps.len(), &health);
            text.extend(beside.as_ref().map(Beside::text));
            terminal::print(&text)?;
            return Ok(exit);
        }
        let Outcome { timeline, end } = chipless_sim::run(
            &chipless_sim::Verified::assume(self.program),
            &mut TimingOnly,
        );
        end.map_err(|stop| self.stopped(&timeline, &stop))?;
        let mut notes = vec![format!("{} steps; times are those of one", steps.len())];
        notes.extend(self.notes());
        let summary = self.summary(&timeline, Outcomes::default(), None, notes)?;
        terminal::print_json(&Calibrated {
            run: summary.report(),
            calibration: health.executed().map(NodeReport::from).collect(),
            outputs_beside: beside,
        })?;
        Ok(exit)
    }
}

/// Reads `{"steps": [{"inputs": {NAME: [integers]}}]}`. An input that a step does not name keeps its values, and is zero before it has some. Beside
/// them, `outputs` of the same form may say what should come out.
fn read(path: &Path, program: &Program<'_>) -> Result<Vec<Step>, Failure> {
    let text = files::read_text(path)?;
    let wrong = |text: String| Failure::unreadable(path.display(), text);
    let file: Value = serde_json::from_str(&text).map_err(|error| {
        // JSON line by line is what `drive` reads.
        let first = text.lines().next().unwrap_or_default();
        let is_script = error.line() > 1 && serde_json::from_str::<Value>(first).is_ok();
        let hint = if is_script {
            ". A value on each line is a script of `chipless drive --script`"
        } else {
            ""
        };
        wrong(format!("expected one JSON value with steps: {error}{hint}"))
    })?;
    let Some(steps) = file.get("steps").and_then(Value::as_array) else {
        return Err(wrong(
            "expected an object with a list `steps`, found none".to_owned(),
        ));
    };
    let ports = &program.interface.inputs;
    let named = |name: &str| steps.iter().any(|step| step["inputs"].get(name).is_some());
    if let Some(port) = ports.iter().find(|port| !named(&port.name)) {
        let name = &port.name;
        return Err(wrong(format!(
            "expected the input `{name}` in a step, found it in none"
        )));
    }
    let zeros = |port: &Port| vec![0; port.shape.iter().product::<u64>() as usize];
    let mut last: Vec<Vec<i64>> = ports.iter().map(zeros).collect();
    let wrong = &wrong;
    let mut one = |(number, step): (usize, &Value)| {
        let inputs = step.get("inputs").and_then(Value::as_object);
        let inputs = inputs.ok_or_else(|| {
            wrong(format!(
                "expected an object `inputs` in step {number}, found none"
            ))
        })?;
        known(number, "inputs", inputs, ports).map_err(wrong)?;
        let values: Vec<Vec<i64>> = (ports.iter().zip(&last))
            .map(|(port, before)| match inputs.get(&port.name) {
                Some(found) => integers(number, port, found).map_err(wrong),
                None => Ok(before.clone()),
            })
            .collect::<Result<_, _>>()?;
        last.clone_from(&values);
        let mut outputs = Vec::new();
        if let Some(expected) = step.get("outputs") {
            let expected = expected.as_object().ok_or_else(|| {
                wrong(format!(
                    "expected an object as `outputs` of step {number}, found something else"
                ))
            })?;
            let ports = &program.interface.outputs;
            known(number, "outputs", expected, ports).map_err(wrong)?;
            for (output, port) in ports.iter().enumerate() {
                if let Some(values) = expected.get(&port.name) {
                    outputs.push((output, integers(number, port, values).map_err(wrong)?));
                }
            }
        }
        Ok(Step {
            inputs: values,
            outputs,
        })
    };
    steps.iter().enumerate().map(&mut one).collect()
}

/// Refuses a name that the program does not have.
fn known(
    step: usize,
    what: &str,
    named: &serde_json::Map<String, Value>,
    ports: &[Port],
) -> Result<(), String> {
    let is_port = |name: &&String| ports.iter().any(|port| port.name == **name);
    let Some(name) = named.keys().find(|name| !is_port(name)) else {
        return Ok(());
    };
    let hint = chipless::suggest::hint(name, ports.iter().map(|port| &*port.name));
    Err(format!(
        "expected names of {what} in step {step}, found `{name}`{hint}"
    ))
}

/// The integers of an input or output in a step.
fn integers(step: usize, port: &Port, found: &Value) -> Result<Vec<i64>, String> {
    let name = &port.name;
    let mut values = Vec::new();
    if !flat(found, &mut values) {
        return Err(format!(
            "expected integers for `{name}` in step {step}, found something else"
        ));
    }
    let count: u64 = port.shape.iter().product();
    if values.len() as u64 != count {
        return Err(format!(
            "expected {} of `{name}` in step {step}, found {}",
            chipless_model::count(count as usize, "element"),
            values.len()
        ));
    }
    let range = range(port.element);
    if let Some(value) = values.iter().find(|v| !range.contains(v)) {
        return Err(format!(
            "expected integers of {} for `{name}` in step {step}, found {value}",
            port.element
        ));
    }
    Ok(values)
}

/// Integers in nested lists, in order.
fn flat(value: &Value, into: &mut Vec<i64>) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| flat(item, into)),
        other => match other.as_i64() {
            Some(integer) => {
                into.push(integer);
                true
            }
            None => false,
        },
    }
}

fn range(element: ElementType) -> std::ops::RangeInclusive<i64> {
    if element.kind() != Kind::Signed || element.bits() >= 64 {
        return i64::MIN..=i64::MAX;
    }
    let limit = 1i64 << (element.bits() - 1);
    -limit..=limit - 1
}

/// A line for each node.
fn table(path: &str, steps: usize, health: &Health) -> String {
    let mut out = format!("{path}: {}\n\n", chipless_model::count(steps, "step"));
    let nodes: Vec<&NodeHealth> = health.executed().collect();
    let place = |node: &NodeHealth| {
        let place = format!("{}/{}", node.graph, node.index);
        if node.name.is_empty() {
            place
        } else {
            format!("{place} {}", clean(&node.name))
        }
    };
    let has_errors = nodes.iter().any(|node| node.error.is_some());
    let shown: Vec<String> = nodes.iter().map(|node| place(node)).collect();
    let places = widest(shown.iter().map(|place| &**place).chain(["node"]));
    let operations = widest(nodes.iter().map(|n| &*n.operation).chain(["operation"]));
    let _ = writeln!(
        out,
        "  {:places$}  {:operations$}  {:>10}  {:>10}  {:>12}  {:>10}  {:>12}  {:>12}",
        "node",
        "operation",
        "values",
        "saturated",
        "out of table",
        "overflowed",
        "largest error",
        "mean error"
    );
    for node in &nodes {
        let error = |of: &dyn Fn(&chipless::spu::fqir::Distances) -> f64| {
            node.error
                .as_ref()
                .map_or_else(String::new, |e| format!("{:.3}", of(e)))
        };
        let _ = writeln!(
            out,
            "  {:places$}  {:operations$}  {:>10}  {:>10}  {:>12}  {:>10}  {:>13}  {:>12}",
            place(node),
            node.operation,
            node.values,
            node.saturated,
            node.out_of_table,
            node.overflowed,
            error(&|e| e.max),
            error(&|e| e.mean()),
        );
    }
    out.push_str(if has_errors {
        "\nErrors are distances from the exact results of the same operands, in steps of the output's scale.\n"
    } else {
        "\nThe columns of errors are empty: they are filled for vvadd, vvsub, vvmul, matmul, addmm, vneg, shift and sum where the file says the scales of their operands and results, as a .pt file may (quanta).\n"
    });
    out
}
