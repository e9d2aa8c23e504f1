//! Horizontal bars of Unicode blocks, and columns that line up.

const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of `width` characters, filled to `fraction` of it in steps of an eighth of a character. What is more than
/// nothing shows at least the thinnest block.
pub(crate) fn bar(fraction: f64, width: usize) -> String {
    let fraction = if fraction.is_finite() {
        fraction.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let mut eighths = (fraction * width as f64 * 8.0).round() as usize;
    if fraction > 0.0 {
        eighths = eighths.max(1);
    }
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    let filled = eighths.div_ceil(8);
    text.extend(std::iter::repeat_n(' ', width - filled));
    text
}

/// The widest column that is padded. A longer text stands out of its column: formatting takes no width beyond 65,535, and no reader one
/// beyond this.
const COLUMN: usize = 400;

/// The width in characters of a column of these texts.
pub fn widest<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    let widths = texts.into_iter().map(|t| t.chars().count());
    widths.max().unwrap_or(0).min(COLUMN)
}

/// A text cut to `width` characters, with an ellipsis where something was cut off in the middle: names of layers differ
/// at both ends.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    text.chars()
        .take(head)
        .chain(std::iter::once('…'))
        .chain(text.chars().skip(length - tail))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_in_eighths() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(1e-9, 4), "▏   ");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53, 4), "██▏ ");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(f64::NAN, 4), "    ");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut("short", 8), "short");
        assert_eq!(cut("block1/conv2/add", 9), "bloc…/add");
    }
}
