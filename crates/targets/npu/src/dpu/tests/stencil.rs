//! The shape of the DPU: what its multipliers, contexts and reads bound, and boxes that they do not hold.

use super::build::Task;
use crate::dpu::{DpuFigures, Model, Multipliers, Stencil};
use crate::machine::Machine;

/// A 1×1 convolution of so many positions and channels, with the contexts divided as a register says.
fn grid(task: [u32; 3], outputs: u32, nthw_ntk: u32) -> Task {
    let [x, y, _] = task;
    let mut task = Task::new().extents(task, [x, y, outputs]);
    task.variant.nthw_ntk = nthw_ntk;
    task
}

#[test]
fn the_shape_of_the_dpu_bounds_a_convolution() {
    let figures = Machine::default().dpu;
    let least = |task: &Task| {
        let workload = task.decode().expect("decodes");
        workload.least_cycles(&figures, 1.0).expect("a convolution")
    };
    // 16 × 16 positions, 64 channels to 64: its multiplications at 1024 a cycle, with each grid that does not read too often.
    let mut task = grid([16, 16, 64], 64, 3);
    assert_eq!(least(&task), 1024.0);
    // Twice as many a cycle of 8 bits.
    (task.invariant.amode, task.invariant.wmode) = (8, 8);
    assert_eq!(least(&task), 512.0);
    // One channel of input has a cycle for each block all the same.
    let narrow = grid([16, 16, 1], 64, 3);
    assert_eq!(least(&narrow), 64.0);
    // 4 × 4 positions, 1024 channels to 1024 of 16 bits: weights decide, and each grid reads them once. Activations are read once for each
    // pass over channels: 64 blocks of them are 16 passes of 4 (16 × 4), 8 of 8, and 4 of 16.
    let (weights, activations) = ((1024 * 1024 * 2) as f64, (16 * 1024 * 2) as f64);
    for (nthw_ntk, passes) in [(3, 16.0), (0, 8.0), (1, 4.0)] {
        let read = (weights + passes * activations) / figures.stencil.read;
        let multiply = 64.0 * 1024.0 / 4.0;
        let found = least(&grid([4, 4, 1024], 1024, nthw_ntk));
        assert!((found - read.max(multiply)).abs() < 1e-6, "{found}");
    }
    // 64 × 16 positions, 64 channels of 16: with 16 × 4 four passes read the weights, with 4 × 16 sixteen.
    let few = |nthw_ntk, figures: &DpuFigures| {
        let task = grid([64, 16, 16], 64, nthw_ntk);
        task.decode().expect("decodes").least_cycles(figures, 1.0)
    };
    let slow = DpuFigures {
        stencil: Stencil {
            read: 1.0,
            ..figures.stencil
        },
        ..figures
    };
    let (weights, activations) = ((16 * 64 * 2) as f64, (64 * 16 * 16 * 2) as f64);
    assert_eq!(few(3, &slow), Some(4.0 * weights + activations));
    assert_eq!(few(1, &slow), Some(16.0 * weights + activations));
    // Half of the contexts, twice the passes.
    let half = DpuFigures {
        stencil: Stencil {
            contexts: 32.0,
            ..slow.stencil
        },
        ..slow
    };
    assert_eq!(few(3, &half), Some(8.0 * weights + 2.0 * activations));
    // Other operations have no multiplications to count.
    let pool = Task::new().max_pool().decode().expect("decodes");
    assert_eq!(pool.least_cycles(&figures, 1.0), None);
}

#[test]
fn the_model_of_the_stencil_times_convolutions_and_nothing_else() {
    let figures = Machine::default().dpu;
    let stencil = DpuFigures {
        stencil: Stencil {
            model: Model::Stencil,
            ..figures.stencil
        },
        ..figures
    };
    let convolution = grid([16, 16, 64], 64, 3).decode().expect("decodes");
    assert_eq!(convolution.cycles(&stencil, 1.0), 176.0 + 1024.0);
    let pool = Task::new().max_pool().decode().expect("decodes");
    assert_eq!(pool.cycles(&stencil, 1.0), pool.cycles(&figures, 1.0));
    // Twice the multipliers halve what fitted taps take, and nothing else.
    let faster = DpuFigures {
        macs: Multipliers {
            float16: 2048.0,
            ..figures.macs
        },
        ..figures
    };
    let saved = convolution.cycles(&figures, 1.0) - convolution.cycles(&faster, 1.0);
    assert!((saved - 0.5 * 0.218 * 64.0 * 64.0).abs() < 1e-6, "{saved}");
}

#[test]
fn a_continued_box_that_the_accumulators_do_not_hold_is_refused() {
    // 8 × 8 contexts hold 8 blocks of positions, and 8 of channels.
    let cases = [
        ([16, 8, 16], 128, 0, None),
        ([16, 9, 16], 128, 0, Some("16x9x128")),
        ([16, 8, 16], 144, 0, Some("16x8x144")),
        ([16, 16, 16], 64, 3, None),
        ([16, 16, 16], 80, 3, Some("16x16x80")),
        ([4, 16, 16], 256, 1, None),
        ([16, 16, 16], 16, 1, Some("16x16x16")),
    ];
    for (input, outputs, nthw_ntk, refused) in cases {
        let mut task = grid(input, outputs, nthw_ntk);
        task.variant.conv_cond = 1;
        let found = task.decode().expect("decodes").unsupported();
        match refused {
            None => assert_eq!(found, None),
            Some(size) => {
                let found = found.expect("is refused");
                assert!(
                    found.contains(&format!("of a box of {size}, which")),
                    "{found}"
                );
            }
        }
        // Without continuing it, the DPU goes on to the next boxes by itself.
        task.variant.conv_cond = 0;
        assert_eq!(task.decode().expect("decodes").unsupported(), None);
    }
}
