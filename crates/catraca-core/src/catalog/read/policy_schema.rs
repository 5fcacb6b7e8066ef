//! The fields of `[policy.NAME]`.

use super::ban::{BAN, WATCH};
use super::block::PENALTY_OR_NONE;
use super::bounds::{BANS_MAX, HOLD_MAX, REMEMBER_MAX, TIERS_MAX};
use super::key_parts;
use super::policy::{MODES, ON_FAILURE, ON_MISSING};
use super::price;
use super::schema;
use super::tier::TIER;
use crate::limit::OPTION_FIELDS;
use crate::located::schema::{join, words};
use crate::located::{DefaultValue, FieldSchema, TableSchema, ValueSchema};
use crate::request::COST_MAX;

/// `block` of a policy or of a tier.
pub(super) const BLOCK: FieldSchema = FieldSchema::new(
    "block",
    PENALTY_OR_NONE,
    "a request over the limit blocks the key for this long; `{ first, factor, max, forget }` makes \
     repeated blocks longer, see below; lint warns about a block that is shorter than the window",
);

/// The fields of a policy.
pub(super) static POLICY: TableSchema = TableSchema { name: "policy", fields: &FIELDS };

static FIELDS: [FieldSchema; KEY_FIELDS.len() + OPTION_FIELDS.len() + OTHER_FIELDS.len()] =
    join(&[&KEY_FIELDS, &OPTION_FIELDS, &OTHER_FIELDS]);

const KEY_FIELDS: [FieldSchema; 3] = [
    FieldSchema::new("group", schema::NAME, "a label for operators, without effect on decisions"),
    key_parts::BY,
    key_parts::EACH,
];

static OTHER_FIELDS: [FieldSchema; 19] = [
    BLOCK,
    price::COST,
    price::CREDITS,
    FieldSchema::new("debt", ValueSchema::Flag, "`true`: the balance may become negative")
        .or(DefaultValue::Flag(false)),
    FieldSchema::new(
        "tier",
        ValueSchema::List { of: &ValueSchema::Table(&TIER), most: TIERS_MAX },
        "[other numbers](#tiers) for some callers; the first tier that matches applies",
    ),
    FieldSchema::new(
        "otherwise",
        schema::NAME,
        "the policy used instead if a key attribute is missing, or if no tier matches and the \
             policy has no limit of its own; a chain of at most 4 policies, without a cycle",
    ),
    FieldSchema::new(
        "on_missing",
        ValueSchema::Word(|| words(&ON_MISSING)),
        "what happens if a key attribute is missing: `error` refuses the call, `skip` ignores \
             the policy, `deny` denies with reason `missing`",
    )
    .or(DefaultValue::Text("error")),
    FieldSchema::new(
        "mode",
        ValueSchema::Word(|| words(&MODES)),
        "`enforce`: the policy decides; `shadow`: it is evaluated and counted but never \
             decides; `off`: it is not evaluated",
    )
    .or(DefaultValue::Text("enforce")),
    FieldSchema::new(
        "on_failure",
        ValueSchema::Word(|| words(&ON_FAILURE)),
        "what happens when a [shared store](shared.md#when-the-store-fails) fails, or when \
             [memory has no room](serve.md#sizing-memory-and-floods-of-new-keys) for a new counter",
    )
    .or(DefaultValue::Text("local")),
    FieldSchema::new(
        "count_denied",
        ValueSchema::Flag,
        "`true`: requests that this policy's limit denies count too, but not while a block is \
             active; `window` and `fixed` only",
    )
    .or(DefaultValue::Flag(false)),
    FieldSchema::new(
        "message",
        ValueSchema::Text,
        "a text for the denied caller; `{retry_after}` becomes a duration in words, \
             `{retry_after_s}` seconds",
    ),
    FieldSchema::new(
        "low_water",
        ValueSchema::Percent,
        "an event is reported when less than this share of the limit remains",
    ),
    FieldSchema::new(
        "margin",
        ValueSchema::Percent,
        "scales the `size` of a bucket, rounded down, at least 1; use it to stay below an \
             upstream's limit; buckets only",
    ),
    FieldSchema::new(
        "reserve",
        ValueSchema::Integer { least: 0, most: COST_MAX },
        "the units held at check if the cost is known only at settle and the request has no \
             cost; 0 holds nothing but needs one free unit",
    )
    .or(DefaultValue::Integer(1)),
    FieldSchema::new(
        "hold",
        ValueSchema::duration_up_to(HOLD_MAX),
        "how long an admitted check can be settled, and how long a request in flight keeps its \
             lease",
    )
    .or(DefaultValue::Absent("`\"60s\"`; `\"10m\"` if the policy has no limit")),
    FieldSchema::new(
        "remember",
        ValueSchema::duration_up_to(REMEMBER_MAX),
        "how long the `ref` of a check is stored for settles and credits",
    )
    .or(DefaultValue::Text("24h")),
    FieldSchema::new(
        "ban",
        ValueSchema::List { of: &ValueSchema::Table(&BAN), most: BANS_MAX },
        "rules that start a block because of an outcome; see below",
    ),
    FieldSchema::new(
        "ban_storm",
        ValueSchema::Rate,
        "after so many bans within the time, the rules run in shadow mode for 10 minutes, with a \
             warning in the log and a metric; a settle that bans counts once, however many keys it \
             blocks",
    ),
    FieldSchema::new(
        "watch",
        ValueSchema::Table(&WATCH),
        "`{ share, of, above, min, per, ban }`: bans a key if, among at least `min` outcomes \
             in `per` with a status in `of`, more than `above` have a status in `share`",
    ),
];
