//! Typed indices: an id of one table cannot be used in another.

index_vec::define_index_type! {
    /// A [`Memory`](crate::Memory).
    pub struct MemoryId = u32;
}
index_vec::define_index_type! {
    /// A [`Buffer`](crate::Buffer).
    pub struct BufferId = u32;
}
index_vec::define_index_type! {
    /// A [`Resource`](crate::Resource).
    pub struct ResourceId = u32;
}
index_vec::define_index_type! {
    /// A [`Sync`](crate::Sync).
    pub struct SyncId = u32;
}
index_vec::define_index_type! {
    /// A [`Configuration`](crate::Configuration) of a barrier.
    pub struct ConfigurationId = u32;
}
index_vec::define_index_type! {
    /// A [`Queue`](crate::Queue).
    pub struct QueueId = u32;
}
index_vec::define_index_type! {
    /// A [`Piece`](crate::Piece) of a queue.
    pub struct PieceId = u32;
}
index_vec::define_index_type! {
    /// A [`Task`](crate::Task).
    pub struct TaskId = u32;
}
index_vec::define_index_type! {
    /// A [`Kernel`](crate::Kernel).
    pub struct KernelId = u32;
}
index_vec::define_index_type! {
    /// A named part of the program's file that [`Location`](crate::Location)s point into.
    pub struct PartId = u32;
}

/// The first part; most programs have one.
impl Default for PartId {
    fn default() -> PartId {
        PartId::from_raw(0)
    }
}
