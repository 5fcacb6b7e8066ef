//! Endpoints about the server itself: health, readiness, metrics and documentation.

use super::PATH_ERRORS;
use crate::http::endpoint::{
    Endpoint, EndpointDocs, OperationTag, RequestBody, ResponseSpec, Rights, ok_json, schema_of,
};
use crate::http::endpoints::ready::Readiness;
use crate::http::endpoints::{docs, ready};

/// Documentation without input and errors of its own.
const fn service_docs(
    name: &'static str,
    summary: &'static str,
    responses: &'static [ResponseSpec],
) -> EndpointDocs {
    EndpointDocs {
        name,
        tag: OperationTag::Server,
        summary,
        description: "",
        query: &[],
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

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "GET",
        path: "/healthz",
        rights: Rights::open().for_any_host(),
        handler: |request| Box::pin(ready::healthy(request)),
        body: RequestBody::Empty,
        docs: service_docs(
            "healthz",
            "Check that the process responds",
            &[text("text/plain", "`ok`.")],
        ),
    },
    Endpoint {
        method: "GET",
        path: "/readyz",
        rights: Rights::open().for_any_host(),
        handler: |request| Box::pin(ready::ready(request)),
        body: RequestBody::Empty,
        docs: service_docs(
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
    },
    Endpoint {
        method: "GET",
        path: "/metrics",
        rights: Rights::metrics(),
        handler: |request| Box::pin(ready::metrics(request)),
        body: RequestBody::Empty,
        docs: service_docs(
            "metrics",
            "Return metrics in the OpenMetrics format",
            &[text("application/openmetrics-text", "OpenMetrics; plain text for browsers.")],
        ),
    },
    Endpoint {
        method: "GET",
        path: "/openapi.json",
        rights: Rights::open(),
        handler: |request| Box::pin(docs::document(request)),
        body: RequestBody::Empty,
        docs: service_docs(
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
    },
    Endpoint {
        method: "GET",
        path: "/",
        rights: Rights::open(),
        handler: |request| Box::pin(docs::index(request)),
        body: RequestBody::Empty,
        docs: service_docs("index", "Show where to find the documentation and the state", PAGE),
    },
    Endpoint {
        method: "GET",
        path: "/docs",
        rights: Rights::open(),
        handler: |request| Box::pin(docs::operations(request)),
        body: RequestBody::Empty,
        docs: service_docs("docs", "Show this document as a page", PAGE),
    },
    Endpoint {
        method: "GET",
        path: "/docs/style.css",
        rights: Rights::open(),
        handler: |request| Box::pin(docs::style(request)),
        body: RequestBody::Empty,
        docs: service_docs(
            "docs_style",
            "Return the style sheet of the pages",
            &[text("text/css", "A style sheet.")],
        ),
    },
    Endpoint {
        method: "GET",
        path: "/docs/errors",
        rights: Rights::open(),
        handler: |request| Box::pin(docs::errors(request)),
        body: RequestBody::Empty,
        docs: service_docs("docs_errors", "Explain every error code", PAGE),
    },
    Endpoint {
        method: "GET",
        path: "/docs/errors/{code}",
        rights: Rights::open(),
        handler: |request| Box::pin(docs::error(request)),
        body: RequestBody::Empty,
        docs: EndpointDocs {
            error_codes: &[PATH_ERRORS, &["unknown-code"]],
            ..service_docs("docs_error", "Explain one error code", PAGE)
        },
    },
];
