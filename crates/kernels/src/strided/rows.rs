use crate::wide::wide;

/// Bytes from one iteration of a loop to the next, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stride {
    pub(super) from: isize,
    pub(super) to: isize,
}

/// Two loops around a run of bytes.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    run: usize,
    pub(super) inner: usize,
    pub(super) inner_stride: Stride,
    pub(super) outer: usize,
    pub(super) outer_stride: Stride,
}

/// Copies all runs, the first of which are given.
///
/// # Safety
///
/// All runs must be readable at the source and writable at the destination, and must not overlap. The same goes for every
/// function of this type below.
#[allow(unsafe_code)]
pub(super) type Kernel = unsafe fn(Rows, *const u8, *mut u8);

#[allow(unsafe_code)]
impl Rows {
    /// One run and no loops.
    pub(super) fn single(run: usize) -> Rows {
        let still = Stride { from: 0, to: 0 };
        Rows {
            run,
            inner: 1,
            inner_stride: still,
            outer: 1,
            outer_stride: still,
        }
    }

    /// The kernel for the length of the run. Lengths between two powers of two are copied as two overlapping pieces.
    pub(super) fn kernel(self) -> Kernel {
        match self.run {
            run if self.inner_stride
                == (Stride {
                    from: 0,
                    to: run as isize,
                }) =>
            {
                Rows::repeat
            }
            1 => Rows::fixed::<1, false>,
            2 => Rows::fixed::<2, false>,
            3 => Rows::fixed::<2, true>,
            4 => Rows::fixed::<4, false>,
            5..8 => Rows::fixed::<4, true>,
            8 => Rows::fixed::<8, false>,
            9..16 => Rows::fixed::<8, true>,
            16 => Rows::fixed::<16, false>,
            17..32 => Rows::fixed::<16, true>,
            32 => Rows::fixed::<32, false>,
            33..64 => Rows::fixed::<32, true>,
            64 => Rows::fixed::<64, false>,
            65..128 => Rows::fixed::<64, true>,
            _ => Rows::any,
        }
    }

    /// Calls `body` with the places of every run.
    #[inline]
    fn each(self, source: *const u8, destination: *mut u8, body: impl Fn(*const u8, *mut u8)) {
        for i in 0..self.outer as isize {
            let mut source = source.wrapping_offset(i * self.outer_stride.from);
            let mut destination = destination.wrapping_offset(i * self.outer_stride.to);
            for _ in 0..self.inner {
                body(source, destination);
                source = source.wrapping_offset(self.inner_stride.from);
                destination = destination.wrapping_offset(self.inner_stride.to);
            }
        }
    }

    /// Runs of `SIZE` bytes, or with `MORE` of up to twice as many.
    unsafe fn fixed<const SIZE: usize, const MORE: bool>(
        self,
        source: *const u8,
        destination: *mut u8,
    ) {
        let rest = self.run - SIZE;
        let copy = |source: *const u8, destination: *mut u8| {
            // SAFETY: the first piece begins with the run and the second ends with it.
            unsafe {
                source.copy_to_nonoverlapping(destination, SIZE);
                if MORE {
                    source
                        .add(rest)
                        .copy_to_nonoverlapping(destination.add(rest), SIZE);
                }
            }
        };
        if SIZE < 32 {
            self.each(source, destination, copy);
        } else {
            wide(|| self.each(source, destination, copy));
        }
    }

    /// Runs of any length.
    unsafe fn any(self, source: *const u8, destination: *mut u8) {
        // SAFETY: one of the runs.
        self.each(source, destination, |source, destination| unsafe {
            source.copy_to_nonoverlapping(destination, self.run);
        });
    }

    /// One run, repeated side by side along the inner loop.
    unsafe fn repeat(self, source: *const u8, destination: *mut u8) {
        let size = self.run * self.inner;
        Rows { inner: 1, ..self }.each(source, destination, |source, destination| {
            // SAFETY: the inner loop writes `size` bytes side by side; what is copied within them has been written.
            unsafe {
                if self.run == 1 {
                    return destination.write_bytes(*source, size);
                }
                source.copy_to_nonoverlapping(destination, self.run);
                let mut done = self.run;
                while done < size {
                    let piece = done.min(size - done);
                    destination.copy_to_nonoverlapping(destination.add(done), piece);
                    done += piece;
                }
            }
        });
    }
}
