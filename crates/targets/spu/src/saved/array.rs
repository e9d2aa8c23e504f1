//! Arrays and scalars of numpy.

/// Kind of an element, as numpy's letters name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Signed,
    Unsigned,
    Real,
}

/// The type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) kind: Kind,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub(crate) size: usize,
    pub(crate) big_endian: bool,
}

impl Type {
    /// Of `i4`, `<f8`, `b1`, ….
    ///
    /// # Errors
    /// What it is instead.
    pub(crate) fn parse(text: &str) -> Result<Type, String> {
        let refused = || {
            format!(
                "expected a type of integers or reals (i1 to i8, u1 to u8, b1, f4, f8), found `{}`",
                crate::yaml::shortened(text)
            )
        };
        let big_endian = text.starts_with('>');
        let mut letters = text.trim_start_matches(['<', '>', '|', '=']).chars();
        let kind = match letters.next() {
            Some('b') => Kind::Bool,
            Some('i') => Kind::Signed,
            Some('u') => Kind::Unsigned,
            Some('f') => Kind::Real,
            _ => return Err(refused()),
        };
        let size = match (letters.as_str(), kind) {
            ("1", Kind::Bool | Kind::Signed | Kind::Unsigned) => 1,
            ("2", Kind::Signed | Kind::Unsigned) => 2,
            ("4", Kind::Signed | Kind::Unsigned | Kind::Real) => 4,
            ("8", Kind::Signed | Kind::Unsigned | Kind::Real) => 8,
            _ => return Err(refused()),
        };
        Ok(Type {
            kind,
            size,
            big_endian,
        })
    }
}

/// An array; its elements are still text.
#[derive(Debug, Default)]
pub(crate) struct Array<'p> {
    /// What is known of it: nothing until its state is set.
    pub(crate) state: Option<State<'p>>,
}

/// Shape and elements of an array.
#[derive(Clone, Debug)]
pub(crate) struct State<'p> {
    pub(crate) shape: Vec<u64>,
    pub(crate) element: Type,
    /// First dimension fastest.
    pub(crate) column_order: bool,
    /// Each character is a byte.
    pub(crate) bytes: &'p str,
}

/// Elements of an array in row order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Elements {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

impl State<'_> {
    /// Elements by the shape.
    ///
    /// # Errors
    /// The shape and the bytes disagree, or a character is no byte.
    pub(crate) fn checked(self) -> Result<Self, String> {
        let count = self.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
        let size = count.and_then(|n| n.checked_mul(self.element.size as u64));
        // A byte above 127 takes two in UTF-8: bytes are as many as characters.
        let found = self.bytes.chars().count() as u64;
        if size != Some(found) {
            return Err(format!(
                "expected {} bytes for an array of {:?} elements of {} bytes, found {found}",
                size.map_or("a countable number of".to_owned(), |size| size.to_string()),
                self.shape,
                self.element.size
            ));
        }
        Ok(self)
    }

    /// The elements in row order.
    ///
    /// # Errors
    /// A character that is no byte, or an integer beyond 64 bits.
    pub(crate) fn elements(&self) -> Result<Elements, String> {
        let bytes = decoded(self.bytes)?;
        let mut elements = elements(&bytes, self.element)?;
        if self.column_order && self.shape.len() > 1 {
            elements = match elements {
                Elements::Integers(all) => Elements::Integers(in_row_order(&all, &self.shape)),
                Elements::Reals(all) => Elements::Reals(in_row_order(&all, &self.shape)),
            };
        }
        Ok(elements)
    }
}

/// Elements of bytes; as many as they hold whole.
pub(crate) fn elements(bytes: &[u8], of: Type) -> Result<Elements, String> {
    fn words<const N: usize, T>(
        bytes: &[u8],
        big_endian: bool,
        of: impl Fn([u8; N]) -> T,
    ) -> Vec<T> {
        let turned = |mut word: [u8; N]| {
            if big_endian {
                word.reverse();
            }
            of(word)
        };
        bytes
            .as_chunks::<N>()
            .0
            .iter()
            .map(|word| turned(*word))
            .collect()
    }
    let big = of.big_endian;
    Ok(match (of.kind, of.size) {
        (Kind::Real, 4) => Elements::Reals(words(bytes, big, |w| f64::from(f32::from_le_bytes(w)))),
        (Kind::Real, _) => Elements::Reals(words(bytes, big, f64::from_le_bytes)),
        (Kind::Bool, _) => Elements::Integers(bytes.iter().map(|b| i64::from(*b != 0)).collect()),
        (Kind::Signed, 1) => {
            Elements::Integers(bytes.iter().map(|b| i64::from(*b as i8)).collect())
        }
        (Kind::Signed, 2) => {
            Elements::Integers(words(bytes, big, |w| i64::from(i16::from_le_bytes(w))))
        }
        (Kind::Signed, 4) => {
            Elements::Integers(words(bytes, big, |w| i64::from(i32::from_le_bytes(w))))
        }
        (Kind::Signed, _) => Elements::Integers(words(bytes, big, i64::from_le_bytes)),
        (Kind::Unsigned, 1) => Elements::Integers(bytes.iter().map(|b| i64::from(*b)).collect()),
        (Kind::Unsigned, 2) => {
            Elements::Integers(words(bytes, big, |w| i64::from(u16::from_le_bytes(w))))
        }
        (Kind::Unsigned, 4) => {
            Elements::Integers(words(bytes, big, |w| i64::from(u32::from_le_bytes(w))))
        }
        (Kind::Unsigned, _) => {
            let all = words(bytes, big, u64::from_le_bytes);
            let signed: Option<Vec<i64>> = all.iter().map(|n| i64::try_from(*n).ok()).collect();
            Elements::Integers(
                signed.ok_or("expected integers of 64 bits with a sign, found larger ones")?,
            )
        }
    })
}

/// The bytes that the characters of a text stand for.
pub(crate) fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; text.len()];
    let (mut end, mut lead, mut largest) = (0, 0, 0);
    // Weights are noise: without branches none is mispredicted.
    for byte in text.as_bytes() {
        // All ones from U+0080 on, where a byte leads and the next one carries six bits more.
        let long = (byte >> 7).wrapping_neg();
        bytes[end] = byte & !(long & 0xc0) | lead & long;
        lead = byte << 6;
        end += usize::from(*byte < 0xc0);
        largest = largest.max(*byte);
    }
    // 0xc3 leads the characters up to U+00FF, the next one those beyond.
    if largest > 0xc3 {
        return Err("expected bytes as characters up to U+00FF, found others".to_owned());
    }
    bytes.truncate(end);
    Ok(bytes)
}

/// From column order to row order.
fn in_row_order<T: Copy>(all: &[T], shape: &[u64]) -> Vec<T> {
    let mut index = vec![0u64; shape.len()];
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1u64;
    for length in shape {
        strides.push(stride);
        stride = stride.saturating_mul(*length);
    }
    let mut out = Vec::with_capacity(all.len());
    for _ in 0..all.len() {
        let at: u64 = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        out.extend(all.get(at as usize).copied());
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            if index[d] < shape[d] {
                break;
            }
            index[d] = 0;
        }
    }
    out
}
