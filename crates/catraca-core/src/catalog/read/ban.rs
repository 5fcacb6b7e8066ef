//! `ban` and `watch`: what an outcome may start, and the texts that callers are shown.
//!
//! Must not evaluate conditions: they are compiled here and judged at settle.

use super::attribute::Known;
use super::block;
use super::bounds::{BANS_MAX, CONDITION_CHAIN_MAX, CONDITION_DEPTH_MAX, CONDITION_MAX, UNITS_MAX};
use super::node::{Fields, Node};
use super::price;
use super::report::Report;
use super::scalar;
use crate::cell::watch::SLICES;
use crate::condition::Condition;
use crate::policy::{Ban, Name, Watch};
use crate::price::StatusSet;
use crate::rate::{Percent, Rate};
use crate::time::Span;

const BAN_FIELDS: [&str; 6] = ["when", "for", "reason", "after", "status", "message"];
const WATCH_FIELDS: [&str; 6] = ["share", "of", "above", "min", "per", "ban"];

/// The reason of a ban whose rule gives none.
const REASON: &str = "API rejection";

/// Reads the `ban` list.
pub(super) fn bans(report: &mut Report, node: Node<'_>, known: &Known) -> Option<Vec<Ban>> {
    let items =
        node.items(report, "a list such as [ { when = \"status == 403\", for = \"10m\" } ]")?;
    if let Some(extra) = items.get(BANS_MAX) {
        let message = format!("{} ban rules are too many", items.len());
        let fix = format!("keep at most {BANS_MAX}: join conditions with `||`");
        report.error("too-many-bans", extra.place, message, fix);
    }
    let bans: Vec<_> = items.into_iter().map(|item| ban(report, item, known)).collect();
    bans.into_iter().collect()
}

fn ban(report: &mut Report, item: Node<'_>, known: &Known) -> Option<Ban> {
    let fields = Fields::item(report, item, "ban", &BAN_FIELDS)?;
    let when = fields.need(report, "when", "\"status == 403\"");
    let when = when.and_then(|node| condition(report, node, known));
    let penalty = fields.need(report, "for", "\"10m\"");
    let penalty = penalty.and_then(|node| block::penalty(report, node));
    let reason = fields.given("reason", |node| scalar::prose(report, node)).or(REASON.into());
    let after = fields.given("after", |node| after(report, node)).optional();
    let status = fields.given("status", |node| status(report, node)).optional();
    let message = fields.given("message", |node| message(report, node)).optional();
    Some(Ban {
        when: when?,
        penalty: penalty?,
        reason: reason?,
        after: after?,
        status: status?,
        message: message?,
    })
}

fn condition(report: &mut Report, node: Node<'_>, known: &Known) -> Option<Condition> {
    let text = node.text(report, "a condition such as \"status == 403\"")?;
    let deep = depth(text) > CONDITION_DEPTH_MAX || longest_chain(text) > CONDITION_CHAIN_MAX;
    if text.chars().count() > CONDITION_MAX || deep {
        let message = "the condition is too long, or nests too deeply";
        let fix = format!(
            "split it into rules of at most {CONDITION_MAX} characters, {CONDITION_DEPTH_MAX} \
             brackets inside each other and {CONDITION_CHAIN_MAX} operators in a row"
        );
        report.error("bad-condition", node.place, message, fix);
        return None;
    }
    let compiled = Condition::compile(text);
    let refuse = |why: String| {
        let message = format!("the condition does not compile: {}", located(&why));
        let fix = "write CEL over status, body, headers and subject, such as \"body.code == 5\"";
        report.error("bad-condition", node.place, message, fix);
    };
    let compiled = compiled.map_err(refuse).ok()?;
    reads_private(report, node, &compiled, known);
    Some(compiled)
}

/// Warns of a comparison with a value that no condition ever sees.
fn reads_private(report: &mut Report, node: Node<'_>, condition: &Condition, known: &Known) {
    let private = |name: &&Name| known.attributes.get(&***name).is_some_and(|a| a.private);
    for name in condition.values().iter().filter(private) {
        let message = format!("`{name}` is private: a condition sees its pseudonym, not its value");
        let fix = format!("test it with has(subject.{name}), or give its values facts and tiers");
        report.warn("condition-reads-private", node.place, message, fix);
    }
}

/// The compiler's message, with the place in the condition in words.
fn located(why: &str) -> String {
    let place = why.strip_prefix("ERROR: <input>:1:").and_then(|rest| rest.split_once(": "));
    place.map_or_else(|| why.to_owned(), |(at, why)| format!("at character {at}: {why}"))
}

/// How deeply the compiler would descend. Brackets in quoted texts count too: it is not worth
/// knowing them apart, and knowing them wrongly would let a deep one through.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0_usize);
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    // A choice descends less than a bracket, and is never closed.
    deepest.max(text.matches('?').count() / 2)
}

/// The longest chain of operators that the compiler would descend along: it balances `&&` and `||`
/// itself. Those in quoted texts count too, as brackets do.
fn longest_chain(text: &str) -> usize {
    let chain = |piece: &str| piece.matches(['+', '-', '*', '/', '%', '[', '.']).count();
    text.split("&&").flat_map(|piece| piece.split("||")).map(chain).max().unwrap_or(0)
}

fn after(report: &mut Report, node: Node<'_>) -> Option<Rate> {
    let rate = scalar::rate_above_zero(report, node)?;
    if rate.amount > UNITS_MAX {
        let message = format!("{} strikes are above the {UNITS_MAX} kept per key", rate.amount);
        let fix = format!("write at most \"{UNITS_MAX} per {}\"", rate.per);
        report.error("window-too-large", node.place, message, fix);
        return None;
    }
    Some(rate)
}

fn status(report: &mut Report, node: Node<'_>) -> Option<u16> {
    let status = node.integer(report, "a status such as 429")?;
    let found = u16::try_from(status).ok().filter(|status| (400..600).contains(status));
    if found.is_none() {
        let message = format!("`{status}` does not tell a caller of a refusal");
        report.error("bad-status", node.place, message, "write a status from 400 to 599");
    }
    found
}

/// Reads a text for callers, in which only the wait may be filled in.
pub(super) fn message(report: &mut Report, node: Node<'_>) -> Option<Name> {
    let text = scalar::prose(report, node)?;
    let mut fine = true;
    for after in text.split('{').skip(1) {
        let name = after.split_once('}').map(|(name, _)| name);
        if !matches!(name, Some("retry_after" | "retry_after_s")) {
            let shown = name.unwrap_or(after);
            let message = format!("nothing fills in `{{{}}}`", shown.escape_debug());
            let fix = "use {retry_after} for words or {retry_after_s} for seconds";
            report.error("unknown-placeholder", node.place, message, fix);
            fine = false;
        }
    }
    fine.then_some(text)
}

/// Reads `watch`.
pub(super) fn watch(report: &mut Report, node: Node<'_>) -> Option<Watch> {
    let fields = Fields::item(report, node, "watch", &WATCH_FIELDS)?;
    let share = fields.need(report, "share", "\"404\"");
    let share = share.and_then(|node| price::statuses(report, node));
    let of = fields.need(report, "of", "[\"200\", \"404\"]");
    let of = of.and_then(|node| price::statuses(report, node));
    let above = fields.need(report, "above", "\"20%\"").and_then(|node| above(report, node));
    let min = fields.need(report, "min", "100").and_then(|node| scalar::whole(report, node, 1));
    let per = fields.need(report, "per", "\"24h\"").and_then(|node| per(report, node));
    let ban = fields.need(report, "ban", "\"1h\"").and_then(|node| block::penalty(report, node));
    let (share, of) = (share?, of?);
    if !is_within(&share, &of) {
        let message =
            "`share` has statuses that are not in `of`, so the part could outgrow the whole";
        let place = fields.key("share").unwrap_or(fields.place);
        report.error("bad-share", place, message, "add them to `of`");
    }
    Some(Watch { share, of, above: above?, min: min?, per: per?, ban: ban? })
}

fn above(report: &mut Report, node: Node<'_>) -> Option<Percent> {
    let share = scalar::percent(report, node)?;
    if share == Percent::from_hundredths(10_000) {
        let message = "no share is ever above 100%";
        report.error("bad-percent", node.place, message, "write less than \"100%\"");
        return None;
    }
    Some(share)
}

fn per(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let per = scalar::duration(report, node)?;
    if per.micros() < SLICES as i64 {
        let message = format!("`{per}` cannot be counted in {SLICES} slices");
        report.error("bad-duration", node.place, message, "write a duration such as \"24h\"");
        return None;
    }
    Some(per)
}

fn is_within(part: &StatusSet, whole: &StatusSet) -> bool {
    part.exact.iter().all(|status| whole.contains(Some(*status)))
        && part.classes.iter().all(|class| whole.classes.contains(class))
}
