//! Trailers of requests, which only gRPC has a use for.
//!
//! Some servers add trailers to the headers, so that a trailer could replace what was checked. The
//! trailers of other requests are not passed on, nor are those that would count as a header.

use bytes::Bytes;
use catraca::core::catalog::{AttributeSource, Route};
use hyper::body::Frame;
use hyper::http::{HeaderMap, HeaderName, header};

use super::spoofed_headers;

/// Which trailers of a request pass.
pub struct TrailerRule {
    /// The headers that the route reads.
    route_headers: Vec<String>,
}

impl TrailerRule {
    /// The rule for a request; none if no trailer passes. `address_header` is the header that
    /// states the address of a client.
    pub fn for_request(
        headers: &HeaderMap,
        route: &Route,
        address_header: Option<&str>,
    ) -> Option<Self> {
        let content_type = headers.get(header::CONTENT_TYPE)?.as_bytes();
        let rest = content_type.strip_prefix(b"application/grpc")?;
        let is_grpc = rest.is_empty() || matches!(rest[0], b'+' | b';');
        let header_of = |source: &AttributeSource| match source {
            AttributeSource::Header(name) => Some(name.to_string()),
            _ => None,
        };
        let names = route.sources().filter_map(header_of);
        let names = names.chain(address_header.map(str::to_owned));
        let route_headers = names.map(|name| name.to_ascii_lowercase().replace('_', "-")).collect();
        is_grpc.then_some(Self { route_headers })
    }

    /// A part of a body without trailers that do not pass; none if nothing is left of it.
    pub fn clean_part(rule: Option<&Self>, part: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let mut trailers = match part.into_trailers() {
            Ok(trailers) => trailers,
            Err(data) => return Some(data),
        };
        rule?.clean(&mut trailers);
        (!trailers.is_empty()).then(|| Frame::trailers(trailers))
    }

    fn clean(&self, trailers: &mut HeaderMap) {
        let removed: Vec<HeaderName> =
            trailers.keys().filter(|name| !self.passes(name)).cloned().collect();
        for name in removed {
            trailers.remove(name);
        }
    }

    fn passes(&self, name: &HeaderName) -> bool {
        let dashed = name.as_str().replace('_', "-");
        !spoofed_headers::counts_on_any_route(&dashed) && !self.route_headers.contains(&dashed)
    }
}

#[cfg(test)]
#[path = "../../../../fuzz/checks/request_trailers.rs"]
mod request_trailers_check;

#[cfg(test)]
mod tests {
    use catraca::Catalog;

    use super::*;

    fn left(content_type: &'static str, names: &[&'static str]) -> Vec<String> {
        let catalog = Catalog::parse(
            "[policy.site]\nby = ['customer']\nwindow = '1 per 1m'\n\
             [[route]]\nmatch = '/**'\ngate = 'site'\nset = { customer = 'header:X-Customer' }\n",
        )
        .unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
        let rule = TrailerRule::for_request(&headers, &catalog.routes[0], Some("X-Edge-IP"));
        let mut trailers = HeaderMap::new();
        for name in names {
            trailers.append(*name, "1".parse().unwrap());
        }
        let part = TrailerRule::clean_part(rule.as_ref(), Frame::trailers(trailers));
        let trailers = part.map(|part| part.into_trailers().unwrap()).unwrap_or_default();
        trailers.keys().map(|name| name.to_string()).collect()
    }

    #[test]
    fn trailers_of_grpc_pass_unless_they_would_count_as_headers() {
        let names = [
            "checksum-bin",
            "x-customer",
            "x_customer",
            "x-forwarded-for",
            "x-real-ip",
            "content-length",
            "authorization",
            "true-client-ip",
            "x-original-url",
            "x-edge-ip",
            "x-tail",
        ];
        for grpc in ["application/grpc", "application/grpc+proto", "application/grpc;x=1"] {
            assert_eq!(left(grpc, &names), ["checksum-bin", "x-tail"]);
        }
        for other in ["application/json", "application/grpc-web"] {
            assert_eq!(left(other, &names), [""; 0]);
        }
        assert_eq!(left("application/grpc", &["host"]), [""; 0]);
    }

    fn trailers_left(
        headers: &HeaderMap,
        route: &Route,
        address_header: &str,
        trailers: HeaderMap,
    ) -> HeaderMap {
        let rule = TrailerRule::for_request(headers, route, Some(address_header));
        let part = TrailerRule::clean_part(rule.as_ref(), Frame::trailers(trailers));
        part.map(|part| part.into_trailers().unwrap()).unwrap_or_default()
    }

    /// Runs the check of the fuzz target with the inputs in `fuzz/corpus`.
    #[test]
    fn inputs_of_request_trailers() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/request_trailers");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let input = std::fs::read(entry.unwrap().path()).unwrap();
            request_trailers_check::check(&input, trailers_left);
            count += 1;
        }
        assert!(count > 5, "{count}");
    }
}
