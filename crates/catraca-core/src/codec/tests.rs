//! Every cell reads back as it was written, and no bytes at all do harm.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use smallvec::SmallVec;

use super::*;
use crate::batch::RowSettled;
use crate::cell::block::{Note, Origin};
use crate::cell::log::Track;
use crate::cell::watch::SLICES;
use crate::cell::{Block, Bucket, Fixed, Leases, Log, Mark, Reference, Watch};
use crate::digest::Key;
use crate::limit::EXACT_MAX;
use crate::time::{Span, Time};

fn bytes_of<C: Codec>(cell: &C) -> Vec<u8> {
    let mut bytes = Vec::new();
    cell.encode(&mut bytes);
    bytes
}

/// Reads back, is refused at every shorter length and with a byte more, and is one encoding only.
fn round_trip<C: Codec + Debug + PartialEq>(cell: &C) -> Result<C, TestCaseError> {
    let mut bytes = bytes_of(cell);
    let read = C::decode(&bytes);
    prop_assert!(read.is_ok(), "{:?} of {:?}", read, cell);
    for length in 0..bytes.len() {
        prop_assert!(C::decode(&bytes[..length]).is_err(), "cut at {}", length);
    }
    bytes.push(0);
    prop_assert_eq!(C::decode(&bytes), Err(CodecError::Trailing { extra: 1 }));
    let read = read.expect("checked above");
    prop_assert_eq!(&bytes_of(&read), &bytes[..bytes.len() - 1]);
    Ok(read)
}

/// Any bytes give a cell that can be asked anything and writes the same bytes, or an error. Bytes
/// of an earlier version are written in the present one.
fn survives<C: Codec + Debug>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(cell) = C::decode(bytes) {
        cell.forgotten_at();
        cell.heap_bytes();
        if bytes.first() == Some(&VERSION) {
            prop_assert_eq!(bytes_of(&cell), bytes, "{:?}", cell);
        }
    }
    Ok(())
}

fn survives_as_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    survives::<Bucket>(bytes)?;
    survives::<Log>(bytes)?;
    survives::<Fixed>(bytes)?;
    survives::<Leases>(bytes)?;
    survives::<Block>(bytes)?;
    survives::<Watch>(bytes)?;
    survives::<Mark>(bytes)?;
    survives::<Reference>(bytes)
}

fn time() -> impl Strategy<Value = Time> {
    let edges = prop_oneof![Just(0), Just(Time::MAX.micros())];
    prop_oneof![9 => 0..Time::MAX.micros(), 1 => edges].prop_map(Time::from_micros)
}

fn span() -> impl Strategy<Value = Span> {
    (0..=Span::FOREVER.micros()).prop_map(Span::from_micros)
}

fn origin() -> impl Strategy<Value = Origin> {
    use Origin::{Ban, Excess, Operator, Upstream};
    prop_oneof![Just(Excess), Just(Ban), Just(Operator), Just(Upstream)]
}

fn bucket() -> impl Strategy<Value = Bucket> {
    let balance = -EXACT_MAX..=EXACT_MAX;
    let fields = (time(), balance, 0..=EXACT_MAX, any::<u32>(), any::<u32>());
    fields.prop_map(|(at, tokens, rem, tag, forget)| Bucket { at, tokens, rem, tag, forget })
}

fn fixed() -> impl Strategy<Value = Fixed> {
    let fields = (time(), 0..=EXACT_MAX, any::<u32>());
    fields.prop_map(|(start, used, forget)| Fixed { start, used, forget })
}

/// A track that has lived: entries came, and the oldest left.
fn track() -> impl Strategy<Value = Track> {
    (time(), vec((0..5_000_000_i64, 0..40_i64), 0..60), 0..100_000_000_i64).prop_map(
        |(start, entries, span)| {
            let mut track = Track::default();
            let mut now = start;
            for (gap, units) in entries {
                now = now.after(Span::from_micros(gap));
                track.push(now, units);
            }
            track.prune(Span::from_micros(span), now);
            track
        },
    )
}

fn log() -> impl Strategy<Value = Log> {
    (any::<u32>(), vec(track(), 0..4))
        .prop_map(|(forget, tracks)| Log { forget, tracks: SmallVec::from_vec(tracks) })
}

fn leases() -> impl Strategy<Value = Leases> {
    vec((time(), any::<u64>()), 0..20).prop_map(|mut live| {
        live.sort();
        Leases { live }
    })
}

fn watch() -> impl Strategy<Value = Watch> {
    let slices = vec(any::<(u32, u32)>(), SLICES);
    (slices, 0..=EXACT_MAX, 1..Span::FOREVER.micros()).prop_map(|(slices, newest, slice)| {
        let slices = Box::new(slices.try_into().expect("as many as were asked for"));
        Watch { slices, newest, slice: Span::from_micros(slice) }
    })
}

fn note() -> impl Strategy<Value = Note> {
    let text = || option::of(any::<String>().prop_map(Into::into));
    (text(), option::of(any::<u16>()), text()).prop_map(|(reason, status, message)| Note {
        reason,
        status,
        message,
    })
}

fn block() -> impl Strategy<Value = Block> {
    let fields = (time(), origin(), any::<bool>(), any::<u32>(), span(), note());
    fields.prop_map(|(until, origin, shadow, level, forget, note)| Block {
        until,
        origin,
        shadow,
        level,
        forget,
        note,
    })
}

fn row() -> impl Strategy<Value = RowSettled> {
    let opens = (option::of(any::<i64>()), option::of(time()), option::of(origin()));
    (any::<i64>(), opens, option::of(any::<u8>())).prop_map(
        |(charged, (free, blocked_until, started), rule)| RowSettled {
            place: rule.unwrap_or(3),
            charged,
            free,
            blocked_until,
            started,
            rule,
        },
    )
}

fn mark() -> impl Strategy<Value = Mark> {
    (time(), vec(row(), 0..6)).prop_map(|(expires, rows)| Mark { expires, rows })
}

fn reference() -> impl Strategy<Value = Reference> {
    let ticket = vec(any::<u8>(), 0..200);
    let events = vec(any::<String>().prop_map(Into::into), 0..4);
    let instants = vec(option::of(time()), 0..5);
    let owner = any::<[u8; 16]>().prop_map(Key::from_bytes);
    (time(), owner, instants, ticket, option::of(any::<u16>()), events).prop_map(
        |(expires, owner, instants, ticket, settled, credited)| Reference {
            expires,
            owner,
            instants,
            ticket: ticket.into(),
            settled,
            credited,
        },
    )
}

/// What a log means, whatever its tracks have behind them.
fn meaning(log: &Log) -> (u32, Vec<Vec<(Time, i64)>>) {
    (log.forget, log.tracks.iter().map(|track| track.entries().collect()).collect())
}

proptest! {
    #[test]
    fn small_cells_read_back(bucket in bucket(), fixed in fixed(), watch in watch()) {
        prop_assert_eq!(round_trip(&bucket)?, bucket);
        prop_assert_eq!(round_trip(&fixed)?, fixed);
        prop_assert_eq!(round_trip(&watch)?, watch);
    }

    #[test]
    fn large_cells_read_back(log in log(), leases in leases(), reference in reference()) {
        prop_assert_eq!(meaning(&round_trip(&log)?), meaning(&log));
        prop_assert_eq!(round_trip(&leases)?, leases);
        prop_assert_eq!(round_trip(&reference)?, reference);
    }

    #[test]
    fn acts_read_back(block in block(), mark in mark()) {
        prop_assert_eq!(round_trip(&block)?, block);
        prop_assert_eq!(round_trip(&mark)?, mark);
    }

    #[test]
    fn no_bytes_do_harm(mut bytes in vec(any::<u8>(), 0..200)) {
        survives_as_any(&bytes)?;
        bytes.insert(0, VERSION);
        survives_as_any(&bytes)?;
    }

    #[test]
    fn no_damage_does_harm(log in log(), mark in mark(), at in any::<usize>(), bit in 0..8_u8) {
        for mut bytes in [bytes_of(&log), bytes_of(&mark)] {
            let place = at % bytes.len();
            bytes[place] ^= 1_u8 << bit;
            survives_as_any(&bytes)?;
        }
    }
}

#[test]
fn each_mistake_has_its_name() {
    let watch = Watch::new(Span::from_secs(24), Time::from_micros(5));
    let mut still = watch.clone();
    still.slice = Span::ZERO;
    assert_eq!(Watch::decode(&bytes_of(&still)), Err(CodecError::Range { field: "slice" }));
    let newer = [VERSION + 1];
    let version = CodecError::Version { found: VERSION + 1, known: VERSION };
    assert_eq!(Bucket::decode(&newer), Err(version));
    assert_eq!(Bucket::decode(&[]), Err(CodecError::Short));
    let overlong = [VERSION, 0x80, 0x00];
    assert_eq!(Mark::decode(&overlong), Err(CodecError::Overlong));
    let endless = [[VERSION].as_slice(), &[0xFF; 10]].concat();
    assert_eq!(Mark::decode(&endless), Err(CodecError::Overlong));
}

#[test]
fn entries_and_leases_must_be_in_order() {
    let leases = Leases { live: vec![(Time::from_micros(9), 1), (Time::from_micros(3), 2)] };
    assert_eq!(Leases::decode(&bytes_of(&leases)), Err(CodecError::Order { field: "live" }));
    // No second to forget at, one track: a unit at 7, and a unit no time later.
    let twice = [VERSION, 0, 1, 1, 7, 1, 0, 0];
    assert_eq!(Log::decode(&twice), Err(CodecError::Order { field: "entries" }));
}

#[test]
fn a_lying_count_costs_nothing() {
    let lie = [VERSION, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
    assert_eq!(Mark::decode(&lie), Err(CodecError::Short));
    assert_eq!(Log::decode(&lie), Err(CodecError::Short));
}

#[test]
fn texts_and_flags_are_checked() {
    let mut block = bytes_of(&Block {
        until: Time::ZERO,
        origin: Origin::Ban,
        shadow: false,
        level: 0,
        forget: Span::ZERO,
        note: Note { reason: Some("é".into()), ..Note::default() },
    });
    *block.last_mut().expect("not empty") = b'x';
    assert_eq!(Block::decode(&block), Err(CodecError::Text { field: "reason" }));
    let odd = [VERSION, 0, 0, 0, 0x80];
    assert_eq!(Block::decode(&odd), Err(CodecError::Flags { field: "block", found: 0x80 }));
    // An origin without a start.
    let row = [VERSION, 0, 1, 0x01, 0];
    assert_eq!(Mark::decode(&row), Err(CodecError::Flags { field: "row", found: 0x01 }));
}

#[test]
fn a_reference_of_the_first_version_is_read_and_has_no_owner() {
    let old = [1, 7, 0, 1, 42, 0, 0];
    let read = Reference::decode(&old).expect("the first version");
    let bare = Reference {
        expires: Time::from_micros(7),
        owner: Key::from_bytes([0; 16]),
        instants: Vec::new(),
        ticket: Box::new([42]),
        settled: None,
        credited: Vec::new(),
    };
    assert_eq!(read, bare);
    let never = CodecError::Version { found: 0, known: VERSION };
    assert_eq!(Reference::decode(&[0, 7, 0, 1, 42, 0, 0]), Err(never));
}

#[test]
fn kinds_keep_their_numbers() {
    let numbers: Vec<u8> = Kind::ALL.iter().map(|kind| *kind as u8).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(Kind::ALL.iter().all(|kind| Kind::from_number(*kind as u8) == Some(*kind)));
    assert_eq!(Kind::from_number(0), None);
    assert_eq!(Kind::from_number(9), None);
}
