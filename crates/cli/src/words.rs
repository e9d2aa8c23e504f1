//! What a script can see of how the command line speaks: first lines of help are short, findings say what to do.

use crate::{GROUPS, command};
use std::collections::BTreeSet;

/// Characters of a first line of help, at most.
const LINE: usize = 60;

/// Columns that help is wrapped to. An example that is longer would go on in the next line.
const WIDTH: usize = 100;

/// Words that say too little, or that the field has another word for.
const BANNED: &[&str] = &[
    "None needed",
    "numbers come out",
    "is told of",
    "figures of the machine",
];

fn visit(command: &clap::Command, path: &str, wrong: &mut BTreeSet<String>) {
    let path = format!("{path}{}", command.get_name());
    let about = command.get_about().map(ToString::to_string);
    let mut say = |what: String, text: Option<String>| {
        let text = text.unwrap_or_default();
        if text.is_empty() || text.chars().count() > LINE {
            wrong.insert(format!(
                "{path} {what}: {} characters: {text}",
                text.chars().count()
            ));
        }
        if let Some(banned) = BANNED.iter().find(|banned| text.contains(**banned)) {
            wrong.insert(format!("{path} {what}: \"{banned}\" in: {text}"));
        }
    };
    say("about".to_owned(), about);
    for argument in command.get_arguments().filter(|a| !a.is_hide_set()) {
        // Whose options these are stands behind them.
        let help = argument.get_help().map(ToString::to_string).map(|help| {
            let cut = help.rfind(" (").filter(|_| help.ends_with(')'));
            cut.map_or(help.clone(), |at| help[..at].to_owned())
        });
        say(argument.get_id().to_string(), help);
    }
    for command in command.get_subcommands() {
        visit(command, &format!("{path} "), wrong);
    }
}

#[test]
fn first_lines_of_help_are_short() {
    let mut wrong = BTreeSet::new();
    for command in command().get_subcommands() {
        visit(command, "", &mut wrong);
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn examples_stand_in_one_line() {
    for command in command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let examples = help.lines().filter(|line| line.starts_with("  chipless "));
        for example in examples {
            assert!(example.chars().count() <= WIDTH, "{example}");
        }
    }
}

#[test]
fn every_command_stands_under_one_heading() {
    let command = command();
    let mut all: Vec<&str> = command
        .get_subcommands()
        .map(clap::Command::get_name)
        .collect();
    let mut grouped: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    all.sort_unstable();
    grouped.sort_unstable();
    assert_eq!(grouped, all);
}

#[test]
fn every_finding_says_what_to_do() {
    for rule in chipless::rules() {
        for text in [rule.summary, rule.explanation, rule.remedy] {
            let banned = BANNED.iter().find(|banned| text.contains(**banned));
            assert!(banned.is_none(), "{}: {text}", rule.code);
        }
    }
}
