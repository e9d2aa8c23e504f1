//! Every block of the README and of the pages that begins with `$ chipless` shows what the command prints. Lines of `…`, and `…` within a
//! line, stand for anything; seconds of the clock on the wall are not compared.

use crate::support::root;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap();
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// Commands with what they should print.
fn blocks(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let (mut is_inside, mut is_shown) = (false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            (is_inside, is_shown) = (!is_inside, false);
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_inside) {
            is_shown = command.starts_with("chipless");
            if is_shown {
                found.push((command.to_owned(), Vec::new()));
            }
        } else if let Some((_, lines)) = found.last_mut().filter(|_| is_shown) {
            lines.push(line.trim_end().to_owned());
        }
    }
    for (_, lines) in &mut found {
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
    }
    found
}

/// Whether a line is what a pattern says: `…` stands for anything.
fn fits(pattern: &str, line: &str) -> bool {
    let parts: Vec<&str> = pattern.split('…').collect();
    let Some((first, rest)) = parts.split_first() else {
        return false;
    };
    let Some(mut left) = line.strip_prefix(first) else {
        return false;
    };
    let Some((last, middle)) = rest.split_last() else {
        return left.is_empty();
    };
    for part in middle {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// Seconds of the clock on the wall differ from run to run.
fn without_seconds(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_seconds = |at: usize| {
        let number = words[at].parse::<f64>().is_ok() && words[at].contains('.');
        number && words.get(at + 1).is_some_and(|unit| *unit == "s")
    };
    let each = (0..words.len()).map(|at| if is_seconds(at) { "?" } else { words[at] });
    each.collect::<Vec<_>>().join(" ")
}

/// What does not fit, if anything.
fn compare(expected: &[String], found: &[String]) -> Result<(), String> {
    let (mut at, mut anything) = (0, false);
    for line in expected {
        if line.trim() == "…" {
            anything = true;
            continue;
        }
        let end = if anything {
            found.len()
        } else {
            found.len().min(at + 1)
        };
        let pattern = without_seconds(line);
        let hit = (at..end).find(|i| fits(&pattern, &without_seconds(found[*i].trim_end())));
        match hit {
            Some(hit) => (at, anything) = (hit + 1, false),
            None => return Err(format!("no line {line:?}, found {:?}", found.get(at))),
        }
    }
    Ok(())
}

#[test]
fn pages_show_what_commands_print() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = folder.path().join("fixtures");
    #[cfg(unix)]
    std::os::unix::fs::symlink(root().join("fixtures"), &fixtures).unwrap();
    if !fixtures.exists() {
        return;
    }
    let (mut tried, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (command, expected) in blocks(&text) {
            let found = printed(&command, folder.path());
            tried += 1;
            if let Err(why) = compare(&expected, &found) {
                let page = page.file_name().unwrap_or_default().display();
                wrong.push(format!("{page}: {command}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 10, "{tried} blocks");
}

fn printed(command: &str, folder: &Path) -> Vec<String> {
    let line = command.replacen("chipless", env!("CARGO_BIN_EXE_chipless"), 1);
    let done = Command::new("sh")
        .args(["-c", &line])
        .current_dir(folder)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    text.trim_end().lines().map(str::to_owned).collect()
}

#[test]
fn patterns_fit_what_they_should() {
    assert!(fits("a … c", "a b c") && fits("a …", "a b c") && !fits("a … d", "a b c"));
    assert!(fits("abc", "abc") && !fits("abc", "abcd"));
    assert_eq!(without_seconds("16 trials, 0.007 s"), "16 trials, ? s");
}

#[test]
fn every_page_is_in_the_book_and_in_the_readme() {
    let text = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (book, readme) = (text("docs/SUMMARY.md"), text("README.md"));
    for page in pages() {
        let name = page.file_name().unwrap().to_str().unwrap();
        if ["README.md", "SUMMARY.md"].contains(&name) {
            continue;
        }
        assert!(book.contains(&format!("({name})")), "the book lacks {name}");
        let page = std::fs::read_to_string(&page).unwrap();
        let is_marker = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
        assert!(
            !page.lines().any(is_marker),
            "{name} has two versions of a part"
        );
        let is_linked = name == "index.md" || readme.contains(&format!("(docs/{name})"));
        assert!(is_linked, "the README lacks {name}");
    }
}

/// Rows of a table whose third cell is a command and whose fourth is what it prints.
fn rows(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = line
            .split(" | ")
            .skip(2)
            .map(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
        let (command, prints) = (cells.next()??, cells.next()??);
        cells
            .next()
            .is_none()
            .then(|| (command.to_owned(), prints.to_owned()))
    })
}

#[test]
fn every_bullet_of_the_notes_on_the_device_shows_as_its_page_says() {
    let folder = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root().join("fixtures"), folder.path().join("fixtures")).unwrap();
    if !folder.path().join("fixtures").exists() {
        return;
    }
    let text = std::fs::read_to_string(root().join("docs/npu-device.md")).unwrap();
    let mut printed_by = std::collections::BTreeMap::new();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (command, expected) in rows(&text) {
        let found = printed_by
            .entry(command.clone())
            .or_insert_with(|| printed(&format!("chipless {command}"), folder.path()));
        tried += 1;
        if !found.iter().any(|line| line.contains(&expected)) {
            wrong.push(format!("{command}: no line with {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 30, "{tried} rows");
}
