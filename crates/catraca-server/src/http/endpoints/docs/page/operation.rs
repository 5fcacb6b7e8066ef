//! HTML of one operation: its parameters, its request body and its responses.

use serde_json::Value;

use super::{fields, prose, schema, text};
use crate::html::Html;

/// Renders an operation as a collapsed section.
pub fn render(document: &Value, method: &str, path: &str, operation: &Value, html: &mut Html) {
    html.raw("<details class=\"card call\" id=\"").text(text(&operation["operationId"])).raw("\">");
    html.raw("<summary><span class=\"method ").text(method).raw("\">");
    html.text(&method.to_uppercase()).raw("</span> ").element("code", "", path).raw(" <span>");
    html.text(text(&operation["summary"])).raw("</span>");
    if let Some(role) = operation["security"][0]["bearer"][0].as_str() {
        html.element("i", "role", role);
    }
    html.raw("</summary>");
    for paragraph in text(&operation["description"]).split("\n\n") {
        html.raw("<p>");
        prose(html, paragraph);
        html.raw("</p>");
    }
    parameters(operation, html);
    request_body(document, operation, html);
    responses(document, operation, html);
    html.raw("</details>");
}

fn parameters(operation: &Value, html: &mut Html) {
    let Some(parameters) = operation["parameters"].as_array().filter(|list| !list.is_empty())
    else {
        return;
    };
    html.raw("<h3>Path and query</h3><div class=\"table\"><table><tbody>");
    for parameter in parameters {
        html.raw("<tr><td>").element("code", "", text(&parameter["name"])).raw("</td><td>");
        html.text(text(&parameter["in"])).raw("</td><td>");
        schema::type_of(&parameter["schema"], html);
        html.raw("</td><td>");
        prose(html, text(&parameter["description"]));
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table></div>");
}

fn request_body(document: &Value, operation: &Value, html: &mut Html) {
    let media = &operation["requestBody"]["content"]["application/json"];
    if media.is_null() {
        return;
    }
    html.raw("<h3>Body</h3><p>");
    schema::type_of(&media["schema"], html);
    if operation["requestBody"]["required"] != true {
        html.raw(", may be left out");
    }
    html.raw("</p>");
    schema::table(document, &media["schema"], html);
    example(&media["example"], html);
}

fn responses(document: &Value, operation: &Value, html: &mut Html) {
    html.raw("<h3>Responses</h3>");
    for (status, response) in fields(&operation["responses"]) {
        let named = response["$ref"].as_str().and_then(|name| document.pointer(name.get(1..)?));
        let response = named.unwrap_or(response);
        html.raw("<div class=\"answer\"><span class=\"status\">").text(status).raw("</span><div>");
        for (media_type, media) in fields(&response["content"]) {
            if !media_type.contains("problem") {
                html.raw("<p>").element("code", "", media_type).raw(": ");
                schema::type_of(&media["schema"], html);
                html.raw("</p>");
            }
        }
        for paragraph in text(&response["description"]).split("\n\n") {
            html.raw("<p>");
            response_paragraph(paragraph, html);
            html.raw("</p>");
        }
        html.raw("</div></div>");
        let media = &response["content"]["application/json"];
        if !media.is_null() && status == "200" {
            schema::table(document, &media["schema"], html);
            example(&media["example"], html);
        }
    }
}

/// Renders a paragraph of a response; one that begins with an error code links to its page.
fn response_paragraph(paragraph: &str, html: &mut Html) {
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
