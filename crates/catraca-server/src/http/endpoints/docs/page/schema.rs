//! HTML of schemas: a table of fields for each, linked to one another.

use serde_json::Value;

use super::{fields, prose, text};
use crate::html::Html;

/// Renders every schema of the document.
pub fn render_all(document: &Value, html: &mut Html) {
    html.raw("<section><h2 id=\"shapes\">Schemas</h2>");
    for (name, schema) in fields(&document["components"]["schemas"]) {
        html.raw("<div class=\"card\" id=\"shape-").text(name).raw("\"><h3>").text(name);
        html.raw("</h3>");
        for paragraph in text(&schema["description"]).split("\n\n") {
            html.raw("<p>");
            prose(html, paragraph);
            html.raw("</p>");
        }
        table(document, schema, html);
        html.raw("</div>");
    }
    html.raw("</section>");
}

/// Renders the fields of a schema, or of the one that it refers to.
pub fn table(document: &Value, schema: &Value, html: &mut Html) {
    let schema = schema["oneOf"].get(0).or(schema["anyOf"].get(0)).unwrap_or(schema);
    let named = schema["$ref"].as_str().and_then(|name| document.pointer(name.get(1..)?));
    let schema = named.unwrap_or(schema);
    if schema["properties"].is_null() {
        return;
    }
    html.raw("<div class=\"table\"><table><tbody>");
    for (name, field) in fields(&schema["properties"]) {
        let required = schema["required"].as_array().is_some_and(|all| all.contains(&name.into()));
        html.raw("<tr><td>").element("code", "", name);
        html.raw(if required { "" } else { "<span class=\"soft\"> ?</span>" }).raw("</td><td>");
        type_of(field, html);
        html.raw("</td><td>");
        prose(html, text(&field["description"]));
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table></div>");
}

/// Renders the type of a value, as a word or as a link to its schema.
pub fn type_of(schema: &Value, html: &mut Html) {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        html.raw("<a href=\"#shape-").text(name).raw("\">").text(name).raw("</a>");
    } else if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        for (index, choice) in choices.iter().enumerate() {
            html.raw(if index > 0 { " or " } else { "" });
            type_of(choice, html);
        }
    } else if schema["type"] == "array" {
        html.raw("list of ");
        type_of(&schema["items"], html);
    } else if let Some(types) = schema["type"].as_array() {
        let types: Vec<&str> = types.iter().map(text).collect();
        html.text(&types.join(" or "));
    } else {
        let format = schema["format"].as_str().filter(|format| *format == "date-time");
        let word = format.or(schema["type"].as_str());
        html.text(word.unwrap_or("anything"));
    }
}
