//! Pieces of a decision timed alone: the loop itself, the floors' clock and fingerprint.
//! They decide nothing; their rows explain the others.

use std::hint::black_box;
use std::time::Instant;

use crate::subject::Subject;

/// The measuring loop and the making of a key: what every other row contains too.
pub struct Loop;

impl Subject for Loop {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        !black_box(key).is_empty()
    }
}

/// The floors' clock.
pub struct InstantClock(pub Instant);

impl Subject for InstantClock {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        black_box(self.0.elapsed());
        !black_box(key).is_empty()
    }
}

/// The fingerprint of the sharded floor: two keyed ahash values.
#[derive(Default)]
pub struct TwoAhash(ahash::RandomState, ahash::RandomState);

impl Subject for TwoAhash {
    #[inline]
    fn hit(&self, key: &str) -> bool {
        let key = black_box(key).as_bytes();
        black_box((self.0.hash_one(key), self.1.hash_one(key)));
        true
    }
}
