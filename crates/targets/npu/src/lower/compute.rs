//! Tasks of the DPUs and of the SHAVEs.

use super::counted::of_two_bytes;
use super::{Cost, DPU_WORKLOAD, DYNAMIC_SHAPE, Lowering, SHAVE_ARGUMENTS, UNMAPPED};
use crate::address::Target;
use crate::bytes::Record;
use crate::dpu;
use crate::kernels::{Accumulators, DpuTask, Invocation, Knowledge, PROFILE_BYTES, Work};
use crate::npu3720;
use crate::schedule::{Fetched, Slice};
use crate::shave::{self, TensorRef};
use crate::structures::Layout;
use chipless_model::{
    Buffer, BufferId, ElementType, Finding, Kernel, MemoryKind, Pattern, Place, Role, Time,
};
use std::sync::Arc;

/// Bytes that the published cost model (VPUNN) takes an element of other than 8 bits for.
const COST_MODEL_ELEMENT: f64 = 2.0;

impl<'i> Lowering<'_, 'i> {
    /// Adds where a register field of a workload stands, with its bits and value.
    fn with_register(
        &self,
        finding: Finding,
        field: &str,
        variant: &Fetched,
        invariant: &Fetched,
    ) -> Finding {
        let Some(register) = dpu::register(self.generation.layout, field) else {
            return finding;
        };
        let (name, slice) = if register.in_variant {
            ("variant", variant.from)
        } else {
            ("invariant", invariant.from)
        };
        let value = register.value(self.bytes(slice));
        let last = register.bit + register.width - 1;
        let bits = if register.width == 1 {
            format!("bit {last}")
        } else {
            format!("bits {last}:{}", register.bit)
        };
        let place = self.place(Slice {
            section: slice.section,
            offset: slice.offset + register.offset as u64,
            size: 4,
        });
        finding.with(
            place.at(field.to_owned()),
            format!(
                "{bits} of the word at {:#x} of the {name} = {value} ({value:#x})",
                register.offset
            ),
        )
    }

    pub(super) fn workload(
        &mut self,
        tile: u8,
        variant: &Fetched,
        invariant: &Fetched,
        walked: usize,
        place: &Place,
    ) -> Option<(Box<dyn Kernel + 'i>, Cost)> {
        let (variant_bytes, invariant_bytes) =
            (self.bytes(variant.from), self.bytes(invariant.from));
        let layout = self.generation.layout;
        let decoded = match layout {
            Layout::Npu3720 => dpu::Workload::decode_3720(
                invariant_bytes.try_into().ok()?,
                variant_bytes.try_into().ok()?,
            ),
            Layout::Npu4000 => dpu::Workload::decode(
                invariant_bytes.try_into().ok()?,
                variant_bytes.try_into().ok()?,
                tile,
                self.generation.post,
            ),
        };
        let workload = match decoded {
            Ok(workload) => workload,
            Err(error) => {
                let finding = DPU_WORKLOAD.at(place.clone(), error.to_string());
                self.findings
                    .push(self.with_register(finding, error.field, variant, invariant));
                return None;
            }
        };
        let workload = Arc::new(workload);
        self.constants.compute(walked, Arc::clone(&workload));
        let machine = &self.options.machine;
        // Which of sparse weights are there is seen when all constants have been.
        let cycles = workload.cycles(&machine.dpu, 1.0);
        let fixed = Time::from_cycles(cycles, machine.clock.dpu());
        self.rests.on(workload.rests_on(&machine.dpu));
        let descriptors = self.in_cmx(tile, [variant, invariant]);
        let is_continued = workload.is_continued();
        let left = is_continued.then(|| Arc::clone(&workload));
        let earlier = std::mem::replace(self.continued.get_mut(usize::from(tile))?, left);
        let accumulators = (is_continued || earlier.is_some()).then(|| Accumulators {
            buffer: self.accumulators(tile),
            earlier,
        });
        let knowledge = Knowledge {
            constants: Arc::clone(&self.known),
            position: walked,
        };
        let (profile, memory) = match layout {
            // hwp_cmx_base_offset_ counts from the part that programs use; both tiles are one memory.
            Layout::Npu3720 => {
                let base = Record(invariant_bytes).u32(0x104);
                let record = u64::from(base) + npu3720::WORKSPACE;
                let tile_start = u64::from(tile) * npu3720::CMX_SIZE;
                ((base != u32::MAX).then_some(record + tile_start), 0)
            }
            // hwp_en; of the variant hwp_wload_id: the number of the record in the tile.
            Layout::Npu4000 => {
                let record = u64::from(Record(variant_bytes).u16(0x18)) * PROFILE_BYTES;
                let is_on = Record(invariant_bytes).u32(0xc0) & 1 != 0;
                (is_on.then_some(record), tile)
            }
        };
        if let Some(record) = profile {
            let record = Pattern::contiguous(record, PROFILE_BYTES);
            self.constants.arrive(memory, walked, &record, false, None);
        }
        let task = DpuTask {
            descriptors,
            cmx: self.cmx,
            workload,
            accumulators,
            tile: memory,
            knowledge,
            profile,
        };
        Some((Box::new(task), Cost::of(fixed)))
    }

    pub(super) fn invocation(
        &mut self,
        tile: u8,
        invocation: &Fetched,
        range: &Fetched,
        place: &Place,
    ) -> Option<(Box<dyn Kernel + 'i>, Cost)> {
        let descriptors = self.in_cmx(tile, [invocation, range]);
        let (record, kernel) = (
            Record(self.bytes(invocation.from)),
            Record(self.bytes(range.from)),
        );
        // Address and size of the code, and address of the arguments.
        let (text, size, arguments) = match self.generation.layout {
            Layout::Npu3720 => (
                u64::from(kernel.u32(8)),
                kernel.u32(12),
                u64::from(record.u32(4)),
            ),
            Layout::Npu4000 => (kernel.u64(16), kernel.u32(24), record.u64(8)),
        };
        let work = match kernel.u8(0) {
            0 => self.kernel(text, u64::from(size), arguments, place)?,
            kind => Work::Maintenance(match kind {
                4 => "debug",
                5 => "flush cache",
                6 => "invalidate cache",
                7 => "flush and invalidate cache",
                8 => "prefetch",
                _ => {
                    self.findings.push(SHAVE_ARGUMENTS.at(
                        place.clone(),
                        format!("kernel range of type {kind}; 0 and 4 to 8 are known"),
                    ));
                    return None;
                }
            }),
        };
        let fixed = self.shave_time(&work);
        Some((
            Box::new(Invocation {
                descriptors,
                cmx: self.cmx,
                work,
            }),
            Cost::of(fixed),
        ))
    }

    /// The buffer of a DPU's accumulators.
    fn accumulators(&mut self, tile: u8) -> BufferId {
        *self.accumulators[usize::from(tile)].get_or_insert_with(|| {
            let name = format!("dpu{tile}.accumulators");
            let size = 4 * dpu::ACCUMULATORS as u64;
            let memory = self.build.memory(&name, size, MemoryKind::Registers);
            self.build.buffer(Buffer {
                address: Some(0),
                ..Buffer::new(name, memory, size, Role::Scratch)
            })
        })
    }

    /// The work of a kernel whose code and arguments are at these addresses.
    fn kernel(&mut self, text: u64, size: u64, arguments: u64, place: &Place) -> Option<Work> {
        let identity = if let Some(identity) = self.operations.get(&(text, size)) {
            identity.clone()
        } else {
            let code = match self.image.resolve(text) {
                Target::Section(section, offset) => self
                    .image
                    .bytes(section)
                    .get(offset as usize..)
                    .and_then(|b| b.get(..size as usize)),
                _ => None,
            };
            let Some(code) = code else {
                self.findings.push(UNMAPPED.at(
                    place.clone(),
                    format!("kernel code of {size} bytes at {text:#x} is in no section"),
                ));
                return None;
            };
            let identity = self.options.kernels.identify(code);
            self.operations.insert((text, size), identity.clone());
            identity
        };
        let Target::Section(section, offset) = self.image.resolve(arguments) else {
            self.findings.push(UNMAPPED.at(
                place.clone(),
                format!("kernel arguments at {arguments:#x} are in no section"),
            ));
            return None;
        };
        let base = self.image.sections()[section].address.unwrap_or(0);
        let parameters = shave::Section::new(self.image.bytes(section), base);
        let Some(operation) = identity.operation else {
            let tensors = parameters.leading_tensors(offset);
            return Some(Work::Unknown {
                identity,
                release: self.release.clone(),
                tensors,
            });
        };
        match parameters.decode(operation, offset) {
            Ok(invocation) => Some(Work::Known(Box::new(invocation))),
            Err(error) => {
                let rule = if error.is_dynamic {
                    &DYNAMIC_SHAPE
                } else {
                    &SHAVE_ARGUMENTS
                };
                self.findings
                    .push(rule.at(place.clone(), format!("{operation}: {error}")));
                None
            }
        }
    }

    /// What the kernel takes of the task that is made next.
    fn shave_time(&mut self, work: &Work) -> Time {
        let options = self.options;
        let machine = &options.machine;
        let (cost, written, read): (_, _, u64) = match work {
            Work::Known(invocation) => {
                let (inputs, outputs) = (&invocation.inputs, &invocation.outputs);
                // The published cost model knows kernels of 8 and 16 bits only.
                let is_wide = |t: &TensorRef| {
                    matches!(t.shape.element, ElementType::Float32 | ElementType::Int32)
                };
                let wide = inputs
                    .iter()
                    .take(1)
                    .chain(outputs.iter().take(1))
                    .any(is_wide);
                let cost = machine.shave.operations.get(invocation.operation.name());
                let bytes = |t: &TensorRef| {
                    let bytes = t.pattern.bytes().unwrap_or(0);
                    of_two_bytes(bytes, t.shape.element.bits(), COST_MODEL_ELEMENT)
                };
                (
                    cost.filter(|_| !wide).unwrap_or(&machine.shave.default),
                    outputs.first().map_or(0, bytes),
                    inputs.iter().map(bytes).sum(),
                )
            }
            Work::Unknown { tensors, .. } => {
                let bytes = tensors.last().and_then(|t| t.pattern.bytes()).unwrap_or(0);
                (&machine.shave.default, bytes, 0)
            }
            Work::Maintenance(_) => return Time::ZERO,
        };
        let task = self.build.program.tasks.next_idx();
        let has_own_cost = !std::ptr::eq(cost, &raw const machine.shave.default);
        self.rests.on_kernel(task, work, has_own_cost);
        let vector = machine.shave.vector.fitted / machine.shave.vector.bits;
        let bytes = cost.per_byte * written as f64 + cost.per_input_byte * read as f64;
        let microseconds = cost.fixed + bytes * vector;
        let clock = machine.shave.reference_clock / machine.clock.shave();
        Time::from_ns(microseconds * 1e3 * machine.shave.scale * clock)
    }
}
