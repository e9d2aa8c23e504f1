//! Complex numbers of two single-precision floats, the real part in the low half of the word.
//!
//! Products are formed in single precision, quotients in double precision and rounded once, square roots as the C library forms them: so does
//! the real simulator, and so the last bit is its last bit.

use super::lane::{lane, pair};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f32,
    pub(super) im: f32,
}

impl Complex {
    pub(super) const ONE: Complex = Complex { re: 1.0, im: 0.0 };

    pub(super) fn of(word: u64) -> Complex {
        Complex {
            re: lane(word, 0),
            im: lane(word, 1),
        }
    }

    pub(super) fn real(re: f32) -> Complex {
        Complex { re, im: 0.0 }
    }

    pub(super) fn word(self) -> u64 {
        pair(self.re, self.im)
    }

    pub(super) fn conj(self) -> Complex {
        Complex {
            re: self.re,
            im: -self.im,
        }
    }

    pub(super) fn neg(self) -> Complex {
        Complex {
            re: -self.re,
            im: -self.im,
        }
    }

    pub(super) fn add(self, other: Complex) -> Complex {
        Complex {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }

    pub(super) fn sub(self, other: Complex) -> Complex {
        Complex {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }

    pub(super) fn mul(self, other: Complex) -> Complex {
        Complex {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }

    pub(super) fn scale(self, by: f32) -> Complex {
        Complex {
            re: self.re * by,
            im: self.im * by,
        }
    }

    pub(super) fn unscale(self, by: f32) -> Complex {
        Complex {
            re: self.re / by,
            im: self.im / by,
        }
    }

    pub(super) fn div(self, other: Complex) -> Complex {
        let [a, b, c, d] = [self.re, self.im, other.re, other.im].map(f64::from);
        let norm = c * c + d * d;
        Complex {
            re: ((a * c + b * d) / norm) as f32,
            im: ((b * c - a * d) / norm) as f32,
        }
    }

    /// The square of the absolute value.
    pub(super) fn norm(self) -> f32 {
        self.re * self.re + self.im * self.im
    }

    /// The principal square root.
    pub(super) fn sqrt(self) -> Complex {
        let Complex { re, im } = self;
        if re.is_nan() || im.is_nan() || re.is_infinite() || im.is_infinite() {
            return Complex::sqrt_of_special(re, im);
        }
        if im == 0.0 {
            return if re < 0.0 {
                Complex {
                    re: 0.0,
                    im: (-re).sqrt().copysign(im),
                }
            } else {
                Complex {
                    re: re.sqrt().abs(),
                    im,
                }
            };
        }
        if re == 0.0 {
            let root = if im.abs() >= 2.0 * f32::MIN_POSITIVE {
                (0.5 * im.abs()).sqrt()
            } else {
                0.5 * (2.0 * im.abs()).sqrt()
            };
            return Complex {
                re: root,
                im: root.copysign(im),
            };
        }
        // Beyond the ends of the range of squares, a power of four is taken out and its root put back.
        let (scale, root_of_scale) = if re.abs().max(im.abs()) > f32::MAX / 4.0 {
            (0.25, 2.0)
        } else if re.abs().max(im.abs()) < 2.0 * f32::MIN_POSITIVE {
            (2f32.powi(24), 2f32.powi(-12))
        } else {
            (1.0, 1.0)
        };
        let (re, im) = (re * scale, im * scale);
        let absolute =
            (f64::from(re) * f64::from(re) + f64::from(im) * f64::from(im)).sqrt() as f32;
        let (real, imaginary) = if re > 0.0 {
            let real = (0.5 * (absolute + re)).sqrt();
            (real, 0.5 * (im / real))
        } else {
            let imaginary = (0.5 * (absolute - re)).sqrt();
            ((0.5 * (im / imaginary)).abs(), imaginary)
        };
        Complex {
            re: real * root_of_scale,
            im: (imaginary * root_of_scale).copysign(im),
        }
    }

    /// C99, annex G.
    fn sqrt_of_special(re: f32, im: f32) -> Complex {
        if im.is_infinite() {
            return Complex {
                re: f32::INFINITY,
                im,
            };
        }
        if re.is_infinite() {
            let other = if im.is_nan() { f32::NAN } else { 0f32 };
            return if re > 0.0 {
                Complex {
                    re,
                    im: if im.is_nan() { im } else { other.copysign(im) },
                }
            } else {
                Complex {
                    re: other,
                    im: f32::INFINITY.copysign(im),
                }
            };
        }
        Complex {
            re: f32::NAN,
            im: f32::NAN,
        }
    }
}

/// Intermediate values of a Householder reflection of a vector with this norm (its square, of real and imaginary parts in the
/// two halves, without the head) and this head: which one, `selected` says. There are three; all ones for any other.
pub(super) fn householder(norm: u64, head: u64, selected: u64) -> u64 {
    let (norm, head) = (Complex::of(norm), Complex::of(head));
    let length = (norm.re + norm.im + head.re * head.re + head.im * head.im).sqrt();
    let direction = head.neg().unscale(head.norm().sqrt());
    let alpha = direction.scale(length);
    let inverse = Complex::ONE.div(head.sub(alpha));
    match selected {
        0 => alpha,
        1 => inverse.conj(),
        2 => direction.conj().neg().div(inverse).unscale(length),
        _ => return u64::MAX,
    }
    .word()
}

/// The norm that a Givens rotation of these two divides by.
pub(super) fn givens(a: Complex, b: Complex) -> Complex {
    Complex::real((a.re * a.re + a.im * a.im + b.re * b.re + b.im * b.im).sqrt())
}
