//! Reads the other agents of a workload.

use crate::agents::{Agent, AgentFigures, Traffic};
use crate::fields::{Fields, Read, list, rate, size, text, wrong};
use crate::figures::{CACHE, DDR, RESOURCES};
use crate::rules;
use chipless_model::Place;
use chipless_yaml::Node;

/// Reads the agents of a workload.
pub(super) fn agents(
    node: &Node,
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Vec<Agent>> {
    let all = Fields::any(node, "agents")?;
    let agents = all.entries.iter();
    agents
        .map(|(name, _, node)| agent(name, node, open))
        .collect()
}

fn agent(
    name: &str,
    node: &Node,
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Agent> {
    let known = ["rate", "at", "burst", "working_set", "path", "weight"];
    let fields = Fields::of(node, "an agent", &known)?;
    let (kind, value) = fields.one_of(&["rate", "at"], &rules::AGENT)?;
    let working_set = fields.get("working_set");
    let burst = match fields.get("burst") {
        Some(node) => Some((size(node, "burst")?, node.span)),
        None => working_set.map(|node| (BURST, node.span)),
    };
    let traffic = match (kind, burst) {
        ("at", Some((_, span))) => {
            let text = "expected `burst` and `working_set` beside `rate`, found them beside `at`";
            return wrong(&rules::AGENT, span, text);
        }
        ("at", None) => Traffic::Recorded(recorded(value, open)?),
        (_, None) => Traffic::Steady,
        (_, Some((0, span))) => {
            return wrong(
                &rules::AGENT,
                span,
                "expected a burst of a byte at least, found 0",
            );
        }
        (_, Some((burst, _))) => Traffic::Bursts(
            burst,
            match working_set {
                Some(node) => size(node, "working_set")?,
                None => 1 << 40,
            },
        ),
    };
    let is_steady = matches!(traffic, Traffic::Steady);
    let path = match fields.get("path") {
        Some(node) => path(node)?,
        None if is_steady => vec![DDR],
        None => vec![CACHE, DDR],
    };
    let weight = match fields
        .get("weight")
        .map(|node| (node, node.label().parse()))
    {
        None => 1.0,
        Some((_, Ok(weight))) if weight > 0.0 && f64::is_finite(weight) => weight,
        Some((node, _)) => {
            let text = format!("expected a weight above zero, found {}", node.describe());
            return wrong(&rules::AGENT, node.span, text);
        }
    };
    let rate = match kind {
        "rate" => Some(rate(value)?),
        _ => None,
    };
    Ok(Agent {
        name: name.to_owned(),
        path,
        traffic,
        figures: AgentFigures { rate, weight },
    })
}

/// Bytes of a burst where an agent does not say.
const BURST: u64 = 64 << 10;

/// The part of the memory path that agents outside of the NPU reach.
fn path(node: &Node) -> Read<Vec<u8>> {
    let number = |item: &Node| {
        let name = text(item, "the name of a resource")?;
        let known = RESOURCES.iter().position(|known| *known == name);
        match known {
            Some(number) if ["network", "cache", "ddr"].contains(&name) => Ok(number as u8),
            _ => wrong(
                &rules::AGENT,
                item.span,
                format!("expected network, cache or ddr, found \"{name}\""),
            ),
        }
    };
    let mut path: Vec<u8> = Vec::new();
    for item in list(node, "resources")? {
        let number = number(item)?;
        if path.contains(&number) {
            return wrong(
                &rules::AGENT,
                item.span,
                "expected each resource once, found one again",
            );
        }
        path.push(number);
    }
    if path.is_empty() {
        return wrong(
            &rules::AGENT,
            node.span,
            "expected a resource at least, found none",
        );
    }
    Ok(path)
}

/// A recorded trace: `time, bytes` or `time, bytes, address` on each line, in rising order of time.
fn recorded(
    node: &Node,
    open: &mut impl FnMut(&str) -> Result<String, String>,
) -> Read<Vec<(u64, u64, u64)>> {
    let name = text(node, "the name of a file")?;
    let content = match open(name) {
        Ok(content) => content,
        Err(error) => return wrong(&rules::AGENT, node.span, format!("{name} {error}")),
    };
    let mut bursts: Vec<(u64, u64, u64)> = Vec::new();
    for (number, line) in content.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let burst = burst(line);
        let in_order = |(at, ..): &(u64, u64, u64)| bursts.last().is_none_or(|last| last.0 <= *at);
        let Some(burst) = burst.filter(in_order) else {
            let text = format!(
                "expected a time not before the last one, bytes and perhaps an address on line {} of {name}, found \"{line}\"",
                number + 1
            );
            let place = Place::line(number as u32 + 1, 1).in_part(name.to_owned());
            let finding = rules::AGENT.at(node.span.place(), text);
            return Err(Box::new(finding.with(place, "the burst")));
        };
        bursts.push(burst);
    }
    Ok(bursts)
}

fn burst(line: &str) -> Option<(u64, u64, u64)> {
    let mut cells = line.split(',').map(str::trim);
    let at = crate::quantity::time(cells.next()?, Some(1e12))?;
    let bytes = crate::quantity::size(cells.next()?)?;
    let address = match cells.next() {
        None | Some("") => 0,
        Some(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => text.parse().ok()?,
        },
    };
    let fits = bytes <= 1 << 32 && address < 1 << 40 && cells.next().is_none();
    fits.then_some((at, bytes, address))
}
