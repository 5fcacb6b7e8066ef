//! An exact fraction, so that a bucket's balance can be held without any rounding.
//!
//! It must stay plain: reduced `i128` numerator over a positive denominator, and a panic rather
//! than a wrong number.

use std::cmp::Ordering;
use std::ops::{Add, Sub};

/// A reduced fraction with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    over: i128,
    under: i128,
}

impl Ratio {
    /// `over / under`, reduced. Panics on a zero denominator.
    pub fn new(over: i128, under: i128) -> Ratio {
        assert!(under != 0, "a fraction needs a denominator");
        let sign = if under < 0 { -1 } else { 1 };
        let shared = divisor(over.abs(), under.abs());
        Ratio { over: sign * over / shared, under: sign * under / shared }
    }

    /// A whole number as a fraction.
    pub fn whole(number: i64) -> Ratio {
        Ratio { over: i128::from(number), under: 1 }
    }

    /// The largest whole number not above this.
    pub fn floor(self) -> i64 {
        narrow(self.over.div_euclid(self.under))
    }

    /// The smallest whole number not below this.
    pub fn ceil(self) -> i64 {
        narrow(-(-self.over).div_euclid(self.under))
    }

    /// The denominator, reduced.
    pub fn denominator(self) -> i128 {
        self.under
    }

    /// This many times the other.
    pub fn times(self, other: Ratio) -> Ratio {
        Ratio::new(self.over * other.over, self.under * other.under)
    }

    /// This divided by the other, which must not be zero.
    pub fn by(self, other: Ratio) -> Ratio {
        Ratio::new(self.over * other.under, self.under * other.over)
    }
}

impl Add for Ratio {
    type Output = Ratio;

    fn add(self, other: Ratio) -> Ratio {
        Ratio::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }
}

impl Sub for Ratio {
    type Output = Ratio;

    fn sub(self, other: Ratio) -> Ratio {
        self + Ratio { over: -other.over, under: other.under }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (self.over * other.under).cmp(&(other.over * self.under))
    }
}

fn divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn narrow(number: i128) -> i64 {
    i64::try_from(number).expect("a whole figure of the oracle fits 64 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_towards_the_right_side_below_zero_too() {
        assert_eq!((Ratio::new(7, 2).floor(), Ratio::new(7, 2).ceil()), (3, 4));
        assert_eq!((Ratio::new(-7, 2).floor(), Ratio::new(-7, 2).ceil()), (-4, -3));
        assert_eq!((Ratio::whole(-3).floor(), Ratio::whole(-3).ceil()), (-3, -3));
    }

    #[test]
    fn arithmetic_is_exact() {
        let third = Ratio::new(1, 3);
        assert_eq!(third + third + third, Ratio::whole(1));
        assert_eq!(Ratio::whole(1) - third, Ratio::new(4, 6));
        assert_eq!(Ratio::whole(10).by(Ratio::new(2, -3)), Ratio::whole(-15));
        assert_eq!(third.times(Ratio::whole(-6)), Ratio::whole(-2));
        assert!(Ratio::new(1, 3) > Ratio::new(333_333, 1_000_000));
    }
}
