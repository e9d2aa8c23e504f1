//! Queues that take their pieces in the order of their numbers.

use std::collections::VecDeque;

/// Which pieces have their turn on queues that take them in the order of their numbers, whatever the order of their release.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// By queue, the pieces that have not been taken.
    left: Vec<VecDeque<usize>>,
    /// By piece.
    released: Vec<bool>,
}

impl Turns {
    /// Nothing is released yet. Takes the queue of each piece.
    pub fn new(queues: impl Iterator<Item = usize>) -> Turns {
        let mut turns = Turns::default();
        for (piece, queue) in queues.enumerate() {
            if turns.left.len() <= queue {
                turns.left.resize(queue + 1, VecDeque::new());
            }
            turns.left[queue].push_back(piece);
            turns.released.push(false);
        }
        turns
    }

    /// A piece is released.
    pub fn release(&mut self, piece: usize) {
        self.released[piece] = true;
    }

    /// Takes the piece of a queue that has its turn, if it has been released.
    pub fn take(&mut self, queue: usize) -> Option<usize> {
        let left = self.left.get_mut(queue)?;
        left.pop_front_if(|piece| self.released[*piece])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_wait_for_those_before_them_on_their_queue() {
        let mut turns = Turns::new([0, 1, 0, 0].into_iter());
        turns.release(3);
        turns.release(2);
        assert_eq!((turns.take(0), turns.take(1)), (None, None));
        turns.release(0);
        let taken: Vec<usize> = std::iter::from_fn(|| turns.take(0)).collect();
        assert_eq!(taken, [0, 2, 3]);
        turns.release(1);
        assert_eq!((turns.take(1), turns.take(1)), (Some(1), None));
    }
}
