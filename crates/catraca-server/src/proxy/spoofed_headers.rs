//! Headers by which a client could pretend to be another one, or to have sent another request.
//!
//! Many applications read `X_Customer` and `X-Customer` as one header (CGI and WSGI turn both into
//! `HTTP_X_CUSTOMER`), and gunicorn takes `SCRIPT_NAME` for the path. So a name with `_` does not
//! pass, as in nginx, unless the route reads it.

use catraca::core::catalog::{AttributeSource, Route};
use hyper::http::{HeaderMap, HeaderName};

/// Removes the headers of a request that replace its path or its method, those in which a client
/// states an address unless a trusted proxy sent it, and names with `_` that the route does not
/// read. `address_header` is the header that proxies state the address in.
pub fn remove(
    headers: &mut HeaderMap,
    route: &Route,
    is_trusted_proxy: bool,
    address_header: Option<&str>,
) {
    let is_spoofed = |name: &HeaderName| {
        let name = name.as_str();
        if replaces_request(&name.replace('_', "-")) {
            return true;
        }
        let states_another_client = !is_trusted_proxy && states_client(name, address_header);
        !route_reads(route, name)
            && (name.contains('_') || states_another_client || reads_with_underscore(route, name))
    };
    let spoofed: Vec<HeaderName> =
        headers.keys().filter(|name| is_spoofed(name)).cloned().collect();
    for name in spoofed {
        headers.remove(name);
    }
}

/// Whether proxies state the client's address in it.
fn states_client(name: &str, address_header: Option<&str>) -> bool {
    let is_own = address_header.is_some_and(|own| own.eq_ignore_ascii_case(name));
    states_address(name) || (is_own && !is_written_afresh(name))
}

/// Whether frameworks and gateways take the path, the method or a proxy of the process from it.
fn replaces_request(name: &str) -> bool {
    matches!(
        name,
        "x-original-url"
            | "x-original-uri"
            | "x-original-method"
            | "x-original-host"
            | "x-override-url"
            | "x-rewrite-url"
            | "x-http-method"
            | "x-http-method-override"
            | "x-method-override"
            | "x-script-name"
            | "script-name"
            | "path-info"
            | "proxy"
    )
}

/// Whether applications take the client's address from it. Those that are written afresh are not
/// here.
fn states_address(name: &str) -> bool {
    matches!(
        name,
        "client-ip"
            | "x-client-ip"
            | "x-cluster-client-ip"
            | "x-originating-ip"
            | "x-remote-ip"
            | "x-remote-addr"
            | "x-envoy-external-address"
            | "true-client-ip"
            | "cf-connecting-ip"
            | "cf-connecting-ipv6"
            | "fastly-client-ip"
            | "fly-client-ip"
            | "forwarded-for"
            | "proxy-client-ip"
            | "wl-proxy-client-ip"
            | "x-appengine-user-ip"
            | "x-azure-clientip"
            | "x-forwarded"
            | "x-original-forwarded-for"
            | "x-proxyuser-ip"
            | "x-real-client-ip"
    )
}

fn is_written_afresh(name: &str) -> bool {
    name.starts_with("x-forwarded-") || matches!(name, "forwarded" | "x-real-ip")
}

/// Whether it decides who is counted, where a request ends or what the upstream learns, on every
/// route.
fn counts_everywhere(name: &str) -> bool {
    is_written_afresh(name)
        || matches!(
            name,
            "authorization"
                | "catraca-ticket"
                | "connection"
                | "content-encoding"
                | "content-length"
                | "content-type"
                | "cookie"
                | "expect"
                | "host"
                | "http2-settings"
                | "keep-alive"
                | "proxy-authorization"
                | "proxy-connection"
                | "te"
                | "trailer"
                | "transfer-encoding"
                | "upgrade"
                | "x-request-id"
        )
}

/// Whether a header of this name, written with `-`, counts on every route.
pub fn counts_on_any_route(name: &str) -> bool {
    replaces_request(name) || states_address(name) || counts_everywhere(name)
}

fn route_reads(route: &Route, name: &str) -> bool {
    let reads = |source: &AttributeSource| match source {
        AttributeSource::Header(own) => own.eq_ignore_ascii_case(name),
        _ => false,
    };
    route.sources().any(reads)
}

/// Whether the route reads this name, which is written with `-`, in a spelling with `_`.
fn reads_with_underscore(route: &Route, dashed: &str) -> bool {
    let reads = |source: &AttributeSource| match source {
        AttributeSource::Header(own) => is_dashed_form(own, dashed),
        _ => false,
    };
    route.sources().any(reads)
}

/// Whether `name`, written with `-` and in lower case, is `dashed`.
fn is_dashed_form(name: &str, dashed: &str) -> bool {
    let dash = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    name.len() == dashed.len() && name.bytes().map(dash).eq(dashed.bytes())
}

#[cfg(test)]
#[path = "../../../../fuzz/checks/request_headers.rs"]
mod request_headers_check;

#[cfg(test)]
mod tests {
    use catraca::Catalog;

    use super::*;

    fn left(lines: &[&'static str], is_trusted_proxy: bool) -> Vec<String> {
        let catalog = Catalog::parse(
            "[policy.site]\nby = ['customer']\nwindow = '1 per 1m'\n\
             [[route]]\nmatch = '/**'\ngate = 'site'\n\
             set = { customer = 'header:x-customer', device = 'header:client-ip' }\n",
        )
        .unwrap();
        let mut headers = HeaderMap::new();
        for name in lines {
            headers.append(*name, "1".parse().unwrap());
        }
        remove(&mut headers, &catalog.routes[0], is_trusted_proxy, Some("x-edge-ip"));
        let mut names: Vec<_> = headers.keys().map(|name| name.to_string()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn headers_that_replace_the_request_are_removed_from_any_peer() {
        let all = [
            "x-original-url",
            "x-original-uri",
            "x-original-method",
            "x-rewrite-url",
            "x-http-method",
            "x-http-method-override",
            "x-method-override",
            "x-script-name",
            "x_original_url",
            "x_http-method_override",
            "proxy",
        ];
        for is_trusted in [false, true] {
            assert!(left(&all, is_trusted).is_empty());
        }
    }

    #[test]
    fn addresses_are_believed_of_trusted_proxies_alone() {
        let all = ["true-client-ip", "x-edge-ip", "cf_connecting_ip", "x_edge_ip"];
        assert!(left(&all, false).is_empty());
        assert_eq!(left(&all, true), ["true-client-ip", "x-edge-ip"]);
        // The route reads it.
        assert_eq!(left(&["client-ip"], false), ["client-ip"]);
    }

    #[test]
    fn a_route_that_reads_an_underscore_gets_no_second_spelling() {
        let catalog = Catalog::parse(
            "[policy.site]\nby = ['user']\nwindow = '1 per 1m'\n\
             [[route]]\nmatch = '/**'\ngate = 'site'\nset = { user = 'header:X_User' }\n",
        )
        .unwrap();
        let mut headers = HeaderMap::new();
        for name in ["x-user", "x_user", "x-users"] {
            headers.append(name, "1".parse().unwrap());
        }
        remove(&mut headers, &catalog.routes[0], false, None);
        assert!(!headers.contains_key("x-user"));
        assert!(headers.contains_key("x_user") && headers.contains_key("x-users"));
    }

    /// Regression: gunicorn takes `SCRIPT_NAME` for the path, and `Accept_Encoding` hid a response
    /// from the rules that read it.
    #[test]
    fn names_with_an_underscore_are_removed() {
        let all = [
            "x_customer",
            "x_forwarded_for",
            "x-forwarded_host",
            "content_length",
            "transfer_encoding",
            "accept_encoding",
            "if_none_match",
            "script_name",
            "path_info",
            "x_own",
            "x-own",
            "x-customer",
        ];
        assert_eq!(left(&all, true), ["x-customer", "x-own"]);
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_request_headers() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/request_headers");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let input = std::fs::read(entry.unwrap().path()).unwrap();
            request_headers_check::check(&input, remove);
            count += 1;
        }
        assert!(count > 5, "{count}");
    }
}
