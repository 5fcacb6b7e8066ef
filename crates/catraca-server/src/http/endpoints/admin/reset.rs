//! `POST /v1/reset`: reset of one key or of a whole policy.

use catraca::app::TEXT_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, Problem, to_json};
use crate::http::bodies::record_bodies;
use crate::http::bodies::wire::OwnedSubject;

/// What to reset: one key of a policy, or the whole policy.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "policy": "login", "subject": { "ip": "198.51.100.7" }, "why": "a test of ours",
}))]
pub struct ResetRequest {
    policy: String,
    /// The namespace of the subject; required of a key that is bound to none, as soon as there are
    /// several. A whole policy is reset in all of them, and a call that names one is refused.
    namespace: Option<String>,
    /// The subject whose key is reset; without it, the whole policy is.
    subject: Option<OwnedSubject>,
    /// The policy's name again; required to reset the whole policy.
    confirm: Option<String>,
    /// For the audit; required to reset the whole policy.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// The result of a reset.
#[derive(Serialize, JsonSchema)]
pub struct ResetResult {
    /// Always true.
    reset: bool,
    #[schemars(example = &"login")]
    policy: String,
    /// The number of blocks that a reset of the whole policy ended; null for one key, and if they
    /// could not be counted. They have no effect in either case.
    blocks: Option<u64>,
    /// The blocks of other keys that a reset of one key ended, because the same act had made them;
    /// null for a whole policy, and if they could not be looked up.
    members: Option<Vec<record_bodies::BlockMember>>,
    /// The blocks of the same acts that are still active, because the store has other ends than the
    /// records: reset their keys too.
    remaining: Vec<record_bodies::BlockMember>,
    /// Whether it is on disk.
    durable: bool,
}

/// `POST /v1/reset`.
pub async fn reset(request: &ApiRequest) -> ApiResult {
    let ResetRequest { policy, namespace, subject, confirm, why } = request.json_body()?;
    let why = why.as_deref().filter(|why| !why.is_empty());
    let operator = request.operator(why);
    let app = request.app();
    let mut remaining = Vec::new();
    let (blocks, members, durable) = match (subject, confirm, why) {
        (Some(subject), None, _) => {
            let subject = request.caller.with_fixed_attributes(subject.subject())?;
            let namespace = request.act_namespace(namespace.as_deref()).await?;
            let reset = app.reset(&operator, &namespace, &policy, &subject).await?;
            remaining = record_bodies::block_members(&reset.remaining);
            (None, reset.members, reset.durable)
        }
        (None, ..) if namespace.is_some() => return Err(whole_policy_of_one_namespace()),
        (None, Some(again), Some(_)) if again == policy => {
            request.caller.require_all_namespaces()?;
            let reset = app.reset_policy(&operator, &policy).await?;
            (reset.blocks, None, reset.durable)
        }
        (subject, confirm, why) => {
            return Err(confirm_required(subject.is_some(), confirm.as_deref(), why));
        }
    };
    let members = members.as_deref().map(record_bodies::block_members);
    to_json(&ResetResult { reset: true, policy, blocks, members, remaining, durable })
}

/// A whole policy has one epoch for all namespaces.
fn whole_policy_of_one_namespace() -> Problem {
    let detail = "without `subject` the policy is reset in every namespace, so `namespace` is \
                  refused and nothing was reset: send `subject` to reset one key of that \
                  namespace, or leave `namespace` out";
    Problem::bad("confirm-required", detail)
}

/// Why a reset was refused: a whole policy is reset only with `confirm` and `why`.
fn confirm_required(subject: bool, confirm: Option<&str>, why: Option<&str>) -> Problem {
    let detail = match (subject, confirm, why) {
        (true, ..) => "`subject` resets one key and `confirm` the whole policy: send one of them",
        (false, None, _) => {
            "without `subject` the whole policy is reset, for all subjects: repeat its name in \
             `confirm` if that is intended, and send `why`"
        }
        (false, Some(_), None) => {
            "send in `why` the reason for which the whole policy is reset: the audit records it"
        }
        _ => "`confirm` must be equal to `policy`",
    };
    Problem::bad("confirm-required", detail)
}
