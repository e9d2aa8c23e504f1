//! Function tables of the Activation engine: segments of cubics, control words that lead to them, and the profile that describes the
//! functions. The format is that of the sets in compiled programs; docs/neuron-files.md describes it.

use crate::json::Source;
use crate::read::{EngineRoom, Table};
use crate::rules::tables as rules;
use chipless_model::{Finding, Limits, Place, Rule, clip};
use serde::Deserialize;

/// Bytes of a segment: four coefficients and the point that they hold around, as binary32, and 12 zeros.
const SEGMENT_BYTES: usize = 32;
/// Segments of a set, at most.
const MOST_SEGMENTS: u64 = 2048;

/// The profile of a set, as far as it says how the tables hang together.
#[derive(Deserialize, Default)]
#[expect(clippy::struct_field_names, reason = "as in the file")]
struct Profile {
    bkt_entry_cnt: Option<u64>,
    ctl_entry_cnt: Option<u64>,
    #[serde(default)]
    profile_meta_data: Vec<Function>,
}

#[derive(Deserialize)]
struct Function {
    func_id: Option<u64>,
}

/// The members of a set.
struct Set<'r, 'a> {
    profile: &'r Table<'a>,
    segments: Option<&'r Table<'a>>,
    control: Option<&'r Table<'a>>,
}

/// The sets that an engine loads and whose profile the file holds.
fn sets<'r, 'a>(room: &'r EngineRoom<'a>) -> impl Iterator<Item = Set<'r, 'a>> {
    let of = move |set: &'r Table<'a>, role: &'static str| {
        room.tables
            .iter()
            .find(move |t| t.set == set.set && &*t.role == role)
    };
    let profiles = room.tables.iter().filter(|t| &*t.role == "profile_json");
    profiles.map(move |profile| Set {
        profile,
        segments: of(profile, "bkt_bin"),
        control: of(profile, "ctrl_bin"),
    })
}

fn profile(set: &Set<'_, '_>) -> Option<Profile> {
    serde_json::from_slice(set.profile.member.bytes).ok()
}

/// Which functions the loaded sets have; `None` where no set is loaded, or where one cannot be read.
pub(crate) fn functions(room: &EngineRoom<'_>) -> Option<[bool; 256]> {
    let mut known = None;
    for set in sets(room) {
        let known = known.get_or_insert([false; 256]);
        for function in profile(&set)?.profile_meta_data {
            let id = function
                .func_id
                .and_then(|id| known.get_mut(usize::try_from(id).ok()?));
            *id? = true;
        }
    }
    known
}

/// What is wrong with the tables of an engine.
pub(crate) fn check(room: &EngineRoom<'_>, limits: &Limits) -> Vec<Finding> {
    let mut findings = Vec::new();
    for set in sets(room) {
        check_set(&set, limits, &mut findings);
    }
    findings
}

fn check_set(set: &Set<'_, '_>, limits: &Limits, findings: &mut Vec<Finding>) {
    let member = set.profile.member;
    let source = match Source::new(member.path, member.bytes, limits) {
        Ok(source) => source,
        Err(finding) => return findings.push(*finding),
    };
    let profile: Profile = match source.parse() {
        Ok(profile) => profile,
        Err(finding) => return findings.push(*finding),
    };
    let mut report = |rule: &'static Rule, field: &str, message: String| {
        let message = clip(&message, 300).into_owned();
        findings.push(rule.at(source.place(source.text, "", field), message));
    };
    let mut seen = [false; 256];
    for (index, function) in profile.profile_meta_data.iter().enumerate() {
        let field = format!("/profile_meta_data/{index}/func_id");
        let Some(place) = function
            .func_id
            .and_then(|id| seen.get_mut(usize::try_from(id).ok()?))
        else {
            continue;
        };
        if std::mem::replace(place, true) {
            let id = function.func_id.unwrap_or_default();
            report(
                &rules::FUNCTION_TWICE,
                &field,
                format!("two functions of the set have func_id {id}"),
            );
        }
    }
    let mut segments = None;
    if let Some(table) = set.segments {
        let size = table.member.bytes.len();
        let count = (size / SEGMENT_BYTES) as u64;
        if !size.is_multiple_of(SEGMENT_BYTES) {
            let message = format!(
                "`{}` has {size} bytes, no whole number of records of {SEGMENT_BYTES}",
                table.member.path
            );
            report(&rules::TABLE_SIZE, "/bkt_bin", message);
        } else if profile.bkt_entry_cnt.is_some_and(|said| said != count) {
            let message = format!(
                "bkt_entry_cnt is {}, `{}` has {count} records",
                profile.bkt_entry_cnt.unwrap_or_default(),
                table.member.path
            );
            report(&rules::TABLE_COUNT, "/bkt_entry_cnt", message);
        }
        if count > MOST_SEGMENTS {
            report(
                &rules::TABLE_SIZE,
                "/bkt_bin",
                format!(
                    "`{}` has {count} segments, a set has at most {MOST_SEGMENTS}",
                    table.member.path
                ),
            );
        }
        segments = Some(count);
    }
    let Some(control) = set.control else { return };
    let (bytes, path) = (control.member.bytes, control.member.path);
    let count = profile.ctl_entry_cnt.unwrap_or(0);
    let record = (bytes.len() as u64).checked_div(count).unwrap_or(0);
    let is_whole = if count == 0 {
        bytes.is_empty()
    } else {
        record * count == bytes.len() as u64
    };
    if profile.ctl_entry_cnt.is_some()
        && (!is_whole || (count > 0 && !matches!(record, 4 | 8 | 16 | 32 | 64)))
    {
        let message = format!(
            "ctl_entry_cnt is {count}, `{path}` has {} bytes: no records of 16 or 32",
            bytes.len()
        );
        return report(&rules::TABLE_COUNT, "/ctl_entry_cnt", message);
    }
    for (index, word) in bytes.chunks_exact(record.max(4) as usize).enumerate() {
        let Some(word) = word.first_chunk().map(|word| u32::from_le_bytes(*word)) else {
            continue;
        };
        let (first, shift, size) = (word & 0x7ff, word >> 11 & 0x1f, word >> 16 & 0xff);
        let end = u64::from(first) + (1 << size.min(32));
        let leads = segments.is_none_or(|segments| end <= segments);
        if !leads || word >> 24 != 0 || (size != 0 && shift + size != 23) {
            let message = format!(
                "control word {index} ({word:#010x}) leads to segments {first} to {end} by a shift of {shift}; there are {}",
                segments.unwrap_or_default()
            );
            let place = Place::bytes(index as u64 * record, 4).in_part(path.to_owned());
            findings.push(rules::CONTROL_WORD.at(place, message));
            return;
        }
    }
}
