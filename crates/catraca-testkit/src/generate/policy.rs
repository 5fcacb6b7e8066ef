//! A random policy, with any valid combination of the catalog's fields. Invalid catalogs have their
//! own tests.

use super::outcome::{REJECTS, STATUSES};
use super::rng::Rng;
use crate::oracle::Micros;
use crate::oracle::catalog::{
    Algorithm, Ban, Cost, Credit, Length, Mode, OnMissing, Policy, Price, REMEMBER, Tier, Watch,
    When, default_hold,
};
use crate::oracle::outcome::Condition;

const MS: Micros = 1_000;
const S: Micros = 1_000_000;
const MIN: Micros = 60 * S;
const HOUR: Micros = 60 * MIN;
const DAY: Micros = 24 * HOUR;

/// Integers above this are not exact in every store.
const EXACT: i64 = 1 << 53;

/// The maximum limit of a sliding window.
const UNITS: i64 = 10_000;

/// The events that give credits.
pub const EVENTS: [&str; 2] = ["payment", "refund"];

/// A random policy with this name.
pub fn policy(rng: &mut Rng, name: &str) -> Policy {
    let mut policy = Policy::new(name, algorithm(rng));
    key(rng, &mut policy);
    amounts(rng, &mut policy);
    penalties(rng, &mut policy);
    policy.mode = mode(rng);
    policy.on_missing = rng.pick(&[OnMissing::Error, OnMissing::Skip, OnMissing::Deny]);
    if rng.chance(30) && policy.terms.algorithm != Algorithm::None {
        policy.tiers = (0..rng.within(1, 2)).map(|number| tier(rng, &policy, number)).collect();
        if rng.chance(15) {
            leave_limits_to_tiers(rng, &mut policy);
        }
    }
    limit_prices(&mut policy);
    policy
}

/// Lowers every price to what stores compute exactly under all terms of the policy, and to a
/// thousandth of it with debt, because debts add up.
pub fn limit_prices(policy: &mut Policy) {
    let tiers = policy.tiers.iter().filter_map(|tier| tier.algorithm.as_ref());
    let exact = tiers.chain([&policy.terms.algorithm]).map(exact_cost).min().unwrap_or(EXACT);
    let most = if policy.debt { (exact / 1000).max(1) } else { exact };
    let costs = policy.tiers.iter_mut().filter_map(|tier| tier.cost.as_mut());
    for cost in costs.chain([&mut policy.terms.cost]) {
        if let Cost::Table(prices) = cost {
            prices.iter_mut().for_each(|(_, price)| *price = lower(*price, most));
        }
    }
}

fn lower(price: Price, most: i64) -> Price {
    match price {
        Price::Units(units) => Price::Units(units.min(most)),
        Price::Drain => Price::Drain,
    }
}

/// The largest cost whose product with the reduced refill period is exact.
fn exact_cost(algorithm: &Algorithm) -> i64 {
    let Algorithm::Bucket { count, period, .. } = *algorithm else { return EXACT };
    // Euclid's algorithm: `a` becomes the greatest common divisor.
    let mut a = count;
    let mut b = period;
    while b != 0 {
        (a, b) = (b, a % b);
    }
    EXACT / (period / a)
}

/// Mostly enforce, often shadow, rarely off.
pub fn mode(rng: &mut Rng) -> Mode {
    match rng.within(1, 100) {
        1..=78 => Mode::Enforce,
        79..=97 => Mode::Shadow,
        _ => Mode::Off,
    }
}

fn algorithm(rng: &mut Rng) -> Algorithm {
    match rng.within(1, 100) {
        1..=42 => bucket(rng),
        43..=64 => Algorithm::Window(windows(rng)),
        65..=82 => {
            Algorithm::Fixed { limit: rng.within(1, 5), span: span(rng), aligned: rng.chance(30) }
        }
        83..=91 => Algorithm::Inflight(rng.within(1, 3)),
        _ => Algorithm::None,
    }
}

/// Mostly tiny; sometimes as large, slow or fast as buckets in production, or at the limits of the
/// exact arithmetic.
fn bucket(rng: &mut Rng) -> Algorithm {
    let (size, count, period) = match rng.within(1, 100) {
        1..=70 => (rng.within(1, 6), rng.within(1, 4), span(rng)),
        71..=76 => (200, 40, DAY),
        77..=82 => (50_000, 25_000, MIN),
        83..=88 => (1_000_000, rng.within(1, 1_000_000), HOUR),
        // The largest size whose product with a day in microseconds is below 2^53.
        89..=94 => (104_249, 7, DAY),
        // A prime, so that the fraction of tokens and period cannot be reduced.
        _ => (rng.within(1, 3), 999_983, DAY),
    };
    Algorithm::Bucket { size, count, period }
}

fn windows(rng: &mut Rng) -> Vec<(i64, Micros)> {
    match rng.within(1, 100) {
        1..=60 => vec![(rng.within(1, 5), span(rng))],
        61..=85 => vec![(rng.within(2, 8), MIN), (rng.within(1, 4), S)],
        86..=95 => vec![(rng.within(1, 3), S), (rng.within(2, 5), 10 * S), (6, MIN)],
        _ => vec![(UNITS, rng.pick(&[S, DAY]))],
    }
}

fn span(rng: &mut Rng) -> Micros {
    rng.pick(&[MS, 7 * MS, 100 * MS, S, S, 10 * S, MIN, HOUR, DAY])
}

/// The largest cost that can pass in every tier; 1 where costs do not count.
pub fn capacity(policy: &Policy) -> i64 {
    let of = |algorithm: &Algorithm| match algorithm {
        Algorithm::Bucket { size, .. } => {
            policy.margin.map_or(*size, |margin| (size * margin / 100).max(1))
        }
        Algorithm::Window(windows) => windows.iter().map(|window| window.0).min().unwrap_or(1),
        Algorithm::Fixed { limit, .. } => *limit,
        Algorithm::Inflight(_) | Algorithm::None => 1,
    };
    let tiers = policy.tiers.iter().filter_map(|tier| tier.algorithm.as_ref());
    let base = [&policy.terms.algorithm].into_iter().filter(|_| !policy.limits_only_tiers());
    tiers.chain(base).map(of).min().unwrap_or(1)
}

fn key(rng: &mut Rng, policy: &mut Policy) {
    let part = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    if rng.chance(10) {
        policy.by = Vec::new();
        policy.each = part(&["user", "org"]);
        return;
    }
    policy.by = match rng.within(1, 10) {
        1..=4 => vec![part(&["ip"])],
        5..=7 => vec![part(&["user"])],
        8 => vec![part(&["user", "ip"])],
        _ => vec![part(&["ip"]), part(&["org", "user"])],
    };
}

fn amounts(rng: &mut Rng, policy: &mut Policy) {
    let default = default_hold(&policy.terms.algorithm);
    policy.hold = rng.pick(&[default, default, 500 * MS, 5 * S]);
    policy.remember = rng.pick(&[REMEMBER, REMEMBER, 2 * S, 2 * MIN]);
    let bucket = matches!(policy.terms.algorithm, Algorithm::Bucket { .. });
    if bucket && rng.chance(15) {
        policy.margin = Some(rng.pick(&[1, 50, 90]));
    }
    if matches!(policy.terms.algorithm, Algorithm::None | Algorithm::Inflight(_)) {
        return;
    }
    policy.terms.cost = cost(rng, capacity(policy));
    if matches!(policy.terms.cost, Cost::Table(_) | Cost::Reported) {
        policy.reserve = rng.within(0, 3).min(capacity(policy));
        policy.debt = bucket && rng.chance(40);
    }
    policy.count_denied = !bucket && rng.chance(25);
    if bucket && rng.chance(60) {
        policy.terms.credits = credits(rng);
    }
}

/// A random cost rule.
pub fn cost(rng: &mut Rng, capacity: i64) -> Cost {
    match rng.within(1, 100) {
        1..=40 => Cost::Asked,
        41..=50 => Cost::Always(rng.within(1, 2).min(capacity)),
        51..=85 => Cost::Table(prices(rng, capacity)),
        _ => Cost::Reported,
    }
}

fn prices(rng: &mut Rng, capacity: i64) -> Vec<(String, Price)> {
    let mut table = Vec::new();
    for key in ["200", "404", "4xx", "429", "5xx", "none", "default"] {
        if rng.chance(55) {
            let units = rng.pick(&[0, 1, 1, 2, 3, capacity, capacity + 3]);
            let drain = key == "429" && rng.chance(60);
            table.push((key.to_owned(), if drain { Price::Drain } else { Price::Units(units) }));
        }
    }
    if table.is_empty() { vec![("200".to_owned(), Price::Units(2))] } else { table }
}

fn credits(rng: &mut Rng) -> Vec<Credit> {
    let credit = |rng: &mut Rng, event: &str| Credit {
        event: event.to_owned(),
        amount: rng.within(1, 3),
        on: if rng.chance(50) { vec![200] } else { vec![200, 404] },
    };
    let count = if rng.chance(70) { 1 } else { 2 };
    EVENTS[..count].iter().map(|event| credit(rng, event)).collect()
}

fn penalties(rng: &mut Rng, policy: &mut Policy) {
    let limited = !matches!(policy.terms.algorithm, Algorithm::None | Algorithm::Inflight(_));
    if limited && rng.chance(40) {
        policy.terms.block = Some(length(rng));
    }
    let ban_only = policy.terms.algorithm == Algorithm::None;
    if ban_only || rng.chance(25) {
        policy.bans = (0..rng.within(1, 2)).map(|_| ban(rng)).collect();
    }
    policy.watch = rng.maybe(12, watch);
}

/// A fixed length, or one that escalates.
pub fn length(rng: &mut Rng) -> Length {
    if rng.chance(60) {
        return Length::Fixed(rng.pick(&[MS, 500 * MS, S, 2 * S, 10 * S, MIN, HOUR]));
    }
    let first = rng.pick(&[100 * MS, S, 10 * S]);
    Length::Escalating {
        first,
        factor: rng.within(1, 3),
        max: first * rng.within(1, 12),
        forget: rng.pick(&[S, MIN]),
    }
}

fn ban(rng: &mut Rng) -> Ban {
    let when = match rng.within(0, 3) {
        0 => Condition::Status(rng.pick(&STATUSES)),
        1 => Condition::Reject(rng.pick(&REJECTS)),
        2 => Condition::TruncatedOr(rng.pick(&REJECTS)),
        _ => Condition::Both(rng.pick(&STATUSES), rng.pick(&REJECTS)),
    };
    let after = rng.maybe(50, |rng| (rng.within(1, 3), rng.pick(&[S, 10 * S, MIN])));
    Ban { when, length: length(rng), reason: "rule".to_owned(), after }
}

fn watch(rng: &mut Rng) -> Watch {
    Watch {
        share: vec![404],
        of: if rng.chance(70) { vec![200, 404] } else { vec![200, 404, 500] },
        above: rng.pick(&[1, 20, 50, 75]),
        min: rng.within(1, 5),
        per: rng.pick(&[S * 24, MIN, DAY]),
        length: length(rng),
    }
}

/// The values of the fact `grade`.
pub const GRADES: [&str; 2] = ["gold", "iron"];

/// Other numbers for some callers, sometimes another number of windows; the same algorithm. The key
/// of no policy determines a plan; that of some policies determines user and grade.
fn tier(rng: &mut Rng, policy: &Policy, number: i64) -> Tier {
    let numbers = rng.chance(80);
    let priced = matches!(policy.terms.cost, Cost::Table(_));
    let capacity = capacity(policy);
    Tier {
        when: when(rng, number as usize),
        algorithm: if numbers { Some(other(rng, &policy.terms.algorithm)) } else { None },
        block: policy.terms.block.is_some().then(|| length(rng)).filter(|_| rng.chance(30)),
        cost: (priced && rng.chance(30)).then(|| Cost::Table(prices(rng, capacity))),
        credits: (!policy.terms.credits.is_empty() && rng.chance(30)).then(|| credits(rng)),
    }
}

/// The condition of a tier: mostly one value of one name, sometimes several, or two names.
fn when(rng: &mut Rng, number: usize) -> When {
    let grade = ("grade", GRADES);
    let all = [("plan", ["pro", "free"]), ("user", ["a", "b"]), grade, grade];
    let (name, values) = rng.pick(&all);
    let one = |value: &str| vec![value.to_owned()];
    let mut when: When = vec![(name.to_owned(), one(values[number]))];
    if rng.chance(15) {
        when[0].1 = values.map(str::to_owned).to_vec();
        when[0].1.sort();
    }
    if rng.chance(25) {
        let (other, values) = rng.pick(&all);
        if other != name {
            when.push((other.to_owned(), one(rng.pick(&values))));
            when.sort();
        }
    }
    when
}

/// Gives every tier a limit, and the policy none.
fn leave_limits_to_tiers(rng: &mut Rng, policy: &mut Policy) {
    let base = std::mem::replace(&mut policy.terms.algorithm, Algorithm::None);
    for tier in &mut policy.tiers {
        tier.algorithm.get_or_insert_with(|| other(rng, &base));
    }
}

/// The same algorithm with other numbers.
pub fn other(rng: &mut Rng, algorithm: &Algorithm) -> Algorithm {
    match algorithm {
        Algorithm::None => Algorithm::None,
        Algorithm::Bucket { .. } => bucket(rng),
        Algorithm::Window(_) if rng.chance(25) => Algorithm::Window(windows(rng)),
        Algorithm::Window(windows) => {
            let mut changed: Vec<(i64, Micros)> = Vec::new();
            for &window in windows {
                let (limit, span) = other_window(rng, window.0, window.1);
                // The catalog refuses two windows of the same span.
                let taken = changed.iter().any(|other| other.1 == span);
                let taken = taken || windows.iter().any(|other| other.1 == span);
                changed.push(if taken { (limit, window.1) } else { (limit, span) });
            }
            Algorithm::Window(changed)
        }
        Algorithm::Fixed { limit, span, aligned } => {
            let (limit, span) = other_window(rng, *limit, *span);
            Algorithm::Fixed { limit, span, aligned: *aligned }
        }
        Algorithm::Inflight(limit) => Algorithm::Inflight((limit + rng.within(-1, 2)).max(1)),
    }
}

/// Another limit, and sometimes another span.
fn other_window(rng: &mut Rng, limit: i64, length: Micros) -> (i64, Micros) {
    let length = if rng.chance(40) { span(rng) } else { length };
    ((limit + rng.within(-1, 3)).clamp(1, UNITS), length)
}
