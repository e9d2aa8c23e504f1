//! What tasks meet outside of their programs: page tables before they begin, a path of resources that programs share.

use chipless_model::{Demand, TaskId, Time};

/// Names a run of a program in a [`World`](crate::World).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub(crate) u32);

/// Asked at the instants at which a task of an instance in a world comes to the outside. By itself nothing is there:
/// a program then runs as if it were alone.
pub trait Outside {
    /// A task starts. When its fixed time begins: now, or later.
    fn begins(&mut self, instance: InstanceId, task: TaskId, now: Time) -> Time {
        let _ = (instance, task);
        now
    }

    /// The fixed time of a task is over, and its bytes set out.
    fn moves(&mut self, instance: InstanceId, task: TaskId, now: Time) {
        let _ = (instance, task, now);
    }

    /// How many of the bytes that a task demands do pass the program's resource.
    fn passes(&mut self, instance: InstanceId, task: TaskId, demand: &Demand) -> u64 {
        let _ = (instance, task);
        demand.bytes
    }

    /// The program has served a task. Whether the outside has, too; otherwise it [tells](crate::World::served) when.
    fn ends(&mut self, instance: InstanceId, task: TaskId, now: Time) -> bool {
        let _ = (instance, task, now);
        true
    }
}

/// Nothing is outside.
impl Outside for () {}
