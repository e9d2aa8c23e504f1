//! A network without a schedule: one tile for each layer, one after another, in a memory that holds every map.
//!
//! It says what a network computes apart from how it is scheduled, in the precision of its file or in single precision.

use super::builder::{Builder, NewTask};
use super::pack::{self, Array, Arrays};
use super::region::{Layout, Region};
use crate::kernels::tile::{Input, Output, Tile};
use crate::network::Network;
use crate::network::is_constant;
use crate::operation::{Kind, Operation};
use crate::schedule::Bounds;
use chipless_model::{
    BufferId, ElementType, Limits, MemoryId, MemoryKind, Port, Program, QueueId, Role, Time,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The numbers in which a network is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As the front-end file says.
    Stored,
    /// Single precision where the file says half.
    Single,
}

/// A map of the network.
#[derive(Clone, Debug)]
struct Map {
    buffer: BufferId,
    element: ElementType,
    /// N, C, H, W.
    shape: [u64; 4],
}

impl Map {
    fn bounds(&self) -> Option<Bounds> {
        let mut upper = [0; 4];
        for (to, extent) in upper.iter_mut().zip(self.shape) {
            *to = u32::try_from(extent.checked_sub(1)?).ok()?;
        }
        Some(Bounds {
            lower: [0; 4],
            upper,
        })
    }

    fn region(&self) -> Option<(Bounds, Region)> {
        let bounds = self.bounds()?;
        let element = self.element.bits() / 8;
        let layout = Layout {
            buffer: self.buffer,
            base: 0,
            bounds,
            element,
            pixel: self.shape[1].checked_mul(element)?,
            ring: None,
        };
        Some((bounds, layout.region(&bounds)?))
    }
}

/// A network as a program in which each layer is one tile. Inputs and results are ports with the names of the front-end file and the
/// shape N, H, W, C, in which the maps lie.
///
/// # Errors
/// What Chipless lacks for a layer, arrays that are missing or do not fit, more bytes than the limits.
#[allow(clippy::implicit_hasher)]
pub fn whole<'p>(
    network: &Network,
    arrays: &HashMap<String, Arrays>,
    precision: Precision,
    limits: &Limits,
) -> Result<Program<'p>, String> {
    let mut builder = Builder::new(limits);
    let memory = builder.memory("maps", limits.memory_bytes, MemoryKind::Scratchpad);
    let queue = builder.queue("layers".to_owned());
    let mut layers = Layers {
        builder,
        memory,
        queue,
        precision,
        maps: HashMap::new(),
    };
    for (name, _) in network.scheduled() {
        let mut operation = Operation::of(network, name)?;
        layers.in_precision(&mut operation);
        layers.layer(name, operation, arrays)?;
    }
    layers.builder.finish().map_err(|error| error.to_string())
}

struct Layers<'p> {
    builder: Builder<'p>,
    memory: MemoryId,
    queue: QueueId,
    precision: Precision,
    maps: HashMap<String, Map>,
}

impl Layers<'_> {
    fn in_precision(&self, operation: &mut Operation) {
        if self.precision == Precision::Stored {
            return;
        }
        let wider = |element: &mut ElementType| {
            if *element == ElementType::Float16 {
                *element = ElementType::Float32;
            }
        };
        wider(&mut operation.output);
        for operand in &mut operation.operands {
            wider(&mut operand.element);
        }
        if let Kind::Convolution { weight, .. } = &mut operation.kind {
            wider(weight);
        }
    }

    fn map(&mut self, name: &str, element: ElementType, shape: [u64; 4], role: Role) -> Map {
        let size = shape
            .iter()
            .fold(element.bits() / 8, |n, extent| n.saturating_mul(*extent));
        let buffer = (self.builder).buffer(name.to_owned(), self.memory, None, size, role);
        let map = Map {
            buffer,
            element,
            shape,
        };
        let [n, c, h, w] = shape;
        let port = Port {
            name: name.to_owned(),
            alias: None,
            buffer,
            element,
            shape: vec![n, h, w, c],
            host_element: None,
            scale: None,
        };
        match role {
            Role::Input => self.builder.program.interface.inputs.push(port),
            Role::Output => self.builder.program.interface.outputs.push(port),
            _ => {}
        }
        self.maps.insert(name.to_owned(), map.clone());
        map
    }

    fn constant(
        &mut self,
        name: &str,
        element: ElementType,
        shape: [u64; 4],
        arrays: &HashMap<String, Arrays>,
    ) -> Result<Map, String> {
        let given = arrays
            .get(name)
            .ok_or_else(|| format!("the constant `{name}` has no array"))?;
        let bytes = pack::constant(name, shape, element, &by_places(&given.weight, shape))?;
        let map = self.map(name, element, shape, Role::Constant);
        self.builder.program.buffers[map.buffer].initial = bytes.into();
        Ok(map)
    }

    fn layer(
        &mut self,
        name: &str,
        operation: Operation,
        arrays: &HashMap<String, Arrays>,
    ) -> Result<(), String> {
        let large = || format!("layer `{name}`: a map is too large");
        let mut inputs = smallvec::SmallVec::new();
        for (index, operand) in operation.operands.iter().enumerate() {
            let from = &operation.previous[index];
            let map = match self.maps.get(from) {
                Some(map) => map.clone(),
                None if is_constant(from) => {
                    self.constant(from, operand.element, operand.shape, arrays)?
                }
                None => self.map(from, operand.element, operand.shape, Role::Input),
            };
            let (bounds, region) = map.region().ok_or_else(large)?;
            inputs.push(Input {
                operand: u8::try_from(index).map_err(|_| large())?,
                bounds,
                region,
            });
        }
        let weights = match &operation.kind {
            Kind::Convolution { .. } => Some(self.weights(name, &operation, arrays)?),
            _ => None,
        };
        let map = self.map(name, operation.output, operation.shape, Role::Output);
        let (bounds, region) = map.region().ok_or_else(large)?;
        let tile = Tile {
            unit: "layer",
            bounds,
            inputs,
            weights,
            products: 0,
            parameters: None,
            outputs: [Output { bounds, region }].into_iter().collect(),
            meaning: Some(Arc::new(Ok(operation))),
        };
        let task = NewTask {
            queue: self.queue,
            waits: &[],
            gives: None,
            demands: &[],
            fixed: Time::ZERO,
            at: 0,
            label: Some(name.into()),
        };
        let added = self.builder.task(task, tile);
        added.map(|_| ()).map_err(|error| error.to_string())
    }

    fn weights(
        &mut self,
        name: &str,
        operation: &Operation,
        arrays: &HashMap<String, Arrays>,
    ) -> Result<Region, String> {
        let given = arrays
            .get(name)
            .ok_or_else(|| format!("layer `{name}` has no weights among those given"))?;
        let channels = operation.channels as usize;
        let bytes = pack::channels(name, operation, given, 0..channels, false)?;
        let size = bytes.len() as u64;
        let of = format!("{name}.weights");
        let buffer = (self.builder).buffer(of, self.memory, None, size, Role::Constant);
        self.builder.program.buffers[buffer].initial = bytes.into();
        let each = size / u64::from(operation.channels.max(1));
        Ok(Region {
            count: [1, 1, operation.channels],
            stride: [0, 0, each],
            ..Region::contiguous(buffer, 0, each)
        })
    }
}

/// An array in the order N, H, W, C; its shape stays N, C, H, W.
fn by_places(array: &Array, [n, c, h, w]: [u64; 4]) -> Array {
    let (c, places) = (c as usize, (h * w) as usize);
    let mut values = array.values.clone();
    if array.values.len() == n as usize * c * places {
        let all = array.values.chunks_exact((c * places).max(1));
        for (image, to) in all.zip(values.chunks_exact_mut((c * places).max(1))) {
            for (at, value) in image.iter().enumerate() {
                to[at % places * c + at / places] = *value;
            }
        }
    }
    Array {
        shape: array.shape.clone(),
        values,
    }
}
