//! SHAVE invocations: prebuilt kernels, recognised by their code and executed by our own implementation of the operation.

use super::{Cmx, Descriptors};
use crate::shave::{self, TensorRef, Values};
use chipless_kernels::{cast, strided};
use chipless_model::{Access, BufferId, Fault, Kernel, Kind, Pattern, Storage};
use std::borrow::Cow;

/// An invocation of a SHAVE kernel.
#[derive(Debug)]
pub(crate) struct Invocation<'i> {
    pub(crate) descriptors: Descriptors<'i>,
    pub(crate) cmx: Cmx,
    pub(crate) work: Work,
}

/// What the kernel does.
#[derive(Debug)]
pub(crate) enum Work {
    /// An operation that is known.
    Known(Box<shave::Invocation>),
    /// A kernel that no table names: its code, and what looks like its tensors.
    Unknown {
        /// What is known of its code.
        identity: shave::Identity,
        /// The release of the compiler that wrote the program, where it says so.
        release: Option<String>,
        /// Tensors at the start of its arguments.
        tensors: Vec<TensorRef>,
    },
    /// Not a kernel: cache maintenance and the like, which has no effect on memory here.
    Maintenance(&'static str),
}

impl Kernel for Invocation<'_> {
    fn operation(&self) -> Cow<'static, str> {
        match &self.work {
            Work::Known(invocation) => invocation.operation.name().into(),
            Work::Unknown { identity, .. } => match &identity.name {
                Some(name) => format!("kernel {name}").into(),
                None => format!("kernel {}", identity.hash).into(),
            },
            Work::Maintenance(what) => (*what).into(),
        }
    }

    fn details(&self) -> String {
        let shapes = |tensors: &[TensorRef]| {
            tensors
                .iter()
                .map(|t| t.shape.to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match &self.work {
            Work::Known(i) => format!("{} -> {}", shapes(&i.inputs), shapes(&i.outputs)),
            Work::Unknown {
                identity, tensors, ..
            } => {
                format!(
                    "{} bytes of code, tensors {}",
                    identity.size,
                    shapes(tensors)
                )
            }
            Work::Maintenance(_) => String::new(),
        }
    }

    fn accesses(&self, visit: &mut dyn FnMut(Access)) {
        self.descriptors.accesses(visit);
        let mut each = |tensors: &[TensorRef], make: fn(BufferId, Pattern) -> Access| {
            for (buffer, pattern) in tensors.iter().filter_map(|t| self.place(t)) {
                visit(make(buffer, pattern));
            }
        };
        match &self.work {
            Work::Known(invocation) => {
                each(&invocation.inputs, Access::read);
                each(&invocation.outputs, Access::write);
                each(&invocation.scratch, |buffer, pattern| {
                    Access::write(buffer, pattern).may()
                });
            }
            Work::Unknown { tensors, .. } => {
                each(tensors, |buffer, pattern| {
                    Access::read(buffer, pattern).may()
                });
                each(tensors, |buffer, pattern| {
                    Access::write(buffer, pattern).may()
                });
            }
            Work::Maintenance(_) => {}
        }
    }

    fn execute(&self, storage: &mut Storage<'_>) -> Result<(), Fault> {
        self.descriptors.check(storage)?;
        let invocation = match &self.work {
            Work::Known(invocation) => invocation,
            Work::Maintenance(_) => return Ok(()),
            Work::Unknown {
                identity, release, ..
            } => return Err(Fault::unsupported(unknown(identity, release.as_deref()))),
        };
        let inputs = invocation
            .inputs
            .iter()
            .map(|t| self.load(storage, t))
            .collect::<Result<Vec<_>, _>>()?;
        let outputs = shave::evaluate(invocation, &inputs)?;
        for (tensor, place) in outputs.iter().zip(&invocation.outputs) {
            self.store(storage, place, &tensor.values)?;
        }
        Ok(())
    }

    fn unproven(&self) -> Option<Cow<'static, str>> {
        match &self.work {
            Work::Known(invocation) => invocation
                .unproven()
                .map(|what| format!("{}: {what}", invocation.operation).into()),
            Work::Unknown { .. } | Work::Maintenance(_) => None,
        }
    }
}

impl Invocation<'_> {
    fn place(&self, tensor: &TensorRef) -> Option<(BufferId, Pattern)> {
        let (buffer, offset) = self.cmx.locate(tensor.address)?;
        Some((buffer, tensor.pattern.shifted(offset as i64)?))
    }

    fn located(&self, tensor: &TensorRef) -> Result<(BufferId, Pattern), Fault> {
        self.place(tensor).ok_or_else(|| {
            Fault::program(format!(
                "tensor at {:#x}, which is not in the CMX of one tile of the program",
                tensor.address
            ))
        })
    }

    fn load(&self, storage: &Storage<'_>, tensor: &TensorRef) -> Result<shave::Tensor, Fault> {
        let (buffer, pattern) = self.located(tensor)?;
        let mut bytes = Vec::new();
        strided::gather(storage.bytes(buffer), &pattern, &mut bytes).map_err(fault)?;
        let (element, count) = (tensor.shape.element, tensor.shape.elements() as usize);
        let values = if element.kind() == Kind::Float {
            let mut values = vec![0.0; count];
            cast::decode_f32(element, &bytes, &mut values).map_err(fault)?;
            Values::Float(values)
        } else {
            let mut values = vec![0; count];
            cast::decode_i64(element, &bytes, &mut values).map_err(fault)?;
            Values::Integer(values)
        };
        shave::Tensor::new(tensor.shape.clone(), values)
    }

    fn store(
        &self,
        storage: &mut Storage<'_>,
        tensor: &TensorRef,
        values: &Values,
    ) -> Result<(), Fault> {
        let (buffer, pattern) = self.located(tensor)?;
        let element = tensor.shape.element;
        let mut bytes = vec![0; pattern.bytes().unwrap_or(0) as usize];
        match values {
            Values::Float(values) => {
                cast::encode_f32(element, values, cast::Rounding::NearestEven, &mut bytes)
            }
            Values::Integer(values) => cast::encode_i64(element, values, &mut bytes),
        }
        .map_err(fault)?;
        strided::scatter(&bytes, storage.bytes_mut(buffer), &pattern).map_err(fault)
    }
}

/// Why a kernel is not executed, and what to do.
fn unknown(identity: &shave::Identity, release: Option<&str>) -> String {
    let shave::Identity { hash, size, .. } = identity;
    let release = release.map_or_else(
        || "the compiler that wrote this program".to_owned(),
        |release| format!("release {release}"),
    );
    match &identity.name {
        Some(name) => format!(
            "SHAVE kernel {name} ({hash}, {release}) is not supported: Chipless does not know its arguments; if it computes what another operation does, pass --kernel {hash}=OPERATION"
        ),
        None => format!(
            "SHAVE kernel {hash} ({size} bytes of code) is not in the tables of Chipless: import those of {release} with `chipless kernels import LIBRARY -o TABLE.toml`, LIBRARY being its NPU compiler or driver, and pass --kernel-table TABLE.toml; or pass --kernel {hash}=OPERATION"
        ),
    }
}

fn fault(error: impl std::fmt::Display) -> Fault {
    Fault::program(error.to_string())
}
