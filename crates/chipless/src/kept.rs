//! Files and programs that own what they were made of, for whoever keeps them longer than a function call: other languages, servers, sweeps.

use crate::failure::Failure;
use crate::file::{self, File, OpenDocument};
use crate::options::{Bytes, Options};
use crate::run::{self, Done, Give};
use crate::target::Lowered;
use crate::targets;
use chipless_model::{Finding, Program, Storage};
use chipless_report::summary::Run;
use chipless_sim::{Order, Session, Timeline, Verified};
use self_cell::self_cell;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What a file is made of.
struct Source {
    name: String,
    bytes: Bytes,
    options: Options,
}

self_cell!(
    struct Opened {
        owner: Source,
        #[covariant]
        dependent: File,
    }
);

self_cell!(
    struct Read {
        owner: Opened,
        #[covariant]
        dependent: OpenDocument,
    }
);

self_cell!(
    struct Made {
        owner: KeptDocument,
        #[covariant]
        dependent: Lowered,
    }
);

type Running<'p> = Session<'p, 'p>;

self_cell!(
    struct Going {
        owner: KeptProgram,
        #[not_covariant]
        dependent: Running,
    }
);

/// A document with the file that it was read from.
#[derive(Clone)]
pub struct KeptDocument(Arc<Read>);

impl fmt::Debug for KeptDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptDocument").field(&self.name()).finish()
    }
}

impl KeptDocument {
    /// Opens and reads a file: of the target of this name, or of the one that its bytes tell.
    ///
    /// # Errors
    /// As of [`open`](crate::open) and [`File::read`].
    pub fn open(
        name: String,
        bytes: Bytes,
        target: Option<&str>,
        options: Options,
    ) -> Result<KeptDocument, Failure> {
        let target = match target {
            Some(target) => Some(targets::known(target)?),
            None => None,
        };
        let source = Source {
            name,
            bytes,
            options,
        };
        let opened = Opened::try_new(source, |source| {
            let Source {
                name,
                bytes,
                options,
            } = source;
            match target {
                Some(target) => {
                    options.fit(target)?;
                    file::open_as(target, name, bytes, options)
                }
                None => file::open(name, bytes, options),
            }
        })?;
        let read = Read::try_new(opened, |opened| opened.borrow_dependent().read())?;
        Ok(KeptDocument(Arc::new(read)))
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        self.file().name()
    }

    /// What was asked for.
    pub fn options(&self) -> &Options {
        &self.0.borrow_owner().borrow_owner().options
    }

    /// The file.
    pub fn file(&self) -> &File<'_> {
        self.0.borrow_owner().borrow_dependent()
    }

    /// The document.
    pub fn document(&self) -> &OpenDocument<'_> {
        self.0.borrow_dependent()
    }

    /// Makes the program.
    ///
    /// # Errors
    /// As of [`OpenDocument::lower`].
    pub fn lower(&self) -> Result<KeptProgram, Failure> {
        let made = Made::try_new(self.clone(), |kept| kept.document().lower())
            .map_err(|failure| failure.about(self.name()))?;
        Ok(KeptProgram {
            made: Arc::new(made),
            findings: Arc::default(),
        })
    }
}

/// A program with the document that it was made from.
#[derive(Clone)]
pub struct KeptProgram {
    made: Arc<Made>,
    findings: Arc<OnceLock<Vec<Finding>>>,
}

impl fmt::Debug for KeptProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kept().name();
        f.debug_tuple("KeptProgram").field(&name).finish()
    }
}

impl KeptProgram {
    /// The document that it was made from.
    pub fn kept(&self) -> &KeptDocument {
        self.made.borrow_owner()
    }

    /// The program, and what should be known of its numbers.
    pub fn lowered(&self) -> &Lowered<'_> {
        self.made.borrow_dependent()
    }

    /// The program.
    pub fn program(&self) -> &Program<'_> {
        &self.lowered().program
    }

    /// What the proof over the program found, be it an error or not. It is made once.
    pub fn findings(&self) -> &[Finding] {
        self.findings.get_or_init(|| match self.lowered().verify() {
            Ok(verified) => verified.warnings().to_vec(),
            Err(findings) => findings,
        })
    }

    /// Refuses a program in which errors were found, while reading it or by the proof.
    ///
    /// # Errors
    /// All errors.
    pub fn proven(&self) -> Result<(), Failure> {
        let read = self.kept().document().findings().iter();
        let errors: Vec<Finding> = read
            .chain(self.findings())
            .filter(|finding| finding.is_error())
            .cloned()
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(Failure::program(errors).about(self.kept().name()))
    }

    /// Times the program, whatever was found.
    ///
    /// # Errors
    /// A deadlock.
    pub fn time(&self) -> Result<Ran, Failure> {
        let (started, lowered) = (Instant::now(), self.lowered());
        let verified = Verified::assume(&lowered.program);
        self.ran(
            started,
            run::time(self.kept().document(), lowered, &verified),
        )
    }

    /// Runs the program, whatever was found. What it is not given is random.
    ///
    /// # Errors
    /// As of [`run`](crate::run).
    pub fn run<'k>(&'k self, data: impl Give<'k>, seed: u64, order: Order) -> Result<Ran, Failure> {
        let (started, lowered) = (Instant::now(), self.lowered());
        let verified = Verified::assume(&lowered.program);
        let document = self.kept().document();
        let done = run::execute(document, lowered, &verified, data, seed, order);
        self.ran(started, done)
    }

    fn ran(&self, started: Instant, done: Result<Done, Failure>) -> Result<Ran, Failure> {
        Ok(Ran {
            done: done.map_err(|failure| failure.about(self.kept().name()))?,
            program: self.clone(),
            wall_ms: started.elapsed().as_nanos() as f64 / 1e6,
        })
    }

    /// A session at its start. Inputs keep what they were given; before that they are random, of this seed.
    ///
    /// # Errors
    /// Buffers beyond the limit, inputs that do not fit theirs.
    pub fn session(&self, seed: u64) -> Result<KeptSession, Failure> {
        let going = Going::try_new(self.clone(), |kept| {
            let program = kept.program();
            let limits = kept.kept().document().limits();
            let mut storage = Storage::new(&program.buffers, limits).map_err(run::no_room)?;
            run::fill(program, |_, _, _| Ok(None), seed, &mut storage)?;
            Ok(Session::new(&Verified::assume(program), storage))
        })
        .map_err(|failure: Failure| failure.about(self.kept().name()))?;
        Ok(KeptSession { going, seed })
    }
}

/// A run that came to its end, with the program that ran.
#[derive(Debug)]
pub struct Ran {
    program: KeptProgram,
    done: Done,
    wall_ms: f64,
}

impl Ran {
    /// What ran.
    pub fn program(&self) -> &KeptProgram {
        &self.program
    }

    /// When everything was where it should be.
    pub fn timeline(&self) -> &Timeline {
        &self.done.timeline
    }

    /// Takes the bytes of the outputs, in the program's order; a run without data has none.
    pub fn take_outputs(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.done.outputs)
    }

    /// What there is to say about it.
    pub fn report(&self) -> Run<'_, '_> {
        let (program, file) = (self.program.program(), self.program.kept().name());
        self.done.report(program, file, self.wall_ms)
    }
}

/// A program that is run again and again: state is kept from step to step.
pub struct KeptSession {
    going: Going,
    seed: u64,
}

impl fmt::Debug for KeptSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptSession")
            .field(self.going.borrow_owner())
            .finish()
    }
}

impl KeptSession {
    /// What runs.
    pub fn program(&self) -> &KeptProgram {
        self.going.borrow_owner()
    }

    /// Runs one step with these bytes for some inputs, by their numbers.
    ///
    /// # Errors
    /// A deadlock or a fault; data that do not fit.
    pub fn step(&mut self, inputs: &[(usize, &[u8])]) -> Result<Ran, Failure> {
        let started = Instant::now();
        let outputs = self.going.with_dependent_mut(|kept, session| {
            let interface = &kept.program().interface;
            for (port, bytes) in inputs {
                let buffer = interface.inputs[*port].buffer;
                let room = session.storage_mut().bytes_mut(buffer);
                let room = room.get_mut(..bytes.len()).ok_or_else(|| {
                    run::misfit("input", &interface.inputs[*port], bytes.len() as u64)
                })?;
                room.copy_from_slice(bytes);
            }
            session
                .run()
                .map_err(|stop| run::stopped(kept.program(), &stop))?;
            let each = interface
                .outputs
                .iter()
                .map(|port| run::output(port, session.storage()).map(<[u8]>::to_vec));
            each.collect::<Result<Vec<_>, _>>()
        });
        let kept = self.program();
        let outputs = outputs.map_err(|failure| failure.about(kept.kept().name()))?;
        let timed = kept.time()?;
        Ok(Ran {
            done: Done {
                outputs,
                ..timed.done
            },
            wall_ms: started.elapsed().as_nanos() as f64 / 1e6,
            program: kept.clone(),
        })
    }

    /// Back to the start.
    ///
    /// # Errors
    /// As of [`KeptProgram::session`].
    pub fn reset(&mut self) -> Result<(), Failure> {
        *self = self.program().session(self.seed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shared<T: Send + Sync + 'static>() {}

    #[test]
    fn a_kept_program_goes_from_thread_to_thread() {
        is_shared::<KeptDocument>();
        is_shared::<KeptProgram>();
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/dsa/kernels/dot.dfg"
        );
        let bytes = std::fs::read(path).unwrap();
        let kept = KeptDocument::open(path.to_owned(), Box::new(bytes), None, Options::default());
        let program = kept.unwrap().lower().unwrap();
        let other = program.clone();
        let tasks = std::thread::spawn(move || other.program().tasks.len());
        assert_eq!(tasks.join().unwrap(), program.program().tasks.len());
        assert!(program.proven().is_ok());
    }
}
