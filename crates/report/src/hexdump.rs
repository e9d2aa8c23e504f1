//! A small picture of a place in a binary file: the bytes in hexadecimal with a mark under those that are meant.

use crate::style::Paint;
use chipless_model::Severity;
use std::fmt::Write;

/// Bytes in a row.
const ROW: u64 = 16;

/// Writes up to `rows` rows of bytes around a range of the file, each with `mark` under the bytes of the range. A range
/// of unknown size (0) marks its first byte. Ranges that begin beyond the file show nothing.
pub(crate) fn picture(
    out: &mut String,
    paint: Paint,
    severity: Severity,
    file: &[u8],
    range: (u64, u64),
    mark: char,
    rows: u64,
) {
    let (offset, size) = range;
    if offset >= file.len() as u64 {
        return;
    }
    let end = offset.saturating_add(size.max(1)).min(file.len() as u64);
    let bar = paint.frame("|");
    let first = offset - offset % ROW;
    let shown_end = end.min(first.saturating_add(rows * ROW));
    let mut at = first;
    while at < shown_end {
        let row_end = (at + ROW).min(file.len() as u64);
        let (mut bytes, mut marks) = (String::new(), String::new());
        for position in at..row_end {
            // A gap after eight bytes, as the debuggers print it.
            let gap = if position == at {
                ""
            } else if position == at + ROW / 2 {
                "  "
            } else {
                " "
            };
            let marked = |p: u64| (offset..end).contains(&p);
            let fill = if marked(position) && position > at && marked(position - 1) {
                mark
            } else {
                ' '
            };
            marks.extend(std::iter::repeat_n(fill, gap.len()));
            marks.extend(std::iter::repeat_n(
                if marked(position) { mark } else { ' ' },
                2,
            ));
            let byte = format!("{:02x}", file[position as usize]);
            let _ = if marked(position) {
                write!(bytes, "{gap}{}", paint.severity(severity, byte))
            } else {
                write!(bytes, "{gap}{byte}")
            };
        }
        let address = format!("{at:08x}");
        let _ = writeln!(out, "   {bar} {}  {bytes}", paint.dim(&address));
        let blank = " ".repeat(address.len());
        let _ = writeln!(
            out,
            "   {bar} {blank}  {}",
            paint.severity(severity, marks.trim_end())
        );
        at = row_end;
    }
    if shown_end < end && shown_end > first {
        let _ = writeln!(
            out,
            "   {bar} {}",
            paint.dim(format_args!("… {} more bytes", end - shown_end))
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(file: &[u8], offset: u64, size: u64) -> String {
        let mut out = String::new();
        picture(
            &mut out,
            Paint::PLAIN,
            Severity::Error,
            file,
            (offset, size),
            '^',
            2,
        );
        out
    }

    #[test]
    fn bytes_of_the_range_are_marked() {
        let file: Vec<u8> = (0..64).collect();
        insta::assert_snapshot!(plain(&file, 0x16, 4), @r"
           | 00000010  10 11 12 13 14 15 16 17  18 19 1a 1b 1c 1d 1e 1f
           |                             ^^^^^^^^^^^^
        ");
        insta::assert_snapshot!(plain(&file, 0x0e, 40), @r"
           | 00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f
           |                                                      ^^^^^
           | 00000010  10 11 12 13 14 15 16 17  18 19 1a 1b 1c 1d 1e 1f
           |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           | … 22 more bytes
        ");
    }

    #[test]
    fn ranges_beyond_the_file_stop_at_its_end() {
        insta::assert_snapshot!(plain(&[1, 2, 3], 2, u64::MAX), @r"
           | 00000000  01 02 03
           |                 ^^
        ");
        assert_eq!(plain(&[1, 2, 3], 3, 4), "");
        assert_eq!(plain(&[], u64::MAX, u64::MAX), "");
    }
}
