//! Numbers in groups that share a scale (OCP MX): 8 partitions by 4 elements, packed at one place of each partition.
//!
//! A scale is a byte `s` that stands for 2^(s−127). Scales lie in the quadrant of their group: of its 32 partitions four hold one of
//! each place. The array multiplies all four elements of a place in one pass: its rows are 128, its products 512 long.

use super::array::{LAYERS, Part};
use super::dependence::{Relation, follow};
use super::{Chip, Elements, fault};
use crate::stream::formats::{self, Instruction};
use crate::stream::operand::{HALF_BYTE, QUADRANT, SCALED};
use crate::stream::{ElementCode, Operand};
use chipless_kernels::cast::{Rounding, decode_f32, encode_f32};
use chipless_kernels::matrix::{Encoded, MatrixMut, multiply_encoded};
use chipless_kernels::strided;
use chipless_model::{Access, BufferId, Doubt, ElementType, Fault, Pattern, Storage};
use smallvec::{SmallVec, smallvec};

/// Elements at a place.
const PACKED: usize = formats::Microscaled::PACKED as usize;
const _: () = assert!(PACKED == LAYERS);
/// The scale that stands for 1.
const ONE: i32 = 127;
/// The scale that stands for no number.
const NO_NUMBER: u8 = 255;
/// Magnitudes of elements of half a byte (OCP E2M1); the highest bit is the sign.
const HALF_BYTES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// What an instruction does with such numbers.
#[derive(Debug)]
pub(super) enum Microscaled {
    Load {
        from: Groups,
        part: Part,
    },
    Multiply {
        part: Part,
        from: Groups,
        to: Elements,
        /// Whether the sums go on from what PSUM holds.
        accumulate: bool,
    },
    Quantise {
        from: Elements,
        to: Groups,
    },
}

/// Numbers in groups where they lie.
#[derive(Debug)]
pub(super) struct Groups {
    /// Place by place, partition by partition.
    packed: Elements,
    scales: Elements,
    /// Type of the elements; `None` for half a byte each.
    element: Option<ElementType>,
    /// Places in each partition.
    places: usize,
}

impl Groups {
    fn new(
        chip: &Chip,
        said: formats::Microscaled,
        code: u8,
        operands: &[Operand],
    ) -> Result<Groups, Fault> {
        let [packed, scales] = operands else {
            return Err(Fault::unsupported("the instruction has no scales"));
        };
        let element = match ElementCode::of(code).map(|known| known.element) {
            // The array takes the kind without infinity where other instructions take the one with it.
            Some(ElementType::Float8E4M3) => Some(ElementType::Float8E4M3Fn),
            Some(ElementType::Float8E5M2) => Some(ElementType::Float8E5M2),
            None if code == HALF_BYTE => None,
            _ => {
                return Err(Fault::program(format!(
                    "{}: elements of type {code:#x} have no scales, only fp8e4, fp8e5 and type0x10 do",
                    packed.role
                )));
            }
        };
        let role = packed.role;
        if packed.partitions == 0 || !packed.partitions.is_multiple_of(QUADRANT) {
            return Err(Fault::program(format!(
                "{role}: {} partitions, expected a multiple of {QUADRANT}",
                packed.partitions
            )));
        }
        if said.elements == 0 || !usize::from(said.elements).is_multiple_of(PACKED) {
            return Err(Fault::program(format!(
                "{role}: {} elements of each partition, expected a multiple of {PACKED}",
                said.elements
            )));
        }
        if !matches!(said.step, 1 | -1) {
            return Err(Fault::program(format!(
                "{role}: step {}, possible are 1 and -1",
                said.step
            )));
        }
        if !matches!(said.scale_partition, 0 | 4 | 8 | 12) {
            return Err(Fault::program(format!(
                "{role}: scales from partition {} of a quadrant on, possible are 0, 4, 8 and 12",
                said.scale_partition
            )));
        }
        Ok(Groups {
            packed: chip.elements(packed)?,
            scales: chip.elements(scales)?,
            element,
            places: said.places().into(),
        })
    }

    /// The numbers: partition by partition, place by place, four each.
    fn read(&self, storage: &Storage<'_>) -> Result<Vec<f32>, Fault> {
        let (mut bytes, mut scales) = (Vec::new(), Vec::new());
        self.packed.gather(storage, &mut bytes)?;
        self.scales.gather(storage, &mut scales)?;
        let mut numbers = Vec::new();
        if let Some(element) = self.element {
            numbers.resize(bytes.len(), 0.0);
            decode_f32(element, &bytes, &mut numbers).map_err(fault)?;
        } else {
            numbers.extend(bytes.iter().flat_map(|b| [b & 0xf, b >> 4]).map(half_byte));
        }
        for (partition, row) in numbers.chunks_mut(self.places * PACKED).enumerate() {
            let scales = &scales[partition / usize::from(SCALED) * self.places..][..self.places];
            for (group, scale) in row.chunks_mut(PACKED).zip(scales) {
                scaled(group, *scale)?;
            }
        }
        Ok(numbers)
    }
}

fn half_byte(bits: u8) -> f32 {
    let magnitude = HALF_BYTES[usize::from(bits & 7)];
    if bits & 8 == 0 { magnitude } else { -magnitude }
}

/// Multiplies the elements of a place by their scale.
fn scaled(group: &mut [f32], scale: u8) -> Result<(), Fault> {
    if scale == NO_NUMBER {
        group.fill(f32::NAN);
        return Ok(());
    }
    let factor = f64::from(i32::from(scale) - ONE).exp2();
    for number in group {
        let product = (f64::from(*number) * factor) as f32;
        // Whether the array holds more than binary32 does is not public.
        if product.is_infinite() && number.is_finite() {
            return Err(Fault::unsupported(format!(
                "{number} with scale {scale} is beyond binary32: that is not supported"
            )));
        }
        *number = product;
    }
    Ok(())
}

impl Microscaled {
    /// Of one of the three instructions, and its operands in the order of its format.
    pub(super) fn new(
        chip: &Chip,
        instruction: Instruction<'_>,
        operands: &[Operand],
    ) -> Result<Microscaled, Fault> {
        match (instruction, operands) {
            (Instruction::LoadWeightsMx(i), from) => {
                let from = Groups::new(chip, i.src(), i.0.byte(0x20), from)?;
                let groups = (i.row_groups(), i.column_groups());
                let part = Part::new(chip, groups, i.rows(), i.columns().into())?;
                if from.places != part.columns {
                    return Err(Fault::program(format!(
                        "{} columns of the array, {} of the source",
                        part.columns, from.places
                    )));
                }
                Ok(Microscaled::Load { from, part })
            }
            (Instruction::MatmulMx(i), [to, from @ ..]) => {
                let from = Groups::new(chip, i.src(), i.0.byte(0x20), from)?;
                let groups = (i.row_groups(), i.column_groups());
                let part = Part::new(chip, groups, i.rows(), i.columns().into())?;
                if to.elements() != from.places as u64 {
                    return Err(Fault::program(format!(
                        "{} elements of the destination, {} places of the source",
                        to.elements(),
                        from.places
                    )));
                }
                let (to, sums) = (chip.elements(to)?, i.sums());
                let is_sum = matches!(to.element, ElementType::Float32 | ElementType::BFloat16);
                if !is_sum {
                    return Err(Fault::program(format!(
                        "sums are {}, possible are float32 and bfloat16",
                        to.element
                    )));
                }
                if !matches!(sums, 0..=4 | 6) {
                    return Err(Fault::unsupported(format!(
                        "sums {sums:#04x} (byte 0x2b) are not supported"
                    )));
                }
                let accumulate = sums & 1 == 0;
                Ok(Microscaled::Multiply {
                    part,
                    from,
                    to,
                    accumulate,
                })
            }
            (Instruction::QuantizeMx(i), [to @ .., from]) => {
                let to = Groups::new(chip, i.dst(), i.0.byte(0x23), to)?;
                if to.element.is_none() {
                    return Err(Fault::program("nothing is rounded to half a byte"));
                }
                if from.elements() != (to.places * PACKED) as u64 {
                    return Err(Fault::unsupported(format!(
                        "{} elements of the source for {} of the destination are not supported, only as many",
                        from.elements(),
                        to.places * PACKED
                    )));
                }
                let from = chip.elements(from)?;
                match from.element {
                    ElementType::Float16 | ElementType::BFloat16 => {
                        Ok(Microscaled::Quantise { from, to })
                    }
                    other => Err(Fault::program(format!(
                        "the source is {other}, possible are float16 and bfloat16"
                    ))),
                }
            }
            _ => Err(Fault::unsupported("the instruction has no operands")),
        }
    }

    /// Multiplications and additions.
    pub(super) fn arithmetic(&self) -> u64 {
        match self {
            Microscaled::Load { .. } => 0,
            Microscaled::Multiply { part, from, .. } => {
                2 * (part.rows * PACKED * part.columns * from.places) as u64
            }
            // A division each.
            Microscaled::Quantise { from, .. } => from.count(),
        }
    }

    pub(super) fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        match self {
            Microscaled::Load { from, part } => {
                visit(from.packed.read_access());
                visit(from.scales.read_access());
                visit(Access::write(part.array, part.layers()));
            }
            Microscaled::Multiply {
                part,
                from,
                to,
                accumulate,
            } => {
                visit(Access::read(part.array, part.layers()));
                visit(from.packed.read_access());
                visit(from.scales.read_access());
                if *accumulate {
                    visit(to.read_access());
                }
                visit(to.write_access());
            }
            Microscaled::Quantise { from, to } => {
                visit(from.read_access());
                visit(to.packed.write_access());
                visit(to.scales.write_access());
            }
        }
    }

    /// What depends on doubtful bytes: a group on all of its own, and so, in short, everything on everything.
    pub(super) fn dependence(
        &self,
        doubtful: &dyn Doubt,
        visit: &mut dyn FnMut(BufferId, Pattern),
    ) {
        let layers = |part: &Part| Elements {
            buffer: part.array,
            pattern: part.layers(),
            element: ElementType::Float32,
        };
        let mut all =
            |from: &Elements, to: &Elements| follow(from, to, Relation::All, doubtful, visit);
        match self {
            Microscaled::Load { from, part } => {
                let to = layers(part);
                all(&from.packed, &to);
                all(&from.scales, &to);
            }
            Microscaled::Multiply {
                part,
                from,
                to,
                accumulate,
            } => {
                all(&layers(part), to);
                all(&from.packed, to);
                all(&from.scales, to);
                if *accumulate {
                    follow(to, to, Relation::Each, doubtful, visit);
                }
            }
            Microscaled::Quantise { from, to } => {
                all(from, &to.packed);
                all(from, &to.scales);
            }
        }
    }

    /// Where results go.
    pub(super) fn destinations(&self) -> SmallVec<[&Elements; 2]> {
        match self {
            Microscaled::Load { .. } => smallvec![],
            Microscaled::Multiply { to, .. } => smallvec![to],
            Microscaled::Quantise { to, .. } => smallvec![&to.packed, &to.scales],
        }
    }

    pub(super) fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        match self {
            Microscaled::Load { from, part } => load(storage, from, part),
            Microscaled::Multiply {
                part,
                from,
                to,
                accumulate,
            } => multiply(storage, part, from, to, *accumulate),
            Microscaled::Quantise { from, to } => quantise(storage, from, to),
        }
    }
}

/// Each element of a place into a layer of its own; the last column enters first.
fn load(storage: &mut Storage<'_>, from: &Groups, part: &Part) -> Result<(), Fault> {
    let numbers = from.read(storage)?;
    let mut weights = Vec::with_capacity(numbers.len());
    for layer in 0..LAYERS {
        for column in (0..part.columns).rev() {
            let of_row = |row: usize| numbers[(row * part.columns + column) * PACKED + layer];
            weights.extend((0..part.rows).map(of_row));
        }
    }
    let packed = binary32(&weights)?;
    strided::scatter(&packed, storage.bytes_mut(part.array), &part.layers()).map_err(fault)
}

/// Adds up the layers, and PSUM adds the result to what it holds.
fn multiply(
    storage: &mut Storage<'_>,
    part: &Part,
    from: &Groups,
    to: &Elements,
    accumulate: bool,
) -> Result<(), Fault> {
    let moving = from.read(storage)?;
    let mut sums = vec![0.0; part.columns * from.places];
    let (mut room, mut packed) = (Vec::new(), Vec::new());
    for layer in 0..LAYERS {
        let of_layer: Vec<f32> = moving.iter().skip(layer).step_by(PACKED).copied().collect();
        let bytes = binary32(&of_layer)?;
        let stride = bytes.len() / part.rows;
        let moving = Encoded::new(ElementType::Float32, &bytes, part.rows, from.places, stride)
            .map_err(fault)?;
        let weights = part.layer(layer, storage.bytes(part.array), &mut room)?;
        let place = MatrixMut::new(&mut sums, part.columns, from.places).map_err(fault)?;
        multiply_encoded(weights, moving, place, layer > 0).map_err(fault)?;
    }
    if accumulate {
        let mut held = Vec::new();
        to.read(storage, &mut packed, &mut held)?;
        for (sum, held) in sums.iter_mut().zip(&held) {
            *sum += held;
        }
    }
    to.write(storage, &mut packed, &sums)
}

fn binary32(numbers: &[f32]) -> Result<Vec<u8>, Fault> {
    let mut packed = vec![0; size_of_val(numbers)];
    encode_f32(
        ElementType::Float32,
        numbers,
        Rounding::NearestEven,
        &mut packed,
    )
    .map_err(fault)?;
    Ok(packed)
}

/// Gives each group the scale of its largest number, and rounds what is left of them.
fn quantise(storage: &mut Storage<'_>, from: &Elements, to: &Groups) -> Result<(), Fault> {
    let element = to.element.unwrap_or(ElementType::Float8E5M2);
    // The exponent of the largest number after division: one below the type's, so that rounding up stays inside it.
    let largest = match element {
        ElementType::Float8E4M3Fn => 7,
        _ => 14,
    };
    let (mut packed, mut numbers) = (Vec::new(), Vec::new());
    from.read(storage, &mut packed, &mut numbers)?;
    let (row, groups) = (to.places * PACKED, usize::from(SCALED));
    let mut scales = Vec::with_capacity(numbers.len() / groups / PACKED);
    for rows in numbers.chunks_mut(row * groups) {
        for place in 0..to.places {
            let at = |n: usize| n / PACKED * row + place * PACKED + n % PACKED;
            let group = (0..groups * PACKED).map(at);
            let most = group.clone().map(|n| rows[n].abs()).fold(0.0, f32::max);
            if group.clone().any(|n| !rows[n].is_finite()) {
                return Err(Fault::unsupported(
                    "groups with infinity or NaN are not supported: what becomes of them is not public",
                ));
            }
            let exponent = exponent(most).map_or(-ONE, |e| (e - largest).max(-ONE));
            let factor = f64::from(-exponent).exp2();
            for n in group {
                rows[n] = (f64::from(rows[n]) * factor) as f32;
            }
            scales.push((exponent + ONE) as u8);
        }
    }
    packed.resize(numbers.len(), 0);
    encode_f32(element, &numbers, Rounding::NearestEven, &mut packed).map_err(fault)?;
    strided::scatter(
        &packed,
        storage.bytes_mut(to.packed.buffer),
        &to.packed.pattern,
    )
    .map_err(fault)?;
    strided::scatter(
        &scales,
        storage.bytes_mut(to.scales.buffer),
        &to.scales.pattern,
    )
    .map_err(fault)
}

/// The exponent of a finite number above zero.
fn exponent(number: f32) -> Option<i32> {
    let bits = f64::from(number).to_bits();
    // Every binary32 is a normal binary64.
    (number > 0.0).then_some((bits >> 52) as i32 - 1023)
}
