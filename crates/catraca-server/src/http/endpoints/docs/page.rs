//! HTML pages: the first page, one rendered from the OpenAPI document, and one per error code.

mod operation;
mod schema;

use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::html::Html;
use crate::http::bodies::error_codes::{ErrorCode, all_error_codes};

/// The pages that a person may look for at the address of the server.
const LINKS: [(&str, &str); 5] = [
    ("/docs", "The HTTP API: every call with its bodies and errors"),
    ("/docs/errors", "Every error code, its cause and its fix"),
    ("/openapi.json", "The same API as an OpenAPI document, for generators of clients"),
    ("/readyz", "The revision of the catalog in use, and every present problem"),
    ("/metrics", "Metrics for Prometheus; needs a key if there are keys"),
];

/// The page of `/`.
pub fn index() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        page_with_title("A rate limiter answers here", |html| {
            html.raw("<p class=\"lead\">Programs ask at <code>/v1/check</code>, and reverse ");
            html.raw("proxies at <code>/v1/authorize</code>, whether a caller may pass.</p>");
            html.raw("<div class=\"table\"><table><tbody>");
            for (path, about) in LINKS {
                html.raw("<tr><td><a href=\"").text(path).raw("\"><code>").text(path);
                html.raw("</code></a></td><td>").text(about).raw("</td></tr>");
            }
            html.raw("</tbody></table></div><p class=\"soft\">Operators use the command ");
            html.raw("line: <code>catraca --help</code>.</p>");
        })
    })
}

/// The page of all operations and schemas.
pub fn operations(document: &Value) -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        page_with_title("The HTTP API", |html| {
            introduction(document, html);
            for tag in document["tags"].as_array().into_iter().flatten() {
                tag_section(document, tag, html);
            }
            schema::render_all(document, html);
        })
    })
}

/// The page that lists all error codes.
pub fn errors() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        page_with_title("Errors", |html| {
            html.raw("<p class=\"lead\">Every error, its cause and its fix. A code stays ");
            html.raw("the same; a request that is refused changes nothing.</p>");
            html.raw("<div class=\"table\"><table><tbody>");
            for code in all_error_codes() {
                html.raw("<tr><td><a href=\"/docs/errors/").text(code.name).raw("\"><code>");
                html.text(code.name).raw("</code></a></td><td>");
                html.text(&code.status.to_string()).raw("</td><td>");
                prose(html, code.summary);
                html.raw("</td></tr>");
            }
            html.raw("</tbody></table></div>");
        })
    })
}

/// The page of one error code.
pub fn error(code: &ErrorCode) -> String {
    page_with_title(code.name, |html| {
        html.raw("<p class=\"lead\"><span class=\"status\">");
        html.text(&code.status.to_string()).raw("</span> ");
        prose(html, code.summary);
        html.raw("</p><div class=\"card\">");
        for paragraph in code.explanation.split("\n\n") {
            html.raw("<p>");
            prose(html, paragraph);
            html.raw("</p>");
        }
        html.raw("</div><p><a href=\"/docs/errors\">All error codes</a></p>");
    })
}

/// A whole page with this title and content.
fn page_with_title(title: &str, content: impl FnOnce(&mut Html)) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
    html.text(title).raw(" · Catraca</title><link rel=\"icon\" href=\"data:,\">");
    html.raw("<link rel=\"stylesheet\" href=\"/docs/style.css\"></head><body><main>");
    html.raw("<p class=\"brand\"><a href=\"/docs\">Catraca</a> <span>");
    html.text(env!("CARGO_PKG_VERSION")).raw("</span></p><h1>").text(title).raw("</h1>");
    content(&mut html);
    html.raw("</main></body></html>\n");
    html.into_string()
}

fn introduction(document: &Value, html: &mut Html) {
    html.raw("<p class=\"lead\">");
    prose(html, text(&document["info"]["description"]));
    html.raw("</p><p class=\"facts\"><a href=\"/openapi.json\">OpenAPI 3.1</a>");
    html.raw("<a href=\"/docs/errors\">Error codes</a><a href=\"#shapes\">Schemas</a></p>");
    html.raw("<div class=\"card\"><h2>Keys</h2>");
    let schemes = &document["components"]["securitySchemes"];
    for (head, scheme) in [("Authorization: Bearer KEY", "bearer"), ("Catraca-Key: KEY", "own")] {
        html.raw("<p><code>").text(head).raw("</code> ");
        prose(html, text(&schemes[scheme]["description"]));
        html.raw("</p>");
    }
    html.raw("</div>");
}

/// The operations of one tag.
fn tag_section(document: &Value, tag: &Value, html: &mut Html) {
    let name = text(&tag["name"]);
    html.raw("<section>").element("h2", "", name).raw("<p class=\"soft\">");
    prose(html, text(&tag["description"]));
    html.raw("</p>");
    for (path, methods) in fields(&document["paths"]) {
        // A path that accepts any method has one operation per method; only the first is shown.
        // No other path has more than four methods.
        let is_any = fields(methods).count() > 4;
        for (method, operation) in fields(methods).take(if is_any { 1 } else { usize::MAX }) {
            if operation["tags"][0] == name {
                let method = if is_any { "any" } else { method };
                operation::render(document, method, path, operation, html);
            }
        }
    }
    html.raw("</section>");
}

/// Renders a text with two kinds of Markdown: `code` and **strong**.
fn prose(html: &mut Html, marked: &str) {
    // Every second piece is inside marks.
    for (index, piece) in marked.split('`').enumerate() {
        if index % 2 == 1 {
            html.element("code", "", piece);
            continue;
        }
        for (index, piece) in piece.split("**").enumerate() {
            if index % 2 == 1 {
                html.element("b", "", piece);
            } else {
                html.text(piece);
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let map: Option<&Map<String, Value>> = value.as_object();
    map.into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_code_and_schema_is_shown_and_every_link_resolves() {
        let document = crate::http::openapi::document();
        let page = operations(document);
        for (path, methods) in fields(&document["paths"]) {
            assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
            let any = fields(methods).count() > 4;
            for (_, call) in fields(methods).take(if any { 1 } else { 9 }) {
                let id = format!("id=\"{}\"", text(&call["operationId"]));
                assert!(page.contains(&id), "{id}");
            }
        }
        for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
        }
        for code in all_error_codes() {
            assert!(errors().contains(&format!("/docs/errors/{}\"", code.name)));
            assert!(error(code).contains("<b>Fix:</b>"), "{}", code.name);
        }
    }

    #[test]
    fn marks_become_markup_and_nothing_else_does() {
        let mut html = Html::default();
        prose(&mut html, "say `<b>` **now** & go");
        assert_eq!(html.into_string(), "say <code>&lt;b&gt;</code> <b>now</b> &amp; go");
    }
}
