//! Places in text files: lines and columns, and the picture of a finding with the lines that it is about.

use crate::pointer::Pointers;
use crate::style::{Paint, clean};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use chipless_model::{Finding, Place, Severity, Text as Lines};
use std::ops::Range;

/// Bytes of lines that a picture shows; a place in longer ones is named and not shown.
const SHOWN: usize = 8 << 10;

/// Characters of a picture.
const WIDTH: usize = 140;

/// A text file.
#[derive(Clone, Debug)]
pub(crate) struct Text<'a> {
    lines: Lines<'a>,
    pointers: Pointers<'a>,
}

/// From one character to before another; lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: (usize, usize),
    pub(crate) end: (usize, usize),
}

impl<'a> Text<'a> {
    /// The bytes as text; `None` where they are none.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Text<'a>> {
        if bytes.is_empty() || bytes.iter().take(1024).any(|byte| *byte == 0) {
            return None;
        }
        std::str::from_utf8(bytes).ok().map(|text| Text {
            lines: Lines::new(text),
            pointers: Pointers::new(text),
        })
    }

    /// The bytes of a place; a place of no size is the word that begins there.
    pub(crate) fn range(&self, place: &Place) -> Option<Range<usize>> {
        let start = match (place.offset, place.position) {
            (Some(offset), _) => usize::try_from(offset).ok()?,
            (None, Some((line, column))) => {
                let line = self.lines.line((line as usize).checked_sub(1)?)?;
                let column = (column as usize).saturating_sub(1);
                line.start
                    + self.lines.as_str()[line.clone()]
                        .char_indices()
                        .nth(column)
                        .map_or(line.len(), |(at, _)| at)
            }
            (None, None) => [&*place.item, &*place.part]
                .into_iter()
                .find_map(|pointer| self.pointers.locate(pointer))?,
        };
        if start > self.lines.as_str().len() {
            return None;
        }
        let start = self.lines.boundary(start);
        let rest = &self.lines.as_str()[start..];
        let size = match usize::try_from(place.size).ok()? {
            0 => {
                let word = rest
                    .find(|c: char| !(c.is_alphanumeric() || "_.-".contains(c)))
                    .unwrap_or(rest.len());
                if word > 0 {
                    word
                } else {
                    rest.chars()
                        .next()
                        .filter(|c| *c != '\n')
                        .map_or(0, char::len_utf8)
                }
            }
            size => size.min(rest.len()),
        };
        Some(start..self.lines.boundary(start + size))
    }

    /// Lines and columns of a place.
    pub(crate) fn region(&self, place: &Place) -> Option<Region> {
        let Range { start, end } = self.range(place)?;
        Some(Region {
            start: self.lines.position(start),
            end: self.lines.position(end),
        })
    }

    /// The lines around a range, from the first byte of the first; `None` where they are too long to be shown.
    fn window(&self, range: &Range<usize>) -> Option<(usize, Range<usize>)> {
        let (first, last) = (
            self.lines.position(range.start).0 - 1,
            self.lines.position(range.end).0 - 1,
        );
        let window = self.lines.line(first)?.start..self.lines.line(last)?.end.max(range.end);
        (window.len() <= SHOWN).then_some((first + 1, window))
    }
}

/// The texts among a file and its packed parts.
#[derive(Debug)]
pub(crate) struct Texts<'a> {
    path: &'a str,
    file: Option<Text<'a>>,
    parts: Vec<(&'a str, Option<Text<'a>>)>,
}

/// A place with the lines to be shown.
#[derive(PartialEq)]
struct Excerpt<'t> {
    text: &'t str,
    path: String,
    /// Line of the first byte.
    line: usize,
    span: Range<usize>,
}

impl<'a> Texts<'a> {
    /// Of a file, by the name that it is shown under, and of its parts by their names.
    pub(crate) fn new(path: &'a str, bytes: &'a [u8], parts: &'a [(String, Vec<u8>)]) -> Texts<'a> {
        let parts = parts
            .iter()
            .map(|(name, bytes)| (&**name, Text::of(bytes)))
            .collect();
        Texts {
            path,
            file: Text::of(bytes),
            parts,
        }
    }

    /// The text that a place stands in, and its name.
    fn of(&self, place: &Place) -> Option<(&Text<'a>, String)> {
        match self.parts.iter().find(|(name, _)| *name == place.part) {
            Some((name, text)) => Some((text.as_ref()?, format!("{}:{name}", self.path))),
            None => Some((self.file.as_ref()?, self.path.to_owned())),
        }
    }

    /// Lines and columns of a place.
    pub(crate) fn region(&self, place: &Place) -> Option<Region> {
        self.of(place)?.0.region(place)
    }

    /// The bytes of a place in the file itself.
    pub(crate) fn file_range(&self, place: &Place) -> Option<Range<usize>> {
        if self.parts.iter().any(|(name, _)| *name == place.part) {
            return None;
        }
        self.file.as_ref()?.range(place)
    }

    /// The byte of a place, in the file or in its part.
    pub(crate) fn offset(&self, place: &Place) -> Option<u64> {
        Some(self.of(place)?.0.range(place)?.start as u64)
    }

    fn excerpt(&self, place: &Place) -> Option<Excerpt<'_>> {
        let (text, path) = self.of(place)?;
        let range = text.range(place)?;
        let (line, window) = text.window(&range)?;
        let span = range.start - window.start..range.end - window.start;
        Some(Excerpt {
            text: &text.lines.as_str()[window],
            path: clean(&path).into_owned(),
            line,
            span,
        })
    }

    /// What a place is called besides its lines.
    fn name(&self, place: &Place) -> String {
        let is_path = self.parts.iter().any(|(name, _)| *name == place.part);
        match (place.part.is_empty() || is_path, place.item.is_empty()) {
            (false, false) => format!("{}, {}", place.part, place.item),
            (false, true) => place.part.to_string(),
            (true, _) => place.item.clone(),
        }
    }

    /// A finding with the lines that it is about; `None` where its place is in no text or cannot be shown.
    pub(crate) fn picture(&self, finding: &Finding, help: &str, paint: Paint) -> Option<String> {
        let level = match finding.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
            Severity::Note => Level::NOTE,
        };
        let message = clean(&finding.message);
        let label = clean(&self.name(&finding.place)).into_owned();
        // What is said of one place stands under one copy of its lines.
        let mut places = vec![(self.excerpt(&finding.place)?, vec![label])];
        let mut notes = Vec::new();
        for (place, role) in &finding.related {
            let excerpt = self.excerpt(place);
            let name = if excerpt.is_some() {
                self.name(place)
            } else {
                place.to_string()
            };
            // A role that begins with the name says it already.
            let label = if name.is_empty() || role.starts_with(&format!("{name} ")) {
                role.clone()
            } else {
                format!("{name}: {role}")
            };
            let label = clean(&label).into_owned();
            let Some(excerpt) = excerpt else {
                notes.push(label);
                continue;
            };
            match places.iter_mut().find(|(known, _)| *known == excerpt) {
                Some((_, labels)) => {
                    // The name alone says nothing that the sentence does not.
                    labels.retain(|known| !label.starts_with(&format!("{known} ")));
                    labels.push(label);
                }
                None => places.push((excerpt, vec![label])),
            }
        }
        let title = level.primary_title(message.as_ref()).id(finding.rule.code);
        let mut group = Group::with_title(title);
        for (number, (excerpt, labels)) in places.into_iter().enumerate() {
            let first = if number == 0 {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            let kinds = std::iter::once(first).chain(std::iter::repeat(AnnotationKind::Context));
            let span = excerpt.span;
            let annotations = labels.into_iter().zip(kinds).map(|(label, kind)| {
                kind.span(span.clone())
                    .label((!label.is_empty()).then_some(label))
            });
            let snippet = Snippet::source(excerpt.text.to_owned())
                .line_start(excerpt.line)
                .path(excerpt.path)
                .annotations(annotations);
            group = group.element(snippet);
        }
        for note in notes {
            group = group.element(Level::NOTE.message(note));
        }
        if !help.is_empty() {
            group = group.element(Level::HELP.message(clean(help).into_owned()));
        }
        let renderer = if paint.colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        Some(renderer.term_width(WIDTH).render(&[group]) + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chipless_model::Rule;

    const FILE: &str = "inputs:\n  - name: größe\n    depth: 9\n  - {name: b}\n";

    static DEPTH: Rule = Rule {
        code: "depth-beyond-tile",
        class: chipless_model::Class::Fault,
        evidence: chipless_model::Evidence::Format,
        severity: Severity::Error,
        summary: "a buffer is deeper than its tile",
        explanation: "",
        remedy: "make it smaller",
        source: "",
    };

    fn texts(text: &str) -> Texts<'_> {
        Texts::new("a.yaml", text.as_bytes(), &[])
    }

    #[test]
    fn lines_of_a_text_are_shown() {
        let texts = texts(FILE);
        let at = FILE.find('9').expect("there") as u64;
        let finding = DEPTH
            .at(
                Place::bytes(at, 1).at("inputs[0]"),
                "expected a depth of at most 8, found 9",
            )
            .with(Place::line(2, 11), "the buffer")
            .with(Place::file().in_part("tile.toml"), "its tile has 8");
        insta::assert_snapshot!(texts.picture(&finding, "make it smaller", Paint::PLAIN).expect("a picture"), @r"
        error[depth-beyond-tile]: expected a depth of at most 8, found 9
         --> a.yaml:3:12
          |
        3 |     depth: 9
          |            ^ inputs[0]
          |
         ::: a.yaml:2:11
          |
        2 |   - name: größe
          |           ----- the buffer
          |
          = note: tile.toml: its tile has 8
          = help: make it smaller
        ");
    }

    #[test]
    fn a_place_that_is_named_twice_is_shown_once() {
        let texts = texts(FILE);
        let at = FILE.find('9').expect("there") as u64;
        let place = Place::bytes(at, 1).at("inputs[0]");
        let finding = DEPTH
            .at(place.clone(), "too deep")
            .with(Place::line(2, 11), "the buffer")
            .with(place.clone(), "inputs[0] has 9")
            .with(place, "the help changes it");
        insta::assert_snapshot!(texts.picture(&finding, "", Paint::PLAIN).expect("a picture"), @r"
        error[depth-beyond-tile]: too deep
         --> a.yaml:3:12
          |
        3 |     depth: 9
          |            ^
          |            |
          |            inputs[0] has 9
          |            inputs[0]: the help changes it
          |
         ::: a.yaml:2:11
          |
        2 |   - name: größe
          |           ----- the buffer
        ");
    }

    #[test]
    fn packed_parts_have_lines_of_their_own() {
        let parts = [("def.json".to_owned(), b"{\n  \"queues\": 99\n}".to_vec())];
        let texts = Texts::new("a.neff", &[0, 1], &parts);
        let finding = DEPTH.at(
            Place {
                position: Some((2, 13)),
                ..Place::file()
            }
            .in_part("def.json")
            .at("/queues"),
            "too many",
        );
        insta::assert_snapshot!(texts.picture(&finding, "", Paint::PLAIN).expect("a picture"), @r#"
        error[depth-beyond-tile]: too many
         --> a.neff:def.json:2:13
          |
        2 |   "queues": 99
          |             ^^ /queues
        "#);
    }

    #[test]
    fn places_have_lines_and_columns() {
        let text = Text::of(FILE.as_bytes()).expect("a text");
        let region = |place: Place| text.region(&place).map(|r| (r.start, r.end));
        assert_eq!(
            region(Place::line(2, 11)),
            Some(((2, 11), (2, 16))),
            "the word, in characters"
        );
        assert_eq!(region(Place::bytes(0, 9)), Some(((1, 1), (2, 2))));
        assert_eq!(
            region(Place::bytes(FILE.len() as u64, 4)),
            Some(((5, 1), (5, 1)))
        );
        assert_eq!(region(Place::bytes(FILE.len() as u64 + 1, 4)), None);
        assert_eq!(region(Place::line(99, 1)), None);
        assert_eq!(region(Place::file()), None);
        assert!(Text::of(b"\x7fELF\0").is_none() && Text::of(&[0xff, 0xfe]).is_none());
    }

    #[test]
    fn endless_lines_are_named_and_not_shown() {
        let long = format!("[{}]", "1,".repeat(1 << 20));
        let texts = texts(&long);
        let finding = DEPTH.at(Place::bytes(1 << 20, 1), "too deep");
        assert_eq!(texts.picture(&finding, "", Paint::PLAIN), None);
        assert_eq!(
            texts.region(&finding.place).map(|r| r.start),
            Some((1, (1 << 20) + 1))
        );
    }
}
