//! Blocks: list, create, show with history, and release.
//!
//! The application shows pseudonyms in place of private values; a search by the real value compares
//! pseudonyms.

use catraca::app::{self, TEXT_MAX};
use catraca::core::batch::BlockReply;
use catraca::core::cell::block::Origin;
use catraca::core::time::parse_span;
use catraca::json::origin_name;
use catraca::records::{AttributeValue, BlockId, BlockQuery, BlockStates, Incomplete, SubjectKey};
use catraca::{BlockProposal, Span};
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, Problem, parse_limit, records_scope, to_json};
use crate::auth::Role;
use crate::http::bodies::record_bodies;
use crate::http::bodies::schema_values;
use crate::http::bodies::wire::OwnedSubject;

/// A page of blocks.
#[derive(Serialize, JsonSchema)]
pub struct BlockPage {
    blocks: Vec<ListedBlock>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
    /// Why the newest entries may be missing; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"node")]
    scope: Option<&'static str>,
}

/// A block, or a ban of several identities.
#[derive(Serialize, JsonSchema)]
pub struct ListedBlock {
    #[serde(flatten)]
    block: record_bodies::BlockBody,
    /// The other active blocks that the same act made; a release ends them too.
    members: Vec<record_bodies::BlockMember>,
}

/// `GET /v1/blocks`.
pub async fn list(request: &ApiRequest) -> ApiResult {
    let names = [
        "state",
        "namespace",
        "policy",
        "attribute",
        "value",
        "origin",
        "reason",
        "after",
        "limit",
    ];
    let [state, namespace, policy, attribute, value, origin, reason, after, limit] =
        request.query_params(names)?;
    let defaults = BlockQuery::default();
    if let Some(policy) = policy {
        request.app().check_policy_filter(policy).await?;
    }
    let query = BlockQuery {
        states: state.map(parse_states).transpose()?.unwrap_or_default(),
        namespace: request.entry_namespace(namespace).await?,
        policy: policy.map(str::to_owned),
        about: stored_forms(request, attribute, value).await?,
        origin: origin.map(parse_origin).transpose()?,
        reason: reason.map(str::to_owned),
        after: after.map(parse_cursor).transpose()?,
        limit: parse_limit(limit, defaults.limit)?,
    };
    let page = request.app().blocks(query).await?;
    let blocks = page.rows.iter().map(|listed| ListedBlock {
        block: record_bodies::BlockBody::new(&listed.row, request.app()),
        members: record_bodies::block_members(&listed.members),
    });
    let blocks = blocks.collect();
    let next = page.next.map(|next| next.to_string());
    let incomplete = page.incomplete.map(Incomplete::as_str);
    to_json(&BlockPage { blocks, next, incomplete, scope: records_scope(request) })
}

/// The value to search for, in every form that the records may hold: as it is, or as a pseudonym
/// under the current secret or an older one.
async fn stored_forms(
    request: &ApiRequest,
    attribute: Option<&str>,
    value: Option<&str>,
) -> Result<Vec<AttributeValue>, Problem> {
    match (attribute, value) {
        (Some(attribute), Some(value)) => {
            Ok(request.app().values_to_find(attribute, value).await?)
        }
        (None, None) => Ok(Vec::new()),
        _ => {
            let detail = "send `attribute` and `value` together, such as attribute=ip and \
                          value=198.51.100.7";
            Err(Problem::bad("bad-query", detail))
        }
    }
}

fn parse_states(word: &str) -> Result<BlockStates, Problem> {
    match word {
        "active" => Ok(BlockStates::Active),
        "ended" => Ok(BlockStates::Ended),
        "all" => Ok(BlockStates::All),
        _ => Err(Problem::bad("bad-query", "`state` is one of active, ended and all")),
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
    /// The namespace; required of a key that is bound to none, as soon as there are several.
    namespace: Option<String>,
    /// Who to block; every key under which the policy counts this subject is blocked.
    subject: OwnedSubject,
    /// How long, such as `30m`, `24h` or `forever`.
    #[schemars(example = &"2h")]
    r#for: String,
    /// Shown with the block.
    #[schemars(length(max = TEXT_MAX), example = &"scanning accounts")]
    reason: Option<String>,
    /// For the audit. Default: `reason`.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// The blocks that an operator created.
#[derive(Serialize, JsonSchema)]
pub struct CreatedBlocks {
    blocks: Vec<BlockedKeyBody>,
    /// Whether it is on disk.
    durable: bool,
    /// Other nodes that do not know of it yet; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes_behind: Vec<String>,
}

/// One key that an operator blocked.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BlockedKey")]
pub struct BlockedKeyBody {
    /// The block's id; null while the block is not on disk.
    #[schemars(example = schema_values::BLOCK_ID)]
    id: Option<String>,
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(example = schema_values::example_subject())]
    subject: record_bodies::SubjectParts,
    /// The first instant after the block; null if it has no end.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    until: Option<String>,
    /// The origin of the block with the later end, if there was a block before.
    #[schemars(with = "catraca::json::OriginWord")]
    origin: &'static str,
    /// Whether this call changed the end.
    changed: bool,
}

/// `POST /v1/blocks`.
pub async fn create(request: &ApiRequest) -> ApiResult {
    let body: NewBlock = request.json_body()?;
    let subject = request.caller.with_fixed_attributes(body.subject.subject())?;
    let span = parse_duration("for", &body.r#for)?;
    let proposal = BlockProposal::by_operator(span, body.reason.as_deref());
    let operator = request.operator(body.why.as_deref());
    let namespace = request.act_namespace(body.namespace.as_deref()).await?;
    let app = request.app();
    let created = app.block(&operator, &namespace, &body.policy, &subject, proposal).await?;
    let blocks = created.blocks.iter().map(|(key, reply, id)| blocked_key_body(key, reply, *id));
    let durable = created.durable;
    let nodes_behind = app.nodes_behind(durable);
    to_json(&CreatedBlocks { blocks: blocks.collect(), durable, nodes_behind })
}

fn blocked_key_body(key: &SubjectKey, reply: &BlockReply, id: Option<BlockId>) -> BlockedKeyBody {
    BlockedKeyBody {
        id: id.map(|id| id.to_string()),
        namespace: key.namespace.clone(),
        policy: key.policy.clone(),
        subject: record_bodies::subject_parts(&key.parts),
        until: record_bodies::end_or_null(reply.block.until),
        origin: origin_name(reply.block.origin),
        changed: reply.changed,
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
    /// The active blocks that the same acts made; a release ends them too.
    members: Vec<record_bodies::BlockMember>,
    /// Every act, oldest first.
    history: Vec<record_bodies::BlockHistoryEntry>,
    /// Why the newest entries may be missing; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"node")]
    scope: Option<&'static str>,
}

/// `GET /v1/blocks/{id}`.
pub async fn show(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    let within = request.caller.bound_namespace();
    let found = request.app().block_with_history(block_id(request)?, within).await?;
    let history = found.history.iter().map(record_bodies::BlockHistoryEntry::from).collect();
    let block = record_bodies::BlockBody::new(&found.row, request.app());
    let members = record_bodies::block_members(&found.members);
    let incomplete = found.incomplete.map(Incomplete::as_str);
    to_json(&BlockHistory { block, members, history, incomplete, scope: records_scope(request) })
}

/// What to release, and why.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Whether only this block ends, and not those that the same act made.
    #[serde(default)]
    only: bool,
    /// Whether the keys of the ended blocks are reset too: their counters, which may still be full,
    /// and their escalation levels.
    #[serde(default)]
    reset_counters: bool,
    /// For the audit; required from a key of role `support`.
    #[schemars(length(max = TEXT_MAX), example = &"the caller was wronged")]
    why: Option<String>,
}

/// What a release of a block for an excess does not end.
const COUNTERS_KEPT: &str = "the counters are unchanged: while the limit is exhausted, the next \
                             check is denied and blocks again; release with `reset_counters` to \
                             prevent that";

/// A block that an operator released.
#[derive(Serialize, JsonSchema)]
pub struct ReleasedBlock {
    /// Always true: for a block that has ended already the call fails with `not-blocked`.
    released: bool,
    /// The block before the release.
    block: record_bodies::BlockBody,
    /// The blocks that were released with it: the same act had made them.
    members: Vec<record_bodies::BlockMember>,
    /// The blocks of the same act that are still active, because the store has other ends than the
    /// records: release each by its id, or reset its key.
    remaining: Vec<record_bodies::BlockMember>,
    /// Whether the counters were reset too. If `reset_counters` was true and this is false, the
    /// reset failed, and `note` says why; the release is done.
    counters_reset: bool,
    /// What may block the caller again at the next check; absent if nothing of this block does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &COUNTERS_KEPT)]
    note: Option<String>,
    /// When it ended; null if the records could not be read after the release.
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    until: Option<String>,
    /// Why `until` is unknown; absent if the records could be read after the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
    /// Whether it is on disk.
    durable: bool,
}

/// `DELETE /v1/blocks/{id}`.
pub async fn release(request: &ApiRequest) -> ApiResult {
    let body =
        if request.body.is_empty() { ReleaseRequest::default() } else { request.json_body()? };
    let why = body.why.as_deref().filter(|why| !why.trim().is_empty());
    if why.is_none() && request.caller.role() == Role::Support {
        let detail = "a key of role support releases with a reason: send `why`, for the audit";
        return Err(Problem::bad("reason-required", detail));
    }
    let operator = request.operator(why);
    let within = request.caller.bound_namespace();
    let app = request.app();
    let id = block_id(request)?;
    let released = match body.reset_counters {
        true => app.release_and_reset(&operator, id, within, body.only).await?,
        false => app.release(&operator, id, within, body.only).await?,
    };
    let note = counters_note(&released);
    let unread = |error: &String| format!("the block is released; its new end is unknown: {error}");
    let incomplete = released.read_error.as_ref().map(unread);
    to_json(&ReleasedBlock {
        released: true,
        block: record_bodies::BlockBody::at(&released.before, app, released.at),
        members: record_bodies::block_members(&released.members),
        remaining: record_bodies::block_members(&released.remaining),
        counters_reset: released.counters_reset,
        note,
        until: released.after.and_then(|row| record_bodies::end_or_null(row.block.until)),
        incomplete,
        durable: released.durable,
    })
}

/// What a release has left in the counters.
fn counters_note(released: &app::ReleasedBlock) -> Option<String> {
    if let Some(error) = &released.reset_error {
        return Some(format!(
            "the block is released, but its counters could not be reset: {error}; until an \
             administrator resets the key with `POST /v1/reset`, the next check may be denied and \
             block again"
        ));
    }
    let is_excess = released.before.block.origin == Origin::Excess;
    (is_excess && !released.counters_reset).then(|| COUNTERS_KEPT.to_owned())
}

/// The id of the block in the path.
fn block_id(request: &ApiRequest) -> Result<BlockId, Problem> {
    request.path_param(0).parse().map_err(|_| {
        // The id is repeated in the error, and may be any text.
        let text: String = request.path_param(0).chars().take(40).collect();
        let detail = format!("there is no block {text}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-block", detail)
    })
}
