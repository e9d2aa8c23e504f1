//! Which outputs of a workload are zero whatever its data are.
//!
//! Compilers pad channels to multiples of 16: the weights of what pads an output are absent and its bias is zero, so that the next
//! convolution reads zeros there, and may leave its own weights for them unwritten.

use super::access::Known;
use super::activations::Tensor;
use super::dependence::Each;
use super::operation::Operation;
use super::post::Post;
use super::weights::Entry;
use super::workload::Workload;
use chipless_model::Kind;

impl Workload {
    /// Tells `visit` tile, start and size of written bytes that are zero. `known(offset, size)` as for
    /// [`accesses_with`](Workload::accesses_with); `zero` tells the bytes of which that is not known.
    pub fn zeros(&self, known: Known<'_>, zero: Each<'_>, visit: &mut dyn FnMut(u8, u64, u64)) {
        if self.continued || self.unsupported.is_some() {
            return;
        }
        let entries = if self.uses_weight_table() {
            let Some(entries) = self.known_table(known) else {
                return;
            };
            Some(entries)
        } else {
            None
        };
        let mut channels = self.zero_channels(&self.input, zero);
        if let Some(second) = &self.second {
            let others = self.zero_channels(second, zero);
            let both = channels.iter_mut().zip(others);
            both.for_each(|(one, other)| *one &= other);
        }
        let entry = |channel: usize| entries.as_ref().and_then(|table| table.get(channel));
        let is_zero = |channel: usize| {
            self.post.keeps_zero(entry(channel))
                && match (self.operation, entry(channel)) {
                    (Operation::Convolution, Some(entry)) => {
                        self.multiplies_zeros(entry, known, &channels)
                    }
                    (Operation::Convolution, None) => false,
                    (Operation::Reduce { .. }, _) => channels.iter().all(|is_zero| *is_zero),
                    _ => channels.get(channel).copied().unwrap_or(false),
                }
        };
        let extent = self.geometry.extent();
        let of_channels: Vec<bool> = (0..extent.z).map(is_zero).collect();
        if of_channels.contains(&true) {
            let outputs = of_channels.repeat(extent.volume() / extent.z.max(1));
            self.output.written(self.tile, &outputs, visit);
        }
    }

    /// By channel of a tensor, whether all of it that the workload reads is zero.
    pub(super) fn zero_channels(&self, tensor: &Tensor, zero: Each<'_>) -> Vec<bool> {
        let channels = tensor.channels(&self.geometry);
        // The zero point of integers is another value, and sparse tensors may point anywhere.
        if tensor.sparse.is_some() || tensor.format.kind() != Kind::Float {
            return vec![false; channels];
        }
        let others = self.window_in_doubt(tensor, &|_, _| None, zero);
        others.map_or_else(
            || vec![false; channels],
            |others| others.doubtful_channels().iter().map(|o| !o).collect(),
        )
    }

    /// Whether every weight of an output channel is zero, absent, or that of an input channel that is zero.
    fn multiplies_zeros(&self, entry: &Entry, known: Known<'_>, channels: &[bool]) -> bool {
        match self.weights_present(entry, known) {
            Some(present) => (0..self.weights_of_a_channel())
                .filter(|weight| present.has(*weight))
                .all(|weight| channels[weight % channels.len()]),
            None => channels.iter().all(|is_zero| *is_zero),
        }
    }
}

impl Post {
    /// Whether a sum of zero becomes an element whose bytes are zero.
    fn keeps_zero(&self, entry: Option<&Entry>) -> bool {
        match self {
            Post::Bypass { .. } => true,
            Post::Float(post) => post.keeps_zero(entry),
            Post::Integer(_) | Post::Unknown { .. } => false,
        }
    }
}
