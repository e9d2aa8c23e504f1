//! Messages with a header, as they go over the wire.

use serde_json::Value as Json;
use std::io::{self, BufRead, Read, Write};

/// Bytes of a message at most.
const LARGEST: usize = 16 << 20;
/// Bytes of a line of the header at most.
const LINE: u64 = 4096;

fn wrong(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// The next message; `None` at the end of the input.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Option<Json>> {
    let mut size = None;
    loop {
        let mut line = String::new();
        if input.by_ref().take(LINE).read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            size = value.trim().parse::<usize>().ok();
        }
    }
    let size = size.filter(|size| *size <= LARGEST).ok_or_else(|| {
        wrong(format!(
            "expected a header with a Content-Length up to {LARGEST}"
        ))
    })?;
    let mut body = vec![0; size];
    input.read_exact(&mut body)?;
    serde_json::from_slice(&body)
        .map(Some)
        .map_err(|error| wrong(format!("expected JSON: {error}")))
}

/// Writes a message.
pub(super) fn write(output: &mut impl Write, message: &Json) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}
