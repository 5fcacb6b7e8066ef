//! Random outcomes: few values, so that rules and prices are met often.
//!
//! It must use only what both the price tables and the ban rules of the generator mention, and a
//! little more.

use super::dice::Dice;
use crate::oracle::outcome::{BODY_BYTES_MAX, Outcome};

/// Statuses that occur.
pub const STATUSES: [i64; 6] = [200, 404, 429, 500, 503, 401];

/// Values of `body.reject_id` that occur.
pub const REJECTS: [i64; 2] = [4, 5];

/// A random outcome.
pub fn outcome(dice: &mut Dice) -> Outcome {
    Outcome {
        status: dice.maybe(93, status),
        reject_id: dice.maybe(35, |dice| dice.pick(&REJECTS)),
        body_bytes: dice.pick(&[0, 0, 0, 0, 0, 0, BODY_BYTES_MAX, BODY_BYTES_MAX + 1]),
        cost: dice.maybe(50, |dice| dice.pick(&[0, 1, 2, 3, 5, 8, 20])),
        // The last is longer than any upstream may block for.
        retry_after: dice.maybe(30, |dice| dice.pick(&[1, 2, 7, 1, 2, 7, 100_000])),
    }
}

/// Half of the time one of the two that most rules are about.
fn status(dice: &mut Dice) -> i64 {
    if dice.chance(50) { dice.pick(&[200, 404]) } else { dice.pick(&STATUSES) }
}
