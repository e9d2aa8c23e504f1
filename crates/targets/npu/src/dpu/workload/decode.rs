//! Operation and geometry of a workload, from its registers.

use crate::dpu::geometry::{Axes, Geometry, Slide};
use crate::dpu::operation::{Elementwise, Operation};
use crate::dpu::registers::{DecodeError, Invariant, Variant};
use crate::generation::PostStages;

/// What a workload computes.
pub(super) fn operation(i: &Invariant) -> Result<Operation, DecodeError> {
    Ok(if i.elop_wload == 1 {
        Operation::Elementwise {
            function: match i.elop_operation {
                0 => Elementwise::Add,
                1 => Elementwise::Subtract,
                2 => Elementwise::Multiply,
                other => {
                    return Err(DecodeError::new(
                        "elop_operation",
                        "0 (add), 1 (subtract) or 2 (multiply)",
                        other,
                    ));
                }
            },
            scale_a: i.elop_scale_a as u16,
            scale_b: i.elop_scale_b as u16,
        }
    } else if i.pool_wt_rd_dis == 1 {
        let weight = i.pool_wt_data as u16;
        match (i.workload_operation, i.dw_input) {
            (0, 1) => Operation::AveragePool { weight },
            (0 | 3, 0) => Operation::Reduce {
                weight,
                squares: i.workload_operation == 3,
            },
            (2, _) => Operation::MaxPool,
            (other, _) => {
                return Err(DecodeError::new(
                    "workload_operation",
                    "0 (average or sum), 2 (max) or 3 (sum of squares) without weights",
                    other,
                ));
            }
        }
    } else if i.workload_operation != 0 {
        return Err(DecodeError::new(
            "workload_operation",
            "0 for an operation with weights",
            i.workload_operation,
        ));
    } else if i.dw_input == 1 {
        Operation::Depthwise
    } else {
        Operation::Convolution
    })
}

/// What it looks at, and what box of the output it fills.
pub(super) fn geometry(
    i: &Invariant,
    v: &Variant,
    operation: Operation,
    stages: PostStages,
) -> Result<Geometry, DecodeError> {
    let stride_y = if i.stride_y_en == 1 {
        i.stride_y
    } else {
        i.stride
    };
    // Programs for NPU5010 have kernels of up to 15 positions, all that the registers hold.
    let most = match stages {
        PostStages::Separate => 11,
        PostStages::Float => 15,
    };
    let x = SlideRegisters {
        fields: [
            "kernel_x",
            "pad_count_left",
            "pad_count_right",
            "workload_size_x",
            "te_end_x",
        ],
        kernel: i.kernel_x,
        stride: i.stride,
        pad: v.pad_count_left,
        pad_after: v.pad_count_right,
        tensor: i.tensor_size_x,
        start: v.workload_start_x,
        size: v.workload_size_x,
        begin: v.te_beg_x,
        end: v.te_end_x,
    }
    .slide(most)?;
    let y = SlideRegisters {
        fields: [
            "kernel_y",
            "pad_count_up",
            "pad_count_down",
            "workload_size_y",
            "te_end_y",
        ],
        kernel: i.kernel_y,
        stride: stride_y,
        pad: v.pad_count_up,
        pad_after: v.pad_count_down,
        tensor: i.tensor_size_y,
        start: v.workload_start_y,
        size: v.workload_size_y,
        begin: v.te_beg_y,
        end: v.te_end_y,
    }
    .slide(most)?;
    let channels = within(
        "workload_size_z",
        1,
        i.tensor_size_z.saturating_sub(v.workload_start_z),
        v.workload_size_z,
    )?;
    let outputs = within("te_end_z", v.te_beg_z, u32::MAX, v.te_end_z)? + 1 - v.te_beg_z as usize;
    let channels = match stages {
        // The newer DPU leaves padded channels out where it writes.
        PostStages::Float if !operation.sums_channels() => channels.min(outputs),
        // The last workload of a layer with a lookup table computes a pixel again with a size of 16 channels, whatever the tensor has. The
        // pixel keeps its value only if the sum goes over all channels (release 2026.4.1).
        PostStages::Float
            if operation == Operation::Convolution
                && v.workload_start_z == 0
                && v.conv_cond == 0 =>
        {
            i.tensor_size_z as usize
        }
        _ => channels,
    };
    if !operation.sums_channels() && channels != outputs {
        return Err(DecodeError::new(
            "workload_size_z",
            format_args!("as many channels as the output box has, {outputs}"),
            channels,
        ));
    }
    if matches!(operation, Operation::Elementwise { .. }) {
        within("kernel_x", 1, 1, i.kernel_x)?;
        within("kernel_y", 1, 1, i.kernel_y)?;
        within("stride", 0, 0, i.stride | stride_y)?;
    }
    for (field, size) in [
        ("tensor_size_x", i.tensor_size_x),
        ("tensor_size_y", i.tensor_size_y),
        ("tensor_size_z", i.tensor_size_z),
    ] {
        within(field, 1, 8192, size)?;
    }
    let start = Axes {
        x: v.workload_start_x as usize,
        y: v.workload_start_y as usize,
        z: v.workload_start_z as usize,
    };
    Ok(Geometry {
        x,
        y,
        start,
        channels,
        outputs,
    })
}

/// A register's value, if it lies in these bounds.
fn within(field: &'static str, low: u32, high: u32, found: u32) -> Result<usize, DecodeError> {
    if (low..=high).contains(&found) {
        Ok(found as usize)
    } else {
        Err(DecodeError::new(
            field,
            format_args!("{low} to {high}"),
            found,
        ))
    }
}

/// The registers of one axis of the window, with the names of those that may be wrong.
struct SlideRegisters {
    fields: [&'static str; 5],
    kernel: u32,
    stride: u32,
    pad: u32,
    pad_after: u32,
    tensor: u32,
    start: u32,
    size: u32,
    begin: u32,
    end: u32,
}

impl SlideRegisters {
    /// The window along this axis.
    fn slide(&self, most: u32) -> Result<Slide, DecodeError> {
        let kernel = within(self.fields[0], 1, most, self.kernel)?;
        // A window of padding only has no meaning.
        within(self.fields[1], 0, self.kernel - 1, self.pad)?;
        within(self.fields[2], 0, self.kernel - 1, self.pad_after)?;
        within(
            self.fields[3],
            1,
            self.tensor.saturating_sub(self.start),
            self.size,
        )?;
        let outputs =
            within(self.fields[4], self.begin, u32::MAX, self.end)? + 1 - self.begin as usize;
        let (stride, pad) = (self.stride as usize + 1, self.pad as usize);
        let needed = (outputs - 1) * stride + kernel;
        let given = self.size + self.pad + self.pad_after;
        if needed > given as usize {
            return Err(DecodeError::new(
                self.fields[3],
                format_args!(
                    "{needed} positions with padding, for {outputs} outputs of kernel {kernel} and stride {stride}"
                ),
                given,
            ));
        }
        // What lies behind the last tap is not looked at.
        Ok(Slide {
            kernel,
            stride,
            pad,
            size: (self.size as usize).min(needed - pad),
            outputs,
        })
    }
}
