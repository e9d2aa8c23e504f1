//! Just enough of the protocol buffers wire format to write a trace: varints, fixed 64-bit numbers, nested messages.

/// A message under construction.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn with_capacity(bytes: usize) -> Writer {
        Writer {
            bytes: Vec::with_capacity(bytes),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    #[inline]
    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    #[inline]
    fn tag(&mut self, field: u32, wire: u32) {
        self.raw(u64::from(field << 3 | wire));
    }

    /// An integer field.
    #[inline]
    pub(crate) fn integer(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.raw(value);
    }

    /// A `fixed64` field.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.bytes.extend(value.to_le_bytes());
    }

    /// A string or bytes field.
    pub(crate) fn string(&mut self, field: u32, value: &str) {
        self.tag(field, 2);
        self.raw(value.len() as u64);
        self.bytes.extend(value.as_bytes());
    }

    /// A message field. Its length stands before it and is known only afterwards: a byte is kept free for it, and
    /// messages of 128 bytes and more, which are rare, are moved up to make room.
    #[inline]
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Writer)) {
        self.tag(field, 2);
        let start = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - start - 1;
        if length < 0x80 {
            self.bytes[start] = length as u8;
        } else {
            let mut prefix = Writer::default();
            prefix.raw(length as u64);
            self.bytes.splice(start..=start, prefix.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_their_length() {
        let mut w = Writer::default();
        w.integer(1, 300);
        w.message(2, |m| m.string(16, "hi"));
        w.fixed64(3, 1);
        assert_eq!(
            w.into_bytes(),
            [
                0x08, 0xac, 0x02, 0x12, 5, 0x82, 0x01, 2, b'h', b'i', 0x19, 1, 0, 0, 0, 0, 0, 0, 0
            ]
        );
    }

    #[test]
    fn long_messages_make_room_for_a_longer_length() {
        let mut w = Writer::default();
        w.message(1, |m| m.string(1, &"x".repeat(200)));
        w.integer(2, 1);
        let bytes = w.into_bytes();
        assert_eq!(bytes[..6], [0x0a, 203, 1, 0x0a, 200, 1]);
        assert_eq!(bytes[206..], [0x10, 1]);
    }
}
