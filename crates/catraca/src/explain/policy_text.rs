//! Policies, tiers and ban rules as fields of text: for operators, who read and compare them.
//!
//! The functions destructure what they describe, so that the compiler asks for every new field.
//! Must not show a value of a private attribute, which the condition of a tier may contain.

use catraca_core::catalog::Catalog;
use catraca_core::policy::{
    BanRule, CreditRule, KeySpec, Name, OnFailure, OnMissing, Policy, Terms, Tier, WatchRule,
};
use catraca_core::price::StatusSet;

use super::{describe_block, describe_price};

/// The name of a field, and its text; without a text if the catalog does not set the field.
pub type TextField = (&'static str, Option<String>);

/// The fields of a policy, without its tiers and bans.
pub fn policy_fields(catalog: &Catalog, policy: &Policy) -> Vec<TextField> {
    let Policy { name: _, family: _, tiers: _, bans: _, base, .. } = policy;
    let Policy { group, key_spec, otherwise, on_missing, mode, on_failure, .. } = policy;
    let Policy { debt, count_denied, reserve, hold, remember, message, .. } = policy;
    let Policy { low_water, watch, ban_storm, .. } = policy;
    let mut fields = vec![("counts", Some(describe_key(key_spec)))];
    match base {
        Some(terms) => fields.extend(terms_fields(terms)),
        None => fields.push(("limit", Some("by tier".to_owned()))),
    }
    let otherwise = otherwise.map(|id| catalog.policy(id).name.to_string());
    fields.extend([
        ("mode", Some(mode.as_str().to_owned())),
        ("group", group.as_deref().map(str::to_owned)),
        ("otherwise", otherwise),
        ("on_missing", Some(on_missing_word(*on_missing).to_owned())),
        ("on_failure", Some(on_failure_word(*on_failure).to_owned())),
        ("debt", Some(debt.to_string())),
        ("count_denied", Some(count_denied.to_string())),
        ("reserve", Some(reserve.to_string())),
        ("hold", Some(hold.to_string())),
        ("remember", Some(remember.to_string())),
        ("message", message.as_deref().map(str::to_owned)),
        ("low_water", low_water.map(|share| share.to_string())),
        ("watch", watch.as_ref().map(describe_watch)),
        ("ban_storm", ban_storm.map(|rate| rate.to_string())),
    ]);
    fields
}

/// The fields of the terms of a policy or a tier.
pub fn terms_fields(terms: &Terms) -> Vec<TextField> {
    // The limit includes the refill.
    let Terms { limit: _, refill: _, block, cost: _, credits } = terms;
    let credits: Vec<String> = credits.iter().map(describe_credit).collect();
    vec![
        ("limit", Some(terms.describe_limit())),
        ("block", block.map(describe_block)),
        ("cost", Some(describe_price(terms))),
        ("credits", Some(credits.join(", ")).filter(|text| !text.is_empty())),
    ]
}

/// The fields of a ban rule, without its reason, which identifies it.
pub fn ban_fields(ban: &BanRule) -> Vec<TextField> {
    let BanRule { when, penalty, reason: _, after, status, message, .. } = ban;
    let BanRule { answer_status, answer_message, .. } = ban;
    vec![
        ("when", Some(when.source().to_owned())),
        ("for", Some(describe_block(*penalty))),
        ("after", after.map(|rate| rate.to_string())),
        ("status", status.map(|status| status.to_string())),
        ("message", message.as_deref().map(str::to_owned)),
        ("answer_status", answer_status.map(|status| status.to_string())),
        ("answer_message", answer_message.as_deref().map(str::to_owned)),
    ]
}

/// The condition of a tier, without values of private attributes.
pub fn tier_condition(catalog: &Catalog, tier: &Tier) -> String {
    let one = |(name, values): &(Name, Vec<Name>)| match (catalog.is_private(name), values.len()) {
        (true, 1) => format!("{name} = a private value"),
        (true, count) => format!("{name} = one of {count} private values"),
        (false, _) => format!("{name} = {}", values.join(" or ")),
    };
    tier.when.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The attributes by which a policy counts.
pub fn describe_key(spec: &KeySpec) -> String {
    match spec {
        KeySpec::By(parts) if parts.is_empty() => "all callers together".to_owned(),
        KeySpec::By(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| part.join("|")).collect();
            format!("by {}", parts.join(", "))
        }
        KeySpec::Each(names) => format!("each of {}", names.join(", ")),
    }
}

fn describe_credit(credit: &CreditRule) -> String {
    let CreditRule { event, amount, on } = credit;
    match on {
        Some(statuses) => format!("{amount} for {event} if {}", describe_statuses(statuses)),
        None => format!("{amount} for {event}"),
    }
}

fn describe_watch(watch: &WatchRule) -> String {
    let WatchRule { share, of, above, min, per, ban } = watch;
    format!(
        "{} of {} above {above}, from {min} on, in {per}: {}",
        describe_statuses(share),
        describe_statuses(of),
        describe_block(*ban)
    )
}

fn describe_statuses(statuses: &StatusSet) -> String {
    let exact = statuses.exact.iter().map(ToString::to_string);
    let classes = statuses.classes.iter().map(|class| format!("{class}xx"));
    exact.chain(classes).collect::<Vec<_>>().join("|")
}

fn on_missing_word(on_missing: OnMissing) -> &'static str {
    match on_missing {
        OnMissing::Error => "error",
        OnMissing::Skip => "skip",
        OnMissing::Deny => "deny",
    }
}

fn on_failure_word(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Local => "local",
        OnFailure::Open => "open",
        OnFailure::Closed => "closed",
    }
}
