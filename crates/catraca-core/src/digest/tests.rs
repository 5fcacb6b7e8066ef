//! Tests of keys (injective encoding (P14), stable values, siblings), pseudonyms and secrecy.

use std::collections::BTreeMap;

use super::*;

fn digester() -> Digester {
    Digester::new(&Secret::from_bytes([7; 32]))
}

fn key(parts: &[&[u8]]) -> Key {
    let mut hasher = digester().start(Domain::Cell);
    for part in parts {
        hasher.part(part);
    }
    hasher.finish()
}

/// Decodes the encoding of parts, which is possible only if no two lists have the same encoding.
fn decode(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (part, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        parts.push(part.to_vec());
        bytes = rest;
    }
    parts
}

/// A small generator, so that every run sees the same tuples.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

/// Up to four parts of up to five bytes, from those that separators and hash tags are made of.
fn tuple(state: &mut u64) -> Vec<Vec<u8>> {
    let alphabet = b":{}_|/\0\x01\x02ab%";
    let mut part = || {
        let length = next(state) % 6;
        (0..length).map(|_| alphabet[next(state) as usize % alphabet.len()]).collect()
    };
    let first: Vec<u8> = part();
    let count = first.len() % 4;
    std::iter::once(first).chain((0..count).map(|_| part())).collect()
}

/// P14, on 10^5 tuples: the encoding can be undone, and distinct tuples have distinct keys.
///
/// covers: 004-14, B-43
#[test]
fn distinct_parts_have_distinct_keys() {
    let mut state = 1;
    let mut seen = BTreeMap::new();
    let digester = digester();
    for _ in 0..100_000 {
        let parts = tuple(&mut state);
        let mut hasher = digester.start(Domain::Cell);
        for part in &parts {
            hasher.part(part);
        }
        assert_eq!(decode(&hasher.encoded_parts()[1..]), parts);
        let borrowed: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let same = seen.entry(key(&borrowed)).or_insert_with(|| parts.clone());
        assert_eq!(*same, parts);
    }
    assert!(seen.len() > 50_000, "only {} distinct tuples", seen.len());
}

/// Parts that do not fit into the short buffer have the same encoding.
#[test]
fn long_parts_are_encoded_like_short_ones() {
    let digester = digester();
    for length in 0..300 {
        let parts = [vec![b'a'; length], b"b".to_vec(), vec![b'c'; 300 - length], Vec::new()];
        let mut hasher = digester.start(Domain::Cell);
        for part in &parts {
            hasher.part(part);
        }
        assert_eq!(decode(&hasher.encoded_parts()[1..]), parts);
    }
}

/// covers: B-43, 004-13, 004-14
#[test]
fn separators_in_values_do_not_collide() {
    type Parts = &'static [&'static [u8]];
    let pairs: [(Parts, Parts); 6] = [
        (&[b"ip", b"x:block"], &[b"ip", b"x", b"block"]),
        (&[b"2001:db8::1"], &[b"2001", b"db8::1"]),
        (&[b"a", b""], &[b"a"]),
        (&[b"", b"a"], &[b"a", b""]),
        (&[b"a\0b"], &[b"a", b"b"]),
        (&[b"{a}", b"b"], &[b"{a", b"}b"]),
    ];
    for (left, right) in pairs {
        assert_ne!(key(left), key(right), "{left:?} {right:?}");
    }
}

#[test]
fn domains_and_secrets_separate_equal_parts() {
    let one = digester();
    let other = Digester::new(&Secret::from_bytes([8; 32]));
    let cell = one.start(Domain::Cell).part(b"a").finish();
    assert_ne!(cell, one.start(Domain::Block).part(b"a").finish());
    assert_ne!(cell, other.start(Domain::Cell).part(b"a").finish());
}

#[test]
fn a_shared_prefix_is_digested_once() {
    let prefix = digester().start(Domain::Cell).with(b"namespace").with(b"policy");
    let whole = key(&[b"namespace", b"policy", b"198.51.100.7"]);
    assert_eq!(prefix.clone().part(b"198.51.100.7").finish(), whole);
    assert_ne!(prefix.clone().part(b"198.51.100.8").finish(), whole);
    assert_eq!(prefix.clone().part(b"198.51.100.7").finish(), whole);
}

/// Stored state is found by these values: if they change, all of it is lost.
#[test]
fn keys_and_pseudonyms_are_the_same_in_every_version() {
    assert_eq!(
        format!("{:?}", key(&[b"ns", b"login", b"198.51.100.7"])),
        "a990cfe3213f554dfe1a00f941182860"
    );
    assert_eq!(digester().pseudonym("payer", "52998224725"), "~3ff5ed5cae6c6c6ce0e720d501");
}

#[test]
fn bytes_hold_the_whole_key_in_order() {
    let low = Key::from_words([1, u64::MAX]);
    let high = Key::from_words([2, 0]);
    assert!(low < high && low.to_bytes() < high.to_bytes());
    let made = key(&[b"x"]);
    assert_eq!(Key::from_bytes(made.to_bytes()), made);
    assert_eq!(Key::from_words(made.words()), made);
    assert_eq!(format!("{low:?}"), "0000000000000001ffffffffffffffff");
}

#[test]
fn shards_are_the_top_bits() {
    let key = Key::from_words([0xabcd_0000_0000_0000, 0]);
    assert_eq!([0, 4, 8, 16].map(|bits| key.shard(bits)), [0, 0xa, 0xab, 0xabcd]);
    let digester = digester();
    let mut full = [0_u32; 64];
    for number in 0..6_400_u32 {
        full[digester.start(Domain::Cell).part(&number.to_le_bytes()).finish().shard(6)] += 1;
    }
    assert!(full.iter().all(|count| (50..170).contains(count)), "{full:?}");
}

#[test]
fn a_group_is_a_part_of_the_key_that_siblings_share() {
    let key = key(&[b"x"]);
    let one = key.in_group(7);
    let other = key.in_group(0xfffe);
    assert_eq!((one.group(), other.group(), other.in_group(7)), (7, 0xfffe, one));
    assert_eq!(one.with_kind(3).group(), 7);
    assert_eq!(one.shard(16), key.shard(16));
    assert_ne!(one, other);
}

#[test]
fn siblings_differ_and_share_a_shard() {
    let base = key(&[b"x"]);
    let mut all: Vec<Key> = (0..=255).map(|kind| base.with_kind(kind)).collect();
    assert!(all.iter().all(|sibling| sibling.shard(64) == base.shard(64)));
    all.push(base);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 257);
    assert_eq!(base.with_kind(3), key(&[b"x"]).with_kind(3));
}

/// covers: B-14
#[test]
fn a_pseudonym_hides_the_value_and_names_its_secret() {
    let one = digester();
    let other = Digester::new(&Secret::from_bytes([8; 32]));
    let name = one.pseudonym("payer", "52998224725");
    let (id, code) = name.strip_prefix('~').unwrap().split_at(2);
    assert!(code.len() == 24 && name[1..].bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    assert_eq!(id, &one.pseudonym("session", "else")[1..3]);
    assert_ne!(id, &other.pseudonym("payer", "52998224725")[1..3]);
    assert_eq!(name, digester().pseudonym("payer", "52998224725"));
    assert_ne!(code, &one.pseudonym("payer", "52998224726")[3..]);
    assert_ne!(code, &one.pseudonym("payee", "52998224725")[3..]);
    assert_ne!(one.pseudonym("ab", "c"), one.pseudonym("a", "bc"));
}

#[test]
fn a_value_that_looks_like_a_pseudonym_is_stored_as_one() {
    let digester = digester();
    let pseudonym = digester.pseudonym("payer", "52998224725");
    assert!(is_pseudonym(&pseudonym));
    for text in ["", "~", "ana", &pseudonym[1..], &pseudonym[..26], &pseudonym.to_uppercase()] {
        assert!(!is_pseudonym(text), "{text}");
        assert_eq!(digester.stored_value("payer", text, false), text);
        assert!(is_pseudonym(&digester.stored_value("payer", text, true)));
    }
    let stored = digester.stored_value("payer", &pseudonym, false);
    assert!(is_pseudonym(&stored) && stored != pseudonym);
}

#[test]
fn nothing_prints_the_secret() {
    let secret = Secret::from_bytes([0xd7; 32]);
    let digester = Digester::new(&secret);
    let hasher = digester.start(Domain::Cell);
    let shown = format!("{secret:?} {digester:?} {hasher:?}").to_lowercase();
    assert!(!shown.contains("d7") && !shown.contains("215"), "{shown}");
    assert_ne!(secret.derive("a"), secret.derive("b"));
    assert_ne!(secret.derive("a"), [0xd7; 32]);
}

#[test]
fn counters_of_tiers_have_keys_of_their_own_in_the_same_shard_and_group() {
    let key = Key::from_bytes([7; 16]).in_group(9);
    let mut keys: Vec<Key> = [0, 1, 255, 256, u32::MAX].map(|tier| key.with_tier(tier)).into();
    keys.extend((0..=u8::MAX).map(|kind| key.with_kind(kind)));
    keys.push(key);
    for sibling in &keys {
        assert_eq!((sibling.shard(16), sibling.group()), (key.shard(16), 9));
        assert!(key.siblings().contains(sibling));
    }
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count, "all differ");
}
