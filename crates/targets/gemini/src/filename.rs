//! What the name of a file says.

/// Facts that front ends and schedulers write into file names: `…_b4_c1_bw16_…`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameFacts {
    /// Batch.
    pub batch: Option<u32>,
    /// Cores.
    pub cores: Option<u32>,
    /// DRAM bandwidth, GiB/s.
    pub dram_bandwidth: Option<u32>,
}

impl NameFacts {
    /// Reads a file name; parts of a path before the last are ignored.
    pub fn parse(path: &str) -> NameFacts {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let mut facts = NameFacts::default();
        for part in name.split(['_', '.', '-']) {
            let digits = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
            let Ok(number) = digits.parse::<u32>() else {
                continue;
            };
            let slot = match part.strip_suffix(digits) {
                Some("b") => &mut facts.batch,
                Some("c") => &mut facts.cores,
                Some("bw") => &mut facts.dram_bandwidth,
                _ => continue,
            };
            // The last one counts: a model may have a name of this form, too.
            *slot = Some(number);
        }
        facts
    }

    /// Batch, cores and DRAM bandwidth of a name that says all three, as the schedulers of the spec's dialect give names.
    pub fn scheduled(&self) -> Option<[u32; 3]> {
        Some([self.batch?, self.cores?, self.dram_bandwidth?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_schedulers_are_understood() {
        let facts = |batch, cores, dram_bandwidth| NameFacts {
            batch,
            cores,
            dram_bandwidth,
        };
        let schedule = NameFacts::parse("a_b9/int8_net.onnx.sim_b4_c1_bw16_stschedule.json");
        assert_eq!(
            (schedule, schedule.scheduled()),
            (facts(Some(4), Some(1), Some(16)), Some([4, 1, 16]))
        );
        let other = NameFacts::parse("resnet_b1_2x2_LP.json.gz");
        assert_eq!(
            (other, other.scheduled()),
            (facts(Some(1), None, None), None)
        );
        assert_eq!(NameFacts::parse("schedule.json"), facts(None, None, None));
        assert_eq!(
            NameFacts::parse("x_b0_bw99999999999.json"),
            facts(Some(0), None, None)
        );
    }
}
