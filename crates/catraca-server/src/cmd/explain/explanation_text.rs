//! Prints an explanation as text for people who do not know the catalog.

use std::io::{self, Write};

use catraca::Catalog;
use catraca::explain::{ExplainedPolicy, Explanation};
use catraca_core::limit::Limit;
use catraca_core::policy::{BanRule, CreditRule, Mode, Policy, Terms};
use catraca_core::route::UNROUTED;

use super::request::RouteMatch;
use crate::render::Paint;

/// Describes the matching route; empty if the request named a gate.
pub fn describe_route(route: Option<&RouteMatch>) -> String {
    let Some(matched) = route else { return String::new() };
    let Some(route) = &matched.r#match else {
        return "No route matches this request: the default policy applies.\n".to_owned();
    };
    let mut text = format!("The route {route} matches this request.\n");
    if matched.skips_lists {
        text.push_str("It skips the allowlist and the blocklist.\n");
    }
    for (name, value) in &matched.set {
        text += &format!("It sets {name}={value}.\n");
    }
    for (name, source) in &matched.unset {
        text += &format!("It reads {name} from {source}; give it with {name}=VALUE.\n");
    }
    text
}

/// Prints an explanation as text.
pub struct ExplanationPrinter<'a> {
    /// The catalog, for details that an explanation does not have.
    pub catalog: &'a Catalog,
    /// Colours.
    pub paint: Paint,
}

impl ExplanationPrinter<'_> {
    /// Prints the gate, then one paragraph per policy.
    pub fn print(&self, out: &mut impl Write, explained: &Explanation) -> io::Result<()> {
        self.print_gate(out, explained)?;
        for (index, row) in explained.rows.iter().enumerate() {
            writeln!(out, "\n{}. {}", index + 1, self.paint.strong(&row.policy))?;
            for (label, text) in self.facts(row, own_counters_of(explained)) {
                writeln!(out, "   {} {text}", self.paint.faint(&format!("{label:<8}")))?;
            }
        }
        for (policy, why) in &explained.absent {
            writeln!(out, "\nNot checked: {}, because {why}.", self.paint.strong(policy))?;
        }
        Ok(())
    }

    fn print_gate(&self, out: &mut impl Write, explained: &Explanation) -> io::Result<()> {
        let gate = self.paint.strong(&explained.gate);
        if let Some((decides, reason)) = &explained.list {
            let why = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            writeln!(out, "The caller is {}{why}: that decides alone.", self.paint.bad(decides))?;
            return writeln!(out, "Without the list, gate {gate} would check:");
        }
        match explained.rows.len() {
            _ if explained.gate == UNROUTED => {
                let policy = self.catalog.default.map(|id| self.catalog.policy(id).name.as_ref());
                let policy = self.paint.strong(policy.unwrap_or_default());
                writeln!(out, "The request uses the counters of gate {policy}.")
            }
            _ if explained.unlisted => {
                let near = self.catalog.nearest_gate(&explained.gate);
                let near = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
                let why = "is not in the catalog: the default policy applies.";
                writeln!(out, "Gate {gate} {why}{near}")
            }
            0 => writeln!(out, "Gate {gate} checks no policy: the caller passes."),
            1 => writeln!(out, "Gate {gate} checks one policy."),
            all => {
                writeln!(
                    out,
                    "Gate {gate} checks {all} policies: all must allow, or none is charged."
                )
            }
        }
    }

    /// The lines about one policy: a label and its text each.
    fn facts(
        &self,
        row: &ExplainedPolicy,
        undeclared_gate: Option<&String>,
    ) -> Vec<(&'static str, String)> {
        let mut facts = vec![("counts", describe_key(row, undeclared_gate))];
        facts.extend(row.instead_of.as_ref().map(|asked| ("because", instead_of(asked, row))));
        let Some((_, policy)) = self.catalog.find(&row.policy) else { return facts };
        let tier = row.tier.as_ref().and_then(|(number, _)| policy.tiers.get(number - 1));
        facts.extend(tier_of(policy, row).map(|text| ("tier", text)));
        let terms = tier.map(|tier| &tier.terms).or(policy.base.as_ref());
        match terms.filter(|_| !row.price.is_empty()) {
            Some(terms) => facts.extend(terms_of(policy, row, terms)),
            None => facts.push(("limit", row.limit.clone())),
        }
        if row.mode == Mode::Shadow {
            facts.push(("mode", "shadow: evaluated and counted, never decides".to_owned()));
        }
        facts
    }
}

/// The lines about the terms that apply.
fn terms_of(policy: &Policy, row: &ExplainedPolicy, terms: &Terms) -> Vec<(&'static str, String)> {
    let mut facts = vec![("limit", limit(row, &terms.limit))];
    if terms.limit != Limit::Unlimited {
        facts.push(("takes", charge(row, terms)));
    }
    if policy.debt {
        facts.push(("debt", "a price may push it below zero".to_owned()));
    }
    facts.extend(terms.credits.iter().map(|credit| ("credit", describe_credit(credit))));
    facts
        .extend(row.block.as_ref().map(|block| ("block", format!("{block}, when over the limit"))));
    facts.extend(policy.bans.iter().map(|ban| ("ban", describe_ban(ban))));
    facts
}

/// The undeclared gate whose name is part of the keys of the default policy. Requests without a
/// route have no gate: the default policy counts them by its own keys.
fn own_counters_of(explained: &Explanation) -> Option<&String> {
    (explained.unlisted && explained.gate != UNROUTED).then_some(&explained.gate)
}

fn describe_key(row: &ExplainedPolicy, undeclared_gate: Option<&String>) -> String {
    let gate = undeclared_gate.map(|gate| format!("gate = {gate}"));
    let parts = row.key.iter().map(|(name, value)| format!("{name} = {value}"));
    let all: Vec<_> = gate.into_iter().chain(parts).collect();
    if all.is_empty() { "nothing: the key attribute is missing".to_owned() } else { all.join(", ") }
}

/// The selected tier, for a policy that has tiers.
fn tier_of(policy: &Policy, row: &ExplainedPolicy) -> Option<String> {
    let all = policy.tiers.len();
    match &row.tier {
        Some((number, when)) if row.own_counter => {
            Some(format!("{number} of {all}, as {when}; counted apart from the other tiers"))
        }
        Some((number, when)) => Some(format!("{number} of {all}, as {when}")),
        None if all > 0 => Some(format!("none of {all} matches: its own terms")),
        None => None,
    }
}

fn instead_of(asked: &str, row: &ExplainedPolicy) -> String {
    let used = &row.policy;
    format!("{asked} has no key or no tier for this caller and names {used} instead")
}

/// The limit as the catalog spells it, with an explanation.
fn limit(row: &ExplainedPolicy, limit: &Limit) -> String {
    match limit.remark() {
        "" => row.limit.clone(),
        remark => format!("{} ({remark})", row.limit),
    }
}

/// What a check charges at once, and what it costs when it is settled.
fn charge(row: &ExplainedPolicy, terms: &Terms) -> String {
    if terms.limit.takes_lease() {
        return "1 while the request is in flight".to_owned();
    }
    if row.too_costly {
        let most = terms.limit.capacity().unwrap_or_default();
        return format!("{}, and there are never more than {most}: too_costly", row.held);
    }
    if terms.cost.is_priced_at_settle() {
        return format!("{} at the check; at settle {}", row.held, row.price);
    }
    format!("{} at the check ({})", row.held, row.price)
}

fn describe_credit(credit: &CreditRule) -> String {
    let CreditRule { event, amount, on } = credit;
    let Some(on) = on else { return format!("{amount} back on {event}") };
    let classes = on.classes.iter().map(|class| format!("{class}xx"));
    let all = on.exact.iter().map(u16::to_string).chain(classes);
    format!("{amount} back on {event}, after {}", all.collect::<Vec<_>>().join(" or "))
}

fn describe_ban(ban: &BanRule) -> String {
    let after = ban.after.map(|rate| format!(", {} times in {}", rate.amount, rate.per));
    let when = ban.when.source();
    format!("{} when {when}{}: {}", ban.penalty.first, after.unwrap_or_default(), ban.reason)
}
