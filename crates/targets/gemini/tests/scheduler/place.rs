//! Addresses: first come, first fit.

use super::{Dice, Loaded, Program, Tensor};

/// L2 is a ring, and all of it may be turned.
pub(super) fn tensors(program: &mut Program, dice: &mut Dice) {
    let mut end = 0;
    for core in 0..program.cores.len() {
        let mut own: Vec<usize> = (0..program.tensors.len())
            .filter(|t| program.tensors[*t].core == core)
            .collect();
        own.sort_by_key(|t| program.tensors[*t].first);
        for (n, &index) in own.iter().enumerate() {
            let tensor = &program.tensors[index];
            let others = own[..n].iter().map(|t| &program.tensors[*t]);
            let taken = others.filter(|other| meet(tensor, other));
            let mut taken: Vec<(u64, u64)> =
                taken.map(|t| (t.address, t.address + t.bytes)).collect();
            taken.sort_unstable();
            let mut address = 32 * dice.below(2) as u64;
            for (start, last) in taken {
                if start < address + tensor.bytes && last > address {
                    address = last.next_multiple_of(32);
                }
            }
            end = end.max(address + tensor.bytes);
            program.tensors[index].address = address;
        }
    }
    program.buffer_size = end.next_multiple_of(32) + 32 * dice.below(4) as u64;
    if dice.chance(50) {
        program.turned = 32 * dice.below(program.buffer_size as usize / 32) as u64;
    }
}

/// Whether two tensors of a core need bytes of their own.
fn meet(a: &Tensor, b: &Tensor) -> bool {
    let follows = |earlier: &Tensor, later: &Tensor| {
        earlier.last < later.first && earlier.left < later.written
    };
    !follows(a, b) && !follows(b, a)
}

/// Bytes of an entry in each bank of the weight buffer.
pub(super) fn held(program: &Program, number: usize) -> u64 {
    let used = &program.uses[number];
    let [_, c, r, s] = program.layers[used.layer].weights();
    let channel = u64::from(c.next_multiple_of(8)) * u64::from(r * s) + 32;
    u64::from(used.channels[1] - used.channels[0] + 1).div_ceil(64) * channel.next_multiple_of(32)
}

/// Weight buffers: nothing else lies where an entry stands.
pub(super) fn weights(program: &mut Program) {
    for core in 0..program.cores.len() {
        let mut own: Vec<usize> = (0..program.uses.len())
            .filter(|u| program.uses[*u].core == core)
            .collect();
        own.sort_by_key(|u| program.uses[*u].first);
        for (n, &index) in own.iter().enumerate() {
            let span = |u: usize| {
                let used = &program.uses[u];
                let from_l2 = matches!(
                    program.loads[used.load].what,
                    Loaded::Weights {
                        through_l2: true,
                        ..
                    }
                );
                let first = if from_l2 {
                    program.pieces[used.pieces[0]].position
                } else {
                    used.first
                };
                (first, used.last)
            };
            let (first, last) = span(index);
            let size = held(program, index);
            let others = own[..n]
                .iter()
                .filter(|u| span(**u).0 <= last && first <= span(**u).1);
            let mut taken: Vec<(u64, u64)> = others
                .map(|u| {
                    (
                        program.uses[*u].address,
                        program.uses[*u].address + held(program, *u),
                    )
                })
                .collect();
            taken.sort_unstable();
            let mut address = 0;
            for (start, end) in taken {
                if start < address + size && end > address {
                    address = end;
                }
            }
            program.uses[index].address = address;
        }
    }
}
