//! Buffers that one task after the other uses. A task needs a few of a megabyte each; to ask the system for them anew would cost more than
//! what many tasks do with them, since it clears every page, and so does whoever asks for zeros.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Buffers of a thread that are kept, at most, and their elements.
const KEPT: usize = 24;
const ELEMENTS: usize = 4 << 20;

/// A buffer is lent for at least this part of its elements: who takes a large one for little keeps it from those who need it.
const PART: usize = 4;

/// Elements whose buffers are kept.
pub trait Element: Copy + Default + 'static {
    /// Lends the buffers of this thread; `None` where the thread is about to end.
    #[doc(hidden)]
    fn with_buffers<R>(act: impl FnOnce(&RefCell<Vec<Vec<Self>>>) -> R) -> Option<R>;
}

macro_rules! element {
    ($($element:ty)+) => {
        $(impl Element for $element {
            fn with_buffers<R>(act: impl FnOnce(&RefCell<Vec<Vec<$element>>>) -> R) -> Option<R> {
                thread_local! {
                    static BUFFERS: RefCell<Vec<Vec<$element>>> = RefCell::default();
                }
                BUFFERS.try_with(act).ok()
            }
        })+
    };
}

element!(f32 f64 i16 i32 i64 u8 [u8; 1] [u8; 2] [u8; 4]);

/// A number of elements in a buffer that the thread keeps when they are dropped.
pub struct Room<T: Element> {
    /// At least as many.
    buffer: Vec<T>,
    size: usize,
}

impl<T: Element> Room<T> {
    /// A number of elements, whatever they are: whoever takes them writes each before it reads it.
    pub fn take(size: usize) -> Room<T> {
        if size == 0 {
            return Room {
                buffer: Vec::new(),
                size,
            };
        }
        let found = T::with_buffers(|buffers| {
            let mut buffers = buffers.borrow_mut();
            let fits = |i: &usize| (size..=size.saturating_mul(PART)).contains(&buffers[*i].len());
            let smallest = (0..buffers.len())
                .filter(fits)
                .min_by_key(|i| buffers[*i].len());
            smallest.map(|i| buffers.remove(i))
        });
        // The next task may need a little more. What nobody touches costs nothing.
        let length = if size <= ELEMENTS {
            size.next_power_of_two()
        } else {
            size
        };
        let buffer = found.flatten();
        Room {
            buffer: buffer.unwrap_or_else(|| vec![T::default(); length]),
            size,
        }
    }

    /// The same, all of them zero.
    pub fn zeros(size: usize) -> Room<T> {
        let mut room = Room::take(size);
        room.fill(T::default());
        room
    }

    /// Appends elements.
    pub fn extend_from_slice(&mut self, more: &[T]) {
        let end = self.size + more.len();
        if self.buffer.len() < end {
            self.buffer.resize(end, T::default());
        }
        self.buffer[self.size..end].copy_from_slice(more);
        self.size = end;
    }

    /// Leaves out all but the first ones.
    pub fn truncate(&mut self, size: usize) {
        self.size = self.size.min(size);
    }
}

impl<T: Element> Drop for Room<T> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        if buffer.is_empty() || buffer.len() > ELEMENTS {
            return;
        }
        _ = T::with_buffers(|buffers| {
            let mut buffers = buffers.borrow_mut();
            buffers.push(buffer);
            let mut elements: usize = buffers.iter().map(Vec::len).sum();
            while buffers.len() > KEPT || elements > ELEMENTS {
                elements -= buffers.remove(0).len();
            }
        });
    }
}

impl<T: Element> Deref for Room<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.buffer[..self.size]
    }
}

impl<T: Element> DerefMut for Room<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer[..self.size]
    }
}

impl<T: Element> FromIterator<T> for Room<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Room<T> {
        let buffer: Vec<T> = elements.into_iter().collect();
        Room {
            size: buffer.len(),
            buffer,
        }
    }
}

impl<T: Element> Clone for Room<T> {
    fn clone(&self) -> Room<T> {
        self.iter().copied().collect()
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
    fn what_is_dropped_is_taken_again() {
        let mut room = Room::<f32>::take(100);
        room.fill(7.0);
        let place = room.as_ptr();
        drop(room);
        let mut again = Room::<f32>::take(90);
        assert_eq!((again.len(), again.as_ptr()), (90, place));
        again.truncate(3);
        assert_eq!(*again, [7.0; 3]);
        drop(again);
        assert_eq!(*Room::<f32>::zeros(95), [0.0; 95]);
        let many: Vec<Room<i16>> = (1..=30).map(|size| (0..size).collect()).collect();
        drop(many);
        let kept = i16::with_buffers(|buffers| buffers.borrow().len());
        assert_eq!(kept, Some(KEPT));
        assert_eq!(Room::<i16>::take(1000).len(), 1000);
    }
}
