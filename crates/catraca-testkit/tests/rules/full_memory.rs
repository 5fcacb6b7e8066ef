//! Random catalogs and requests with a full memory: each row follows `on_failure`, the decision is
//! degraded, and no key is blocked for the units of other keys.

use std::collections::BTreeMap;

use catraca::memory::{Memory, MemoryOptions};
use catraca::store::{Store, When};
use catraca::{Catalog, Check, Decision, Engine, ManualClock, Outcome, Settle, Span, Time};
use catraca_core::algorithm::{FixedTerms, InflightTerms};
use catraca_core::batch::{BanRow, Batch, CheckBatch, CheckRow, SettleBatch, SettleRow};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::decision::Reason;
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, Penalty, WindowTerms};
use catraca_core::policy::{OnFailure, Policy};
use catraca_core::price::Price;
use catraca_core::rate::Rate;
use catraca_core::request::DEFAULT_NAMESPACE;
use catraca_testkit::generate::{Rng, Trace, catalog_toml, op::OpKind};

const SEED: u64 = 4_711;
const TRACES: u64 = 60;
const STEPS: usize = 200;
/// Longer than any trace.
pub const YEAR: Span = Span::from_secs(365 * 86_400);

#[test]
fn rows_without_a_counter_follow_on_failure_and_block_nobody() {
    let mut seen: BTreeMap<(String, String), u32> = BTreeMap::new();
    for seed in SEED..SEED + TRACES {
        run_trace(seed, &mut seen);
    }
    println!("{seen:?}");
    for expected in [("Open", "ok"), ("Closed", "unavailable"), ("Local", "over_limit")] {
        let key = (expected.0.to_owned(), expected.1.to_owned());
        assert!(seen.get(&key).is_some_and(|count| *count > 100), "{expected:?} in {seen:?}");
    }
}

fn run_trace(seed: u64, seen: &mut BTreeMap<(String, String), u32>) {
    let mut trace = Trace::new(seed);
    let text = with_failure_modes(&catalog_toml::toml(&trace.versions[0]), &mut Rng::new(seed));
    let catalog = Catalog::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let clock = ManualClock::at(Time::ZERO);
    let options = MemoryOptions { budget_bytes: 64 << 10, shards: 1, ..MemoryOptions::default() };
    let engine = Engine::builder(catalog).clock(clock.clone()).memory(options).build();
    let mut is_full = false;
    for _ in 0..STEPS {
        let op = trace.next_op();
        clock.set(Time::from_micros(op.at));
        if !std::mem::replace(&mut is_full, true) {
            fill(engine.store(), Time::from_micros(op.at));
        }
        let OpKind::Check(request) = &op.kind else { continue };
        let subject = request.subject.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let check = Check {
            namespace: DEFAULT_NAMESPACE,
            gate: &request.gate,
            subject: subject.collect(),
            cost: request.cost,
            reference: None,
            lists: request.lists,
        };
        let Ok(decision) = engine.check(&check) else { continue };
        judge(&engine.catalog(), &decision, seen, seed);
        if let Some(ticket) = &decision.ticket {
            let outcome = Outcome { status: Some(500), cost: Some(9), ..Outcome::default() };
            engine.settle(&Settle::ticket(ticket, &outcome)).expect("there is room for markers");
        }
    }
    engine.store().for_each_block(|_, block| {
        assert_ne!(block.origin, Origin::Excess, "seed {seed}: blocked without a counter");
    });
}

fn judge(
    catalog: &Catalog,
    decision: &Decision,
    seen: &mut BTreeMap<(String, String), u32>,
    seed: u64,
) {
    let mut must_be_degraded = false;
    for row in decision.rows.iter().filter(|row| row.reason != Reason::Missing) {
        let (_, policy) = catalog.find(&row.policy).expect("a policy of the catalog");
        if !is_counted(policy) {
            continue;
        }
        must_be_degraded = true;
        let reason = row.reason;
        let is_expected = match policy.on_failure {
            OnFailure::Open => matches!(reason, Reason::Ok | Reason::Blocked | Reason::TooCostly),
            OnFailure::Closed => {
                matches!(reason, Reason::Unavailable | Reason::Blocked | Reason::TooCostly)
            }
            OnFailure::Local => reason != Reason::Unavailable,
        };
        assert!(is_expected, "seed {seed}: {:?} gave {row:?}", policy.on_failure);
        let key = (format!("{:?}", policy.on_failure), reason.to_string());
        *seen.entry(key).or_default() += 1;
    }
    assert_eq!(decision.degraded, must_be_degraded, "seed {seed}: {decision:?}");
}

fn is_counted(policy: &Policy) -> bool {
    let terms = policy.base.as_ref().or(policy.tiers.first().map(|tier| &tier.terms));
    terms.is_some_and(|terms| terms.limit != Limit::Unlimited)
}

/// The catalog with a random `on_failure` in every policy.
pub fn with_failure_modes(text: &str, rng: &mut Rng) -> String {
    let add = |line: &str, rng: &mut Rng| {
        let is_policy = line.starts_with("[policy.") && line.matches('.').count() == 1;
        let mode = ["open", "closed", "local"][(rng.next_u64() % 3) as usize];
        if is_policy { format!("{line}\non_failure = '{mode}'\n") } else { format!("{line}\n") }
    };
    text.lines().map(|line| add(line, rng)).collect()
}

/// Fills the memory for counters: first that of new keys, then the rest, which strikes use too.
pub fn fill(memory: &Memory, now: Time) {
    let mut numbers = 1..;
    for limit in long_limits() {
        let before = memory.stats().overflowed;
        while memory.stats().overflowed == before {
            let row = filler(key(numbers.next().expect("endless")), limit.clone());
            let batch = CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() };
            memory.apply(&Batch::Check(batch), When::At(now)).expect("memory never fails");
        }
    }
    while memory.stats().refused_counters == 0 {
        let number = numbers.next().expect("endless");
        memory.apply(&strike(number, now), When::At(now)).expect("memory never fails");
    }
}

fn long_limits() -> [Limit; 4] {
    [
        Limit::Bucket(BucketTerms { size: 1, tokens: 1, period: YEAR.micros() }),
        Limit::Window([WindowTerms { limit: 1, span: YEAR }].into_iter().collect()),
        Limit::Fixed(FixedTerms { limit: 1, span: YEAR, aligned: false }),
        Limit::Inflight(InflightTerms { limit: 1, hold: YEAR }),
    ]
}

/// A key with the distribution of a digest.
pub fn key(number: u64) -> Key {
    let mut rng = Rng::new(number);
    let whole = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    Key::from_bytes(whole.to_be_bytes())
}

fn filler(key: Key, limit: Limit) -> CheckRow {
    CheckRow { family: 1, lease: 1, ..CheckRow::new(key, limit) }
}

fn strike(number: u64, now: Time) -> Batch {
    let penalty = Penalty::without_escalation(YEAR);
    let proposal = BlockProposal::new(penalty, Origin::Ban, false, BlockNote::default());
    let ban = BanRow { rule: 0, after: Some(Rate { amount: 5, per: YEAR }), proposal };
    let row = SettleRow {
        family: 1,
        price: Price::Units(0),
        bans: [ban].into_iter().collect(),
        ..SettleRow::new(key(number), Limit::Unlimited, now)
    };
    let marker = key(number).with_kind(200);
    Batch::Settle(SettleBatch {
        marker,
        expires: now.after(YEAR),
        rows: vec![row],
        reference: None,
    })
}
