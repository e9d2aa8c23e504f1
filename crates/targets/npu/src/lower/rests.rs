//! Which figures of the machine the times of a program rest on.

use super::Lowering;
use crate::kernels::Work;
use chipless_model::TaskId;
use std::collections::{BTreeMap, BTreeSet};

/// Figures that took part.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// Keys, or sections of them.
    keys: BTreeSet<&'static str>,
    /// Tasks of SHAVE kernels by the operation whose cost they take; those without a cost of their own take the default.
    kernels: BTreeMap<Option<&'static str>, Vec<TaskId>>,
}

const DEFAULT: &str = "shave.default";

fn cost_of(operation: &str) -> String {
    format!("shave.operations.{operation}")
}

impl Rests {
    pub(super) fn on(&mut self, keys: impl IntoIterator<Item = &'static str>) {
        self.keys.extend(keys);
    }

    /// On what the SHAVE kernel of a task costs.
    pub(super) fn on_kernel(&mut self, task: TaskId, work: &Work, has_own_cost: bool) {
        if matches!(work, Work::Maintenance(_)) {
            return;
        }
        self.on(["clock.shave", "shave.reference_clock"]);
        let own = match work {
            Work::Known(invocation) if has_own_cost => Some(invocation.operation.name()),
            _ => None,
        };
        self.kernels.entry(own).or_default().push(task);
    }

    /// Tasks by the key of the cost that they take.
    pub(super) fn take_costs(&mut self) -> BTreeMap<String, Vec<TaskId>> {
        let kernels = std::mem::take(&mut self.kernels).into_iter();
        let keyed =
            kernels.map(|(own, tasks)| (own.map_or_else(|| DEFAULT.to_owned(), cost_of), tasks));
        keyed.collect()
    }
}

impl Lowering<'_, '_> {
    /// Keys of the figures that took part. Those that are 0, or a factor of 1, take no time.
    pub(super) fn figures(&self) -> BTreeSet<String> {
        let machine = &self.options.machine;
        let (dpu, shave) = (&machine.dpu, &machine.shave);
        let mut found = BTreeSet::new();
        let mut add = |section: &str, parts: &[(&str, f64)]| {
            let used = parts.iter().filter(|(_, value)| *value != 0.0);
            found.extend(used.map(|(name, _)| format!("{section}.{name}")));
        };
        for key in &self.rests.keys {
            if let Some(parts) = dpu.of(key) {
                add(key, &parts);
            } else if let Some((section, name)) = key.rsplit_once('.') {
                add(section, &[(name, 1.0)]);
            }
        }
        let mut per_byte = false;
        for own in self.rests.kernels.keys() {
            let (key, cost) = match own {
                Some(name) => (cost_of(name), shave.operations.get(*name)),
                None => (DEFAULT.to_owned(), Some(&shave.default)),
            };
            if let Some(cost) = cost {
                add(&key, &cost.parts());
                per_byte |= cost.is_by_bytes();
            }
        }
        if per_byte {
            add("shave.vector", &[("bits", 1.0), ("fitted", 1.0)]);
        }
        let has_kernels = self.rests.keys.contains("clock.shave");
        if has_kernels {
            add("shave", &[("scale", shave.scale - 1.0)]);
            add("shave.code", &[("cold", 1.0)]);
            add("shave.data", &[("cold", 1.0)]);
        }
        let code = [
            "l1",
            "l2",
            "l2_partitions",
            "l2_bypass",
            "l2_bytes_per_second",
        ];
        let data = [
            "l1",
            "l2_bypass",
            "l2_bytes_per_second",
            "cmx_bytes_per_second",
        ];
        let ddr = ["latency", "ddr_bytes_per_second"];
        if has_kernels && shave.code.cold {
            add("shave.code", &code.map(|name| (name, 1.0)));
            add("shave.code", &ddr.map(|name| (name, 1.0)));
        }
        if has_kernels && shave.data.cold {
            add("shave.data", &data.map(|name| (name, 1.0)));
            add("shave.data", &ddr.map(|name| (name, 1.0)));
            add("shave.code", &[("l2", 1.0), ("l2_partitions", 1.0)]);
        }
        add("clock", &[("scale", machine.clock.scale - 1.0)]);
        add("inference", &[("start", machine.inference.start)]);
        found
    }
}
