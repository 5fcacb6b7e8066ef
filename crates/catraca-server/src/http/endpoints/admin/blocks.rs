//! Blocks: list, create, show with history, and release.
//!
//! The records hold pseudonyms in place of private values, so a private value is never shown; a
//! search by the real value compares pseudonyms.

use catraca::core::cell::block::Origin;
use catraca::core::time::parse_span;
use catraca::json::origin_name;
use catraca::records::{AttributeValue, BlockQuery, BlockRow};
use catraca::settlement::BlockedKey;
use catraca::{BlockOrder, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdminContext, AdminResult, ApiRequest, Problem, TEXT_MAX, check_text, not_found, parse_number,
    to_json,
};
use crate::http::bodies::record_bodies;
use crate::http::bodies::schema_values;
use crate::http::bodies::wire::OwnedSubject;

/// A page of active blocks.
#[derive(Serialize, JsonSchema)]
pub struct BlockPage {
    blocks: Vec<record_bodies::BlockBody>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
}

/// `GET /v1/blocks`.
pub fn list(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let names = ["namespace", "policy", "attribute", "value", "origin", "after", "limit"];
    let [namespace, policy, attribute, value, origin, after, limit] =
        request.query_params(names)?;
    let defaults = BlockQuery::default();
    let query = BlockQuery {
        namespace: namespace.map(str::to_owned),
        policy: policy.map(str::to_owned),
        about: stored_forms(context, attribute, value)?,
        origin: origin.map(parse_origin).transpose()?,
        after: after.map(parse_cursor).transpose()?,
        limit: parse_number("limit", limit)?.unwrap_or(defaults.limit),
    };
    let page = context.records()?.blocks(&query, context.engine.now())?;
    let blocks = page.rows.iter().map(record_bodies::BlockBody::from).collect();
    to_json(&BlockPage { blocks, next: page.next.map(|next| next.to_string()) })
}

/// The value to search for, in every form that the records may hold: as it is, or as a pseudonym
/// under the current secret or an older one.
fn stored_forms(
    context: &AdminContext<'_>,
    attribute: Option<&str>,
    value: Option<&str>,
) -> Result<Vec<AttributeValue>, Problem> {
    match (attribute, value) {
        (Some(attribute), Some(value)) => Ok(context.engine.stored_names(attribute, value)?),
        (None, None) => Ok(Vec::new()),
        _ => {
            let detail = "send `attribute` and `value` together, such as attribute=ip and \
                          value=198.51.100.7";
            Err(Problem::bad("bad-query", detail))
        }
    }
}

fn parse_origin(word: &str) -> Result<Origin, Problem> {
    let all = [Origin::Excess, Origin::Ban, Origin::Operator, Origin::Upstream];
    let detail = "`origin` is one of excess, ban, operator and upstream";
    let found = all.into_iter().find(|one| origin_name(*one) == word);
    found.ok_or_else(|| Problem::bad("bad-query", detail))
}

fn parse_cursor(text: &str) -> Result<catraca::records::Cursor, Problem> {
    text.parse().map_err(|_| {
        Problem::bad("bad-query", "`after` must be the `next` of the previous page, unchanged")
    })
}

/// A block to create.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBlock {
    #[schemars(example = &"login")]
    policy: String,
    /// Who to block; every key under which the policy counts this subject is blocked.
    subject: OwnedSubject,
    /// How long, such as `30m`, `24h` or `forever`.
    #[schemars(example = &"2h")]
    r#for: String,
    /// Shown with the block.
    #[schemars(length(max = TEXT_MAX), example = &"scanning accounts")]
    reason: Option<String>,
    /// For the audit; `reason` unless given.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// The blocks that an operator created.
#[derive(Serialize, JsonSchema)]
pub struct CreatedBlocks {
    blocks: Vec<BlockedKeyBody>,
    /// Whether it is on disk.
    durable: bool,
}

/// One key that an operator blocked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BlockedKey")]
pub struct BlockedKeyBody {
    /// The block's id; null while the block is not on disk.
    #[schemars(example = 7)]
    id: Option<i64>,
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(example = schema_values::example_subject())]
    subject: record_bodies::SubjectParts,
    /// The first instant after the block; null if it has no end.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    until: Option<String>,
    /// The origin of the block with the later end, if there was a block before.
    #[schemars(with = "schema_values::Origin")]
    origin: &'static str,
    /// Whether this call changed the end.
    changed: bool,
}

/// `POST /v1/blocks`.
pub fn create(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let body: NewBlock = request.json_body()?;
    let reason = check_text("reason", body.reason.as_deref())?;
    let order = BlockOrder {
        namespace: context.caller.namespace(),
        policy: &body.policy,
        subject: context.caller.with_fixed_attributes(body.subject.subject())?,
        span: parse_duration("for", &body.r#for)?,
        reason,
    };
    // The audit has a reason even if the operator sends only the public one.
    let why = check_text("why", body.why.as_deref())?.or(reason);
    let (blocked_keys, durable) = context.run_audited(why, || context.app.block(&order))?;
    let records = context.records()?;
    let bodies = blocked_keys.iter().map(|key| {
        // The records assign ids when they write.
        let row = if durable { records.block_of(key.key)? } else { None };
        Ok(blocked_key_body(&body.policy, key, row.as_ref()))
    });
    let blocks = bodies.collect::<Result<_, Problem>>()?;
    to_json(&CreatedBlocks { blocks, durable })
}

fn blocked_key_body(policy: &str, key: &BlockedKey, row: Option<&BlockRow>) -> BlockedKeyBody {
    BlockedKeyBody {
        id: row.map(|row| row.id),
        policy: policy.to_owned(),
        subject: record_bodies::subject_parts(&key.parts),
        until: record_bodies::end_or_null(key.until),
        origin: origin_name(key.origin),
        changed: key.changed,
    }
}

/// Parses a duration of a body, such as `30m`.
pub fn parse_duration(name: &str, text: &str) -> Result<Span, Problem> {
    parse_span(text).map_err(|error| Problem::bad("bad-duration", format!("`{name}`: {error}")))
}

/// A block with its history.
#[derive(Serialize, JsonSchema)]
pub struct BlockHistory {
    #[serde(flatten)]
    block: record_bodies::BlockBody,
    /// Whether it is active now.
    standing: bool,
    /// Every act, oldest first.
    history: Vec<record_bodies::BlockHistoryEntry>,
}

/// `GET /v1/blocks/{id}`.
pub fn show(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let [] = request.query_params([])?;
    let row = find_block(context, request)?;
    let standing = row.until > context.engine.now();
    let history = context.records()?.history(row.id)?;
    let history = history.iter().map(record_bodies::BlockHistoryEntry::from).collect();
    to_json(&BlockHistory { block: record_bodies::BlockBody::from(&row), standing, history })
}

/// A block that an operator released.
#[derive(Serialize, JsonSchema)]
pub struct ReleasedBlock {
    /// Always true: for a block that has ended already the call fails with `not-blocked`.
    released: bool,
    /// The block before the release.
    block: record_bodies::BlockBody,
    /// When it ended.
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    until: Option<String>,
    /// Whether it is on disk.
    durable: bool,
}

/// `DELETE /v1/blocks/{id}`.
pub fn release(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let reason = request.audit_reason()?;
    let row = find_block(context, request)?;
    let why = check_text("why", reason.why.as_deref())?;
    let (released, durable) = context.run_audited(why, || context.app.release(&row))?;
    if !released {
        return Err(not_found("not-blocked", format!("block {} has ended already", row.id)));
    }
    // Read again: the release has moved the end of the block.
    let after = context.records()?.block(row.id)?;
    let until = after.and_then(|row| record_bodies::end_or_null(row.until));
    to_json(&ReleasedBlock {
        released: true,
        block: record_bodies::BlockBody::from(&row),
        until,
        durable,
    })
}

/// The block whose id is in the path.
fn find_block(context: &AdminContext<'_>, request: &ApiRequest) -> Result<BlockRow, Problem> {
    // The id is repeated in the error, and may be any text.
    let id_text: String = request.path_param(0).chars().take(40).collect();
    let unknown = || not_found("unknown-block", format!("there is no block {id_text}"));
    let id = request.path_param(0).parse().map_err(|_| unknown())?;
    context.records()?.block(id)?.ok_or_else(unknown)
}
