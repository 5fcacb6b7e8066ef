//! The table of endpoints.
//!
//! A request whose path is not in it is refused before anything else happens, so that an endpoint
//! that was forgotten here is closed, not open. To add a call: its handler, and its entry in a file
//! of this folder; then `cargo xtask openapi`.

mod decisions;
mod lists_and_facts;
mod lock_operations;
mod operator_acts;
mod reports;
mod service_info;

pub use decisions::CHECK_PATH;

use super::endpoint::{
    ANY_METHOD, Endpoint, EndpointLookup, LISTED_METHODS, ParameterType, QueryParameter,
};

/// Every endpoint, in groups; the first that matches counts. `POST /v1/check` is first because it
/// is called most.
const GROUPS: [&[Endpoint]; 6] = [
    decisions::ENDPOINTS,
    lock_operations::ENDPOINTS,
    operator_acts::ENDPOINTS,
    lists_and_facts::ENDPOINTS,
    reports::ENDPOINTS,
    service_info::ENDPOINTS,
];

/// Every endpoint.
pub fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    GROUPS.into_iter().flatten()
}

/// Looks up the endpoint of a request.
pub fn find(method: &str, path: &str) -> EndpointLookup {
    let mut allow = Vec::new();
    for endpoint in endpoints().filter(|endpoint| endpoint.matches_path(path)) {
        if endpoint.accepts(method) {
            return EndpointLookup::Found(endpoint);
        }
        if endpoint.method == ANY_METHOD {
            return EndpointLookup::WrongMethod(LISTED_METHODS.join(","));
        }
        // `/v1/buckets/reconcile` also matches `/v1/buckets/{policy}`.
        if !allow.contains(&endpoint.method) {
            allow.push(endpoint.method);
        }
    }
    // `Allow` lists HEAD after GET, although the table names only GET.
    match allow.iter().position(|method| *method == "GET") {
        _ if allow.is_empty() => EndpointLookup::UnknownPath,
        Some(index) => {
            allow.insert(index + 1, "HEAD");
            EndpointLookup::WrongMethod(allow.join(","))
        }
        None => EndpointLookup::WrongMethod(allow.join(",")),
    }
}

/// Errors of a subject.
const SUBJECT_ERRORS: &[&str] =
    &["bad-attribute", "attribute-too-long", "reserved-attribute", "fixed-attribute"];
/// Errors of a subject that a policy counts.
const COUNTED_ERRORS: &[&str] = &["missing-attribute", "no-tier", "store-failed"];
/// Errors of one value of an attribute.
const VALUE_ERRORS: &[&str] = &["bad-attribute", "attribute-too-long"];
/// Errors of acts that are recorded.
const RECORDS_ERRORS: &[&str] = &["no-records", "records-failed"];
const QUERY_ERRORS: &[&str] = &["bad-query", "bad-text"];
const TEXT_ERRORS: &[&str] = &["text-too-long", "bad-text"];
const PATH_ERRORS: &[&str] = &["bad-path"];
/// Errors of the namespace of an operator's act.
const NAMESPACE_ERRORS: &[&str] =
    &["namespace-required", "unknown-namespace", "namespace-bound-key", "records-failed"];

const NAMESPACE: QueryParameter = QueryParameter {
    name: "namespace",
    description: "The namespace; required of a key that is bound to none, as soon as there are \
                  several. A key of role `check` has its own.",
    kind: ParameterType::Text("default"),
};
const ONLY_NAMESPACE: QueryParameter = QueryParameter {
    name: "namespace",
    description: "Only those of this one; the default is all, or that of the key.",
    kind: ParameterType::Text("default"),
};
const DRY_RUN: QueryParameter = QueryParameter {
    name: "dry_run",
    description: "With `true` nothing is changed: the response shows the result or the errors.",
    kind: ParameterType::OneOf(&["true", "false"]),
};
const AFTER: QueryParameter = QueryParameter {
    name: "after",
    description: "The `next` of the previous page.",
    kind: ParameterType::Text(""),
};
const LIMIT: QueryParameter = QueryParameter {
    name: "limit",
    description: "The maximum number of rows.",
    kind: ParameterType::PageSize,
};
