//! Functions of the scalar engine, as the tables of a program describe them.
//!
//! A set of functions is three files: metadata (`profile_json`), segments (`bkt_bin`) and control words (`ctrl_bin`). A
//! segment is a cubic around a centre, `d0 + t (d1 + t (d2 + t d3))` with `t = v − x`. For each function and sign,
//! each octave of the magnitude has a control word that deals the octave's mantissas to segments; below and above the octaves
//! there is one segment each. Zero, NaN and the infinities have results of their own, and odd or even functions fold one
//! sign onto the other.
//!
//! The format is quoted from headers; evaluated so, the tables of compiled programs give exp within 1.2e-5, tanh within
//! 3e-7 (relative), and relu, abs, sign, identity and the like bit for bit.

use crate::read::EngineRoom;
use crate::stream::Stream;
use chipless_model::Fault;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a segment: four coefficients and the centre in binary32, and zeros.
pub(crate) const SEGMENT_BYTES: usize = 32;
/// Segments of a set, at most.
pub(crate) const MOST_SEGMENTS: usize = 2048;
/// The opcode that evaluates functions.
const ACTIVATE: u8 = 0x21;
/// Bits of the mantissa of binary32.
const MANTISSA: u32 = 23;
/// The largest biased exponent of a finite number.
const LAST_EXPONENT: u32 = 254;

/// A cubic around a centre.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    coefficients: [f32; 4],
    center: f32,
}

impl Segment {
    fn at(&self, v: f32) -> f32 {
        let [d0, d1, d2, d3] = self.coefficients;
        let t = v - self.center;
        t.mul_add(t.mul_add(t.mul_add(d3, d2), d1), d0)
    }
}

/// One octave: mantissas shifted right by `shift` count segments from `first` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Octave {
    shift: u32,
    first: usize,
}

/// One sign of a function.
#[derive(Clone, Debug)]
struct Side {
    /// Magnitudes whose bits are below this take `small`.
    small_below: u32,
    small: usize,
    /// Magnitudes whose bits are at least this take `large`.
    large_from: u32,
    large: usize,
    /// Biased exponent of the first octave.
    first_exponent: u32,
    octaves: Vec<Octave>,
}

/// A function of a set, checked: every number leads to a segment that the set has.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    segments: Arc<[Segment]>,
    /// Of numbers at least zero, and below.
    sides: [Side; 2],
    is_symmetric: bool,
    /// Whether it is the negative side that is described.
    keeps_negative: bool,
    negates: bool,
    symmetry_point: f32,
    zero: f32,
    nan: f32,
    infinities: [f32; 2],
}

impl Function {
    /// Its value.
    pub(crate) fn at(&self, x: f32) -> f32 {
        if x == 0.0 {
            return self.zero;
        }
        if x.is_nan() {
            return self.nan;
        }
        if x.is_infinite() {
            return self.infinities[usize::from(x < 0.0)];
        }
        let folded = self.is_symmetric && (x < 0.0) != self.keeps_negative;
        let v = if folded { -x } else { x };
        let y = self.segments[self.sides[usize::from(v < 0.0)].segment(v)].at(v);
        match (folded, self.negates) {
            (false, _) => y,
            (true, false) => y + self.symmetry_point,
            (true, true) => -y + self.symmetry_point,
        }
    }

    /// Whether it gives the same value for every number.
    fn agrees_with(&self, other: &Function) -> bool {
        let same_segment = |a: usize, b: usize| {
            let bits = |f: &Function, at: usize| {
                let Segment {
                    coefficients,
                    center,
                } = f.segments[at];
                (coefficients.map(f32::to_bits), center.to_bits())
            };
            bits(self, a) == bits(other, b)
        };
        let same_side = |(a, b): (&Side, &Side)| {
            (a.small_below, a.large_from, a.first_exponent)
                == (b.small_below, b.large_from, b.first_exponent)
                && same_segment(a.small, b.small)
                && same_segment(a.large, b.large)
                && a.octaves.len() == b.octaves.len()
                && a.octaves.iter().zip(&b.octaves).all(|(a, b)| {
                    let count = 1usize << (MANTISSA - a.shift);
                    a.shift == b.shift && (0..count).all(|k| same_segment(a.first + k, b.first + k))
                })
        };
        let flags = |f: &Function| {
            let values = [
                f.symmetry_point,
                f.zero,
                f.nan,
                f.infinities[0],
                f.infinities[1],
            ];
            (
                f.is_symmetric,
                f.keeps_negative,
                f.negates,
                values.map(f32::to_bits),
            )
        };
        flags(self) == flags(other) && self.sides.iter().zip(&other.sides).all(same_side)
    }
}

impl Side {
    fn segment(&self, v: f32) -> usize {
        let magnitude = v.abs().to_bits();
        if magnitude < self.small_below {
            return self.small;
        }
        if magnitude >= self.large_from {
            return self.large;
        }
        let octave = self.octaves[((magnitude >> MANTISSA) - self.first_exponent) as usize];
        octave.first + ((magnitude & ((1 << MANTISSA) - 1)) >> octave.shift) as usize
    }
}

/// What the metadata say of a function. Numbers that stand for bits are those of a binary32.
#[derive(Debug, Deserialize)]
struct Profile {
    func_name: String,
    func_id: u8,
    #[serde(default)]
    symmetry_point: u32,
    #[serde(default)]
    sym_invert_sign_point: u8,
    #[serde(default)]
    symmetry_opt_en: u8,
    #[serde(default)]
    symmetry_opt_use_neg_region: u8,
    exp_offset: i64,
    pwl_control_base_pos: i64,
    pwl_control_base_neg: i64,
    small_pos_signal_exp_threshold: u32,
    pos_small_signal_pwl_control: usize,
    small_neg_signal_exp_threshold: u32,
    neg_small_signal_pwl_control: usize,
    large_pos_signal_exp_threshold: u32,
    large_pos_signal_mantissa_threshold: u32,
    pos_large_signal_pwl_control: usize,
    large_neg_signal_exp_threshold: u32,
    large_neg_signal_mantissa_threshold: u32,
    neg_large_signal_pwl_control: usize,
    fnan_result: u32,
    fpinf_result: u32,
    fninf_result: u32,
    fzero_result: u32,
    #[serde(default)]
    fma_const_0: u32,
    #[serde(default)]
    fma_const_1: u32,
    #[serde(default)]
    fma_indirection_src_sel: u32,
    #[serde(default)]
    use_multipass: bool,
}

/// The metadata of a set.
#[derive(Debug, Deserialize)]
struct Metadata {
    ctl_entry_cnt: usize,
    profile_meta_data: Vec<Profile>,
}

/// A side as the metadata have it.
struct DeclaredSide {
    small_exponent: u32,
    small: usize,
    large_exponent: u32,
    large_mantissa: u32,
    large: usize,
    base: i64,
}

/// The tables of a set, taken apart.
struct Records {
    segments: Arc<[Segment]>,
    control: Vec<u32>,
}

impl Records {
    fn new(segments: &[u8], control: &[u8], control_words: usize) -> Result<Records, String> {
        if !segments.len().is_multiple_of(SEGMENT_BYTES)
            || segments.len() / SEGMENT_BYTES > MOST_SEGMENTS
        {
            return Err(format!(
                "{} bytes of segments, expected at most {MOST_SEGMENTS} of {SEGMENT_BYTES} bytes",
                segments.len()
            ));
        }
        let word_bytes = control.len().checked_div(control_words).unwrap_or(0);
        let is_whole = word_bytes >= 4 && word_bytes * control_words == control.len();
        // Functions of two segments, small and large, need no words.
        if !is_whole && (control_words, control.len()) != (0, 0) {
            return Err(format!(
                "{} bytes of control words are no {control_words} of them",
                control.len()
            ));
        }
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        let segment = |bytes: &[u8]| {
            let [d0, d1, d2, d3, center] =
                [0, 4, 8, 12, 16].map(|at| f32::from_bits(number(&bytes[at..])));
            Segment {
                coefficients: [d0, d1, d2, d3],
                center,
            }
        };
        Ok(Records {
            segments: segments.chunks_exact(SEGMENT_BYTES).map(segment).collect(),
            control: control
                .chunks_exact(word_bytes.max(1))
                .map(number)
                .collect(),
        })
    }

    /// The position of a segment that the set has.
    fn segment(&self, at: usize) -> Result<usize, String> {
        let count = self.segments.len();
        (at < count)
            .then_some(at)
            .ok_or_else(|| format!("leads to segment {at} of {count}"))
    }

    fn octave(&self, at: i64) -> Result<Octave, String> {
        let word = usize::try_from(at).ok().and_then(|at| self.control.get(at));
        let word =
            *word.ok_or_else(|| format!("leads to control word {at} of {}", self.control.len()))?;
        let (first, shift, size) = (word & 0x7ff, word >> 11 & 0x1f, word >> 16 & 0xff);
        // Compiled tables leave the shift of octaves of one segment at 0.
        let is_one = (shift, size) == (0, 0);
        if word >> 24 != 0 || size > MANTISSA || (shift != MANTISSA - size && !is_one) {
            return Err(format!(
                "has control word {at} = {word:#010x}, whose shift and size do not agree"
            ));
        }
        self.segment(first as usize + (1usize << size) - 1)?;
        Ok(Octave {
            shift: MANTISSA - size,
            first: first as usize,
        })
    }

    fn side(&self, declared: &DeclaredSide, exponent_offset: i64) -> Result<Side, String> {
        let bits =
            |exponent: u32, mantissa: u32| (exponent.min(LAST_EXPONENT + 1) << MANTISSA) + mantissa;
        let small_below = bits(declared.small_exponent, 0);
        let large_from = bits(
            declared.large_exponent,
            declared.large_mantissa.min(1 << MANTISSA),
        );
        let first_exponent = declared.small_exponent.min(LAST_EXPONENT + 1);
        let mut octaves = Vec::new();
        for exponent in first_exponent..=LAST_EXPONENT {
            if bits(exponent, 0) >= large_from {
                break;
            }
            let at = i128::from(declared.base) + i128::from(exponent)
                - 127
                - i128::from(exponent_offset);
            octaves.push(self.octave(i64::try_from(at).unwrap_or(i64::MAX))?);
        }
        Ok(Side {
            small_below,
            small: self.segment(declared.small)?,
            large_from,
            large: self.segment(declared.large)?,
            first_exponent,
            octaves,
        })
    }

    fn function(&self, p: &Profile) -> Result<Function, String> {
        if (p.fma_const_0, p.fma_const_1, p.fma_indirection_src_sel) != (0, 0, 0) || p.use_multipass
        {
            return Err("blends with constants of the instruction, which is not supported: how is not known".to_owned());
        }
        let positive = DeclaredSide {
            small_exponent: p.small_pos_signal_exp_threshold,
            small: p.pos_small_signal_pwl_control,
            large_exponent: p.large_pos_signal_exp_threshold,
            large_mantissa: p.large_pos_signal_mantissa_threshold,
            large: p.pos_large_signal_pwl_control,
            base: p.pwl_control_base_pos,
        };
        let negative = DeclaredSide {
            small_exponent: p.small_neg_signal_exp_threshold,
            small: p.neg_small_signal_pwl_control,
            large_exponent: p.large_neg_signal_exp_threshold,
            large_mantissa: p.large_neg_signal_mantissa_threshold,
            large: p.neg_large_signal_pwl_control,
            base: p.pwl_control_base_neg,
        };
        let (is_symmetric, keeps_negative) =
            (p.symmetry_opt_en != 0, p.symmetry_opt_use_neg_region != 0);
        // Of a symmetric function one side is never asked for, and may say anything.
        let side = |side: &DeclaredSide| self.side(side, p.exp_offset);
        let sides = match (is_symmetric, keeps_negative) {
            (false, _) => [side(&positive)?, side(&negative)?],
            (true, false) => [side(&positive)?, side(&positive)?],
            (true, true) => [side(&negative)?, side(&negative)?],
        };
        Ok(Function {
            segments: Arc::clone(&self.segments),
            sides,
            is_symmetric,
            keeps_negative,
            negates: p.sym_invert_sign_point != 0,
            symmetry_point: f32::from_bits(p.symmetry_point),
            zero: f32::from_bits(p.fzero_result),
            nan: f32::from_bits(p.fnan_result),
            infinities: [p.fpinf_result, p.fninf_result].map(f32::from_bits),
        })
    }
}

/// A function of the table that a selector means, or why there is none.
type Found = Result<Arc<Function>, String>;

/// The functions of the sets that a core's scalar engine loads.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By selector: name of the set, and the function, in the order of the file.
    known: BTreeMap<u8, Vec<(String, Found)>>,
    /// Sets that could not be read, and why.
    broken: Vec<(String, String)>,
}

impl Functions {
    /// The functions of an engine's sets, where its stream asks for any. What is wrong with a table shows where a program asks for its functions.
    pub(crate) fn of(room: &EngineRoom<'_>) -> Functions {
        let mut functions = Functions::default();
        let slots = room
            .instructions
            .map_or(&[][..], |member| Stream::new(member.bytes).slots);
        if !slots.iter().any(|slot| slot.head.opcode == ACTIVATE) {
            return functions;
        }
        let mut sets: Vec<&str> = Vec::new();
        for table in &room.tables {
            if !sets.contains(&&*table.set) {
                sets.push(&table.set);
            }
        }
        for set in sets {
            let file = |role: &str| {
                let found = room
                    .tables
                    .iter()
                    .find(|t| *t.set == *set && *t.role == *role);
                found.ok_or_else(|| format!("{role} is missing"))
            };
            let read = || {
                let (profile, segments, control) =
                    (file("profile_json")?, file("bkt_bin")?, file("ctrl_bin")?);
                let metadata: Metadata = serde_json::from_slice(profile.member.bytes)
                    .map_err(|error| format!("{}: {error}", profile.member.path))?;
                let records = Records::new(
                    segments.member.bytes,
                    control.member.bytes,
                    metadata.ctl_entry_cnt,
                )?;
                Ok::<_, String>((metadata, records))
            };
            match read() {
                Ok((metadata, records)) => {
                    for profile in &metadata.profile_meta_data {
                        let function = records.function(profile).map(Arc::new);
                        let function = function
                            .map_err(|why| format!("{} of set `{set}` {why}", profile.func_name));
                        functions
                            .known
                            .entry(profile.func_id)
                            .or_default()
                            .push((set.to_owned(), function));
                    }
                }
                Err(why) => functions.broken.push((set.to_owned(), why)),
            }
        }
        functions
    }

    /// The function of the set that has just been loaded. Whether functions of those loaded before can still be had is not known.
    pub(crate) fn of_set(&self, selector: u8, loaded: &str) -> Result<Arc<Function>, Fault> {
        let mut known = self.known.get(&selector).into_iter().flatten();
        if let Some((_, found)) = known.find(|(set, _)| set == loaded) {
            return found.clone().map_err(Fault::unsupported);
        }
        match self.broken.iter().find(|(set, _)| set == loaded) {
            Some((set, why)) => Err(Fault::program(format!("set `{set}`: {why}"))),
            None if self.known.contains_key(&selector) => Err(Fault::unsupported(format!(
                "function {selector} is not in set `{loaded}`, which the last PSEUDO_LOAD_ACT_FUNC_SET loaded: whether those before it stay is not known, and not supported"
            ))),
            None => self.select(selector).map(|(function, _)| function),
        }
    }

    /// The function that a selector means, and whether that is certain: several loaded sets may have it, and which of them an
    /// instruction means is not public.
    pub(crate) fn select(&self, selector: u8) -> Result<(Arc<Function>, bool), Fault> {
        let Some(known) = self.known.get(&selector) else {
            let text = match &self.broken[..] {
                [] => format!("no function set of the program has function {selector}"),
                [(set, why), ..] => format!(
                    "function {selector} is in no function set that can be read (set `{set}`: {why})"
                ),
            };
            return Err(Fault::program(text));
        };
        let mut usable = known.iter().filter_map(|(_, found)| found.as_ref().ok());
        match (usable.next(), &known[0].1) {
            (Some(first), _) => Ok((Arc::clone(first), usable.all(|f| f.agrees_with(first)))),
            (None, Err(why)) => Err(Fault::unsupported(why.clone())),
            (None, Ok(_)) => Err(Fault::program("the function has no table")),
        }
    }
}

#[cfg(test)]
mod tests;
