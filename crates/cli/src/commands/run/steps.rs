//! Many steps in one run: inputs with a dimension of time in front, a row for each step. Rows are read and written as they
//! come, so a run takes as much memory for a million steps as for one.

use super::contract::Contract;
use super::inputs::Given;
use crate::failure::Failure;
use crate::files::{Growing, Names};
use chipless::npy;
use chipless_model::Program;
use chipless_sim::{Session, Stop};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Inputs that have a row for each step.
pub(super) struct Steps<'g> {
    /// How many.
    pub(super) count: u64,
    inputs: Vec<(usize, Cow<'g, [u8]>)>,
}

impl<'g> Steps<'g> {
    /// The inputs with a dimension of time, if there are any. Those of other targets never have one.
    pub(super) fn of(
        program: &Program<'_>,
        given: &'g [Given],
    ) -> Result<Option<Steps<'g>>, Failure> {
        if program.target != "spu" {
            return Ok(None);
        }
        let mut found: Option<(u64, &str)> = None;
        let mut inputs = Vec::new();
        for Given { port, path, bytes } in given {
            let refused = |error: String| Failure::unreadable(path, error);
            let declared = &program.interface.inputs[*port];
            let shape = npy::numbers(bytes).map_err(refused)?.shape;
            let Some((count, _)) = shape
                .split_first()
                .filter(|(_, row)| **row == *declared.shape)
            else {
                continue;
            };
            if let Some((other, first)) = found.filter(|(other, _)| other != count) {
                return Err(Failure::unreadable(
                    path,
                    format_args!("expected {other} steps as in {first}, found {count}"),
                ));
            }
            found = Some((*count, path));
            let data = npy::read(bytes, declared.element, &shape).map_err(refused)?;
            inputs.push((*port, data));
        }
        Ok(found.map(|(count, _)| Steps { count, inputs }))
    }

    /// Whether an input has rows.
    pub(super) fn has(&self, port: usize) -> bool {
        self.inputs.iter().any(|(p, _)| *p == port)
    }

    /// Runs every step. The bytes of the last one stay.
    pub(super) fn run(
        &self,
        program_path: &str,
        session: &mut Session<'_, '_>,
        contract: Option<&Contract>,
        directory: Option<&Path>,
    ) -> Result<Vec<PathBuf>, Failure> {
        let program = session.program();
        let mut outputs = Vec::new();
        let mut names = Names::default();
        for port in &program.interface.outputs {
            let Some(directory) = directory else { continue };
            let path = names.npy(directory, &port.name);
            let shape: Vec<u64> = std::iter::once(self.count)
                .chain(port.shape.iter().copied())
                .collect();
            let header = npy::write_header(port.element, &shape);
            let mut file = Growing::create(path)?;
            file.put(&header)?;
            outputs.push(file);
        }
        for step in 0..self.count as usize {
            for (port, rows) in &self.inputs {
                let declared = &program.interface.inputs[*port];
                let size = declared.bytes().unwrap_or_default() as usize;
                let row = &rows[step * size..(step + 1) * size];
                if let Some(contract) = contract {
                    contract.in_range(declared, row)?;
                }
                session.storage_mut().bytes_mut(declared.buffer)[..size].copy_from_slice(row);
            }
            session
                .run()
                .map_err(|stop| stopped(program_path, program, step, &stop))?;
            for (file, port) in outputs.iter_mut().zip(&program.interface.outputs) {
                let size = port.bytes().unwrap_or_default() as usize;
                file.put(&session.storage().bytes(port.buffer)[..size])?;
            }
        }
        outputs.into_iter().map(Growing::finish).collect()
    }
}

fn stopped(path: &str, program: &Program<'_>, step: usize, stop: &Stop) -> Failure {
    let mut failure = chipless::stopped(program, stop).about(path);
    failure.message = format!("step {step}: {}", failure.message);
    failure.into()
}
