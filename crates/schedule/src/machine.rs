//! The machine file of the scheduler: mesh, DRAM, network on the chip, buffers, cores, energies.

use serde_json::Value;
use std::fmt;

/// Bytes that something moves in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth(pub f64);

impl Bandwidth {
    /// Cycles for so many bytes, rounded up.
    pub fn cycles(self, bytes: i64) -> i64 {
        if bytes == 0 {
            0
        } else if self.0.fract() == 0.0 {
            (bytes - 1) / self.0 as i64 + 1
        } else {
            ((bytes - 1) as f64 / self.0).floor() as i64 + 1
        }
    }
}

/// A buffer of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Buffer {
    /// Its size.
    pub bytes: i64,
    /// Energy of reading a byte, pJ.
    pub read: f64,
    /// Energy of writing a byte, pJ.
    pub write: f64,
}

/// What a core computes with.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// NVDLA-like: an array of units, each of `lanes` times `vector` multipliers.
    Polar {
        /// Units along the inputs and along the outputs.
        array: [i64; 2],
        /// Output channels of a unit.
        lanes: i64,
        /// Input channels of a unit.
        vector: i64,
        /// Buffers of activations, weights and results at the unit, and of results below L2.
        al1: Buffer,
        /// Weights.
        wl1: Buffer,
        /// Partial sums.
        ol1: Buffer,
        /// Results.
        ol2: Buffer,
    },
    /// Row-stationary (Eyeriss).
    Eyeriss {
        /// Columns and rows.
        array: [i64; 2],
        /// Activations of an element.
        al1: Buffer,
        /// Weights of an element.
        wl1: Buffer,
        /// Partial sums of an element.
        pl1: Buffer,
    },
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Columns and rows of cores.
    pub mesh: [usize; 2],
    /// Columns of a band of the order of cores.
    pub stride: usize,
    /// Cycles in a second.
    pub clock: f64,
    /// Where DRAM meets the mesh: columns and rows.
    pub ports: Vec<[usize; 2]>,
    /// Bandwidth of DRAM.
    pub dram: Bandwidth,
    /// Energy of a byte from or to DRAM, pJ.
    pub dram_energy: f64,
    /// Bandwidth of a link.
    pub link: Bandwidth,
    /// Cycles from a core to the next. SET's model knows none, the replay does.
    pub hop_cycles: f64,
    /// Energy of a byte over a link, pJ.
    pub hop_energy: f64,
    /// The L2 of a core.
    pub l2: Buffer,
    /// Bandwidth of L2.
    pub l2_bandwidth: Bandwidth,
    /// Banks of the weight buffer, and bytes of each.
    pub weight_buffer: [i64; 2],
    /// Operations of the vector unit in a cycle.
    pub vector_lanes: i64,
    /// Energy of an operation of the vector unit, pJ.
    pub vector_energy: f64,
    /// Bytes through which results stream to DRAM.
    pub stream: i64,
    /// Energy of a multiplication, pJ.
    pub mac_energy: f64,
    /// Bandwidth of the bus between units.
    pub bus: Bandwidth,
    /// Energy of a byte over that bus, pJ.
    pub bus_energy: f64,
    /// The array.
    pub array: Array,
}

/// What is wrong with a machine file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong(pub String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// Cores of a mesh, at most.
const MOST_CORES: usize = 4096;

impl Machine {
    /// Reads a machine file; the second part of the result names keys that it does not know.
    ///
    /// # Errors
    /// No JSON, a key that is missing, a value that makes no sense.
    pub fn read(text: &str) -> Result<(Machine, Vec<String>), Wrong> {
        let value: Value = serde_json::from_str(text).map_err(|e| {
            Wrong(format!(
                "expected a mesh as JSON (docs/scheduling.md), found other text: {e}"
            ))
        })?;
        let mut unknown = Vec::new();
        let top = Section {
            value: &value,
            path: String::new(),
        };
        top.only(
            &[
                "name",
                "mesh",
                "stride",
                "clock_hz",
                "dram",
                "noc",
                "l2",
                "weight_buffer",
                "vector",
                "ofmap_stream_bytes",
                "core",
            ],
            &mut unknown,
        )?;
        let mesh = top.pair("mesh")?.map(|v| v as usize);
        if mesh.contains(&0) || mesh[0].saturating_mul(mesh[1]) > MOST_CORES {
            return Err(Wrong(format!(
                "`mesh` is {} x {}; expected 1 to {MOST_CORES} cores",
                mesh[0], mesh[1]
            )));
        }
        let stride = top.whole("stride", 1)? as usize;
        if !mesh[0].is_multiple_of(stride) {
            return Err(Wrong(format!(
                "`stride` is {stride}; expected a divisor of the {} columns of the mesh",
                mesh[0]
            )));
        }
        let (dram, noc, l2) = (
            top.section("dram")?,
            top.section("noc")?,
            top.section("l2")?,
        );
        let (weights, vector, core) = (
            top.section("weight_buffer")?,
            top.section("vector")?,
            top.section("core")?,
        );
        dram.only(&["ports", "bytes_per_cycle", "pj_per_byte"], &mut unknown)?;
        noc.only(
            &["bytes_per_cycle", "pj_per_byte_hop", "cycles_per_hop"],
            &mut unknown,
        )?;
        l2.only(
            &["bytes", "read_pj", "write_pj", "bytes_per_cycle"],
            &mut unknown,
        )?;
        weights.only(&["banks", "bytes_per_bank"], &mut unknown)?;
        vector.only(&["lanes", "pj_per_op"], &mut unknown)?;
        core.only(
            &[
                "kind", "array", "lanes", "vector", "mac_pj", "bus", "buffers",
            ],
            &mut unknown,
        )?;
        let bus = core.section("bus")?;
        bus.only(&["bytes_per_cycle", "pj_per_byte"], &mut unknown)?;
        let machine = Machine {
            name: top.text("name")?.to_owned(),
            mesh,
            stride,
            clock: top.above_zero("clock_hz")?,
            ports: ports(&dram, mesh)?,
            dram: Bandwidth(dram.above_zero("bytes_per_cycle")?),
            dram_energy: dram.not_negative("pj_per_byte")?,
            link: Bandwidth(noc.above_zero("bytes_per_cycle")?),
            hop_cycles: match noc.value.get("cycles_per_hop") {
                Some(_) => noc.not_negative("cycles_per_hop")?,
                None => 0.0,
            },
            hop_energy: noc.not_negative("pj_per_byte_hop")?,
            l2: l2.buffer()?,
            l2_bandwidth: Bandwidth(l2.above_zero("bytes_per_cycle")?),
            weight_buffer: [
                weights.whole("banks", 1)?,
                weights.whole("bytes_per_bank", 1)?,
            ],
            vector_lanes: vector.whole("lanes", 1)?,
            vector_energy: vector.not_negative("pj_per_op")?,
            stream: top.whole("ofmap_stream_bytes", 0)?,
            mac_energy: core.not_negative("mac_pj")?,
            bus: Bandwidth(bus.above_zero("bytes_per_cycle")?),
            bus_energy: bus.not_negative("pj_per_byte")?,
            array: array(&core, &mut unknown)?,
        };
        Ok((machine, unknown))
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.mesh[0] * self.mesh[1]
    }

    /// Multipliers of a core.
    pub fn macs(&self) -> i64 {
        match &self.array {
            Array::Polar {
                array,
                lanes,
                vector,
                ..
            } => array[0] * array[1] * lanes * vector,
            Array::Eyeriss { array, .. } => array[0] * array[1],
        }
    }

    /// Number (row · columns + column) of the core at a place of the order of cores: bands of `stride` columns, row by row
    /// inside a band, every other band from the last row upwards.
    pub fn core_at(&self, place: usize) -> u16 {
        let [columns, rows] = self.mesh;
        let band = place / (self.stride * rows);
        let x = band * self.stride + place % self.stride;
        let y = place / self.stride % rows;
        let y = if band % 2 == 1 { rows - 1 - y } else { y };
        (y * columns + x) as u16
    }
}

fn ports(dram: &Section<'_>, mesh: [usize; 2]) -> Result<Vec<[usize; 2]>, Wrong> {
    let [columns, rows] = mesh;
    let value = dram.get("ports")?;
    if value.as_str() == Some("columns") {
        return Ok([0, columns - 1]
            .iter()
            .flat_map(|x| (0..rows).map(|y| [*x, y]))
            .collect());
    }
    let list = value
        .as_array()
        .filter(|list| !list.is_empty() && list.len() <= MOST_CORES)
        .ok_or_else(|| {
            Wrong(format!(
                "`dram.ports` is {value}; expected \"columns\" or a list of [column, row]"
            ))
        })?;
    list.iter()
        .map(|port| {
            let place: Option<Vec<usize>> = port
                .as_array()
                .and_then(|p| p.iter().map(|v| v.as_u64().map(|v| v as usize)).collect());
            match place.as_deref() {
                Some([x, y]) if *x < columns && *y < rows => Ok([*x, *y]),
                _ => Err(Wrong(format!(
                    "`dram.ports` has the port {port}; expected [column, row] inside the mesh of {columns} x {rows}"
                ))),
            }
        })
        .collect()
}

fn array(core: &Section<'_>, unknown: &mut Vec<String>) -> Result<Array, Wrong> {
    let kind = core.text("kind")?;
    let array = core.pair("array")?;
    if array.contains(&0) {
        return Err(Wrong(format!(
            "`core.array` is {} x {}; expected at least 1 x 1",
            array[0], array[1]
        )));
    }
    let buffers = core.section("buffers")?;
    let buffer = |name: &str, unknown: &mut Vec<String>| {
        let section = buffers.section(name)?;
        section.only(&["bytes", "read_pj", "write_pj"], unknown)?;
        section.buffer()
    };
    match kind {
        "polar" => {
            buffers.only(&["al1", "wl1", "ol1", "ol2"], unknown)?;
            Ok(Array::Polar {
                array,
                lanes: core.whole("lanes", 1)?,
                vector: core.whole("vector", 1)?,
                al1: buffer("al1", unknown)?,
                wl1: buffer("wl1", unknown)?,
                ol1: buffer("ol1", unknown)?,
                ol2: buffer("ol2", unknown)?,
            })
        }
        "eyeriss" => {
            buffers.only(&["al1", "wl1", "pl1"], unknown)?;
            Ok(Array::Eyeriss {
                array,
                al1: buffer("al1", unknown)?,
                wl1: buffer("wl1", unknown)?,
                pl1: buffer("pl1", unknown)?,
            })
        }
        other => Err(Wrong(format!(
            "`core.kind` is \"{other}\"; expected \"polar\" or \"eyeriss\""
        ))),
    }
}

/// An object of the file.
struct Section<'v> {
    value: &'v Value,
    path: String,
}

impl<'v> Section<'v> {
    fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn get(&self, key: &str) -> Result<&'v Value, Wrong> {
        self.value
            .get(key)
            .ok_or_else(|| Wrong(format!("the key `{}` is missing", self.key(key))))
    }

    fn only(&self, keys: &[&str], unknown: &mut Vec<String>) -> Result<(), Wrong> {
        let object = self.value.as_object().ok_or_else(|| {
            let place = if self.path.is_empty() {
                "the file"
            } else {
                &self.path
            };
            Wrong(format!("expected an object, found another value: {place}"))
        })?;
        unknown.extend(
            object
                .keys()
                .filter(|key| !keys.contains(&key.as_str()))
                .map(|key| self.key(key)),
        );
        Ok(())
    }

    fn section(&self, key: &str) -> Result<Section<'v>, Wrong> {
        Ok(Section {
            value: self.get(key)?,
            path: self.key(key),
        })
    }

    fn text(&self, key: &str) -> Result<&'v str, Wrong> {
        let value = self.get(key)?;
        value
            .as_str()
            .ok_or_else(|| Wrong(format!("`{}` is {value}; expected a text", self.key(key))))
    }

    fn whole(&self, key: &str, least: i64) -> Result<i64, Wrong> {
        let value = self.get(key)?;
        value
            .as_i64()
            .filter(|v| (least..1 << 40).contains(v))
            .ok_or_else(|| {
                Wrong(format!(
                    "`{}` is {value}; expected a whole number of at least {least}",
                    self.key(key)
                ))
            })
    }

    fn number(&self, key: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, Wrong> {
        let value = self.get(key)?;
        value
            .as_f64()
            .filter(|v| v.is_finite() && *v < 1e18 && fits(*v))
            .ok_or_else(|| {
                Wrong(format!(
                    "`{}` is {value}; expected {expected}",
                    self.key(key)
                ))
            })
    }

    fn above_zero(&self, key: &str) -> Result<f64, Wrong> {
        self.number(key, |v| v > 0.0, "a number above 0")
    }

    fn not_negative(&self, key: &str) -> Result<f64, Wrong> {
        self.number(key, |v| v >= 0.0, "a number that is not negative")
    }

    fn pair(&self, key: &str) -> Result<[i64; 2], Wrong> {
        let value = self.get(key)?;
        let list: Option<Vec<i64>> = value.as_array().and_then(|list| {
            list.iter()
                .map(|v| v.as_i64().filter(|v| (0..1 << 20).contains(v)))
                .collect()
        });
        match list.as_deref() {
            Some([a, b]) => Ok([*a, *b]),
            _ => Err(Wrong(format!(
                "`{}` is {value}; expected two whole numbers",
                self.key(key)
            ))),
        }
    }

    fn buffer(&self) -> Result<Buffer, Wrong> {
        Ok(Buffer {
            bytes: self.whole("bytes", 1)?,
            read: self.not_negative("read_pj")?,
            write: self.not_negative("write_pj")?,
        })
    }
}
