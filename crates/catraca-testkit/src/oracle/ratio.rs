//! An exact fraction, for the balance of a bucket without rounding: a reduced `i128` numerator over
//! a positive denominator.

use std::cmp::Ordering;
use std::ops::{Add, Sub};

/// A reduced fraction with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: i128,
    denominator: i128,
}

impl Ratio {
    /// `numerator / denominator`, reduced. Panics on a zero denominator.
    pub fn new(numerator: i128, denominator: i128) -> Ratio {
        assert!(denominator != 0, "a fraction needs a denominator");
        let sign = if denominator < 0 { -1 } else { 1 };
        let shared = divisor(numerator.abs(), denominator.abs());
        Ratio { numerator: sign * numerator / shared, denominator: sign * denominator / shared }
    }

    /// An integer as a fraction.
    pub fn whole(number: i64) -> Ratio {
        Ratio { numerator: i128::from(number), denominator: 1 }
    }

    /// The largest integer not above this.
    pub fn floor(self) -> i64 {
        narrow(self.numerator.div_euclid(self.denominator))
    }

    /// The smallest integer not below this.
    pub fn ceil(self) -> i64 {
        narrow(-(-self.numerator).div_euclid(self.denominator))
    }

    /// The denominator, reduced.
    pub fn denominator(self) -> i128 {
        self.denominator
    }

    /// The product.
    pub fn times(self, other: Ratio) -> Ratio {
        Ratio::new(self.numerator * other.numerator, self.denominator * other.denominator)
    }

    /// The quotient; `other` must not be zero.
    pub fn by(self, other: Ratio) -> Ratio {
        Ratio::new(self.numerator * other.denominator, self.denominator * other.numerator)
    }
}

impl Add for Ratio {
    type Output = Ratio;

    fn add(self, other: Ratio) -> Ratio {
        Ratio::new(
            self.numerator * other.denominator + other.numerator * self.denominator,
            self.denominator * other.denominator,
        )
    }
}

impl Sub for Ratio {
    type Output = Ratio;

    fn sub(self, other: Ratio) -> Ratio {
        self + Ratio { numerator: -other.numerator, denominator: other.denominator }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Ratio) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (self.numerator * other.denominator).cmp(&(other.numerator * self.denominator))
    }
}

/// The greatest common divisor.
fn divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn narrow(number: i128) -> i64 {
    i64::try_from(number).expect("figures of the oracle fit 64 bits")
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
