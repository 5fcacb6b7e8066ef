//! Random outcomes. They have few values, so that they often match the generated prices and ban
//! rules.

use super::rng::Rng;
use crate::oracle::outcome::{BODY_BYTES_MAX, Outcome};

/// The statuses that occur.
pub const STATUSES: [i64; 6] = [200, 404, 429, 500, 503, 401];

/// The values of `body.reject_id` that occur.
pub const REJECTS: [i64; 2] = [4, 5];

/// A random outcome.
pub fn outcome(rng: &mut Rng) -> Outcome {
    Outcome {
        status: rng.maybe(93, status),
        reject_id: rng.maybe(35, |rng| rng.pick(&REJECTS)),
        body_bytes: rng.pick(&[0, 0, 0, 0, 0, 0, BODY_BYTES_MAX, BODY_BYTES_MAX + 1]),
        cost: rng.maybe(50, |rng| rng.pick(&[0, 1, 2, 3, 5, 8, 20])),
        // The last is longer than the maximum block by an upstream, a day.
        retry_after: rng.maybe(30, |rng| rng.pick(&[1, 2, 7, 1, 2, 7, 100_000])),
    }
}

/// In half of the cases one of the two statuses that most rules use.
fn status(rng: &mut Rng) -> i64 {
    if rng.chance(50) { rng.pick(&[200, 404]) } else { rng.pick(&STATUSES) }
}
