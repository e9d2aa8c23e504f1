//! Operations that compute.

use super::{At, times};
use crate::fqir::plan::Error;
use crate::fqir::tensor::{Element, Region, Shape, Tensor};
use crate::kernels::{
    Action, Bias, Convolve, Elementwise, Function, Gmac, Matrix, Operand, Relation,
};
use crate::lower::precision_of;
use smallvec::smallvec;

/// Bits of the flags that comparisons give.
const FLAG_BITS: (u8, u8) = (16, 16);

impl At<'_, '_, '_> {
    pub(super) fn elementwise(&mut self, name: &str) -> Result<Action, Error> {
        let x = self.input("x")?;
        let with_immediate = name.starts_with("vi");
        let second = match name {
            "viadd" | "vimul" => Second::Immediate(self.integer("y")?),
            "temp_i24_bool_mul" => Second::Tensor(self.input("y_bool")?),
            _ if with_immediate => Second::Immediate(self.integer("imm")?),
            _ if name.starts_with("vv") => Second::Tensor(self.input("y")?),
            _ => Second::Immediate(0),
        };
        let (function, bits) = self.elementwise_function(name, &x, &second)?;
        self.only_outputs(1)?;
        let shape = match &second {
            Second::Tensor(y) => self.broadcast_shape(&[&x, y])?,
            Second::Immediate(_) => x.shape.clone(),
        };
        let out = self.output(0, &shape, bits)?;
        let y = match &second {
            Second::Tensor(y) => broadcast(y, &out.shape),
            Second::Immediate(value) => Operand::Immediate(*value),
        };
        Ok(Action::Elementwise(Elementwise {
            function,
            x: broadcast(&x, &out.shape),
            y,
            out,
        }))
    }

    /// What an elementwise operation computes, and the bits of its results.
    fn elementwise_function(
        &mut self,
        name: &str,
        x: &Tensor,
        second: &Second,
    ) -> Result<(Function, (u8, u8)), Error> {
        let relation = |name: &str| match name {
            "gt" => Some(Relation::Greater),
            "ge" => Some(Relation::GreaterEqual),
            "lt" => Some(Relation::Less),
            "le" => Some(Relation::LessEqual),
            "eq" => Some(Relation::Equal),
            _ => None,
        };
        let rounded = self.flag("rounded")?;
        let same = |bits: u8| (bits, bits);
        Ok(match name {
            "vvadd" | "vvsub" | "viadd" => {
                let bits = self.bits_of("bw")?;
                let (align_x, align_y, shift) = (
                    self.shift_of("shamt_x")?,
                    self.shift_of("shamt_y")?,
                    self.shift_of("shamt_bwred")?,
                );
                (
                    Function::Add {
                        align_x,
                        align_y,
                        shift,
                        bits,
                        rounded,
                        subtract: name == "vvsub",
                    },
                    same(bits),
                )
            }
            "vvmul" | "vimul" => {
                let bits = self.bits_of("bw")?;
                (
                    Function::Multiply {
                        shift: self.shift_of("shamt_bwred")?,
                        bits,
                        rounded,
                    },
                    same(bits),
                )
            }
            "temp_i24_bool_mul" => {
                let shift = self.shift_of("shamt")?;
                let stored = i32::from(x.bits) + i32::from(second.bits()) + shift.max(0);
                (
                    Function::MultiplyWide { shift, rounded },
                    (x.bits, stored.clamp(1, 64) as u8),
                )
            }
            "vneg" => {
                let bits = self.bits_of("bw")?;
                (Function::Negate { bits }, same(bits))
            }
            "shift" => {
                let bits = self.bits_of("bw")?;
                (
                    Function::Shift {
                        shift: self.shift_of("shamt")?,
                        bits,
                        rounded,
                    },
                    same(bits),
                )
            }
            "relu" => (Function::Maximum, stored(x)),
            "gt0" => (
                Function::Compare(Relation::Greater),
                same(self.bits_of("bw")?.max(2)),
            ),
            "vvmax" => (Function::Maximum, larger(stored(x), second.stored())),
            "vvmin" => (Function::Minimum, larger(stored(x), second.stored())),
            _ => match &name[2..] {
                "and" => (Function::And, FLAG_BITS),
                "or" => (Function::Or, FLAG_BITS),
                "xor" => (Function::Xor, FLAG_BITS),
                other => match relation(other) {
                    Some(relation) => (Function::Compare(relation), FLAG_BITS),
                    None => return self.unsupported(&format!("{name} is not supported")),
                },
            },
        })
    }

    /// The shape that several go to, as numpy has it.
    fn broadcast_shape(&self, tensors: &[&Tensor]) -> Result<Shape, Error> {
        let dimensions = tensors.iter().map(|t| t.shape.len()).max().unwrap_or(0);
        let mut shape: Shape = smallvec![1; dimensions];
        for tensor in tensors {
            let skipped = dimensions - tensor.shape.len();
            for (d, length) in tensor.shape.iter().enumerate() {
                let common = &mut shape[skipped + d];
                if *common == 1 {
                    *common = *length;
                } else if *length != 1 && *length != *common {
                    let shapes: Vec<String> = tensors.iter().map(|t| times(&t.shape)).collect();
                    return Err(self.wrong_shape(format!(
                        "expected operands of {} of fitting shapes, found {}",
                        self.name(),
                        shapes.join(" and ")
                    )));
                }
            }
        }
        Ok(shape)
    }

    pub(super) fn matrix(&mut self, with_bias: bool) -> Result<Action, Error> {
        let (x, y) = (self.input("x")?, self.input("y")?);
        let found = || format!("{} by {}", times(&x.shape), times(&y.shape));
        let (rows, inner) = match x.shape[..] {
            [inner] => (None, inner),
            [rows, inner] => (Some(rows), inner),
            _ => {
                return Err(self.wrong_shape(format!(
                    "expected matrices or vectors in {}, found {}",
                    self.name(),
                    found()
                )));
            }
        };
        let (inner_y, columns) = match y.shape[..] {
            [inner] => (inner, None),
            [inner, columns] => (inner, Some(columns)),
            _ => {
                return Err(self.wrong_shape(format!(
                    "expected matrices or vectors in {}, found {}",
                    self.name(),
                    found()
                )));
            }
        };
        if inner != inner_y {
            return Err(self.wrong_shape(format!(
                "expected equal inner dimensions in {}, found {}",
                self.name(),
                found()
            )));
        }
        let shape: Shape = rows.into_iter().chain(columns).collect();
        let macs =
            u128::from(rows.unwrap_or(1)) * u128::from(inner) * u128::from(columns.unwrap_or(1));
        if macs > 1 << 40 {
            return Err(self.wrong_shape(format!(
                "expected a product of at most 2^40 multiplications, found {}",
                found()
            )));
        }
        let (shift, bits, rounded) = (
            self.shift_of("shamt_bwred")?,
            self.bits_of("bw_out")?,
            self.flag("rounded")?,
        );
        let bias = if with_bias {
            Some(self.bias(&shape)?)
        } else {
            None
        };
        self.only_outputs(1)?;
        let out = self.output(0, &shape, (bits, bits))?;
        let count = |n: Option<u64>| n.unwrap_or(1) as usize;
        Ok(Action::Matrix(Matrix {
            x,
            y,
            rows: count(rows),
            inner: inner as usize,
            columns: count(columns),
            bias,
            out,
            shift,
            bits,
            rounded,
        }))
    }

    /// How a bias goes along the result: a vector goes down the rows of a matrix.
    fn bias(&self, shape: &[u64]) -> Result<Bias, Error> {
        let tensor = self.input("bias")?;
        let strides = match (&tensor.shape[..], shape) {
            ([], _) | ([1], [_]) => Some((0, 0)),
            ([n], [columns]) if n == columns => Some((0, 1)),
            ([n], [rows, _]) if n == rows => Some((1, 0)),
            ([1], [_, _]) => Some((0, 0)),
            ([r, c], [rows, columns]) if (*r == 1 || r == rows) && (*c == 1 || c == columns) => {
                Some((if *r == 1 { 0 } else { *c as usize }, usize::from(*c != 1)))
            }
            _ => None,
        };
        let strides = strides.ok_or_else(|| {
            self.wrong_shape(format!(
                "expected a bias that fits a result of {}, found {}",
                times(shape),
                times(&tensor.shape)
            ))
        })?;
        // One row: a vector times a matrix gives a vector.
        let strides = if shape.len() == 1 {
            self.along_vector(strides)
        } else {
            strides
        };
        Ok(Bias {
            tensor,
            shift: self.shift_of("shamt_bias")?,
            strides,
        })
    }

    /// The result of a matrix times a vector is a vector of rows, that of a vector times a matrix one of columns.
    fn along_vector(&self, (_, step): (usize, usize)) -> (usize, usize) {
        let x_is_matrix = self.input("x").is_ok_and(|x| x.shape.len() == 2);
        if x_is_matrix { (step, 0) } else { (0, step) }
    }

    pub(super) fn gmac(&mut self) -> Result<Action, Error> {
        let (xs, ys, immediate_xs) = (
            self.numbered("x_vv_")?,
            self.numbered("y_vv_")?,
            self.numbered("x_vi_")?,
        );
        let (shifts, immediate_shifts, immediates) = (
            self.integers("shamts_vv")?,
            self.integers("shamts_vi")?,
            self.integers("immediates_vi")?,
        );
        if xs.len() != ys.len()
            || xs.len() != shifts.len()
            || immediate_xs.len() != immediate_shifts.len()
            || immediate_xs.len() != immediates.len()
        {
            let message = format!(
                "expected as many shifts and factors as products, found {} and {} vectors with {} shifts, {} vectors with {} immediates and {} shifts",
                xs.len(),
                ys.len(),
                shifts.len(),
                immediate_xs.len(),
                immediates.len(),
                immediate_shifts.len()
            );
            return Err(self.wrong_constant(message));
        }
        if xs.is_empty() && immediate_xs.is_empty() {
            return Err(self.wrong_constant("expected at least one product of gmac_v2, found none"));
        }
        let all: Vec<&Tensor> = xs.iter().chain(&ys).chain(&immediate_xs).collect();
        let shape = self.broadcast_shape(&all)?;
        let mut products = Vec::new();
        let mut cleared = 0i64;
        for ((x, y), shift) in xs.iter().zip(&ys).zip(&shifts) {
            // Of each wide operand the shift reaches 12 bits further: there the compiler splits it.
            let wide = 12 * i64::from(is_wide(x)) + 12 * i64::from(is_wide(y));
            cleared = cleared.max(shift + wide);
            products.push((
                broadcast(x, &shape),
                broadcast(y, &shape),
                self.small("shamts_vv", *shift)?,
            ));
        }
        for ((x, immediate), shift) in immediate_xs.iter().zip(&immediates).zip(&immediate_shifts) {
            let small = self.small("shamts_vi", *shift)?;
            cleared = cleared.max(immediate_reach(is_wide(x), *immediate, *shift));
            products.push((broadcast(x, &shape), Operand::Immediate(*immediate), small));
        }
        products.sort_by_key(|(_, _, shift)| *shift);
        let parts = self.integers("bits_out")?;
        if parts.len() != self.node.outputs.len() || parts.is_empty() {
            let message = format!(
                "expected a width in bits_out for each output, found {} for {}",
                parts.len(),
                self.node.outputs.len()
            );
            return Err(self.wrong_constant(message));
        }
        let total: i64 = parts.iter().fold(1, |sum: i64, bits| {
            sum.saturating_add(bits.saturating_sub(1))
        });
        let mut out = Vec::new();
        for (index, bits) in parts.iter().enumerate() {
            let Some(bits) = u8::try_from(*bits)
                .ok()
                .filter(|bits| (1..=64).contains(bits) && total <= 64)
            else {
                return Err(self.wrong_constant(format!(
                    "expected parts of 1 to 64 bits and 64 together, found {parts:?}"
                )));
            };
            out.push((self.output(index, &shape, (bits, bits))?, bits));
        }
        Ok(Action::Gmac(Gmac {
            products,
            cleared: cleared.clamp(0, 64) as i32,
            out,
        }))
    }

    pub(super) fn convolve(&mut self) -> Result<Action, Error> {
        let (input, weight) = (self.input("input")?, self.input("weight")?);
        let (buffer, bias) = (self.optional_input("buffer")?, self.optional_input("bias")?);
        let size = |at: &Self, name: &str, least| at.count(name, least).map(|n| n as usize);
        let kernel = (
            size(self, "kernel_size_t", 1)?,
            size(self, "kernel_size_band", 1)?,
        );
        let dilation = (
            size(self, "dilation_t", 1)?,
            size(self, "dilation_band", 1)?,
        );
        let (channels, bands) = (size(self, "d_band_in", 1)?, size(self, "n_band_in", 1)?);
        let (stride, padding, groups) = (
            size(self, "stride_band", 1)?,
            size(self, "padding_band", 0)?,
            size(self, "groups", 1)?,
        );
        let frame = channels.saturating_mul(bands);
        if input.shape[..] != [frame as u64] {
            return Err(self.wrong_shape(format!(
                "expected a frame of {bands} bands of {channels}, found {}",
                times(&input.shape)
            )));
        }
        let outputs = weight.shape.first().map_or(0, |n| *n as usize);
        let depthwise = groups != 1;
        if depthwise && (groups != channels || groups != outputs) {
            let message = format!(
                "temporal_conv2d with {groups} groups of {channels} channels and {outputs} outputs is not supported"
            );
            return self.unsupported(&message);
        }
        let inputs = if depthwise { 1 } else { channels };
        if weight.shape[..]
            != [
                outputs as u64,
                inputs as u64,
                kernel.1 as u64,
                kernel.0 as u64,
            ]
        {
            let message = format!(
                "expected weights of {outputs}×{inputs}×{}×{}, found {}",
                kernel.1,
                kernel.0,
                times(&weight.shape)
            );
            return Err(self.wrong_shape(message));
        }
        if let Some(bias) = bias.as_ref().filter(|b| b.shape[..] != [outputs as u64]) {
            return Err(self.wrong_shape(format!(
                "expected a bias of {outputs} elements, found {}",
                times(&bias.shape)
            )));
        }
        self.has_frames(buffer.as_ref(), frame as u64, kernel.0, dilation.0)?;
        let reach = (kernel.1 - 1).saturating_mul(dilation.1);
        let positions = bands
            .saturating_add(padding.saturating_mul(2))
            .checked_sub(reach + 1)
            .map_or(0, |room| room / stride + 1);
        if positions == 0 {
            return Err(self
                .wrong_shape(format!("expected a kernel that fits {bands} bands with padding {padding}, found a reach of {}", reach + 1)));
        }
        let (shift, bits) = (self.shift_of("shamt_bwred")?, self.bits_of("bw")?);
        let bias = match bias {
            Some(bias) => Some((bias, self.shift_of("shamt_bias")?)),
            None => None,
        };
        self.only_outputs(1)?;
        let out = self.output(0, &[(positions * outputs) as u64], (bits, bits))?;
        // The buffer takes the new frame.
        let buffer = match buffer {
            Some(buffer) => Some(self.state("buffer", &buffer, &input)?),
            None => None,
        };
        Ok(Action::Convolve(Convolve {
            input,
            buffer,
            weight,
            bias,
            out,
            bands,
            channels,
            outputs,
            kernel,
            dilation,
            stride,
            padding,
            positions,
            depthwise,
            shift,
            bits,
        }))
    }

    /// Refuses a buffer that does not hold, with the new frame, the frames that a kernel needs for its steps.
    fn has_frames(
        &self,
        buffer: Option<&Tensor>,
        frame: u64,
        steps: usize,
        dilation: usize,
    ) -> Result<(), Error> {
        let frames = buffer.map_or(Some(1), |b| {
            let whole = b.shape.len() == 1 && b.count() % frame == 0;
            whole.then(|| b.count() / frame + 1)
        });
        if frames.map(|frames| frames.div_ceil(dilation as u64)) != Some(steps as u64) {
            let found = buffer.map_or("no buffer".to_owned(), |b| {
                format!("a buffer of {}", times(&b.shape))
            });
            return Err(self.wrong_shape(format!(
                "expected frames for {steps} steps with dilation {dilation}, found {found}"
            )));
        }
        Ok(())
    }

    /// The tensor of a port that the node also writes.
    pub(super) fn state(
        &mut self,
        port: &str,
        tensor: &Tensor,
        with: &Tensor,
    ) -> Result<Tensor, Error> {
        let name = &self.node.inputs[port];
        let bits = larger(stored(tensor), stored(with));
        let kept = self
            .lowering
            .define(self.node, name, &tensor.shape, bits, false)?;
        if kept.buffer != tensor.buffer {
            self.loaded.push((tensor.clone(), kept.clone()));
        }
        Ok(kept)
    }

    pub(super) fn lookup(&mut self) -> Result<Action, Error> {
        let (x, table) = (self.input("x")?, self.input("table_values")?);
        if table.shape.len() != 1 {
            return Err(self.wrong_shape(format!(
                "expected a table of one dimension, found {}",
                times(&table.shape)
            )));
        }
        let (shift, bits, first) = (
            self.shift_of("shamt_address")?,
            self.bits_of("bw_address")?,
            self.integer("table_min")?,
        );
        self.only_outputs(1)?;
        let out = self.output(0, &x.shape, stored(&table))?;
        Ok(Action::Lookup {
            x,
            table,
            out,
            shift,
            bits,
            first,
        })
    }

    pub(super) fn sum(&mut self) -> Result<Action, Error> {
        let x = self.input("x")?;
        let all = matches!(
            self.node.constants.get("dim"),
            None | Some(serde_json::Value::Null)
        );
        let mut reduced = vec![all; x.shape.len()];
        if !all {
            for value in self.integers("dim")? {
                reduced[self.dimension("dim", value, x.shape.len())?] = true;
            }
        }
        let keep = self.flag("keepdim")?;
        let (shift, bits) = (self.shift_of("shamt_bwred")?, self.bits_of("bw")?);
        let of = |wanted: bool| {
            (0..x.shape.len())
                .filter(|d| reduced[*d] == wanted)
                .map(|d| (x.shape[d], x.stride(d)))
                .collect()
        };
        let outer = Region {
            loops: of(false),
            ..x.region()
        };
        let inner = Region {
            loops: of(true),
            ..x.region()
        };
        let shape: Shape = (0..x.shape.len())
            .filter(|d| keep || !reduced[*d])
            .map(|d| if reduced[d] { 1 } else { x.shape[d] })
            .collect();
        self.only_outputs(1)?;
        let out = self.output(0, &shape, (bits, bits))?;
        Ok(Action::Sum {
            outer,
            inner,
            out,
            shift,
            bits,
        })
    }

    pub(super) fn quantize(&mut self) -> Result<Action, Error> {
        let x = self.any_input("x")?;
        let (quanta, bits) = (self.shift_of("quanta")?, self.bits_of("bw")?);
        self.only_outputs(1)?;
        let out = self.output(0, &x.shape, (bits, bits))?;
        Ok(Action::Quantize {
            x,
            out,
            quanta,
            bits,
        })
    }

    pub(super) fn dequantize(&mut self) -> Result<Action, Error> {
        let x = self.input("x")?;
        let quanta = self.shift_of("quanta")?;
        self.only_outputs(1)?;
        let Some(name) = self.node.outputs.first() else {
            return Err(self.wrong_shape("expected an output of dequantize, found none"));
        };
        let out = self
            .lowering
            .define(self.node, name, &x.shape, (64, 64), true)?;
        Ok(Action::Dequantize { x, out, quanta })
    }

    pub(super) fn fill(&mut self, name: &str) -> Result<Action, Error> {
        let (shape, value) = if name == "constant_like" {
            (self.input("x")?.shape, self.integer("imm")?)
        } else {
            let lengths = self.integers("shape")?;
            let lengths: Option<Vec<u64>> =
                lengths.iter().map(|n| u64::try_from(*n).ok()).collect();
            let Some(lengths) = lengths else {
                return Err(self.wrong_constant("expected a shape of lengths from 0 on"));
            };
            let shape = self
                .lowering
                .shape(&lengths)
                .map_err(|(rule, m)| crate::fqir::plan::at_node(rule, self.node, m))?;
            (
                shape,
                if name == "zeros" {
                    0
                } else {
                    self.integer("value")?
                },
            )
        };
        self.only_outputs(1)?;
        let bits = precision_of(value);
        let out = self.output(0, &shape, (bits, bits))?;
        Ok(Action::Fill { out, value })
    }
}

/// The other operand.
enum Second {
    Tensor(Tensor),
    Immediate(i64),
}

impl Second {
    fn bits(&self) -> u8 {
        self.stored().1
    }

    fn stored(&self) -> (u8, u8) {
        match self {
            Second::Tensor(tensor) => stored(tensor),
            Second::Immediate(value) => (precision_of(*value), precision_of(*value)),
        }
    }
}

/// Precision, and bits of the type that stores it.
pub(super) fn stored(tensor: &Tensor) -> (u8, u8) {
    let bits = match tensor.element {
        Element::F64 => 64,
        element => (element.bytes() * 8) as u8,
    };
    (tensor.bits, bits)
}

pub(super) fn larger(a: (u8, u8), b: (u8, u8)) -> (u8, u8) {
    (a.0.max(b.0), a.1.max(b.1))
}

/// Wider than the 16 bits of the hardware: a vector that the compiler splits.
fn is_wide(tensor: &Tensor) -> bool {
    (17..=24).contains(&tensor.bits)
}

/// Up to which bit the hardware drops low bits of a product by an immediate. Wide operands and wide immediates are split.
fn immediate_reach(wide: bool, immediate: i64, shift: i64) -> i64 {
    let mut terms = vec![(i128::from(immediate), shift)];
    if wide {
        let high = shift + 12;
        let scaled = if (1..64).contains(&high) {
            i128::from(immediate) << high
        } else {
            i128::from(immediate)
        };
        let fits = high < 64 && (-(1i128 << 23)..1 << 23).contains(&scaled);
        terms.push(if high > 0 && fits {
            (scaled, 0)
        } else {
            (i128::from(immediate), high)
        });
    }
    let reach = |(immediate, shift): (i128, i64)| {
        let narrow = (-(1i128 << 15)..1 << 15).contains(&immediate);
        if narrow {
            shift
        } else {
            shift + (-shift).clamp(8, 12)
        }
    };
    terms.into_iter().map(reach).max().unwrap_or(0)
}

/// A tensor as it goes along a shape.
fn broadcast(tensor: &Tensor, shape: &[u64]) -> Operand {
    if tensor.shape[..] == *shape {
        return Operand::Linear(tensor.clone());
    }
    let skipped = shape.len() - tensor.shape.len();
    let stride = |d: usize| match d.checked_sub(skipped) {
        Some(own) if tensor.shape[own] != 1 => tensor.stride(own),
        _ => 0,
    };
    Operand::Broadcast(Region {
        loops: shape
            .iter()
            .enumerate()
            .map(|(d, count)| (*count, stride(d)))
            .collect(),
        ..tensor.region()
    })
}
