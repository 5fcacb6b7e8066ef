//! Tests of lookups in the allowlist and the blocklist.

use super::*;

fn at(secs: i64) -> Time {
    Time::from_millis(secs * 1_000)
}

fn range(text: &str, until: Option<i64>) -> AccessListEntry {
    let what = ListTarget::Range(AddressRange::parse(text).unwrap());
    AccessListEntry {
        namespace: None,
        target: what,
        reason: Some(text.to_owned()),
        until: until.map(at),
    }
}

fn value(attribute: &str, value: &str, until: Option<i64>) -> AccessListEntry {
    let what = ListTarget::Value { attribute: attribute.to_owned(), value: value.to_owned() };
    AccessListEntry {
        namespace: None,
        target: what,
        reason: Some(format!("{attribute}={value}")),
        until: until.map(at),
    }
}

/// The reason of the entry that blocks a caller; the helpers above set it to the entry's target.
fn blocked<'a>(
    lists: &'a Lists,
    ips: &[&str],
    pairs: &[(&str, &str)],
    now: Time,
) -> Option<&'a str> {
    let addresses: Vec<Address> = ips.iter().map(|ip| Address::parse(ip).unwrap()).collect();
    let who =
        CallerIdentity { addresses: &addresses, attributes: pairs, ..CallerIdentity::default() };
    assert!(lists.find_allow_entry(&who, now).is_none());
    lists.find_block_entry(&who, now).and_then(|entry| entry.reason.as_deref())
}

fn blocking(entries: Vec<AccessListEntry>) -> Lists {
    Lists::new(Vec::new(), entries)
}

///
#[test]
fn a_range_denies_its_members_and_not_its_neighbours() {
    let lists = blocking(vec![range("203.0.113.0/24", None), range("2001:db8::/32", None)]);
    let table = [
        ("203.0.113.0", Some("203.0.113.0/24")),
        ("203.0.113.255", Some("203.0.113.0/24")),
        ("::ffff:203.0.113.9", Some("203.0.113.0/24")),
        ("203.0.112.255", None),
        ("203.0.114.0", None),
        ("2001:db8:ffff::1", Some("2001:db8::/32")),
        ("2001:db9::1", None),
    ];
    for (ip, found) in table {
        assert_eq!(blocked(&lists, &[ip], &[], at(0)), found, "{ip}");
    }
}

/// covers: 003-46
#[test]
fn an_entry_without_an_end_never_expires() {
    let lists = blocking(vec![range("198.51.100.7", None), value("token", "t", None)]);
    let years = at(10 * 366 * 86_400);
    assert!(blocked(&lists, &["198.51.100.7"], &[], years).is_some());
    assert!(blocked(&lists, &[], &[("token", "t")], years).is_some());
}

/// covers: 003-47
#[test]
fn an_entry_with_an_end_counts_until_that_instant() {
    let lists = blocking(vec![range("198.51.100.7", Some(60)), value("token", "t", Some(60))]);
    let last = Time::from_micros(at(60).micros() - 1);
    for (now, stands) in [(at(0), true), (last, true), (at(60), false), (at(61), false)] {
        assert_eq!(blocked(&lists, &["198.51.100.7"], &[], now).is_some(), stands, "{now}");
        assert_eq!(blocked(&lists, &[], &[("token", "t")], now).is_some(), stands, "{now}");
    }
}

///
#[test]
fn an_ended_narrow_range_does_not_hide_a_live_wide_one() {
    let wide_lives = blocking(vec![
        range("203.0.113.7", Some(10)),
        range("203.0.113.0/24", Some(100)),
        range("203.0.0.0/16", Some(5)),
        range("2001:db8::7", Some(10)),
        range("2001:db8::/32", None),
    ]);
    assert_eq!(blocked(&wide_lives, &["203.0.113.7"], &[], at(50)), Some("203.0.113.0/24"));
    assert_eq!(blocked(&wide_lives, &["203.0.113.7"], &[], at(100)), None);
    assert_eq!(blocked(&wide_lives, &["2001:db8::7"], &[], at(50)), Some("2001:db8::/32"));
    let narrow_lives = blocking(vec![range("203.0.113.7", None), range("203.0.113.0/24", Some(1))]);
    assert_eq!(blocked(&narrow_lives, &["203.0.113.7"], &[], at(50)), Some("203.0.113.7"));
    assert_eq!(blocked(&narrow_lives, &["203.0.113.8"], &[], at(50)), None);
}

#[test]
fn the_entry_that_ends_last_is_the_one_named() {
    let lists = blocking(vec![
        range("203.0.113.7", Some(10)),
        range("203.0.113.0/24", Some(30)),
        range("198.51.100.7", Some(20)),
        value("token", "t", Some(40)),
    ]);
    let both = ["203.0.113.7", "198.51.100.7"];
    assert_eq!(blocked(&lists, &both, &[], at(0)), Some("203.0.113.0/24"));
    assert_eq!(blocked(&lists, &both, &[("token", "t")], at(0)), Some("token=t"));
    assert_eq!(blocked(&lists, &both[1..], &[("token", "u")], at(0)), Some("198.51.100.7"));
}

#[test]
fn of_two_entries_for_one_target_the_later_end_is_used() {
    for ends in [[Some(10), Some(90)], [Some(90), Some(10)], [None, Some(10)], [Some(10), None]] {
        let ranges = ["::ffff:198.51.100.7", "198.51.100.7/32"];
        let lists = blocking(ranges.iter().zip(ends).map(|(text, end)| range(text, end)).collect());
        assert!(blocked(&lists, &["198.51.100.7"], &[], at(50)).is_some(), "{ends:?}");
        let lists = blocking(ends.iter().map(|end| value("token", "t", *end)).collect());
        assert!(blocked(&lists, &[], &[("token", "t")], at(50)).is_some(), "{ends:?}");
    }
}

#[test]
fn values_are_found_by_attribute_and_value_together() {
    let pairs = [("a", "bc"), ("ab", "c"), ("token", "t1"), ("token", "t3"), ("tenant", "t2")];
    let lists = blocking(pairs.map(|(name, text)| value(name, text, None)).to_vec());
    for pair in pairs {
        let reason = format!("{}={}", pair.0, pair.1);
        assert_eq!(blocked(&lists, &[], &[("x", "y"), pair], at(0)), Some(reason.as_str()));
    }
    for pair in [("a", "c"), ("ab", "bc"), ("token", "t2"), ("", ""), ("token", "T1")] {
        assert_eq!(blocked(&lists, &["198.51.100.7"], &[pair], at(0)), None, "{pair:?}");
    }
}

#[test]
fn an_attribute_has_pseudonyms_if_one_of_its_entries_has_that_form() {
    let pseudonym = "~07aaaaaaaaaaaaaaaaaaaaaaaa";
    let lists = blocking(vec![
        value("a", "~not-a-pseudonym", None),
        value("a", pseudonym, None),
        value("ab", "~not-a-pseudonym", None),
        value("ab", "z", None),
    ]);
    let found = ["", "a", "aa", "ab", "b"].map(|attribute| lists.has_pseudonyms("", attribute));
    assert_eq!(found, [false, true, false, false, false]);
    let allowing = Lists::new(vec![value("b", pseudonym, None)], Vec::new());
    assert!(allowing.has_pseudonyms("", "b") && !Lists::default().has_pseudonyms("", "b"));
}

#[test]
fn the_lists_are_apart() {
    let lists = Lists::new(vec![range("10.0.0.0/8", None)], vec![range("10.1.0.0/16", None)]);
    let inner = [Address::parse("10.1.2.3").unwrap()];
    let who = CallerIdentity { addresses: &inner, ..CallerIdentity::default() };
    assert!(
        lists.find_allow_entry(&who, at(0)).is_some()
            && lists.find_block_entry(&who, at(0)).is_some()
    );
    let outer = [Address::parse("10.2.2.3").unwrap()];
    let who = CallerIdentity { addresses: &outer, ..CallerIdentity::default() };
    assert!(
        lists.find_allow_entry(&who, at(0)).is_some()
            && lists.find_block_entry(&who, at(0)).is_none()
    );
}

#[test]
fn empty_lists_say_so() {
    assert!(Lists::default().is_empty_in("") && Lists::new(Vec::new(), Vec::new()).is_empty_in(""));
    assert!(!Lists::new(vec![range("::/0", Some(0))], Vec::new()).is_empty_in(""));
    assert!(!blocking(vec![value("a", "b", None)]).is_empty_in(""));
    assert_eq!(blocked(&Lists::default(), &["::1"], &[("a", "b")], at(0)), None);
}

fn in_namespace(namespace: &str, entry: AccessListEntry) -> AccessListEntry {
    AccessListEntry { namespace: Some(namespace.to_owned()), ..entry }
}

#[test]
fn an_entry_of_a_namespace_matches_only_there() {
    let pseudonym = "~07aaaaaaaaaaaaaaaaaaaaaaaa";
    let lists = Lists::new(
        vec![in_namespace("blog", value("customer", "ana", None))],
        vec![
            in_namespace("shop", range("10.0.0.0/8", Some(100))),
            in_namespace("shop", value("card", pseudonym, None)),
            range("10.1.0.0/16", Some(50)),
        ],
    );
    let addresses = [Address::parse("10.1.2.3").unwrap()];
    let found = |namespace: &str, now: i64| {
        let attributes = &[("customer", "ana")];
        let who = CallerIdentity { namespace, addresses: &addresses, attributes };
        let allowed = lists.find_allow_entry(&who, at(now)).is_some();
        let blocked = lists.find_block_entry(&who, at(now));
        (allowed, blocked.and_then(|entry| entry.reason.as_deref()))
    };
    assert_eq!(found("shop", 0), (false, Some("10.0.0.0/8")), "both match; the later end wins");
    assert_eq!(found("blog", 0), (true, Some("10.1.0.0/16")));
    assert_eq!(found("wiki", 0), (false, Some("10.1.0.0/16")));
    assert_eq!(found("shop", 50), (false, Some("10.0.0.0/8")));
    assert_eq!(found("blog", 50), (true, None));
    let has_pseudonyms = |namespace| lists.has_pseudonyms(namespace, "card");
    assert!(has_pseudonyms("shop") && !has_pseudonyms("blog"));
    let own = blocking(vec![in_namespace("shop", range("10.0.0.0/8", None))]);
    assert!(own.is_empty_in("blog") && !own.is_empty_in("shop"));
}

/// A lookup finds the same entry as a linear search through all entries.
#[test]
fn the_index_finds_what_a_linear_search_finds() {
    let mut entries = Vec::new();
    for number in 0..400_u32 {
        let net = number.wrapping_mul(0x9e37_79b9) & 0x0303_0303;
        let prefix = 8 + number % 25;
        let net = ipnet::Ipv4Net::new(net.into(), prefix as u8).unwrap().trunc();
        entries.push(range(&net.to_string(), (number % 3 > 0).then_some(i64::from(number % 100))));
    }
    let lists = blocking(entries.clone());
    for number in 0..2_000_u32 {
        let ip = std::net::Ipv4Addr::from(number.wrapping_mul(0x85eb_ca6b) & 0x0303_0303);
        let address = [Address::from_ip(ip.into())];
        let now = at(i64::from(number % 110));
        let holds = |entry: &&AccessListEntry| match &entry.target {
            ListTarget::Range(range) => range.contains(&address[0]),
            ListTarget::Value { .. } => false,
        };
        let plain = entries
            .iter()
            .filter(holds)
            .filter(|entry| entry.is_live(now))
            .map(AccessListEntry::end)
            .max();
        let who = CallerIdentity { addresses: &address, ..CallerIdentity::default() };
        assert_eq!(
            lists.find_block_entry(&who, now).map(AccessListEntry::end),
            plain,
            "{ip} at {now}"
        );
    }
}

#[test]
fn ranges_of_every_prefix_length_contain_their_addresses() {
    let all_ones = std::net::Ipv6Addr::from(u128::MAX);
    for prefix in 0..=128 {
        let net = ipnet::Ipv6Net::new(all_ones, prefix).unwrap().trunc();
        let lists = blocking(vec![range(&net.to_string(), None)]);
        assert!(blocked(&lists, &[&all_ones.to_string()], &[], at(0)).is_some(), "{net}");
        let is_every_address = prefix == 0;
        assert_eq!(blocked(&lists, &["::1"], &[], at(0)).is_some(), is_every_address, "{net}");
        assert_eq!(blocked(&lists, &["255.255.255.255"], &[], at(0)), None, "{net}");
    }
    let lists = blocking(vec![range("0.0.0.0/0", None)]);
    assert!(blocked(&lists, &["198.51.100.7"], &[], at(0)).is_some());
    assert_eq!(blocked(&lists, &["2001:db8::7"], &[], at(0)), None);
}

/// All worker threads read the same lists.
#[test]
fn lists_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Lists::default());
}
