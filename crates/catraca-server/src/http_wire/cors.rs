//! Which web pages of other origins may read the responses that the proxy makes itself, and the
//! denials of authorize calls, which a gateway hands on.
//!
//! Responses of upstreams have their own CORS headers, and preflights are requests like any other.

use hyper::http::{HeaderMap, HeaderValue, header};

use crate::config::{AllowedOrigins, ServerSection};

const EXPOSED: HeaderValue = HeaderValue::from_static("Retry-After, RateLimit, RateLimit-Policy");
const EXPOSED_WITH_X: HeaderValue = HeaderValue::from_static(
    "Retry-After, RateLimit, RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, \
     X-RateLimit-Reset",
);

/// The origin of the page that made a request; absent if several headers contradict each other.
pub fn origin(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(header::ORIGIN).iter();
    let first = lines.next()?;
    lines.next().is_none().then(|| first.clone())
}

/// Adds the headers by which a browser lets the page of this origin read the response.
pub fn write(settings: &ServerSection, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
    let allowed = match &settings.cors_origins {
        AllowedOrigins::Any => HeaderValue::from_static("*"),
        AllowedOrigins::Listed(listed) if listed.is_empty() => return,
        AllowedOrigins::Listed(listed) => {
            // A cache must not hand the response for one page to another one.
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
            let is_listed = |origin: &&HeaderValue| {
                listed.iter().any(|listed| listed.as_bytes() == origin.as_bytes())
            };
            let Some(origin) = origin.filter(is_listed) else { return };
            // Browsers accept it only beside the name of an origin.
            let yes = HeaderValue::from_static("true");
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
            origin.clone()
        }
    };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    let exposed = if settings.x_ratelimit { EXPOSED_WITH_X } else { EXPOSED };
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn written(setting: &str, origin: Option<&'static str>) -> HeaderMap {
        let text = format!("[policy.a]\nby = ['ip']\nwindow = '1 per 1m'\n[server]\n{setting}\n");
        let settings = config::parse(&text).unwrap().process.server;
        let mut headers = HeaderMap::new();
        write(&settings, origin.map(HeaderValue::from_static).as_ref(), &mut headers);
        headers
    }

    #[test]
    fn a_listed_page_may_read_and_another_one_may_not() {
        let setting = "cors_origins = ['https://shop.example', 'http://127.0.0.1:5173']";
        for origin in ["https://shop.example", "http://127.0.0.1:5173"] {
            let headers = written(setting, Some(origin));
            assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], origin);
            assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
            assert_eq!(headers[header::ACCESS_CONTROL_EXPOSE_HEADERS], EXPOSED);
            assert_eq!(headers[header::VARY], "Origin");
        }
        for origin in [Some("https://evil.example"), Some("https://shop.example:444"), None] {
            let headers = written(setting, origin);
            assert_eq!((headers.len(), &headers[header::VARY]), (1, &"Origin".parse().unwrap()));
        }
        assert!(written("", Some("https://shop.example")).is_empty());
    }

    #[test]
    fn any_page_may_read_without_credentials() {
        let setting = "cors_origins = '*'\nx_ratelimit = true";
        let headers = written(setting, Some("https://shop.example"));
        assert_eq!(headers[header::ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        assert_eq!(headers[header::ACCESS_CONTROL_EXPOSE_HEADERS], EXPOSED_WITH_X);
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn two_origins_are_none() {
        let mut headers = HeaderMap::new();
        assert_eq!(origin(&headers), None);
        headers.append(header::ORIGIN, HeaderValue::from_static("https://a.example"));
        assert_eq!(origin(&headers).unwrap(), "https://a.example");
        headers.append(header::ORIGIN, HeaderValue::from_static("https://b.example"));
        assert_eq!(origin(&headers), None);
    }
}
