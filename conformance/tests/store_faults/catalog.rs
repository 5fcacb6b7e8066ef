//! The catalog of a node: the policies of the cases, and the sections about the store. Those are
//! the example in `deploy/`, where there is one, with its addresses and the times of its lock
//! replaced.

use std::path::Path;

use super::node::{NODES, RecordsPlace, TTL_MS};

const POLICIES: &str = r#"
[policy.early]
by     = ["customer"]
window = "60 per 1h"
[policy.late]
by     = ["customer"]
window = "150 per 1h"
[policy.guard]
by     = ["customer"]
window = "10000 per 1h"
[policy.automatic]
by     = ["customer"]
window = "60 per 1h"
block  = "1h"
[policy.switch0]
by     = ["customer"]
window = "10000 per 1h"
[policy.switch1]
by     = ["customer"]
window = "10000 per 1h"
[policy.switch2]
by     = ["customer"]
window = "10000 per 1h"
[locks.kind.resource]
ttl            = "2s"
ttl_max        = "2s"
failover_grace = false
"#;
const PAYMENT: &str = "[locks.kind.payment]";
const PAYMENT_LINES: &str = "ttl = \"\"\nttl_max = \"\"\nfailover_grace = true\n";

/// The catalog of a node whose files are in a folder. `more` are further lines of `[store]`.
pub fn write(
    example: Option<&str>,
    (url, more): (&str, &str),
    records: &RecordsPlace,
    folder: &Path,
) -> String {
    let plain = format!("[store]\nurl = \"\"\nnodes = {NODES}\n[records]\nurl = \"\"\n");
    let mut example = example.map_or(plain, str::to_owned);
    if !example.contains(PAYMENT) {
        example += &format!("{PAYMENT}\n{PAYMENT_LINES}");
    }
    let mut text = POLICIES.to_owned();
    let mut section = "";
    for line in example.lines() {
        let key = line.split(['=', ' ']).next().unwrap_or_default();
        if line.starts_with('[') {
            section = line;
        }
        text += &match (section, key) {
            ("[store]", "url") => format!("url = {url:?}\n{more}"),
            ("[records]", "url") => records_lines(records, folder),
            (PAYMENT, "ttl" | "ttl_max") => format!("{key} = \"{TTL_MS}ms\""),
            _ => line.to_owned(),
        };
        text.push('\n');
    }
    text
}

fn records_lines(records: &RecordsPlace, folder: &Path) -> String {
    match records {
        RecordsPlace::Shared(url) => format!("url = {url:?}"),
        RecordsPlace::OwnFile => {
            let file = format!("sqlite:{}", folder.join("catraca.db").display());
            format!("url = {file:?}\nscope = \"node\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_times_of_an_example_are_replaced_and_the_rest_is_kept() {
        let example = "[store]\nurl = \"redis://a\" # all\ndeadline = \"50ms\"\n[records]\n\
                       url = \"postgres://b\"\n[locks.kind.payment]\nttl = \"30s\"\n\
                       ttl_max = \"1m\"\n";
        let records = RecordsPlace::Shared("postgres://c".to_owned());
        let text = write(Some(example), ("redis://d", "x = 1"), &records, Path::new("f"));
        let expected = "[store]\nurl = \"redis://d\"\nx = 1\ndeadline = \"50ms\"\n[records]\n\
                        url = \"postgres://c\"\n[locks.kind.payment]\nttl = \"2000ms\"\n\
                        ttl_max = \"2000ms\"\n";
        assert!(text.ends_with(expected), "{text}");
        let own = write(None, ("redis://d", ""), &RecordsPlace::OwnFile, Path::new("/f"));
        assert!(own.contains("url = \"sqlite:/f/catraca.db\"\nscope = \"node\"\n"), "{own}");
        assert!(own.ends_with("failover_grace = true\n"), "{own}");
    }
}
