//! The fields of each verb's answer. A misspelt field in an expectation is therefore an error, not
//! a test that cannot fail.
//!
//! A test compares these names with those of real answers.

use catraca::Reason;

/// The type of a field of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldType {
    /// A number, text or boolean.
    Plain,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A table with any names, and plain values.
    Open,
    /// A table with these fields.
    Table(&'static [Field]),
    /// A list of such tables.
    Tables(&'static [Field]),
}

/// A field's name and type.
pub(super) type Field = (&'static str, FieldType);

use FieldType::{Open, Plain, Table, Tables, Word};

/// The reasons of a decision or of one of its rows.
const REASONS: FieldType = Word(Reason::NAMES);
const MODES: FieldType = Word(&["enforce", "shadow", "off"]);
const ORIGINS: FieldType = Word(&["excess", "ban", "operator", "upstream"]);
const STATES: FieldType = Word(&["settled", "again", "expired"]);
const NOT_CREDITED: FieldType =
    Word(&["unknown", "other_subject", "duplicate", "not_settled", "not_creditable"]);

/// check and peek.
pub(super) const DECISION: &[Field] = &[
    ("allowed", Plain),
    ("reason", REASONS),
    ("policy", Plain),
    ("limit", Plain),
    ("remaining", Plain),
    ("reset_after_ms", Plain),
    ("retry_after_ms", Plain),
    ("blocked_until", Plain),
    ("mode", MODES),
    ("degraded", Plain),
    ("revision", Plain),
    ("message", Plain),
    ("ticket", Plain),
    ("unlisted", Plain),
    ("status", Plain),
    ("policies", Tables(ROW)),
    ("settled", Table(SETTLEMENT)),
];

const ROW: &[Field] = &[
    ("policy", Plain),
    ("attribute", Plain),
    ("allowed", Plain),
    ("reason", REASONS),
    ("limit", Plain),
    ("remaining", Plain),
    ("window_ms", Plain),
    ("balance", Plain),
    ("reset_after_ms", Plain),
    ("retry_after_ms", Plain),
    ("blocked_until", Plain),
    ("level", Plain),
    ("charged", Plain),
    ("mode", MODES),
];

/// settle.
pub(super) const SETTLEMENT: &[Field] = &[("state", STATES), ("policies", Tables(SETTLED_ROW))];

const SETTLED_ROW: &[Field] = &[
    ("policy", Plain),
    ("attribute", Plain),
    ("charged", Plain),
    ("balance", Plain),
    ("blocked_until", Plain),
    ("blocked_by", ORIGINS),
    ("reason", Plain),
    ("status", Plain),
    ("message", Plain),
];

/// credit.
pub(super) const CREDIT: &[Field] =
    &[("applied", Plain), ("reason", NOT_CREDITED), ("policies", Tables(GIVEN))];

const GIVEN: &[Field] = &[("policy", Plain), ("amount", Plain)];

/// block.
pub(super) const BLOCK: &[Field] = &[("keys", Tables(KEY))];

const KEY: &[Field] =
    &[("parts", Open), ("blocked_until", Plain), ("origin", ORIGINS), ("changed", Plain)];

/// unblock.
pub(super) const UNBLOCK: &[Field] = &[("was_blocked", Plain)];

/// buckets of a subject.
pub(super) const BUCKETS: &[Field] = &[("states", Tables(BUCKET))];

/// One bucket, by its policy.
pub(super) const BUCKET: &[Field] = &[
    ("policy", Plain),
    ("size", Plain),
    ("balance", Plain),
    ("available", Plain),
    ("refill", Plain),
    ("refill_tokens", Plain),
    ("refill_period_us", Plain),
    ("reset_after_ms", Plain),
    ("retry_after_ms", Plain),
    ("blocked_until", Plain),
];

/// reconcile.
pub(super) const RECONCILE: &[Field] = &[("states", Tables(DRIFT))];

const DRIFT: &[Field] = &[("policy", Plain), ("before", Plain), ("after", Plain)];

/// facts.
pub(super) const FACTS: &[Field] = &[("were_known", Plain)];

/// Verbs whose answer has no fields.
pub(super) const NOTHING: &[Field] = &[];
