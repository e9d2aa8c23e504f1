//! Plain code, compiled for vectors.

/// What [`wide`] runs: a closure, or where inlining has to be certain, a type of its own whose `run` is marked so.
pub trait Body {
    /// Does it.
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
pub fn wide(body: impl Body) {
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
