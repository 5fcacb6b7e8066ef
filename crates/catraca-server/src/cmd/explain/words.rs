//! An explanation in words that somebody who has never seen the catalog can follow.

use std::io::{self, Write};

use catraca::Catalog;
use catraca::explain::{Explained, Explanation};
use catraca_core::limit::Limit;
use catraca_core::policy::{Ban, Credit, Mode, Policy, Terms};

use super::request::Way;
use crate::render::Paint;

/// How a request came to its gate, if it did not name one.
pub fn way(way: Option<&Way>) -> String {
    let Some(way) = way else { return String::new() };
    let Some(route) = &way.r#match else {
        return "No route takes this request: the default policy stands in.\n".to_owned();
    };
    let mut text = format!("The route {route} takes this request.\n");
    for (name, value) in &way.set {
        text += &format!("It gives {name}={value}.\n");
    }
    for (name, header) in &way.unset {
        text += &format!("It reads {name} from the header {header}; say {name}=VALUE for one.\n");
    }
    text
}

/// Puts an explanation into words.
pub struct Words<'a> {
    /// The catalog, for what an explanation leaves out.
    pub catalog: &'a Catalog,
    /// How it looks.
    pub paint: Paint,
}

impl Words<'_> {
    /// Prints it all: what decides the gate, then one paragraph per policy.
    pub fn print(&self, out: &mut impl Write, explained: &Explanation) -> io::Result<()> {
        self.print_gate(out, explained)?;
        for (place, row) in explained.rows.iter().enumerate() {
            writeln!(out, "\n{}. {}", place + 1, self.paint.strong(&row.policy))?;
            for (word, text) in self.facts(row, explained.unlisted.then_some(&explained.gate)) {
                writeln!(out, "   {} {text}", self.paint.faint(&format!("{word:<8}")))?;
            }
        }
        for (policy, why) in &explained.absent {
            writeln!(out, "\nNot asked: {}, because {why}.", self.paint.strong(policy))?;
        }
        Ok(())
    }

    fn print_gate(&self, out: &mut impl Write, explained: &Explanation) -> io::Result<()> {
        let gate = self.paint.strong(&explained.gate);
        if let Some((decides, reason)) = &explained.list {
            let why = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            writeln!(out, "The caller is {}{why}: that decides alone.", self.paint.bad(decides))?;
            return writeln!(out, "Without the list, gate {gate} would ask:");
        }
        match explained.rows.len() {
            _ if explained.unlisted => {
                let near = self.catalog.nearest_gate(&explained.gate);
                let near = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
                let why = "is not in the catalog: the default policy stands in.";
                writeln!(out, "Gate {gate} {why}{near}")
            }
            0 => writeln!(out, "Gate {gate} asks no policy: the caller passes."),
            1 => writeln!(out, "Gate {gate} asks one policy."),
            all => {
                writeln!(
                    out,
                    "Gate {gate} asks {all} policies: all must have room, or none is charged."
                )
            }
        }
    }

    /// What there is to say of a policy: a word and its text.
    fn facts(&self, row: &Explained, unlisted: Option<&String>) -> Vec<(&'static str, String)> {
        let mut facts = vec![("counts", counts(row, unlisted))];
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
            facts.push(("mode", "shadow: judged and counted, never decides".to_owned()));
        }
        facts
    }
}

/// What follows from the terms that apply.
fn terms_of(policy: &Policy, row: &Explained, terms: &Terms) -> Vec<(&'static str, String)> {
    let mut facts = vec![("limit", limit(row, &terms.limit))];
    if terms.limit != Limit::Unlimited {
        facts.push(("takes", takes(row, terms)));
    }
    if policy.debt {
        facts.push(("debt", "a price may push it below zero".to_owned()));
    }
    facts.extend(terms.credits.iter().map(|credit| ("credit", credited(credit))));
    facts.extend(row.block.as_ref().map(|block| ("block", format!("{block} after an excess"))));
    facts.extend(policy.bans.iter().map(|ban| ("ban", banned(ban))));
    facts
}

fn counts(row: &Explained, unlisted: Option<&String>) -> String {
    let gate = unlisted.map(|gate| format!("gate = {gate}"));
    let parts = row.key.iter().map(|(name, value)| format!("{name} = {value}"));
    let all: Vec<_> = gate.into_iter().chain(parts).collect();
    if all.is_empty() { "nothing: the key attribute is missing".to_owned() } else { all.join(", ") }
}

/// Which tier was taken, for a policy that has any.
fn tier_of(policy: &Policy, row: &Explained) -> Option<String> {
    let all = policy.tiers.len();
    match &row.tier {
        Some((number, when)) => Some(format!("{number} of {all}, as {when}")),
        None if all > 0 => Some(format!("none of {all} matches: its own terms")),
        None => None,
    }
}

fn instead_of(asked: &str, row: &Explained) -> String {
    let used = &row.policy;
    format!("{asked} has no key or no tier for this caller and names {used} instead")
}

/// The limit in the catalog's words and in plain ones.
fn limit(row: &Explained, limit: &Limit) -> String {
    match limit {
        Limit::Window(windows) if windows.len() == 1 => {
            format!("{} (never more in any such span)", row.limit)
        }
        Limit::Window(_) => format!("{} (never more in any such span; all bind)", row.limit),
        Limit::Fixed(_) => format!("{} (from the first one on, then afresh)", row.limit),
        Limit::Bucket(_) => format!("{} (starts full)", row.limit),
        Limit::Inflight(_) | Limit::Unlimited => row.limit.clone(),
    }
}

/// What a check takes at once, and what it comes to in the end.
fn takes(row: &Explained, terms: &Terms) -> String {
    if matches!(terms.limit, Limit::Inflight(_)) {
        return "1 while the work goes on".to_owned();
    }
    if row.too_costly {
        let most = terms.limit.capacity().unwrap_or_default();
        return format!("{}, and there are never more than {most}: too_costly", row.held);
    }
    if terms.cost.is_priced_at_settle() {
        return format!("{} now; in the end {}", row.held, row.price);
    }
    format!("{} now ({})", row.held, row.price)
}

fn credited(credit: &Credit) -> String {
    let Credit { event, amount, on } = credit;
    let Some(on) = on else { return format!("{amount} back on {event}") };
    let classes = on.classes.iter().map(|class| format!("{class}xx"));
    let all = on.exact.iter().map(u16::to_string).chain(classes);
    format!("{amount} back on {event}, after {}", all.collect::<Vec<_>>().join(" or "))
}

fn banned(ban: &Ban) -> String {
    let after = ban.after.map(|rate| format!(", {} times in {}", rate.amount, rate.per));
    let when = ban.when.source();
    format!("{} when {when}{}: {}", ban.penalty.first, after.unwrap_or_default(), ban.reason)
}
