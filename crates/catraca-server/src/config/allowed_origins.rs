//! The origins of web pages that may read responses of this server.

use catraca::core::located::{Node, Report, ValueSchema};
use hyper::http::{HeaderValue, Uri};

use super::setting_kind::{SettingContext, SettingKind};

/// The most origins of one setting.
const ORIGINS_MAX: usize = 64;
const ORIGIN: ValueSchema = ValueSchema::Pattern {
    pattern: "^([*]|https?://[A-Za-z0-9.:\\[\\]-]+)$",
    words: "an origin, or `*`",
};

/// The origins whose pages may read a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// Those of every page.
    Any,
    /// These, as browsers write them.
    Listed(Vec<HeaderValue>),
}

/// Reads a list of origins.
pub struct Origins;

impl SettingKind for Origins {
    type Value = AllowedOrigins;
    const SCHEMA: ValueSchema =
        ValueSchema::AnyOf(&[ORIGIN, ValueSchema::List { of: &ORIGIN, most: ORIGINS_MAX }]);

    fn read(_: &SettingContext<'_>, report: &mut Report, node: Node<'_>) -> Option<AllowedOrigins> {
        let texts = node.texts(report, "a list of origins such as [\"https://shop.example\"]")?;
        if texts.iter().any(|(_, text)| *text == "*") && texts.len() == 1 {
            return Some(AllowedOrigins::Any);
        }
        let mut origins = Vec::new();
        for (item, text) in texts.iter().take(ORIGINS_MAX) {
            let origin = parse_origin(text);
            if origin.is_none() {
                let message = format!("`{}` is not the origin of a page", text.escape_debug());
                let fix = "write a scheme, a host in lower case and a port if it is not the \
                           scheme's own, without a path: \"https://shop.example\"; or \"*\" alone";
                report.error("bad-address", item.location, message, fix);
            }
            origins.extend(origin);
        }
        (origins.len() == texts.len()).then_some(AllowedOrigins::Listed(origins))
    }
}

/// An origin exactly as browsers send it, because it is compared byte by byte.
fn parse_origin(text: &str) -> Option<HeaderValue> {
    let uri: Uri = text.parse().ok()?;
    let default_port = match uri.scheme_str()? {
        "https" => 443,
        "http" => 80,
        _ => return None,
    };
    let authority = uri.authority()?;
    let written = format!("{}://{authority}", uri.scheme_str()?);
    let is_as_sent = written == text
        && text == text.to_ascii_lowercase()
        && !authority.as_str().contains('@')
        && authority.port_u16() != Some(default_port);
    is_as_sent.then(|| HeaderValue::try_from(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::parse_origin;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for text in ["https://shop.example", "http://127.0.0.1:5173", "http://[::1]:8080"] {
            assert_eq!(parse_origin(text).unwrap(), text);
        }
        for text in [
            "shop.example",
            "https://shop.example/",
            "https://shop.example/pay",
            "https://Shop.example",
            "https://shop.example:443",
            "http://shop.example:80",
            "ftp://shop.example",
            "https://user@shop.example",
            "https://shop.example?a",
            "null",
            "*",
            "",
        ] {
            assert_eq!(parse_origin(text), None, "{text}");
        }
    }
}
