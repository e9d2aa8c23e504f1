//! Element types of the newer operations: `I16x4`, `F32x2`, `D64`.

/// What the bits of an element are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// `I`: two's complement.
    Signed,
    /// `U`: unsigned.
    Unsigned,
    /// `H16`, `F32`, `D64`: IEEE 754.
    Float,
}

/// An element type: so many elements of so many bits, the first in the lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// What the bits are.
    pub kind: ElementKind,
    /// Bits of one element: 8, 16, 32 or 64.
    pub bits: u32,
    /// Elements: 1, 2, 4 or 8.
    pub lanes: u32,
}

impl Element {
    /// The element type of this name.
    pub fn parse(name: &str) -> Option<Element> {
        let (scalar, lanes) = match name.split_once('x') {
            Some((scalar, lanes)) => (
                scalar,
                lanes
                    .parse()
                    .ok()
                    .filter(|lanes| matches!(lanes, 2 | 4 | 8))?,
            ),
            None => (name, 1),
        };
        let (kind, bits) = match scalar {
            "I8" => (ElementKind::Signed, 8),
            "I16" => (ElementKind::Signed, 16),
            "I32" => (ElementKind::Signed, 32),
            "I64" => (ElementKind::Signed, 64),
            "U8" => (ElementKind::Unsigned, 8),
            "U16" => (ElementKind::Unsigned, 16),
            "U32" => (ElementKind::Unsigned, 32),
            "U64" => (ElementKind::Unsigned, 64),
            "H16" => (ElementKind::Float, 16),
            "F32" => (ElementKind::Float, 32),
            "D64" => (ElementKind::Float, 64),
            _ => return None,
        };
        Some(Element { kind, bits, lanes })
    }

    /// Bits of all elements together.
    pub const fn width(self) -> u32 {
        self.bits * self.lanes
    }
}
