use chipless_model::ElementType;

/// Why a kernel refused its arguments. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A slice is not as long as the shapes say.
    #[error("{operand}: expected a length of {expected}, found {found}")]
    Length {
        /// Which argument.
        operand: &'static str,
        /// Length by the shapes, in elements (bytes for packed elements).
        expected: u128,
        /// Length of the slice.
        found: usize,
    },
    /// A pattern leaves its buffer.
    #[error("{operand}: the pattern touches bytes {start} to {end} of a buffer of {size} bytes")]
    Bounds {
        /// Which argument.
        operand: &'static str,
        /// First byte touched.
        start: i128,
        /// One past the last byte touched.
        end: i128,
        /// Bytes of the buffer.
        size: usize,
    },
    /// Two patterns of a copy do not enumerate the same number of bytes; `None` is beyond 2^64.
    #[error("the source enumerates {} bytes, the destination {}", bytes(*.source_bytes), bytes(*.destination_bytes))]
    Unequal {
        /// Bytes of the source.
        source_bytes: Option<u64>,
        /// Bytes of the destination.
        destination_bytes: Option<u64>,
    },
    /// The elements cannot be represented in the numbers asked for.
    #[error("{element} elements do not fit into {number}")]
    Element {
        /// Type of the elements.
        element: ElementType,
        /// The numbers asked for.
        number: &'static str,
    },
    /// A temporary of this many bytes cannot be had.
    #[error("no memory for {bytes} bytes")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
}

fn bytes(count: Option<u64>) -> String {
    count.map_or_else(|| "more than 2^64".to_owned(), |n| n.to_string())
}
