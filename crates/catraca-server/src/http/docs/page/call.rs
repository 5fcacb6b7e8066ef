//! One call, drawn: what it takes, what it gives, and how it can refuse.

use serde_json::Value;

use super::{fields, prose, schema, text};
use crate::html::Html;

/// Draws a call; it opens on request.
pub fn draw(document: &Value, (method, path): (&str, &str), call: &Value, html: &mut Html) {
    html.raw("<details class=\"card call\" id=\"").text(text(&call["operationId"])).raw("\">");
    html.raw("<summary><span class=\"method ").text(method).raw("\">");
    html.text(&method.to_uppercase()).raw("</span> ").element("code", "", path).raw(" <span>");
    html.text(text(&call["summary"])).raw("</span>");
    if let Some(role) = call["security"][0]["bearer"][0].as_str() {
        html.element("i", "role", role);
    }
    html.raw("</summary>");
    for paragraph in text(&call["description"]).split("\n\n") {
        html.raw("<p>");
        prose(html, paragraph);
        html.raw("</p>");
    }
    parameters(call, html);
    taken(document, call, html);
    given(document, call, html);
    html.raw("</details>");
}

fn parameters(call: &Value, html: &mut Html) {
    let Some(all) = call["parameters"].as_array().filter(|all| !all.is_empty()) else { return };
    html.raw("<h3>Path and query</h3><div class=\"table\"><table><tbody>");
    for one in all {
        html.raw("<tr><td>").element("code", "", text(&one["name"])).raw("</td><td>");
        html.text(text(&one["in"])).raw("</td><td>");
        schema::kind(&one["schema"], html);
        html.raw("</td><td>");
        prose(html, text(&one["description"]));
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table></div>");
}

fn taken(document: &Value, call: &Value, html: &mut Html) {
    let media = &call["requestBody"]["content"]["application/json"];
    if media.is_null() {
        return;
    }
    html.raw("<h3>Body</h3><p>");
    schema::kind(&media["schema"], html);
    if call["requestBody"]["required"] != true {
        html.raw(", may be left out");
    }
    html.raw("</p>");
    schema::table(document, &media["schema"], html);
    example(&media["example"], html);
}

fn given(document: &Value, call: &Value, html: &mut Html) {
    html.raw("<h3>Answers</h3>");
    for (status, answer) in fields(&call["responses"]) {
        let named = answer["$ref"].as_str().and_then(|name| document.pointer(name.get(1..)?));
        let answer = named.unwrap_or(answer);
        html.raw("<div class=\"answer\"><span class=\"status\">").text(status).raw("</span><div>");
        for (kind, media) in fields(&answer["content"]) {
            if !kind.contains("problem") {
                html.raw("<p>").element("code", "", kind).raw(": ");
                schema::kind(&media["schema"], html);
                html.raw("</p>");
            }
        }
        for paragraph in text(&answer["description"]).split("\n\n") {
            html.raw("<p>");
            told(paragraph, html);
            html.raw("</p>");
        }
        html.raw("</div></div>");
        let media = &answer["content"]["application/json"];
        if !media.is_null() && status == "200" {
            schema::table(document, &media["schema"], html);
            example(&media["example"], html);
        }
    }
}

/// A code leads to its page.
fn told(paragraph: &str, html: &mut Html) {
    match paragraph.strip_prefix('`').and_then(|rest| rest.split_once("`: ")) {
        Some((code, what)) => {
            html.raw("<a href=\"/docs/errors/").text(code).raw("\"><code>").text(code);
            html.raw("</code></a> ");
            prose(html, what);
        }
        None => prose(html, paragraph),
    }
}

fn example(value: &Value, html: &mut Html) {
    if !value.is_null() {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        html.raw("<pre tabindex=\"0\">").text(&text).raw("</pre>");
    }
}
