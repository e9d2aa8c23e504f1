//! The meaning of a task.

use crate::access::{Access, Pattern, traffic};
use crate::element::ElementType;
use crate::id::BufferId;
use crate::series::{Series, SeriesBuilder};
use crate::storage::Storage;
use crate::swizzle::Swizzle;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// What a task does: the one trait that targets implement.
///
/// A kernel is a pure function of the bytes that its accesses name: it reads no byte outside its read accesses and
/// writes no byte outside its write accesses. Verifier and engine rely on that. Tasks that do the same may share one, and its accesses
/// are then asked for once.
pub trait Kernel: fmt::Debug + Send + std::marker::Sync {
    /// The operation in the field's words, for lists and traces: `dma`, `conv 3x3`, `softmax`.
    fn operation(&self) -> Cow<'static, str>;

    /// What a reader of a disassembly wants to know besides waits, signals and accesses: shapes, types, options.
    fn details(&self) -> String {
        String::new()
    }

    /// The layer of the network that a task of this label is a part of, where the label says so.
    fn layer<'l>(&self, label: &'l str) -> Option<&'l str> {
        let _ = label;
        None
    }

    /// Whether the file writes the wait of this index as *above* `n`, which the model has as at least `n + 1`.
    fn waits_above(&self, wait: usize) -> bool {
        let _ = wait;
        false
    }

    /// Every byte that the task may touch. The engine checks that each access fits its buffer before it executes the task.
    fn accesses(&self, visit: &mut dyn FnMut(Access));

    /// The same accesses in the same order, each with what it is to the operation, where the kernel knows that (`weights`, `weight table`), or
    /// an empty text. Whoever lists the task asks for it.
    fn roles(&self, visit: &mut dyn FnMut(Access, &'static str)) {
        self.accesses(&mut |access| {
            let role = match access.tensor {
                Access::DESCRIPTION => "descriptor",
                _ => "",
            };
            visit(access, role);
        });
    }

    /// The same bytes as [`accesses`](Kernel::accesses) names, where patterns may count logical addresses of a swizzled tensor: fewer patterns.
    fn swizzled_accesses(&self, visit: &mut dyn FnMut(Access, Swizzle)) {
        self.accesses(&mut |access| visit(access, Swizzle::OFF));
    }

    /// Bytes that it reads and bytes that it writes, repeats counted.
    fn traffic(&self) -> (u64, u64) {
        traffic(|visit| self.accesses(visit))
    }

    /// Which written bytes depend on doubtful ones among those that the task reads. [`Dependence::Bytes`] says that `visit` has
    /// been told all of them; by default every byte that is written depends on every one that is read.
    fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) -> Dependence {
        let _ = (doubtful, visit);
        Dependence::Everything
    }

    /// Which written bytes are zero whatever the data are, given bytes of which that is known: `visit` is told of them.
    fn zeros(&self, zero: &dyn Zero, visit: &mut dyn FnMut(BufferId, Pattern)) {
        let _ = (zero, visit);
    }

    /// A number that kernels share which make the same of the same bytes, in the same place: two tasks of them that nothing
    /// orders write the same. `None` where that is not known.
    fn function(&self) -> Option<u64> {
        None
    }

    /// Arithmetic operations that it does: a multiplication and an addition are two, anything else that is done to an element is one. 0 where it
    /// only moves bytes, or where that is not known.
    fn arithmetic(&self) -> u64 {
        0
    }

    /// Whether it brings descriptions of tasks, which are no data of the network.
    fn brings_tasks(&self) -> bool {
        false
    }

    /// Whether it is a latency that keeps no engine busy.
    fn is_latency(&self) -> bool {
        false
    }

    /// The effect on memory. Called only when every access fits its buffer.
    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault>;

    /// The same in two halves, where it has such: tasks that run at once are then computed side by side.
    fn halves(&self) -> Option<&dyn Halves> {
        None
    }

    /// The write accesses whose elements have a type that the kernel knows, with that type. Whoever looks for NaN asks for it.
    fn results(&self, _visit: &mut dyn FnMut(Access, ElementType)) {}

    /// Type and dimensions of what one of its accesses holds, where the kernel knows them: dimensions in the order of the access, outermost
    /// first, or none where it knows the type only. Whoever shows the tensor asks for it.
    fn tensor(&self, _access: &Access) -> Option<(ElementType, Vec<u64>)> {
        None
    }

    /// Where a byte comes from that it writes, if it only moves that byte: unchanged from this place. Whoever looks for the origin of
    /// a byte goes back through such tasks; [`Pattern::counterpart`] has the answer for a copy of one pattern to another.
    fn source_of(&self, _buffer: BufferId, _byte: u64) -> Option<(BufferId, u64)> {
        None
    }

    /// How well what it does is known; its results are as good as that.
    fn grade(&self) -> Grade {
        match self.unproven() {
            None => Grade::Proven,
            Some(_) => Grade::Documented,
        }
    }

    /// Names what this kernel does by a rule that no program at hand has proven; `None` where everything is proven.
    fn unproven(&self) -> Option<Cow<'static, str>> {
        None
    }
}

/// What [`Kernel::execute`] does, in two halves.
pub trait Halves {
    /// All but the writes, which the second half does: once, and while what the task reads and writes is as it is now.
    ///
    /// # Errors
    /// As of the whole.
    fn compute(&self, storage: &Storage<'_>) -> Result<Write<'_>, Fault>;
}

/// Writes what a task has computed.
pub type Write<'k> = Box<dyn FnOnce(&mut Storage<'_>) -> Result<(), Fault> + Send + 'k>;

/// How well it is known what hardware does, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Chosen so that work can go on, or inferred: it may be wrong.
    Assumed,
    /// A public text of third parties repeats what the vendor says, word for word or field by field.
    Quoted,
    /// The vendor's documentation or code says so.
    Documented,
    /// Compiled programs give the right numbers when they are executed so.
    Proven,
}

impl Grade {
    /// Every grade, from weak to strong.
    pub const ALL: [Grade; 4] = [
        Grade::Assumed,
        Grade::Quoted,
        Grade::Documented,
        Grade::Proven,
    ];

    /// As printed, and as options name it.
    pub const fn name(self) -> &'static str {
        match self {
            Grade::Assumed => "assumed",
            Grade::Quoted => "quoted",
            Grade::Documented => "documented",
            Grade::Proven => "proven",
        }
    }

    /// In a sentence, behind "its meaning is".
    pub const fn phrase(self) -> &'static str {
        match self {
            Grade::Assumed => "assumed by Chipless",
            Grade::Quoted => "quoted by third parties alone",
            Grade::Documented => "documented by the vendor",
            Grade::Proven => "proven by compiled programs",
        }
    }

    /// The grade of a name.
    pub fn from_name(name: &str) -> Option<Grade> {
        Grade::ALL.into_iter().find(|grade| grade.name() == name)
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Calls with the first run of some bytes, the first behind it, and so on, in series.
fn each_run(
    Range { mut start, end }: Range<u64>,
    first: impl Fn(Range<u64>) -> Option<Range<u64>>,
    visit: &mut dyn FnMut(Series),
) {
    let mut runs = SeriesBuilder::default();
    while start < end
        && let Some(found) = first(start..end)
    {
        start = found.end;
        runs.add(found, &mut *visit);
    }
    runs.take().into_iter().for_each(visit);
}

/// Bytes whose values are in doubt: nobody wrote them, or they are left over from something else.
pub trait Doubt {
    /// The first run of doubtful bytes among these of a buffer.
    fn first(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>>;

    /// Calls with the runs of doubtful bytes among these of a buffer, in order.
    fn each(&self, buffer: BufferId, bytes: Range<u64>, visit: &mut dyn FnMut(Series)) {
        each_run(bytes, |bytes| self.first(buffer, bytes), visit);
    }

    /// Bytes that are known to be zero, where somebody has followed them: what is multiplied by zero does not count.
    fn zero(&self) -> Option<&dyn Zero> {
        None
    }

    /// Whether any of these bytes is doubtful.
    fn any(&self, buffer: BufferId, bytes: Range<u64>) -> bool {
        self.first(buffer, bytes).is_some()
    }
}

/// Bytes that are zero whatever the data of a run are.
pub trait Zero {
    /// The first run of bytes among these of which that is not known.
    fn first_other(&self, buffer: BufferId, bytes: Range<u64>) -> Option<Range<u64>>;

    /// Calls with all such runs, in order.
    fn each_other(&self, buffer: BufferId, bytes: Range<u64>, visit: &mut dyn FnMut(Series)) {
        each_run(bytes, |bytes| self.first_other(buffer, bytes), visit);
    }

    /// Whether all of these bytes are.
    fn is_zero(&self, buffer: BufferId, bytes: Range<u64>) -> bool {
        self.first_other(buffer, bytes).is_none()
    }
}

/// What depends on doubtful bytes that a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// The bytes that have been named, and nothing else.
    Bytes,
    /// Every byte that the task writes.
    Everything,
    /// What the task does and where: the doubtful bytes are addresses, indices or its own description.
    Control,
}

/// Why a task could not be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whether Chipless lacks something, rather than the program being at fault.
    pub unsupported: bool,
    /// What happened, with the numbers.
    pub message: String,
}

impl Fault {
    /// The program is at fault.
    pub fn program(message: impl Into<String>) -> Fault {
        Fault {
            unsupported: false,
            message: message.into(),
        }
    }

    /// Chipless does not execute this.
    pub fn unsupported(message: impl Into<String>) -> Fault {
        Fault {
            unsupported: true,
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
