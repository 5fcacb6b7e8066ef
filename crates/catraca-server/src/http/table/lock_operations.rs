//! Endpoints of locks and slots.

use catraca::json;

use super::{AFTER, LIMIT, NAMESPACE, NAMESPACE_ERRORS, ONLY_NAMESPACE, QUERY_ERRORS};
use crate::http::bodies::{lock_requests, lock_responses};
use crate::http::endpoint::{
    Endpoint, EndpointDocs, OperationTag, ParameterType, QueryParameter, RequestBody, ResponseSpec,
    Rights, Role, SchemaFn, ok_json, schema_of,
};
use crate::http::endpoints::locks::{lease, lease_admin, log_call, slot};
use crate::http::endpoints::selftest;

const LEASE_HEADERS: &[&str] = &["X-Lock-*"];
/// Errors of every endpoint.
const STORE_ERRORS: &[&str] = &["lock-store-unavailable", "locks-stopping"];
/// Errors of the namespace of a list, and of the records that know the namespaces.
const LISTED_ERRORS: &[&str] = &["unknown-namespace", "namespace-bound-key", "records-failed"];
const INPUT_ERRORS: &[&str] = &["bad-lock", "fixed-attribute"];
const GRANT_ERRORS: &[&str] =
    &["request-id-reused", "request-expired", "locks-full", "locks-starting", "lock-write-failed"];
const HOLDER_ERRORS: &[&str] =
    &["not-holder", "lease-forced", "lease-expired", "lock-write-failed"];

/// A 200 with a lease in its body and headers.
const fn ok_lease(schema: SchemaFn) -> ResponseSpec {
    ResponseSpec { headers: LEASE_HEADERS, ..ok_json(schema) }
}

/// The 409 with the other holder.
const CONFLICT: ResponseSpec = ResponseSpec {
    status: "409",
    description: "Another holder has it.",
    body: Some(("application/json", schema_of::<json::LockConflict>)),
    headers: &["X-Lock-*", "Retry-After"],
};

/// Documentation without a query, responses and error codes.
const fn lock_docs(
    name: &'static str,
    summary: &'static str,
    description: &'static str,
) -> EndpointDocs {
    EndpointDocs {
        name,
        tag: OperationTag::Locks,
        summary,
        description,
        query: &[],
        responses: &[],
        error_codes: &[],
    }
}

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "POST",
        path: "/v1/locks/acquire",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, lease::acquire(request))),
        body: RequestBody::Required(schema_of::<lock_requests::AcquireLock>),
        docs: EndpointDocs {
            responses: &[ok_lease(schema_of::<json::GrantedLease>), CONFLICT],
            error_codes: &[
                STORE_ERRORS,
                INPUT_ERRORS,
                GRANT_ERRORS,
                &["stale-version", "too-many-waiters"],
            ],
            ..lock_docs(
                "acquire_lock",
                "Acquire a lock on names, all or none",
                "A lease excludes other well-behaved clients until it expires. It does not stop a \
             client that was paused: send the fence with every write, and refuse lower ones. With \
             `wait_ms` it waits in order of arrival.",
            )
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/locks/renew",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, lease::renew(request))),
        body: RequestBody::Required(schema_of::<lock_requests::RenewLock>),
        docs: EndpointDocs {
            responses: &[ok_lease(schema_of::<json::RenewedLease>)],
            error_codes: &[STORE_ERRORS, INPUT_ERRORS, HOLDER_ERRORS, &["max-hold-reached"]],
            ..lock_docs(
                "renew_lock",
                "Renew a lease",
                "Only before it expires: an expired lease cannot be renewed, even if the names are \
             free.",
            )
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/locks/release",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, lease::release(request))),
        body: RequestBody::Required(schema_of::<lock_requests::EndLease>),
        docs: EndpointDocs {
            responses: &[ok_json(schema_of::<json::EndedLease>)],
            error_codes: &[STORE_ERRORS, INPUT_ERRORS],
            ..lock_docs(
                "release_lock",
                "Release a lock",
                "The client that has waited longest is granted the names at once.",
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/locks",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(log_call(request, lease_admin::list(request))),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            query: &[
                ONLY_NAMESPACE,
                QueryParameter {
                    name: "tenant",
                    description: "Only leases of this one.",
                    kind: ParameterType::Text("t1"),
                },
                QueryParameter {
                    name: "kind",
                    description: "Only leases of this one.",
                    kind: ParameterType::Text("payment"),
                },
                QueryParameter {
                    name: "prefix",
                    description: "Only names that begin like this.",
                    kind: ParameterType::Text("order-"),
                },
                AFTER,
                LIMIT,
            ],
            responses: &[ok_json(schema_of::<lease_admin::LockPage>)],
            error_codes: &[STORE_ERRORS, QUERY_ERRORS, LISTED_ERRORS, &["fixed-attribute"]],
            ..lock_docs(
                "locks",
                "List active leases",
                "Oldest first. A `lease_id` is never shown; operators end a lease by its fence. \
                 A key that is bound to no namespace sees those of all keys, and those that the \
                 node has used for locks since its start, also if their keys were removed.",
            )
        },
    },
    Endpoint {
        method: "DELETE",
        path: "/v1/locks",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(log_call(request, lease_admin::clear(request))),
        body: RequestBody::Optional(schema_of::<lease_admin::ClearLocks>),
        docs: EndpointDocs {
            query: &[
                NAMESPACE,
                QueryParameter {
                    name: "tenant",
                    description: "The tenant whose leases are ended.",
                    kind: ParameterType::Text("t1"),
                },
            ],
            responses: &[ok_json(schema_of::<lease_admin::ClearedLocks>)],
            error_codes: &[
                STORE_ERRORS,
                QUERY_ERRORS,
                NAMESPACE_ERRORS,
                &["fixed-attribute", "reason-required", "text-too-long", "bad-text"],
            ],
            ..lock_docs(
                "clear_locks",
                "End all leases of a tenant",
                "Locks and holds; confirmed slots stay.",
            )
        },
    },
    Endpoint {
        method: "DELETE",
        path: "/v1/locks/{fence}",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(log_call(request, lease_admin::force(request))),
        body: RequestBody::Required(schema_of::<lease_admin::ForceLock>),
        docs: EndpointDocs {
            query: &[NAMESPACE],
            responses: &[ok_json(schema_of::<lease_admin::ForcedLock>)],
            error_codes: &[
                STORE_ERRORS,
                QUERY_ERRORS,
                NAMESPACE_ERRORS,
                &[
                    "bad-lock",
                    "unknown-lease",
                    "reason-required",
                    "text-too-long",
                    "bad-text",
                    "bad-path",
                ],
            ],
            ..lock_docs(
                "force_lock",
                "End a lease or a slot by its fence",
                "Its names stay taken for `cool_down_ms`, so that its holder can notice.",
            )
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/slots/hold",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, slot::hold(request))),
        body: RequestBody::Required(schema_of::<lock_requests::HoldSlot>),
        docs: EndpointDocs {
            responses: &[ok_lease(schema_of::<json::GrantedLease>), CONFLICT],
            error_codes: &[STORE_ERRORS, INPUT_ERRORS, GRANT_ERRORS, &["bad-instant"]],
            ..lock_docs(
                "hold_slot",
                "Hold a range of time, in all calendars or none",
                "Ranges are half open: one may begin when another ends. Any overlap is a conflict.",
            )
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/slots/confirm",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, slot::confirm(request))),
        body: RequestBody::Required(schema_of::<lock_requests::ConfirmSlot>),
        docs: EndpointDocs {
            responses: &[
                ok_lease(schema_of::<json::ConfirmedSlot>),
                ResponseSpec {
                    status: "410",
                    description: "The hold has ended.",
                    body: Some(("application/json", schema_of::<json::EndedHold>)),
                    headers: &[],
                },
            ],
            error_codes: &[
                STORE_ERRORS,
                INPUT_ERRORS,
                &["not-holder", "lock-write-failed", "locks-starting"],
            ],
            ..lock_docs(
                "confirm_slot",
                "Confirm a held slot",
                "The confirmation is on disk before the response. Repeating it changes nothing.",
            )
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/slots/cancel",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, slot::cancel(request))),
        body: RequestBody::Required(schema_of::<lock_requests::EndLease>),
        docs: EndpointDocs {
            responses: &[ok_json(schema_of::<json::EndedLease>)],
            error_codes: &[STORE_ERRORS, INPUT_ERRORS, &["lock-write-failed"]],
            ..lock_docs("cancel_slot", "Cancel a slot, held or confirmed", "")
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/slots/move",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, slot::move_slot(request))),
        body: RequestBody::Required(schema_of::<lock_requests::MoveSlot>),
        docs: EndpointDocs {
            responses: &[ok_lease(schema_of::<lock_responses::MovedSlot>), CONFLICT],
            error_codes: &[STORE_ERRORS, INPUT_ERRORS, HOLDER_ERRORS, &["bad-instant"]],
            ..lock_docs("move_slot", "Move a slot", "On a conflict it stays where it was.")
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/slots",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(log_call(request, slot::show_calendar(request))),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            query: &[
                QueryParameter {
                    name: "calendar",
                    description: "The calendar to read.",
                    kind: ParameterType::Text("shop-1/ana"),
                },
                QueryParameter {
                    name: "from",
                    description: "The first instant; RFC 3339 or epoch milliseconds.",
                    kind: ParameterType::Text("2026-01-31T12:00:00Z"),
                },
                QueryParameter {
                    name: "to",
                    description: "The first instant after it.",
                    kind: ParameterType::Text("2026-01-31T18:00:00Z"),
                },
                NAMESPACE,
                QueryParameter {
                    name: "tenant",
                    description: "The tenant of the calendar.",
                    kind: ParameterType::Text("t1"),
                },
                QueryParameter {
                    name: "min_length_ms",
                    description: "Shorter gaps are left out.",
                    kind: ParameterType::Text("1800000"),
                },
                QueryParameter {
                    name: "without",
                    description: "A `lease_id` of your own whose slot counts as free.",
                    kind: ParameterType::Text(""),
                },
            ],
            responses: &[ok_json(schema_of::<slot::CalendarView>)],
            error_codes: &[
                STORE_ERRORS,
                QUERY_ERRORS,
                NAMESPACE_ERRORS,
                INPUT_ERRORS,
                &["bad-instant"],
            ],
            ..lock_docs(
                "calendar",
                "Read a calendar",
                "The busy and the free ranges now. They may change at once: only a hold reserves a \
             range.",
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/stats/locks",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(log_call(request, lease_admin::stats(request))),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            query: &[
                ONLY_NAMESPACE,
                QueryParameter {
                    name: "tenant",
                    description: "Only attempts of this tenant.",
                    kind: ParameterType::Text("t1"),
                },
            ],
            responses: &[ok_json(schema_of::<lock_responses::LockCounts>)],
            error_codes: &[STORE_ERRORS, QUERY_ERRORS, LISTED_ERRORS, &["fixed-attribute"]],
            ..lock_docs(
                "lock_stats",
                "Count lock attempts by outcome",
                "In the namespace of your key, or in all; with a key that fixes `tenant`, only \
                 those of that tenant.",
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/selftest",
        rights: Rights::catalog(Role::Admin),
        handler: |request| Box::pin(log_call(request, selftest::report(request))),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            responses: &[ok_json(schema_of::<selftest::SelfTestReport>)],
            error_codes: &[STORE_ERRORS, QUERY_ERRORS, &["records-failed"]],
            ..lock_docs("selftest_report", "Show counts, leases and settings", "")
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/selftest",
        rights: Rights::catalog(Role::Admin),
        handler: |request| Box::pin(log_call(request, selftest::run(request))),
        body: RequestBody::Required(schema_of::<selftest::SelfTest>),
        docs: EndpointDocs {
            responses: &[ok_json(schema_of::<selftest::SelfTestResult>)],
            error_codes: &[
                STORE_ERRORS,
                &["bad-lock", "bad-instant", "lock-write-failed", "store-failed"],
            ],
            ..lock_docs(
                "selftest",
                "Test limits, locks and bookings",
                "In a namespace of its own: counters and leases of clients are not touched.",
            )
        },
    },
];
