//! The one DRAM queue of the spec's dialect.

use crate::lower::{Pace, paced, transfers};
use crate::schedule::Schedule;

impl Schedule {
    /// Numbers the DRAM queue in the order in which an infinitely fast machine would come to its transfers: whatever a
    /// transfer waits for comes before it.
    pub fn queue(&mut self) {
        let (orders, count) = transfers(self);
        let on_chip = count.max((self.dram_in.len() + self.dram_out.len()) as u32);
        self.number(orders, on_chip);
    }

    /// Numbers the DRAM queue in the order in which a machine of this pace comes to its transfers. All tensors must have addresses.
    pub fn queue_at(&mut self, pace: Pace) {
        // What the queue was says nothing.
        let workloads = self.cores.iter_mut().flat_map(|core| &mut core.workloads);
        for tensor in workloads.flat_map(|workload| &mut workload.buffer) {
            tensor.tensor_order = None;
        }
        let orders = paced(self, pace);
        self.number(orders, (self.dram_in.len() + self.dram_out.len()) as u32);
    }

    fn number(&mut self, orders: Vec<Option<u32>>, on_chip: u32) {
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
