//! Operations one after another, functions of tables, and the accumulators that they feed.

use super::{BINARY32, Maker};
use crate::graph::Engine;
use crate::kernels::alu::{Group, Operation};
use crate::kernels::compute::{Accumulator, Action, Start, Step, Value, is_integer};
use crate::stream::formats::{Activate, ScalarTensorTensor, TensorScalar, TensorTensor};
use crate::stream::{Evidence, Instruction, Slot};
use chipless_model::{ElementType, Fault, Kind};
use smallvec::SmallVec;

/// What `GpSimd` does with three tensors of int32: integer arithmetic of 32 bits, not binary32 (page of `nki.isa.tensor_tensor`).
fn native(operation: Operation) -> Operation {
    match operation {
        Operation::Add => Operation::IntegerAdd,
        Operation::Subtract => Operation::IntegerSubtract,
        Operation::Multiply => Operation::IntegerMultiply,
        other => other,
    }
}

impl Maker<'_> {
    pub(super) fn tensor_tensor(&mut self, i: TensorTensor<'_>) -> Result<Action, Fault> {
        self.tensors()?;
        let operation = Self::operation(i.op())?;
        match self.opcode {
            0x72 | 0x99 if operation != Operation::Bypass => Err(Fault::unsupported(format!(
                "{operation} is not supported here, only bypass is"
            ))),
            0x72 | 0x99 => {
                let (predicate, data, to) =
                    (&self.sources[0], &self.sources[1], &self.destinations[0]);
                if !is_integer(predicate.element) {
                    return Err(Fault::program(format!(
                        "the predicate is of {}, expected an integer type",
                        predicate.element
                    )));
                }
                if self.opcode == 0x72 && data.element != to.element {
                    return Err(Fault::program(format!(
                        "{} is copied to {} without a conversion",
                        data.element, to.element
                    )));
                }
                Ok(Action::CopyPredicated)
            }
            _ => {
                // The programs that prove an addition add floating-point numbers.
                let of = self.sources.iter().chain(&self.destinations);
                let types: SmallVec<[ElementType; 3]> = of.map(|e| e.element).collect();
                let has_integers = types.iter().any(|element| element.kind() != Kind::Float);
                if operation != Operation::Add
                    || has_integers
                    || self.group(&[operation])? != Group::Arithmetic
                {
                    self.weaken(Evidence::Quoted);
                }
                let all_int32 = types.iter().all(|element| *element == ElementType::Int32);
                let operation = if self.context.engine == Engine::Pool && all_int32 {
                    native(operation)
                } else {
                    operation
                };
                self.chain(
                    [Step {
                        operation,
                        operand: Value::Tensor(1),
                        reversed: false,
                    }]
                    .into_iter()
                    .collect(),
                )
            }
        }
    }

    pub(super) fn tensor_scalar(&mut self, i: TensorScalar<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let code = self.scalar_code(self.operand("src")?.code);
        let (first, second) = (Self::operation(i.op0())?, Self::operation(i.op1())?);
        let operand = self.value("imm0", i.imm0(), i.imm0_source(), code)?;
        let (reversed, both) = (i.reverse() & 1 != 0, i.reverse() & 2 != 0);
        if i.reverse() > 3 {
            return Err(Fault::unsupported(format!(
                "reverse {:#04x} is not supported: its meaning is not known",
                i.reverse()
            )));
        }
        if matches!(self.opcode, 0x9a | 0xe6) {
            return self.cache(
                i,
                &Step {
                    operation: first,
                    operand,
                    reversed,
                },
                second,
            );
        }
        if i.accumulator() != 0 {
            return Err(Fault::unsupported(
                "byte 0x0c (accumulator) is not 0: that is not supported here",
            ));
        }
        let mut steps: SmallVec<[Step<u32>; 2]> = SmallVec::new();
        steps.push(Step {
            operation: first,
            operand,
            reversed,
        });
        if second != Operation::Bypass {
            let operand = self.value("imm1", i.imm1(), i.imm1_source(), code)?;
            steps.push(Step {
                operation: second,
                operand,
                reversed: both,
            });
        }
        self.chain(steps)
    }

    /// Type of immediates in memory: binary32, or that of the data where bits are not converted.
    pub(super) fn scalar_code(&self, data: u8) -> u8 {
        if self.is_bitwise() { data } else { BINARY32 }
    }

    pub(super) fn cache(
        &mut self,
        i: TensorScalar<'_>,
        step: &Step<u32>,
        operation: Operation,
    ) -> Result<Action, Fault> {
        self.group(&[step.operation, operation])
            .and_then(|group| match group {
                Group::Arithmetic => Ok(()),
                other => Err(Fault::unsupported(format!(
                    "operations on {other} are not supported here"
                ))),
            })?;
        let operand = step.operand.as_number();
        let loaded = |maker: &mut Self| maker.number("imm1", i.imm1(), i.imm1_source(), BINARY32);
        let Some(accumulator) = self.accumulator(
            i.accumulator(),
            operation,
            Engine::Dve,
            i.dst().address,
            i.channels(),
            loaded,
        )?
        else {
            return Err(Fault::unsupported(
                "an accumulator that is left alone is not supported here",
            ));
        };
        let step = Step {
            operation: step.operation,
            operand,
            reversed: step.reversed,
        };
        Ok(Action::Cache {
            step,
            accumulator,
            keeps_running: self.opcode == 0xe6,
        })
    }

    /// What becomes of the accumulators, which are made the last source and the last destination.
    pub(super) fn accumulator(
        &mut self,
        command: u8,
        operation: Operation,
        engine: Engine,
        address: u32,
        channels: u8,
        loaded: impl FnOnce(&mut Self) -> Result<Value<f32>, Fault>,
    ) -> Result<Option<Accumulator>, Fault> {
        if command == 0 {
            return Ok(None);
        }
        let elements = self.context.chip.accumulators(engine, address, channels)?;
        let start = match command {
            1 => Start::Zeroed,
            2 => {
                self.sources.push(elements.clone());
                Start::Held(self.sources.len() - 1)
            }
            3 => Start::Reset,
            4 => {
                self.weaken(Evidence::Assumed);
                Start::Loaded(loaded(self)?)
            }
            other => {
                return Err(Fault::unsupported(format!(
                    "accumulator command {other} is not supported: its meaning is not known"
                )));
            }
        };
        self.destinations.push(elements);
        Ok(Some(Accumulator { operation, start }))
    }

    /// `EXPONENTIAL`: of the elements less a number, and their sum into the accumulator.
    pub(super) fn exponential(&mut self, i: TensorScalar<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        if (i.op0(), i.op1(), i.reverse()) != (0, 0, 0) {
            return Err(Fault::unsupported(
                "operations beside the exponential are not supported",
            ));
        }
        if i.accumulator() == 1 {
            return Err(Fault::unsupported(
                "accumulator command 1 is not supported here",
            ));
        }
        if i.accumulator() != 4 && (i.imm1(), i.imm1_source()) != (0, 0) {
            return Err(Fault::unsupported(
                "imm1 without accumulator command 4 is not supported",
            ));
        }
        let less = self.number("imm0", i.imm0(), i.imm0_source(), BINARY32)?;
        let accumulator = self.accumulator(
            i.accumulator(),
            Operation::Add,
            Engine::Dve,
            i.dst().address,
            i.channels(),
            |maker| maker.number("imm1", i.imm1(), i.imm1_source(), BINARY32),
        )?;
        Ok(Action::Exponential { less, accumulator })
    }

    pub(super) fn scalar_tensor_tensor(
        &mut self,
        i: ScalarTensorTensor<'_>,
    ) -> Result<Action, Fault> {
        self.tensors()?;
        if i.accumulator() != 0 {
            return Err(Fault::unsupported(
                "byte 0x2c (accumulator) is not 0: that is not supported here",
            ));
        }
        if i.reverse() > 3 {
            return Err(Fault::unsupported(format!(
                "reverse {:#04x} is not supported: its meaning is not known",
                i.reverse()
            )));
        }
        let code = if self.is_bitwise() {
            self.operand("src0")?.code
        } else {
            i.imm_type()
        };
        if i.imm_source() == 0 && code != BINARY32 && !self.is_bitwise() {
            return Err(Fault::unsupported(format!(
                "an immediate of type {code:#x} in the instruction is not supported, only fp32 is"
            )));
        }
        let (op0, op1) = (Self::operation(i.op0())?, Self::operation(i.op1())?);
        let (reversed, both) = (i.reverse() & 1 != 0, i.reverse() & 2 != 0);
        if self.opcode == 0xe5 {
            let start = self.number("imm", i.imm(), i.imm_source(), code)?;
            // What a second dimension does to the running value is not said.
            if i.src0().counts[1] > 1 || i.src1().counts[1] > 1 {
                self.weaken(Evidence::Assumed);
            }
            return match self.group(&[op0, op1])? {
                Group::Arithmetic => Ok(Action::Scan {
                    start,
                    first: (op0, reversed),
                    second: (op1, both),
                }),
                other => Err(Fault::unsupported(format!(
                    "operations on {other} are not supported here"
                ))),
            };
        }
        let operand = self.value("imm", i.imm(), i.imm_source(), code)?;
        let steps = [
            Step {
                operation: op0,
                operand,
                reversed,
            },
            Step {
                operation: op1,
                operand: Value::Tensor(1),
                reversed: both,
            },
        ];
        self.chain(steps.into_iter().collect())
    }

    pub(super) fn activate(&mut self, i: Activate<'_>) -> Result<Action, Fault> {
        self.tensor()?;
        let function = if let Some(Instruction::FunctionSet(set)) = self.setup.map(Slot::decode) {
            let name = String::from_utf8_lossy(set.name());
            self.context.functions.of_set(i.function(), &name)?
        } else {
            let (function, is_certain) = self.context.functions.select(i.function())?;
            if !is_certain {
                self.weaken(Evidence::Assumed);
            }
            function
        };
        if (i.imm(), i.imm_source()) != (0, 0) {
            return Err(Fault::unsupported(
                "byte 0x2c (imm) is not 0: parameters of functions are not supported",
            ));
        }
        let scale = self.number("scale", i.scale(), i.scale_source(), BINARY32)?;
        // The source of the bias is coded the other way round.
        let bias_source = match i.bias_source() {
            0 => 1,
            1 => 0,
            other => other,
        };
        let bias = self.number("bias", i.bias(), bias_source, i.bias_type())?;
        let not_loaded = |_: &mut Self| {
            Err(Fault::unsupported(
                "accumulator command 4 is not supported here: what is loaded is not known",
            ))
        };
        let accumulator = self.accumulator(
            i.accumulator(),
            Operation::Add,
            Engine::Act,
            i.dst().address,
            i.channels(),
            not_loaded,
        )?;
        Ok(Action::Curve {
            function,
            scale,
            bias,
            accumulator,
        })
    }
}
