//! Batches at edges that random traces hardly reach. Every trace runs them first.

use std::sync::Arc;

use catraca_core::algorithm::SharedBuckets;
use catraca_core::batch::{Batch, CheckBatch, CheckRow, ReconcileRow};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, WindowTerms};
use catraca_core::time::{Span, Time};

const START: Time = Time::from_micros(1_000_000_000_000);
const DAY: i64 = 86_400_000_000;
const WINDOW_KEY: u8 = 251;
const BUCKET_KEY: u8 = 252;

/// The batches, with the instant of each.
pub fn batches() -> Vec<(Batch, Time)> {
    let mut batches = window_that_loses_its_oldest_entry();
    batches.extend(debt_below_the_floor_of_another_tier());
    batches
}

/// The oldest of two entries leaves a window that has room: the fast path must drop it at exactly
/// the end of its span.
fn window_that_loses_its_oldest_entry() -> Vec<(Batch, Time)> {
    let span = Span::from_secs(1);
    let limit = Limit::Window([WindowTerms { limit: 5, span }].into_iter().collect());
    let instants = [0, 10, span.micros(), span.micros() + 1, span.micros() + 10];
    instants.map(|micros| (check(WINDOW_KEY, limit.clone()), after(micros))).to_vec()
}

/// A debt under a fast refill is below the floor of a tier with a slow one. For that tier it is
/// full after 105 days, counted from its floor; counted from the debt, after 301. The check between
/// them has terms that were not known at the write, and must find the bucket forgotten.
fn debt_below_the_floor_of_another_tier() -> Vec<(Batch, Time)> {
    let month = 30 * DAY;
    let fast = BucketTerms { size: 10, tokens: 1_000, period: 1_000_000 };
    let slow = BucketTerms { size: 10, tokens: 1_000, period: month };
    let later = BucketTerms { size: 10, tokens: 1, period: month };
    let debt = -10_000;
    assert!(fast.floor() < debt && debt < slow.floor());
    let reconcile = Batch::Reconcile(vec![ReconcileRow {
        key: key(BUCKET_KEY),
        terms: fast,
        shared: SharedBuckets::new(&Limit::Bucket(fast), [&Limit::Bucket(slow)].into_iter())
            .map(Arc::new),
        available: debt,
        observed_at: START,
    }]);
    let check = check(BUCKET_KEY, Limit::Bucket(later));
    vec![(reconcile, START), (check, after(150 * DAY))]
}

fn key(byte: u8) -> Key {
    Key::from_bytes([byte; 16])
}

fn after(micros: i64) -> Time {
    START.after(Span::from_micros(micros))
}

fn check(byte: u8, limit: Limit) -> Batch {
    let row = CheckRow { family: u64::from(byte), ..CheckRow::new(key(byte), limit) };
    Batch::Check(CheckBatch {
        rows: [row].into_iter().collect(),
        peek: false,
        already_denied: false,
        new_reference: None,
    })
}
