//! The one DRAM queue of the spec's dialect.

use crate::lower::transfers;
use crate::schedule::Schedule;

impl Schedule {
    /// Numbers the DRAM queue in the order in which an infinitely fast machine would come to its transfers: whatever a
    /// transfer waits for comes before it.
    pub fn queue(&mut self) {
        let (orders, count) = transfers(self);
        let on_chip = count.max((self.dram_in.len() + self.dram_out.len()) as u32);
        let tensors = self
            .cores
            .iter_mut()
            .flat_map(|core| &mut core.workloads)
            .flat_map(|workload| &mut workload.buffer);
        for (tensor, order) in tensors.zip(orders) {
            tensor.tensor_order = Some(order.unwrap_or(on_chip));
        }
    }
}
