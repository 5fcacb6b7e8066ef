//! Only trusted proxies are believed about a client's address.

use std::net::IpAddr;

use catraca_core::address::AddressRange;
use catraca_core::address::forwarded::{AddressSource, find_client};

/// The first line of the input is the name of a header, the others are its lines.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (name, lines) = text.split_once('\n').unwrap_or((text, ""));
    let source = AddressSource::from_name(name);
    let lines: Vec<&str> = lines.lines().collect();
    let peer = IpAddr::from([192, 0, 2, 1]);
    let alone = find_client(peer, &[], &source, &[]);
    assert_eq!(find_client(peer, &lines, &source, &[]).address, alone.address, "{text:?}");
    if let Ok(trusted) = AddressRange::parse("192.0.2.0/24") {
        let _ = find_client(peer, &lines, &source, &[trusted]);
    }
}
