//! An explanation in words that somebody who has never seen the catalog can follow.

use std::io::{self, Write};

use catraca::Catalog;
use catraca::explain::{Explained, Explanation};
use catraca_core::limit::Limit;
use catraca_core::policy::{Mode, Policy, Terms};

use crate::render::{Paint, counted};

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
        if explained.unlisted {
            writeln!(out, "Gate {gate} is not in the catalog: its default policy stands in.")?;
        }
        match explained.rows.len() {
            0 => writeln!(out, "Gate {gate} asks no policy: the caller passes."),
            1 => writeln!(out, "Gate {gate} asks one policy."),
            rows => writeln!(
                out,
                "Gate {gate} asks {}: the caller passes if all have room, and pays only then.",
                counted(rows, "policy", "policies")
            ),
        }
    }

    /// What there is to say of a policy: a word and its text.
    fn facts(&self, row: &Explained, unlisted: Option<&String>) -> Vec<(&'static str, String)> {
        let policy = self.catalog.find(&row.policy).map(|(_, policy)| policy);
        let tier = row.tier.as_ref().and_then(|(number, _)| u8::try_from(number - 1).ok());
        let terms = policy.and_then(|policy| policy.terms_of(tier));
        let mut facts = vec![("counts", counts(row, unlisted))];
        facts.extend(row.instead_of.as_ref().map(|asked| {
            ("because", format!("{asked} has no key or no tier for this caller and names {} instead", row.policy))
        }));
        facts.extend(policy.and_then(|policy| tier_of(policy, row)).map(|text| ("tier", text)));
        facts.push(("limit", limit(row, terms)));
        if terms.is_some_and(|terms| terms.limit != Limit::Unlimited) {
            facts.push(("takes", takes(row, terms)));
        }
        facts.extend(row.block.as_ref().map(|block| ("block", format!("{block} after an excess"))));
        facts.extend(policy.into_iter().flat_map(bans).map(|text| ("bans", text)));
        if row.mode == Mode::Shadow {
            facts.push(("mode", "shadow: judged and counted, never decides".to_owned()));
        }
        facts
    }
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

/// The limit in the catalog's words and in plain ones.
fn limit(row: &Explained, terms: Option<&Terms>) -> String {
    let plain = match terms.map(|terms| &terms.limit) {
        Some(Limit::Window(windows)) if windows.len() == 1 => "counted in any such span",
        Some(Limit::Window(_)) => "counted in any such span; all must fit",
        Some(Limit::Fixed(_)) => "counted from the first one on, then afresh",
        Some(Limit::Bucket(_)) => "one token per unit",
        Some(Limit::Inflight(_)) => "returned at settle",
        Some(Limit::Unlimited) | None => return row.limit.clone(),
    };
    format!("{} ({plain})", row.limit)
}

/// What a check takes at once, and what it comes to in the end.
fn takes(row: &Explained, terms: Option<&Terms>) -> String {
    let later = terms.is_some_and(|terms| terms.cost.is_priced_at_settle());
    match terms.map(|terms| &terms.limit) {
        Some(Limit::Inflight(_)) => "1 while the work goes on".to_owned(),
        _ if later => format!("{} now; by its outcome {}", row.held, row.price),
        _ => format!("{} now ({})", row.held, row.price),
    }
}

fn bans(policy: &Policy) -> impl Iterator<Item = String> {
    let rules = policy.bans.iter();
    rules.map(|ban| format!("{} when {} ({})", ban.penalty.first, ban.when.source(), ban.reason))
}
