//! What belongs to one operation of a transfer only: scales, constants, transpositions.

use super::super::Findings;
use super::Context;
use crate::engine::{ConstantType, DataType, Descriptor, MAX_DIMENSIONS, Operation};
use crate::rules::dma as rules;
use crate::rules::stream::NOT_EXECUTED;

impl<'a> Context<'_, 'a> {
    /// Fields that belong to one operation only.
    pub(super) fn extras(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        self.scales(descriptor, at, findings);
        self.constant(descriptor, at, findings);
        self.transposition(descriptor, at, findings);
        let dimensions = descriptor
            .sources()
            .map(|s| s.sizes.len())
            .chain([descriptor.to.sizes.len()])
            .max()
            .unwrap_or(0);
        if let Some(tiled) = descriptor
            .num_tiling_dimensions
            .filter(|n| !(1..=dimensions as u64).contains(n))
        {
            let message = format!("{tiled} tiling dimensions, the transfer has {dimensions}");
            self.report(
                findings,
                &rules::DMA_TILING,
                &format!("{at}/num_tiling_dimensions"),
                message,
            );
        }
    }

    fn scales(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let operation = descriptor.operation;
        let field = |name: &str| format!("{at}/{name}");
        let scaled = descriptor.from_arr.iter().position(|s| s.scale.is_some());
        let scale_field = scaled.map_or_else(
            || field("scale"),
            |index| field(&format!("from_arr/{index}/scale")),
        );
        let has_scale = descriptor.scale.is_some() || scaled.is_some();
        if has_scale && operation != Operation::Fma {
            self.report(
                findings,
                &rules::DMA_SCALE,
                &scale_field,
                format!("scale on {operation}"),
            );
        }
        if descriptor.scale_dtype.is_some() && operation != Operation::Fma {
            self.report(
                findings,
                &rules::DMA_SCALE,
                &field("scale_dtype"),
                format!("scale_dtype on {operation}"),
            );
        }
        if let Some(dtype) = descriptor.scale_dtype.filter(|d| *d != DataType::Float32) {
            self.report(
                findings,
                &rules::DMA_SCALE_DTYPE,
                &field("scale_dtype"),
                format!("scale_dtype is {dtype}, expected float32"),
            );
        }
    }

    fn transposition(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let operation = descriptor.operation;
        let field = |name: &str| format!("{at}/{name}");
        let transposed =
            descriptor.transpose_shape.is_some() || descriptor.transpose_element_size.is_some();
        let name = if descriptor.transpose_shape.is_some() {
            "transpose_shape"
        } else {
            "transpose_element_size"
        };
        if transposed && operation != Operation::Transpose {
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_UNUSED,
                &field(name),
                format!("{name} on {operation}"),
            );
        }
        if operation == Operation::Transpose && descriptor.transpose_shape.is_none() {
            let message = "a transposition without transpose_shape: which dimensions change places is not public";
            self.report(findings, &NOT_EXECUTED, at, message.into());
        }
        if let Some(shape) = descriptor
            .transpose_shape
            .as_ref()
            .filter(|s| s.len() != MAX_DIMENSIONS)
        {
            let message = format!(
                "transpose_shape has {} numbers, expected {MAX_DIMENSIONS}",
                shape.len()
            );
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_SHAPE,
                &field("transpose_shape"),
                message,
            );
        }
        if let Some(size) = descriptor
            .transpose_element_size
            .filter(|s| !matches!(s, 2 | 4))
        {
            let message = format!("elements of {size} bytes, the hardware transposes 2 and 4");
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_ELEMENT,
                &field("transpose_element_size"),
                message,
            );
        }
        if let (Operation::Transpose, Some(size), Some(element)) = (
            operation,
            descriptor.transpose_element_size,
            descriptor.to.dtype.and_then(DataType::element),
        ) && size != element.bits() / 8
        {
            let message = format!(
                "elements of {size} bytes, to_dtype is {}",
                descriptor.to.data_type()
            );
            self.report(
                findings,
                &rules::DMA_TRANSPOSE_ELEMENT,
                &field("transpose_element_size"),
                message,
            );
        }
    }

    fn constant(&self, descriptor: &Descriptor<'a>, at: &str, findings: &mut Findings) {
        let field = |name: &str| format!("{at}/{name}");
        let takes = matches!(descriptor.operation, Operation::Min | Operation::Max);
        let fits = |low: f64, high: f64| {
            descriptor
                .constant
                .is_none_or(|c| c.fract() == 0.0 && (low..=high).contains(&c))
        };
        let valid = match descriptor.constant_dtype {
            None => {
                if descriptor.constant.is_some() {
                    self.report(
                        findings,
                        &rules::DMA_CONSTANT_UNUSED,
                        &field("constant"),
                        "constant without constant_dtype is ignored".into(),
                    );
                }
                return;
            }
            Some(ConstantType::Unknown) => {
                let message = format!(
                    "constant_dtype {} is none of float32, int32, uint32",
                    self.object.says(&field("constant_dtype"), findings)
                );
                self.report(
                    findings,
                    &rules::DMA_CONSTANT_DTYPE,
                    &field("constant_dtype"),
                    message,
                );
                return;
            }
            Some(ConstantType::Float32) => {
                descriptor.constant.is_none_or(|c| (c as f32).is_finite())
            }
            Some(ConstantType::Int32) => fits(f64::from(i32::MIN), f64::from(i32::MAX)),
            Some(ConstantType::UInt32) => fits(0.0, f64::from(u32::MAX)),
        };
        if !takes {
            let message = format!("constant_dtype on {}", descriptor.operation);
            self.report(
                findings,
                &rules::DMA_CONSTANT_UNUSED,
                &field("constant_dtype"),
                message,
            );
        } else if descriptor.constant.is_none() {
            self.report(
                findings,
                &rules::DMA_CONSTANT,
                &field("constant_dtype"),
                "constant_dtype without constant".into(),
            );
        } else if !valid {
            let message = format!(
                "constant {} is no {}",
                self.object.says(&field("constant"), findings),
                self.object.says(&field("constant_dtype"), findings)
            );
            self.report(findings, &rules::DMA_CONSTANT, &field("constant"), message);
        }
    }
}
