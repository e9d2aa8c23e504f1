//! Buffers that one task after the other uses. A task needs a few of a megabyte each; to ask the system for them anew would cost more than
//! what many tasks do with them, since it clears every page, and so does whoever asks for zeros.

use std::cell::RefCell;

/// Buffers of a thread that are kept, at most.
const KEPT: usize = 8;

/// Elements of a buffer that is kept, at most.
const LARGEST: usize = 8 << 20;

/// Elements whose buffers are kept.
pub trait Element: Copy + Default + 'static {
    /// Lends the buffers of this thread.
    #[doc(hidden)]
    fn with_rooms<R>(act: impl FnOnce(&RefCell<Vec<Vec<Self>>>) -> R) -> R;
}

macro_rules! element {
    ($($element:ty)+) => {
        $(impl Element for $element {
            fn with_rooms<R>(act: impl FnOnce(&RefCell<Vec<Vec<$element>>>) -> R) -> R {
                thread_local! {
                    static ROOMS: RefCell<Vec<Vec<$element>>> = RefCell::default();
                }
                ROOMS.with(act)
            }
        })+
    };
}

element!(f32 f64 i16 i32 i64 u8 [u8; 1] [u8; 2] [u8; 4]);

/// A number of elements, whatever they are: whoever takes them writes each before it reads it.
pub fn take<T: Element>(size: usize) -> Vec<T> {
    let mut room = T::with_rooms(|rooms| {
        let mut rooms = rooms.borrow_mut();
        // The smallest that is large enough, or else the largest.
        let fits = (0..rooms.len()).min_by_key(|i| {
            let capacity = rooms[*i].capacity();
            (capacity < size, capacity.abs_diff(size))
        });
        fits.map(|i| rooms.swap_remove(i)).unwrap_or_default()
    });
    if room.capacity() < size {
        // Nothing is to be copied.
        room.clear();
    }
    room.truncate(size);
    room.resize(size, T::default());
    room
}

/// The same, all of them zero.
pub fn take_zeros<T: Element>(size: usize) -> Vec<T> {
    let mut room = take(size);
    room.fill(T::default());
    room
}

/// Gives elements back that are not needed any more.
pub fn give<T: Element>(room: Vec<T>) {
    if room.capacity() == 0 || room.capacity() > LARGEST {
        return;
    }
    T::with_rooms(|rooms| {
        let mut rooms = rooms.borrow_mut();
        rooms.push(room);
        if rooms.len() > KEPT {
            let smallest = (0..rooms.len()).min_by_key(|i| rooms[*i].capacity());
            smallest.map(|i| rooms.swap_remove(i));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again() {
        let mut room = take::<f32>(100);
        room.fill(7.0);
        let place = room.as_ptr();
        give(room);
        let again = take::<f32>(90);
        assert_eq!((again.len(), again.as_ptr()), (90, place));
        give(again);
        assert_eq!(take_zeros::<f32>(95), [0.0; 95]);
        (0..20).for_each(|size| give(vec![0_i16; size + 1]));
        i16::with_rooms(|rooms| assert_eq!(rooms.borrow().len(), KEPT));
        assert_eq!(take::<i16>(1000).len(), 1000);
    }
}
