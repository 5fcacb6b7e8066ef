//! Round trips of every kind of cell, and decoding of arbitrary bytes.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use smallvec::SmallVec;

use super::*;
use crate::algorithm::sliding_window::WindowEntries;
use crate::batch::RowSettlement;
use crate::cell::block::{BlockNote, Origin};
use crate::cell::ratio_watch::SLICES;
use crate::cell::{
    Block, Bucket, FixedWindow, InFlight, RatioWatch, Reference, SettledMarker, SlidingWindow,
};
use crate::digest::Key;
use crate::limit::{EXACT_MAX, WindowTerms};
use crate::time::{Span, Time};

fn bytes_of<C: Codec>(cell: &C) -> Vec<u8> {
    let mut bytes = Vec::new();
    cell.encode(&mut bytes);
    bytes
}

/// A cell decodes as it was encoded; truncated or extended bytes are refused; the encoding is
/// unique.
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

/// Any bytes give an error, or a cell that works and encodes to the same bytes. Bytes of an earlier
/// version are encoded in the current one.
fn survives<C: Codec + Debug>(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(cell) = C::decode(bytes) {
        cell.expires_at();
        cell.heap_bytes();
        if bytes.first() == Some(&VERSION) {
            prop_assert_eq!(bytes_of(&cell), bytes, "{:?}", cell);
        }
    }
    Ok(())
}

fn survives_as_any(bytes: &[u8]) -> Result<(), TestCaseError> {
    survives::<Bucket>(bytes)?;
    survives::<SlidingWindow>(bytes)?;
    survives::<FixedWindow>(bytes)?;
    survives::<InFlight>(bytes)?;
    survives::<Block>(bytes)?;
    survives::<RatioWatch>(bytes)?;
    survives::<SettledMarker>(bytes)?;
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

fn fixed() -> impl Strategy<Value = FixedWindow> {
    let fields = (time(), 0..=EXACT_MAX, any::<u32>());
    fields.prop_map(|(start, used, forget)| FixedWindow { start, used, forget })
}

/// Entries of which the oldest were removed.
fn entries() -> impl Strategy<Value = WindowEntries> {
    (time(), vec((0..5_000_000_i64, 0..40_i64), 0..60), 0..100_000_000_i64).prop_map(
        |(start, entries, span)| {
            let mut track = WindowEntries::default();
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

fn log() -> impl Strategy<Value = SlidingWindow> {
    (any::<u32>(), vec(entries(), 0..4)).prop_map(|(forget, entries)| SlidingWindow {
        forget,
        per_window: SmallVec::from_vec(entries),
    })
}

fn leases() -> impl Strategy<Value = InFlight> {
    vec((time(), any::<u64>()), 0..20).prop_map(|mut live| {
        live.sort();
        InFlight { live }
    })
}

fn watch() -> impl Strategy<Value = RatioWatch> {
    let slices = vec(any::<(u32, u32)>(), SLICES);
    (slices, 0..=EXACT_MAX, 1..Span::FOREVER.micros()).prop_map(|(slices, newest, slice)| {
        let slices = Box::new(slices.try_into().expect("as many as were asked for"));
        RatioWatch { slices, newest, slice: Span::from_micros(slice) }
    })
}

fn note() -> impl Strategy<Value = BlockNote> {
    let text = || option::of(any::<String>().prop_map(Into::into));
    (text(), option::of(any::<u16>()), text()).prop_map(|(reason, status, message)| BlockNote {
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

fn row() -> impl Strategy<Value = RowSettlement> {
    let opens = (option::of(any::<i64>()), option::of(time()), option::of(origin()));
    (any::<i64>(), opens, option::of(any::<u8>())).prop_map(
        |(charged, (free, blocked_until, started), rule)| RowSettlement {
            ticket_index: rule.unwrap_or(3),
            charged,
            free,
            blocked_until,
            started,
            rule,
        },
    )
}

fn mark() -> impl Strategy<Value = SettledMarker> {
    (time(), vec(row(), 0..6)).prop_map(|(expires, rows)| SettledMarker { expires, rows })
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

/// The content of a window, without the bytes of removed entries that it may still have.
fn meaning(log: &SlidingWindow) -> (u32, Vec<Vec<(Time, i64)>>) {
    (log.forget, log.per_window.iter().map(|track| track.entries().collect()).collect())
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
    let watch = RatioWatch::new(Span::from_secs(24), Time::from_micros(5));
    let mut still = watch.clone();
    still.slice = Span::ZERO;
    assert_eq!(RatioWatch::decode(&bytes_of(&still)), Err(CodecError::Range { field: "slice" }));
    let newer = [VERSION + 1];
    let version = CodecError::Version { found: VERSION + 1, known: VERSION };
    assert_eq!(Bucket::decode(&newer), Err(version));
    assert_eq!(Bucket::decode(&[]), Err(CodecError::Short));
    let overlong = [VERSION, 0x80, 0x00];
    assert_eq!(SettledMarker::decode(&overlong), Err(CodecError::Overlong));
    let endless = [[VERSION].as_slice(), &[0xFF; 10]].concat();
    assert_eq!(SettledMarker::decode(&endless), Err(CodecError::Overlong));
}

#[test]
fn entries_and_leases_must_be_in_order() {
    let leases = InFlight { live: vec![(Time::from_micros(9), 1), (Time::from_micros(3), 2)] };
    assert_eq!(InFlight::decode(&bytes_of(&leases)), Err(CodecError::Order { field: "live" }));
    // Expires at second 0, one window: a unit at 7, and another at the same instant.
    let twice = [VERSION, 0, 1, 1, 7, 1, 0, 0];
    assert_eq!(SlidingWindow::decode(&twice), Err(CodecError::Order { field: "entries" }));
}

#[test]
fn a_lying_count_costs_nothing() {
    let lie = [VERSION, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F];
    assert_eq!(SettledMarker::decode(&lie), Err(CodecError::Short));
    assert_eq!(SlidingWindow::decode(&lie), Err(CodecError::Short));
}

#[test]
fn texts_and_flags_are_checked() {
    let mut block = bytes_of(&Block {
        until: Time::ZERO,
        origin: Origin::Ban,
        shadow: false,
        level: 0,
        forget: Span::ZERO,
        note: BlockNote { reason: Some("é".into()), ..BlockNote::default() },
    });
    *block.last_mut().expect("not empty") = b'x';
    assert_eq!(Block::decode(&block), Err(CodecError::Text { field: "reason" }));
    let odd = [VERSION, 0, 0, 0, 0x80];
    assert_eq!(Block::decode(&odd), Err(CodecError::Flags { field: "block", found: 0x80 }));
    // An origin without a start.
    let row = [VERSION, 0, 1, 0x01, 0];
    assert_eq!(SettledMarker::decode(&row), Err(CodecError::Flags { field: "row", found: 0x01 }));
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
    let numbers: Vec<u8> = CellKind::ALL.iter().map(|kind| *kind as u8).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(CellKind::ALL.iter().all(|kind| CellKind::from_number(*kind as u8) == Some(*kind)));
    assert_eq!(CellKind::from_number(0), None);
    assert_eq!(CellKind::from_number(9), None);
    let letters: Vec<u8> = CellKind::ALL.iter().map(|kind| kind.letter()).collect();
    assert_eq!(letters, b"blfixwmr");
    let names: Vec<&str> = CellKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.join(" "), "buckets logs fixed leases blocks watches marks references");
}

/// Snapshots and rows of PostgreSQL hold these bytes: a program must write them as before.
#[test]
fn cells_keep_their_bytes() {
    let at = Time::from_micros(1_700_000_000_123_456);
    let later = at.after(Span::from_secs(60));
    let bucket =
        Bucket { at, tokens: -15, rem: 29_999_999, tag: 0xDEAD_BEEF, forget: 4_000_000_000 };
    assert_eq!(hex(&bucket), "02c0c480c1c1c482031dfe8dce1cefbeadde80d0acf30e");
    let windows = [
        WindowTerms { limit: 10, span: Span::from_secs(60) },
        WindowTerms { limit: 20, span: Span::from_secs(3_600) },
    ];
    let mut sliding = SlidingWindow::new(&windows);
    sliding.charge(&windows, at, 1);
    sliding.charge(&windows, later, 7);
    sliding.prune(&windows, later);
    assert_eq!(hex(&sliding), "02cdfecfaa060207c0d2ceddc1c482030001c0c480c1c1c4820307808ece1c00");
    let fixed = FixedWindow { start: at, used: 300, forget: 1_700_000_060 };
    assert_eq!(hex(&fixed), "02c0c480c1c1c48203ac02bce2cfaa06");
    let leases = InFlight { live: vec![(at, 7), (later, 0x0123_4567_89AB_CDEF)] };
    assert_eq!(
        hex(&leases),
        "0202c0c480c1c1c482030700000000000000c0d2ceddc1c48203efcdab8967452301"
    );
    let note = BlockNote { reason: Some("é".into()), status: Some(429), message: None };
    let forget = Span::from_secs(60);
    let block = Block { until: at, origin: Origin::Ban, shadow: true, level: 3, forget, note };
    assert_eq!(hex(&block), "02c0c480c1c1c48203808ece1c031dad0302c3a9");
    let mut watch = RatioWatch::new(Span::from_secs(24), at);
    watch.count(Span::from_secs(24), at, true);
    let [before, after] = [8, 15].map(|slices| "0000".repeat(slices));
    assert_eq!(hex(&watch), format!("02c0843d80e2cfaa06{before}0101{after}"));
    let row = RowSettlement {
        ticket_index: 2,
        charged: -3,
        free: Some(5),
        blocked_until: Some(later),
        started: Some(Origin::Excess),
        rule: Some(1),
    };
    assert_eq!(
        hex(&SettledMarker { expires: at, rows: vec![row] }),
        "02c0c480c1c1c48203013c02050ac0d2ceddc1c4820301"
    );
    let reference = Reference {
        expires: at,
        owner: Key::from_bytes([9; 16]),
        instants: vec![Some(at), None],
        ticket: Box::new([42, 43]),
        settled: Some(404),
        credited: vec!["paid".into()],
    };
    let owner = "09".repeat(16);
    assert_eq!(
        hex(&reference),
        format!("02c0c480c1c1c4820310{owner}02c1c480c1c1c4820300022a2b9503010470616964")
    );
}

fn hex<C: Codec>(cell: &C) -> String {
    bytes_of(cell).iter().map(|byte| format!("{byte:02x}")).collect()
}
