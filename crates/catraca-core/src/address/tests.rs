//! Tests of addresses, their keys, and ranges.

use std::net::Ipv6Addr;

use super::*;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

/// KX1: the same bits are the same address in every notation.
///
///
#[test]
fn every_notation_of_one_address_is_that_address() {
    let four = [
        "1.2.3.4",
        " 1.2.3.4 ",
        "::ffff:1.2.3.4",
        "::ffff:102:304",
        "[::FFFF:0102:0304]",
        "0:0:0:0:0:ffff:1.2.3.4",
        "::ffff:1.2.3.4%eth0",
    ];
    for text in four {
        assert_eq!(address(text).to_string(), "1.2.3.4", "{text}");
        assert_eq!(address(text).key(64), "1.2.3.4", "{text}");
    }
    let six = [
        "2001:db8::1",
        "2001:DB8:0:0:0:0:0:1",
        "[2001:db8::1]",
        "2001:db8::0.0.0.1",
        "2001:db8::1%25en0",
        "[2001:db8::1%3]",
    ];
    for text in six {
        assert_eq!(address(text).to_string(), "2001:db8::1", "{text}");
    }
    assert_eq!(Address::from_ip("::ffff:1.2.3.4".parse().unwrap()), address("1.2.3.4"));
}

/// KX1: a dotted tail does not make an address IPv4.
///
/// covers: X-16, 004-13
#[test]
fn ipv6_is_keyed_by_its_network() {
    assert_eq!(address("2001:db8::1.2.3.4").key(64), "2001:db8::/64");
    assert_eq!(address("::1.2.3.4").key(64), "::/64");
    assert_eq!(address("2001:db8:1:2:3:4:5:6").key(64), "2001:db8:1:2::/64");
    assert_eq!(address("2001:db8:1:2ff:3:4:5:6").key(56), "2001:db8:1:200::/56");
    assert_eq!(address("2001:db8:1:2:3:4:5:6").key(48), "2001:db8:1::/48");
    assert_eq!(address("2001:db8::1").key(128), "2001:db8::1/128");
    assert_eq!(address("2001:db8::1").key(255), "2001:db8::1/128");
    assert_eq!(address("2001:db8::1").key(0), "::/0");
}

///
#[test]
fn a_whole_network_is_one_key() {
    let keys = (0..1_000_u128).map(|host| {
        let bits = (0x2001_0db8_0001_0002 << 64)
            | host.wrapping_mul(0x9e37_79b9_7f4a_7c15) & 0xffff_ffff_ffff_ffff;
        Address::from_ip(IpAddr::V6(Ipv6Addr::from_bits(bits))).key(64)
    });
    assert_eq!(keys.collect::<std::collections::BTreeSet<_>>().len(), 1);
}

#[test]
fn invalid_addresses_are_refused_with_a_fix() {
    let table = [
        ("1.2.3.4:80", "`1.2.3.4:80` has a port: write the address alone, `1.2.3.4`"),
        ("[2001:db8::1]:80", "write the address alone, `2001:db8::1`"),
        ("10.0.0.0/8", "`10.0.0.0/8` is a range: write one address"),
        ("", "`` is not an address: write one such as 198.51.100.7"),
        ("localhost", "is not an address"),
        ("1.2.3", "is not an address"),
        ("010.0.0.1", "is not an address"),
        ("0x7f.0.0.1", "is not an address"),
        ("1.2.3.4.", "is not an address"),
        ("1.2.3.256", "is not an address"),
        ("[1.2.3.4]", "is not an address"),
        ("[2001:db8::1", "is not an address"),
        ("1.2.3.4%eth0", "is not an address"),
        ("2001:db8::1%", "is not an address"),
        ("::ffff:1.2.3.4:80", "is not an address"),
        ("unknown", "is not an address"),
        ("１.2.3.4", "is not an address"),
    ];
    for (text, message) in table {
        let refused = Address::parse(text).unwrap_err().to_string();
        assert!(refused.contains(message), "{text}: {refused}");
    }
    let long = Address::parse(&"9".repeat(10_000)).unwrap_err().to_string();
    assert!(long.len() < 200, "{long}");
}

///
#[test]
fn a_range_holds_its_members_and_not_its_neighbours() {
    let holds =
        |range: &str, member: &str| AddressRange::parse(range).unwrap().contains(&address(member));
    let table = [
        ("203.0.113.0/24", "203.0.113.0", true),
        ("203.0.113.0/24", "203.0.113.255", true),
        ("203.0.113.0/24", "203.0.112.255", false),
        ("203.0.113.0/24", "203.0.114.0", false),
        ("203.0.113.0/24", "::ffff:203.0.113.9", true),
        ("::ffff:203.0.113.0/120", "203.0.113.9", true),
        ("::ffff:203.0.113.0/120", "203.0.114.9", false),
        ("::ffff:0:0/96", "8.8.8.8", true),
        ("2001:db8::/32", "2001:db8:ffff::1", true),
        ("2001:db8::/32", "2001:db9::", false),
        ("198.51.100.7", "198.51.100.7", true),
        ("198.51.100.7", "198.51.100.6", false),
        ("[2001:db8::7]", "2001:db8::7", true),
        ("0.0.0.0/0", "255.255.255.255", true),
        ("0.0.0.0/0", "2001:db8::1", false),
        ("::/0", "2001:db8::1", true),
        ("::/0", "1.2.3.4", false),
    ];
    for (range, member, held) in table {
        assert_eq!(holds(range, member), held, "{range} {member}");
    }
}

///
#[test]
fn equal_ranges_have_one_form() {
    let table = [
        ("::ffff:203.0.113.0/120", "203.0.113.0/24"),
        ("::ffff:1.2.3.4/128", "1.2.3.4"),
        ("1.2.3.4/32", "1.2.3.4"),
        ("2001:DB8:0::/48", "2001:db8::/48"),
        ("2001:db8::1/128", "2001:db8::1"),
    ];
    for (text, form) in table {
        let range = AddressRange::parse(text).unwrap();
        assert_eq!((range.to_string().as_str(), AddressRange::parse(form)), (form, Ok(range)));
    }
}

#[test]
fn invalid_ranges_are_refused_with_a_fix() {
    let table = [
        (
            "203.0.113.7/24",
            "is not the start of its range: write 203.0.113.0/24, or 203.0.113.7 for",
        ),
        ("::ffff:203.0.113.7/120", "write 203.0.113.0/24, or 203.0.113.7"),
        ("2001:db8::1/64", "write 2001:db8::/64, or 2001:db8::1"),
        ("203.0.113.0/33", "`203.0.113.0/33` has no such prefix: write /0 to /32"),
        ("2001:db8::/129", "write /0 to /128"),
        ("203.0.113.0/999", "write /0 to /32"),
        ("203.0.113.0/", "is not a range"),
        ("203.0.113.0/+8", "is not a range"),
        ("203.0.113.0/24/8", "is not a range"),
        ("203.0.113.0/255.255.255.0", "is not a range"),
        ("203.0.113.*", "`203.0.113.*` is not a range: write one such as 203.0.113.0/24"),
        ("", "is not a range"),
    ];
    for (text, message) in table {
        let refused = AddressRange::parse(text).unwrap_err().to_string();
        assert!(refused.contains(message), "{text}: {refused}");
    }
}
