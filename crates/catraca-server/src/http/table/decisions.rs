//! Endpoints of clients: check, settle, credit, bucket states and authorize.

use super::{
    COUNTED_ERRORS, NAMESPACE, NAMESPACE_ERRORS, PATH_ERRORS, QUERY_ERRORS, SUBJECT_ERRORS,
};
use catraca::app::CHECKS_MAX;
use catraca::http_response::ProblemDenial;
use catraca::json::{BucketStateBody, CreditBody, DecisionBody, SettlementBody};

use crate::http::bodies::denial;
use crate::http::bodies::wire::{WireBuckets, WireCheck, WireCredit, WireSettle};
use crate::http::endpoint::{
    ANY_METHOD, Endpoint, EndpointDocs, OperationTag, RequestBody, ResponseSpec, Rights, Role,
    SchemaFn, list_of, ok_json, schema_of,
};
use crate::http::endpoints::admin::whoami;
use crate::http::endpoints::{authorize, check, credit_and_buckets, reconcile, settle};

/// The check of one request. Its latency is measured on its own.
pub const CHECK_PATH: &str = "/v1/check";

/// Headers of an allowed request, which a gateway forwards.
const ALLOWED_HEADERS: &[&str] =
    &["RateLimit-Policy", "RateLimit", "X-RateLimit-*", "Catraca-Degraded", "Catraca-Ticket"];
/// Headers of a denied request.
const DENIED_HEADERS: &[&str] =
    &["RateLimit-Policy", "RateLimit", "Retry-After", "X-RateLimit-*", "Catraca-Degraded"];

/// Bucket states for clients that accept `application/xml`.
const XML_STATES: ResponseSpec = ResponseSpec {
    status: "200",
    description: "In the elements of the DICT with `Accept: application/xml`, names in capitals, \
                  unsigned.",
    body: Some(("application/xml", schema_of::<String>)),
    headers: &[],
};

/// Errors of a token, if the route reads its claims.
const JWT_ERRORS: &[&str] = &[
    "jwt-algorithm",
    "jwt-audience",
    "jwt-expired",
    "jwt-issuer",
    "jwt-malformed",
    "jwt-not-yet-valid",
    "jwt-signature",
    "jwt-unknown-key",
];

/// Errors of a check.
const CHECK_ERRORS: &[&str] =
    &["unknown-gate", "bad-name", "bad-text", "bad-cost", "ticket-too-large"];

/// A denial as problem+json, the default format.
const fn problem_denial(status: &'static str, description: &'static str) -> ResponseSpec {
    denial_in(status, description, "application/problem+json", schema_of::<ProblemDenial<'static>>)
}

/// A denial in another format, which `[server] denial` may choose.
const fn denial_in(
    status: &'static str,
    description: &'static str,
    media_type: &'static str,
    schema: SchemaFn,
) -> ResponseSpec {
    ResponseSpec { status, description, body: Some((media_type, schema)), headers: DENIED_HEADERS }
}

const fn json_denial(status: &'static str) -> ResponseSpec {
    denial_in(status, "", "application/json", schema_of::<denial::JsonDenial>)
}

const fn xml_denial(status: &'static str) -> ResponseSpec {
    denial_in(status, "", "application/problem+xml", schema_of::<String>)
}

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "POST",
        path: CHECK_PATH,
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(check::check(request)),
        body: RequestBody::Required(schema_of::<WireCheck<'static>>),
        docs: EndpointDocs {
            name: "check",
            tag: OperationTag::Decide,
            summary: "Decide, and charge if it passes",
            description: "A decision is always 200, also a denial.",
            query: &[],
            responses: &[ok_json(schema_of::<DecisionBody<'static>>)],
            error_codes: &[SUBJECT_ERRORS, COUNTED_ERRORS, CHECK_ERRORS],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/check/batch",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(check::check_batch(request)),
        body: RequestBody::Required(list_of::<WireCheck<'static>, CHECKS_MAX>),
        docs: EndpointDocs {
            name: "check_batch",
            tag: OperationTag::Decide,
            summary: "Decide a list of checks, one after the other",
            description: "Each is decided on its own, and has its decision or its problem at its \
                          position.",
            query: &[],
            responses: &[ok_json(list_of::<check::DecisionOrProblem<'static>, CHECKS_MAX>)],
            error_codes: &[SUBJECT_ERRORS, COUNTED_ERRORS, CHECK_ERRORS, &["list-too-long"]],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/peek",
        rights: Rights::namespace(Role::Read),
        handler: |request| Box::pin(check::peek(request)),
        body: RequestBody::Required(schema_of::<WireCheck<'static>>),
        docs: EndpointDocs {
            name: "peek",
            tag: OperationTag::Decide,
            summary: "Show what a check would decide, and charge nothing",
            description: "No state changes and no block starts. The numbers are those before a \
                          charge.",
            query: &[NAMESPACE],
            responses: &[ok_json(schema_of::<DecisionBody<'static>>)],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                CHECK_ERRORS,
                QUERY_ERRORS,
                NAMESPACE_ERRORS,
            ],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/settle",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(settle::settle(request)),
        body: RequestBody::Required(schema_of::<WireSettle<'static>>),
        docs: EndpointDocs {
            name: "settle",
            tag: OperationTag::Decide,
            summary: "Replace the cost that a check held by the real cost",
            description: "Charges by the outcome, and may ban. A repeated settle returns the \
                          first result.",
            query: &[],
            responses: &[ok_json(schema_of::<SettlementBody<'static>>)],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                &["bad-settle", "bad-ticket", "unknown-reference", "subject-mismatch"],
                &["bad-cost", "bad-status", "bad-name", "bad-text"],
            ],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/credit",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(credit_and_buckets::credit(request)),
        body: RequestBody::Required(schema_of::<WireCredit<'static>>),
        docs: EndpointDocs {
            name: "credit",
            tag: OperationTag::Decide,
            summary: "Credit buckets for a later event, such as a payment",
            description: "Once per reference and event, to exactly the buckets that were charged.",
            query: &[],
            responses: &[ok_json(schema_of::<CreditBody<'static>>)],
            error_codes: &[SUBJECT_ERRORS, COUNTED_ERRORS, &["bad-name", "bad-text"]],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/buckets",
        rights: Rights::namespace(Role::Read),
        handler: |request| Box::pin(credit_and_buckets::buckets(request)),
        body: RequestBody::Required(schema_of::<WireBuckets<'static>>),
        docs: EndpointDocs {
            name: "buckets",
            tag: OperationTag::States,
            summary: "List the buckets of a subject",
            description: "Every bucket that would count it, untouched ones full. A POST, so that \
                          no identifier lands in a log line.",
            query: &[NAMESPACE],
            responses: &[
                ok_json(schema_of::<credit_and_buckets::BucketStates<'static>>),
                XML_STATES,
            ],
            error_codes: &[SUBJECT_ERRORS, COUNTED_ERRORS, QUERY_ERRORS, NAMESPACE_ERRORS],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/buckets/reconcile",
        rights: Rights::namespace(Role::Check),
        handler: |request| Box::pin(reconcile::reconcile(request)),
        body: RequestBody::Required(schema_of::<reconcile::ReconcileRequest>),
        docs: EndpointDocs {
            name: "reconcile",
            tag: OperationTag::States,
            summary: "Reconcile buckets with the balances of an upstream",
            description: "A lower balance is taken over; a higher one only if the bucket has not \
                          changed since. `skipped` lists states for which there is no bucket here.",
            query: &[],
            responses: &[ok_json(schema_of::<reconcile::ReconcileResult>)],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                &["bad-states", "bad-instant", "bad-cost", "unknown-policy", "not-a-bucket"],
            ],
        },
    },
    Endpoint {
        method: "POST",
        path: "/v1/buckets/{policy}",
        rights: Rights::namespace(Role::Read),
        handler: |request| Box::pin(credit_and_buckets::bucket(request)),
        body: RequestBody::Required(schema_of::<WireBuckets<'static>>),
        docs: EndpointDocs {
            name: "bucket",
            tag: OperationTag::States,
            summary: "Show one bucket of a subject",
            description: "",
            query: &[NAMESPACE],
            responses: &[ok_json(schema_of::<BucketStateBody<'static>>), XML_STATES],
            error_codes: &[
                SUBJECT_ERRORS,
                COUNTED_ERRORS,
                QUERY_ERRORS,
                NAMESPACE_ERRORS,
                PATH_ERRORS,
                &["unknown-policy", "not-a-bucket"],
            ],
        },
    },
    authorize_endpoint("/v1/authorize", "authorize", BY_ROUTE),
    authorize_endpoint("/v1/authorize/{*rest}", "authorizeAppendedPath", BY_ROUTE_APPENDED),
    authorize_endpoint("/v1/gates/{gate}/authorize", "authorizeGate", BY_GATE),
    authorize_endpoint(
        "/v1/gates/{gate}/authorize/{*rest}",
        "authorizeGateAppendedPath",
        BY_GATE_APPENDED,
    ),
    Endpoint {
        method: "GET",
        path: "/v1/whoami",
        rights: Rights::namespace(Role::Read),
        handler: |request| Box::pin(whoami::whoami(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "whoami",
            tag: OperationTag::Server,
            summary: "Show the caller and its address, as this server sees them",
            description: "",
            query: &[],
            responses: &[ok_json(schema_of::<whoami::WhoamiBody>)],
            error_codes: &[QUERY_ERRORS],
        },
    },
];

const BY_ROUTE: &str = "For the forward authorization of nginx, Caddy and Traefik. The first \
    `[[route]]` that matches the client's request chooses the gate; X-Forwarded-Method and \
    X-Forwarded-Uri (or X-Original-*) describe that request, and count only when a trusted proxy \
    sends them. The query of this call never chooses a gate. `[server] denial` chooses the format \
    of a denial.";
const BY_ROUTE_APPENDED: &str = "For Envoy's ext_authz, which appends the client's path to its \
    prefix: the rest of the path, the query and the method are those of the client's request, and \
    the first `[[route]]` that matches it chooses the gate. Counts only for trusted proxies.";
const BY_GATE: &str = "Decides by this gate, independently of the client's request. Attributes \
    come from the first `[[route]]` of this gate that matches the request that a trusted proxy \
    describes; without one, the client's address is the only attribute.";
const BY_GATE_APPENDED: &str = "The same for proxies that append the client's path, such as \
    Envoy's ext_authz.";

/// The responses of an authorize operation.
const AUTHORIZE_RESPONSES: &[ResponseSpec] = &[
    ResponseSpec {
        status: "200",
        description: "The request may pass.",
        body: None,
        headers: ALLOWED_HEADERS,
    },
    problem_denial("400", "An attribute is missing, and the policy denies in that case."),
    problem_denial("403", "The subject is on the blocklist."),
    problem_denial("429", "The request may not pass now."),
    problem_denial("503", "The store is unavailable, and the policy denies in that case."),
    problem_denial("4XX", "The request may not pass now; the status is that of a ban rule."),
    problem_denial("5XX", "The request may not pass now; the status is that of a ban rule."),
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

/// An endpoint for the authorize calls of proxies; all of them have the same responses.
const fn authorize_endpoint(
    path: &'static str,
    name: &'static str,
    description: &'static str,
) -> Endpoint {
    let docs = EndpointDocs {
        name,
        tag: OperationTag::Decide,
        summary: "Decide for a reverse proxy, by status and headers",
        description,
        query: &[],
        responses: AUTHORIZE_RESPONSES,
        error_codes: &[
            SUBJECT_ERRORS,
            COUNTED_ERRORS,
            PATH_ERRORS,
            &["no-gate", "ambiguous-request", "ambiguous-path", "unknown-route", "unknown-gate"],
            &["bad-name", "bad-cost", "ticket-too-large", "unmapped-gate", "bad-request-value"],
            &["request-body-unread"],
            JWT_ERRORS,
        ],
    };
    Endpoint {
        method: ANY_METHOD,
        path,
        rights: Rights::namespace(Role::Check).for_proxies(),
        handler: |request| Box::pin(authorize::authorize(request)),
        body: RequestBody::Empty,
        docs,
    }
}
