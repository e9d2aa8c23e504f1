//! The sequence diagram of a contract: what goes between the host and the cores, sequence by sequence, from top to bottom.

use super::document::{Document, Member, Sequence, SequenceKind, Vector};
use chipless_model::escape;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Sequences and steps of one that are drawn; a file may have any number.
const SEQUENCES: usize = 100;
const STEPS: usize = 100;

/// Pixels. Two lifelines fit into the width of a phone without being made smaller.
const MARGIN: f64 = 58.0;
const BETWEEN: f64 = 240.0;
const STEP: f64 = 44.0;
const TITLE: f64 = 34.0;
/// Characters of a label between two lifelines.
const LABEL: usize = 34;

/// A line of the diagram.
enum Step<'d> {
    /// From the host to a core.
    Write(Transaction<'d>),
    /// Work of a core.
    Fire { core: Option<i64> },
    /// From a core to the host.
    Read(Transaction<'d>),
    /// Steps that are not drawn.
    More(usize),
}

/// A vector on its way.
struct Transaction<'d> {
    name: &'d str,
    core: Option<i64>,
    /// How often for one firing, or after how many firings.
    times: f64,
    /// Elements, words, address.
    details: String,
}

impl<'d> Transaction<'d> {
    /// `None` for a member that the document does not have: reading has found that.
    fn of(vectors: &'d [Vector], member: &Member, core: Option<i64>) -> Option<Transaction<'d>> {
        let vector = vectors.iter().find(|vector| vector.key == member.key)?;
        let mut details = format!("{} × int{}", vector.length, vector.precision);
        let facts = [
            (" in ", vector.words, " words"),
            (", pc ", vector.pc, ""),
            (", mailbox ", vector.mailbox_id, ""),
        ];
        for (before, value, after) in facts {
            if let Some(value) = value {
                let after = if value == 1 {
                    after.trim_end_matches('s')
                } else {
                    after
                };
                let _ = write!(details, "{before}{value}{after}");
            }
        }
        Some(Transaction {
            name: &vector.varname,
            core: vector.core_id.or(core),
            times: member.count,
            details,
        })
    }
}

/// `core 0`; before compilation nobody knows which one.
fn core_name(core: Option<i64>) -> String {
    core.map_or_else(|| "SPU".to_owned(), |core| format!("core {core}"))
}

/// `sequence 0: main_seq`.
fn title(document: &Document, at: usize) -> String {
    let sequence = &document.sequences[at];
    let kind = match sequence.kind {
        SequenceKind::Simple => format!("sequence {at}"),
        SequenceKind::Complex => "complex sequence".to_owned(),
    };
    let latched = if sequence.is_latched() {
        ", latched"
    } else {
        ""
    };
    format!("{kind}: {}{latched}", sequence.name)
}

fn steps<'d>(document: &'d Document, sequence: &Sequence) -> Vec<Step<'d>> {
    let inputs = sequence.inputs.iter().take(STEPS);
    let mut steps: Vec<Step<'d>> = inputs
        .filter_map(|member| Transaction::of(&document.inputs, member, None))
        .map(Step::Write)
        .collect();
    let core = steps.iter().rev().find_map(|step| match step {
        Step::Write(write) => write.core,
        _ => None,
    });
    if sequence.inputs.len() > STEPS {
        steps.push(Step::More(sequence.inputs.len() - STEPS));
    }
    if !sequence.is_latched() {
        steps.push(Step::Fire { core });
    }
    let outputs = sequence.outputs.iter().take(STEPS);
    steps.extend(
        outputs
            .filter_map(|member| Transaction::of(&document.outputs, member, core))
            .map(Step::Read),
    );
    if sequence.outputs.len() > STEPS {
        steps.push(Step::More(sequence.outputs.len() - STEPS));
    }
    steps
}

impl Step<'_> {
    /// What stands above the arrow, and below it.
    fn labels(&self) -> (String, String) {
        let is_one = |times: f64| (times - 1.0).abs() < f64::EPSILON;
        match self {
            Step::Write(one) if is_one(one.times) => {
                (format!("write {}", one.name), one.details.clone())
            }
            Step::Write(one) => (
                format!("write {}, {} times", one.name, one.times),
                one.details.clone(),
            ),
            Step::Fire { .. } => ("fires".to_owned(), String::new()),
            Step::Read(one) if is_one(one.times) => {
                (format!("read {}", one.name), one.details.clone())
            }
            Step::Read(one) => (
                format!("read {} after {} firings", one.name, one.times),
                one.details.clone(),
            ),
            Step::More(number) => (format!("and {number} more"), String::new()),
        }
    }
}

/// Sequences that are not drawn.
fn more_sequences(document: &Document) -> Option<String> {
    let rest = document.sequences.len().saturating_sub(SEQUENCES);
    (rest > 0).then(|| format!("and {rest} more sequences"))
}

/// Inputs that no sequence names: they may be written at any time.
fn at_any_time(document: &Document) -> Option<String> {
    let named: BTreeSet<&str> = document
        .sequences
        .iter()
        .flat_map(|sequence| &sequence.inputs)
        .map(|member| &*member.key)
        .collect();
    let free = document
        .inputs
        .iter()
        .filter(|vector| !named.contains(&*vector.key));
    let names: Vec<&str> = free.take(STEPS).map(|vector| &*vector.varname).collect();
    (!names.is_empty()).then(|| format!("at any time: write {}", names.join(", ")))
}

/// As lines of text.
pub fn text(document: &Document) -> String {
    let mut text = String::new();
    for (at, sequence) in document.sequences.iter().enumerate().take(SEQUENCES) {
        let steps = steps(document, sequence);
        let ways: Vec<String> = steps
            .iter()
            .map(|step| match step {
                Step::Write(one) => format!("host → {}", core_name(one.core)),
                Step::Fire { core } => core_name(*core),
                Step::Read(one) => format!("{} → host", core_name(one.core)),
                Step::More(_) => String::new(),
            })
            .collect();
        let labels: Vec<(String, String)> = steps.iter().map(Step::labels).collect();
        let width = |texts: &mut dyn Iterator<Item = &String>| {
            texts
                .map(|text| text.chars().count())
                .max()
                .unwrap_or(0)
                .min(200)
        };
        let (way_width, label_width) = (
            width(&mut ways.iter()),
            width(&mut labels.iter().map(|(above, _)| above)),
        );
        let _ = writeln!(text, "{}", title(document, at));
        for (way, (above, below)) in ways.iter().zip(&labels) {
            let line = format!("  {way:way_width$}  {above:label_width$}  {below}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    for line in [more_sequences(document), at_any_time(document)]
        .into_iter()
        .flatten()
    {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// A text of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// As a picture.
pub fn svg(document: &Document, heading: &str) -> String {
    let drawn: Vec<(String, Vec<Step<'_>>)> = document
        .sequences
        .iter()
        .enumerate()
        .take(SEQUENCES)
        .map(|(at, sequence)| (title(document, at), steps(document, sequence)))
        .collect();
    let of = |step: &Step<'_>| match step {
        Step::Write(one) | Step::Read(one) => Some(one.core),
        Step::Fire { core } => Some(*core),
        Step::More(_) => None,
    };
    let mut cores: BTreeSet<Option<i64>> = drawn
        .iter()
        .flat_map(|(_, steps)| steps)
        .filter_map(of)
        .collect();
    if cores.is_empty() {
        cores.insert(None);
    }
    let cores: Vec<Option<i64>> = cores.into_iter().collect();
    let lifeline = |core: &Option<i64>| {
        let place = cores.iter().position(|other| other == core).unwrap_or(0);
        MARGIN + BETWEEN * (place + 1) as f64
    };
    let notes: Vec<String> = [more_sequences(document), at_any_time(document)]
        .into_iter()
        .flatten()
        .collect();
    let steps: usize = drawn.iter().map(|(_, steps)| steps.len()).sum();
    let width = 2.0 * MARGIN + BETWEEN * cores.len() as f64;
    let bottom = 40.0 + TITLE * drawn.len() as f64 + STEP * steps as f64 + 10.0;
    let height = bottom + 10.0 + 20.0 * notes.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escape(heading)
    );
    let _ = writeln!(
        svg,
        "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"context-stroke\"/></marker></defs>"
    );
    let lines = std::iter::once((MARGIN, "host".to_owned()))
        .chain(cores.iter().map(|core| (lifeline(core), core_name(*core))));
    for (x, name) in lines {
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"30\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#767676\" stroke-dasharray=\"4 3\"/><rect x=\"{}\" y=\"6\" width=\"80\" height=\"24\" rx=\"4\" fill=\"#e8eef4\" stroke=\"#4d4d4d\"/><text x=\"{x}\" y=\"23\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
            x - 40.0,
            escape(&cut(&name, 11))
        );
    }
    let mut y = 40.0;
    for (title, steps) in &drawn {
        let frame = TITLE + STEP * steps.len() as f64 - 6.0;
        let _ = writeln!(
            svg,
            "<rect x=\"4\" y=\"{y}\" width=\"{}\" height=\"{frame}\" rx=\"4\" fill=\"none\" stroke=\"#9a9a9a\"/><text x=\"12\" y=\"{}\" font-weight=\"bold\" paint-order=\"stroke\" stroke=\"white\" stroke-width=\"5\">{}<title>{}</title></text>",
            width - 8.0,
            y + 18.0,
            escape(&cut(title, (width / 8.0) as usize)),
            escape(title)
        );
        y += TITLE;
        for step in steps {
            draw(&mut svg, step, y, &lifeline);
            y += STEP;
        }
    }
    for (line, note) in notes.iter().enumerate() {
        let at = bottom + 16.0 + 20.0 * line as f64;
        let text = escape(&cut(note, (width / 7.0) as usize));
        let _ = writeln!(svg, "<text x=\"12\" y=\"{at}\">{text}</text>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// One step, from `y` down.
fn draw(svg: &mut String, step: &Step<'_>, y: f64, lifeline: &impl Fn(&Option<i64>) -> f64) {
    let (above, below) = step.labels();
    let whole = escape(format!("{above} {below}").trim_end());
    match step {
        Step::Write(one) | Step::Read(one) => {
            let (core, is_write) = (lifeline(&one.core), matches!(step, Step::Write(_)));
            let (from, to, colour, dash) = if is_write {
                (MARGIN, core, "#00548a", "")
            } else {
                (core, MARGIN, "#9c3d00", " stroke-dasharray=\"7 3\"")
            };
            // Between the host and the first core, whichever core it is.
            let middle = MARGIN + BETWEEN / 2.0;
            let _ = writeln!(
                svg,
                "<g><title>{whole}</title><text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"{colour}\">{}</text><line x1=\"{from}\" y1=\"{2:.1}\" x2=\"{to}\" y2=\"{2:.1}\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash} marker-end=\"url(#tip)\"/><text x=\"{middle}\" y=\"{3:.1}\" text-anchor=\"middle\" font-size=\"12\" fill=\"#4d4d4d\">{4}</text></g>",
                y + 12.0,
                escape(&cut(&above, LABEL)),
                y + 18.0,
                y + 32.0,
                escape(&cut(&below, LABEL + 4))
            );
        }
        Step::Fire { core } => {
            let x = lifeline(core);
            let _ = writeln!(
                svg,
                "<rect x=\"{}\" y=\"{}\" width=\"72\" height=\"26\" rx=\"4\" fill=\"#dff0e6\" stroke=\"#2c6e49\"/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{whole}</text>",
                x - 36.0,
                y + 4.0,
                y + 21.0
            );
        }
        Step::More(_) => {
            let x = MARGIN + BETWEEN / 2.0;
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{whole}</text>",
                y + 22.0
            );
        }
    }
}
