//! Content negotiation: whether the `Accept` header prefers XML over JSON, or is that of a browser.
//! Anything unclear gets JSON.

use hyper::http::{HeaderMap, header};

/// Whether the client prefers XML. On equal weights XML wins over a wildcard, but not over an
/// explicit `application/json`.
pub fn wants_xml(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let mut xml = 0;
    let mut json = 0;
    for range in lines.flat_map(|line| line.split(',')) {
        let (media_type, weight) = parse_range(range);
        match media_type.as_str() {
            "application/xml" | "text/xml" => xml = xml.max(weight),
            "application/json" | "application/*" | "*/*" => json = json.max(weight),
            _ => {}
        }
    }
    xml > json || xml > 0 && xml == json && !lists_json(headers)
}

/// Whether `text/html` is listed, as every browser does that shows a page.
pub fn lists_html(headers: &HeaderMap) -> bool {
    lists(headers, "text/html")
}

/// Whether `application/json` is listed explicitly, not only covered by a wildcard.
fn lists_json(headers: &HeaderMap) -> bool {
    lists(headers, "application/json")
}

fn lists(headers: &HeaderMap, media_type: &str) -> bool {
    let mut lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.any(|line| line.to_ascii_lowercase().contains(media_type))
}

/// A media range in lower case, and its `q` in thousandths. A `q` that is not a number counts as 0,
/// which excludes the range.
fn parse_range(range: &str) -> (String, u32) {
    let mut parts = range.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    let weight = weight.map_or(Some(1.0), |text| text.parse::<f32>().ok()).unwrap_or(0.0);
    (media_type, (weight.clamp(0.0, 1.0) * 1_000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_only_if_it_is_preferred() {
        for (accept, xml) in [
            ("", false),
            ("*/*", false),
            ("application/json", false),
            ("application/xml", true),
            ("text/xml", true),
            ("Application/XML; charset=utf-8", true),
            ("application/xml, */*", true),
            ("application/xml;q=0.9, */*;q=0.8", true),
            ("application/xml;q=0.5, application/json", false),
            ("application/xml, application/json", false),
            ("application/xml;q=0", false),
            ("application/xml;q=x", false),
            ("text/html,application/xhtml+xml", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(wants_xml(&headers), xml, "{accept}");
        }
        assert!(!wants_xml(&HeaderMap::new()));
    }
}
