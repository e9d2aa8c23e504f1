//! The top level of a schedule: what stands where.

use crate::json::{FaultKind, Reader, Result};
use crate::schedule::{At, DramPort, TopPlaces, Unknown};

/// How the lists are cut into pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cuts {
    /// By counting braces.
    Guessed,
    /// By reading everything.
    Exact,
}

/// Bytes of a piece of work, about.
const PIECE_BYTES: usize = 1 << 20;

/// A core's list.
#[derive(Debug)]
pub(super) struct CoreOutline {
    /// Its key.
    pub(super) key: u32,
    /// Offset of its list.
    pub(super) at: usize,
    /// Runs of workloads, as offsets of the first byte and behind the last.
    runs: Vec<(usize, usize)>,
}

/// A piece of work for one thread.
#[derive(Debug)]
pub(super) struct Piece {
    /// Index of the core; `None` for DRAM.
    pub(super) core: Option<usize>,
    /// DRAM group, where there are groups.
    pub(super) group: Option<u32>,
    /// First byte and the byte behind the last.
    pub(super) span: (usize, usize),
}

/// The top level.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) cores: Vec<CoreOutline>,
    /// DRAM sections: group and span.
    dram: Vec<(Option<u32>, (usize, usize))>,
    /// Keys by which dialects differ.
    pub(super) has_dram_groups: bool,
    pub(super) has_metadata: bool,
    pub(super) has_plain_dram: bool,
    pub(super) buffer_size: Option<u64>,
    pub(super) places: TopPlaces,
    pub(super) top_batch_cut: u32,
    pub(super) columns: u32,
    pub(super) rows: u32,
    pub(super) ports: Vec<DramPort>,
    pub(super) unknown: Vec<Unknown>,
}

/// Keys of the top level or of `metadata`.
#[derive(Default)]
struct Globals {
    top_batch_cut: Option<u32>,
    columns: Option<u32>,
    rows: Option<u32>,
    places: TopPlaces,
}

impl Globals {
    fn take(&mut self, reader: &mut Reader<'_>, key: &str) -> Result<bool> {
        reader.peek();
        let at = At(reader.offset() as u32);
        match key {
            "top_batch_cut" => self.places.top_batch_cut = at,
            "xlen" => self.places.columns = at,
            "ylen" => self.places.rows = at,
            _ => return Ok(false),
        }
        match key {
            "top_batch_cut" => reader.put(&mut self.top_batch_cut, Reader::u32)?,
            "xlen" => reader.put(&mut self.columns, Reader::u32)?,
            _ => reader.put(&mut self.rows, Reader::u32)?,
        }
        Ok(true)
    }
}

impl Outline {
    /// Reads the top level of a text.
    pub(super) fn read(text: &str, cuts: Cuts) -> Result<Outline> {
        let mut reader = Reader::new(text, 0);
        let mut outline = Outline::default();
        let mut globals = Globals::default();
        let mut top = reader.object()?;
        while let Some(key) = reader.key(&mut top)? {
            reader.peek();
            let at = reader.offset();
            match &*key {
                "-1" => {
                    Outline::no_second(&reader, outline.has_plain_dram)?;
                    outline.has_plain_dram = true;
                    outline.dram.push((None, span(&mut reader, cuts)?));
                }
                "DRAM" => {
                    Outline::no_second(&reader, outline.has_dram_groups)?;
                    outline.has_dram_groups = true;
                    outline.groups(&mut reader, cuts)?;
                }
                "metadata" => {
                    Outline::no_second(&reader, outline.has_metadata)?;
                    outline.has_metadata = true;
                    outline.metadata(&mut reader, &mut globals)?;
                }
                "buffersize" => {
                    globals.places.buffer_size = At(at as u32);
                    reader.put(&mut outline.buffer_size, Reader::size)?;
                }
                digits if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                    let Ok(key) = digits.parse::<u32>() else {
                        return reader.fault_at(
                            at,
                            FaultKind::Value,
                            "expected a core number of at most 4294967295 as key",
                        );
                    };
                    if let Some(known) = outline.cores.iter().find(|core| core.key == key) {
                        let message = format!(
                            "expected each core once, found core {key} a second time; the first is at byte {}",
                            known.at
                        );
                        return reader.fault_at(at, FaultKind::Duplicate, message);
                    }
                    let runs = runs(&mut reader, cuts)?;
                    outline.cores.push(CoreOutline { key, at, runs });
                }
                key if globals.take(&mut reader, key)? => {}
                key => {
                    reader.skip()?;
                    let value = reader.slice(at, reader.offset()).into();
                    outline.unknown.push(Unknown {
                        owner: At(top.at as u32),
                        nested: None,
                        key: key.into(),
                        value,
                    });
                }
            }
        }
        if reader.peek().is_some() {
            return reader.syntax("the end of the file");
        }
        if outline.cores.is_empty() && !outline.has_plain_dram && !outline.has_dram_groups {
            let message = "expected a schedule with the keys \"-1\" or \"DRAM\" and one list for each core, found neither";
            return reader.fault_at(top.at, FaultKind::Missing, message);
        }
        let missing = |key: &str| {
            let message = format!("expected the key `{key}`, found none");
            Reader::new(text, 0).fault_at(top.at, FaultKind::Missing, message)
        };
        if !outline.has_plain_dram && !outline.has_dram_groups {
            return missing("-1");
        }
        match globals {
            Globals {
                top_batch_cut: Some(cut),
                columns: Some(columns),
                rows: Some(rows),
                places,
            } => {
                outline.places = places;
                (outline.top_batch_cut, outline.columns, outline.rows) = (cut, columns, rows);
                Ok(outline)
            }
            Globals {
                top_batch_cut: None,
                ..
            } => missing("top_batch_cut"),
            Globals { columns: None, .. } => missing("xlen"),
            Globals { .. } => missing("ylen"),
        }
    }

    fn no_second(reader: &Reader<'_>, there: bool) -> Result<()> {
        if there {
            reader.fault_at(
                reader.offset(),
                FaultKind::Duplicate,
                "expected each key once, found it a second time",
            )
        } else {
            Ok(())
        }
    }

    /// `DRAM` of IR-tiling: groups, some of them null.
    fn groups(&mut self, reader: &mut Reader<'_>, cuts: Cuts) -> Result<()> {
        let mut object = reader.object()?;
        while let Some(key) = reader.key(&mut object)? {
            let group = group_number(reader, &key)?;
            if self.dram.iter().any(|(known, _)| *known == Some(group)) {
                Outline::no_second(reader, true)?;
            }
            if !reader.null()? {
                self.dram.push((Some(group), span(reader, cuts)?));
            }
        }
        Ok(())
    }

    /// `metadata` of IR-tiling.
    fn metadata(&mut self, reader: &mut Reader<'_>, globals: &mut Globals) -> Result<()> {
        let mut object = reader.object()?;
        while let Some(key) = reader.key(&mut object)? {
            if &*key == "DRAM" {
                let mut groups = reader.object()?;
                while let Some(key) = reader.key(&mut groups)? {
                    let group = group_number(reader, &key)?;
                    let (mut x, mut y) = (None, None);
                    let mut port = reader.object()?;
                    while let Some(key) = reader.key(&mut port)? {
                        match &*key {
                            "x" => reader.put(&mut x, Reader::u32)?,
                            "y" => reader.put(&mut y, Reader::u32)?,
                            _ => reader.skip()?,
                        }
                    }
                    let (Some(x), Some(y)) = (x, y) else {
                        return reader.fault_at(
                            port.at,
                            FaultKind::Missing,
                            "expected the keys `x` and `y` of a DRAM group",
                        );
                    };
                    self.ports.push(DramPort { group, x, y });
                }
            } else if !globals.take(reader, &key)? {
                reader.peek();
                let at = reader.offset();
                reader.skip()?;
                let value = reader.slice(at, reader.offset()).into();
                self.unknown.push(Unknown {
                    owner: At(object.at as u32),
                    nested: None,
                    key: key.into(),
                    value,
                });
            }
        }
        Ok(())
    }

    /// The pieces of work, in the order of the file's lists.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let dram = self.dram.iter().map(|&(group, span)| Piece {
            core: None,
            group,
            span,
        });
        let cores = self.cores.iter().enumerate().flat_map(|(index, core)| {
            core.runs.iter().map(move |&span| Piece {
                core: Some(index),
                group: None,
                span,
            })
        });
        dram.chain(cores).collect()
    }

    /// Offset of the first workload, if there is any.
    pub(super) fn first_workload(&self) -> Option<usize> {
        self.cores
            .iter()
            .find_map(|core| core.runs.first())
            .map(|run| run.0)
    }
}

/// DRAM groups are bits of 32.
pub(super) fn group_number(reader: &mut Reader<'_>, key: &str) -> Result<u32> {
    if let Ok(group @ 0..32) = key.parse() {
        Ok(group)
    } else {
        reader.peek();
        reader.fault_at(
            reader.offset(),
            FaultKind::Value,
            format!("expected a DRAM group from 0 to 31 as key, found \"{key}\""),
        )
    }
}

/// Passes a value and gives its span.
fn span(reader: &mut Reader<'_>, cuts: Cuts) -> Result<(usize, usize)> {
    if reader.peek() != Some(b'{') {
        return reader.expected("an object with the keys `in` and `out`");
    }
    let start = reader.offset();
    if cuts == Cuts::Exact {
        reader.skip()?;
    } else {
        reader.pass_braces()?;
    }
    Ok((start, reader.offset()))
}

/// Passes a list of objects and cuts it into runs of whole objects.
fn runs(reader: &mut Reader<'_>, cuts: Cuts) -> Result<Vec<(usize, usize)>> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    if reader.peek() != Some(b'[') {
        return reader.expected("a list of workloads");
    }
    let mut list = reader.list()?;
    while reader.item(&mut list)? {
        if reader.peek() != Some(b'{') {
            return reader.expected("a workload");
        }
        let start = reader.offset();
        if cuts == Cuts::Exact {
            reader.skip()?;
        } else {
            reader.pass_braces()?;
        }
        let end = reader.offset();
        match runs.last_mut() {
            Some(run) if end - run.0 <= PIECE_BYTES => run.1 = end,
            _ => runs.push((start, end)),
        }
    }
    Ok(runs)
}
