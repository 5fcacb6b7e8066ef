//! Tests of finding the client with forged, broken and unusual headers.

use proptest::prelude::*;

use super::*;

const PEER: &str = "10.0.0.1";

fn find(peer: &str, lines: &[&str], source: AddressSource) -> (String, AddressReason) {
    let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| AddressRange::parse(text).unwrap());
    let found = find_client(peer.parse().unwrap(), lines, &source, &trusted);
    (found.address.to_string(), found.why)
}

fn xff(lines: &[&str]) -> (String, AddressReason) {
    find(PEER, lines, AddressSource::XForwardedFor)
}

fn forwarded(lines: &[&str]) -> (String, AddressReason) {
    find(PEER, lines, AddressSource::Forwarded)
}

/// KX1: forged leftmost, untrusted peer, two lines, ports, garbage.
///
/// covers: X-17, 003-40
#[test]
fn x_forwarded_for_is_read_from_the_right() {
    let table: [(&[&str], &str, AddressReason); 14] = [
        (&["6.6.6.6, 198.51.100.7"], "198.51.100.7", AddressReason::FirstUntrusted),
        (&["6.6.6.6, 198.51.100.7, 10.9.9.9"], "198.51.100.7", AddressReason::FirstUntrusted),
        (&["6.6.6.6", "198.51.100.7"], "198.51.100.7", AddressReason::FirstUntrusted),
        (&["198.51.100.7", "10.9.9.9"], "198.51.100.7", AddressReason::FirstUntrusted),
        (&["198.51.100.7:50123"], "198.51.100.7", AddressReason::FirstUntrusted),
        (&["[2001:db8::7]:50123"], "2001:db8::7", AddressReason::FirstUntrusted),
        (&["2001:db8::7%eth0,10.2.2.2"], "2001:db8::7", AddressReason::FirstUntrusted),
        (&["::ffff:198.51.100.7"], "198.51.100.7", AddressReason::FirstUntrusted),
        (&["6.6.6.6, garbage, 10.2.2.2"], "10.2.2.2", AddressReason::Unreadable),
        (&["6.6.6.6, , 10.2.2.2"], "10.2.2.2", AddressReason::Unreadable),
        (&["6.6.6.6, unknown"], PEER, AddressReason::Unreadable),
        (&["6.6.6.6, 198.51.100.7:99999"], PEER, AddressReason::Unreadable),
        (&["10.3.3.3, 10.2.2.2"], PEER, AddressReason::AllTrusted),
        (&["", " "], PEER, AddressReason::NoHeader),
    ];
    for (lines, address, why) in table {
        assert_eq!(xff(lines), (address.to_owned(), why), "{lines:?}");
    }
}

/// covers: X-17, 003-40, B-52
#[test]
fn headers_of_an_untrusted_peer_are_not_read() {
    for lines in [&["6.6.6.6"][..], &["10.0.0.9"], &["garbage"], &[]] {
        let untrusted = find("198.51.100.9", lines, AddressSource::XForwardedFor);
        assert_eq!(untrusted, ("198.51.100.9".to_owned(), AddressReason::UntrustedPeer));
    }
    let mapped = find("::ffff:10.0.0.1", &["198.51.100.7"], AddressSource::XForwardedFor);
    assert_eq!(mapped, ("198.51.100.7".to_owned(), AddressReason::FirstUntrusted));
    let no_proxies =
        find_client(PEER.parse().unwrap(), &["6.6.6.6"], &AddressSource::XForwardedFor, &[]);
    assert_eq!(
        (no_proxies.address.to_string().as_str(), no_proxies.why),
        (PEER, AddressReason::UntrustedPeer)
    );
}

/// covers: X-17
#[test]
fn each_listener_has_one_source() {
    let real = AddressSource::from_name("X-Real-IP");
    assert_eq!(
        (real.header(), AddressSource::from_name("Peer")),
        (Some("x-real-ip"), AddressSource::Peer)
    );
    assert_eq!(AddressSource::from_name("x-forwarded-FOR"), AddressSource::XForwardedFor);
    assert_eq!(AddressSource::from_name("Forwarded").header(), Some("forwarded"));
    assert_eq!(AddressSource::default().header(), None);
    assert_eq!(
        find(PEER, &["6.6.6.6"], AddressSource::Peer),
        (PEER.to_owned(), AddressReason::Peer)
    );
    assert_eq!(find(PEER, &["6.6.6.6"], real).0, "6.6.6.6");
}

/// KX1: `for="[v6]:p"`, hidden and unknown nodes.
///
/// covers: X-17
#[test]
fn forwarded_is_read_with_its_quotes() {
    let table = [
        (
            r#"for=6.6.6.6, For="[2001:db8::7]:4711";proto=https"#,
            "2001:db8::7",
            AddressReason::FirstUntrusted,
        ),
        (
            r#"proto=http ; FOR="198.51.100.7:_port" ;; by=10.0.0.1;"#,
            "198.51.100.7",
            AddressReason::FirstUntrusted,
        ),
        (r#"for=198.51.100.7:80"#, "198.51.100.7", AddressReason::FirstUntrusted),
        (r#"for="198\.51.100.7""#, "198.51.100.7", AddressReason::FirstUntrusted),
        (
            r#"for=198.51.100.7;host="a,for=6.6.6.6", for=10.2.2.2"#,
            "198.51.100.7",
            AddressReason::FirstUntrusted,
        ),
        (
            r#"for=198.51.100.7;host="a\",for=6.6.6.6""#,
            "198.51.100.7",
            AddressReason::FirstUntrusted,
        ),
        (
            r#"for=198.51.100.7;host="a\\", for=10.2.2.2"#,
            "198.51.100.7",
            AddressReason::FirstUntrusted,
        ),
        (
            r#"for=198.51.100.7;host="a,b\"c", for=10.2.2.2"#,
            "198.51.100.7",
            AddressReason::FirstUntrusted,
        ),
        (r#"for=198.51.100.7;host="a,b\\""#, "198.51.100.7", AddressReason::FirstUntrusted),
        (r#"for=6.6.6.6, for="7.7.7.7"x=1"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=7.7.7.7;x=a\b"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=7.7.7.7;x=a=b"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=_hidden, for=10.2.2.2"#, "10.2.2.2", AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=unknown"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, proto=https"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=7.7.7.7;for=8.8.8.8"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for="7.7.7.7"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=7.7.7.7""#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for="7.7.7.7"x"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for=7.7.7.7 x"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for"#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, for="#, PEER, AddressReason::Unreadable),
        (r#"for=6.6.6.6, 7.7.7.7"#, PEER, AddressReason::Unreadable),
        (r#"for="[fd00::2]", for=10.2.2.2"#, PEER, AddressReason::AllTrusted),
    ];
    for (line, address, why) in table {
        assert_eq!(forwarded(&[line]), (address.to_owned(), why), "{line}");
    }
}

/// An open quote from the client must not swallow what the proxy added after it.
///
/// covers: X-17
#[test]
fn a_forged_quote_does_not_hide_the_proxys_own_hop() {
    for forged in [r#"for=""#, r#"for="x"#, r#"for="x\"#, r#"a="b;c=\""#, "\"", "\\", ",,;=\""] {
        let line = format!("{forged}, for=198.51.100.7");
        assert_eq!(forwarded(&[&line]).0, "198.51.100.7", "{line}");
        assert_eq!(forwarded(&[forged, "for=198.51.100.7"]).0, "198.51.100.7", "{forged}");
    }
}

/// The three things a hop can be, each in several spellings.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hop {
    Trusted,
    Untrusted,
    Unreadable,
}

const KINDS: [Hop; 3] = [Hop::Trusted, Hop::Untrusted, Hop::Unreadable];

/// The text of the hop at an index of a list, and the address in it. Addresses differ by index.
fn spell(hop: Hop, index: usize, source: &AddressSource) -> (String, String) {
    let v4 = if hop == Hop::Trusted { "10.7.7." } else { "198.51.100." };
    let v6 = if hop == Hop::Trusted { "fd00::7:" } else { "2001:db8::7:" };
    let v4 = format!("{v4}{}", index % 250);
    let v6 = format!("{v6}{index}");
    let garbage = ["unknown", "_hidden", "1.2.3", "[::1", ""][index % 5];
    let (text, address) = match (hop, index % 5) {
        (Hop::Unreadable, _) => (garbage.to_owned(), String::new()),
        (_, 0) => (v4.clone(), v4),
        (_, 1) => (format!("{v4}:8{}", index % 10), v4),
        (_, 2) => (format!("[{v6}]:443"), v6),
        (_, 3) => (format!("[{v6}%eth0]"), v6),
        _ => (format!("::ffff:{v4}"), v4),
    };
    let quoted = if *source == AddressSource::Forwarded {
        format!("for=\"{text}\";proto=http")
    } else {
        text
    };
    (quoted, address)
}

/// The expected result, computed from the kinds of the hops.
fn expected(kinds: &[Hop], addresses: &[String]) -> (String, AddressReason) {
    let stop = kinds.iter().rposition(|kind| *kind != Hop::Trusted);
    match stop {
        _ if kinds.is_empty() => (PEER.to_owned(), AddressReason::NoHeader),
        None => (PEER.to_owned(), AddressReason::AllTrusted),
        Some(at) if kinds[at] == Hop::Untrusted => {
            (addresses[at].clone(), AddressReason::FirstUntrusted)
        }
        Some(at) => {
            let nearest = addresses.get(at + 1).cloned().unwrap_or_else(|| PEER.to_owned());
            (nearest, AddressReason::Unreadable)
        }
    }
}

/// The chain of this length and number: each hop's kind is a base-3 digit of the number.
fn kinds(length: u32, number: usize) -> Vec<Hop> {
    (0..length).map(|at| KINDS[number / 3_usize.pow(at) % 3]).collect()
}

/// All chains of up to five hops, in two headers, on one line and split over several.
///
/// covers: X-17, 003-40
#[test]
fn every_chain_of_up_to_five_hops() {
    let chains = (0..=5).flat_map(|length| (0..3_usize.pow(length)).map(move |n| (length, n)));
    let mut walked = 0;
    for (length, number) in chains {
        for source in [AddressSource::XForwardedFor, AddressSource::Forwarded] {
            let kinds = kinds(length, number);
            let spelt =
                kinds.iter().enumerate().map(|(at, kind)| spell(*kind, at + number, &source));
            let (texts, addresses): (Vec<String>, Vec<String>) = spelt.unzip();
            // A single blank hop is an empty header.
            let silent = texts.iter().all(String::is_empty);
            let mut want = expected(&kinds, &addresses);
            want.1 = if silent { AddressReason::NoHeader } else { want.1 };
            let lines: Vec<&str> = texts.iter().map(String::as_str).collect();
            let joined = texts.join(", ");
            assert_eq!(find(PEER, &lines, source.clone()), want, "{lines:?}");
            assert_eq!(find(PEER, &[&joined], source), want, "{joined}");
            walked += 2;
        }
    }
    assert_eq!(walked, 364 * 4);
}

proptest! {
    /// Once the walk has met an untrusted hop, nothing to its left matters.
    ///
    /// covers: X-17, 003-40
    #[test]
    fn what_is_prepended_never_changes_the_client(
        forged in prop::collection::vec("[\\x20-\\x7e]{0,40}|[0-9a-f:.,\"\\\\;= for]{0,30}", 0..4),
        own_line: bool,
        proxies in 0..3_usize,
    ) {
        let chain = |client: &str, proxy: &str| {
            let mut hops = vec![client.to_owned()];
            hops.extend((0..proxies).map(|at| format!("{proxy}10.2.2.{at}")));
            hops.join(", ")
        };
        for (source, honest) in [
            (AddressSource::XForwardedFor, chain("198.51.100.7", "")),
            (AddressSource::Forwarded, chain("for=\"[2001:db8::7]:1\";host=\"a,b\"", "for=")),
        ] {
            let want = find(PEER, &[&honest], source.clone());
            prop_assert_eq!(want.1, AddressReason::FirstUntrusted);
            let mut lines: Vec<String> = forged.clone();
            match lines.last_mut() {
                Some(last) if !own_line => { last.push(','); last.push_str(&honest); }
                _ => lines.push(honest),
            }
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            prop_assert_eq!(find(PEER, &lines, source), want);
        }
    }

    #[test]
    fn reading_never_panics(line in "\\PC{0,60}", quoted in "[for=\";,\\\\ :._\\[\\]0-9é]{0,40}") {
        for source in [AddressSource::XForwardedFor, AddressSource::Forwarded] {
            find(PEER, &[&line, &quoted], source);
        }
    }
}
