//! Slots: hold, confirm, cancel and move them, and read a calendar.

use catraca::core::lock::reply::{Busy, ConfirmReply, MoveReply};
use catraca::core::lock::requests::{AvailabilityQuery, Move};
use catraca::json::{ConfirmedSlot, EndedHold};
use catraca::{Span, Time};
use hyper::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::lease::{
    acquire_response, conflict_response, ended_lease, not_holder, release_response,
};
use super::{ApiRequest, ApiResult, respond_json, respond_json_with_status, with_lease_headers};
use crate::http::bodies::lock_requests::{
    ConfirmSlot, EndLease, HoldSlot, InstantBody, MoveSlot, one_or_several,
};
use crate::http::bodies::lock_responses::MovedSlot;
use crate::http::bodies::problem::Problem;
use crate::http::bodies::schema_values;

/// `POST /v1/slots/hold`.
pub async fn hold(request: &ApiRequest) -> ApiResult {
    let body: HoldSlot = request.json_body()?;
    let terms = request.terms();
    let locks = request.locks();
    let namespace = request.namespace();
    let tenant = request.caller.allowed_tenant(body.tenant.as_deref())?;
    let mut operation = body.into_operation(&terms, tenant)?;
    let request_id = operation.lease.request.as_deref();
    // Derived from the request id if there is one, so that a repeated request finds its lease.
    let id = locks.lease_id(namespace, operation.tenant.as_deref(), request_id)?;
    operation.lease.key = id.key();
    match locks.hold(namespace, &operation).await {
        Ok(attempt) => acquire_response(&id, attempt),
        Err(error) => Err(error.into()),
    }
}

/// `POST /v1/slots/confirm`.
pub async fn confirm(request: &ApiRequest) -> ApiResult {
    let body: ConfirmSlot = request.json_body()?;
    let proof = request.proof(&body.lease_id)?;
    let terms = request.terms();
    let namespace = request.namespace();
    let confirming = request.locks().confirm(namespace, &proof, body.reacquire_if_free, &terms);
    let confirmation = match confirming.await {
        Ok(confirmation) => confirmation,
        Err(error) => return Err(error.into()),
    };
    match confirmation.reply {
        ConfirmReply::Done(lease) => {
            let body = ConfirmedSlot::new(&lease, confirmation.durable);
            Ok(with_lease_headers(respond_json(&body)?, &lease))
        }
        ConfirmReply::Over { state, still_free } => {
            respond_json_with_status(StatusCode::GONE, &EndedHold::new(state, still_free))
        }
        ConfirmReply::NotHolder => Err(not_holder()),
    }
}

/// `POST /v1/slots/cancel`.
pub async fn cancel(request: &ApiRequest) -> ApiResult {
    let body: EndLease = request.json_body()?;
    let proof = request.proof(&body.lease_id)?;
    release_response(request.locks().cancel(request.namespace(), &proof).await?)
}

/// `POST /v1/slots/move`.
pub async fn move_slot(request: &ApiRequest) -> ApiResult {
    let body: MoveSlot = request.json_body()?;
    let terms = request.terms();
    let calendars = match (body.calendar, body.calendars) {
        (None, None) => None,
        (one, many) => Some(one_or_several("calendar", "calendars", one, many)?),
    };
    let start = body.start.time("start")?;
    let end = body.end.time("end")?;
    let proof = request.proof(&body.lease_id)?;
    let operation = Move { calendars, ..Move::new(proof, start, end) };
    let moved = match request.locks().relocate(request.namespace(), operation, &terms).await {
        Ok(moved) => moved,
        Err(error) => return Err(error.into()),
    };
    match moved.reply {
        MoveReply::Done(lease) => {
            Ok(with_lease_headers(respond_json(&MovedSlot::new(&lease))?, &lease))
        }
        // Requests wait only for names, never for slots.
        MoveReply::Conflict(conflict) => conflict_response(&conflict, 0, moved.now),
        MoveReply::Over(state) => Err(ended_lease(state)),
        MoveReply::NotHolder => Err(not_holder()),
    }
}

/// The free and the busy ranges of a calendar. They may change at once: only a hold reserves.
#[derive(Serialize, JsonSchema)]
pub struct CalendarView {
    /// Whether the whole range is free.
    available: bool,
    free: Vec<FreeRange>,
    busy: Vec<BusyRange>,
    /// The `from` of the next request, if the response could not hold all ranges.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    next: Option<String>,
}

/// A free range.
#[derive(Serialize, JsonSchema)]
pub struct FreeRange {
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    start: String,
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    end: String,
}

/// A range that is held or confirmed, with its buffers.
#[derive(Serialize, JsonSchema)]
pub struct BusyRange {
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    start: String,
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    end: String,
    /// `held` or `confirmed`.
    state: &'static str,
    fence: i64,
    /// When the hold ends; null if it is confirmed.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    expires_at: Option<String>,
}

/// `GET /v1/slots`.
pub async fn show_calendar(request: &ApiRequest) -> ApiResult {
    let names = ["calendar", "from", "to", "namespace", "tenant", "min_length_ms", "without"];
    let [calendar, from, to, namespace, tenant, min_length, without] =
        request.query_params(names)?;
    let calendar = calendar.filter(|name| !name.is_empty()).ok_or_else(|| {
        Problem::bad("bad-query", "`calendar` is missing: send the calendar to read")
    })?;
    let from = parse_instant("from", from)?;
    let to = parse_instant("to", to)?;
    if from >= to {
        return Err(Problem::bad("bad-query", "`to` must be after `from`"));
    }
    // `None` is absent, `Some(None)` is invalid.
    let min_length = min_length.map(|text| text.parse::<i64>().ok().filter(|ms| *ms >= 0));
    let min_length = min_length.unwrap_or(Some(0)).ok_or_else(|| {
        Problem::bad("bad-query", "`min_length_ms` must be a whole number of 0 or more")
    })?;
    let without = without.map(|id| request.proof(id).map(|proof| proof.key)).transpose()?;
    let query = AvailabilityQuery {
        tenant: request.caller.allowed_tenant(tenant)?.map(Into::into),
        calendar: calendar.into(),
        from,
        to,
        min_length: Span::from_millis(min_length),
        excluded_lease: without,
    };
    let namespace = request.shown_namespace(namespace).await?;
    let calendar = request.locks().look(&namespace, &query).await?;
    let free_range = |(start, end): &(Time, Time)| FreeRange {
        start: start.to_rfc3339(),
        end: end.to_rfc3339(),
    };
    respond_json(&CalendarView {
        available: calendar.busy.is_empty(),
        free: calendar.free.iter().map(free_range).collect(),
        busy: calendar.busy.iter().map(BusyRange::from).collect(),
        next: calendar.next.map(Time::to_rfc3339),
    })
}

impl From<&Busy> for BusyRange {
    fn from(busy: &Busy) -> Self {
        let end = busy.free_at;
        Self {
            start: busy.start.to_rfc3339(),
            end: busy.end.to_rfc3339(),
            state: busy.state.as_str(),
            fence: busy.fence,
            expires_at: (!end.is_forever()).then(|| end.to_rfc3339()),
        }
    }
}

/// Parses an instant of the query: RFC 3339, or milliseconds since the epoch.
fn parse_instant(name: &str, text: Option<&str>) -> Result<Time, Problem> {
    let absent = || Problem::bad("bad-query", format!("`{name}` is missing: send an instant"));
    let text = text.ok_or_else(absent)?;
    match text.parse::<i64>() {
        // A number is never RFC 3339, so the two cannot be confused.
        Ok(millis) => InstantBody::Millis(millis).time(name),
        Err(_) => InstantBody::Text(text.to_owned()).time(name),
    }
}
