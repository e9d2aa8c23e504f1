//! A tile: what a unit computes at once, and the elements that its buffers hold.

use crate::lint::cover::hole;
use crate::lower::pack::{Parameters, Row};
use crate::lower::region::Region;
use crate::operation::Operation;
use crate::rules::meaning as rules;
use crate::schedule::Bounds;
use chipless_model::{ElementType, Fault, Rule, Storage};
use smallvec::SmallVec;
use std::sync::Arc;

/// A part of an operand in L2.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// Which operand.
    pub(crate) operand: u8,
    /// Its box, absolute in the layer's input.
    pub(crate) bounds: Bounds,
    pub(crate) region: Region,
}

/// A part of the result and where it goes.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// Its box, absolute in the layer's output.
    pub(crate) bounds: Bounds,
    pub(crate) region: Region,
}

/// What a tile means, or why nobody knows.
pub(crate) type Meaning = Option<Arc<Result<Operation, String>>>;

/// A tile.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) unit: &'static str,
    /// Its box of the layer's output.
    pub(crate) bounds: Bounds,
    pub(crate) inputs: SmallVec<[Input; 1]>,
    /// Weights of its output channels, one run each.
    pub(crate) weights: Option<Region>,
    /// Multiplications of an element of the output, as the bounds of the weights have them; 0 where the schedule does not say.
    pub(crate) products: u64,
    /// `k` and `b` of its layer's output channels, where they do not lie beside the weights.
    pub(crate) parameters: Option<Parameters>,
    pub(crate) outputs: SmallVec<[Output; 1]>,
    /// `None` without a network.
    pub(crate) meaning: Meaning,
}

impl Tile {
    /// What of its operands and weights lies in no buffer that it reads: a rule, and what was expected of the workload and found. Whoever lowers a
    /// schedule asks this of every tile, so that a check says what would stop the run.
    pub(crate) fn lack(
        &self,
        operation: &Operation,
        is_packed: bool,
    ) -> Option<(&'static Rule, String)> {
        let tile = self.bounds;
        for (operand, of) in operation.operands.iter().enumerate() {
            let Some(needed) = operation.needs(operand, &tile) else {
                continue;
            };
            if let Some(hole) = hole(&needed, &self.boxes(operand, of.element)) {
                let name = operation.previous.get(operand);
                let name = name.map_or("its input", String::as_str);
                let message = format!(
                    "to read {name} {needed} for its tile {tile}, found that no tensor that it reads holds {hole}"
                );
                return Some((&rules::INPUT, message));
            }
        }
        let row = Row::of_operation(operation, is_packed)?;
        let found = self.lacking_weights(row, operation)?;
        let message = format!("to compute its tile {tile} with its weights, found {found}");
        Some((&rules::WEIGHTS, message))
    }

    /// The boxes of an operand that it reads, of those inputs whose bytes have room for them.
    fn boxes(&self, operand: usize, element: ElementType) -> SmallVec<[Bounds; 2]> {
        let inputs = self.inputs.iter().filter(|input| {
            let [n, channels, h, w] = input.bounds.shape();
            usize::from(input.operand) == operand
                && input.region.runs() >= n.saturating_mul(h).saturating_mul(w)
                && input.region.run >= channels.saturating_mul(element.bits() / 8)
        });
        inputs.map(|input| input.bounds).collect()
    }

    /// What is there in place of the weights of its output channels, if they are not all there.
    pub(super) fn lacking_weights(&self, row: Row, operation: &Operation) -> Option<String> {
        let Some(region) = &self.weights else {
            return Some("that they are in no buffer".to_owned());
        };
        let taps = operation.kernel.iter().map(|v| u64::from(*v));
        let needed = taps
            .fold((row.channels * row.size) as u64, u64::saturating_mul)
            .saturating_add(row.parameters as u64);
        let (channels, there) = (self.bounds.shape()[1], region.runs());
        (there != channels || needed > region.run).then(|| {
            format!(
                "those of {there} output channels, {} bytes each, where it needs {channels} of {needed} bytes",
                region.run
            )
        })
    }
}

/// Elements of an operand or a result of one tile, at most.
pub(super) const MOST_ELEMENTS: u64 = 1 << 31;

/// The box of an operand that a tile needs.
pub(super) fn needed(
    tile: &Bounds,
    operation: &Operation,
    operand: usize,
) -> Result<Bounds, Fault> {
    let bounds = operation.needs(operand, tile).ok_or_else(|| {
        Fault::program(format!(
            "the tile {tile} lies outside what its layer computes"
        ))
    })?;
    if bounds.elements() > MOST_ELEMENTS {
        return Err(Fault::program(format!(
            "a tile needs {} elements of its input",
            bounds.elements()
        )));
    }
    Ok(bounds)
}

/// Rows of padding above what a tile reads, and columns to the left.
pub(super) fn padding(tile: &Bounds, operation: &Operation) -> [u32; 2] {
    [0, 1].map(|side| {
        let first = u64::from(tile.lower[side + 2]) * u64::from(operation.stride[side]);
        u64::from(operation.padding[side]).saturating_sub(first) as u32
    })
}

/// The elements of a box of an operand, N, H, W, C, from the parts of it that the tile reads in L2.
pub(super) fn assemble<T: Copy + Default>(
    tile: &Tile,
    operand: usize,
    element: ElementType,
    bounds: &Bounds,
    storage: &Storage<'_>,
    decode: impl Fn(&[u8], &mut [T]),
) -> Result<Vec<T>, Fault> {
    let mut elements = vec![T::default(); bounds.elements() as usize];
    let size = (element.bits() / 8) as usize;
    let [_, c, h, w] = bounds.shape().map(|extent| extent as usize);
    if let Some(hole) = hole(bounds, &tile.boxes(operand, element)) {
        return Err(Fault::program(format!(
            "needs the box {bounds} of its operand {operand}, and {hole} is in no tensor of L2 that it reads"
        )));
    }
    for input in tile
        .inputs
        .iter()
        .filter(|input| usize::from(input.operand) == operand)
    {
        let Some(common) = input.bounds.intersection(bounds) else {
            continue;
        };
        let bytes = input.region.gather(storage)?;
        let [_, _, rows, columns] = input.bounds.shape().map(|extent| extent as usize);
        let run = input.region.run as usize;
        let channels = common.shape()[1] as usize;
        let skip = (common.lower[1] - input.bounds.lower[1]) as usize * size;
        let (to_channel, length) = (
            (common.lower[1] - bounds.lower[1]) as usize,
            channels * size,
        );
        for n in common.lower[0]..=common.upper[0] {
            for y in common.lower[2]..=common.upper[2] {
                for x in common.lower[3]..=common.upper[3] {
                    let index = |of: &Bounds, h: usize, w: usize| {
                        ((n - of.lower[0]) as usize * h + (y - of.lower[2]) as usize) * w
                            + (x - of.lower[3]) as usize
                    };
                    let from = index(&input.bounds, rows, columns) * run + skip;
                    let to = index(bounds, h, w) * c + to_channel;
                    let (Some(from), Some(to)) = (
                        bytes.get(from..from + length),
                        elements.get_mut(to..to + channels),
                    ) else {
                        return Err(Fault::program("a tensor in L2 is shorter than its box"));
                    };
                    decode(from, to);
                }
            }
        }
    }
    Ok(elements)
}
