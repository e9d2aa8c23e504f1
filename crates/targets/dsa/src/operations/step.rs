//! Operations that are small machines: accumulators, merges and matches of sorted streams, registers.

use super::complex::Complex;
use super::fixed;
use super::lane::{lane, lanes, zip};
use super::meaning::{Firing, Step};

/// An operation with registers or results that may not count, but which takes all its operands.
pub(super) const fn plain(operands: usize, run: fn(&mut Firing<'_>)) -> Step {
    Step {
        run,
        operands,
        holds: false,
        discards: true,
    }
}

/// An operation that may keep operands for the next firing.
pub(super) const fn holding(operands: usize, run: fn(&mut Firing<'_>)) -> Step {
    Step {
        run,
        operands,
        holds: true,
        discards: true,
    }
}

impl Firing<'_> {
    pub(super) fn a(&self) -> u64 {
        self.operands[0]
    }

    pub(super) fn b(&self) -> u64 {
        self.operands[1]
    }

    pub(super) fn c(&self) -> u64 {
        self.operands[2]
    }

    /// Accumulates where bit 2 of `b` does not forbid it, gives the sum, marks it invalid for bit 1, forgets it for bit 0.
    pub(super) fn accumulate(&mut self, add: impl Fn(u64, u64) -> u64) {
        let (a, control) = (self.a(), self.b());
        if control & 4 == 0 {
            self.registers[0] = add(self.registers[0], a);
        }
        self.results[0] = self.registers[0];
        self.discard |= control & 2 != 0;
        if control & 1 != 0 {
            self.registers[0] = 0;
        }
    }

    /// Accumulates always; `b` of 2 or 3 marks the sum invalid, and all but 0 and 2 forget it.
    pub(super) fn accumulate_always(&mut self, add: impl Fn(u64, u64) -> u64) {
        let sum = add(self.registers[0], self.a());
        self.results[0] = sum;
        self.discard |= matches!(self.b(), 2 | 3);
        self.registers[0] = if matches!(self.b(), 0 | 2) { sum } else { 0 };
    }

    /// Keeps the operand that the other stream has not caught up with.
    fn keep(&mut self, first: bool, second: bool) {
        self.hold = [first, second];
    }
}

/// Two lanes of 16 bits more than the others hold: four sums of 32 bits in two registers.
pub(super) fn accumulate_16_to_32(f: &mut Firing<'_>) {
    for half in 0..2 {
        let a = f.a();
        f.registers[half] = lanes(|i| {
            lane::<u32>(f.registers[half], i)
                .wrapping_add(lane::<u16>(a, half as u32 * 2 + i).into())
        });
        f.results[half] = f.registers[half];
    }
}

pub(super) fn norm_accumulate(f: &mut Firing<'_>) {
    f.accumulate(|sum, a| {
        let square = |i| lane::<u32>(a, i).wrapping_mul(lane(a, i));
        sum.wrapping_add(u64::from(square(0).wrapping_add(square(1))))
    });
}

/// Multiplies 16-bit lanes 0 and 1, 2 and 3, and accumulates; a word of zeros ends the sum and lets it out.
pub(super) fn multiply_accumulate(f: &mut Firing<'_>) {
    let part = |i| i64::from(lane::<i16>(f.a(), i)) * i64::from(lane::<i16>(f.a(), i + 1));
    let sum = (f.registers[0] as i64).wrapping_add(part(0) + part(2)) as u64;
    f.results[0] = sum;
    f.discard |= f.a() != 0;
    f.registers[0] = if f.a() == 0 { 0 } else { sum };
}

/// Accumulates 16-bit slices at their places, one place after the other; the fourth lets the word out.
pub(super) fn slice_accumulate(f: &mut Firing<'_>) {
    let (a, control) = (f.a(), f.b());
    if control & 4 == 0 {
        f.registers[0] = f.registers[0].wrapping_add(a << (f.registers[1] % 4 * 16));
    }
    f.results[0] = f.registers[0];
    f.discard |= control & 2 != 0;
    if control & 1 != 0 {
        f.registers[0] = 0;
    }
    if control & 2 == 0 {
        f.registers[1] = (f.registers[1] + 1) % 4;
        f.discard |= f.registers[1] != 0;
    }
}

/// The 16-bit slices of a word, one with each firing, the highest first.
pub(super) fn extract(f: &mut Firing<'_>) {
    let at = f.registers[1] % 4;
    f.results[0] = lane::<u16>(f.a(), 3 - at as u32).into();
    f.registers[1] = (at + 1) % 4;
}

/// The running maximum: 1 where a new one is found.
pub(super) fn greater_than_all(f: &mut Firing<'_>) {
    let greater = f.a() > f.registers[0];
    if greater {
        f.registers[0] = f.a();
    }
    f.results[0] = greater.into();
}

/// Bit 1 of `b` takes `a` into the register, bit 0 lets the register out and empties it.
pub(super) fn hold(f: &mut Firing<'_>) {
    if f.b() & 2 != 0 {
        f.registers[0] = f.a();
    }
    f.results[0] = f.registers[0];
    if f.b() & 1 == 0 {
        f.discard = true;
    } else {
        f.registers[0] = 0;
    }
}

/// Merges two sorted streams, the smaller one first.
pub(super) fn merge(f: &mut Firing<'_>) {
    let first = f.b() > f.a();
    f.results[0] = if first { f.a() } else { f.b() };
    f.keep(!first, first);
}

/// Merges two sorted streams that end in the largest power of two.
pub(super) fn merge_until(f: &mut Firing<'_>) {
    const END: u64 = 1 << 63;
    let (a, b) = (f.a(), f.b());
    if a == END && b == END {
        f.keep(false, false);
        f.discard = true;
        f.results[0] = u64::MAX;
    } else if a <= b || b == END {
        f.keep(false, true);
        f.results[0] = a;
    } else {
        f.keep(true, false);
        f.results[0] = b;
    }
}

/// One step of a join of two sorted streams that end in `end`: 0 where they match, 1 where the first is behind, 2 where the second is,
/// 3 at the end of both. What is ahead stays.
fn join(f: &mut Firing<'_>, end: u64) -> u64 {
    let (a, b) = (f.a(), f.b());
    let (step, first, second) = if a == end && b == end {
        (3, false, false)
    } else if a == b {
        (0, false, false)
    } else if a < b || b == end {
        (1, false, true)
    } else {
        (2, true, false)
    };
    f.keep(first, second);
    step
}

pub(super) fn join_16(f: &mut Firing<'_>) {
    f.results[0] = join(f, 0x7fff);
}

pub(super) fn join_64(f: &mut Firing<'_>) {
    f.results[0] = join(f, i64::MAX as u64);
}

/// The same join with the bits that steer an accumulator behind it: 0 reset, 1 discard, 2 do not accumulate, 3 and 4 hold.
pub(super) fn join_control(f: &mut Firing<'_>) {
    f.results[0] = control_bits(join(f, 1 << 63));
}

const fn control_bits(step: u64) -> u64 {
    match step {
        3 => 0b00101,
        0 => 0b00010,
        1 => 0b10110,
        _ => 0b01110,
    }
}

/// A join of streams of pairs of 32-bit indices. The bits above 4 pick lanes: which index of `b` the first one of `a` matches.
pub(super) fn join_pairs(f: &mut Firing<'_>) {
    const END: u32 = 1 << 31;
    let [a0, a1, b0, b1] = [
        lane::<u32>(f.a(), 0),
        lane(f.a(), 1),
        lane(f.b(), 0),
        lane(f.b(), 1),
    ];
    let matched = match a0 {
        _ if a0 == b0 => 1,
        _ if a0 == b1 => 2,
        _ => 0,
    };
    let (step, first, second) = if a1 == END && b1 == END {
        (3, false, false)
    } else if a1 == b1 {
        (0, false, false)
    } else if a1 < b1 || b1 == END {
        (1, false, true)
    } else {
        (2, true, false)
    };
    f.keep(first, second);
    f.results[0] = control_bits(step) | matched << 5 | matched << 7;
}

/// Absolute differences of the lanes that the bits of `c` pick; bits 3 and 4 of `c` hold.
pub(super) fn subtract_picked(f: &mut Firing<'_>) {
    let c = f.c();
    let difference = |i: u32| {
        let a = lane::<i32>(f.a(), i);
        match (c >> (5 + 2 * i)) & 3 {
            picked @ (1 | 2) => a
                .wrapping_sub(lane(f.b(), picked as u32 - 1))
                .wrapping_abs(),
            _ => 0,
        }
    };
    f.results[0] = lanes(difference);
    f.keep(c & 8 != 0, c & 16 != 0);
}

/// A double-precision product; bits 3 and 4 of `c` hold.
pub(super) fn multiply_holding(f: &mut Firing<'_>) {
    f.results[0] = (f64::from_bits(f.a()) * f64::from_bits(f.b())).to_bits();
    f.keep(f.c() & 8 != 0, f.c() & 16 != 0);
}

/// Compares 16-bit numbers and holds the greater one: bit 0 the first is smaller, bit 1 the first stays, bit 2 the second stays; 3 at the end
/// of both. Zeros are empty places: next to one nothing stays.
pub(super) fn control_16(f: &mut Firing<'_>) {
    const END: u64 = 0x7fff;
    let (a, b) = (f.a(), f.b());
    let end = a == END && b == END;
    let free = a == 0 || b == 0 || end;
    let (first, second) = (!free && a >= b, !free && a < b);
    f.keep(first, second);
    f.results[0] = if end {
        3
    } else {
        u64::from(first) << 1 | u64::from(second) << 2 | u64::from(a < b)
    };
}

/// The second of `a` and `b` where bit 0 of `c` is set; bits 1 and 2 of `c` hold.
pub(super) fn select_16(f: &mut Firing<'_>) {
    f.results[0] = if f.c() & 1 == 0 { f.a() } else { f.b() };
    f.keep(f.c() & 2 != 0, f.c() & 4 != 0);
}

/// Steps of a join of two sparse streams, two entries of a 16-bit distance and a 16-bit value in each word; all ones end a stream.
pub(super) fn join_sparse(f: &mut Firing<'_>) {
    const END: u64 = u64::MAX;
    let (a, b) = (f.a(), f.b());
    if a == END || b == END {
        f.keep(a == END && b != END, b == END && a != END);
        f.discard |= a != b;
        f.results[0] = if a == b { 0 } else { u64::MAX };
        if a == b {
            f.registers[0] = 0;
        }
        return;
    }
    let part = |word: u64, i: u32| u64::from(lane::<u16>(word, i));
    let before = [f.registers[0] & 0xffff, f.registers[0] >> 16 & 0xffff];
    let (first_a, first_b) = (before[0] + part(a, 0), before[1] + part(b, 0));
    let (last_a, last_b) = (first_a + part(a, 2), first_b + part(b, 2));
    let matched = if last_a == first_b {
        part(a, 3) | part(b, 1) << 16
    } else if last_b == first_a {
        part(a, 1) | part(b, 3) << 16
    } else if first_a == first_b {
        let next = if last_a == last_b {
            part(a, 3) << 32 | part(b, 3) << 48
        } else {
            0
        };
        part(a, 1) | part(b, 1) << 16 | next
    } else {
        0
    };
    f.keep(last_a > last_b, last_a < last_b);
    let kept_a = if last_a > last_b { before[0] } else { last_a };
    let kept_b = if last_a < last_b { before[1] } else { last_b };
    f.registers[0] = kept_a | kept_b << 16;
    f.discard |= matched == 0;
    f.results[0] = matched;
}

pub(super) fn accumulate_complex(f: &mut Firing<'_>) {
    f.accumulate_always(|sum, a| Complex::of(sum).add(Complex::of(a)).word());
}

pub(super) fn accumulate_fixed(f: &mut Firing<'_>) {
    f.accumulate_always(fixed::accumulate);
}

pub(super) fn accumulate_16x4(f: &mut Firing<'_>) {
    f.accumulate(|sum, a| zip::<u16>(sum, a, u16::wrapping_add));
}
