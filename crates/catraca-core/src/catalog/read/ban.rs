//! `ban` and `watch`: rules that ban on outcomes. Also reads `message`, the text shown to callers.
//!
//! Conditions are compiled here and evaluated at settle.

use super::attribute::AttributeTable;
use super::block;
use super::bounds::{BANS_MAX, CONDITION_CHAIN_MAX, CONDITION_DEPTH_MAX, CONDITION_MAX, UNITS_MAX};
use super::feature;
use super::price;
use super::scalar;
use super::schema;
use crate::cell::ratio_watch::SLICES;
use crate::condition::Condition;
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema,
};
use crate::policy::{BanRule, Name, WatchRule};
use crate::price::StatusSet;
use crate::rate::{Percent, Rate};
use crate::time::Span;

/// The fields of an item of `ban`.
pub(super) static BAN: TableSchema = TableSchema {
    name: "ban",
    fields: &[
        FieldSchema::new("when", ValueSchema::Text, "a [condition](#conditions)").require(),
        FieldSchema::new(
            "for",
            block::PENALTY,
            "the duration of the block, `forever`, or a table as in `block`",
        )
        .require(),
        FieldSchema::new("reason", ValueSchema::Text, "a text for operators")
            .or(DefaultValue::Text(REASON)),
        FieldSchema::new(
            "after",
            ValueSchema::Rate,
            "how many matching outcomes within a span start the block, such as `\"3 per 10m\"`",
        )
        .or(DefaultValue::Absent("the first one does")),
        FieldSchema::new(
            "status",
            ValueSchema::Integer { least: 400, most: 599 },
            "the HTTP status of authorize calls while the block is active",
        )
        .or(DefaultValue::Absent("429")),
        FieldSchema::new(
            "message",
            ValueSchema::Text,
            "a text for the caller while the block is active",
        )
        .or(DefaultValue::Absent("the `message` of the policy")),
        FieldSchema::new(
            "answer_status",
            ValueSchema::Integer { least: 400, most: 599 },
            "the HTTP status of the response to the request that starts the block: behind the \
             proxy, a ban with a status replaces that response",
        )
        .or(DefaultValue::Absent("`status`")),
        FieldSchema::new(
            "answer_message",
            ValueSchema::Text,
            "a text for the caller of that request",
        )
        .or(DefaultValue::Absent("`message`")),
    ],
};

/// The fields of `watch`.
pub(super) static WATCH: TableSchema = TableSchema {
    name: "watch",
    fields: &[
        FieldSchema::new("share", price::STATUSES, "the statuses that are counted").require(),
        FieldSchema::new("of", price::STATUSES, "the statuses among which they are counted")
            .require(),
        FieldSchema::new("above", ValueSchema::Percent, "the share above which the key is banned")
            .require(),
        FieldSchema::new("min", schema::COUNT, "the fewest outcomes that are judged").require(),
        FieldSchema::new("per", PER, "the span in which outcomes count").require(),
        FieldSchema::new(
            "ban",
            block::PENALTY,
            "the duration of the ban, or a table as in `block`",
        )
        .require(),
    ],
};

/// Each slice has at least one microsecond.
const PER_MIN: Span = Span::from_micros(SLICES as i64);
const PER: ValueSchema = ValueSchema::duration_from(PER_MIN);
/// The reason of a ban whose rule gives none.
const REASON: &str = "API rejection";

/// Reads the `ban` list.
pub(super) fn bans(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<Vec<BanRule>> {
    let items =
        node.items(report, "a list such as [ { when = \"status == 403\", for = \"10m\" } ]")?;
    if let Some(extra) = items.get(BANS_MAX) {
        let message = format!("{} ban rules are too many", items.len());
        let fix = format!("keep at most {BANS_MAX}: join conditions with `||`");
        report.error("too-many-bans", extra.location, message, fix);
    }
    let bans: Vec<_> = items.into_iter().map(|item| ban(report, item, attributes)).collect();
    bans.into_iter().collect()
}

fn ban(report: &mut Report, item: Node<'_>, attributes: &AttributeTable) -> Option<BanRule> {
    let fields = TableFields::read_item(report, item, &BAN)?;
    let when = fields.require(report, "when", "\"status == 403\"");
    let when = when.and_then(|node| condition(report, node, attributes));
    let penalty = fields.require(report, "for", "\"10m\"");
    let penalty = penalty.and_then(|node| block::penalty(report, node));
    let reason = fields.parse("reason", |node| scalar::reason(report, node)).or(REASON.into());
    let after = fields.parse("after", |node| after(report, node)).optional();
    let answer_status = fields.parse("answer_status", |node| status(report, node)).optional();
    let answer_message = fields.parse("answer_message", |node| message(report, node)).optional();
    let status = fields.parse("status", |node| status(report, node)).optional();
    let message = fields.parse("message", |node| message(report, node)).optional();
    Some(BanRule {
        when: when?,
        penalty: penalty?,
        reason: reason?,
        after: after?,
        status: status?,
        message: message?,
        answer_status: answer_status?,
        answer_message: answer_message?,
    })
}

fn condition(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<Condition> {
    let text = node.text(report, "a condition such as \"status == 403\"")?;
    let deep = depth(text) > CONDITION_DEPTH_MAX || longest_chain(text) > CONDITION_CHAIN_MAX;
    if text.chars().count() > CONDITION_MAX || deep {
        let message = "the condition is too long, or nests too deeply";
        let fix = format!(
            "split it into rules of at most {CONDITION_MAX} characters, {CONDITION_DEPTH_MAX} \
             brackets inside each other and {CONDITION_CHAIN_MAX} operators in a row"
        );
        report.error("bad-condition", node.location, message, fix);
        return None;
    }
    if !cfg!(feature = "cel") {
        feature::report_missing(report, node.location, "a condition", "cel");
        return None;
    }
    let compiled = Condition::compile(text);
    let refuse = |why: String| {
        let message = format!("the condition does not compile: {}", readable_position(&why));
        let fix = "write CEL over status, body, headers and subject, such as \"body.code == 5\"";
        report.error("bad-condition", node.location, message, fix);
    };
    let compiled = compiled.map_err(refuse).ok()?;
    warn_of_private_values(report, node, &compiled, attributes);
    warn_of_facts(report, node, &compiled, attributes);
    Some(compiled)
}

/// Warns of a comparison with a private attribute: conditions see only its pseudonym.
fn warn_of_private_values(
    report: &mut Report,
    node: Node<'_>,
    condition: &Condition,
    attributes: &AttributeTable,
) {
    let private = |name: &&Name| attributes.by_name.get(&***name).is_some_and(|a| a.private);
    for name in condition.values().iter().filter(private) {
        let message = format!("`{name}` is private: a condition sees its pseudonym, not its value");
        let fix = format!("test it with has(subject.{name}), or give its values facts and tiers");
        report.warn("condition-reads-private", node.location, message, fix);
    }
}

/// Warns of a condition on a fact: conditions see what callers send, and they may not send facts.
fn warn_of_facts(
    report: &mut Report,
    node: Node<'_>,
    condition: &Condition,
    attributes: &AttributeTable,
) {
    for name in condition.attributes() {
        let Some(source) = attributes.facts.source(name) else { continue };
        let message = format!(
            "`{name}` is a fact about `{source}`: a condition sees only what callers send, so it \
             finds no `{name}`"
        );
        let fix = format!("test subject.{source}, or use the fact in a tier");
        report.warn("condition-reads-fact", node.location, message, fix);
    }
}

/// The CEL compiler's message, with its position written as `at character N`.
fn readable_position(why: &str) -> String {
    let location = why.strip_prefix("ERROR: <input>:1:").and_then(|rest| rest.split_once(": "));
    location.map_or_else(|| why.to_owned(), |(at, why)| format!("at character {at}: {why}"))
}

/// How deeply the CEL compiler would recurse. Checked before compiling, because the recursion could
/// overflow the stack. Brackets in string literals count too: a lexer that misjudges where a string
/// ends would let a deep condition pass.
fn depth(text: &str) -> usize {
    let mut open = 0_usize;
    let mut deepest = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    // A conditional `a ? b : c` recurses half as deep as a bracket, and has no closing bracket.
    deepest.max(text.matches('?').count() / 2)
}

/// The longest chain of operators, along which the compiler recurses too. `&&` and `||` end a
/// chain, because the compiler balances them. Operators in string literals count, as brackets do.
fn longest_chain(text: &str) -> usize {
    let chain = |piece: &str| piece.matches(['+', '-', '*', '/', '%', '[', '.']).count();
    text.split("&&").flat_map(|piece| piece.split("||")).map(chain).max().unwrap_or(0)
}

fn after(report: &mut Report, node: Node<'_>) -> Option<Rate> {
    let rate = scalar::rate_above_zero(report, node)?;
    if rate.amount > UNITS_MAX {
        let message =
            format!("{} strikes are more than the {UNITS_MAX} that a key stores", rate.amount);
        let fix = format!("write at most \"{UNITS_MAX} per {}\"", rate.per);
        report.error("window-too-large", node.location, message, fix);
        return None;
    }
    Some(rate)
}

fn status(report: &mut Report, node: Node<'_>) -> Option<u16> {
    let status = node.integer(report, "a status such as 429")?;
    let valid = u16::try_from(status).ok().filter(|status| (400..600).contains(status));
    if valid.is_none() {
        let message = format!("`{status}` is not a status of a denial");
        report.error("bad-status", node.location, message, "write a status from 400 to 599");
    }
    valid
}

/// Reads a text shown to callers. Its only placeholders are for the time to wait.
pub(super) fn message(report: &mut Report, node: Node<'_>) -> Option<Name> {
    let text = scalar::message(report, node)?;
    let mut is_valid = true;
    for after in text.split('{').skip(1) {
        let name = after.split_once('}').map(|(name, _)| name);
        if !matches!(name, Some("retry_after" | "retry_after_s")) {
            let shown = name.unwrap_or(after);
            let message = format!("unknown placeholder `{{{}}}`", shown.escape_debug());
            let fix = "use {retry_after} for a duration in words or {retry_after_s} for seconds";
            report.error("unknown-placeholder", node.location, message, fix);
            is_valid = false;
        }
    }
    is_valid.then_some(text)
}

/// Reads `watch`.
pub(super) fn watch(report: &mut Report, node: Node<'_>) -> Option<WatchRule> {
    let fields = TableFields::read_item(report, node, &WATCH)?;
    let share = fields.require(report, "share", "\"404\"");
    let share = share.and_then(|node| price::statuses(report, node));
    let of = fields.require(report, "of", "[\"200\", \"404\"]");
    let of = of.and_then(|node| price::statuses(report, node));
    let above = fields.require(report, "above", "\"20%\"").and_then(|node| above(report, node));
    let min =
        fields.require(report, "min", "100").and_then(|node| scalar::whole_number(report, node, 1));
    let per = fields.require(report, "per", "\"24h\"").and_then(|node| per(report, node));
    let ban = fields.require(report, "ban", "\"1h\"").and_then(|node| block::penalty(report, node));
    let share = share?;
    let of = of?;
    if !is_within(&share, &of) {
        let message = "`share` has statuses that are not in `of`, so the ratio could exceed 100%";
        let location = fields.key("share").unwrap_or(fields.location);
        report.error("bad-share", location, message, "add them to `of`");
    }
    Some(WatchRule { share, of, above: above?, min: min?, per: per?, ban: ban? })
}

fn above(report: &mut Report, node: Node<'_>) -> Option<Percent> {
    let share = scalar::percent(report, node)?;
    if share == Percent::from_hundredths(10_000) {
        let message = "no share is ever above 100%";
        report.error("bad-percent", node.location, message, "write less than \"100%\"");
        return None;
    }
    Some(share)
}

fn per(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let per = scalar::duration(report, node)?;
    if per < PER_MIN {
        let message = format!("`{per}` cannot be counted in {SLICES} slices");
        report.error("bad-duration", node.location, message, "write a duration such as \"24h\"");
        return None;
    }
    Some(per)
}

fn is_within(part: &StatusSet, whole: &StatusSet) -> bool {
    part.exact.iter().all(|status| whole.contains(Some(*status)))
        && part.classes.iter().all(|class| whole.classes.contains(class))
}
