//! Operations about the server itself: health, readiness, metrics and documentation.

use super::super::{
    OperationSpec, OperationTag, RequestBodySpec, ResponseSpec, ok_json, schema_of,
};
use super::PATH_ERRORS;
use crate::http::endpoints::ready::Readiness;

/// An operation without input and errors of its own.
const fn service_operation(
    request: &'static str,
    name: &'static str,
    summary: &'static str,
    responses: &'static [ResponseSpec],
) -> OperationSpec {
    OperationSpec {
        request,
        name,
        tag: OperationTag::Server,
        summary,
        description: "",
        query: &[],
        request_body: RequestBodySpec::Empty,
        responses,
        error_codes: &[],
    }
}

/// A 200 with a body of this media type.
const fn text(media_type: &'static str, description: &'static str) -> ResponseSpec {
    ResponseSpec {
        status: "200",
        description,
        body: Some((media_type, schema_of::<String>)),
        headers: &[],
    }
}

/// A 200 with an HTML page.
const PAGE: &[ResponseSpec] = &[text("text/html", "A page for people.")];

pub const OPERATIONS: &[OperationSpec] = &[
    service_operation(
        "GET /healthz",
        "healthz",
        "Check that the process responds",
        &[text("text/plain", "`ok`.")],
    ),
    service_operation(
        "GET /readyz",
        "readyz",
        "Check whether the server is ready, and with which catalog",
        &[
            ok_json(schema_of::<Readiness>),
            ResponseSpec {
                status: "503",
                description: "The server is stopping.",
                ..ok_json(schema_of::<Readiness>)
            },
        ],
    ),
    service_operation(
        "GET /metrics",
        "metrics",
        "Return metrics in the OpenMetrics format",
        &[text("application/openmetrics-text", "OpenMetrics.")],
    ),
    service_operation(
        "GET /openapi.json",
        "openapi",
        "Return this document",
        &[ResponseSpec {
            status: "200",
            description: "This document.",
            body: Some((
                "application/json",
                schema_of::<serde_json::Map<String, serde_json::Value>>,
            )),
            headers: &[],
        }],
    ),
    service_operation("GET /docs", "docs", "Show this document as a page", PAGE),
    service_operation(
        "GET /docs/style.css",
        "docs_style",
        "Return the style sheet of the pages",
        &[text("text/css", "A style sheet.")],
    ),
    service_operation("GET /docs/errors", "docs_errors", "Explain every error code", PAGE),
    OperationSpec {
        error_codes: &[PATH_ERRORS, &["unknown-code"]],
        ..service_operation("GET /docs/errors/{code}", "docs_error", "Explain one error code", PAGE)
    },
];
