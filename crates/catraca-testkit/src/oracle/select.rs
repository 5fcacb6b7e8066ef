//! From a question to lines: which policies judge it, under which terms, for which key.
//!
//! It must not look at any state: the same question under the same catalog always selects the same
//! lines.

use super::answer::Refusal;
use super::bucket::BucketTerms;
use super::catalog::{Algorithm, Catalog, Cost, Credit, Length, Mode, OnMissing, Policy, Tier};
use super::fixed::FixedTerms;
use super::ratio::Ratio;

/// Attributes known of a caller.
pub type Subject = Vec<(String, String)>;

/// The attributes and values one count belongs to.
pub type Key = Vec<(String, String)>;

/// What a check or a peek asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// A gate, or a policy as its own gate.
    pub gate: String,
    /// Who asks.
    pub subject: Subject,
    /// What it costs, if the caller says.
    pub cost: Option<i64>,
    /// Name under which a credit may come later.
    pub reference: Option<String>,
    /// Whether the lists are looked at.
    pub lists: bool,
}

/// One (policy, key) that judges a question.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The terms it judges by.
    pub terms: InForce<'a>,
    /// The tier they come from.
    pub tier: Option<usize>,
    /// Who is counted; `None` when a key attribute is missing and the policy denies that.
    pub key: Option<Key>,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// The gate asked for, when it is part of the key.
    pub gate: Option<String>,
}

/// The terms of a policy for one subject.
#[derive(Clone, Copy, Debug)]
pub struct InForce<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// How it counts.
    pub algorithm: &'a Algorithm,
    /// What an excess starts.
    pub block: Option<&'a Length>,
    /// The price.
    pub cost: &'a Cost,
    /// What late events give back.
    pub credits: &'a [Credit],
    /// Whether its rows keep their verdict to themselves.
    pub shadow: bool,
}

/// All lines of a question, one per (policy, key), each at its first place.
pub fn select<'a>(catalog: &'a Catalog, ask: &Ask) -> Result<Vec<Line<'a>>, Refusal> {
    let (names, gate) = names(catalog, &ask.gate)?;
    let mut lines: Vec<Line> = Vec::new();
    for name in names {
        let policy = catalog.policy(name).ok_or(Refusal::UnknownPolicy)?;
        for line in resolve(catalog, policy, &ask.subject, gate)? {
            if !lines.iter().any(|other| same(other, &line)) {
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

/// Refuses a gate that leads to no policy, before anything else is asked.
pub fn known(catalog: &Catalog, gate: &str) -> Result<(), Refusal> {
    names(catalog, gate).map(|_| ())
}

/// The policies of a gate; for an unknown gate the default, which then is keyed by the gate as
/// well.
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

/// The lines of one policy, or of the one that stands in for it.
fn resolve<'a>(
    catalog: &'a Catalog,
    policy: &'a Policy,
    subject: &Subject,
    gate: Option<&str>,
) -> Result<Vec<Line<'a>>, Refusal> {
    if policy.mode == Mode::Off {
        return Ok(Vec::new());
    }
    let tier = tier(policy, subject);
    let keys = keys(policy, subject, gate);
    let limited =
        policy.tiers.is_empty() || tier.is_some() || policy.terms.algorithm != Algorithm::None;
    let line = |(attribute, key): (Option<String>, Option<Key>)| {
        let gate = gate.map(str::to_owned);
        Line { terms: in_force(policy, tier), tier, key, attribute, gate }
    };
    if limited && !keys.is_empty() {
        return Ok(keys.into_iter().map(|(name, key)| line((name, Some(key)))).collect());
    }
    if let Some(other) = &policy.otherwise {
        let other = catalog.policy(other).ok_or(Refusal::UnknownPolicy)?;
        return resolve(catalog, other, subject, gate);
    }
    match policy.on_missing {
        OnMissing::Error => Err(Refusal::MissingAttribute),
        OnMissing::Skip => Ok(Vec::new()),
        OnMissing::Deny => Ok(vec![line((None, None))]),
    }
}

/// Keys of a policy for a subject, each with its attribute under `each`; none when an attribute is
/// missing.
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

/// Number of the first tier that matches.
pub fn tier(policy: &Policy, subject: &Subject) -> Option<usize> {
    let matches = |tier: &Tier| value(subject, &tier.attribute) == Some(&tier.value);
    policy.tiers.iter().position(matches)
}

/// The terms of a policy in a tier; those of the policy itself if there is no such tier.
pub fn in_force(policy: &Policy, tier: Option<usize>) -> InForce<'_> {
    let tier = tier.and_then(|number| policy.tiers.get(number));
    let base = &policy.terms;
    InForce {
        policy,
        algorithm: tier.and_then(|tier| tier.algorithm.as_ref()).unwrap_or(&base.algorithm),
        block: tier.and_then(|tier| tier.block.as_ref()).or(base.block.as_ref()),
        cost: tier.and_then(|tier| tier.cost.as_ref()).unwrap_or(&base.cost),
        credits: tier.and_then(|tier| tier.credits.as_deref()).unwrap_or(&base.credits),
        shadow: policy.mode != Mode::Enforce,
    }
}

/// The value of an attribute.
pub fn value<'a>(subject: &'a Subject, name: &str) -> Option<&'a String> {
    subject.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn same(a: &Line, b: &Line) -> bool {
    a.terms.policy.name == b.terms.policy.name && a.key == b.key
}

impl InForce<'_> {
    /// Units held at check: a lease is one, and where nothing is counted nothing is held.
    pub fn held(&self, asked: Option<i64>) -> i64 {
        match (self.algorithm, self.cost) {
            (Algorithm::None, _) => 0,
            (Algorithm::Inflight(_), _) => 1,
            (_, Cost::Always(units)) => *units,
            (_, Cost::Asked) => asked.unwrap_or(1),
            (_, Cost::Table(_) | Cost::Reported) => asked.unwrap_or(self.policy.reserve),
        }
    }

    /// The terms of a bucket; the margin scales its size.
    pub fn bucket(&self, size: i64, count: i64, period: i64) -> BucketTerms {
        let size = self.policy.margin.map_or(size, |margin| (size * margin / 100).max(1));
        BucketTerms { size, rate: Ratio::new(i128::from(count), i128::from(period)) }
    }

    /// The lowest figure a debt may reach: where the arithmetic of a bucket ends, and nowhere for
    /// other counts.
    pub fn floor(&self) -> i64 {
        match *self.algorithm {
            Algorithm::Bucket { size, count, period } => self.bucket(size, count, period).floor(),
            _ => i64::MIN,
        }
    }

    /// The terms of a fixed window.
    pub fn fixed(&self, limit: i64, span: i64, aligned: bool) -> FixedTerms {
        FixedTerms { limit, span, aligned }
    }
}
