//! Takes over the two tables of a source: its blocks, and its blocklist.
//!
//! Uses only the public API. All rows are read and checked before the first one is sent.

use std::collections::{BTreeMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use catraca::Time;
use serde_json::{Value, json};

use super::csv::{self, TableRow};
use crate::args::Output;
use crate::client::{Client, Reply};
use crate::cmd::remote::{blocklist_entries, show};
use crate::exit::Exit;
use crate::render::{count_noun, sanitize};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The table with the counts and blocks of a source.
pub struct BuyerRateLimits<'a> {
    pub file: &'a str,
    pub text: &'a str,
    /// The attribute that the column `identifier` has the values of.
    pub by: &'a str,
    pub namespace: Option<&'a str>,
}

/// A block that has not ended. Without a unique key, a source may have several rows of one caller:
/// the latest end counts.
type OpenBlocks<'a> = BTreeMap<(&'a str, &'a str), (usize, Time)>;

impl BuyerRateLimits<'_> {
    /// Adds the blocks that have not ended. Attempts are left out: the source has their number and
    /// not their instants, and a window that slides needs these.
    pub fn import(&self, client: &Client, output: Output) -> Result<Exit> {
        let rows = csv::read(self.text, &["identifier", "action", "blocked_until"])?;
        let now = now();
        let blocks = self.open_blocks(&rows, now)?;
        self.refuse_unknown_policies(client, &blocks)?;
        let mut durable = true;
        for ((action, identifier), (_, until)) in &blocks {
            // Rounded up: a block must not end early.
            let micros = until.since(now).micros();
            let seconds = micros / MICROS_PER_SECOND + i64::from(micros % MICROS_PER_SECOND > 0);
            let order = json!({
                "policy": action,
                "subject": { self.by: identifier },
                "namespace": self.namespace,
                "for": format!("{seconds}s"),
                "reason": "imported from buyer_rate_limits",
            });
            durable &= client.post("/v1/blocks", &order)?.json["durable"] == true;
        }
        let json = json!({
            "rows": rows.len(), "blocks": blocks.len(), "durable": durable,
        });
        let reply = Reply { text: json.to_string(), json };
        show(output, &reply, |_| {
            format!(
                "{} added from {}. Counts start at zero: the table has the number of attempts and \
                 not their instants, and windows here slide instead of starting with the first \
                 attempt.",
                count_noun(blocks.len(), "block", "blocks"),
                count_noun(rows.len(), "row", "rows"),
            )
        })?;
        Ok(Exit::Yes)
    }

    fn open_blocks<'r>(&self, rows: &'r [TableRow], now: Time) -> Result<OpenBlocks<'r>> {
        let mut blocks = OpenBlocks::new();
        let mut wrong = Vec::new();
        for row in rows {
            let Some(text) = row.get("blocked_until") else { continue };
            let who = row.get("action").zip(row.get("identifier"));
            match (parse_instant(text), who) {
                (Ok(until), Some(who)) if until > now => {
                    let last = blocks.entry(who).or_insert((row.line, until));
                    last.1 = last.1.max(until);
                }
                (Ok(_), Some(_)) => {}
                (Err(why), _) => wrong.push(format!("  {}:{}: {why}", self.file, row.line)),
                (_, None) => wrong.push(format!(
                    "  {}:{}: identifier and action must not be empty",
                    self.file, row.line
                )),
            }
        }
        refuse(&wrong)?;
        Ok(blocks)
    }

    fn refuse_unknown_policies(&self, client: &Client, blocks: &OpenBlocks<'_>) -> Result<()> {
        let listed = client.get("/v1/policies")?.json;
        let listed = listed["policies"].as_array().into_iter().flatten();
        let known: HashSet<&str> = listed.filter_map(|row| row["policy"].as_str()).collect();
        let unknown = blocks.iter().filter(|((action, _), _)| !known.contains(action));
        let wrong: Vec<String> = unknown
            .map(|((action, _), (line, _))| {
                let action = sanitize(action);
                format!("  {}:{line}: the catalog has no policy {action}", self.file)
            })
            .collect();
        refuse(&wrong)
    }
}

/// Adds the entries of a table `ip_blocklist` that have not expired.
pub fn import_blocklist(
    client: &Client,
    output: Output,
    (file, text): (&str, &str),
    namespace: Option<&str>,
) -> Result<Exit> {
    let now = now();
    let mut entries: Vec<(usize, Value)> = Vec::new();
    let mut wrong = Vec::new();
    for row in csv::read(text, &["ip_address"])? {
        let until = row.get("expires_at").map(parse_instant).transpose();
        match (row.get("ip_address"), until) {
            (_, Err(why)) => wrong.push((row.line, why)),
            (None, _) => wrong.push((row.line, "ip_address must not be empty".to_owned())),
            (_, Ok(Some(until))) if until <= now => {}
            (Some(range), Ok(until)) => {
                let mut entry = json!({ "range": range });
                let until = until.map(Time::to_rfc3339);
                for (name, value) in [
                    ("reason", row.get("reason")),
                    ("namespace", namespace),
                    ("until", until.as_deref()),
                ] {
                    if let Some(value) = value {
                        entry[name] = value.into();
                    }
                }
                entries.push((row.line, entry));
            }
        }
    }
    blocklist_entries(client, output, file, entries, wrong)
}

/// An instant of PostgreSQL, such as `2026-01-20 12:00:00.5+00`, or of RFC 3339.
fn parse_instant(text: &str) -> Result<Time, String> {
    let mut rfc = text.trim().replacen(' ', "T", 1);
    let zone = rfc.rfind(['+', '-']).filter(|at| *at > "2026-01-20".len());
    match zone.map(|at| rfc.len() - at) {
        Some(3) => rfc.push_str(":00"),
        None if !rfc.ends_with(['Z', 'z']) => {
            return Err(format!("{:?} has no time zone, such as +00", sanitize(text)));
        }
        _ => {}
    }
    Time::parse_rfc3339(&rfc).map_err(|error| error.to_string())
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn refuse(wrong: &[String]) -> Result<()> {
    if wrong.is_empty() {
        return Ok(());
    }
    let lines = count_noun(wrong.len(), "row is", "rows are");
    bail!("{lines} invalid, and nothing was sent:\n{}", wrong.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_postgresql_are_read() {
        let noon = "2026-01-20T12:00:00Z";
        for text in ["2026-01-20 12:00:00+00", "2026-01-20 09:00:00-03", noon] {
            assert_eq!(parse_instant(text).unwrap().to_rfc3339(), noon, "{text}");
        }
        let half = parse_instant("2026-01-20 12:00:00.5+05:30").unwrap();
        assert_eq!(half.to_rfc3339(), "2026-01-20T06:30:00.500Z");
        for text in ["2026-01-20 12:00:00", "soon", ""] {
            assert!(parse_instant(text).is_err(), "{text}");
        }
    }
}
