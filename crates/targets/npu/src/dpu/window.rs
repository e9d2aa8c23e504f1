//! TEMPORARY stand-in
pub(super) struct Window {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub ky: usize,
    pub kx: usize,
    pub sy: usize,
    pub sx: usize,
    pub top: usize,
    pub left: usize,
    pub oh: usize,
    pub ow: usize,
}
impl Window {
    fn each(&self, mut f: impl FnMut(usize, usize, usize)) {
        for oy in 0..self.oh {
            for ox in 0..self.ow {
                for ky in 0..self.ky {
                    for kx in 0..self.kx {
                        let (y, x) = ((oy * self.sy + ky).wrapping_sub(self.top), (ox * self.sx + kx).wrapping_sub(self.left));
                        if y < self.height && x < self.width {
                            f(oy * self.ow + ox, ky * self.kx + kx, (y * self.width + x) * self.channels);
                        }
                    }
                }
            }
        }
    }
}
pub(super) trait Num: Copy {
    type S: Copy + Default + PartialOrd;
    const LOW: Self::S;
    fn mac(s: Self::S, a: Self, b: Self) -> Self::S;
    fn up(a: Self) -> Self::S;
    fn add(s: Self::S, a: Self) -> Self::S;
}
impl Num for f32 {
    type S = f32;
    const LOW: f32 = f32::NEG_INFINITY;
    fn mac(s: f32, a: f32, b: f32) -> f32 {
        s + a * b
    }
    fn up(a: f32) -> f32 {
        a
    }
    fn add(s: f32, a: f32) -> f32 {
        s + a
    }
}
impl Num for i16 {
    type S = i32;
    const LOW: i32 = i32::MIN;
    fn mac(s: i32, a: i16, b: i16) -> i32 {
        s.wrapping_add(i32::from(a) * i32::from(b))
    }
    fn up(a: i16) -> i32 {
        i32::from(a)
    }
    fn add(s: i32, a: i16) -> i32 {
        s.wrapping_add(i32::from(a))
    }
}
pub(super) fn convolve<T: Num>(w: &Window, i: &[T], k: &[T], n: usize) -> Vec<T::S> {
    let mut o = vec![T::S::default(); w.oh * w.ow * n];
    let each = w.ky * w.kx * w.channels;
    w.each(|p, t, s| {
        for c in 0..n {
            for z in 0..w.channels {
                let d = &mut o[p * n + c];
                *d = T::mac(*d, i[s + z], k[c * each + t * w.channels + z]);
            }
        }
    });
    o
}
pub(super) fn depthwise<T: Num>(w: &Window, i: &[T], k: &[T]) -> Vec<T::S> {
    let mut o = vec![T::S::default(); w.oh * w.ow * w.channels];
    let n = w.channels;
    w.each(|p, t, s| {
        for z in 0..n {
            let d = &mut o[p * n + z];
            *d = T::mac(*d, i[s + z], k[z * w.ky * w.kx + t]);
        }
    });
    o
}
pub(super) fn pool_max<T: Num>(w: &Window, i: &[T]) -> Vec<T::S> {
    let mut o = vec![T::LOW; w.oh * w.ow * w.channels];
    let n = w.channels;
    w.each(|p, _, s| {
        for z in 0..n {
            let d = &mut o[p * n + z];
            let v = T::up(i[s + z]);
            if v > *d {
                *d = v;
            }
        }
    });
    o
}
pub(super) fn pool_sum<T: Num>(w: &Window, i: &[T]) -> Vec<T::S> {
    let mut o = vec![T::S::default(); w.oh * w.ow * w.channels];
    let n = w.channels;
    w.each(|p, _, s| {
        for z in 0..n {
            let d = &mut o[p * n + z];
            *d = T::add(*d, i[s + z]);
        }
    });
    o
}
