//! Buckets: refill, debt, terms and their texts.

use super::*;

fn terms(size: i64, tokens: i64, period: i64) -> BucketTerms {
    BucketTerms { size, tokens, period }
}

fn at(micros: i64) -> Time {
    Time::from_micros(micros)
}

/// covers: B-19, 001-07
#[test]
fn debt_waits_as_long_as_the_central_bank_says() {
    let pf = terms(100, 1, 30_000_000);
    let mut bucket = Bucket::full(&pf, at(0));
    bucket.take(&pf, 95);
    assert_eq!(bucket.take(&pf, 20), 20);
    assert_eq!(bucket.tokens, -15);
    assert_eq!(bucket.fits_at(&pf, 1), at(480_000_000));
}

/// covers: B-30, 001-04
#[test]
fn refill_loses_nothing_however_often_it_is_touched() {
    let uneven = terms(1_000, 7, 3);
    let mut often = Bucket::full(&uneven, at(0));
    often.take(&uneven, 1_000);
    let once = often.refill_to(&uneven, at(100));
    for micros in 0..=100 {
        often = often.refill_to(&uneven, at(micros));
    }
    assert_eq!((often.tokens, often.rem), (once.tokens, once.rem));
    assert_eq!(once.tokens, 700 / 3);
}

#[test]
fn an_idle_century_fills_and_does_not_overflow() {
    let daily = terms(200, 1, 2_160_000_000);
    let mut bucket = Bucket::full(&daily, at(0));
    bucket.take(&daily, 200);
    let later = bucket.refill_to(&daily, Time::from_micros(100 * 365 * 86_400_000_000));
    assert_eq!((later.tokens, later.rem), (200, 0));
}

#[test]
fn a_charge_stops_at_the_arithmetic_floor() {
    let slow = terms(10, 1, 86_400_000_000);
    let mut bucket = Bucket::full(&slow, at(0));
    let taken = bucket.take(&slow, i64::MAX);
    assert_eq!(bucket.tokens, slow.floor());
    assert_eq!(taken, 10 - slow.floor());
    assert!(bucket.full_at(&slow) <= Time::FOREVER);
}

#[test]
fn a_debt_that_slower_terms_cannot_count_stops_at_their_floor() {
    let fast = terms(1_000, 1, 12_000);
    let slow = terms(1_000, 1, 86_400_000_000);
    let mut bucket = Bucket::full(&fast, at(0));
    bucket.take(&fast, 1_000_001_000);
    let later = bucket.refill_to(&slow, at(1));
    assert_eq!(later.tokens, slow.floor());
    assert!(later.full_at(&slow) <= Time::FOREVER);
}

#[test]
fn other_terms_drop_the_remainder_and_count_the_time_since() {
    let slow = terms(10, 1, 1_000);
    let fast = terms(10, 1, 100);
    let mut bucket = Bucket::full(&slow, at(0));
    bucket.take(&slow, 10);
    let halfway = bucket.refill_to(&slow, at(500));
    assert_eq!((halfway.tokens, halfway.rem), (0, 500));
    let changed = halfway.refill_to(&fast, at(650));
    assert_eq!((changed.tokens, changed.rem), (1, 50));
}

#[test]
fn refills_are_written_in_the_smallest_unit_that_is_whole() {
    let told = |tokens, period| BucketTerms { size: 1, tokens, period }.refill_text();
    assert_eq!(told(1, 10_000), "100 per 1s");
    assert_eq!(told(1, 30_000_000), "2 per 1m");
    assert_eq!(told(1, 2_400), "25000 per 1m");
    assert_eq!(told(1, 2_160_000_000), "40 per 24h");
    assert_eq!(told(3, 7_000_000), "3 per 7s");
}

#[test]
fn an_empty_bucket_takes_whole_microseconds_to_fill_rounded_up() {
    let micros = |size, tokens| BucketTerms { size, tokens, period: 1_000 }.time_to_fill().micros();
    assert_eq!(micros(10, 1), 10_000);
    assert_eq!(micros(9, 3), 3_000);
    assert_eq!(micros(10, 3), 3_334);
    assert_eq!(micros(11, 3), 3_667);
}

#[test]
fn a_share_of_a_bucket_fills_in_about_the_same_time() {
    let whole = BucketTerms { size: 100, tokens: 2, period: 60_000_000 };
    let share = BucketTerms { size: 25, tokens: 1, period: 120_000_000 };
    assert_eq!(whole.share(4), share);
    assert_eq!(share.time_to_fill(), whole.time_to_fill());
    let odd = BucketTerms { size: 7, tokens: 3, period: 10 };
    let share = BucketTerms { size: 4, tokens: 3, period: 20 };
    assert_eq!(odd.share(2), share);
}

#[test]
fn a_share_stays_in_exact_arithmetic() {
    let vast = BucketTerms { size: 3, tokens: 1, period: EXACT_MAX / 3 };
    let share = vast.share(2);
    assert_eq!((share.size, share.tokens, share.period), (2, 1, EXACT_MAX / 3));
    assert!(share.size * share.period <= EXACT_MAX);
}

#[test]
fn a_bucket_whose_time_to_fill_is_beyond_exact_numbers_is_refused() {
    let location = SourceLocation { file: 0, start: 0, end: 0 };
    let is_exact = |terms: BucketTerms| terms.check_exact(&mut Report::default(), location);
    assert!(is_exact(terms(EXACT_MAX, 1, 1)));
    assert!(!is_exact(terms(EXACT_MAX, 1, 2)));
    // The size is exact, but twice the refill, which is the first multiple above it, is not.
    assert!(!is_exact(terms(EXACT_MAX - 1, EXACT_MAX / 2 + 1, 1)));
}

/// Cells and scripts store the tag: with another one they would lose their fractions.
#[test]
fn the_tag_of_a_refill_never_changes() {
    assert_eq!(terms(1, 1, 1_000_000).refill_tag(), 0xb1d7_9d64);
    assert_eq!(terms(1, 7, 3).refill_tag(), 0x17eb_fbdb);
}
