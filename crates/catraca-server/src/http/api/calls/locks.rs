//! Locks and slots.

use super::super::super::locks::{admin, selftest, shown, slot, wire};
use super::super::{Asked, Entry, Given, Group, Kind, Of, Takes, json, of};
use super::{AFTER, LIMIT, QUERY};

const LEASE: &[&str] = &["X-Lock-*"];
/// No call gets past these.
const AWAY: &[&str] = &["lock-store-unavailable", "locks-stopping"];
const INPUT: &[&str] = &["bad-lock", "fixed-attribute"];
const TAKING: &[&str] =
    &["request-id-reused", "request-expired", "locks-full", "locks-starting", "lock-write-failed"];
const HOLDING: &[&str] = &["not-holder", "lease-forced", "lease-expired", "lock-write-failed"];

const fn lease(of: Of) -> Given {
    Given { headers: LEASE, ..json(of) }
}

/// Somebody else has it.
const TAKEN: Given = Given {
    status: "409",
    about: "Somebody else has it.",
    body: Some(("application/json", of::<shown::Taken>)),
    headers: &["X-Lock-*", "Retry-After"],
};

const fn call(
    request: &'static str,
    name: &'static str,
    summary: &'static str,
    about: &'static str,
    takes: Takes,
) -> Entry {
    Entry {
        request,
        name,
        group: Group::Locks,
        summary,
        about,
        query: &[],
        takes,
        gives: &[],
        problems: &[],
    }
}

pub const CALLS: &[Entry] = &[
    Entry {
        gives: &[lease(of::<shown::Granted>), TAKEN],
        problems: &[AWAY, INPUT, TAKING, &["stale-version", "too-many-waiters"]],
        ..call(
            "POST /v1/locks/acquire",
            "acquire_lock",
            "Take names, all or none",
            "A lease keeps well-behaved callers apart until it expires. It does not stop a caller \
             that was paused: send the fence with every write, and refuse lower ones. With \
             `wait_ms` it waits in order of arrival.",
            Takes::Body(of::<wire::AcquireLock>),
        )
    },
    Entry {
        gives: &[lease(of::<shown::Extended>)],
        problems: &[AWAY, INPUT, HOLDING, &["max-hold-reached"]],
        ..call(
            "POST /v1/locks/renew",
            "renew_lock",
            "Make a lease last longer",
            "Only while it lasts: one that is over is never brought back, even if nobody took it.",
            Takes::Body(of::<wire::RenewLock>),
        )
    },
    Entry {
        gives: &[json(of::<shown::EndedLease>)],
        problems: &[AWAY, INPUT],
        ..call(
            "POST /v1/locks/release",
            "release_lock",
            "Give names back",
            "Whoever waited longest is handed them at once.",
            Takes::Body(of::<wire::EndLease>),
        )
    },
    Entry {
        query: &[
            Asked { name: "tenant", about: "Only of this one.", kind: Kind::Text("t1") },
            Asked { name: "kind", about: "Only of this one.", kind: Kind::Text("payment") },
            Asked {
                name: "prefix",
                about: "Only names that begin like this.",
                kind: Kind::Text("order-"),
            },
            AFTER,
            LIMIT,
        ],
        gives: &[json(of::<admin::LockPageShown>)],
        problems: &[AWAY, QUERY, &["fixed-attribute"]],
        ..call(
            "GET /v1/locks",
            "locks",
            "List leases in force",
            "Oldest first, and never with what would let you end them but by their number.",
            Takes::Nothing,
        )
    },
    Entry {
        query: &[Asked { name: "tenant", about: "Whose.", kind: Kind::Text("t1") }],
        gives: &[json(of::<admin::ClearedLocks>)],
        problems: &[
            AWAY,
            QUERY,
            &["fixed-attribute", "reason-required", "text-too-long", "bad-text"],
        ],
        ..call(
            "DELETE /v1/locks",
            "clear_locks",
            "End all that a tenant holds",
            "Locks and holds of this moment; confirmed slots stay.",
            Takes::Maybe(of::<admin::ClearLocks>),
        )
    },
    Entry {
        gives: &[json(of::<admin::ForcedLock>)],
        problems: &[
            AWAY,
            &[
                "bad-lock",
                "unknown-lease",
                "reason-required",
                "text-too-long",
                "bad-text",
                "bad-path",
            ],
        ],
        ..call(
            "DELETE /v1/locks/{fence}",
            "force_lock",
            "End a lease, or a slot, by its number",
            "Its names stay taken for a moment, so that its holder can notice.",
            Takes::Body(of::<admin::EndLock>),
        )
    },
    Entry {
        gives: &[lease(of::<shown::Granted>), TAKEN],
        problems: &[AWAY, INPUT, TAKING, &["bad-instant"]],
        ..call(
            "POST /v1/slots/hold",
            "hold_slot",
            "Hold a range of time, in all calendars or none",
            "Ranges are half open: one may begin when another ends. Any overlap is a conflict.",
            Takes::Body(of::<wire::HoldSlot>),
        )
    },
    Entry {
        gives: &[
            lease(of::<shown::ConfirmedSlot>),
            Given {
                status: "410",
                about: "The hold is over.",
                body: Some(("application/json", of::<shown::HoldOver>)),
                headers: &[],
            },
        ],
        problems: &[AWAY, INPUT, &["not-holder", "lock-write-failed", "locks-starting"]],
        ..call(
            "POST /v1/slots/confirm",
            "confirm_slot",
            "Take what is held for good",
            "It is on disk before it is answered. Again is the same.",
            Takes::Body(of::<wire::ConfirmSlot>),
        )
    },
    Entry {
        gives: &[json(of::<shown::EndedLease>)],
        problems: &[AWAY, INPUT, &["lock-write-failed"]],
        ..call(
            "POST /v1/slots/cancel",
            "cancel_slot",
            "Give a slot back, confirmed or not",
            "",
            Takes::Body(of::<wire::EndLease>),
        )
    },
    Entry {
        gives: &[lease(of::<shown::MovedSlot>), TAKEN],
        problems: &[AWAY, INPUT, HOLDING, &["bad-instant"]],
        ..call(
            "POST /v1/slots/move",
            "move_slot",
            "Put a slot somewhere else",
            "On a conflict it stays where it was.",
            Takes::Body(of::<wire::MoveSlot>),
        )
    },
    Entry {
        query: &[
            Asked { name: "calendar", about: "Which one.", kind: Kind::Text("shop-1/ana") },
            Asked {
                name: "from",
                about: "The first instant; RFC 3339 or epoch milliseconds.",
                kind: Kind::Text("2026-01-31T12:00:00Z"),
            },
            Asked {
                name: "to",
                about: "The first instant after it.",
                kind: Kind::Text("2026-01-31T18:00:00Z"),
            },
            Asked { name: "tenant", about: "Whose calendar.", kind: Kind::Text("t1") },
            Asked {
                name: "min_length_ms",
                about: "Shorter gaps are left out.",
                kind: Kind::Text("1800000"),
            },
            Asked {
                name: "without",
                about: "A `lease_id` of yours that does not count.",
                kind: Kind::Text(""),
            },
        ],
        gives: &[json(of::<slot::CalendarSeen>)],
        problems: &[AWAY, QUERY, INPUT, &["bad-instant"]],
        ..call(
            "GET /v1/slots",
            "calendar",
            "Look at a calendar",
            "What is taken and what is free right now. It is advice: only a hold is a promise.",
            Takes::Nothing,
        )
    },
    Entry {
        query: &[Asked { name: "tenant", about: "Only of this tenant.", kind: Kind::Text("t1") }],
        gives: &[json(of::<shown::LockCounts>)],
        problems: &[AWAY, QUERY, &["fixed-attribute"]],
        ..call(
            "GET /v1/stats/locks",
            "lock_stats",
            "Count what became of locks",
            "In your namespace; with a key that fixes `tenant`, of that tenant alone.",
            Takes::Nothing,
        )
    },
    Entry {
        gives: &[json(of::<selftest::SelfTestReport>)],
        problems: &[AWAY, QUERY],
        ..call(
            "GET /v1/selftest",
            "selftest_report",
            "Show counts, leases and settings",
            "",
            Takes::Nothing,
        )
    },
    Entry {
        gives: &[json(of::<selftest::SelfTested>)],
        problems: &[AWAY, &["bad-lock", "bad-instant", "lock-write-failed", "store-failed"]],
        ..call(
            "POST /v1/selftest",
            "selftest",
            "Try limits, locks and bookings",
            "In a namespace of its own: nobody else's counters and leases are touched.",
            Takes::Body(of::<selftest::SelfTest>),
        )
    },
];
