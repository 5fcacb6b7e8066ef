//! Refills of buckets: counted in lowest terms, shown as they are written.

use catraca_core::limit::{BucketTerms, Limit};
use catraca_core::policy::Terms;

use crate::helpers::must_read;

/// Counting needs the lowest terms, and people the rate that they wrote.
#[test]
fn a_refill_is_shown_as_it_is_written() {
    let text = "[policy.a]\nby = ['ip']\nbucket = { size = 9, refill = '60 per 1m' }\ntier = [\n\
                { when = { vip = '1' }, bucket = { size = 9, refill = '25_000 per 1m' } },\n\
                { when = { vip = '2' }, cost = 2 } ]\n";
    let catalog = must_read(text).catalog;
    let (_, policy) = catalog.find("a").unwrap();
    let base = policy.base.as_ref().unwrap();
    let tiers = policy.tiers.iter().map(|tier| &tier.terms);
    let shown: Vec<String> = [base].into_iter().chain(tiers).map(Terms::describe_limit).collect();
    let refills = ["60 per 1m", "25000 per 1m", "60 per 1m"];
    assert_eq!(shown, refills.map(|refill| format!("bucket of 9, refill {refill}")));
    assert_eq!(base.limit, Limit::Bucket(BucketTerms { size: 9, tokens: 1, period: 1_000_000 }));
}
