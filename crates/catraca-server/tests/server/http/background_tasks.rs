//! Failures that no request sees: a snapshot that cannot be written, late settles and a stepped
//! wall clock are in the log, in `/readyz` and in the metrics.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::test_server::{TestServer, catalog_file};

const CATALOG: &str = "[policy.login]\nby = ['ip']\nwindow = '9 per 1h'\n\
    [store]\nsnapshot_interval = '100ms'\n";
/// Longer than any of these changes takes: a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

fn problems(server: &TestServer) -> Value {
    server.request("GET /readyz", &[]).json()["problems"].clone()
}

fn metric(server: &TestServer, series: &str) -> Option<f64> {
    let text = server.request("GET /metrics", &[]).body;
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|number| number.parse().unwrap())
}

/// Asks until the problems are as `is_expected` says.
fn wait_for_problems(server: &TestServer, is_expected: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let found = problems(server);
        if is_expected(&found) {
            return found;
        }
        assert!(Instant::now() < deadline, "{found}");
    }
}

fn count_lines(log: &str, text: &str) -> usize {
    log.lines().filter(|line| line.contains(text)).count()
}

/// Regression: a snapshot that could not be written was one line of the log.
#[test]
fn a_snapshot_that_cannot_be_written_is_a_problem_until_it_can() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let snapshot = file.with_file_name("catraca.snapshot");
    let is_none = |problems: &Value| *problems == json!([]);
    let deadline = Instant::now() + TIMEOUT;
    // A folder in place of the file: nothing can be renamed over it.
    while fs::remove_file(&snapshot).and_then(|()| fs::create_dir_all(snapshot.join("x"))).is_err()
    {
        assert!(Instant::now() < deadline, "there is no snapshot, or a new one in its place");
    }
    let found = wait_for_problems(&server, |problems| !is_none(problems));
    assert_eq!(found[0]["what"], "background", "{found}");
    let why = found[0]["why"].as_str().unwrap();
    assert!(why.starts_with("snapshot: ") && why.contains("older counters"), "{why}");
    assert_eq!(metric(&server, "catraca_background_failing{task=\"snapshot\"}"), Some(1.0));
    assert_eq!(metric(&server, "catraca_background_failing{task=\"purge\"}"), Some(0.0));
    let failures = metric(&server, "catraca_background_failures_total{task=\"snapshot\"}");
    assert!(failures.is_some_and(|count| count >= 1.0), "{failures:?}");
    fs::remove_dir_all(&snapshot).unwrap();
    wait_for_problems(&server, is_none);
    assert_eq!(metric(&server, "catraca_background_failing{task=\"snapshot\"}"), Some(0.0));
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert!(status.success(), "{log}");
    assert_eq!(count_lines(&log, "background work fails"), 1, "{log}");
    assert_eq!(count_lines(&log, "background work succeeds again"), 1, "{log}");
}

/// Regression: the ban of a policy was lost with 200 `expired`, and no word in the log.
#[test]
fn late_settles_are_counted_and_logged_once_per_policy_and_minute() {
    let bans = ["one", "two"].map(|name| {
        format!(
            "[policy.{name}]\nby = ['ip']\nhold = '1ms'\n\
             ban = [ {{ when = 'status == 403', for = '10m' }} ]\n"
        )
    });
    let server = TestServer::with_catalog(&bans.concat());
    let minute = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() / 60;
    let begun = minute();
    // Each settle follows 60 other calls, which take longer than the hold.
    let tickets: Vec<Value> = (0..60)
        .map(|n| {
            let gate = if n % 2 == 0 { "one" } else { "two" };
            let check = json!({ "gate": gate, "subject": { "ip": format!("198.51.100.{n}") } });
            server.json("/v1/check", &check.to_string()).1["ticket"].clone()
        })
        .collect();
    let mut expired = 0;
    for ticket in tickets {
        let settle = json!({ "ticket": ticket, "outcome": { "status": 403 } }).to_string();
        let (status, settled) = server.json("/v1/settle", &settle);
        assert_eq!(status, 200, "{settled}");
        expired += u32::from(settled["state"] == "expired");
    }
    let counted = metric(&server, "catraca_settles_total{result=\"expired\"}");
    let minutes = usize::try_from(minute() - begun + 1).unwrap();
    println!("{expired} of 60 settles were late, in {minutes} minutes");
    assert_eq!(expired, 60);
    assert_eq!(counted, Some(f64::from(expired)));
    server.signal("TERM");
    let (_, log) = server.wait_for_exit();
    for policy in ["one", "two"] {
        let of_policy = |line: &&str| {
            line.contains("WARN")
                && line.contains("a settle came after `hold`")
                && line.contains(&format!("policy=\"{policy}\""))
        };
        let lines = log.lines().filter(of_policy).count();
        assert!((1..=minutes).contains(&lines), "{lines} lines in {minutes} minutes: {log}");
    }
}

/// A library that moves the wall clock of a process one hour ahead while a file exists.
#[cfg(target_os = "linux")]
const STEPPED_CLOCK: &str = r#"
use std::os::raw::{c_char, c_int, c_long};
extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn access(path: *const c_char, mode: c_int) -> c_int;
}
#[cfg(target_arch = "x86_64")]
const CLOCK_GETTIME: c_long = 228;
#[cfg(target_arch = "aarch64")]
const CLOCK_GETTIME: c_long = 113;
#[no_mangle]
pub unsafe extern "C" fn clock_gettime(id: c_int, at: *mut [i64; 2]) -> c_int {
    let result = syscall(CLOCK_GETTIME, id, at) as c_int;
    let file = getenv(c"STEPPED_CLOCK_FILE".as_ptr());
    if id == 0 && !file.is_null() && access(file, 0) == 0 {
        (*at)[0] += 3600;
    }
    result
}
"#;

#[cfg(target_os = "linux")]
fn build_stepped_clock(folder: &Path) -> PathBuf {
    let source = folder.join("stepped_clock.rs");
    let library = folder.join("libstepped_clock.so");
    fs::write(&source, STEPPED_CLOCK).unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2021", "--crate-type=cdylib", "-o"]).arg(&library).arg(&source);
    let built = rustc.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library
}

/// Regression: the alarm on a stepped wall clock had no caller.
#[cfg(target_os = "linux")]
#[test]
fn a_step_of_the_wall_clock_is_in_the_log_and_in_readyz_and_ends_no_block() {
    let file = catalog_file(&CATALOG.replace("9 per 1h", "1 per 1h"));
    let folder = file.parent().unwrap();
    let library = build_stepped_clock(folder);
    let step = folder.join("step");
    let variables = [("LD_PRELOAD", library.as_path()), ("STEPPED_CLOCK_FILE", step.as_path())];
    let server = TestServer::with_env(&file, &variables);
    let check = r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#;
    assert_eq!(server.json("/v1/check", check).1["allowed"], true);
    assert_eq!(problems(&server), json!([]));
    fs::write(&step, "").unwrap();
    let found = wait_for_problems(&server, |problems| *problems != json!([]));
    assert_eq!(found[0]["what"], "clock", "{found}");
    let why = found[0]["why"].as_str().unwrap();
    assert!(why.contains("moved by 3600 s") || why.contains("moved by 3599 s"), "{why}");
    let seconds = metric(&server, "catraca_wall_clock_step_seconds").unwrap();
    assert!((3_599.0..=3_601.0).contains(&seconds), "{seconds}");
    assert_eq!(server.json("/v1/check", check).1["allowed"], false, "the window has not passed");
    fs::remove_file(&step).unwrap();
    wait_for_problems(&server, |problems| *problems == json!([]));
    server.signal("TERM");
    let (_, log) = server.wait_for_exit();
    assert_eq!(count_lines(&log, "the wall clock was moved since the start"), 1, "{log}");
    assert_eq!(count_lines(&log, "the wall clock agrees"), 1, "{log}");
}
