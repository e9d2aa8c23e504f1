//! Memory that is fetched before it is needed.

/// Has the CPU fetch what will be read or written soon: for places so far apart that it does not foresee them.
#[inline]
pub(crate) fn prefetch<T>(elements: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let bytes = elements.as_ptr_range();
        let (mut line, end) = (
            bytes.start.cast::<i8>().map_addr(|at| at / LINE * LINE),
            bytes.end.cast::<i8>(),
        );
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
