//! A set of functions of the scalar engine, to be written: segments, control words, and the functions that walk them.
//!
//! [`kernels::curve`](crate::kernels::curve) says what they mean.

use crate::kernels::curve::SEGMENT_BYTES;
use serde_json::{Map, Value, json};

/// Bytes of a control word with the zeros behind it, as compilers write it for trn2.
const CONTROL_BYTES: usize = 32;
/// What is added to the exponent of a binary32.
const BIAS: i64 = 127;

/// A set of functions to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftFunctions {
    /// Name of the set.
    pub name: String,
    /// Four coefficients and the centre of each segment.
    pub segments: Vec<[f32; 5]>,
    /// First segment of each octave, and how many there are as a power of two.
    pub control: Vec<(u16, u8)>,
    /// The functions.
    pub functions: Vec<DraftFunction>,
}

/// A function of a set. Pairs are for numbers at least zero, and below.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DraftFunction {
    /// Its name.
    pub name: String,
    /// What an instruction selects it by.
    pub id: u8,
    /// The first and the last power of two whose octave has a control word.
    pub octaves: (i64, i64),
    /// The control word of the first octave.
    pub control: [u32; 2],
    /// The segment below the octaves.
    pub small: [u32; 2],
    /// The segment above them.
    pub large: [u32; 2],
    /// The result of zero.
    pub zero: f32,
    /// The result of NaN.
    pub nan: f32,
    /// The results of the infinities.
    pub infinity: [f32; 2],
    /// Whether numbers below zero give what their opposites give: `Some(true)` with the sign turned.
    pub symmetric: Option<bool>,
}

impl DraftFunctions {
    /// Names and contents of the files of some sets: their index, and of each metadata, segments and control words.
    pub(crate) fn files(sets: &[DraftFunctions]) -> Vec<(String, Vec<u8>)> {
        if sets.is_empty() {
            return Vec::new();
        }
        let entries: Vec<Value> = sets.iter().map(DraftFunctions::entry).collect();
        let index = json!({
            "pwp_file_keys": ["bkt_bin", "ctrl_bin", "profile_json"],
            "act_func_sets": entries,
        });
        let index = format!("{index:#}").into_bytes();
        let mut files = vec![("act_info.json".to_owned(), index)];
        files.extend(sets.iter().flat_map(DraftFunctions::tables));
        files
    }

    fn file(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.name)
    }

    /// A number of each function, by name.
    fn starts(&self, of: &dyn Fn(&DraftFunction) -> u32) -> Map<String, Value> {
        let entry = |f: &DraftFunction| (f.name.clone(), of(f).into());
        self.functions.iter().map(entry).collect()
    }

    /// What the index says of the set.
    fn entry(&self) -> Value {
        json!({
            "name": self.name,
            "bkt_bin": self.file("_bkt.bin"),
            "ctrl_bin": self.file("_ctrl.bin"),
            "profile_json": self.file(".json"),
            "act": self.starts(&|_| 1),
        })
    }

    /// Names and contents of the files of the set.
    fn tables(&self) -> [(String, Vec<u8>); 3] {
        let (segments, control) = (self.file("_bkt.bin"), self.file("_ctrl.bin"));
        let first = |f: &DraftFunction| {
            self.control
                .get(f.control[0] as usize)
                .map_or(f.small[0], |c| c.0.into())
        };
        let profiles: Vec<Value> = self.functions.iter().map(DraftFunction::profile).collect();
        let metadata = json!({
            "bkt_bin": segments,
            "ctl_bin": control,
            "bkt_entry_cnt": self.segments.len(),
            "ctl_entry_cnt": self.control.len(),
            "func_to_bkt_start_idx": self.starts(&first),
            "func_to_ctl_start_idx": self.starts(&|f| f.control[0]),
            "profile_meta_data": profiles,
        });
        let mut segment_bytes = Vec::with_capacity(self.segments.len() * SEGMENT_BYTES);
        for segment in &self.segments {
            let end = segment_bytes.len() + SEGMENT_BYTES;
            segment_bytes.extend(segment.iter().flat_map(|number| number.to_le_bytes()));
            segment_bytes.resize(end, 0);
        }
        let mut control_bytes = Vec::with_capacity(self.control.len() * CONTROL_BYTES);
        for (first, size) in &self.control {
            let end = control_bytes.len() + CONTROL_BYTES;
            let shift = 23u32.saturating_sub((*size).into());
            let word = u32::from(*size) << 16 | shift << 11 | u32::from(*first & 0x7ff);
            control_bytes.extend(word.to_le_bytes());
            control_bytes.resize(end, 0);
        }
        [
            (self.file(".json"), format!("{metadata:#}").into_bytes()),
            (segments, segment_bytes),
            (control, control_bytes),
        ]
    }
}

impl DraftFunction {
    fn profile(&self) -> Value {
        let (low, high) = (self.octaves.0 + BIAS, self.octaves.1 + BIAS + 1);
        json!({
            "func_name": self.name,
            "func_id": self.id,
            "symmetry_point": 0,
            "sym_invert_sign_point": u8::from(self.symmetric == Some(true)),
            "symmetry_opt_en": u8::from(self.symmetric.is_some()),
            "symmetry_opt_use_neg_region": 0,
            "imm_bias": 0,
            "exp_offset": self.octaves.0,
            "pwl_control_base_pos": self.control[0],
            "pwl_control_base_neg": self.control[1],
            "small_pos_signal_exp_threshold": low,
            "pos_small_signal_pwl_control": self.small[0],
            "small_neg_signal_exp_threshold": low,
            "neg_small_signal_pwl_control": self.small[1],
            "large_pos_signal_exp_threshold": high,
            "large_pos_signal_mantissa_threshold": 0,
            "pos_large_signal_pwl_control": self.large[0],
            "large_neg_signal_exp_threshold": high,
            "large_neg_signal_mantissa_threshold": 0,
            "neg_large_signal_pwl_control": self.large[1],
            "fnan_result": self.nan.to_bits(),
            "fpinf_result": self.infinity[0].to_bits(),
            "fninf_result": self.infinity[1].to_bits(),
            "fzero_result": self.zero.to_bits(),
            "fma_const_0": 0,
            "fma_const_1": 0,
            "fma_indirection_src_sel": 0,
            "use_multipass": false,
        })
    }
}
