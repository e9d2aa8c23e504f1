//! The machine as data: clocks, rates and latencies from `machine.toml`.

use crate::dpu::DpuFigures;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Sections of the device around the programs. Whoever simulates that reads them; a program's time rests on none of them.
const DEVICE: [&str; 22] = [
    "device",
    "ring",
    "host",
    "context_map",
    "doorbell",
    "firmware",
    "scheduler",
    "preempt",
    "mmu",
    "cache",
    "port0",
    "port1",
    "port2",
    "port3",
    "group0",
    "group1",
    "network",
    "ddr",
    "watchdog",
    "reset",
    "power",
    "fifo",
];

/// The NPU4's figures. See `machine.toml` for units and sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Machine {
    /// As printed.
    pub name: String,
    /// Clocks.
    pub clock: Clocks,
    /// DMA engines.
    pub dma: DmaFigures,
    /// DPUs.
    pub dpu: DpuFigures,
    /// SHAVE kernels.
    pub shave: ShaveFigures,
    /// What an inference takes besides its tasks.
    pub inference: Inference,
    /// What figures are that silicon was measured to have, by their names. Whoever sets the machine up takes them or not.
    #[serde(default)]
    silicon: IgnoredAny,
    /// The device around the programs.
    #[serde(flatten)]
    device: BTreeMap<String, toml::Value>,
}

/// Clocks in MHz.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// DPU, before [`scale`](Clocks::scale).
    dpu: f64,
    /// SHAVE, before [`scale`](Clocks::scale).
    shave: f64,
    /// CMX, before [`scale`](Clocks::scale).
    cmx: f64,
    /// A factor on all of them.
    pub scale: f64,
}

impl Clocks {
    /// Clock of the DPUs in MHz.
    pub fn dpu(&self) -> f64 {
        self.dpu * self.scale
    }

    /// Clock of the SHAVEs in MHz.
    pub fn shave(&self) -> f64 {
        self.shave * self.scale
    }

    /// Clock of the CMX, and of the ports by which DMA engines reach it, in MHz.
    pub fn cmx(&self) -> f64 {
        self.cmx * self.scale
    }
}

/// DMA engines. What DDR takes is in ns and bytes per second, whatever the clocks; the rest in cycles of the CMX.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DmaFigures {
    /// Nanoseconds from start to first byte, where DDR takes part.
    pub latency: f64,
    /// Cycles from start to first byte, from CMX to CMX.
    pub cmx_latency: f64,
    /// What a fetch of descriptors costs, as a fraction of the latency.
    pub fetch: f64,
    /// Cycles of a transfer of no bytes.
    pub synchronise: f64,
    /// Bytes per cycle of one transfer.
    pub bytes_per_cycle: f64,
    /// Bytes per second of all transfers together.
    pub ddr_bytes_per_second: f64,
    /// Bytes per second of all transfers of constants together; 0: only those of DDR.
    pub constant_bytes_per_second: f64,
    /// Bytes per second of all transfers from the network's inputs and to its outputs together; 0: only those of DDR.
    pub host_bytes_per_second: f64,
    /// Bytes per second of one transfer from DDR to DDR.
    pub ddr_to_ddr_bytes_per_second: f64,
    /// Bytes that an element of another size than 8 or 16 bits counts as.
    pub odd_element: f64,
    /// MHz of the CMX at which the device's ports, channel groups and network have their bandwidths.
    pub path_clock: f64,
    /// Of the device around the programs.
    #[serde(default)]
    agent: IgnoredAny,
    /// Of the device around the programs.
    #[serde(default)]
    agents_per_tile: IgnoredAny,
}

/// What an inference takes besides its tasks.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inference {
    /// Nanoseconds before its first task.
    pub start: f64,
}

/// SHAVE kernels.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaveFigures {
    /// A factor on all times below.
    pub scale: f64,
    /// MHz at which the times below hold.
    #[serde(alias = "clock")]
    pub reference_clock: f64,
    /// Vectors.
    pub vector: VectorFigures,
    /// Code of kernels.
    pub code: CodeFigures,
    /// Data of kernels that is not in the CMX of their tile.
    pub data: DataFigures,
    /// Kernels that `operations` does not name.
    pub default: ShaveCost,
    /// By operation.
    pub operations: BTreeMap<String, ShaveCost>,
}

/// Vectors of the SHAVEs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorFigures {
    /// Bits of a vector.
    pub bits: f64,
    /// Bits of a vector where the times of kernels hold.
    pub fitted: f64,
}

/// Caches that SHAVEs run code from.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeFigures {
    /// Whether kernels wait for code that is not in the caches.
    pub cold: bool,
    /// Bytes of the instruction cache of a SHAVE.
    pub l1: f64,
    /// Bytes of the cache that they share.
    pub l2: f64,
    /// Equal parts of it, of which code has one, and data another where there are several.
    pub l2_partitions: f64,
    /// Whether code passes it by.
    pub l2_bypass: bool,
    /// Bytes a second from it.
    pub l2_bytes_per_second: f64,
    /// Nanoseconds from start to first byte of code from DDR.
    pub latency: f64,
    /// Bytes a second from DDR.
    pub ddr_bytes_per_second: f64,
}

/// Caches that SHAVEs read data through.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFigures {
    /// Whether kernels wait for data that is not in the caches.
    pub cold: bool,
    /// Bytes of the data cache of a SHAVE.
    pub l1: f64,
    /// Whether data pass the shared cache by; its size and parts are those of [`CodeFigures`].
    pub l2_bypass: bool,
    /// Bytes a second from it.
    pub l2_bytes_per_second: f64,
    /// Nanoseconds from start to first byte from DDR.
    pub latency: f64,
    /// Bytes a second from DDR.
    pub ddr_bytes_per_second: f64,
    /// Bytes a second from the CMX of another tile.
    pub cmx_bytes_per_second: f64,
}

/// What an invocation costs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaveCost {
    /// Microseconds.
    pub fixed: f64,
    /// Microseconds for each byte of the first output.
    pub per_byte: f64,
    /// Microseconds for each byte of the inputs, where these decide.
    #[serde(default)]
    pub per_input_byte: f64,
}

impl ShaveCost {
    /// Names and values.
    pub(crate) const fn parts(&self) -> [(&'static str, f64); 3] {
        [
            ("fixed", self.fixed),
            ("per_byte", self.per_byte),
            ("per_input_byte", self.per_input_byte),
        ]
    }

    /// Whether bytes cost anything.
    pub(crate) fn is_by_bytes(&self) -> bool {
        self.per_byte != 0.0 || self.per_input_byte != 0.0
    }
}

/// The machines that come with Chipless: name and file. A generation names its own.
pub const MACHINES: &[(&str, &str)] = &[
    ("npu4", include_str!("../machine.toml")),
    ("npu5", include_str!("../machine-5010.toml")),
    ("npu3", include_str!("../machine-3720.toml")),
];

impl Machine {
    /// Reads a machine file; the error says where and what.
    pub fn from_toml(text: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|e| e.to_string())?;
        if let Some(name) = machine
            .device
            .keys()
            .find(|k| !DEVICE.contains(&k.as_str()))
        {
            return Err(format!("unknown section `{name}`"));
        }
        let positive = [
            ("clock.dpu", machine.clock.dpu),
            ("clock.shave", machine.clock.shave),
            ("clock.cmx", machine.clock.cmx),
            ("clock.scale", machine.clock.scale),
            ("dma.bytes_per_cycle", machine.dma.bytes_per_cycle),
            ("dma.ddr_bytes_per_second", machine.dma.ddr_bytes_per_second),
            (
                "dma.ddr_to_ddr_bytes_per_second",
                machine.dma.ddr_to_ddr_bytes_per_second,
            ),
            ("dma.path_clock", machine.dma.path_clock),
            ("shave.reference_clock", machine.shave.reference_clock),
            ("shave.vector.bits", machine.shave.vector.bits),
            ("shave.vector.fitted", machine.shave.vector.fitted),
            ("shave.code.l2_partitions", machine.shave.code.l2_partitions),
            (
                "shave.code.l2_bytes_per_second",
                machine.shave.code.l2_bytes_per_second,
            ),
            (
                "shave.code.ddr_bytes_per_second",
                machine.shave.code.ddr_bytes_per_second,
            ),
            (
                "shave.data.l2_bytes_per_second",
                machine.shave.data.l2_bytes_per_second,
            ),
            (
                "shave.data.ddr_bytes_per_second",
                machine.shave.data.ddr_bytes_per_second,
            ),
            (
                "shave.data.cmx_bytes_per_second",
                machine.shave.data.cmx_bytes_per_second,
            ),
        ];
        for (name, value) in positive.into_iter().chain(machine.dpu.rates()) {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} is {value}; a positive number is needed"));
            }
        }
        let operations = machine
            .shave
            .operations
            .values()
            .chain([&machine.shave.default])
            .flat_map(|c| [c.fixed, c.per_byte, c.per_input_byte]);
        let times = [
            machine.dma.latency,
            machine.dma.cmx_latency,
            machine.dma.fetch,
            machine.dma.synchronise,
            machine.dma.odd_element,
            machine.dma.constant_bytes_per_second,
            machine.dma.host_bytes_per_second,
            machine.shave.scale,
            machine.shave.code.l1,
            machine.shave.code.l2,
            machine.shave.code.latency,
            machine.shave.data.l1,
            machine.shave.data.latency,
            machine.inference.start,
        ]
        .into_iter()
        .chain(operations)
        .chain(machine.dpu.all());
        if let Some(value) = times.into_iter().find(|v| !(v.is_finite() && *v >= 0.0)) {
            return Err(format!(
                "a time or a bound is {value}; it cannot be negative or infinite"
            ));
        }
        Ok(machine)
    }
}

impl Default for Machine {
    /// The machine file that Chipless comes with.
    fn default() -> Machine {
        Machine::from_toml(MACHINES[0].1)
            .expect("the machine file that is compiled in is valid: a test reads it")
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;

    #[test]
    fn the_machine_file_that_comes_with_chipless_is_valid() {
        assert_eq!(Machine::default().name, "NPU4");
    }

    #[test]
    fn a_misspelt_figure_is_named() {
        let text = include_str!("../machine.toml").replace("latency =", "latancy =");
        let error = Machine::from_toml(&text).unwrap_err();
        assert!(error.contains("latancy"), "{error}");
    }
}
