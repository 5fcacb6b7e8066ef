//! TLS, as the system's own `curl` and `openssl` see it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::keys::keygen;
use crate::served::{Served, binary, file};

const POLICY: &str = "[policy.login]\nby = ['user']\nwindow = '5 per 1h'\n";
const TLS: &str = "[server]\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n";

/// A certificate for this machine, made by `openssl`.
fn certificate(folder: &Path, serial: &str) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-set_serial", serial])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn folder_with(catalog: &str) -> (PathBuf, PathBuf) {
    let file = file(catalog);
    let folder = file.parent().unwrap().to_owned();
    (folder, file)
}

fn curl(folder: &Path, args: &[&str]) -> Output {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "30", "--cacert", "cert.pem"]).args(args);
    curl.current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn post(folder: &Path, address: &str, extra: &[&str]) -> Output {
    let url = format!("https://{address}/v1/check");
    let body = r#"{"gate":"login","subject":{"user":"ana"}}"#;
    let mut args = vec!["-H", "Content-Type: application/json", "-d", body, url.as_str()];
    args.extend(extra);
    curl(folder, &args)
}

/// The serial number of the certificate that a server shows.
fn serial(address: &str) -> String {
    let line = format!(
        "openssl s_client -connect {address} </dev/null 2>/dev/null | openssl x509 -noout -serial"
    );
    let shown = Command::new("sh").args(["-c", &line]).output().unwrap();
    text(&shown.stdout).trim().to_owned()
}

/// Asks again until it is so.
fn comes_to(what: &str, is_so: impl Fn() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < patience, "never {what}");
    }
}

/// Whether a counter of the server's has left zero.
fn has_counted(folder: &Path, served: &Served, name: &str) -> bool {
    let metrics = curl(folder, &[&format!("https://{}/metrics", served.address)]);
    let metrics = text(&metrics.stdout);
    let mut counted = metrics.lines().filter_map(|line| line.strip_prefix(name));
    counted.any(|rest| rest.starts_with(' ') && rest != " 0")
}

/// The command line, asking this server whether `ana` may come in.
fn asked(served: &Served, more: &[&str]) -> Output {
    let url = format!("https://{}", served.address);
    let mut command = binary();
    command.env_remove("CATRACA_KEY").env_remove("CATRACA_CA");
    command.args(["check", "login", "user=ana", "-o", "json", "--server", &url]).args(more);
    command.output().unwrap()
}

#[test]
fn two_settings_encrypt_every_call_and_nothing_is_said_in_clear() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let served = Served::of(&file);
    assert!(served.greeting.contains("listens on https://127.0.0.1:"), "{}", served.greeting);
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        let answer = post(&folder, &served.address, &[version, "--tls-max", &version[6..]]);
        let said = text(&answer.stdout);
        assert!(said.contains("\"allowed\":true"), "{version}: {said}{}", text(&answer.stderr));
    }
    let old = post(&folder, &served.address, &["--tlsv1.1", "--tls-max", "1.1"]);
    assert!(!old.status.success());
    // Two on one connection, as every client does it.
    let url = format!("https://{}/readyz", served.address);
    let both = curl(&folder, &["-w", "%{num_connects}", &url, &url]);
    assert!(text(&both.stdout).contains("}1{") && text(&both.stdout).ends_with("}0"), "{both:?}");
    let mut clear = served.connect();
    clear.send("GET /healthz", &[], b"");
    assert!(clear.try_answer().is_err());
    comes_to("counted", || has_counted(&folder, &served, "catraca_tls_failed_total"));
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success(), "{said}");
}

#[test]
fn another_certificate_is_shown_after_a_signal_and_after_the_watch_has_seen_it() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let served = Served::of(&file);
    assert_eq!(serial(&served.address), "serial=07");
    let shows = |wanted: &str| comes_to(wanted, || serial(&served.address) == wanted);
    certificate(&folder, "8");
    served.signal("HUP");
    shows("serial=08");
    certificate(&folder, "9");
    shows("serial=09");
    // A key that is not the certificate's leaves the old pair in force.
    let other = folder.join("other");
    fs::create_dir(&other).unwrap();
    certificate(&other, "10");
    fs::copy(other.join("key.pem"), folder.join("key.pem")).unwrap();
    let url = format!("https://{}/v1/config/reload", served.address);
    let refused = curl(&folder, &["-X", "POST", &url]);
    assert!(text(&refused.stdout).contains("tls_key"), "{}", text(&refused.stdout));
    assert_eq!(serial(&served.address), "serial=09");
}

#[test]
fn the_command_line_trusts_the_certificate_that_it_is_given_and_no_other() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let served = Served::of(&file);
    let trusted = folder.join("trusted.pem");
    fs::copy(folder.join("cert.pem"), &trusted).unwrap();
    let answer = asked(&served, &["--ca", trusted.to_str().unwrap()]);
    let said = text(&answer.stdout);
    assert!(said.contains(r#""allowed":true"#), "{said}{}", text(&answer.stderr));
    certificate(&folder, "8");
    let stranger = folder.join("cert.pem");
    let refused = asked(&served, &["--ca", folder.join("key.pem").to_str().unwrap()]);
    assert!(text(&refused.stderr).contains("holds no certificate"), "{refused:?}");
    comes_to("the other certificate", || serial(&served.address) == "serial=08");
    let refused = asked(&served, &["--ca", trusted.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(text(&refused.stderr).contains("--ca FILE"), "{refused:?}");
    let answer = asked(&served, &["--ca", stranger.to_str().unwrap()]);
    assert!(text(&answer.stdout).contains(r#""remaining":3"#), "{answer:?}");
}

#[test]
fn nobody_is_sent_away_in_clear() {
    let limits = "connections_max = 2\nconnections_per_address = 1\n";
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}{limits}"));
    certificate(&folder, "7");
    let served = Served::of(&file);
    // A listener of the live feed is never idle, so it keeps its place.
    let mut listener = Command::new("curl")
        .args(["-sSN", "--max-time", "30", "--cacert", "cert.pem"])
        .arg(format!("https://{}/v1/events", served.address))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut heard = BufReader::new(listener.stdout.take().unwrap()).lines();
    assert_eq!(heard.next().unwrap().unwrap(), ": listening");
    assert_eq!(served.connect().rest(), "");
    listener.kill().unwrap();
    listener.wait().unwrap();
    let url = format!("https://{}/metrics", served.address);
    let metrics = text(&curl(&folder, &["--interface", "127.0.0.2", &url]).stdout);
    let shed = "catraca_connections_shed_total{limit=\"connections_per_address\"} 1\n";
    assert!(metrics.contains(shed), "{metrics}");
}

#[test]
fn what_is_wrong_with_the_two_files_is_named_before_anything_is_served() {
    let (folder, _) = folder_with(POLICY);
    certificate(&folder, "7");
    fs::write(folder.join("empty.pem"), "").unwrap();
    fs::write(folder.join("torn.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n").unwrap();
    fs::copy(folder.join("key.pem"), folder.join("other.pem")).unwrap();
    certificate(&folder, "8");
    for (settings, wanted) in [
        ("tls_cert = 'cert.pem'", "tls_cert needs tls_key"),
        ("tls_key = 'key.pem'", "tls_key needs tls_cert"),
        ("tls_cert = 'gone.pem'\ntls_key = 'key.pem'", "gone.pem\": it cannot be read"),
        ("tls_cert = 'empty.pem'\ntls_key = 'key.pem'", "holds no"),
        ("tls_cert = 'torn.pem'\ntls_key = 'key.pem'", "it is damaged"),
        ("tls_cert = 'cert.pem'\ntls_key = 'cert.pem'", "BEGIN PRIVATE KEY"),
        ("tls_cert = 'cert.pem'\ntls_key = 'other.pem'", "cannot be used with tls_cert"),
        ("tls_cert = 7\ntls_key = 'key.pem'", "tls_cert"),
    ] {
        let file = folder.join("catalog.toml");
        fs::write(&file, format!("{POLICY}[server]\n{settings}\n")).unwrap();
        let ran =
            binary().args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file).output();
        let ran = ran.unwrap();
        let said = text(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{settings}: {said}");
        assert!(said.contains(wanted), "{settings}: {said}");
    }
}

#[test]
fn keys_in_clear_are_warned_about_where_others_can_reach() {
    let key = keygen(&["--role", "check"]);
    let catalog = format!("{POLICY}{}", key.table);
    let said = |served: Served| {
        served.signal("TERM");
        served.ended().1
    };
    let clear = said(Served::on("0.0.0.0:0", &catalog));
    assert!(clear.contains("WARN") && clear.contains("travel in clear"), "{clear}");
    let local = said(Served::with(&catalog));
    assert!(!local.contains("WARN"), "{local}");
    let (folder, file) = folder_with(&format!("{catalog}{TLS}"));
    certificate(&folder, "7");
    let secure = said(Served::on_file("0.0.0.0:0", &file));
    assert!(!secure.contains("WARN"), "{secure}");
}
