//! "Did you mean": names that are close to a mistyped one.

/// The candidate that a mistyped name was probably meant to be.
pub fn closest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let typed = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let name = candidate.to_lowercase();
            // The last part of a name with dots is as good as all of it, and so are its parts in another order.
            let is_last = name
                .strip_suffix(&typed)
                .is_some_and(|rest| rest.ends_with('.'));
            let is_turned = typed.contains('.') && typed.split('.').eq(name.rsplit('.'));
            (
                if is_last || is_turned || abbreviates(&typed, &name) {
                    0
                } else {
                    strsim::osa_distance(&typed, &name)
                },
                candidate,
            )
        })
        // A name that has nothing in common with the typed one is no slip of it.
        .filter(|(distance, _)| *distance == 0 || *distance < typed.chars().count())
        .filter(|(distance, candidate)| *distance <= candidate.chars().count().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether one of two names is the other in short, word by word: `zero_pt` of `zero_point`.
fn abbreviates(one: &str, other: &str) -> bool {
    let is_word = |(short, long): (&str, &str)| {
        let mut letters = long.chars();
        let is_within = short
            .chars()
            .all(|letter| letters.any(|other| other == letter));
        short == long || short.len() > 1 && is_within && short.chars().next() == long.chars().next()
    };
    let words = |name: &str| name.split('_').count();
    let is_of = |short: &str, long: &str| short.split('_').zip(long.split('_')).all(is_word);
    words(one) > 1 && words(one) == words(other) && (is_of(one, other) || is_of(other, one))
}

/// `; did you mean "x"?`, or nothing. A name that contains the typed one may be meant as well.
pub fn hint<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    hint_with(name, candidates, "")
}

/// The same where something stands behind the name, which is right: `; did you mean "x[3]"?`.
pub fn hint_with<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    behind: &str,
) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let typed = name.to_lowercase();
    let holds = |candidate: &&str| !typed.is_empty() && candidate.to_lowercase().contains(&typed);
    let mut holders = candidates.iter().copied().filter(holds);
    closest(name, candidates.iter().copied())
        .or_else(|| holders.next())
        .map(|found| format!("; did you mean \"{found}{behind}\"?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_slips_are_forgiven() {
        let names = ["input_ids", "attention_mask", "x"];
        assert_eq!(closest("inputids", names), Some("input_ids"));
        assert_eq!(closest("Attention_Msak", names), Some("attention_mask"));
        assert_eq!(closest("X", names), Some("x"));
        assert_eq!(closest("weights", names), None);
        assert_eq!(closest("zero_point", ["scale", "zero_pt"]), Some("zero_pt"));
        assert_eq!(
            closest("zero_pt", ["scale", "zero_point"]),
            Some("zero_point")
        );
        assert_eq!(closest("token_type", names), None);
        assert_eq!(
            closest("pe", ["sg00.act", "sg00.pe", "sg01.pe"]),
            Some("sg00.pe")
        );
        assert_eq!(
            closest("shave.clock", ["shave.scale", "clock.shave"]),
            Some("clock.shave")
        );
        assert_eq!(hint("inputids", names), "; did you mean \"input_ids\"?");
        assert_eq!(hint("weights", []), "");
        assert_eq!(closest("C", ["B", "latchedC"]), None);
        assert_eq!(hint("c", ["B", "latchedC"]), "; did you mean \"latchedC\"?");
    }
}
