//! Machines: clocks, memories, rates and latencies, from a TOML file that users copy and edit.

use chipless_model::Time;
use serde::Deserialize;

/// What the hardware does in how much time. The files under `machines/` give the source of every figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name: `trn2`.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Clocks of the engines in MHz.
    pub clock: Clocks,
    /// The matrix engine.
    pub tensor: Tensor,
    /// The engines that work element by element.
    pub element_wise: ElementWise,
    /// Sizes and rates of memories.
    pub memory: Memory,
    /// Transfers.
    pub dma: Transfers,
    /// How many of what.
    pub limits: Counts,
}

/// Clocks in MHz.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clocks {
    /// Matrix engine.
    pub tensor: f64,
    /// Vector engine.
    pub vector: f64,
    /// Scalar engine.
    pub scalar: f64,
    /// `GpSimd` engine.
    pub gpsimd: f64,
    /// Sync engine.
    pub sync: f64,
}

/// The matrix engine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tensor {
    /// Cycles from one product to the next, at least.
    pub interval_min: f64,
    /// How many times as long products of binary32 take.
    pub fp32_factor: f64,
    /// The same for transpositions of binary32.
    pub fp32_transpose_factor: f64,
    /// The same for products of binary32 over few rows of the array.
    pub fp32_short_factor: f64,
    /// How many times faster weights are loaded than multiplied.
    pub load_speedup: f64,
}

/// The engines that work element by element.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElementWise {
    /// Vector engine: nanoseconds of an instruction besides its elements.
    pub vector_start_ns: f64,
    /// Scalar engine: the same, of copies and casts.
    pub scalar_start_ns: f64,
    /// Scalar engine: the same, of activations.
    pub activate_start_ns: f64,
    /// Scalar engine: for each of scale and bias that is read from memory.
    pub operand_read_ns: f64,
    /// Scalar engine: how much earlier an instruction starts if its source is in PSUM. Machine files from before this figure lack it.
    #[serde(default)]
    pub scalar_from_psum_ns: f64,
    /// The same, if its destination is.
    #[serde(default)]
    pub scalar_to_psum_ns: f64,
    /// Scalar engine: a read of the accumulator.
    pub accumulator_ns: f64,
    /// `GpSimd`: an instruction besides its elements.
    pub gpsimd_start_ns: f64,
    /// Vector engine: a fill besides its elements.
    pub memset_start_ns: f64,
    /// An immediate moved into a register.
    pub move_ns: f64,
    /// A mask loaded.
    pub mask_ns: f64,
    /// Cycles for an element that is set.
    pub memset_cycles: f64,
    /// Cycles for a reciprocal.
    pub reciprocal_cycles: f64,
    /// Cycles for an element of a scan.
    pub scan_cycles: f64,
    /// Elements that a scan takes as long as, at least.
    pub scan_elements: f64,
    /// `GpSimd`: how many times as long operations on two operands take.
    pub gpsimd_second_operand_factor: f64,
    /// Vector engine: the same.
    pub vector_second_operand_factor: f64,
    /// Bytes of an innermost step up to which elements come at full rate; from twice as many on they come at half.
    pub wide_stride_bytes: f64,
    /// Vector engine: speed of copies of 32-bit elements inside the state buffer.
    pub vector_copy_speedup_32bit: f64,
    /// The same, of 16-bit elements that stay as wide.
    pub vector_copy_speedup_16bit: f64,
    /// The same, of 16-bit elements that become 32-bit ones.
    pub vector_copy_speedup_widening: f64,
    /// Vector engine: speed of operations on two operands, all of them of 16 bits and in the state buffer.
    pub vector_speedup_16bit: f64,
}

/// Sizes and rates of memories.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Bytes of the state buffer in each partition.
    pub sbuf_partition_bytes: u32,
    /// Bytes of PSUM in each partition.
    pub psum_partition_bytes: u32,
    /// Bytes of device memory on a chip.
    pub hbm_bytes: u64,
    /// Of that, what a core can allocate: the memory next to it.
    pub hbm_bytes_per_core: u64,
    /// Its rate.
    pub hbm_bytes_per_second: f64,
}

/// Transfers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfers {
    /// DMA engines of a core: rings of a queue set are spread over them.
    pub engines_per_core: u32,
    /// Peak rate of an engine.
    pub engine_bytes_per_second: f64,
    /// What a descriptor costs its engine besides its bytes.
    pub descriptor_ns: f64,
    /// From the trigger to the first byte.
    pub start_ns: f64,
    /// What a DMA instruction keeps its engine busy where hardware makes the descriptors (scalar and sync engine).
    pub hardware_dge_ns: f64,
    /// The same where software makes them (other engines).
    pub software_dge_ns: f64,
    /// Partitions that one DMA engine serves.
    pub partitions_per_engine: u32,
    /// Rate of transposing transfers by that of copies.
    pub transpose_efficiency: f64,
}

/// How many of what.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Semaphores of a core.
    pub semaphores: u32,
    /// Events of a core.
    pub events: u32,
}

/// The machines that come with Chipless: name and file.
pub const MACHINES: &[(&str, &str)] = &[
    ("trn2", include_str!("../machines/trn2.toml")),
    ("trn1", include_str!("../machines/trn1.toml")),
    ("trn3", include_str!("../machines/trn3.toml")),
];

impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column, or which figure is not positive.
    pub fn parse(text: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|e| e.to_string())?;
        let Machine {
            name: _,
            title: _,
            clock: c,
            tensor: t,
            element_wise: e,
            memory: m,
            dma: d,
            limits: _,
        } = &machine;
        let figures = [
            ("clock.tensor", c.tensor),
            ("clock.vector", c.vector),
            ("clock.scalar", c.scalar),
            ("clock.gpsimd", c.gpsimd),
            ("clock.sync", c.sync),
            ("tensor.interval_min", t.interval_min),
            ("tensor.fp32_factor", t.fp32_factor),
            ("tensor.fp32_transpose_factor", t.fp32_transpose_factor),
            ("tensor.load_speedup", t.load_speedup),
            ("element_wise.vector_start_ns", e.vector_start_ns),
            ("element_wise.scalar_start_ns", e.scalar_start_ns),
            ("element_wise.activate_start_ns", e.activate_start_ns),
            ("element_wise.gpsimd_start_ns", e.gpsimd_start_ns),
            ("element_wise.wide_stride_bytes", e.wide_stride_bytes),
            (
                "element_wise.vector_copy_speedup_32bit",
                e.vector_copy_speedup_32bit,
            ),
            (
                "element_wise.vector_copy_speedup_16bit",
                e.vector_copy_speedup_16bit,
            ),
            (
                "element_wise.vector_copy_speedup_widening",
                e.vector_copy_speedup_widening,
            ),
            ("element_wise.vector_speedup_16bit", e.vector_speedup_16bit),
            ("memory.hbm_bytes_per_second", m.hbm_bytes_per_second),
            ("dma.engines_per_core", f64::from(d.engines_per_core)),
            ("dma.engine_bytes_per_second", d.engine_bytes_per_second),
            ("dma.descriptor_ns", d.descriptor_ns),
            (
                "dma.partitions_per_engine",
                f64::from(d.partitions_per_engine),
            ),
            ("dma.transpose_efficiency", d.transpose_efficiency),
        ];
        match figures
            .iter()
            .find(|(_, figure)| !(figure.is_finite() && *figure > 0.0))
        {
            Some((name, figure)) => Err(format!("{name} is {figure}, expected a positive number")),
            None => Ok(machine),
        }
    }

    /// The machine that comes with Chipless under this name.
    pub fn named(name: &str) -> Option<Machine> {
        let (_, text) = MACHINES.iter().find(|(known, _)| *known == name)?;
        Machine::parse(text).ok()
    }
}

impl Transfers {
    /// What a descriptor costs its engine besides its bytes.
    pub fn descriptor(&self) -> Time {
        Time::from_ns(self.descriptor_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_that_come_along_are_sound() {
        for (name, text) in MACHINES {
            let machine = Machine::parse(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(machine.name, *name);
        }
    }

    /// 32 KiB in four rows through one engine took 1416 ns on the device.
    #[test]
    fn a_measured_transfer_takes_as_long_as_it_took() {
        let dma = Machine::named("trn2").expect("known").dma;
        let ns = 4.0 * (dma.descriptor().ns() + 8192.0 / dma.engine_bytes_per_second * 1e9);
        assert!((ns - 1416.0).abs() < 15.0, "{ns} ns");
    }

    #[test]
    fn figures_must_make_sense() {
        let (_, text) = MACHINES[0];
        let broken = text.replace("tensor = 2400", "tensor = 0");
        assert_eq!(
            Machine::parse(&broken),
            Err("clock.tensor is 0, expected a positive number".to_owned())
        );
        assert!(
            Machine::parse(&text.replace("start_ns", "begin_ns"))
                .is_err_and(|e| e.contains("begin_ns"))
        );
    }
}
