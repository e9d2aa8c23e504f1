//! Plain code, compiled for vectors; and bytes fetched before they are needed.

/// What [`wide`] runs: a closure, or where inlining has to be certain, a type of its own whose `run` is marked so.
pub(crate) trait Body {
    fn run(self);
}

impl<F: FnOnce()> Body for F {
    #[inline(always)]
    #[allow(clippy::inline_always)]
    fn run(self) {
        self();
    }
}

/// Runs `body`, compiled for 32-byte vectors where the CPU has them, as far as it is inlined. The results are the same:
/// the compiler neither fuses nor reorders operations on floats.
#[inline]
pub(crate) fn wide(body: impl Body) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2(body: impl Body) {
            body.run();
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2.
            #[allow(unsafe_code)]
            return unsafe { avx2(body) };
        }
    }
    body.run();
}

/// Has the CPU fetch what will be read or written soon: for places so far apart that it does not foresee them.
#[inline]
pub(crate) fn prefetch<T>(elements: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let bytes = elements.as_ptr_range();
        let (mut line, end) = (bytes.start.cast::<i8>(), bytes.end.cast::<i8>());
        while line < end {
            // SAFETY: fetching is no access: no address is wrong.
            #[allow(unsafe_code)]
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(line);
            }
            line = line.wrapping_add(LINE);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = elements;
}
