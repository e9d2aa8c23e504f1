//! A comparison in words.

use super::{Comparison, LEAST_NORMAL};
use crate::statistics::number;
use crate::style::clean;

/// The step of float16 below its numbers of full precision.
const STEP: f64 = LEAST_NORMAL / 1024.0;

impl Comparison {
    /// What rounding explains, where the model was computed with it.
    fn rounding_text(&self) -> String {
        let Some(rounding) = self.rounding.filter(|_| !self.agrees) else {
            return String::new();
        };
        let error = self.relative_error.unwrap_or(f64::INFINITY);
        let explains = if error <= 2.0 * rounding {
            "so this is rounding"
        } else {
            "so rounding alone does not explain it"
        };
        let off = percent(rounding);
        format!("; the model itself is {off} off in float16, {explains}")
    }

    /// That inputs give nothing but numbers which float16 hardly holds.
    fn subnormal_text(&self) -> Option<String> {
        let least = LEAST_NORMAL;
        let is_subnormal =
            self.largest_expected > 0.0 && self.largest_expected.max(self.max_abs) < least;
        let (least, step) = (number(least), number(STEP));
        (!self.agrees && is_subnormal).then(|| {
            format!("; all expected numbers are below {least}, where float16 has steps of {step}, so these inputs test little: pass real ones (--input)")
        })
    }

    /// One sentence for people.
    pub fn line(&self) -> String {
        if self.differing == 0 {
            return "equal".to_owned();
        }
        let Comparison {
            tolerance,
            beyond,
            max_abs,
            index,
            elements,
            differing,
            ..
        } = self;
        let from = self.task.as_ref().map_or(String::new(), |task| {
            format!(", computed by {}", clean(task))
        });
        let within = tolerance.words();
        let verdict = if self.agrees {
            format!("agrees{within}")
        } else if *beyond == 0 {
            "does not agree in its smaller numbers".to_owned()
        } else if within.is_empty() {
            "does not agree".to_owned()
        } else {
            let are = if *beyond == 1 {
                "element is"
            } else {
                "elements are"
            };
            format!("does not agree{within}: {beyond} {are} beyond it")
        };
        // Counts and indices have no usual size.
        let is_exact = tolerance.relative == 0.0 && tolerance.absolute == 0.0;
        let most = self.max_relative.filter(|_| !is_exact);
        let most = most.map_or_else(String::new, |part| {
            let at = &self.max_relative_index;
            let place = if at == index {
                String::new()
            } else {
                format!(" (at {at:?})")
            };
            format!(", by {} at most{place}", percent(part))
        });
        let expected = self.expected.map_or_else(String::new, |expected| {
            // Where four digits do not tell the two apart, all do.
            let rounded = |value: f64| number(value).parse::<f64>().ok();
            let is_near = |found: f64| *max_abs > 0.0 && rounded(found) == rounded(expected);
            let said = |value: f64| match self.found {
                Some(found) if is_near(found) => value.to_string(),
                _ => number(value),
            };
            let found = self.found.map_or_else(String::new, |found| {
                format!(", and {} is found", said(found))
            });
            format!(", where {} is expected{found}", said(expected))
        });
        let whole = self.relative_error.filter(|_| !is_exact);
        let whole = whole.map_or_else(String::new, |error| {
            let of = match self.not_finite {
                0 => "whole",
                _ => "whole of the others",
            };
            let is_rounding = !self.agrees
                && self.rounding.is_none()
                && self.not_finite == 0
                && error < tolerance.relative;
            let why = if is_rounding {
                ", which is less than the tolerance and mostly rounding (docs/how-to.md, \"Find out why numbers are wrong\")"
            } else {
                ""
            };
            format!("; {} on the {of} (relative error){why}", percent(error))
        });
        let rounding = self.rounding_text();
        let largest = match self.not_finite {
            0 => format!("the largest difference is {}{expected}", number(*max_abs)),
            1 => format!("1 by a NaN or an infinity{expected}"),
            many => format!("{many} by a NaN or an infinity, the first{expected}"),
        };
        let subnormal = self
            .subnormal_text()
            .filter(|_| !is_exact)
            .unwrap_or_default();
        // An output that is judged by its large numbers may be wrong in its small ones.
        let hidden = self.worst_slice.as_ref().filter(|slice| {
            *beyond == 0 && tolerance.relative > 0.0 && slice.relative_error > tolerance.relative
        });
        let hidden = hidden.map_or_else(String::new, |slice| {
            format!(
                ", but {} at index {} of axis {}, whose numbers are smaller than others (root mean square {})",
                percent(slice.relative_error),
                slice.index,
                slice.axis,
                number(slice.root_mean_square)
            )
        });
        format!(
            "{verdict}; {differing} of {elements} differ{most}; {largest}, at {index:?}{from}{whole}{rounding}{hidden}{subnormal}"
        )
    }
}

fn percent(part: f64) -> String {
    format!("{} %", number(part * 100.0))
}
