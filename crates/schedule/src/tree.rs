//! Trees of cuts: the shape of a schedule, as files have it.

use crate::network::Network;
use serde_json::{Value, json};
use std::fmt;

/// How the children of a cut share its cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// One after another on all of them.
    Time,
    /// Side by side on disjoint ones.
    Space,
}

impl Cut {
    /// As files name it.
    pub const fn name(self) -> &'static str {
        match self {
            Cut::Time => "T",
            Cut::Space => "S",
        }
    }
}

/// Parts along K, B, H, W.
pub type Partition = [u16; 4];

/// A node of a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A layer.
    Leaf(Leaf),
    /// A cut.
    Cut(Branch),
}

/// A layer in a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Its name.
    pub layer: String,
    /// Images that it gets at once.
    pub batch: i64,
    /// Parts along K, B, H, W.
    pub part: Option<Partition>,
    /// Order of the dimensions over the cores of the cut, the outermost first: positions in K, B, H, W (SET's files).
    pub order: Option<[usize; 4]>,
    /// Core of each part.
    pub cores: Option<Vec<u16>>,
}

/// A cut in a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// Which.
    pub cut: Cut,
    /// Images that it gets at once.
    pub batch: i64,
    /// Sub-batches that it makes of them.
    pub groups: i64,
    /// Its children.
    pub children: Vec<Tree>,
}

/// A tree that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Levels of a tree, at most.
const DEEPEST: usize = 100;

impl Tree {
    /// Images that it gets at once.
    pub fn batch(&self) -> i64 {
        match self {
            Tree::Leaf(leaf) => leaf.batch,
            Tree::Cut(branch) => branch.batch,
        }
    }

    /// Its layers, in order.
    pub fn leaves(&self) -> Vec<&Leaf> {
        fn walk<'t>(tree: &'t Tree, all: &mut Vec<&'t Leaf>) {
            match tree {
                Tree::Leaf(leaf) => all.push(leaf),
                Tree::Cut(branch) => branch.children.iter().for_each(|child| walk(child, all)),
            }
        }
        let mut all = Vec::new();
        walk(self, &mut all);
        all
    }

    /// Reads a tree file, or a tree or scheme file of SET.
    ///
    /// # Errors
    /// What is neither; the message says where.
    pub fn read(text: &str) -> Result<Tree, Unreadable> {
        if text.trim_start().starts_with('{') {
            let value: Value = serde_json::from_str(text).map_err(|e| Unreadable(e.to_string()))?;
            from_json(value.get("root").unwrap_or(&value), "root")
        } else {
            from_text(text)
        }
    }

    /// As a tree file.
    pub fn to_json(&self) -> Value {
        json!({ "batch": self.batch(), "root": self.node() })
    }

    fn node(&self) -> Value {
        match self {
            Tree::Leaf(leaf) => {
                let mut node = json!({ "layer": leaf.layer, "batch": leaf.batch });
                if let Some([k, b, h, w]) = leaf.part {
                    node["part"] = json!({ "K": k, "B": b, "H": h, "W": w });
                }
                if let Some(cores) = &leaf.cores {
                    node["cores"] = json!(cores);
                }
                node
            }
            Tree::Cut(branch) => json!({
                "cut": branch.cut.name(),
                "batch": branch.batch,
                "groups": branch.groups,
                "children": branch.children.iter().map(Tree::node).collect::<Vec<_>>(),
            }),
        }
    }

    /// Names of layers that the tree lacks, of those that it has and the network does not.
    pub fn missing<'n>(&self, network: &'n Network) -> Vec<&'n str> {
        let leaves = self.leaves();
        let named = |name: &str| leaves.iter().any(|leaf| leaf.layer == name);
        network
            .layers
            .iter()
            .map(|l| l.name.as_str())
            .filter(|name| !named(name))
            .collect()
    }
}

/// Position of a dimension in K, B, H, W.
fn dimension(name: &str) -> Option<usize> {
    ["K", "B", "H", "W"].iter().position(|d| *d == name)
}

fn from_json(value: &Value, path: &str) -> Result<Tree, Unreadable> {
    let count = |key: &str| {
        value
            .get(key)
            .and_then(Value::as_i64)
            .filter(|v| (1..1 << 20).contains(v))
            .ok_or_else(|| Unreadable(format!("{path}: `{key}` is missing or no positive number")))
    };
    let batch = count("batch")?;
    if let Some(layer) = value.get("layer") {
        let layer = layer
            .as_str()
            .ok_or_else(|| Unreadable(format!("{path}: `layer` is no text")))?;
        let mut leaf = Leaf {
            layer: layer.to_owned(),
            batch,
            part: None,
            order: None,
            cores: None,
        };
        if let Some(part) = value.get("part") {
            let parts = part
                .as_object()
                .ok_or_else(|| Unreadable(format!("{path}: `part` is no object")))?;
            let mut counts = [1; 4];
            for (key, count) in parts {
                let at = dimension(key)
                    .ok_or_else(|| Unreadable(format!("{path}: there is no dimension `{key}`")))?;
                counts[at] = count
                    .as_u64()
                    .filter(|v| (1..=4096).contains(v))
                    .ok_or_else(|| Unreadable(format!("{path}: {count} parts along {key}")))?
                    as u16;
            }
            leaf.part = Some(counts);
            if let Some(cores) = value.get("cores") {
                let numbers: Option<Vec<u16>> = cores.as_array().and_then(|list| {
                    list.iter()
                        .map(|v| v.as_u64().and_then(|v| u16::try_from(v).ok()))
                        .collect()
                });
                leaf.cores =
                    Some(numbers.ok_or_else(|| {
                        Unreadable(format!("{path}: `cores` is no list of cores"))
                    })?);
            }
        }
        return Ok(Tree::Leaf(leaf));
    }
    let cut = match value.get("cut").and_then(Value::as_str) {
        Some("T") => Cut::Time,
        Some("S") => Cut::Space,
        _ => {
            return Err(Unreadable(format!(
                "{path}: neither `layer` nor `cut` (T or S)"
            )));
        }
    };
    let children = value
        .get("children")
        .and_then(Value::as_array)
        .ok_or_else(|| Unreadable(format!("{path}: `children` is missing")))?
        .iter()
        .enumerate()
        .map(|(i, child)| from_json(child, &format!("{path}.children[{i}]")))
        .collect::<Result<_, _>>()?;
    Ok(Tree::Cut(Branch {
        cut,
        batch,
        groups: count("groups")?,
        children,
    }))
}

/// A line of SET's file: its depth and what stands on it.
fn line(number: usize, line: &str) -> Result<(usize, Tree), Unreadable> {
    let wrong = |what: &str| Unreadable(format!("line {number}: {what}"));
    let depth = line.len() - line.trim_start_matches('\t').len();
    if depth >= DEEPEST {
        return Err(wrong(&format!("more than {DEEPEST} levels")));
    }
    let mut words = line.split_whitespace();
    let (Some(name), Some(batch)) = (words.next(), words.next()) else {
        return Err(wrong("expected a cut or a layer with its batch"));
    };
    let positive = |text: &str| {
        text.parse::<i64>()
            .ok()
            .filter(|v| (1..1 << 20).contains(v))
    };
    if let ("S" | "T", Some((batch, groups))) = (name, batch.split_once('/')) {
        let cut = if name == "T" { Cut::Time } else { Cut::Space };
        let (Some(batch), Some(groups)) = (positive(batch), positive(groups)) else {
            return Err(wrong("expected batch/groups"));
        };
        return Ok((
            depth,
            Tree::Cut(Branch {
                cut,
                batch,
                groups,
                children: Vec::new(),
            }),
        ));
    }
    let batch = positive(batch).ok_or_else(|| wrong("expected the batch of a layer"))?;
    let mut leaf = Leaf {
        layer: name.to_owned(),
        batch,
        part: None,
        order: None,
        cores: None,
    };
    if let Some(parts) = words
        .next()
        .and_then(|w| w.strip_prefix('(')?.strip_suffix(')'))
    {
        let (mut part, mut order) = ([1; 4], [0; 4]);
        let mut seen = 0;
        for (place, pair) in parts.split(',').enumerate() {
            let (key, count) = pair
                .split_once(':')
                .ok_or_else(|| wrong("expected DIMENSION:PARTS"))?;
            let at = dimension(key).ok_or_else(|| wrong("expected one of K, B, H, W"))?;
            let count = positive(count)
                .filter(|c| *c <= 4096)
                .ok_or_else(|| wrong("expected a number of parts"))?;
            if place >= 4 || seen & (1 << at) != 0 {
                return Err(wrong("a dimension stands twice"));
            }
            seen |= 1 << at;
            part[at] = count as u16;
            order[place] = at;
        }
        if seen != 0b1111 {
            return Err(wrong("expected the parts along K, B, H and W"));
        }
        (leaf.part, leaf.order) = (Some(part), Some(order));
    }
    Ok((depth, Tree::Leaf(leaf)))
}

fn from_text(text: &str) -> Result<Tree, Unreadable> {
    let mut open: Vec<Tree> = Vec::new();
    let close = |open: &mut Vec<Tree>, depth: usize| {
        while open.len() > depth.max(1) {
            let (Some(child), Some(Tree::Cut(parent))) = (open.pop(), open.last_mut()) else {
                return Err(Unreadable("a layer has children".to_owned()));
            };
            parent.children.push(child);
        }
        Ok(())
    };
    for (number, text) in text
        .lines()
        .enumerate()
        .filter(|(_, text)| !text.trim().is_empty())
    {
        let (depth, node) = line(number + 1, text)?;
        if depth > open.len() || (depth == 0) != open.is_empty() {
            return Err(Unreadable(format!(
                "line {}: {depth} tabs, which no line before leads to",
                number + 1
            )));
        }
        close(&mut open, depth)?;
        open.push(node);
    }
    close(&mut open, 0)?;
    open.pop()
        .ok_or_else(|| Unreadable("no tree: the file is empty".to_owned()))
}
