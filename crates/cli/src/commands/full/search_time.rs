//! How long a search may take, as options say it.

use std::time::Duration;

/// `90s`, `10m`, `2h`; a plain number is seconds.
pub(super) fn search_time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().filter(|n| *n >= 0.0);
    seconds
        .and_then(|n| Duration::try_from_secs_f64(n * unit).ok())
        .ok_or_else(|| "expected a time: seconds, or such as 90s, 10m or 2h".to_owned())
}
