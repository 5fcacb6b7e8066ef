//! The text summary of a replay.

use super::{LOGIN, login};
use crate::cli::test_dir::TestDir;

fn summary(catalog: &str, lines: &[String]) -> (String, String) {
    let dir = TestDir::with_file("catalog.toml", catalog);
    let args = ["simulate", "-c", "catalog.toml", "-"];
    let output = dir.run_with_stdin(&args, lines.join("\n").as_bytes());
    (output.out, output.err)
}

fn login_from(at: i64, ip: &str) -> String {
    login(at).replace("198.51.100.7", ip)
}

#[test]
fn policies_subjects_and_the_worst_minute_add_up() {
    let mut lines: Vec<_> =
        (0..5).map(|second| login_from(second * 1_000, "198.51.100.7")).collect();
    lines.extend((0..6).map(|second| login_from(60_000 + second, "198.51.100.8")));
    lines.push(login_from(119_000, "198.51.100.9"));
    let (out, err) = summary(LOGIN, &lines);
    assert_eq!(err, "");
    let (head, rest) = out.split_once('\n').unwrap();
    assert!(
        head.starts_with("12 events over 1m59s, from 0s to 1m59s, catalog revision "),
        "{head}"
    );
    let expected = "
allowed            7   58.3%  ok 7
denied             5   41.7%  blocked 3, over_limit 2

 policy   mode      allowed   denied   while blocked   blocks   worst minute
───────────────────────────────────────────────────────────────────────────────
 login    enforce         7        5               3        2   3 denied at 1m

 policy   denied most       times   share
──────────────────────────────────────────
 login    ip=198.51.100.8       3   60.0%
          ip=198.51.100.7       2   40.0%
";
    assert_eq!(rest, expected, "{out}");
}

#[test]
fn only_five_subjects_are_ranked_with_ties_by_name() {
    let ips = (1..=7).map(|last| format!("198.51.100.{last}"));
    let lines: Vec<_> = ips.flat_map(|ip| vec![login_from(0, &ip); 4]).collect();
    let (out, _) = summary(LOGIN, &lines);
    let ranked: Vec<_> = out.lines().filter(|line| line.contains("ip=")).collect();
    assert_eq!(ranked.len(), 5, "{out}");
    assert!(ranked[0].contains("198.51.100.1") && ranked[4].contains("198.51.100.5"), "{out}");
}

#[test]
fn bad_lines_go_to_standard_error_and_are_counted() {
    let mut lines = vec![login(0)];
    lines.extend(vec!["oops".to_owned(); 25]);
    let (out, err) = summary(LOGIN, &lines);
    assert!(out.contains("bad lines         25          they changed nothing\n"), "{out}");
    let lines: Vec<_> = err.lines().collect();
    assert_eq!(lines.len(), 21, "{err}");
    assert!(lines[0].starts_with("line 2: not JSON: "), "{err}");
    assert_eq!(lines[20], "and 5 more bad lines");
}

#[test]
fn outcomes_acts_unlisted_gates_and_idle_policies_are_mentioned() {
    let catalog = r#"
        default = "rest"
        [policy.rest]
        by     = ["ip"]
        bucket = { size = 10, refill = "1 per 1m" }
        cost   = { default = 1 }
        debt   = true
        low_water = "90%"
        [policy.idle]
        by     = ["ip"]
        window = "1 per 1s"
    "#;
    let other = login(0).replace("}}", r#"},"outcome":{"status":200}}"#);
    let reset = r#"{"at":1,"reset":{"policy":"rest","subject":{"ip":"198.51.100.7"}}}"#;
    let credit = r#"{"at":1,"credit":{"ref":"E","event":"e","subject":{}}}"#;
    let lines = [other.clone(), other, reset.to_owned(), credit.to_owned()];
    let (out, _) = summary(catalog, &lines);
    for expected in [
        "\noutcomes           2          settled 2\n",
        "\nacts               2          credits refused 1, resets 1\n",
        "\nnote: gates that the catalog does not declare, decided by its default: login\n",
        "\nnote: rest fell below its low-water mark 1 time\n",
        "\nnote: never checked: idle\n",
    ] {
        assert!(out.contains(expected), "{expected}{out}");
    }
}

#[test]
fn nothing_is_summed_up_too() {
    let (out, err) = summary(LOGIN, &[]);
    assert!(out.starts_with("no events, catalog revision "), "{out}");
    assert_eq!((out.lines().count(), err.as_str()), (4, ""), "{out}");
}
