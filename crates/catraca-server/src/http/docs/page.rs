//! The pages: the document of the API, drawn for people, and one page per error code.
//!
//! Must say nothing that the document does not say.

mod call;
mod schema;

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::super::api::{self, Code};
use crate::html::Html;

/// Every call and every shape.
pub fn calls() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        let document = api::document();
        framed("The HTTP API", |html| {
            introduction(document, html);
            for tag in document["tags"].as_array().into_iter().flatten() {
                group(document, tag, html);
            }
            schema::all(document, html);
        })
    })
}

/// Every error code.
pub fn errors() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        framed("Errors", |html| {
            html.raw("<p class=\"lead\">What can go wrong, why, and how to fix it. A code stays ");
            html.raw("the same; a request that is refused changes nothing.</p>");
            html.raw("<div class=\"table\"><table><tbody>");
            for code in api::codes() {
                html.raw("<tr><td><a href=\"/docs/errors/").text(code.name).raw("\"><code>");
                html.text(code.name).raw("</code></a></td><td>");
                html.text(&code.status.to_string()).raw("</td><td>");
                prose(html, code.what);
                html.raw("</td></tr>");
            }
            html.raw("</tbody></table></div>");
        })
    })
}

/// One error code.
pub fn error(code: &Code) -> String {
    framed(code.name, |html| {
        html.raw("<p class=\"lead\"><span class=\"status\">");
        html.text(&code.status.to_string()).raw("</span> ");
        prose(html, code.what);
        html.raw("</p><div class=\"card\">");
        for paragraph in code.rest.split("\n\n") {
            html.raw("<p>");
            prose(html, paragraph);
            html.raw("</p>");
        }
        html.raw("</div><p><a href=\"/docs/errors\">All error codes</a></p>");
    })
}

fn framed(title: &str, content: impl FnOnce(&mut Html)) -> String {
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
    html.raw("<a href=\"/docs/errors\">Error codes</a><a href=\"#shapes\">Shapes</a></p>");
    html.raw("<div class=\"card\"><h2>Keys</h2>");
    let schemes = &document["components"]["securitySchemes"];
    for (head, scheme) in [("Authorization: Bearer KEY", "bearer"), ("Catraca-Key: KEY", "own")] {
        html.raw("<p><code>").text(head).raw("</code> ");
        prose(html, text(&schemes[scheme]["description"]));
        html.raw("</p>");
    }
    html.raw("</div>");
}

fn group(document: &Value, tag: &Value, html: &mut Html) {
    let name = text(&tag["name"]);
    html.raw("<section>").element("h2", "", name).raw("<p class=\"soft\">");
    prose(html, text(&tag["description"]));
    html.raw("</p>");
    for (path, methods) in fields(&document["paths"]) {
        // A path that takes any method is one call.
        let any = fields(methods).count() > 4;
        for (method, call) in fields(methods).take(if any { 1 } else { usize::MAX }) {
            if call["tags"][0] == name {
                let method = if any { "any" } else { method };
                call::draw(document, (method, path), call, html);
            }
        }
    }
    html.raw("</section>");
}

/// A text with marks: `code` and **strong** words.
fn prose(html: &mut Html, marked: &str) {
    for (place, piece) in marked.split('`').enumerate() {
        if place % 2 == 1 {
            html.element("code", "", piece);
            continue;
        }
        for (place, piece) in piece.split("**").enumerate() {
            if place % 2 == 1 {
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
    fn every_call_code_and_shape_has_its_place_and_every_link_leads_there() {
        let page = calls();
        let document = api::document();
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
        for code in api::codes() {
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
