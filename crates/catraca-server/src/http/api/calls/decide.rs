//! The calls that everybody makes: check, settle, credit, and the states of buckets.

use super::super::super::desk::{reset, whoami};
use super::super::super::wire::{LIST_MAX, WireBuckets, WireCheck, WireCredit, WireSettle};
use super::super::{Entry, Given, Group, Of, Takes, json, of, shapes};
use super::{COUNTED, PATH, QUERY, SUBJECT, one_or_many};

/// The headers of a decision that a gateway hands on.
const PASSED: &[&str] =
    &["RateLimit-Policy", "RateLimit", "X-RateLimit-*", "Catraca-Degraded", "Catraca-Ticket"];
const DENIED: &[&str] =
    &["RateLimit-Policy", "RateLimit", "Retry-After", "X-RateLimit-*", "Catraca-Degraded"];

/// Bucket states for whoever prefers `application/xml`.
const XML: Given = Given {
    status: "200",
    about: "In the elements of the DICT with `Accept: application/xml`, names in capitals, \
            unsigned.",
    body: Some(("application/xml", of::<String>)),
    headers: &[],
};

const CHECK: &[&str] =
    &["unknown-gate", "bad-name", "bad-text", "bad-cost", "ticket-too-large", "list-too-long"];

const fn denied(status: &'static str, about: &'static str) -> Given {
    other(status, about, "application/problem+json", of::<shapes::Denial>)
}

/// A denial in another shape, which `[server] denial` may choose.
const fn other(status: &'static str, about: &'static str, kind: &'static str, of: Of) -> Given {
    Given { status, about, body: Some((kind, of)), headers: DENIED }
}

const fn json_denial(status: &'static str) -> Given {
    other(status, "", "application/json", of::<shapes::OtherDenial>)
}

const fn xml_denial(status: &'static str) -> Given {
    other(status, "", "application/problem+xml", of::<String>)
}

pub const CALLS: &[Entry] = &[
    Entry {
        request: "POST /v1/check",
        name: "check",
        group: Group::Decide,
        summary: "Decide, and charge if it passes",
        about: "A decision is always 200, also when it denies. A list is decided one by one, in \
                order; each has its own answer.",
        query: &[],
        takes: Takes::Body(one_or_many::<WireCheck<'static>, LIST_MAX>),
        gives: &[json(of::<shapes::Decisions>)],
        problems: &[SUBJECT, COUNTED, CHECK],
    },
    Entry {
        request: "POST /v1/peek",
        name: "peek",
        group: Group::Decide,
        summary: "Say what a check would decide, and charge nothing",
        about: "No state moves and no block starts. Its numbers are those before a charge.",
        query: &[],
        takes: Takes::Body(one_or_many::<WireCheck<'static>, LIST_MAX>),
        gives: &[json(of::<shapes::Decisions>)],
        problems: &[SUBJECT, COUNTED, CHECK],
    },
    Entry {
        request: "POST /v1/settle",
        name: "settle",
        group: Group::Decide,
        summary: "Turn what a check held into the real cost",
        about: "Prices by the outcome, and may ban. Settling twice gives the first result again.",
        query: &[],
        takes: Takes::Body(of::<WireSettle<'static>>),
        gives: &[json(of::<shapes::Settlement>)],
        problems: &[
            SUBJECT,
            COUNTED,
            &["bad-settle", "bad-ticket", "unknown-reference", "subject-mismatch"],
            &["bad-cost", "bad-status", "bad-name", "bad-text"],
        ],
    },
    Entry {
        request: "POST /v1/credit",
        name: "credit",
        group: Group::Decide,
        summary: "Give back for a late event, such as a payment",
        about: "Once per reference and event, to exactly the buckets that were charged.",
        query: &[],
        takes: Takes::Body(of::<WireCredit<'static>>),
        gives: &[json(of::<shapes::Credited>)],
        problems: &[SUBJECT, COUNTED, &["bad-name", "bad-text"]],
    },
    Entry {
        request: "POST /v1/buckets",
        name: "buckets",
        group: Group::States,
        summary: "List the buckets of a subject",
        about: "Every bucket that would count it, untouched ones full. A POST, so that no \
                identifier lands in a log line.",
        query: &[],
        takes: Takes::Body(of::<WireBuckets<'static>>),
        gives: &[json(of::<shapes::BucketStates>), XML],
        problems: &[SUBJECT, COUNTED],
    },
    Entry {
        request: "POST /v1/buckets/reconcile",
        name: "reconcile",
        group: Group::States,
        summary: "Take an upstream's view of buckets",
        about: "A lower balance wins; a higher one only if nothing has changed since it was seen.",
        query: &[],
        takes: Takes::Body(of::<reset::View>),
        gives: &[json(of::<reset::Reconciled>)],
        problems: &[
            SUBJECT,
            COUNTED,
            &["bad-states", "bad-instant", "bad-cost", "unknown-policy", "not-a-bucket"],
        ],
    },
    Entry {
        request: "POST /v1/buckets/{policy}",
        name: "bucket",
        group: Group::States,
        summary: "Show one bucket of a subject",
        about: "",
        query: &[],
        takes: Takes::Body(of::<WireBuckets<'static>>),
        gives: &[json(of::<shapes::BucketState>), XML],
        problems: &[SUBJECT, COUNTED, PATH, &["unknown-policy", "not-a-bucket"]],
    },
    authorize("ANY /v1/authorize", "authorize", ROUTED),
    authorize("ANY /v1/authorize/{*rest}", "authorizeAppendedPath", ROUTED_APPENDED),
    authorize("ANY /v1/gates/{gate}/authorize", "authorizeGate", NAMED),
    authorize(
        "ANY /v1/gates/{gate}/authorize/{*rest}",
        "authorizeGateAppendedPath",
        NAMED_APPENDED,
    ),
    Entry {
        request: "GET /v1/whoami",
        name: "whoami",
        group: Group::About,
        summary: "Say who asks, and from where, as this server sees it",
        about: "",
        query: &[],
        takes: Takes::Nothing,
        gives: &[json(of::<whoami::Whoami>)],
        problems: &[QUERY],
    },
];

const ROUTED: &str = "For the forward authorization of nginx, Caddy and Traefik. The first \
    `[[route]]` that matches the client's request chooses the gate; X-Forwarded-Method and \
    X-Forwarded-Uri (or X-Original-*) describe that request, and count only when a trusted proxy \
    sends them. The query of this call never chooses a gate. `[server] denial` chooses the shape \
    of a denial.";
const ROUTED_APPENDED: &str = "For Envoy's ext_authz, which appends the client's path to its \
    prefix: the rest of the path, the query and the method are those of the client's request, and \
    the first `[[route]]` that matches it chooses the gate. Counts only for trusted proxies.";
const NAMED: &str = "Decides by this gate, whatever the client's request looks like. Attributes \
    come from the first `[[route]]` of this gate that matches the request that a trusted proxy \
    describes; otherwise the client's address is the only one.";
const NAMED_APPENDED: &str = "The same for proxies that append the client's path, such as Envoy's \
    ext_authz.";

/// The answers of an authorize call.
const AUTHORIZED: &[Given] = &[
    Given { status: "200", about: "It may pass.", body: None, headers: PASSED },
    denied("400", "An attribute is missing, and the policy denies then."),
    denied("403", "It is on the blocklist."),
    denied("429", "It may not pass now."),
    denied("503", "The store does not answer, and the policy denies then."),
    denied("4XX", "It may not pass now, with the status that a ban rule names."),
    denied("5XX", "It may not pass now, with the status that a ban rule names."),
    json_denial("400"),
    json_denial("403"),
    json_denial("429"),
    json_denial("503"),
    json_denial("4XX"),
    json_denial("5XX"),
    xml_denial("400"),
    xml_denial("403"),
    xml_denial("429"),
    xml_denial("503"),
    xml_denial("4XX"),
    xml_denial("5XX"),
];

/// An authorize call; all of them answer alike.
const fn authorize(request: &'static str, name: &'static str, about: &'static str) -> Entry {
    Entry {
        request,
        name,
        group: Group::Decide,
        summary: "Decide for a reverse proxy, by status and headers",
        about,
        query: &[],
        takes: Takes::Nothing,
        gives: AUTHORIZED,
        problems: &[
            SUBJECT,
            COUNTED,
            PATH,
            &["no-gate", "ambiguous-request", "ambiguous-path", "unknown-route", "unknown-gate"],
            &["bad-name", "ticket-too-large"],
        ],
    }
}
