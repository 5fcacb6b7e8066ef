//! Operations that read: the catalog, statistics, the audit, the live feed; and those of privacy.

use super::super::{
    OperationSpec, OperationTag, ParameterType, QueryParameter, RequestBodySpec, ResponseSpec,
    ok_json, schema_of,
};
use super::{AFTER, LIMIT, PATH_ERRORS, QUERY_ERRORS, RECORDS_ERRORS, VALUE_ERRORS};
use crate::http::endpoints::admin::{audit, config, policies, privacy, stats};

const FROM: QueryParameter = QueryParameter {
    name: "from",
    description: "One day ago unless given.",
    kind: ParameterType::Instant,
};
const TO: QueryParameter =
    QueryParameter { name: "to", description: "Now unless given.", kind: ParameterType::Instant };
const INSTANT_ERRORS: &[&str] = &["bad-instant"];

/// An operation without a body, a query and a description.
const fn read_operation(
    request: &'static str,
    name: &'static str,
    tag: OperationTag,
    summary: &'static str,
    responses: &'static [ResponseSpec],
    error_codes: &'static [&'static [&'static str]],
) -> OperationSpec {
    OperationSpec {
        request,
        name,
        tag,
        summary,
        description: "",
        query: &[],
        request_body: RequestBodySpec::Empty,
        responses,
        error_codes,
    }
}

/// An operation about one identifier.
const fn privacy_operation(
    request: &'static str,
    name: &'static str,
    summary: &'static str,
    description: &'static str,
    responses: &'static [ResponseSpec],
) -> OperationSpec {
    OperationSpec {
        request,
        name,
        tag: OperationTag::Privacy,
        summary,
        description,
        query: &[],
        request_body: RequestBodySpec::Required(schema_of::<privacy::PrivacyRequest>),
        responses,
        error_codes: &[VALUE_ERRORS, RECORDS_ERRORS, &["text-too-long", "bad-text"]],
    }
}

pub const OPERATIONS: &[OperationSpec] = &[
    read_operation(
        "GET /v1/policies",
        "policies",
        OperationTag::Catalog,
        "List the policies in use",
        &[ok_json(schema_of::<policies::PolicyList>)],
        &[QUERY_ERRORS],
    ),
    read_operation(
        "GET /v1/policies/{name}",
        "policy",
        OperationTag::Catalog,
        "Show one policy",
        &[ok_json(schema_of::<policies::PolicyAtRevision>)],
        &[PATH_ERRORS, QUERY_ERRORS, &["unknown-policy"]],
    ),
    read_operation(
        "GET /v1/config",
        "config",
        OperationTag::Catalog,
        "Show the catalog in use",
        &[ok_json(schema_of::<config::CatalogSummary>)],
        &[QUERY_ERRORS],
    ),
    OperationSpec {
        description: "Whole minutes, including the current one. The totals count requests: a \
                check counts once, however many policies its gate has, and a peek does not count. \
                The rows count verdicts: a check counts once in each of its policies.",
        query: &[FROM, TO],
        ..read_operation(
            "GET /v1/stats",
            "stats",
            OperationTag::Reports,
            "Count requests, and verdicts by policy",
            &[ok_json(schema_of::<stats::PolicyStats>)],
            &[QUERY_ERRORS, INSTANT_ERRORS, RECORDS_ERRORS],
        )
    },
    OperationSpec {
        query: &[FROM, LIMIT],
        ..read_operation(
            "GET /v1/stats/top-blocked",
            "top_blocked",
            OperationTag::Reports,
            "List the subjects that were blocked most often",
            &[ok_json(schema_of::<stats::TopBlockedSubjects>)],
            &[QUERY_ERRORS, INSTANT_ERRORS, RECORDS_ERRORS],
        )
    },
    OperationSpec {
        description: "An action is the gate that a check names.",
        query: &[FROM, TO],
        ..read_operation(
            "GET /v1/stats/actions",
            "stats_actions",
            OperationTag::Reports,
            "Count requests by action",
            &[ok_json(schema_of::<stats::ActionStats>)],
            &[QUERY_ERRORS, INSTANT_ERRORS, RECORDS_ERRORS],
        )
    },
    OperationSpec {
        query: &[
            QueryParameter {
                name: "by",
                description: "Only acts of this operator.",
                kind: ParameterType::Text("ana"),
            },
            QueryParameter {
                name: "act",
                description: "Only acts of this kind.",
                kind: ParameterType::Text("release"),
            },
            AFTER,
            LIMIT,
        ],
        ..read_operation(
            "GET /v1/audit",
            "audit",
            OperationTag::Reports,
            "List what operators did, newest first",
            &[ok_json(schema_of::<audit::AuditPage>)],
            &[QUERY_ERRORS, RECORDS_ERRORS],
        )
    },
    OperationSpec {
        description: "Server-sent events: `denied`, `blocked`, `released`, `reset`, `owed`, \
                      `low_water`, `storm` and `catalog`, each with its fields as \
                      JSON. A client that reads too slowly gets `missed` with a number, and the \
                      stream ends.",
        ..read_operation(
            "GET /v1/events",
            "events",
            OperationTag::Reports,
            "Stream events as they happen",
            &[ResponseSpec {
                status: "200",
                description: "Events, until one side closes the connection.",
                body: Some(("text/event-stream", schema_of::<String>)),
                headers: &[],
            }],
            &[QUERY_ERRORS, &["too-many-listeners"]],
        )
    },
    privacy_operation(
        "POST /v1/privacy/export",
        "privacy_export",
        "Export all records about an identifier",
        "By the real identifier, which is never written to disk or logs.",
        &[ok_json(schema_of::<privacy::PrivacyExport>)],
    ),
    privacy_operation(
        "POST /v1/privacy/erase",
        "privacy_erase",
        "Erase the records about an identifier",
        "Rows that still protect others are retained until they end; the response counts them.",
        &[ok_json(schema_of::<privacy::ErasureReport>)],
    ),
];
