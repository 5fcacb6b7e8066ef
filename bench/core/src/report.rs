//! Turns the rows of a run into markdown. Every number printed is a median over rounds, of values
//! or of ratios taken inside a round; nothing is computed across rounds otherwise.

mod table;

use crate::case::{Case, MILLION, WINDOW_LIMITS, size_name};
use crate::machine;
use crate::registry::{FLOOR, PEER, Role, SUBJECTS};
use crate::results::{Results, median};
use table::{Column, Table};

/// More foreign load than this (in cores) marks a measurement as disturbed.
const DISTURBED: f64 = 0.2;

/// The whole report.
pub fn write(results: &Results, quick: bool) -> String {
    let mut text = head(results, quick);
    for case in Case::all() {
        match case {
            Case::Speed { keys, threads: 1 } => text += &one_thread(results, case, keys),
            Case::Speed { keys, .. } => text += &two_threads(results, case, keys),
            Case::Fill => text += &(growth(results) + &memory(results) + &worst_insert(results)),
            Case::Steps => text += &(steps(results) + &levels(results)),
            Case::Window { .. } => {}
        }
    }
    text + &parts(results) + &windows(results)
}

fn head(results: &Results, quick: bool) -> String {
    let disturbed = |row: &&crate::results::Row| row.figures.get("foreign") > Some(DISTURBED);
    let noisy = results.rows.iter().filter(disturbed).count();
    let smoke =
        if quick { "**Smoke run (`--quick`): these figures prove nothing.**\n\n" } else { "" };
    format!(
        "{smoke}{}. Versions: {}.\nRounds: {}; {noisy} of {} measurements saw more than \
         {DISTURBED} cores of foreign load.\n",
        machine::describe(),
        versions(),
        results.rounds,
        results.rows.len(),
    )
}

/// The peers' versions as locked, so that a report cannot name another than it measured.
fn versions() -> String {
    let lock = include_str!("../Cargo.lock");
    let version = |name: &str| {
        let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", rest.split('"').next()?))
    };
    let names = ["governor", "throttlecrab", "ahash", "rustc-hash", "parking_lot"];
    names.into_iter().filter_map(version).collect::<Vec<_>>().join(", ")
}

fn one_thread(results: &Results, case: Case, keys: u64) -> String {
    let name = case.name();
    let columns = vec![
        Column::median("ns", 1, &name, "ns"),
        Column::range("min–max", 1, &name, "ns"),
        Column::ratio("× floor", &name, "ns", FLOOR),
        Column::ratio("× governor-arr", &name, "ns", PEER),
        Column::median("CPU ns", 1, &name, "cpu_ns"),
        Column::ratio("CPU × floor", &name, "cpu_ns", FLOOR),
        Column::ratio("CPU × governor-arr", &name, "cpu_ns", PEER),
    ];
    let title = format!("{}: ns per decision, one thread", population(keys));
    Table { title, note: "Lower is better.", case: name, columns }.write(results, Role::Decider)
}

fn two_threads(results: &Results, case: Case, keys: u64) -> String {
    let name = case.name();
    let columns = vec![
        Column::median("M decisions/s", 2, &name, "mdec_s"),
        Column::range("min–max", 2, &name, "mdec_s"),
        Column::ratio("× floor", &name, "mdec_s", FLOOR),
        Column::ratio("× governor-arr", &name, "mdec_s", PEER),
    ];
    let title = format!("{}: decisions per second, two threads", population(keys));
    Table { title, note: "Higher is better.", case: name, columns }.write(results, Role::Decider)
}

fn population(keys: u64) -> String {
    match size_name(keys) {
        "hot" => "One hot key".into(),
        name => format!("{name} keys, uniform"),
    }
}

fn growth(results: &Results) -> String {
    let column = |header: &'static str, threads: usize| {
        let case = |keys| Case::Speed { keys, threads }.name();
        Column::quotient(header, (case(MILLION), "ns"), (case(1_000), "ns"))
    };
    let columns = vec![column("1 thread", 1), column("2 threads", 2)];
    let title = "Growth: ns at 1M keys / ns at 1k keys".into();
    let note = "Taken inside each round. Lower is better; a cache miss is in it for everyone.";
    let case = Case::Speed { keys: MILLION, threads: 1 }.name();
    Table { title, note, case, columns }.write(results, Role::Decider)
}

fn memory(results: &Results) -> String {
    let columns = vec![
        Column::median("at 1M", 1, "fill", "bytes_1m"),
        Column::median("mean 2^18–2^20", 1, "fill", "bytes_mean"),
        Column::range("min–max of the mean", 1, "fill", "bytes_mean"),
        Column::median("max level", 1, "fill", "bytes_max"),
        Column::ratio("mean × floor", "fill", "bytes_mean", FLOOR),
        Column::ratio("mean × governor-arr", "fill", "bytes_mean", PEER),
    ];
    let title = "Resident bytes per key".into();
    let note =
        "One hit per key. throttlecrab and the flat floor are sized for 2^20 keys at the start.";
    Table { title, note, case: "fill".into(), columns }.write(results, Role::Decider)
}

fn worst_insert(results: &Results) -> String {
    let columns = vec![
        Column::median("wall ms", 3, "fill", "worst_ms"),
        Column::range("min–max", 3, "fill", "worst_ms"),
        Column::median("less queueing", 3, "fill", "worst_run_ms"),
        Column::range("min–max", 3, "fill", "worst_run_ms"),
        Column::ratio("× floor", "fill", "worst_run_ms", FLOOR),
        Column::ratio("× governor-arr", "fill", "worst_run_ms", PEER),
    ];
    let title = "Slowest single insert while filling to 1M".into();
    let note = "\"Less queueing\" leaves out the time the thread waited for a core; ratios use it.";
    Table { title, note, case: "fill".into(), columns }.write(results, Role::Decider)
}

fn steps(results: &Results) -> String {
    let columns = vec![
        Column::median("decide max / median", 2, "steps", "decide_max_over_median"),
        Column::range("min–max", 2, "steps", "decide_max_over_median"),
        Column::median("largest step", 2, "steps", "decide_largest_step"),
        Column::median("insert max / median", 2, "steps", "insert_max_over_median"),
        Column::range("min–max", 2, "steps", "insert_max_over_median"),
    ];
    let title = "No step: cost at every sixteenth of 1M keys".into();
    let note = "\"Largest step\" = the worst rise from one level to the next.";
    Table { title, note, case: "steps".into(), columns }.write(results, Role::Decider)
}

fn levels(results: &Results) -> String {
    let at = |level: u32| {
        let figure = format!("decide_ns_{level:02}");
        Column::median(&format!("{level}/16"), 0, "steps", &figure)
    };
    let columns = (1..=16).map(at).collect();
    let title = "ns per decision by fill level".into();
    Table { title, note: "", case: "steps".into(), columns }.write(results, Role::Decider)
}

fn parts(results: &Results) -> String {
    let case = Case::Speed { keys: 1, threads: 1 }.name();
    let columns = vec![
        Column::median("ns", 1, &case, "ns"),
        Column::range("min–max", 1, &case, "ns"),
        Column::excess("less the loop", 1, &case, "ns", "loop"),
        Column::median("CPU ns", 1, &case, "cpu_ns"),
        Column::excess("less the loop", 1, &case, "cpu_ns", "loop"),
    ];
    let title = "Parts of a decision, alone".into();
    let note = "The loop (choosing and writing a key) is inside every row of this report.";
    Table { title, note, case, columns }.write(results, Role::Part)
}

/// One line per limit: this table's rows are cases, not subjects.
fn windows(results: &Results) -> String {
    let line = |limit: &u64| {
        let case = Case::Window { limit: *limit }.name();
        let subject = SUBJECTS.iter().find(|entry| results.has(entry.name, &case))?.name;
        let over_rounds = |figure: &str| {
            median(&results.per_round(|round| results.get(round, subject, &case, figure)))
        };
        let keys = over_rounds("keys");
        let bytes = over_rounds("bytes_key");
        Some(format!("| {limit} | {keys:.0} | {bytes:.0} | {:.2} |\n", bytes / *limit as f64))
    };
    let lines: String = WINDOW_LIMITS.iter().filter_map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    let header = "| limit | keys | bytes per key | bytes per entry |\n|---:|---:|---:|---:|\n";
    format!("\n### Resident bytes of exact windows, every key full\n\n{header}{lines}")
}
