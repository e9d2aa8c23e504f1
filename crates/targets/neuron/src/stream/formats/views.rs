//! The macros that make formats of rows of fields: a view of a slot with a method for each field, and a table.

/// The method of a field.
macro_rules! get {
    ($(#[$doc:meta])* $field:ident $at:literal Tensor($dimensions:literal, $direction:expr, $element:expr, $partitions:expr)) => {
        $(#[$doc])* pub fn $field(self) -> Tensor { self.0.tensor($at, $dimensions) }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Microscaled($direction:expr, $element:expr, $partitions:expr)) => {
        $(#[$doc])* pub fn $field(self) -> Microscaled { self.0.microscaled($at) }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Generator) => {
        $(#[$doc])* pub fn $field(self) -> Generator {
            let Tensor { address, steps, counts, .. } = self.0.tensor($at, 4);
            Generator { base: address.cast_signed(), steps, counts }
        }
    };
    ($(#[$doc:meta])* $field:ident $at:literal Element($code:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { $code.of(self.0) } };
    ($(#[$doc:meta])* $field:ident $at:literal Alu) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Byte) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Flags($names:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Choice($names:expr)) => { $(#[$doc])* pub fn $field(self) -> u8 { self.0.byte($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Signed) => { $(#[$doc])* pub fn $field(self) -> i32 { i32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Word) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Value) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Bits) => { $(#[$doc])* pub fn $field(self) -> u32 { u32::from_le_bytes(self.0.array($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Array($size:literal)) => { $(#[$doc])* pub fn $field(self) -> [u8; $size] { self.0.array($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Name) => { $(#[$doc])* pub fn $field(self) -> &'a [u8] { self.0.name_at($at) } };
    ($(#[$doc:meta])* $field:ident $at:literal Side($element:expr)) => { $(#[$doc])* pub fn $field(self) -> DmaSide { zerocopy::transmute!(self.0.array::<22>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Scalars($element:expr)) => { $(#[$doc])* pub fn $field(self) -> Scalars { zerocopy::transmute!(self.0.array::<18>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal SymbolicScalars($element:expr)) => { $(#[$doc])* pub fn $field(self) -> Scalars { zerocopy::transmute!(self.0.array::<18>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Events) => { $(#[$doc])* pub fn $field(self) -> Events { zerocopy::transmute!(self.0.array::<8>($at)) } };
    ($(#[$doc:meta])* $field:ident $at:literal Completion) => { $(#[$doc])* pub fn $field(self) -> (u8, u8) { (self.0.byte($at), self.0.byte($at + 1)) } };
}

/// The kind of a field.
macro_rules! kind {
    (Tensor($dimensions:literal, $direction:expr, $element:expr, $partitions:expr)) => {
        Kind::Tensor { dimensions: $dimensions, direction: $direction, element: $element, partitions: $partitions }
    };
    (Microscaled($direction:expr, $element:expr, $partitions:expr)) => {
        Kind::Microscaled { direction: $direction, element: $element, partitions: $partitions }
    };
    ($kind:ident $(($argument:expr))?) => { Kind::$kind $(($argument))? };
}

/// Views of slots with the tables of their formats, of rows of fields.
macro_rules! views {
    ($(
        $(#[$doc:meta])*
        $name:ident { $(
            $(#[$field_doc:meta])*
            $at:literal $field:ident: $kind:ident $(($($argument:tt)*))?, $evidence:ident $(= $default:literal)? $($refused:ident)?;
        )* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name<'a>(pub &'a Slot);

            impl<'a> $name<'a> {
                /// The table of the format.
                pub const FORMAT: &'static Format = {
                    static FIELDS: &[Field] = &[$(Field {
                        name: stringify!($field),
                        at: $at,
                        kind: kind!($kind $(($($argument)*))?),
                        evidence: Evidence::$evidence,
                        default: 0 $(+ $default)?,
                        refused: false $(|| views!(@ $refused))?,
                    },)*];
                    static FORMAT: Format = Format::new(stringify!($name), FIELDS);
                    &FORMAT
                };

                $(get!($(#[$field_doc])* $field $at $kind $(($($argument)*))?);)*
            }
        )*
    };
    (@ refused) => { true };
}

/// Every format, in the order of the page.
macro_rules! all {
    ($($name:ident)*) => {
        /// A slot with the format of its opcode.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Instruction<'a> {
            $(#[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), ")")] $name(super::$name<'a>),)*
        }

        /// Which format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::stream) enum FormatId {
            $(#[doc = stringify!($name)] $name,)*
        }

        impl FormatId {
            /// Its table.
            pub(in crate::stream) const fn format(self) -> &'static Format {
                match self { $(FormatId::$name => super::$name::FORMAT,)* }
            }

            /// A slot of this format.
            pub(in crate::stream) const fn view(self, slot: &Slot) -> Instruction<'_> {
                match self { $(FormatId::$name => Instruction::$name(super::$name(slot)),)* }
            }
        }

        /// Every format.
        pub static FORMATS: &[&Format] = &[$(super::$name::FORMAT,)*];
    };
}

pub(super) use {all, get, kind, views};
