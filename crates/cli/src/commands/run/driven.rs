//! Whole files under a contract of several sequences with outputs, or of complex ones: a row of a file for each write, a row
//! for each time that an output is read. Which row comes next, the contract decides.

use super::inputs::Given;
use crate::failure::Failure;
use crate::files::{Growing, Names};
use chipless::npy;
use chipless::spu::fqir::Runner;
use chipless::spu::iospec::{Document, RuleSet, Session, Violation};
use chipless_model::{ElementType, Program};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The rows of an input.
struct Rows<'g> {
    /// Which of the document's inputs.
    input: usize,
    element: ElementType,
    latched: bool,
    count: u64,
    data: Cow<'g, [u8]>,
}

/// A contract and the files for it.
pub(super) struct Driven<'d, 'g> {
    name: String,
    document: &'d Document,
    rows: Vec<Rows<'g>>,
}

/// An output as it is written.
struct Written {
    /// Which of the interface's outputs.
    port: usize,
    file: Option<Growing>,
    /// Rows, and the bytes of the last one.
    count: u64,
    last: Vec<u8>,
}

/// What came of an output: its port, its file, its rows, the bytes of the last.
pub(super) type Outcome = (usize, Option<PathBuf>, u64, Vec<u8>);

impl<'d, 'g> Driven<'d, 'g> {
    /// Takes the files for the inputs of a document: vectors, or a row for each write. Latched inputs may lack.
    pub(super) fn new(
        name: &Path,
        document: &'d Document,
        program: &Program<'_>,
        given: &'g [Given],
    ) -> Result<Driven<'d, 'g>, Failure> {
        let mut rows = Vec::new();
        for (input, vector) in document.inputs.iter().enumerate() {
            let latched = document.is_latched(&vector.key);
            let found = given
                .iter()
                .find(|g| program.interface.inputs[g.port].name == vector.varname);
            let Some(Given { port, path, bytes }) = found else {
                if latched {
                    continue;
                }
                let text = format_args!(
                    "expected \"{0}\", which a sequence takes (--input {0}=FILE.npy)",
                    vector.varname
                );
                return Err(Failure::wrong(name.display(), text));
            };
            let declared = &program.interface.inputs[*port];
            let refused = |error: String| Failure::unreadable(path, error);
            let shape = npy::numbers(bytes).map_err(refused)?.shape;
            let count = match shape.split_first() {
                Some((count, row)) if row == &*declared.shape => *count,
                _ => 1,
            };
            let expected = if count == 1 && shape.len() == declared.shape.len() {
                &declared.shape
            } else {
                &shape
            };
            let data = npy::read(bytes, declared.element, expected).map_err(refused)?;
            rows.push(Rows {
                input,
                element: declared.element,
                latched,
                count,
                data,
            });
        }
        Ok(Driven {
            name: name.display().to_string(),
            document,
            rows,
        })
    }

    /// Runs to the end of the rows. First without numbers: a contract that does not come out even is refused before anything is computed.
    pub(super) fn run(
        &self,
        program: &Program<'_>,
        runner: Runner<'_>,
        directory: Option<&Path>,
    ) -> Result<(u64, Vec<Outcome>), Failure> {
        let document = self.document;
        let mut counts = vec![0u64; document.outputs.len()];
        let count = |name: String, _: &[i64]| {
            counts
                .iter_mut()
                .zip(&document.outputs)
                .filter(|(_, v)| v.varname == name)
                .for_each(|(count, _)| *count += 1);
            Ok(())
        };
        self.drive(&mut Session::new(document, RuleSet::Spec), false, count)?;
        let mut names = Names::default();
        let mut outputs = Vec::new();
        for (vector, count) in document.outputs.iter().zip(&counts) {
            let Some(port) = program
                .interface
                .outputs
                .iter()
                .position(|p| p.name == vector.varname)
            else {
                continue;
            };
            let declared = &program.interface.outputs[port];
            let file = match directory {
                Some(directory) => {
                    let path = names.npy(directory, &declared.name);
                    let shape: Vec<u64> = std::iter::once(*count)
                        .chain(declared.shape.iter().copied())
                        .collect();
                    let header = npy::write_header(declared.element, &shape);
                    let mut file = Growing::create(path)?;
                    file.put(&header)?;
                    Some(file)
                }
                None => None,
            };
            let last = vec![0; declared.bytes().unwrap_or_default() as usize];
            outputs.push(Written {
                port,
                file,
                count: *count,
                last,
            });
        }
        let mut session = Session::new(document, RuleSet::Spec)
            .with_program(runner)
            .map_err(|violation| self.says(&violation))?;
        let put = |name: String, values: &[i64]| {
            let Some(output) = outputs
                .iter_mut()
                .find(|o| program.interface.outputs[o.port].name == name)
            else {
                return Ok(());
            };
            output.last.clear();
            let element = program.interface.outputs[output.port].element;
            for value in values {
                append(element, *value, &mut output.last);
            }
            match &mut output.file {
                Some(file) => file.put(&output.last),
                None => Ok(()),
            }
        };
        let writes = self.drive(&mut session, true, put)?;
        let close = |Written {
                         port,
                         file,
                         count,
                         last,
                     }: Written| {
            let path = file.map(Growing::finish).transpose()?;
            Ok((port, path, count, last))
        };
        Ok((
            writes,
            outputs
                .into_iter()
                .map(close)
                .collect::<Result<_, Failure>>()?,
        ))
    }

    /// Reads what is ready; else writes the input of which the smallest part is used, latched ones first. Returns how many were written.
    fn drive(
        &self,
        session: &mut Session<'_>,
        with_values: bool,
        mut read: impl FnMut(String, &[i64]) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let mut used = vec![0u64; self.rows.len()];
        loop {
            let (writable, ready) = session.next();
            if !ready.is_empty() {
                let reading = session.read().map_err(|violation| self.says(&violation))?;
                if with_values {
                    reading
                        .values
                        .into_iter()
                        .try_for_each(|(name, values)| read(name, &values))?;
                } else {
                    reading
                        .outputs
                        .into_iter()
                        .try_for_each(|name| read(name, &[]))?;
                }
                continue;
            }
            let may = |number: &usize| {
                let Rows { input, count, .. } = self.rows[*number];
                used[*number] < count
                    && writable
                        .iter()
                        .any(|v| v.key == self.document.inputs[input].key)
            };
            let part = |number: usize| {
                u128::from(used[number]) * (1 << 64) / u128::from(self.rows[number].count.max(1))
            };
            let next = (0..self.rows.len())
                .filter(may)
                .min_by_key(|n| (part(*n), !self.rows[*n].latched));
            let Some(next) = next else {
                let left = |number: &usize| used[*number] < self.rows[*number].count;
                let Some(over) = (0..used.len()).find(left) else {
                    return Ok(used.iter().sum());
                };
                let names: Vec<String> = writable
                    .iter()
                    .filter(|v| !self.document.is_latched(&v.key))
                    .map(|v| format!("`{}`", v.varname))
                    .collect();
                let (vector, count) = (
                    &self.document.inputs[self.rows[over].input].varname,
                    self.rows[over].count,
                );
                return Err(Failure::wrong(
                    &self.name,
                    format_args!(
                        "kSpuSequenceError: row {} of {count} of `{vector}` cannot be written: it is the turn of {}, of which every row is written; give more rows of that, or fewer of `{vector}`",
                        used[over] + 1,
                        names.join(" or "),
                    ),
                ));
            };
            let rows = &self.rows[next];
            let name = self.document.inputs[rows.input].key.clone();
            session
                .write(&[(name, with_values.then(|| rows.row(used[next])))])
                .map_err(|violation| self.says(&violation))?;
            used[next] += 1;
        }
    }

    fn says(&self, violation: &Violation) -> Failure {
        Failure::wrong(&self.name, violation)
    }
}

impl Rows<'_> {
    fn row(&self, number: u64) -> Vec<i64> {
        let size = self.data.len() / self.count.max(1) as usize;
        let bytes = &self.data[number as usize * size..][..size];
        match self.element {
            ElementType::Int8 => bytes.iter().map(|b| i64::from(*b as i8)).collect(),
            ElementType::Int16 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| i64::from(i16::from_le_bytes(*b)))
                .collect(),
            ElementType::Int32 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| i64::from(i32::from_le_bytes(*b)))
                .collect(),
            _ => bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| i64::from_le_bytes(*b))
                .collect(),
        }
    }
}

/// A number that fits its type, since the program's own output had it.
fn append(element: ElementType, value: i64, bytes: &mut Vec<u8>) {
    let size = (element.bits() / 8) as usize;
    bytes.extend_from_slice(&value.to_le_bytes()[..size.min(8)]);
}
