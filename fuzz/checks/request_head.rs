//! A head that passes states one length and one host, and leads to no protocol that carries
//! unchecked requests.

use hyper::http::request::Parts;
use hyper::http::{HeaderMap, HeaderName, HeaderValue, Request, Version};

/// The input has the method and the target in its first line, and then headers, `name: value`.
/// `passes` is the check of a head, and `wanted_upgrade` returns the protocol that the upstream is
/// asked for.
pub fn check(
    data: &[u8],
    passes: impl Fn(&Parts) -> bool,
    wanted_upgrade: impl Fn(&HeaderMap) -> Option<HeaderValue>,
) {
    for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
        let Some(head) = read(data, version) else { return };
        if let Some(protocol) = wanted_upgrade(&head.headers) {
            check_upgrade(&head.headers, &protocol);
        }
        if passes(&head) {
            check_head(&head);
        }
    }
}

fn read(data: &[u8], version: Version) -> Option<Parts> {
    let mut lines = data.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target).version(version);
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            request = request.header(name, value);
        }
    }
    Some(request.body(()).ok()?.into_parts().0)
}

fn check_head(head: &Parts) {
    assert_ne!(head.method.as_str(), "CONNECT");
    let count = |name: &str| head.headers.get_all(name).iter().count();
    assert!(count("content-length") <= 1);
    assert!(count("host") <= 1);
    assert!(count("host") == 1 || head.version != Version::HTTP_11);
    let stated = head.headers.get("host").map(|host| host.to_str().expect("a readable host"));
    let target = head.uri.authority().map(|authority| authority.as_str());
    for host in stated.into_iter().chain(target) {
        assert!(!host.contains(['/', '?', '#', '@', '\\', ' ', '"', '<']), "{host}");
    }
    if let (Some(stated), Some(target)) = (stated, target) {
        assert!(stated.eq_ignore_ascii_case(target), "{stated} {target}");
    }
    for name in named_by_connection(&head.headers) {
        assert!(name != "host" && name != "content-length", "{name} would not be passed on");
    }
}

fn check_upgrade(headers: &HeaderMap, protocol: &HeaderValue) {
    assert_eq!(headers.get_all("upgrade").iter().count(), 1);
    assert!(named_by_connection(headers).iter().any(|name| name == "upgrade"));
    let text = protocol.to_str().expect("a readable protocol").to_ascii_lowercase();
    assert!(!text.is_empty() && !text.contains([',', ' ', ';', '"']), "{text}");
    let name = text.split('/').next().unwrap_or_default();
    assert!(!["h2c", "h2", "http", "tls"].contains(&name), "{text}");
}

fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all("connection").iter().filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(','));
    names.map(|name| name.trim().to_ascii_lowercase()).collect()
}
