//! How many bytes data take.

use crate::schedule::Bounds;

/// Bytes of batch-norm and quantisation parameters beside each output channel of weights. Measured on scheduler output.
pub const CHANNEL_PARAMETERS: u64 = 32;
/// Banks of the weight buffer. Measured on scheduler output.
pub const WEIGHT_BANKS: u64 = 64;
/// Bits that channels are aligned to where a file does not say otherwise.
const ALIGNED_BITS: u64 = 64;

/// Bytes of a feature map: N · (C rounded up to `align`) · H · W · `bitwidth` / 8.
pub fn feature_map(bounds: &Bounds, align: u16, bitwidth: u8) -> u64 {
    let [n, c, h, w] = bounds.shape();
    let channels = c.next_multiple_of(u64::from(align.max(1)));
    [n, channels, h, w]
        .into_iter()
        .fold(1, u64::saturating_mul)
        .saturating_mul(u64::from(bitwidth))
        / 8
}

/// The usual alignment of data of this width: as many channels as 64 bits hold.
pub fn usual_align(bitwidth: u8) -> u16 {
    (ALIGNED_BITS / u64::from(bitwidth.clamp(1, 64))) as u16
}

/// Bytes of weights: K · ((C rounded up to 64 bits) · R·S + 32); the box is 0, K, C, R·S.
pub fn weights(bounds: &Bounds, bitwidth: u8) -> u64 {
    bounds.shape()[1].saturating_mul(per_channel(bounds, bitwidth))
}

/// Bytes of weights in each bank of a weight buffer.
pub fn weights_per_bank(bounds: &Bounds, bitwidth: u8) -> u64 {
    let each = per_channel(bounds, bitwidth).div_ceil(32);
    bounds.shape()[1]
        .div_ceil(WEIGHT_BANKS)
        .saturating_mul(each.saturating_mul(32))
}

fn per_channel(bounds: &Bounds, bitwidth: u8) -> u64 {
    let [_, _, c, kernel] = bounds.shape();
    c.next_multiple_of(u64::from(usual_align(bitwidth).max(1)))
        .saturating_mul(kernel)
        .saturating_mul(u64::from(bitwidth) / 8)
        .saturating_add(CHANNEL_PARAMETERS)
}
