//! Slots: hold, confirm, cancel, move, and a look at a calendar.
//!
//! Must not say that a slot is taken for good before it is.

use axum::http::StatusCode;
use catraca::core::lock::op::{Look, Move, Proof};
use catraca::core::lock::reply::{Busy, Confirmed, Moved};
use catraca::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::problem::Problem;
use super::super::words;
use super::lease::{answered, ended_as, not_holder, over, taken};
use super::shown::{ConfirmedSlot, HoldOver, MovedSlot};
use super::wire::{ConfirmSlot, EndLease, HoldSlot, Instant, MoveSlot, several};
use super::{Call, Told, later, told, told_as, with_lease};

/// `POST /v1/slots/hold`.
pub async fn hold(call: &Call) -> Told {
    let (wire, terms) = (call.wire::<HoldSlot>()?, call.terms());
    let (locks, namespace) = (call.locks(), call.namespace());
    let tenant = call.by.tenant(wire.tenant.as_deref())?;
    let mut asked = wire.read(&terms, tenant)?;
    let request = asked.lease.request.as_deref();
    let id = locks.lease_id(namespace, asked.tenant.as_deref(), request)?;
    asked.lease.key = id.key();
    let (answer, now) = match locks.hold(namespace, &asked, terms.durability).await {
        Ok(answer) => answer,
        Err(error) => return later(error),
    };
    answered(call, &id, answer, now)
}

/// `POST /v1/slots/confirm`.
pub async fn confirm(call: &Call) -> Told {
    let wire: ConfirmSlot = call.wire()?;
    let proof = call.proof(&wire.lease_id)?;
    let again = wire.reacquire_if_free;
    let grace = if again { grace(call, &proof).await? } else { Span::ZERO };
    match call.locks().confirm(call.namespace(), &proof, (again, grace)).await {
        Ok((Confirmed::Done(view), durable)) => {
            Ok(with_lease(told(&ConfirmedSlot::new(&view, durable))?, &view))
        }
        Ok((Confirmed::Over { state, still_free }, _)) => {
            told_as(StatusCode::GONE, &HoldOver::new(state, still_free))
        }
        Ok((Confirmed::NotHolder, _)) => Err(not_holder()),
        Err(error) => later(error),
    }
}

/// `POST /v1/slots/cancel`.
pub async fn cancel(call: &Call) -> Told {
    let wire: EndLease = call.wire()?;
    let proof = call.proof(&wire.lease_id)?;
    ended_as(call.locks().cancel(call.namespace(), &proof).await?)
}

/// `POST /v1/slots/move`.
pub async fn relocate(call: &Call) -> Told {
    let (wire, terms) = (call.wire::<MoveSlot>()?, call.terms());
    let calendars = match (wire.calendar, wire.calendars) {
        (None, None) => None,
        (one, many) => Some(several(("calendar", "calendars"), one, many)?),
    };
    let (start, end) = (wire.start.time("start")?, wire.end.time("end")?);
    let proof = call.proof(&wire.lease_id)?;
    let grace = grace(call, &proof).await?;
    let asked = Move { proof, calendars, start, end, grace }.checked(terms.slot_max)?;
    let locks = call.locks();
    let (moved, now) = match locks.relocate(call.namespace(), &asked, terms.durability).await {
        Ok(moved) => moved,
        Err(error) => return later(error),
    };
    match moved {
        Moved::Done(view) => Ok(with_lease(told(&MovedSlot::new(&view))?, &view)),
        Moved::Conflict(conflict) => taken(&conflict, 0, now),
        Moved::Over(state) => Err(over(state)),
        Moved::NotHolder => Err(not_holder()),
    }
}

/// How long leases of this kind are waited for after the store may have lost some.
async fn grace(call: &Call, proof: &Proof) -> Result<Span, Problem> {
    let kind = call.locks().kind_of(call.namespace(), proof).await?;
    Ok(kind.map_or(Span::ZERO, |kind| call.terms().grace(&kind)))
}

/// A calendar: what is taken and what is free. It is advice; only a hold is a promise.
#[derive(Serialize, JsonSchema)]
pub struct CalendarSeen {
    /// Whether all of the range is free.
    available: bool,
    free: Vec<FreeRange>,
    busy: Vec<BusyRange>,
    /// The `from` of the next look, if there was more than one answer may hold.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    next: Option<String>,
}

/// A range that nobody has.
#[derive(Serialize, JsonSchema)]
pub struct FreeRange {
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    start: String,
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    end: String,
}

/// A range that somebody has, with what is kept free around it.
#[derive(Serialize, JsonSchema)]
pub struct BusyRange {
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    start: String,
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    end: String,
    /// `held` or `confirmed`.
    state: &'static str,
    fence: i64,
    /// When it may be free; null once it is confirmed.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    expires_at: Option<String>,
}

/// `GET /v1/slots`.
pub async fn look(call: &Call) -> Told {
    let names = ["calendar", "from", "to", "tenant", "min_length_ms", "without"];
    let [calendar, from, to, tenant, min_length, without] = call.asked(names)?;
    let calendar = calendar.filter(|name| !name.is_empty()).ok_or_else(|| {
        Problem::bad("bad-query", "`calendar` is missing: name the calendar to look at")
    })?;
    let (from, to) = (instant("from", from)?, instant("to", to)?);
    if from >= to {
        return Err(Problem::bad("bad-query", "`to` must be after `from`"));
    }
    let min_length = min_length.map(|text| text.parse::<i64>().ok().filter(|ms| *ms >= 0));
    let min_length = min_length.unwrap_or(Some(0)).ok_or_else(|| {
        Problem::bad("bad-query", "`min_length_ms` must be a whole number of 0 or more")
    })?;
    let without = without.map(|id| call.proof(id).map(|proof| proof.key)).transpose()?;
    let asked = Look {
        tenant: call.by.tenant(tenant)?.map(Into::into),
        calendar: calendar.into(),
        from,
        to,
        min_length: Span::from_millis(min_length),
        without,
    };
    let seen = call.locks().look(call.namespace(), &asked).await?;
    let range = |(start, end): &(Time, Time)| FreeRange {
        start: start.to_rfc3339(),
        end: end.to_rfc3339(),
    };
    told(&CalendarSeen {
        available: seen.busy.is_empty(),
        free: seen.free.iter().map(range).collect(),
        busy: seen.busy.iter().map(BusyRange::from).collect(),
        next: seen.next.map(Time::to_rfc3339),
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

fn instant(name: &str, text: Option<&str>) -> Result<Time, Problem> {
    let missing = || Problem::bad("bad-query", format!("`{name}` is missing: send an instant"));
    let text = text.ok_or_else(missing)?;
    match text.parse::<i64>() {
        Ok(millis) => Instant::Millis(millis).time(name),
        Err(_) => Instant::Text(text.to_owned()).time(name),
    }
}
