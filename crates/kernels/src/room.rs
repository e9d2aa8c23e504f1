//! Buffers that one task after the other uses. A task needs a few of a megabyte each; to ask the system for them anew would cost more than
//! what many tasks do with them, since it clears every page, and so does whoever asks for zeros.

use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Buffers that are kept, at most, and the words of all of them, for each thread that there is. Threads share them: what one has computed
/// another may write.
const KEPT: usize = 24;
const WORDS: usize = 2 << 20;

/// A buffer is lent for at least this part of its words: who takes a large one for little keeps it from those who need it.
const PART: usize = 4;

/// Plain elements, of which any bytes are some.
pub trait Element: Pod + Default {}

impl<T: Pod + Default> Element for T {}

/// Buffers have no type of their own, so that numbers of one task and bytes of the next stand in the same memory. It is in the caches, and the
/// system need not clear more of it. Words of eight bytes are aligned for all elements.
type Buffer = Vec<u64>;

static BUFFERS: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());

/// A number of elements in a buffer that is kept when they are dropped.
pub struct Room<T: Element> {
    /// At least as many.
    buffer: Buffer,
    size: usize,
    elements: PhantomData<T>,
}

impl<T: Element> Room<T> {
    /// A number of elements, whatever they are: whoever takes them writes each before it reads it.
    pub fn take(size: usize) -> Room<T> {
        let words = words::<T>(size);
        let buffer = if words == 0 {
            Buffer::new()
        } else {
            with_buffers(|buffers| take(buffers, words)).unwrap_or_else(|| vec![0; rounded(words)])
        };
        Room {
            buffer,
            size,
            elements: PhantomData,
        }
    }

    /// The same, all of them zero.
    pub fn zeros(size: usize) -> Room<T> {
        let mut room = Room::take(size);
        room.fill(T::zeroed());
        room
    }

    /// Appends elements.
    pub fn extend_from_slice(&mut self, more: &[T]) {
        let end = self.size + more.len();
        let words = words::<T>(end);
        if self.buffer.len() < words {
            self.buffer.resize(rounded(words), 0);
        }
        let first = std::mem::replace(&mut self.size, end);
        self[first..].copy_from_slice(more);
    }

    /// Leaves out all but the first ones.
    pub fn truncate(&mut self, size: usize) {
        self.size = self.size.min(size);
    }
}

/// Words that so many elements take.
fn words<T>(size: usize) -> usize {
    // More than an address space holds is refused where it is asked for.
    size.saturating_mul(size_of::<T>())
        .div_ceil(size_of::<u64>())
}

/// Acts on the buffers that are kept.
fn with_buffers<R>(act: impl FnOnce(&mut Vec<Buffer>) -> R) -> R {
    act(&mut BUFFERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The smallest of some buffers that so many words fit into, and do not get lost in.
fn take(buffers: &mut Vec<Buffer>, words: usize) -> Option<Buffer> {
    let fits = |i: &usize| (words..=words.saturating_mul(PART)).contains(&buffers[*i].len());
    let smallest = (0..buffers.len())
        .filter(fits)
        .min_by_key(|i| buffers[*i].len());
    smallest.map(|i| buffers.remove(i))
}

/// Keeps a buffer, and of all of them so many for each of some threads.
fn keep(buffers: &mut Vec<Buffer>, buffer: Buffer, threads: usize) {
    buffers.push(buffer);
    let mut words: usize = buffers.iter().map(Vec::len).sum();
    while buffers.len() > KEPT * threads || words > WORDS * threads {
        words -= buffers.remove(0).len();
    }
}

/// Words of a buffer that is made for so many: the next task may need a little more. With large pages, what nobody touches costs as much as
/// what is used, so that it is a quarter more at most.
fn rounded(words: usize) -> usize {
    if words > WORDS {
        return words;
    }
    words.next_multiple_of((words.next_power_of_two() / 8).max(1))
}

impl<T: Element> Drop for Room<T> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() || buffer.len() > WORDS {
            return;
        }
        let threads = rayon::current_num_threads();
        with_buffers(|buffers| keep(buffers, buffer, threads));
    }
}

impl<T: Element> Deref for Room<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &bytemuck::cast_slice(&self.buffer)[..self.size]
    }
}

impl<T: Element> DerefMut for Room<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(&mut self.buffer)[..self.size]
    }
}

impl<T: Element> FromIterator<T> for Room<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Room<T> {
        let elements: Vec<T> = elements.into_iter().collect();
        let mut room = Room::take(elements.len());
        room.copy_from_slice(&elements);
        room
    }
}

impl<T: Element> Clone for Room<T> {
    fn clone(&self) -> Room<T> {
        let mut room = Room::take(self.size);
        room.copy_from_slice(self);
        room
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Room<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl<T: Element + PartialEq> PartialEq for Room<T> {
    fn eq(&self, other: &Room<T>) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let mut buffers: Vec<Buffer> = [100, 60, 50].map(|words| vec![7; words]).into();
        assert_eq!(take(&mut buffers, 55).unwrap().len(), 60);
        assert_eq!(take(&mut buffers, 55).unwrap().len(), 100);
        assert_eq!(take(&mut buffers, 12), None);
        assert_eq!(take(&mut buffers, 13).unwrap().len(), 50);
    }

    #[test]
    fn the_oldest_leave_where_they_are_many_or_large() {
        let mut buffers = Vec::new();
        (1..=2 * KEPT + 3).for_each(|words| keep(&mut buffers, vec![0; words], 2));
        assert_eq!((buffers.len(), buffers[0].len()), (2 * KEPT, 4));
        keep(&mut buffers, vec![0; WORDS], 1);
        assert_eq!(buffers.len(), 1);
    }

    #[test]
    fn any_elements_have_room() {
        let mut room = Room::<f32>::take(100);
        room.fill(7.0);
        room.truncate(3);
        assert_eq!(*room, [7.0; 3]);
        room.extend_from_slice(&[8.0; 200]);
        assert_eq!(room[202], 8.0);
        drop(room);
        assert_eq!(*Room::<f32>::zeros(95), [0.0; 95]);
        assert_eq!(*(0..4_i16).collect::<Room<i16>>(), [0, 1, 2, 3]);
        assert_eq!(Room::<i16>::take(1000).len(), 1000);
    }
}
