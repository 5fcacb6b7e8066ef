//! No header that is left could pretend to be another client or another request, in any spelling.

use catraca::core::catalog::{Catalog, Route};
use hyper::http::{HeaderMap, HeaderName, HeaderValue};

const CATALOG: &str = "[policy.site]\nby = ['user', 'device']\nwindow = '1 per 1m'\n\
    [[route]]\nmatch = '/**'\ngate = 'site'\n\
    set = { user = 'header:x-user', device = 'header:X_Device' }\n";
/// Written with `-`: none of them is left of a client.
const FORGED: [&str; 8] = [
    "client-ip",
    "true-client-ip",
    "fly-client-ip",
    "x-azure-clientip",
    "x-forwarded",
    "x-edge-ip",
    "x-original-url",
    "x-http-method-override",
];
/// Each as it counts; no other spelling of it is left.
const COUNTED: [&str; 7] = [
    "x-user",
    "x_device",
    "x-forwarded-for",
    "content-length",
    "transfer-encoding",
    "cookie",
    "authorization",
];

/// The input has the names of headers in lines. `remove` is called with whether the peer is a
/// trusted proxy, and with the header that states an address.
pub fn check(data: &[u8], remove: impl Fn(&mut HeaderMap, &Route, bool, Option<&str>)) {
    let catalog = Catalog::parse(CATALOG).expect("the catalog");
    for is_trusted in [false, true] {
        let mut headers = HeaderMap::new();
        for line in data.split(|byte| *byte == b'\n') {
            if let Ok(name) = HeaderName::from_bytes(line) {
                headers.append(name, HeaderValue::from_static("1"));
            }
        }
        let sent = headers.clone();
        remove(&mut headers, &catalog.routes[0], is_trusted, Some("X-Edge-IP"));
        for name in headers.keys().map(HeaderName::as_str) {
            let dashed = name.replace('_', "-");
            assert!(is_trusted || !FORGED.contains(&dashed.as_str()), "{name}");
            let counted = COUNTED.iter().find(|own| own.replace('_', "-") == dashed);
            assert!(counted.is_none_or(|own| *own == name), "{name}");
        }
        for own in COUNTED {
            assert_eq!(headers.contains_key(own), sent.contains_key(own), "{own}");
        }
    }
}
