//! Mistakes planted in the script, one at a time: the comparison with core must detect each.
//!
//! A mistake replaces text that must occur exactly once in the script, so that a change of that
//! line fails this test instead of leaving the mistake untested.

use super::{changed, in_pieces_of, trace};
use catraca_testkit::redis::RedisServer as Server;

#[test]
fn a_mistake_in_the_script_is_noticed() {
    let Some(server) = Server::start() else { return };
    let mut client = server.connect();
    let script = in_pieces_of(64);
    let unchanged = trace::compare(&mut client, &script, 0, EACH);
    unchanged.unwrap_or_else(|difference| panic!("without a mistake: {difference}"));
    let missed = MISTAKES.iter().filter(|(right, wrong)| {
        println!("`{right}` becomes `{wrong}`");
        let script = changed(&script, right, wrong);
        let noticed =
            (0..400).any(|seed| trace::compare(&mut client, &script, seed, EACH).is_err());
        println!("{}", if noticed { "noticed" } else { "MISSED" });
        !noticed
    });
    assert_eq!(missed.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
}

/// Batches of each kind per seed.
const EACH: usize = 600;

const MISTAKES: [(&str, &str); 79] = [
    // The fast path. A change that only makes it leave a check to the other files is no mistake.
    ("instant = now > written and now or written", "instant = now"),
    ("left = cell_tag == tag and left or 0", "left = left"),
    ("if elapsed < wait or (elapsed == wait and wait * gain < missing) then", "if true then"),
    ("free, rem = tokens + whole, gained - whole * period", "free, rem = tokens + whole, 0"),
    ("wait * gain < missing and instant + wait + 1 or instant + wait", "instant + wait"),
    ("tokens = tokens > lowest and tokens or lowest", "tokens = tokens"),
    ("instant = last > now and last or now", "instant = now"),
    ("used > 0 and instant - first >= span", "used > 0 and instant - first > span"),
    ("used > 0 and instant - first >= span", "used > 0 and instant - first >= span - 1"),
    ("rest = newest\n            while", "rest = 2\n            while"),
    ("if free < held then", "if false then"),
    // Time and division.
    ("return whole + 1", "return whole"),
    ("return now >= (second", "return now > (second"),
    ("second == NEVER and FOREVER or second", "second"),
    ("return min(at + span, FOREVER)", "return at + span"),
    // Buckets.
    ("tag == row.tag and rem or 0", "rem"),
    ("gained - whole * row.period", "0"),
    ("row.now = max(now, at)", "row.now = now"),
    ("tokens = max(tokens, lowest(row))", "tokens = tokens"),
    ("higher and written > observed", "higher and written >= observed"),
    ("tokens == before and rem > row.rem", "false"),
    ("row.now - min(observed, row.now)", "0"),
    // Windows.
    ("window.used > 0 then\n        row.now = max", "window.used < 0 then\n        row.now = max"),
    ("if most.used > 0 then", "if false then"),
    ("row.now - window.first >= window.span", "row.now - window.first > window.span"),
    ("if free < row.free then", "if free <= row.free then"),
    ("count ~= #row.windows", "count > #row.windows + 9"),
    ("window.used > most.used", "window.used < most.used"),
    ("row.chunk, row.dirty = sub(cell, place), true", "row.chunk = sub(cell, place)"),
    ("free >= row.need and -1 or", "free > row.need and -1 or"),
    ("window.cut + excess", "excess"),
    ("window.head - start or 0", "window.head or 0"),
    ("at, place, cut = at + gap, next, 0", "at, place, cut = at + gap, next, cut"),
    ("return EXACT_MAX - most", "return EXACT_MAX"),
    // Buckets that tiers share.
    ("full = max(full, reaches(bucket, other.size))", "full = full"),
    ("bucket.free = max(row.free, lowest(other))", "bucket.free = row.free"),
    // Refunds.
    ("return instant == at and place", "return place"),
    ("if is_oldest and back == seen then", "if false then"),
    ("row.newest, row.last = before_units, at - gap", "row.newest = before_units"),
    ("write_entry(before_gap + gap, before_units)", "write_entry(before_gap, before_units)"),
    ("if window.head >= to then", "if window.head > to then"),
    // Fixed windows and leases.
    ("row.now - row.now % row.span", "row.now"),
    ("row.now < after(start, row.span)", "row.now <= after(start, row.span)"),
    ("row.now = max(now, start)", "row.now = now"),
    ("at >= row.start and", "at > row.start and"),
    ("min(max(row.free, 0), row.held)", "row.held"),
    ("while end_at(cell, first) <= now do", "while end_at(cell, first) < now do"),
    ("- LEASE + 1) > ends do", "- LEASE + 1) > FOREVER do"),
    ("or row.meter.give_back then", "then"),
    // Blocks.
    ("now < block.ends and (shadow", "now <= block.ends and (shadow"),
    ("(shadow or not block.shadow)", "true"),
    ("min(block.level + 1, LEVEL_MAX)", "block.level"),
    ("now < after(block.ends, block.forget)", "now <= after(block.ends, block.forget)"),
    ("local is_over = past.level > 0 and", "local is_over = false and"),
    ("block.shadow == act.shadow and (higher", "(higher"),
    ("past.level == block.level and longer", "longer"),
    ("max(now - past.since_end, 0)", "now"),
    ("or max(block.ends, ended)", "or block.ends"),
    ("elseif block.shadow and not act.shadow then", "elseif false then"),
    ("act.shadow and not block.shadow then", "act.shadow and now < block.ends then"),
    ("or next.ends ~= block.ends or", "or true or"),
    ("block.ends = now", "block.ends = now - 1"),
    // Checks and references.
    ("(row.verdict == FITS or row.shadow)", "row.verdict == FITS"),
    ("row.verdict == FITS and passed and", "row.verdict == FITS and"),
    ("or max(fits_at, ends)", "or fits_at"),
    ("row.meter.finish and not peek", "row.meter.finish"),
    ("return cell and now < unpack('<d', cell) and cell", "return cell"),
    ("row.verdict == FITS and row.now or -1", "row.now"),
    ("OWNER) == owner then", "OWNER) ~= '' then"),
    ("pack('<I2', length) .. event)", "pack('<I2', 0))"),
    // Settles.
    ("extra > 0 and extra > row.free", "extra > 0 and extra >= row.free"),
    ("row.debt and extra or min(extra, row.free)", "extra"),
    ("return charge(row, row.free)", "return 0"),
    ("if log.free <= 0 then\n        call('DEL', key)", "if false then"),
    ("elseif stands(row.block, now, row.shadow) then", "elseif false then"),
    ("moved and not ban.shadow", "moved"),
    ("rows[index].moved or moved", "rows[index].moved"),
    ("counts[1] == slice and", ""),
    ("part * 10000 > whole * watch.above", "part * 10000 >= whole * watch.above"),
];
