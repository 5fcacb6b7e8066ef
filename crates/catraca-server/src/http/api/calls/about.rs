//! What the server says of itself, to anybody.

use super::super::super::ready::Readiness;
use super::super::{Entry, Given, Group, Takes, json, of};
use super::PATH;

const fn says(
    request: &'static str,
    name: &'static str,
    summary: &'static str,
    gives: &'static [Given],
) -> Entry {
    Entry {
        request,
        name,
        group: Group::About,
        summary,
        about: "",
        query: &[],
        takes: Takes::Nothing,
        gives,
        problems: &[],
    }
}

const fn text(kind: &'static str, about: &'static str) -> Given {
    Given { status: "200", about, body: Some((kind, of::<String>)), headers: &[] }
}

const PAGE: &[Given] = &[text("text/html", "A page for people.")];

pub const CALLS: &[Entry] = &[
    says("GET /healthz", "healthz", "Say that the process answers", &[text("text/plain", "`ok`.")]),
    says(
        "GET /readyz",
        "readyz",
        "Say whether it can decide, and by which catalog",
        &[
            json(of::<Readiness>),
            Given { status: "503", about: "It was told to stop.", ..json(of::<Readiness>) },
        ],
    ),
    says(
        "GET /metrics",
        "metrics",
        "Give counters to Prometheus and its kin",
        &[text("application/openmetrics-text", "OpenMetrics.")],
    ),
    says(
        "GET /openapi.json",
        "openapi",
        "Give this document",
        &[Given {
            status: "200",
            about: "This document.",
            body: Some(("application/json", of::<serde_json::Map<String, serde_json::Value>>)),
            headers: &[],
        }],
    ),
    says("GET /docs", "docs", "Show this document to people", PAGE),
    says(
        "GET /docs/style.css",
        "docs_style",
        "Give the pages their looks",
        &[text("text/css", "A style sheet.")],
    ),
    says("GET /docs/errors", "docs_errors", "Explain every error code", PAGE),
    Entry {
        problems: &[PATH, &["unknown-code"]],
        ..says("GET /docs/errors/{code}", "docs_error", "Explain one error code", PAGE)
    },
];
