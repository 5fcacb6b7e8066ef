//! The client's request, as a proxy describes it to an authorize call.
//!
//! Proxies describe it in one of two ways: in headers (`X-Forwarded-Method` and `X-Forwarded-Uri`,
//! or `X-Original-*`), or, as Envoy's ext_authz does, by appending the client's path to the path of
//! the call and using the client's method. Callers of this module ask first whether the peer is in
//! `[network] trusted_proxies`; no other peer may describe a request. Descriptions that disagree
//! are refused: one of them may come from the client.

use hyper::http::{HeaderMap, Method, Uri};

use super::values::header_once;
use crate::http::bodies::problem::Problem;

/// The headers in which proxies send the target of the client's request, and its method.
const TARGET_HEADERS: [&str; 3] = ["x-forwarded-uri", "x-original-uri", "x-original-url"];
const METHOD_HEADERS: [&str; 2] = ["x-forwarded-method", "x-original-method"];

/// How error messages name the path that is appended to the call's own.
const APPENDED_PATH: &str = "the path after `authorize`";
const CALL_METHOD: &str = "the method of the call";

/// The parts of the path of an authorize call.
#[derive(Debug, PartialEq, Eq)]
pub struct CallPath<'a> {
    /// The gate of `/v1/gates/{gate}/authorize`, percent-encoded as it was sent.
    pub gate: Option<&'a str>,
    /// The client's path, if one is appended; begins with a slash.
    pub appended: Option<&'a str>,
}

impl<'a> CallPath<'a> {
    /// Splits the path of an authorize call as it was sent. It is not decoded or normalised first,
    /// so that nothing that is appended can change the part before it.
    pub fn split(path: &'a str) -> Option<Self> {
        let (gate, appended) = match path.strip_prefix("/v1/gates/") {
            Some(rest) => {
                let (gate, rest) = rest.split_once('/')?;
                (Some(gate), rest.strip_prefix("authorize")?)
            }
            None => (None, path.strip_prefix("/v1/authorize")?),
        };
        let whole = appended.is_empty() || appended.starts_with('/');
        whole.then_some(Self { gate, appended: Some(appended).filter(|path| !path.is_empty()) })
    }
}

/// The client's request.
#[derive(Debug, PartialEq, Eq)]
pub struct DescribedRequest {
    /// Its method.
    pub method: String,
    /// Its path and query.
    pub target: String,
}

impl DescribedRequest {
    /// The request that a trusted proxy describes with its call; `None` if it describes none.
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let appended = CallPath::split(uri.path()).and_then(|path| path.appended);
        let appended = appended.map(|path| match uri.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.to_owned(),
        });
        // Only a call that has the client's path also has the client's method.
        let own_method = appended.as_ref().map(|_| method.to_string());
        let appended = appended.map(|target| (APPENDED_PATH, target));
        let target = agreed_value(appended, &TARGET_HEADERS, headers, origin_form)?;
        let own_method = own_method.map(|method| (CALL_METHOD, method));
        let stated = agreed_value(own_method, &METHOD_HEADERS, headers, method_name)?;
        let method = stated.unwrap_or_else(|| method.to_string());
        Ok(target.map(|target| Self { method, target }))
    }
}

/// The value that the call itself (`own`, with its name for errors) and these headers give. A proxy
/// sends one of them; the others may come from the client, so all that are sent must be equal.
fn agreed_value(
    own: Option<(&'static str, String)>,
    names: &[&'static str],
    headers: &HeaderMap,
    parse: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, Problem> {
    let mut found = own.map(|(name, value)| (name.to_owned(), value));
    for header in names {
        let Some(value) = header_once(headers, header)? else { continue };
        let value = parse(&value).ok_or_else(|| invalid(header))?;
        match &found {
            Some((first, other)) if *other != value => {
                return Err(disagreement(first, header));
            }
            Some(_) => {}
            None => found = Some((format!("`{header}`"), value)),
        }
    }
    Ok(found.map(|(_, value)| value))
}

fn invalid(header: &str) -> Problem {
    let detail = format!(
        "`{header}` is not what a proxy sends; a target is a path or a URL, a method is one word"
    );
    Problem::bad("ambiguous-request", detail)
}

fn disagreement(first: &str, second: &str) -> Problem {
    let detail = format!(
        "{first} and `{second}` describe different requests; configure the proxy to send one of \
         them and to remove the other from what clients send"
    );
    Problem::bad("ambiguous-request", detail)
}

/// The path and query of a target; some proxies send a whole URL.
fn origin_form(target: &str) -> Option<String> {
    if target.starts_with('/') {
        return Some(target.to_owned());
    }
    let (_, rest) = target.split_once("://").filter(|(scheme, _)| !scheme.is_empty())?;
    match rest.find(['/', '?', '#']) {
        Some(at) if rest[at..].starts_with('/') => Some(rest[at..].to_owned()),
        // A URL without a path means the root.
        _ => Some("/".to_owned()),
    }
}

fn method_name(method: &str) -> Option<String> {
    Method::from_bytes(method.as_bytes()).ok().map(|method| method.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(uri: &str, lines: &[(&'static str, &str)]) -> Result<(String, String), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        match DescribedRequest::read(&Method::POST, &uri.parse().unwrap(), &headers) {
            Ok(Some(request)) => Ok((request.method, request.target)),
            Ok(None) => Err("nothing".to_owned()),
            Err(problem) => Err(problem.code.to_owned()),
        }
    }

    fn request(method: &str, target: &str) -> Result<(String, String), String> {
        Ok((method.to_owned(), target.to_owned()))
    }

    #[test]
    fn a_call_path_is_split_without_decoding_it() {
        let split = |path| CallPath::split(path).map(|call| (call.gate, call.appended));
        assert_eq!(split("/v1/authorize"), Some((None, None)));
        assert_eq!(split("/v1/authorize/"), Some((None, Some("/"))));
        assert_eq!(split("/v1/authorize//login"), Some((None, Some("//login"))));
        let climbing = "/v1/authorize/../gates/site/authorize";
        assert_eq!(split(climbing), Some((None, Some("/../gates/site/authorize"))));
        assert_eq!(split("/v1/gates/login/authorize"), Some((Some("login"), None)));
        let appended = "/v1/gates/login/authorize/v1/gates/site/authorize";
        assert_eq!(split(appended), Some((Some("login"), Some("/v1/gates/site/authorize"))));
        assert_eq!(split("/v1/authorized"), None);
        assert_eq!(split("/v1/gates/login"), None);
    }

    #[test]
    fn headers_describe_a_request_and_the_query_of_the_call_does_not() {
        let uri = "/v1/authorize?gate=site&uri=/free";
        let forwarded = [("x-forwarded-uri", "/login?a=1"), ("x-forwarded-method", "PUT")];
        assert_eq!(described(uri, &forwarded), request("PUT", "/login?a=1"));
        let original =
            [("x-original-url", "https://a.example/login"), ("x-original-method", "PUT")];
        assert_eq!(described(uri, &original), request("PUT", "/login"));
        assert_eq!(described(uri, &forwarded[..1]), request("POST", "/login?a=1"));
        assert_eq!(described(uri, &[]), Err("nothing".to_owned()));
    }

    #[test]
    fn an_appended_path_describes_a_request_with_the_method_of_the_call() {
        assert_eq!(described("/v1/authorize/login?a=1", &[]), request("POST", "/login?a=1"));
        assert_eq!(described("/v1/authorize/", &[]), request("POST", "/"));
        assert_eq!(described("/v1/gates/x/authorize//a", &[]), request("POST", "//a"));
    }

    #[test]
    fn a_client_behind_a_proxy_that_appends_the_path_cannot_describe_another_request() {
        let refused = Err("ambiguous-request".to_owned());
        for header in TARGET_HEADERS {
            assert_eq!(described("/v1/authorize/login", &[(header, "/free")]), refused, "{header}");
        }
        for header in METHOD_HEADERS {
            assert_eq!(described("/v1/authorize/login", &[(header, "GET")]), refused, "{header}");
        }
        let same = [("x-forwarded-uri", "/login"), ("x-forwarded-method", "POST")];
        assert_eq!(described("/v1/authorize/login", &same), request("POST", "/login"));
    }

    #[test]
    fn a_url_without_a_path_is_the_root() {
        for url in ["https://a.example", "https://a.example?x=/login", "https://a.example#/login"] {
            assert_eq!(origin_form(url).as_deref(), Some("/"), "{url}");
        }
        assert_eq!(origin_form("https://a.example/login?x").as_deref(), Some("/login?x"));
        assert_eq!(origin_form("//login").as_deref(), Some("//login"));
    }

    #[test]
    fn a_description_that_no_proxy_sends_is_refused() {
        let refused = Err("ambiguous-request".to_owned());
        for target in ["login", "http:login", "http:\\login", "?x", "*", "", "://x/login"] {
            assert_eq!(described("/v1/authorize", &[("x-original-uri", target)]), refused);
        }
        for method in ["", "GET, POST", "GET POST"] {
            let lines = [("x-forwarded-uri", "/login"), ("x-forwarded-method", method)];
            assert_eq!(described("/v1/authorize", &lines), refused, "{method}");
        }
    }
}
