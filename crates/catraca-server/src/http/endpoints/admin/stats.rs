//! Statistics from the records: decisions by policy and by action, and the most blocked subjects.

use std::collections::BTreeMap;

use catraca::app::PeriodTotals;
use catraca::core::catalog::Catalog;
use catraca::records::Totals;
use catraca::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

use super::{ApiRequest, ApiResult, Problem, parse_instant, parse_limit, records_scope, to_json};
use crate::context::CallerGate;
use crate::http::bodies::record_bodies::{DecisionCounts, TopBlockedSubject};
use crate::http::bodies::schema_values;

/// Default length of the period.
const DAY: Span = Span::from_secs(86_400);
/// Default number of subjects.
const TOP_DEFAULT: u32 = 20;

/// Requests of a period, and the verdicts of each policy.
#[derive(Serialize, JsonSchema)]
pub struct PolicyStats {
    #[serde(flatten)]
    period: Period,
    policies: Vec<PolicyTotals>,
    /// The same verdicts by group of the catalog in use; policies without a group are left out.
    groups: Vec<GroupTotals>,
    /// Gates that checks named since the start and that the catalog does not declare, at most
    /// 1,000. They are not known by namespace: a key that is bound to one gets none.
    unlisted_gates: Vec<String>,
    /// Which program uses which gate, since the start of this node.
    callers: Vec<CallerTotals>,
}

/// Which program uses which gate, since the start of this node.
#[derive(Serialize, JsonSchema)]
pub struct CallerStats {
    callers: Vec<CallerTotals>,
}

/// Checks of one gate by one program, as it names itself in the header `Catraca-Caller`.
#[derive(Serialize, JsonSchema)]
pub struct CallerTotals {
    /// `(invalid)` if the header was not a name, and `(other)` beyond 1,000 pairs in a namespace.
    #[schemars(example = &"shop/1.4")]
    caller: String,
    #[schemars(example = &"login")]
    gate: String,
    /// The namespace of its key.
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = 1000)]
    checks: u64,
    #[schemars(example = 50)]
    denied: u64,
}

/// Verdicts of one policy: a request counts once in each policy that it was checked against.
#[derive(Serialize, JsonSchema)]
pub struct PolicyTotals {
    #[schemars(example = &"login")]
    policy: String,
    #[serde(flatten)]
    counts: DecisionCounts,
}

impl PolicyTotals {
    /// The verdicts of all policies in these totals.
    pub fn of(totals: &PeriodTotals) -> Vec<Self> {
        let rows = totals.policies.iter();
        rows.map(|row| Self { policy: row.name.clone(), counts: DecisionCounts::from(row) })
            .collect()
    }
}

/// Verdicts of the policies of one group: a request counts once in each policy.
#[derive(Serialize, JsonSchema)]
pub struct GroupTotals {
    #[schemars(example = &"payments")]
    group: String,
    #[serde(flatten)]
    counts: DecisionCounts,
}

impl GroupTotals {
    /// The verdicts of each group of a catalog, in the order of names.
    fn of(totals: &PeriodTotals, catalog: &Catalog) -> Vec<Self> {
        let mut groups: BTreeMap<&str, Vec<Totals>> = BTreeMap::new();
        for row in &totals.policies {
            let policy = catalog.find(&row.name).map(|(_, policy)| policy);
            if let Some(group) = policy.and_then(|policy| policy.group.as_deref()) {
                groups.entry(group).or_default().push(row.clone());
            }
        }
        let groups = groups.into_iter();
        groups
            .map(|(group, rows)| Self {
                group: group.to_owned(),
                counts: DecisionCounts::sum(&rows),
            })
            .collect()
    }
}

/// Requests of a period by action, which is the gate they name.
#[derive(Serialize, JsonSchema)]
pub struct ActionStats {
    #[serde(flatten)]
    period: Period,
    actions: Vec<ActionTotals>,
}

/// Requests of one action.
#[derive(Serialize, JsonSchema)]
pub struct ActionTotals {
    #[schemars(example = &"login")]
    action: String,
    #[serde(flatten)]
    counts: DecisionCounts,
}

/// A period of whole minutes, and all requests of it: a check counts once, however many policies it
/// was checked against, and so does each check of a list. A peek does not count.
#[derive(Serialize, JsonSchema)]
pub struct Period {
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    from: String,
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    to: String,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"node")]
    scope: Option<&'static str>,
    #[serde(flatten)]
    counts: DecisionCounts,
}

/// The subjects that were blocked most often.
#[derive(Serialize, JsonSchema)]
pub struct TopBlockedSubjects {
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    from: String,
    subjects: Vec<TopBlockedSubject>,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"node")]
    scope: Option<&'static str>,
}

/// `GET /v1/stats`.
pub async fn by_policy(request: &ApiRequest) -> ApiResult {
    let (from, to) = period(request)?;
    let own = request.caller.bound_namespace();
    let totals = request.app().totals(own, from, to).await?;
    let policies = PolicyTotals::of(&totals);
    let groups = GroupTotals::of(&totals, &request.app().catalog());
    // The totals are those of actions: a request has one action, but a verdict of each policy.
    let period = Period { scope: records_scope(request), ..Period::of(from, to, &totals.actions) };
    let unlisted_gates = match own {
        Some(_) => Vec::new(),
        None => request.app().engine().undeclared_gates(),
    };
    let callers = callers_of(request);
    to_json(&PolicyStats { policies, groups, period, unlisted_gates, callers })
}

/// `GET /v1/stats/callers`.
pub async fn by_caller(request: &ApiRequest) -> ApiResult {
    let [] = request.query_params([])?;
    to_json(&CallerStats { callers: callers_of(request) })
}

/// The programs that an operator may see: those of its namespace, if its key is bound to one.
fn callers_of(request: &ApiRequest) -> Vec<CallerTotals> {
    let pairs = request.context().callers.pairs(request.caller.bound_namespace());
    pairs.iter().map(|pair| CallerTotals::from(&**pair)).collect()
}

/// `GET /v1/stats/actions`.
pub async fn by_action(request: &ApiRequest) -> ApiResult {
    let (from, to) = period(request)?;
    let own = request.caller.bound_namespace();
    let rows = request.app().totals(own, from, to).await?.actions;
    let actions = rows
        .iter()
        .map(|row| ActionTotals { action: row.name.clone(), counts: DecisionCounts::from(row) });
    let period = Period { scope: records_scope(request), ..Period::of(from, to, &rows) };
    to_json(&ActionStats { actions: actions.collect(), period })
}

/// `GET /v1/stats/top-blocked`.
pub async fn top_blocked(request: &ApiRequest) -> ApiResult {
    let [from, limit] = request.query_params(["from", "limit"])?;
    let app = &request.app();
    let from = parse_instant("from", from)?.unwrap_or(app.now().before(DAY));
    let limit = parse_limit(limit, TOP_DEFAULT)?;
    let rows = app.top_blocked(request.caller.bound_namespace(), from, limit).await?;
    let subjects = rows.iter().map(TopBlockedSubject::from).collect();
    let scope = records_scope(request);
    to_json(&TopBlockedSubjects { from: from.to_rfc3339(), subjects, scope })
}

/// The period of the query. Default: the last day.
fn period(request: &ApiRequest) -> Result<(Time, Time), Problem> {
    let [from, to] = request.query_params(["from", "to"])?;
    let now = request.app().now();
    // Rows are whole minutes: one minute ahead includes the current one.
    let to = parse_instant("to", to)?.unwrap_or(now.after(Span::from_secs(60)));
    let from = parse_instant("from", from)?.unwrap_or(now.before(DAY));
    if from >= to {
        return Err(Problem::bad("bad-query", "`from` must be before `to`"));
    }
    Ok((from, to))
}

impl From<&CallerGate> for CallerTotals {
    fn from(pair: &CallerGate) -> Self {
        Self {
            caller: pair.caller.to_string(),
            gate: pair.gate.to_string(),
            namespace: pair.namespace.to_string(),
            checks: pair.checks(),
            denied: pair.denials(),
        }
    }
}

impl Period {
    fn of(from: Time, to: Time, requests: &[Totals]) -> Self {
        let counts = DecisionCounts::sum(requests);
        Self { from: from.to_rfc3339(), to: to.to_rfc3339(), scope: None, counts }
    }
}
