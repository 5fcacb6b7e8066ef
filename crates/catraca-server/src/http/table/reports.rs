//! Endpoints that read: the catalog, statistics, the audit, the live feed; and those of privacy.

use super::{
    AFTER, LIMIT, ONLY_NAMESPACE, PATH_ERRORS, QUERY_ERRORS, RECORDS_ERRORS, VALUE_ERRORS,
};
use crate::http::endpoint::{
    Endpoint, EndpointDocs, OperationTag, ParameterType, QueryParameter, RequestBody, ResponseSpec,
    Rights, Role, ok_json, schema_of,
};
use crate::http::endpoints::admin::{audit, config, namespaces, policies, privacy, stats};
use crate::http::endpoints::events;

const FROM: QueryParameter = QueryParameter {
    name: "from",
    description: "Default: one day ago.",
    kind: ParameterType::Instant,
};
const TO: QueryParameter =
    QueryParameter { name: "to", description: "Default: now.", kind: ParameterType::Instant };
const INSTANT_ERRORS: &[&str] = &["bad-instant"];

/// Documentation without a query and a description.
const fn read_docs(
    name: &'static str,
    tag: OperationTag,
    summary: &'static str,
    responses: &'static [ResponseSpec],
    error_codes: &'static [&'static [&'static str]],
) -> EndpointDocs {
    EndpointDocs { name, tag, summary, description: "", query: &[], responses, error_codes }
}

/// Documentation of a call about one identifier.
const fn privacy_docs(
    name: &'static str,
    summary: &'static str,
    description: &'static str,
    responses: &'static [ResponseSpec],
) -> EndpointDocs {
    EndpointDocs {
        name,
        tag: OperationTag::Privacy,
        summary,
        description,
        query: &[],
        responses,
        error_codes: &[VALUE_ERRORS, RECORDS_ERRORS, &["text-too-long", "bad-text"]],
    }
}

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "GET",
        path: "/v1/namespaces",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(namespaces::list(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "namespaces",
            tag: OperationTag::BlocksAndLists,
            summary: "List the namespaces",
            description: "`default`, those of keys and of the proxy, and those of blocks and \
                          debts in the records. A key that is bound to a namespace sees only \
                          that one.",
            query: &[],
            responses: &[ok_json(schema_of::<namespaces::NamespaceList>)],
            error_codes: &[QUERY_ERRORS, &["records-failed"]],
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/policies",
        rights: Rights::catalog(Role::Read),
        handler: |request| Box::pin(policies::list(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            name: "policies",
            tag: OperationTag::Catalog,
            summary: "List the policies in use",
            description: "",
            query: &[QueryParameter {
                name: "group",
                description: "Only policies of this group.",
                kind: ParameterType::Text("payments"),
            }],
            responses: &[ok_json(schema_of::<policies::PolicyList>)],
            error_codes: &[QUERY_ERRORS],
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/policies/{name}",
        rights: Rights::catalog(Role::Read),
        handler: |request| Box::pin(policies::show(request)),
        body: RequestBody::Empty,
        docs: read_docs(
            "policy",
            OperationTag::Catalog,
            "Show one policy",
            &[ok_json(schema_of::<policies::PolicyAtRevision>)],
            &[PATH_ERRORS, QUERY_ERRORS, &["unknown-policy"]],
        ),
    },
    Endpoint {
        method: "GET",
        path: "/v1/config",
        rights: Rights::catalog(Role::Read),
        handler: |request| Box::pin(config::show(request)),
        body: RequestBody::Empty,
        docs: read_docs(
            "config",
            OperationTag::Catalog,
            "Show the catalog in use",
            &[ok_json(schema_of::<config::CatalogSummary>)],
            &[QUERY_ERRORS],
        ),
    },
    Endpoint {
        method: "GET",
        path: "/v1/stats",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(stats::by_policy(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            description: "Whole minutes, including the current one. The totals count requests: a \
                          check counts once, however many policies its gate has, and a peek does \
                          not count. The rows count verdicts: a check counts once in each of its \
                          policies. A key that is bound to a namespace sees only that namespace.",
            query: &[FROM, TO],
            ..read_docs(
                "stats",
                OperationTag::Reports,
                "Count requests, and verdicts by policy",
                &[ok_json(schema_of::<stats::PolicyStats>)],
                &[QUERY_ERRORS, INSTANT_ERRORS, RECORDS_ERRORS],
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/stats/callers",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(stats::by_caller(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            description: "Checks with the header `Catraca-Caller`, which has 1 to 64 characters of \
                          `A-Z a-z 0-9 . _ / -`. A key that is bound to a namespace sees only that \
                          namespace.",
            ..read_docs(
                "stats_callers",
                OperationTag::Reports,
                "Count checks by program and gate",
                &[ok_json(schema_of::<stats::CallerStats>)],
                &[QUERY_ERRORS],
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/stats/top-blocked",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(stats::top_blocked(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            description: "A key that is bound to a namespace sees only that namespace.",
            query: &[FROM, LIMIT],
            ..read_docs(
                "top_blocked",
                OperationTag::Reports,
                "List the subjects that were blocked most often",
                &[ok_json(schema_of::<stats::TopBlockedSubjects>)],
                &[QUERY_ERRORS, INSTANT_ERRORS, RECORDS_ERRORS],
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/stats/actions",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(stats::by_action(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            description: "An action is the gate that a check names. A key that is bound to a \
                          namespace sees only that namespace.",
            query: &[FROM, TO],
            ..read_docs(
                "stats_actions",
                OperationTag::Reports,
                "Count requests by action",
                &[ok_json(schema_of::<stats::ActionStats>)],
                &[QUERY_ERRORS, INSTANT_ERRORS, RECORDS_ERRORS],
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/audit",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(audit::list(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            description: "With a namespace, only acts inside it: on its keys, list entries, facts \
                          and locks, and the privacy requests of its operators. A key that is \
                          bound to a namespace sees only those.",
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
                ONLY_NAMESPACE,
                AFTER,
                LIMIT,
            ],
            ..read_docs(
                "audit",
                OperationTag::Reports,
                "List what operators did, newest first",
                &[ok_json(schema_of::<audit::AuditPage>)],
                &[QUERY_ERRORS, RECORDS_ERRORS, &["unknown-namespace", "namespace-bound-key"]],
            )
        },
    },
    Endpoint {
        method: "GET",
        path: "/v1/events",
        rights: Rights::namespace(Role::Support),
        handler: |request| Box::pin(events::events(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            description: "Server-sent events: `denied`, `blocked`, `released`, `reset`, `owed`, \
                          `low_water`, `storm` and `catalog`, each with its fields as JSON. A \
                          client that reads too slowly gets `missed` with a number, and the \
                          stream ends. A key that is bound to a namespace gets the events of that \
                          namespace, and only these count for `missed`; `low_water`, `storm` and \
                          `catalog` belong to no namespace.",
            ..read_docs(
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
    },
    Endpoint {
        method: "POST",
        path: "/v1/privacy/export",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(privacy::export(request)),
        body: RequestBody::Required(schema_of::<privacy::PrivacyRequest>),
        docs: privacy_docs(
            "privacy_export",
            "Export all records about an identifier",
            "By the real identifier, which is never written to disk or logs. A key that is bound \
             to a namespace gets the records of that namespace.",
            &[ok_json(schema_of::<privacy::PrivacyExport>)],
        ),
    },
    Endpoint {
        method: "POST",
        path: "/v1/privacy/erase",
        rights: Rights::namespace(Role::Admin),
        handler: |request| Box::pin(privacy::erase(request)),
        body: RequestBody::Required(schema_of::<privacy::PrivacyRequest>),
        docs: privacy_docs(
            "privacy_erase",
            "Erase the records about an identifier",
            "Rows that still protect others are retained until they end; the response counts them. \
             A key that is bound to a namespace erases the records of that namespace.",
            &[ok_json(schema_of::<privacy::ErasureReport>)],
        ),
    },
];
