//! Shapes, drawn: a table of fields each, linked to one another.

use serde_json::Value;

use super::{fields, prose, text};
use crate::html::Html;

/// Every shape, by its name.
pub fn all(document: &Value, html: &mut Html) {
    html.raw("<section><h2 id=\"shapes\">Shapes</h2>");
    for (name, shape) in fields(&document["components"]["schemas"]) {
        html.raw("<div class=\"card\" id=\"shape-").text(name).raw("\"><h3>").text(name);
        html.raw("</h3><p>");
        prose(html, text(&shape["description"]));
        html.raw("</p>");
        table(document, shape, html);
        words(shape, html);
        html.raw("</div>");
    }
    html.raw("</section>");
}

/// The fields of a shape, or of the one that it refers to.
pub fn table(document: &Value, shape: &Value, html: &mut Html) {
    let shape = shape["oneOf"].get(0).or(shape["anyOf"].get(0)).unwrap_or(shape);
    let named = shape["$ref"].as_str().and_then(|name| document.pointer(name.get(1..)?));
    let shape = named.unwrap_or(shape);
    if shape["properties"].is_null() {
        return;
    }
    html.raw("<div class=\"table\"><table><tbody>");
    for (name, field) in fields(&shape["properties"]) {
        let required = shape["required"].as_array().is_some_and(|all| all.contains(&name.into()));
        html.raw("<tr><td>").element("code", "", name);
        html.raw(if required { "" } else { "<span class=\"soft\"> ?</span>" }).raw("</td><td>");
        kind(field, html);
        html.raw("</td><td>");
        prose(html, text(&field["description"]));
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table></div>");
}

/// What a value may be, in a word or a link.
pub fn kind(shape: &Value, html: &mut Html) {
    if let Some(name) = shape["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        html.raw("<a href=\"#shape-").text(name).raw("\">").text(name).raw("</a>");
    } else if let Some(choices) = shape["oneOf"].as_array().or(shape["anyOf"].as_array()) {
        for (place, choice) in choices.iter().enumerate() {
            html.raw(if place > 0 { " or " } else { "" });
            kind(choice, html);
        }
    } else if shape["type"] == "array" {
        html.raw("list of ");
        kind(&shape["items"], html);
    } else if let Some(types) = shape["type"].as_array() {
        let types: Vec<&str> = types.iter().map(text).collect();
        html.text(&types.join(" or "));
    } else {
        let format = shape["format"].as_str().filter(|format| *format == "date-time");
        let word = shape["const"].as_str().or(format).or(shape["type"].as_str());
        html.text(word.unwrap_or("anything"));
    }
}

/// The words of a shape that is one of several.
fn words(shape: &Value, html: &mut Html) {
    let choices = shape["oneOf"].as_array().into_iter().flatten();
    for choice in choices.filter(|choice| choice["const"].is_string()) {
        html.raw("<p>").element("code", "", text(&choice["const"])).raw(" ");
        prose(html, text(&choice["description"]));
        html.raw("</p>");
    }
}
