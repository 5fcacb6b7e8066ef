//! Selection: which policies apply to a check, with which terms and keys.
//!
//! It reads no state: the same request under the same catalog always selects the same rows.

use super::answer::Refusal;
use super::bucket::BucketTerms;
use super::catalog::{Algorithm, Catalog, Cost, Credit, Length, Mode, OnMissing, Policy, Tier};
use super::fixed::FixedTerms;
use super::ratio::Ratio;

/// The attributes of a caller.
pub type Subject = Vec<(String, String)>;

/// The attributes and values that identify one counter of a policy.
pub type Key = Vec<(String, String)>;

/// The arguments of a check or a peek.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRequest {
    /// A gate, or a policy as its own gate.
    pub gate: String,
    /// The caller's attributes.
    pub subject: Subject,
    /// The cost, if the caller gives one.
    pub cost: Option<i64>,
    /// The `ref`, by which a later credit finds this check.
    pub reference: Option<String>,
    /// Whether allowlist and blocklist apply.
    pub lists: bool,
}

/// One (policy, key) that applies to a request.
#[derive(Clone, Debug)]
pub struct SelectedRow<'a> {
    /// The terms that apply.
    pub terms: ActiveTerms<'a>,
    /// The tier they come from.
    pub tier: Option<usize>,
    /// The key; `None` when a key attribute is missing and the policy denies that.
    pub key: Option<Key>,
    /// The key of the counter: `key`, with the tier if that has a counter of its own.
    pub counter: Option<Key>,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// The requested gate, if it is part of the key.
    pub gate: Option<String>,
}

/// The terms of a policy for one subject.
#[derive(Clone, Debug)]
pub struct ActiveTerms<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The algorithm and its numbers.
    pub algorithm: &'a Algorithm,
    /// The block that exceeding the limit starts.
    pub block: Option<&'a Length>,
    /// The cost rule.
    pub cost: &'a Cost,
    /// The credits of late events.
    pub credits: &'a [Credit],
    /// Whether its rows are in shadow: they never deny.
    pub shadow: bool,
    /// The algorithms of all terms that share the counter; none if the tier has its own.
    pub sharing: Vec<&'a Algorithm>,
}

/// All rows of a request, one per (policy, key), in the order of their first occurrence.
pub fn select<'a>(
    catalog: &'a Catalog,
    request: &CheckRequest,
) -> Result<Vec<SelectedRow<'a>>, Refusal> {
    let (names, gate) = names(catalog, &request.gate)?;
    let mut selected: Vec<SelectedRow> = Vec::new();
    for name in names {
        let policy = catalog.policy(name).ok_or(Refusal::UnknownPolicy)?;
        for row in resolve(catalog, policy, &request.subject, gate)? {
            if !selected.iter().any(|other| same(other, &row)) {
                selected.push(row);
            }
        }
    }
    Ok(selected)
}

/// Refuses an unknown gate; this comes before the lists.
pub fn require_gate(catalog: &Catalog, gate: &str) -> Result<(), Refusal> {
    names(catalog, gate).map(|_| ())
}

/// The policies of a gate. For an unknown gate the default policy, whose key then includes the
/// gate's name.
fn names<'a>(
    catalog: &'a Catalog,
    gate: &'a str,
) -> Result<(Vec<&'a str>, Option<&'a str>), Refusal> {
    if let Some(found) = catalog.gates.iter().find(|known| known.name == gate) {
        return Ok((found.policies.iter().map(String::as_str).collect(), None));
    }
    if catalog.policy(gate).is_some() {
        return Ok((vec![gate], None));
    }
    let default = catalog.default.as_deref().ok_or(Refusal::UnknownGate)?;
    Ok((vec![default], Some(gate)))
}

/// The rows of one policy, or of its `otherwise` policy.
fn resolve<'a>(
    catalog: &'a Catalog,
    policy: &'a Policy,
    subject: &Subject,
    gate: Option<&str>,
) -> Result<Vec<SelectedRow<'a>>, Refusal> {
    if policy.mode == Mode::Off {
        return Ok(Vec::new());
    }
    let tier = tier(catalog, policy, subject);
    let keys = keys(policy, subject, gate);
    // A policy that only has limits in its tiers does not apply where no tier matches.
    let limited = tier.is_some() || !policy.limits_only_tiers();
    let row = |(attribute, key): (Option<String>, Option<Key>)| {
        let gate = gate.map(str::to_owned);
        let counter = key.as_ref().map(|key| counter(catalog, policy, tier, key));
        let terms =
            active_terms(policy, tier).with_sharing(catalog, key.as_ref(), counter.as_ref());
        SelectedRow { terms, tier, key, counter, attribute, gate }
    };
    if limited && !keys.is_empty() {
        return Ok(keys.into_iter().map(|(name, key)| row((name, Some(key)))).collect());
    }
    if let Some(other) = &policy.otherwise {
        let other = catalog.policy(other).ok_or(Refusal::UnknownPolicy)?;
        return resolve(catalog, other, subject, gate);
    }
    match policy.on_missing {
        OnMissing::Error => Err(Refusal::MissingAttribute),
        OnMissing::Skip => Ok(Vec::new()),
        OnMissing::Deny => Ok(vec![row((None, None))]),
    }
}

/// The keys of a policy for a subject, each with its attribute if the policy has `each`. Empty when
/// an attribute is missing.
pub fn keys(policy: &Policy, subject: &Subject, gate: Option<&str>) -> Vec<(Option<String>, Key)> {
    let prefix: Key = gate.map(|gate| ("gate".to_owned(), gate.to_owned())).into_iter().collect();
    let part = |name: &String| value(subject, name).map(|found| (name.clone(), found.to_owned()));
    let with = |parts: Key| prefix.iter().cloned().chain(parts).collect::<Key>();
    if policy.each.is_empty() {
        let parts: Option<Key> =
            policy.by.iter().map(|names| names.iter().find_map(part)).collect();
        return parts.map(|parts| (None, with(parts))).into_iter().collect();
    }
    let present = policy.each.iter().filter_map(part);
    present.map(|found| (Some(found.0.clone()), with(vec![found]))).collect()
}

/// The index of the first tier that matches.
pub fn tier(catalog: &Catalog, policy: &Policy, subject: &Subject) -> Option<usize> {
    let found = |name: &str| match catalog.source(name) {
        Some(about) => catalog.fact(about, value(subject, about)?, name),
        None => value(subject, name),
    };
    let is_met = |(name, values): &(String, Vec<String>)| {
        found(name).is_some_and(|value| values.contains(value))
    };
    let matches = |tier: &Tier| tier.when.iter().all(is_met);
    policy.tiers.iter().position(matches)
}

/// The key of the counter of a row: a tier that the key does not determine, or with windows of
/// another length, has a counter of its own, unless its limit is the policy's.
pub fn counter(catalog: &Catalog, policy: &Policy, tier: Option<usize>, key: &Key) -> Key {
    let Some(tier) = tier.map(|number| &policy.tiers[number]) else { return key.clone() };
    let is_in_key = |(name, _): &(String, Vec<String>)| {
        let about = catalog.source(name).unwrap_or(name);
        key.iter().any(|(part, _)| part == about)
    };
    let is_determined = tier.when.iter().all(is_in_key);
    let has_own_limit = tier.algorithm.as_ref().is_some_and(|own| !policy.same_limit(own));
    let is_apart = !is_determined || has_other_length(policy, tier);
    if is_apart && has_own_limit { tier_counter(key, tier) } else { key.clone() }
}

/// Whether the windows of a tier last longer or shorter than those of the policy, or than those
/// of any other tier if the policy has no limit; or whether their limits differ, if denials count.
fn has_other_length(policy: &Policy, tier: &Tier) -> bool {
    // Denials that count drop the units above the limit, but in sliding windows only.
    let terms = |algorithm: &Algorithm| match algorithm {
        Algorithm::Fixed { span, .. } => vec![(0, *span)],
        Algorithm::Window(windows) if policy.count_denied => windows.clone(),
        Algorithm::Window(windows) => windows.iter().map(|window| (0, window.1)).collect(),
        _ => Vec::new(),
    };
    let Some(own) = tier.algorithm.as_ref().map(terms) else { return false };
    if policy.terms.algorithm != Algorithm::None {
        return terms(&policy.terms.algorithm) != own;
    }
    policy.tiers.iter().filter_map(|tier| tier.algorithm.as_ref()).any(|other| terms(other) != own)
}

/// The key of the counter that a tier has of its own.
pub fn tier_counter(key: &Key, tier: &Tier) -> Key {
    // No attribute has this name.
    let part = ("tier of".to_owned(), format!("{:?}", tier.when));
    key.iter().cloned().chain([part]).collect()
}

/// The terms of a policy with the changes of a tier, if any.
pub fn active_terms(policy: &Policy, tier: Option<usize>) -> ActiveTerms<'_> {
    let tier = tier.and_then(|number| policy.tiers.get(number));
    let base = &policy.terms;
    ActiveTerms {
        policy,
        algorithm: tier.and_then(|tier| tier.algorithm.as_ref()).unwrap_or(&base.algorithm),
        block: tier.and_then(|tier| tier.block.as_ref()).or(base.block.as_ref()),
        cost: tier.and_then(|tier| tier.cost.as_ref()).unwrap_or(&base.cost),
        credits: tier.and_then(|tier| tier.credits.as_deref()).unwrap_or(&base.credits),
        shadow: policy.mode != Mode::Enforce,
        sharing: Vec::new(),
    }
}

/// The value of an attribute.
pub fn value<'a>(subject: &'a Subject, name: &str) -> Option<&'a String> {
    subject.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn same(a: &SelectedRow, b: &SelectedRow) -> bool {
    a.terms.policy.name == b.terms.policy.name && a.key == b.key
}

impl<'a> ActiveTerms<'a> {
    /// The terms with all others that share the counter, if that is the counter of the key.
    pub fn with_sharing(
        mut self,
        catalog: &Catalog,
        key: Option<&Key>,
        charged: Option<&Key>,
    ) -> ActiveTerms<'a> {
        let Some(key) = key.filter(|key| Some(*key) == charged) else { return self };
        let policy = self.policy;
        self.sharing.push(&policy.terms.algorithm);
        for (number, tier) in policy.tiers.iter().enumerate() {
            if counter(catalog, policy, Some(number), key) == *key {
                self.sharing.extend(&tier.algorithm);
            }
        }
        self
    }

    /// The buckets of all terms that share the counter.
    pub fn kept_buckets(&self) -> Vec<BucketTerms> {
        let bucket = |algorithm: &&Algorithm| match **algorithm {
            Algorithm::Bucket { size, count, period } => Some(self.bucket(size, count, period)),
            _ => None,
        };
        self.sharing.iter().filter_map(bucket).collect()
    }

    /// Units held at check: one for a lease, none where the policy counts nothing.
    pub fn held_units(&self, requested: Option<i64>) -> i64 {
        match (self.algorithm, self.cost) {
            (Algorithm::None, _) => 0,
            (Algorithm::Inflight(_), _) => 1,
            (_, Cost::Always(units)) => *units,
            (_, Cost::Asked) => requested.unwrap_or(1),
            (_, Cost::Table(_) | Cost::Reported) => requested.unwrap_or(self.policy.reserve),
        }
    }

    /// The terms of a bucket; the margin scales its size.
    pub fn bucket(&self, size: i64, count: i64, period: i64) -> BucketTerms {
        let size = self.policy.margin.map_or(size, |margin| (size * margin / 100).max(1));
        BucketTerms { size, rate: Ratio::new(i128::from(count), i128::from(period)) }
    }

    /// The lowest balance that debt may reach; only buckets have one.
    pub fn floor(&self) -> i64 {
        match *self.algorithm {
            Algorithm::Bucket { size, count, period } => self.bucket(size, count, period).floor(),
            _ => i64::MIN,
        }
    }

    /// The terms of a fixed window.
    pub fn fixed_terms(&self, limit: i64, span: i64, aligned: bool) -> FixedTerms {
        FixedTerms { limit, span, aligned }
    }
}
