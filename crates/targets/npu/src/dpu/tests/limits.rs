//! What is refused, what is said of the rest, and what it costs.

use super::build::{
    INPUT_MAP, Memory, NO_MAP, ONE, POINTERS, Task, WEIGHTS, execute, identity, quantised,
    scale_word,
};
use crate::dpu::registers::HaloRegion;
use crate::dpu::{Cost, DpuFigures};
use crate::machine::Machine;

/// What is said of a task, and how to make it.
type Case = (&'static str, fn(&mut Task));

#[test]
fn pointers_are_checked() {
    let expect = |task: &Task, memory: &Memory, message: &str| {
        let mut after = memory.clone();
        let fault = task.run(&mut after).expect_err(message);
        assert_eq!(fault.message, message);
        assert!(after == *memory, "nothing is written");
    };
    let (task, mut memory) = identity();
    memory.put_entry(5, [0xfff000, NO_MAP, ONE, 0]);
    expect(
        &task,
        &memory,
        "weight table, channel 5: its 16 weights (32 bytes) at 0xfff000 do not lie in the tile's 0x48000 bytes",
    );

    let (mut task, mut memory) = identity();
    task.invariant.wt_dense = 0;
    expect(
        &task,
        &memory,
        "weight table, channel 0: sparse weights without a sparsity map",
    );
    memory.put_entry(0, [WEIGHTS, 0xfff000, ONE, 0]);
    expect(
        &task,
        &memory,
        "weight table, channel 0: its sparsity map of 2 bytes at 0xfff000 does not lie in the tile's 0x48000 bytes",
    );

    let (mut task, memory) = identity();
    task.variant.weight_start = 0x47ff8;
    expect(
        &task,
        &memory,
        "weight table: 256 bytes for 16 channels at 0x47ff8 do not lie in the tile's 0x48000 bytes",
    );
    task.variant.weight_start = u32::MAX;
    expect(
        &task,
        &memory,
        "weight table: 256 bytes for 16 channels at 0xffffffff do not lie in the tile's 0x48000 bytes",
    );

    let (mut task, memory) = identity();
    task.invariant.act_offset0 = 0x47ff0;
    expect(
        &task,
        &memory,
        "activations: ends at 0x48010, beyond the tile's 0x48000 bytes",
    );
    let (mut task, memory) = identity();
    task.invariant.ac_base = 0x47ff;
    expect(
        &task,
        &memory,
        "output: ends at 0x48010 of tile 0, beyond its 0x48000 bytes",
    );

    let (mut task, mut memory) = identity();
    (task.invariant.act_dense, task.variant.dense_se) = (0, 0);
    (task.invariant.se_addr, task.invariant.sparsity_addr) = (POINTERS, INPUT_MAP);
    memory.put(INPUT_MAP, &[0xff, 0xff]);
    memory.put(POINTERS, &(0x40000u32 << 5).to_le_bytes());
    expect(
        &task,
        &memory,
        "storage element of pixel (0, 0) (32 bytes at 0x48000): ends at 0x48020, beyond the tile's 0x48000 bytes",
    );
    memory.put(POINTERS, &3u32.to_le_bytes());
    expect(
        &task,
        &memory,
        "storage element of pixel (0, 0): its pointer 0x3 counts from base 3; only base 0 is known",
    );
    task.invariant.se_addr = 0x47ffe;
    expect(
        &task,
        &memory,
        "storage element table: ends at 0x48002, beyond the tile's 0x48000 bytes",
    );
    task.invariant.sparsity_addr = 0x47fff;
    expect(
        &task,
        &memory,
        "sparsity map: ends at 0x48001, beyond the tile's 0x48000 bytes",
    );

    let (mut task, memory) = quantised();
    let mut memory = memory;
    memory.put_entry(2, [WEIGHTS, NO_MAP, scale_word(1, 0, 1), 0]);
    task.tile = 0;
    expect(
        &task,
        &memory,
        "weight table, channel 2: scale 0x00014000 has a reserved rounding mode",
    );
}

/// What does not decode, by the message.
const MEANINGLESS: &[Case] = &[
    (
        "te_end_y: expected 0 (te_beg) to 0 (te_dim), found 200",
        |t| t.variant.te_end_y = 200,
    ),
    (
        "te_end_x: expected 1 (te_beg) to 0 (te_dim), found 0",
        |t| t.variant.te_beg_x = 1,
    ),
    ("workload_size_x: expected 1 to 1, found 0", |t| {
        t.variant.workload_size_x = 0;
    }),
    ("workload_size_z: expected 1 to 16, found 17", |t| {
        t.variant.workload_size_z = 17;
    }),
    ("workload_size_y: expected 1 to 0, found 1", |t| {
        t.variant.workload_start_y = 1;
    }),
    ("kernel_x: expected 1 to 11, found 0", |t| {
        t.invariant.kernel_x = 0;
    }),
    ("kernel_y: expected 1 to 11, found 12", |t| {
        t.invariant.kernel_y = 12;
    }),
    ("pad_count_up: expected 0 to 0, found 1", |t| {
        t.variant.pad_count_up = 1;
    }),
    (
        "workload_size_x: expected 3 positions with padding, for 1 outputs of kernel 3 and stride 1, found 2",
        |t| {
            (t.invariant.kernel_x, t.variant.pad_count_left) = (3, 1);
        },
    ),
    (
        "workload_size_z: expected as many channels as the output box has, 8, found 16",
        |t| {
            (t.invariant.dw_input, t.variant.te_end_z) = (1, 7);
        },
    ),
    ("stride: expected 0 to 0, found 1", |t| {
        (t.invariant.elop_wload, t.invariant.stride) = (1, 1);
    }),
    ("tensor_size_z: expected 1 to 8192, found 8193", |t| {
        t.invariant.tensor_size_z = 8193;
    }),
    ("amode: expected a format, 0 to 9, found 12", |t| {
        t.invariant.amode = 12;
    }),
    (
        "wmode: expected an integer format for uint8 activations, found float16",
        |t| t.invariant.amode = 1,
    ),
    (
        "wt_swizzle_key: expected a swizzle key, 0 to 5, found 6",
        |t| t.variant.wt_swizzle_key = 6,
    ),
    (
        "swizzle_key: expected a swizzle key, 0 to 5, found 7",
        |t| t.invariant.swizzle_key = 7,
    ),
    ("permutation: expected 0 to 5, found 6", |t| {
        t.invariant.permutation = 6;
    }),
    (
        "odu dtype: expected an element width, 0 to 5, found 6",
        |t| t.invariant.dtype = 6,
    ),
    (
        "odu dtype: expected 16 bits for float16 (ppe_fp_convert 1), found 8 bits",
        |t| t.invariant.dtype = 3,
    ),
    ("ppe_fp_convert: expected 0 to 5, found 7", |t| {
        t.invariant.ppe_fp_convert = 7;
    }),
    ("ppe_scale_round: expected 0, 2 or 3, found 1", |t| {
        (
            t.invariant.ppe_fp_convert,
            t.invariant.dtype,
            t.invariant.ppe_scale_round,
        ) = (4, 3, 1);
    }),
    (
        "workload_operation: expected 0 for an operation with weights, found 2",
        |t| t.invariant.workload_operation = 2,
    ),
    (
        "workload_operation: expected 0 (average or sum), 2 (max) or 3 (sum of squares) without weights, found 1",
        |t| {
            (t.invariant.pool_wt_rd_dis, t.invariant.workload_operation) = (1, 1);
        },
    ),
    ("tile: expected 0 to 5, found 6", |t| t.tile = 6),
    (
        "halo tile_select: expected tiles 0 to 5, found 0b1000000",
        |t| {
            t.halos = vec![HaloRegion {
                enable: 1,
                tile_select: 64,
                ..HaloRegion::default()
            }];
        },
    ),
    ("halo end_x: expected at least begin_x, 2, found 1", |t| {
        t.halos = vec![HaloRegion {
            enable: 1,
            begin_x: 2,
            end_x: 1,
            ..HaloRegion::default()
        }];
    }),
    (
        "halo ac_adr_offset: expected an offset that stays in the tile, found -1048576",
        |t| {
            t.halos = vec![HaloRegion {
                enable: 1,
                tile_select: 2,
                ac_adr_offset: 3 << 20,
                ..HaloRegion::default()
            }];
        },
    ),
];

#[test]
fn values_that_mean_nothing_are_refused() {
    for (message, change) in MEANINGLESS {
        let mut task = Task::new();
        change(&mut task);
        assert_eq!(
            task.decode().err().map(|e| e.to_string()).as_deref(),
            Some(*message)
        );
    }
}

/// What is refused when it runs, by the reason that is given.
const UNSUPPORTED: &[Case] = &[
    ("sparse output (write_sp, sp_out_en)", |t| {
        t.invariant.write_sp = 1;
    }),
    ("pointer output (write_pt)", |t| t.invariant.write_pt = 1),
    ("an output that is not written (write_ac 0)", |t| {
        t.invariant.write_ac = 0;
    }),
    ("output broadcast (odu_cast)", |t| {
        t.invariant.cast_enable1 = 1;
    }),
    ("output elements of less than a byte (odu dtype)", |t| {
        t.invariant.dtype = 2;
    }),
    ("1- and 2-bit weight palettes (wt_plt_cfg)", |t| {
        t.invariant.wt_plt_cfg = 1;
    }),
    ("palettes of elements of less than a byte", |t| {
        (t.invariant.wt_plt_cfg, t.invariant.wmode) = (3, 3);
    }),
    ("pixels that start inside a byte", |t| {
        *t = t.clone().integers(3);
        (t.invariant.dtype, t.invariant.tensor_size_z) = (3, 17);
    }),
    ("channel-major input (cm_input)", |t| {
        t.invariant.cm_input = 1;
    }),
    ("seed and FIFO workloads", |t| t.invariant.seed_wload = 1),
    (
        "elementwise operations of another kind (elop_wload_type)",
        |t| {
            (
                t.invariant.elop_wload,
                t.invariant.elop_wload_type,
                t.invariant.ppe_fp_scale_override,
            ) = (1, 1, 1);
        },
    ),
    (
        "pixels that begin behind other channels (tensor_cmp_offset)",
        |t| t.invariant.tensor_cmp_offset = 2,
    ),
    (
        "elementwise operands that are not repeated (repeat_dis)",
        |t| t.invariant.repeat_dis = 1,
    ),
    (
        "other modes of the post-processing engine (ppe_mode, ppe_mult2_mode)",
        |t| t.invariant.ppe_mode = 3,
    ),
    ("other roundings (ppe_rnd_fd, ppe_rnd_int)", |t| {
        t.invariant.ppe_rnd_int = 1;
    }),
    (
        "a second tensor beside the activations (sb_read_en, tensor2_act_dense)",
        |t| t.variant.sb_read_en = 1,
    ),
    ("elementwise products of integers", |t| {
        *t = t.clone().integers(1);
        (
            t.invariant.elop_wload,
            t.invariant.elop_operation,
            t.invariant.wmode,
            t.invariant.ppe_scale_override,
        ) = (1, 2, 1, 1);
    }),
    ("elementwise scales from a weight table", |t| {
        t.invariant.elop_wload = 1;
    }),
    ("binary elements", |t| t.invariant.wmode = 7),
    ("padding with a value (pad_*_en)", |t| {
        t.invariant.pad_en = 8;
    }),
    ("several storage elements in z", |t| {
        (
            t.invariant.act_dense,
            t.variant.dense_se,
            t.invariant.num_ses_in_z_dir,
        ) = (0, 0, 1);
    }),
    ("several storage elements in z", |t| {
        (
            t.invariant.act_dense,
            t.variant.dense_se,
            t.invariant.npo2_se_z_split_en,
            t.invariant.tensor_size_z,
        ) = (0, 0, 1, 32);
    }),
    ("segmented storage element tables", |t| {
        (
            t.invariant.act_dense,
            t.variant.dense_se,
            t.invariant.sp_se_tbl_segment,
        ) = (0, 0, 1);
    }),
    ("activation sparsity without a storage element table", |t| {
        t.invariant.act_dense = 0;
    }),
    ("a storage element table without a sparsity map", |t| {
        t.variant.dense_se = 0;
    }),
    ("swizzled storage elements", |t| {
        (
            t.invariant.act_dense,
            t.variant.dense_se,
            t.variant.swizzle_key_offset,
        ) = (0, 0, 5);
    }),
    ("compressed input of more channels than are stored", |t| {
        (t.invariant.layer1_cmp_en, t.invariant.cm_sp_pattern) = (1, 0x1f);
    }),
    ("continued operations other than convolution", |t| {
        *t = t.clone().max_pool();
        t.variant.conv_cond = 1;
    }),
    ("float sums that bypass the PPE (ppe_fp_bypass 1)", |t| {
        t.invariant.ppe_fp_bypass = 1;
    }),
    ("integer sums in the float PPE (ppe_fp_bypass 0)", |t| {
        *t = t.clone().integers(1);
        t.invariant.ppe_fp_bypass = 0;
    }),
    ("float8 from integers (ppe_i32_convert 2)", |t| {
        *t = t.clone().integers(1);
        t.invariant.ppe_i32_convert = 2;
    }),
    (
        "integers from floats with scales of the weight table",
        |t| {
            (
                t.invariant.ppe_fp_convert,
                t.invariant.dtype,
                t.invariant.ppe_scale_override,
            ) = (4, 3, 0);
        },
    ),
];

#[test]
fn what_is_not_known_decodes_and_is_refused_by_name() {
    for (reason, change) in UNSUPPORTED {
        let mut task = Task::new();
        change(&mut task);
        let workload = task.decode().expect(reason);
        assert_eq!(workload.unsupported().as_deref(), Some(*reason));
        let mut memory = Memory::zeroed();
        let fault = execute(&workload, &mut memory, &mut None).expect_err(reason);
        assert!(fault.unsupported && fault.message == *reason && memory == Memory::zeroed());
        // Listings and timing still work.
        workload.accesses(&mut |_| ());
        assert!(
            workload.cycles(&Machine::default().dpu, 1.0) > 0.0 && !workload.details().is_empty()
        );
    }
    assert_eq!(Task::new().decode().expect("decodes").unsupported(), None);
}

#[test]
fn what_no_program_proves_is_said() {
    let cases: &[Case] = &[
        ("bfloat16 results; bfloat16 activations", |t| {
            (
                t.invariant.amode,
                t.invariant.wmode,
                t.invariant.ppe_fp_convert,
            ) = (5, 5, 2);
        }),
        (
            "float8_e4m3fn results; float8_e5m2 weights for float16 activations",
            |t| {
                (
                    t.invariant.wmode,
                    t.invariant.ppe_fp_convert,
                    t.invariant.dtype,
                ) = (8, 5, 3);
            },
        ),
        ("int8 activations", |t| *t = t.clone().integers(2)),
        ("swizzle keys 1 to 4", |t| t.variant.swizzle_key_offset = 4),
        ("sparse depthwise weights", |t| {
            (t.invariant.dw_input, t.invariant.wt_dense) = (1, 0);
        }),
        ("sparse palettised weights", |t| {
            (t.invariant.wt_plt_cfg, t.invariant.wt_dense) = (3, 0);
        }),
        ("scaled float operands", |t| {
            *t = t.clone().add();
            t.invariant.elop_scale_a = 2;
        }),
        (
            "denormals as in IEEE arithmetic (mpe_daz and mpe_ftz are ignored)",
            |t| t.invariant.mpe_daz = 1,
        ),
        ("flushing of float16 denormals (ppe_fp16_ftz)", |t| {
            t.invariant.ppe_fp16_ftz = 1;
        }),
        ("integer rounding NearestAway (ppe_scale_round)", |t| {
            *t = t.clone().integers(1);
            (
                t.invariant.ppe_scale_override,
                t.invariant.ppe_scale_round,
                t.invariant.ppe_scale_shift,
            ) = (1, 2, 4);
        }),
        ("integer results of more than 8 bits", |t| {
            *t = t.clone().integers(1);
            t.invariant.dtype = 5;
        }),
    ];
    for (reason, change) in cases {
        let mut task = Task::new();
        change(&mut task);
        assert_eq!(
            task.decode().expect(reason).unproven().as_deref(),
            Some(*reason)
        );
    }
    assert_eq!(Task::new().decode().expect("decodes").unproven(), None);
}

#[test]
fn listings() {
    let mut task = Task::new().extents([16, 16, 64], [14, 14, 32]).integers(1);
    (
        task.invariant.kernel_x,
        task.invariant.kernel_y,
        task.invariant.wt_dense,
    ) = (3, 3, 0);
    (
        task.invariant.ppe_i32_convert,
        task.invariant.dtype,
        task.invariant.permutation,
    ) = (1, 4, 5);
    (
        task.invariant.ppe_scale_hclamp,
        task.invariant.ppe_prelu_mult,
    ) = (0x7fff_ffff, 0);
    task.variant.swizzle_key_offset = 5;
    task.halos.push(HaloRegion {
        enable: 1,
        tile_select: 6,
        target_width_lsb: 14,
        end_x: 13,
        end_y: 13,
        ..HaloRegion::default()
    });
    let workload = task.decode().expect("decodes");
    assert_eq!(workload.operation(), "conv 3x3 stride 1");
    assert_eq!(
        workload.details(),
        "uint8→float16, in 16x16x64, out 14x14x32 at (0,0,0), ReLU, sparse weights, order XYZ, swizzle in 5, halo to tiles 1,2"
    );
    (
        task.invariant.wmode,
        task.invariant.stride_y_en,
        task.invariant.stride_y,
    ) = (2, 1, 1);
    (task.variant.te_end_y, task.variant.pad_count_left) = (6, 1);
    let workload = task.decode().expect("decodes");
    assert_eq!(workload.operation(), "conv 3x3 stride 2x1");
    assert!(
        workload
            .details()
            .starts_with("uint8*int8→float16, in 15x15x64, out 14x7x32 at (0,0,0), padding 0x1, "),
        "{}",
        workload.details()
    );
    assert_eq!(
        Task::new()
            .max_pool()
            .decode()
            .expect("decodes")
            .operation(),
        "max pool 1x1 stride 1"
    );
    assert_eq!(
        Task::new()
            .average_pool(1.0)
            .decode()
            .expect("decodes")
            .operation(),
        "average pool 1x1 stride 1"
    );
    assert_eq!(
        Task::new().add().decode().expect("decodes").operation(),
        "eltwise add"
    );
}

/// Workloads of the one public profile of NPU4 silicon (age-gender network), and the cycles until their last byte was written.
#[test]
fn cycles_of_measured_workloads() {
    let figures = Machine::default().dpu;
    let pool = |window: [u32; 3], extent: [u32; 3]| {
        let mut task = Task::new().extents(window, extent).max_pool();
        let invariant = &mut task.invariant;
        (invariant.kernel_x, invariant.kernel_y, invariant.stride) = (3, 3, 1);
        task.variant.pad_count_left = 1;
        task
    };
    let convolution = |window: [u32; 3], extent: [u32; 3], dense: u32| {
        let mut task = Task::new().extents(window, extent);
        (task.invariant.kernel_x, task.invariant.kernel_y) = (3, 3);
        task.invariant.wt_dense = dense;
        task
    };
    let measured = [
        (Task::new().extents([11, 3, 64], [11, 3, 64]).add(), 370.0),
        (convolution([62, 12, 16], [60, 10, 48], 0), 3522.0),
        (pool([60, 11, 32], [30, 5, 32]), 2008.0),
        (pool([60, 11, 16], [30, 5, 16]), 1037.0),
        (convolution([30, 7, 48], [28, 5, 64], 1), 6686.0),
        (convolution([30, 6, 48], [28, 4, 64], 1), 3428.0),
        (pool([28, 7, 64], [14, 3, 64]), 1774.0),
        (pool([28, 5, 64], [14, 2, 64]), 1752.0),
    ];
    let mut errors: Vec<f64> = measured
        .into_iter()
        .map(|(task, cycles): (Task, f64)| {
            // Of the sparse weights, 19 % are there.
            let present = if task.invariant.wt_dense == 0 {
                0.19
            } else {
                1.0
            };
            let estimate = task.decode().expect("decodes").cycles(&figures, present);
            (estimate / cycles - 1.0).abs()
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors[4] <= 0.07 && errors[7] <= 0.45, "{errors:?}");
}

#[test]
fn started_blocks_count_whole_and_narrow_elements_half() {
    let cost = Cost {
        fixed: 0.0,
        tap: 0.25,
        block: 0.0,
        read: 0.0,
        written: 0.0,
        weight: 0.0,
    };
    let figures = DpuFigures {
        convolution: cost,
        activations: 0.0,
        ..Machine::default().dpu
    };
    let mut task = Task::new().extents([30, 7, 48], [28, 5, 64]);
    (task.invariant.kernel_x, task.invariant.kernel_y) = (3, 3);
    let cycles = |task: &Task| task.decode().expect("decodes").cycles(&figures, 1.0);
    assert_eq!(cycles(&task) as u64, 6048);
    task.variant.te_end_y = 3;
    assert_eq!(cycles(&task) as u64, 3024);
    (task.invariant.amode, task.invariant.wmode) = (8, 8);
    assert_eq!(cycles(&task) as u64, 1512);
}

#[test]
fn sparse_convolutions_take_the_longest_of_their_three_parts_at_least() {
    let mut figures = Machine::default().dpu;
    let sparse = &mut figures.sparse;
    (sparse.activations, sparse.tap, sparse.uneven) = (0.5, 0.25, 0.0);
    (sparse.fixed, sparse.block, sparse.read, sparse.written) = (0.0, 0.0, 0.0, 0.0);
    let mut task = Task::new().extents([30, 7, 48], [28, 5, 64]);
    (task.invariant.kernel_x, task.invariant.kernel_y) = (3, 3);
    task.invariant.wt_dense = 0;
    let workload = task.decode().expect("decodes");
    // 14 × 432 taps of positions at 0.5, and 4 × 14 × 432 of blocks at 0.25.
    assert!((workload.cycles(&figures, 0.0) - 3024.0).abs() < 1e-6);
    figures.sparse.norm = 1.0;
    assert!((workload.cycles(&figures, 1.0) - 9072.0).abs() < 1e-6);
    assert!((workload.cycles(&figures, 0.5) - 6048.0).abs() < 1e-6);
    figures.sparse.uneven = 1.0;
    assert!((workload.cycles(&figures, 0.5) - (3024.0 + 0.75 * 6048.0)).abs() < 1e-6);
}
