//! One random policy: every word of the catalog, in all combinations that make sense.
//!
//! It must only make policies a catalog accepts: what is refused is tested elsewhere.

use super::dice::Dice;
use super::outcome::{REJECTS, STATUSES};
use crate::oracle::Micros;
use crate::oracle::catalog::{
    Algorithm, Ban, Cost, Credit, HOLD, Length, Mode, OnMissing, Policy, Price, REMEMBER, Tier,
    Watch,
};
use crate::oracle::outcome::Condition;

const MS: Micros = 1_000;
const S: Micros = 1_000_000;
const MIN: Micros = 60 * S;
const HOUR: Micros = 60 * MIN;
const DAY: Micros = 24 * HOUR;

/// Products above this are not exact in every store.
const EXACT: i64 = 1 << 53;

/// Most units an exact window keeps per key.
const UNITS: i64 = 10_000;

/// Events that credits are given for.
pub const EVENTS: [&str; 2] = ["payment", "refund"];

/// A random policy of that name.
pub fn policy(dice: &mut Dice, name: &str) -> Policy {
    let mut policy = Policy::new(name, algorithm(dice));
    key(dice, &mut policy);
    amounts(dice, &mut policy);
    punishments(dice, &mut policy);
    policy.mode = mode(dice);
    policy.on_missing = dice.pick(&[OnMissing::Error, OnMissing::Skip, OnMissing::Deny]);
    if dice.chance(30) && policy.terms.algorithm != Algorithm::None {
        policy.tiers = (0..dice.within(1, 2)).map(|number| tier(dice, &policy, number)).collect();
    }
    tame(&mut policy);
    policy
}

/// Lowers every price to what can be counted exactly under all terms of the policy; much lower
/// where debts add up.
pub fn tame(policy: &mut Policy) {
    let tiers = policy.tiers.iter().filter_map(|tier| tier.algorithm.as_ref());
    let exact = tiers.chain([&policy.terms.algorithm]).map(countable).min().unwrap_or(EXACT);
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

/// The largest cost whose product with the refill's period, reduced, is exact.
fn countable(algorithm: &Algorithm) -> i64 {
    let Algorithm::Bucket { count, period, .. } = *algorithm else { return EXACT };
    let (mut a, mut b) = (count, period);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    EXACT / (period / a)
}

/// Enforce mostly, shadow often enough, off now and then.
pub fn mode(dice: &mut Dice) -> Mode {
    match dice.within(1, 100) {
        1..=78 => Mode::Enforce,
        79..=97 => Mode::Shadow,
        _ => Mode::Off,
    }
}

/// How it counts.
fn algorithm(dice: &mut Dice) -> Algorithm {
    match dice.within(1, 100) {
        1..=42 => bucket(dice),
        43..=64 => Algorithm::Window(windows(dice)),
        65..=82 => Algorithm::Fixed {
            limit: dice.within(1, 5),
            span: span(dice),
            aligned: dice.chance(30),
        },
        83..=91 => Algorithm::Inflight(dice.within(1, 3)),
        _ => Algorithm::None,
    }
}

/// Mostly tiny; sometimes as large, as slow or as fast as anything in use, or at the bounds of the
/// arithmetic.
fn bucket(dice: &mut Dice) -> Algorithm {
    let (size, count, period) = match dice.within(1, 100) {
        1..=70 => (dice.within(1, 6), dice.within(1, 4), span(dice)),
        71..=76 => (200, 40, DAY),
        77..=82 => (50_000, 25_000, MIN),
        83..=88 => (1_000_000, dice.within(1, 1_000_000), HOUR),
        89..=94 => (104_249, 7, DAY),
        _ => (dice.within(1, 3), 999_983, DAY),
    };
    Algorithm::Bucket { size, count, period }
}

fn windows(dice: &mut Dice) -> Vec<(i64, Micros)> {
    match dice.within(1, 100) {
        1..=60 => vec![(dice.within(1, 5), span(dice))],
        61..=85 => vec![(dice.within(2, 8), MIN), (dice.within(1, 4), S)],
        86..=95 => vec![(dice.within(1, 3), S), (dice.within(2, 5), 10 * S), (6, MIN)],
        _ => vec![(UNITS, dice.pick(&[S, DAY]))],
    }
}

fn span(dice: &mut Dice) -> Micros {
    dice.pick(&[MS, 7 * MS, 100 * MS, S, S, 10 * S, MIN, HOUR, DAY])
}

/// The largest cost that could ever pass, or 1 where there is none.
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
    tiers.chain([&policy.terms.algorithm]).map(of).min().unwrap_or(1)
}

fn key(dice: &mut Dice, policy: &mut Policy) {
    let part = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    if dice.chance(10) {
        policy.by = Vec::new();
        policy.each = part(&["user", "org"]);
        return;
    }
    policy.by = match dice.within(1, 10) {
        1..=5 => vec![part(&["ip"])],
        6..=7 => vec![part(&["user"])],
        8 => vec![part(&["user", "ip"])],
        _ => vec![part(&["ip"]), part(&["org", "user"])],
    };
}

fn amounts(dice: &mut Dice, policy: &mut Policy) {
    policy.hold = dice.pick(&[HOLD, HOLD, 500 * MS, 5 * S]);
    policy.remember = dice.pick(&[REMEMBER, REMEMBER, 2 * S, 2 * MIN]);
    let bucket = matches!(policy.terms.algorithm, Algorithm::Bucket { .. });
    if bucket && dice.chance(15) {
        policy.margin = Some(dice.pick(&[1, 50, 90]));
    }
    if matches!(policy.terms.algorithm, Algorithm::None | Algorithm::Inflight(_)) {
        return;
    }
    policy.terms.cost = cost(dice, capacity(policy));
    if matches!(policy.terms.cost, Cost::Table(_) | Cost::Reported) {
        policy.reserve = dice.within(0, 3).min(capacity(policy));
        policy.debt = bucket && dice.chance(40);
    }
    policy.count_denied = !bucket && dice.chance(25);
    if bucket && dice.chance(60) {
        policy.terms.credits = credits(dice);
    }
}

/// A price list, an integer, or whatever the caller says.
pub fn cost(dice: &mut Dice, capacity: i64) -> Cost {
    match dice.within(1, 100) {
        1..=40 => Cost::Asked,
        41..=50 => Cost::Always(dice.within(1, 2).min(capacity)),
        51..=85 => Cost::Table(prices(dice, capacity)),
        _ => Cost::Reported,
    }
}

fn prices(dice: &mut Dice, capacity: i64) -> Vec<(String, Price)> {
    let mut table = Vec::new();
    for key in ["200", "404", "4xx", "429", "5xx", "none", "default"] {
        if dice.chance(55) {
            let units = dice.pick(&[0, 1, 1, 2, 3, capacity, capacity + 3]);
            let drain = key == "429" && dice.chance(60);
            table.push((key.to_owned(), if drain { Price::Drain } else { Price::Units(units) }));
        }
    }
    if table.is_empty() { vec![("200".to_owned(), Price::Units(2))] } else { table }
}

fn credits(dice: &mut Dice) -> Vec<Credit> {
    let credit = |dice: &mut Dice, event: &str| Credit {
        event: event.to_owned(),
        amount: dice.within(1, 3),
        on: if dice.chance(50) { vec![200] } else { vec![200, 404] },
    };
    let count = if dice.chance(70) { 1 } else { 2 };
    EVENTS[..count].iter().map(|event| credit(dice, event)).collect()
}

fn punishments(dice: &mut Dice, policy: &mut Policy) {
    let limited = !matches!(policy.terms.algorithm, Algorithm::None | Algorithm::Inflight(_));
    if limited && dice.chance(40) {
        policy.terms.block = Some(length(dice));
    }
    let ban_only = policy.terms.algorithm == Algorithm::None;
    if ban_only || dice.chance(25) {
        policy.bans = (0..dice.within(1, 2)).map(|_| ban(dice)).collect();
    }
    policy.watch = dice.maybe(12, watch);
}

/// A fixed length, or one that escalates.
pub fn length(dice: &mut Dice) -> Length {
    if dice.chance(60) {
        return Length::Fixed(dice.pick(&[MS, 500 * MS, S, 2 * S, 10 * S, MIN, HOUR]));
    }
    let first = dice.pick(&[100 * MS, S, 10 * S]);
    Length::Escalating {
        first,
        factor: dice.within(1, 3),
        max: first * dice.within(1, 12),
        forget: dice.pick(&[S, MIN]),
    }
}

fn ban(dice: &mut Dice) -> Ban {
    let when = match dice.within(0, 3) {
        0 => Condition::Status(dice.pick(&STATUSES)),
        1 => Condition::Reject(dice.pick(&REJECTS)),
        2 => Condition::TruncatedOr(dice.pick(&REJECTS)),
        _ => Condition::Both(dice.pick(&STATUSES), dice.pick(&REJECTS)),
    };
    let after = dice.maybe(50, |dice| (dice.within(1, 3), dice.pick(&[S, 10 * S, MIN])));
    Ban { when, length: length(dice), reason: "rule".to_owned(), after }
}

fn watch(dice: &mut Dice) -> Watch {
    Watch {
        share: vec![404],
        of: if dice.chance(70) { vec![200, 404] } else { vec![200, 404, 500] },
        above: dice.pick(&[1, 20, 50, 75]),
        min: dice.within(1, 5),
        per: dice.pick(&[S * 24, MIN, DAY]),
        length: length(dice),
    }
}

/// Other numbers for a plan; the same algorithm, and as many windows.
fn tier(dice: &mut Dice, policy: &Policy, number: i64) -> Tier {
    let numbers = dice.chance(80);
    let priced = matches!(policy.terms.cost, Cost::Table(_));
    let capacity = capacity(policy);
    Tier {
        attribute: "plan".to_owned(),
        value: ["pro", "free"][number as usize].to_owned(),
        algorithm: if numbers { Some(other(dice, &policy.terms.algorithm)) } else { None },
        block: policy.terms.block.is_some().then(|| length(dice)).filter(|_| dice.chance(30)),
        cost: (priced && dice.chance(30)).then(|| Cost::Table(prices(dice, capacity))),
        credits: (!policy.terms.credits.is_empty() && dice.chance(30)).then(|| credits(dice)),
    }
}

/// The same algorithm with other numbers.
pub fn other(dice: &mut Dice, algorithm: &Algorithm) -> Algorithm {
    match algorithm {
        Algorithm::None => Algorithm::None,
        Algorithm::Bucket { .. } => bucket(dice),
        Algorithm::Window(windows) => {
            let mut changed: Vec<(i64, Micros)> = Vec::new();
            for &window in windows {
                let (limit, span) = other_window(dice, window);
                // Two windows of one span are refused.
                let taken = changed.iter().any(|other| other.1 == span);
                let taken = taken || windows.iter().any(|other| other.1 == span);
                changed.push(if taken { (limit, window.1) } else { (limit, span) });
            }
            Algorithm::Window(changed)
        }
        Algorithm::Fixed { limit, span, aligned } => {
            let (limit, span) = other_window(dice, (*limit, *span));
            Algorithm::Fixed { limit, span, aligned: *aligned }
        }
        Algorithm::Inflight(limit) => Algorithm::Inflight((limit + dice.within(-1, 2)).max(1)),
    }
}

/// Another limit, and sometimes another span.
fn other_window(dice: &mut Dice, (limit, length): (i64, Micros)) -> (i64, Micros) {
    let length = if dice.chance(40) { span(dice) } else { length };
    ((limit + dice.within(-1, 3)).clamp(1, UNITS), length)
}
