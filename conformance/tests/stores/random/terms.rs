//! The terms of random rows: one algorithm per name, with numbers up to both valid extremes.

use std::sync::Arc;

use catraca_core::algorithm::{FixedTerms, InflightTerms, SharedBuckets};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, EXACT_MAX, Limit, Penalty, WindowTerms};
use catraca_core::time::Span;
use catraca_testkit::generate::Rng;

/// Names of keys, six classes of five.
pub const NAMES: u8 = 30;
/// How long the most frequent penalty remembers its level.
pub const FORGET: i64 = 30_000;
const DAY: i64 = 86_400_000_000;
const HOUR: i64 = 3_600_000_000;

const BUCKETS: [(i64, i64, i64); 7] = [
    (10, 1, 100_000),
    (100, 1, 30_000_000),
    (1_000, 7, 3),
    (200, 1, 2_160_000_000),
    (EXACT_MAX / DAY, 1, DAY),
    (EXACT_MAX / 1_000_003, 104_729, 1_000_003),
    (EXACT_MAX - 1, 1_000_000_007, 1),
];
const WINDOWS: [&[(i64, i64)]; 6] = [
    &[(10, 1_000_000)],
    &[(5, 1_000), (20, 2_000_000)],
    &[(4_000, HOUR)],
    &[(3_000, 600_000_000), (400, 1_000_000), (2_000, DAY)],
    &[(2_500, 40 * DAY)],
    // Two windows of one length.
    &[(1, 1_000), (3, 1_000)],
];
const FIXED: [(i64, i64, bool); 5] = [
    (5, 1_000_000, false),
    (50, HOUR, true),
    (3, 700, true),
    (EXACT_MAX - 1, 40 * DAY, false),
    (20, 60_000_000, true),
];
const INFLIGHT: [(i64, i64); 4] = [(1, 900), (3, 50_000), (40, HOUR), (5, 30_000_000)];

pub fn key(name: u8) -> Key {
    Key::from_bytes([name + b'A'; 16])
}

pub fn is_bucket(name: u8) -> bool {
    matches!(name % 6, 0 | 3)
}

/// The terms of a name, or with `changed` others of the same algorithm.
pub fn limit(name: u8, changed: bool, rng: &mut Rng) -> Limit {
    let class = name % 6;
    let own = usize::from(name / 6);
    let mut pick = |count: usize| {
        if changed { rng.within(0, count as i64 - 1) as usize } else { (own + 2) % count }
    };
    match class {
        0 | 3 => Limit::Bucket(bucket(class, own, pick(BUCKETS.len()))),
        1 => window(WINDOWS[pick(WINDOWS.len())]),
        4 => window(WINDOWS[(pick(WINDOWS.len()) + 3) % WINDOWS.len()]),
        2 => {
            let (limit, span, aligned) = FIXED[pick(FIXED.len())];
            fixed(limit, span, aligned)
        }
        _ if own == 4 => Limit::Unlimited,
        _ => {
            let (limit, hold) = INFLIGHT[pick(INFLIGHT.len())];
            inflight(limit, hold)
        }
    }
}

/// The buckets of other tiers that share the counter of a name, as if there were tiers with all
/// of them; none for most names.
pub fn shared(name: u8, limit: &Limit) -> Option<Arc<SharedBuckets>> {
    if !is_shared(name) {
        return None;
    }
    let bucket = |(size, tokens, period)| BucketTerms { size, tokens, period };
    let buckets = BUCKETS.map(|terms| Limit::Bucket(bucket(terms)));
    SharedBuckets::new(limit, buckets.iter()).map(Arc::new)
}

/// Whether tiers share the counter of a name.
pub fn is_shared(name: u8) -> bool {
    name / 6 % 2 == 1
}

/// The bucket of a name.
pub fn bucket_terms(name: u8, changed: bool, rng: &mut Rng) -> BucketTerms {
    match limit(name, changed, rng) {
        Limit::Bucket(terms) => terms,
        _ => bucket(0, 0, 0),
    }
}

fn bucket(class: u8, own: usize, pick: usize) -> BucketTerms {
    let shift = if class == 0 { 0 } else { 3 + own / 4 };
    let (size, tokens, period) = BUCKETS[(pick + shift) % BUCKETS.len()];
    BucketTerms { size, tokens, period }
}

fn window(windows: &[(i64, i64)]) -> Limit {
    let terms =
        |(limit, span): &(i64, i64)| WindowTerms { limit: *limit, span: Span::from_micros(*span) };
    Limit::Window(windows.iter().map(terms).collect())
}

fn fixed(limit: i64, span: i64, aligned: bool) -> Limit {
    Limit::Fixed(FixedTerms { limit, span: Span::from_micros(span), aligned })
}

fn inflight(limit: i64, hold: i64) -> Limit {
    Limit::Inflight(InflightTerms { limit, hold: Span::from_micros(hold) })
}

/// A random amount, below, at or above the capacity.
pub fn amount(capacity: i64, rng: &mut Rng) -> i64 {
    match rng.within(0, 99) {
        0..10 => 0,
        10..65 => 1,
        65..80 => rng.within(1, 4),
        80..96 => {
            let most = rng.within(1, capacity.max(1));
            rng.within(1, most)
        }
        _ => (capacity + rng.within(0, 2)).min(EXACT_MAX - 1),
    }
}

pub fn penalty(rng: &mut Rng) -> Penalty {
    let span = Span::from_micros;
    let escalating = |first, factor, max, forget| Penalty {
        first: span(first),
        factor,
        max: span(max),
        forget: span(forget),
    };
    match rng.within(0, 9) {
        0 => Penalty::without_escalation(span(rng.within(0, 5_000_000))),
        1..6 => escalating(700, 3, 2_000_000, FORGET),
        6 => escalating(DAY, 1_000_000, Span::FOREVER.micros(), 30 * DAY),
        7 => escalating(5_000, 1, 1_000, 1),
        _ => Penalty::without_escalation(span(1_000)),
    }
}

pub fn act(longest: i64, rng: &mut Rng) -> BlockProposal {
    let penalty = match rng.within(0, 99) {
        0..3 => Penalty::without_escalation(Span::FOREVER),
        3..40 => penalty(rng),
        _ => Penalty::without_escalation(Span::from_micros(rng.within(0, longest))),
    };
    let origins = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    BlockProposal::new(penalty, rng.pick(&origins), rng.chance(20), note(rng))
}

fn note(rng: &mut Rng) -> BlockNote {
    let text = |rng: &mut Rng| format!("texto nº {}", rng.within(1, 9)).into();
    BlockNote {
        reason: rng.maybe(50, text),
        status: rng.maybe(30, |rng| rng.within(200, 599) as u16),
        message: rng.maybe(30, text),
    }
}
