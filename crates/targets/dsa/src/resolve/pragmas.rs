//! Pragmas: of sub-graphs, of ports, of registers.

use super::{Resolver, register_of, rules, suggestion};
use crate::syntax::Span;
use crate::syntax::ast::{Name, Pragma};

impl<'a> Resolver<'a, '_> {
    pub(super) fn pragma(&mut self, pragma: Pragma<'a>) {
        match pragma {
            Pragma::Other(_) => {}
            Pragma::Group(key, value) => self.group_pragma(key, value),
            Pragma::Register(register, name) => match register_of(register.text) {
                Some(index) => self
                    .registers
                    .entry(name.text)
                    .or_default()
                    .push((index, register.span)),
                None => self.report(
                    &rules::UNDEFINED,
                    register.span,
                    format!(
                        "`{}` is no register; there are `$Reg0` to `$Reg7`",
                        register.text
                    ),
                ),
            },
            Pragma::Port(key, value) => self.port_pragma(key, value),
        }
    }

    fn group_pragma(&mut self, key: Name<'a>, value: Option<u64>) {
        let group = self.group();
        let group = &mut self.graph.groups[group];
        match (key.text, value) {
            ("frequency", Some(value)) => group.frequency = value,
            ("unroll", Some(value)) => group.unroll = value,
            ("temporal", _) => group.temporal = true,
            ("frequency" | "unroll", None) => {
                self.report(
                    &rules::PRAGMA_VALUE,
                    key.span,
                    format!("`{}` needs a whole number", key.text),
                );
            }
            _ => {
                let hint = suggestion(key.text, ["frequency", "unroll", "temporal"]);
                self.report(
                    &rules::PRAGMA_KEY,
                    key.span,
                    format!("`{}` says nothing about a sub-graph{hint}", key.text),
                );
            }
        }
    }

    fn port_pragma(&mut self, key: Name<'a>, value: Name<'a>) {
        let number = value
            .text
            .trim_end_matches(['f', 'F', 'l', 'L', 'u', 'U'])
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0);
        let pragmas = &mut self.pragmas;
        let slot = match key.text {
            "cmd" => &mut pragmas.cmd,
            "repeat" => &mut pragmas.repeat,
            "reuse" => &mut pragmas.reuse,
            "conc" => &mut pragmas.conc,
            "src" | "dest" | "op" => {
                self.pending.push(key);
                return;
            }
            _ => {
                let hint = suggestion(
                    key.text,
                    ["cmd", "repeat", "reuse", "conc", "src", "dest", "op"],
                );
                return self.report(
                    &rules::PRAGMA_KEY,
                    key.span,
                    format!("`{}` says nothing about a port{hint}", key.text),
                );
            }
        };
        match number {
            Some(number) => {
                *slot = number;
                self.pending.push(key);
            }
            None => self.report(
                &rules::PRAGMA_VALUE,
                value.span,
                format!("`{}` takes a number, not `{}`", key.text, value.text),
            ),
        }
    }

    pub(super) fn aliases_unused(&mut self) {
        for name in std::mem::take(&mut self.aliases) {
            if self.symbols.is_unused(name.text, name.span) {
                self.report(
                    &rules::UNUSED_NAME,
                    name.span,
                    format!("nothing uses `{}`", name.text),
                );
            }
        }
    }

    pub(super) fn pragmas_lost(&mut self) {
        for key in std::mem::take(&mut self.pending) {
            self.report(
                &rules::PRAGMA_LOST,
                key.span,
                format!("no port follows `{}`", key.text),
            );
        }
        let mut lost: Vec<(Span, &str)> = self
            .registers
            .iter()
            .flat_map(|(name, all)| all.iter().map(|(_, span)| (*span, *name)))
            .collect();
        lost.sort_unstable();
        for (span, name) in lost {
            self.report(
                &rules::PRAGMA_LOST,
                span,
                format!("no result `{name}` follows"),
            );
        }
    }
}
