//! Meshes that need no file: `mesh4x4` and the like, and what each key of a machine file of the scheduler means.

use crate::machine::Machine;
use serde_json::Value;

/// Columns of a band of the order of cores, at most, as SET's own configurations have them.
const BAND: usize = 4;

/// A key of the machine file: its path, the unit of its value, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Path of names: `dram.bytes_per_cycle`.
    pub key: &'static str,
    /// Unit of the value; `1` of numbers and texts without one.
    pub unit: &'static str,
    /// What it means, and where the value of the ready-made meshes comes from where that is not SET.
    pub meaning: &'static str,
}

macro_rules! fields {
    ($($key:literal, $unit:literal, $meaning:literal;)*) => {
        /// The keys of a machine file with NVDLA-like cores (`polar`), in its order. All are required that do not say otherwise.
        pub const FIELDS: &[Field] = &[$(Field { key: $key, unit: $unit, meaning: $meaning }),*];
    };
}

fields! {
    "name", "1", "name of the machine, for reports";
    "mesh", "cores", "[columns, rows] of the mesh";
    "stride", "columns", "cores are numbered in bands of this many columns, row by row, every second band upwards; a layer gets cores that follow each other. It must divide the columns";
    "clock_hz", "Hz", "clock of cores, links and DRAM interface; every cycle below is one of it";
    "dram.ports", "1", "cores at which DRAM meets the mesh: \"columns\" for all of the first and last column, or a list of [column, row] from 0";
    "dram.bytes_per_cycle", "bytes/cycle", "bandwidth of DRAM, all ports together (SET: 1 for each core of 2 TOPS)";
    "dram.pj_per_byte", "pJ/byte", "energy of a byte read from or written to DRAM";
    "noc.bytes_per_cycle", "bytes/cycle", "bandwidth of a link between neighbours, each direction";
    "noc.pj_per_byte_hop", "pJ/byte", "energy of a byte over one link";
    "noc.cycles_per_hop", "cycles", "from a core to its neighbour, in the replay only; 0 where it is left out";
    "l2.bytes", "bytes", "scratchpad (L2) of a core: feature maps, and weights on their way";
    "l2.read_pj", "pJ/byte", "energy of reading L2";
    "l2.write_pj", "pJ/byte", "energy of writing L2";
    "l2.bytes_per_cycle", "bytes/cycle", "bandwidth of L2";
    "weight_buffer.banks", "banks", "weight buffer of a core: one bank for each group of multipliers (the scheduler IR: 64)";
    "weight_buffer.bytes_per_bank", "bytes", "size of such a bank (chosen by Chipless: SET has no such buffer)";
    "vector.lanes", "operations/cycle", "vector unit: element-wise operations of a core in a cycle";
    "vector.pj_per_op", "pJ", "energy of such an operation";
    "ofmap_stream_bytes", "bytes", "part of L2 through which results stream to DRAM while a layer runs";
    "core.kind", "1", "\"polar\" (NVDLA-like), or \"eyeriss\" (row-stationary), which has no lanes and vector, and the buffers al1, wl1 and pl1";
    "core.array", "units", "[along input channels, along output channels] of the units of a core; of an eyeriss core [columns, rows]";
    "core.lanes", "channels", "output channels of a unit";
    "core.vector", "channels", "input channels of a unit: it has lanes × vector multipliers";
    "core.mac_pj", "pJ", "energy of a multiplication";
    "core.bus.bytes_per_cycle", "bytes/cycle", "bandwidth of the bus between units";
    "core.bus.pj_per_byte", "pJ/byte", "energy of a byte over that bus";
    "core.buffers.al1.bytes", "bytes", "activations of a unit";
    "core.buffers.al1.read_pj", "pJ/byte", "energy of reading them";
    "core.buffers.al1.write_pj", "pJ/byte", "energy of writing them";
    "core.buffers.wl1.bytes", "bytes", "weights of a unit";
    "core.buffers.wl1.read_pj", "pJ/byte", "energy of reading them";
    "core.buffers.wl1.write_pj", "pJ/byte", "energy of writing them";
    "core.buffers.ol1.bytes", "bytes", "partial sums of a unit";
    "core.buffers.ol1.read_pj", "pJ/byte", "energy of reading them";
    "core.buffers.ol1.write_pj", "pJ/byte", "energy of writing them";
    "core.buffers.ol2.bytes", "bytes", "results of a core before they go to L2";
    "core.buffers.ol2.read_pj", "pJ/byte", "energy of reading them";
    "core.buffers.ol2.write_pj", "pJ/byte", "energy of writing them";
}

/// The machine file of a mesh by its name: `mesh4x4` has 4 columns and 4 rows. Cores, energies and rates are the defaults of SET's published code
/// (NVDLA-like cores of 1024 multipliers, 1 GHz), DRAM grows with the cores. `None`: the name is of another form, or the mesh has too many cores.
pub fn file(name: &str) -> Option<String> {
    let (columns, rows) = name.strip_prefix("mesh")?.split_once('x')?;
    let (columns, rows): (usize, usize) = (columns.parse().ok()?, rows.parse().ok()?);
    let cores = columns.checked_mul(rows)?;
    let stride = (1..=BAND.min(columns))
        .rev()
        .find(|n| columns.is_multiple_of(*n))?;
    let text = format!(
        r#"{{
  "name": "mesh{columns}x{rows}", "mesh": [{columns}, {rows}], "stride": {stride}, "clock_hz": 1000000000,
  "dram": {{"ports": "columns", "bytes_per_cycle": {cores}, "pj_per_byte": 60.0}},
  "noc": {{"bytes_per_cycle": 24, "pj_per_byte_hop": 5.6, "cycles_per_hop": 0}},
  "l2": {{"bytes": 1048576, "read_pj": 1.0537, "write_pj": 1.8722, "bytes_per_cycle": 256}},
  "weight_buffer": {{"banks": 64, "bytes_per_bank": 65536}},
  "vector": {{"lanes": 64, "pj_per_op": 0.0873}},
  "ofmap_stream_bytes": 10240,
  "core": {{
    "kind": "polar", "array": [4, 4], "lanes": 8, "vector": 8, "mac_pj": 0.018,
    "bus": {{"bytes_per_cycle": 16, "pj_per_byte": 0.018}},
    "buffers": {{
      "al1": {{"bytes": 8192, "read_pj": 0.3885, "write_pj": 0.3293}},
      "wl1": {{"bytes": 4096, "read_pj": 0.3053, "write_pj": 0.2471}},
      "ol1": {{"bytes": 2048, "read_pj": 0.6416, "write_pj": 0.5672}},
      "ol2": {{"bytes": 28672, "read_pj": 0.61185, "write_pj": 0.7919}}
    }}
  }}
}}
"#
    );
    Machine::read(&text).ok().map(|_| text)
}

/// The value of each key in a machine file, in the order of [`FIELDS`]; keys that it does not have are left out.
pub fn values(file: &str) -> Vec<(Field, Value)> {
    let machine: Value = serde_json::from_str(file).unwrap_or_default();
    let value = |field: &Field| {
        let pointer = format!("/{}", field.key.replace('.', "/"));
        Some((*field, machine.pointer(&pointer)?.clone()))
    };
    FIELDS.iter().filter_map(value).collect()
}
