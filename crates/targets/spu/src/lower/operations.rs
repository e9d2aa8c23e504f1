//! The operations of the registry `fmot_atomics_v1.2`: shapes, precisions, and what becomes of a node.

mod control;
mod movement;
mod numeric;

use super::Lowering;
use crate::fqir::plan::{Error, Graph, Node, at_node};
use crate::fqir::rules;
use crate::fqir::tensor::{Move, Tensor};
use crate::kernels::Action;

pub(super) use control::{call_inputs, call_outputs};

/// Every operation of the registry, and whether it can be executed.
pub const OPERATIONS: &[(&str, bool)] = &[
    ("addmm", true),
    ("assign", true),
    ("cat", true),
    ("chunk", true),
    ("conditional", true),
    ("constant", true),
    ("constant_like", true),
    ("copy", true),
    ("dequantize", true),
    ("fqir_writer_kernel", false),
    ("gmac_v2", true),
    ("gt0", true),
    ("loop", true),
    ("lstm", false),
    ("lut", true),
    ("matmul", true),
    ("print", true),
    ("pwlin", false),
    ("quantize", true),
    ("relu", true),
    ("reshape", true),
    ("shift", true),
    ("split", true),
    ("squeeze", true),
    ("stack", true),
    ("strided_subgraph", true),
    ("sum", true),
    ("temp_i24_bool_mul", true),
    ("temporal_conv2d", true),
    ("temporal_transpose_fold_unkernelized", false),
    ("temporal_unfold", true),
    ("temporal_unfold_unkernelized", false),
    ("transpose", true),
    ("viadd", true),
    ("viand", true),
    ("vieq", true),
    ("vige", true),
    ("vigt", true),
    ("vile", true),
    ("vilt", true),
    ("vimul", true),
    ("vior", true),
    ("vixor", true),
    ("vneg", true),
    ("vvadd", true),
    ("vvand", true),
    ("vveq", true),
    ("vvge", true),
    ("vvgt", true),
    ("vvle", true),
    ("vvlt", true),
    ("vvmax", true),
    ("vvmin", true),
    ("vvmul", true),
    ("vvor", true),
    ("vvsub", true),
    ("vvxor", true),
    ("zeros", true),
];

/// The actions of a node.
pub(super) fn build<'p>(
    lowering: &mut Lowering<'p, '_>,
    graph: &'p Graph,
    node: &'p Node,
) -> Result<Vec<Action>, Error> {
    let mut at = At {
        lowering,
        graph,
        node,
        loaded: Vec::new(),
        pending: Vec::new(),
    };
    let computed = at.operation()?;
    let mut actions: Vec<Action> = at
        .loaded
        .iter()
        .map(|(from, to)| {
            Action::Move(Move {
                from: from.region(),
                to: to.region(),
            })
        })
        .chain(computed)
        .collect();
    actions.extend(at.pending.into_iter().map(|(from, to)| {
        Action::Move(Move {
            from: from.region(),
            to: to.region(),
        })
    }));
    Ok(actions)
}

/// A node being lowered.
struct At<'p, 'l, 'b> {
    lowering: &'b mut Lowering<'p, 'l>,
    graph: &'p Graph,
    node: &'p Node,
    /// What a place starts from that the node changes: a parameter that is loaded anew with each step.
    loaded: Vec<(Tensor, Tensor)>,
    /// Results that a node first makes elsewhere, because it reads the place where they go.
    pending: Vec<(Tensor, Tensor)>,
}

impl<'p> At<'p, '_, '_> {
    fn operation(&mut self) -> Result<Vec<Action>, Error> {
        let Some(name) = self.node.op_name.as_deref() else {
            return self.call();
        };
        let one = |action: Action| vec![action];
        for width in ["bw", "bw_out", "bw_address"] {
            if self
                .node
                .constants
                .get(width)
                .is_some_and(|value| !value.is_null())
            {
                self.bits_of(width)?;
            }
        }
        match name {
            "print" => Ok(Vec::new()),
            "vvadd" | "vvsub" | "viadd" | "vvmul" | "vimul" | "temp_i24_bool_mul" | "vneg"
            | "relu" | "shift" | "gt0" | "vvmax" | "vvmin" | "vvgt" | "vvge" | "vvlt" | "vvle"
            | "vveq" | "vigt" | "vige" | "vilt" | "vile" | "vieq" | "vvand" | "vvor" | "vvxor"
            | "viand" | "vior" | "vixor" => self.elementwise(name).map(one),
            "matmul" | "addmm" => self.matrix(name == "addmm").map(one),
            "gmac_v2" => self.gmac().map(one),
            "temporal_conv2d" => self.convolve().map(one),
            "lut" => self.lookup().map(one),
            "sum" => self.sum().map(one),
            "quantize" => self.quantize().map(one),
            "dequantize" => self.dequantize().map(one),
            "zeros" | "constant" | "constant_like" => self.fill(name).map(one),
            "copy" | "assign" => self.copy(name).map(one),
            "reshape" | "squeeze" | "transpose" => self.rearrange(name).map(one),
            "chunk" | "split" => self.divide(name),
            "cat" | "stack" => self.join(name),
            "temporal_unfold" => self.unfold(),
            "loop" => self.repeat().map(one),
            "strided_subgraph" => self.strided().map(one),
            "conditional" => self.choose().map(one),
            "lstm"
            | "pwlin"
            | "fqir_writer_kernel"
            | "temporal_unfold_unkernelized"
            | "temporal_transpose_fold_unkernelized" => {
                let message = format!(
                    "{name} has no meaning of its own: the compiler takes it apart first (kernelisation)"
                );
                self.unsupported(&message)
            }
            other => {
                let message = format!(
                    "expected an operation of the registry, found `{}`",
                    crate::yaml::shortened(other)
                );
                self.unsupported(&message)
            }
        }
    }

    fn unsupported<T>(&self, message: &str) -> Result<T, Error> {
        Err(at_node(&rules::OPERATION, self.node, message))
    }

    fn wrong_shape(&self, message: impl Into<String>) -> Error {
        at_node(&rules::SHAPE, self.node, message)
    }

    fn wrong_constant(&self, message: impl Into<String>) -> Error {
        at_node(&rules::CONSTANT, self.node, message)
    }

    /// The integers at a port.
    fn input(&self, port: &str) -> Result<Tensor, Error> {
        let tensor = self.any_input(port)?;
        if tensor.element == crate::fqir::tensor::Element::F64 {
            return self.unsupported(&format!(
                "{} of reals is not supported: `{}` is float",
                self.name(),
                self.node.inputs[port]
            ));
        }
        Ok(tensor)
    }

    fn name(&self) -> &'p str {
        self.node.op_name.as_deref().unwrap_or("call")
    }

    fn any_input(&self, port: &str) -> Result<Tensor, Error> {
        let Some(name) = self.node.inputs.get(port) else {
            return Err(at_node(
                &rules::NAME,
                self.node,
                format!("expected an input `{port}` of {}, found none", self.name()),
            ));
        };
        self.tensor(port, name)
    }

    fn tensor(&self, port: &str, name: &str) -> Result<Tensor, Error> {
        self.lowering.lookup(name).cloned().ok_or_else(|| {
            let message = format!(
                "expected `{}` at `{port}` to be an input, parameter, state or result of an earlier node, found nothing of that name",
                crate::yaml::shortened(name)
            );
            let mut error = at_node(&rules::NAME, self.node, message);
            error.place.part = format!("{}/inputs/{port}", self.node.pointer).into();
            error
        })
    }

    fn optional_input(&self, port: &str) -> Result<Option<Tensor>, Error> {
        if self.node.inputs.contains_key(port) {
            self.input(port).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Ports `x0`, `x1`, … as far as they go.
    fn numbered(&self, prefix: &str) -> Result<Vec<Tensor>, Error> {
        let ports = (0..)
            .map(|index| format!("{prefix}{index}"))
            .take_while(|port| self.node.inputs.contains_key(port));
        ports.map(|port| self.input(&port)).collect()
    }

    fn buffers(&self) -> impl Iterator<Item = chipless_model::BufferId> {
        self.node
            .inputs
            .values()
            .filter_map(|name| self.lowering.lookup(name))
            .map(|t| t.buffer)
    }

    /// The tensor of an output: precision, and bits of the type that stores it.
    fn output(&mut self, index: usize, shape: &[u64], bits: (u8, u8)) -> Result<Tensor, Error> {
        let Some(name) = self.node.outputs.get(index) else {
            return Err(at_node(
                &rules::NAME,
                self.node,
                format!(
                    "expected at least {} outputs of {}, found {}",
                    index + 1,
                    self.name(),
                    self.node.outputs.len()
                ),
            ));
        };
        let tensor = self.lowering.define(self.node, name, shape, bits, false)?;
        self.aside(tensor)
    }

    /// The tensor itself, or another one to make the result in where the node reads it.
    fn aside(&mut self, tensor: Tensor) -> Result<Tensor, Error> {
        if !self.buffers().any(|b| b == tensor.buffer) {
            return Ok(tensor);
        }
        let aside = self.lowering.temporary(self.node, &tensor)?;
        self.pending.push((aside.clone(), tensor));
        Ok(aside)
    }

    fn only_outputs(&self, count: usize) -> Result<(), Error> {
        if self.node.outputs.len() > count {
            let message = format!(
                "expected {count} outputs of {}, found {}",
                self.name(),
                self.node.outputs.len()
            );
            return Err(at_node(&rules::NAME, self.node, message));
        }
        Ok(())
    }

    fn constant(&self, name: &str) -> Result<&'p serde_json::Value, Error> {
        let found = self.node.constants.get(name);
        found.ok_or_else(|| {
            self.wrong_constant(format!(
                "expected a constant `{name}` of {}, found none",
                self.name()
            ))
        })
    }

    /// An integer; numbers like 2.0 and booleans count.
    fn as_integer(&self, name: &str, value: &serde_json::Value) -> Result<i64, Error> {
        let whole = || {
            value
                .as_f64()
                .filter(|f| f.fract() == 0.0 && f.abs() < 9e15)
                .map(|f| f as i64)
        };
        let found = value
            .as_i64()
            .or_else(whole)
            .or_else(|| value.as_bool().map(i64::from));
        found.ok_or_else(|| {
            self.wrong_constant(format!(
                "expected an integer as `{name}` of {}, found {}",
                self.name(),
                shown(value)
            ))
        })
    }

    fn integer(&self, name: &str) -> Result<i64, Error> {
        self.as_integer(name, self.constant(name)?)
    }

    /// A shift amount.
    fn shift_of(&self, name: &str) -> Result<i32, Error> {
        let value = self.integer(name)?;
        self.small(name, value)
    }

    fn small(&self, name: &str, value: i64) -> Result<i32, Error> {
        i32::try_from(value)
            .ok()
            .filter(|s| s.abs() <= 1024)
            .ok_or_else(|| {
                self.wrong_constant(format!(
                    "expected `{name}` of {} between -1024 and 1024, found {value}",
                    self.name()
                ))
            })
    }

    /// A width in bits.
    fn bits_of(&self, name: &str) -> Result<u8, Error> {
        let value = self.integer(name)?;
        u8::try_from(value)
            .ok()
            .filter(|bits| (1..=64).contains(bits))
            .ok_or_else(|| {
                self.wrong_constant(format!(
                    "expected `{name}` of {} between 1 and 64 bits, found {value}",
                    self.name()
                ))
            })
    }

    fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.node.constants.get(name) {
            None | Some(serde_json::Value::Null) => Ok(false),
            Some(value) => Ok(self.as_integer(name, value)? != 0),
        }
    }

    /// A count from `least` on.
    fn count(&self, name: &str, least: u64) -> Result<u64, Error> {
        let value = self.integer(name)?;
        u64::try_from(value)
            .ok()
            .filter(|count| *count >= least && *count < 1 << 40)
            .ok_or_else(|| {
                self.wrong_constant(format!(
                    "expected `{name}` of {} from {least} on, found {value}",
                    self.name()
                ))
            })
    }

    /// A list of integers; an integer alone is a list of one, an array's data its elements.
    fn integers(&self, name: &str) -> Result<Vec<i64>, Error> {
        let mut value = self.constant(name)?;
        if let Some(data) = value.get("data") {
            value = data;
        }
        match value {
            serde_json::Value::Array(items) => items
                .iter()
                .map(|item| self.as_integer(name, item))
                .collect(),
            other => Ok(vec![self.as_integer(name, other)?]),
        }
    }

    /// A dimension of so many, counted from the end where negative.
    fn dimension(&self, name: &str, value: i64, dimensions: usize) -> Result<usize, Error> {
        let from_start = if value < 0 {
            value.saturating_add(dimensions as i64)
        } else {
            value
        };
        usize::try_from(from_start)
            .ok()
            .filter(|d| *d < dimensions)
            .ok_or_else(|| {
                self.wrong_shape(format!(
                    "expected `{name}` of {} to be one of {dimensions} dimensions, found {value}",
                    self.name()
                ))
            })
    }
}

/// A JSON value for a message.
fn shown(value: &serde_json::Value) -> String {
    crate::yaml::shortened(&value.to_string())
}

/// Shapes for messages: `2×3`.
fn times(shape: &[u64]) -> String {
    if shape.is_empty() {
        "()".to_owned()
    } else {
        shape
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join("×")
    }
}
