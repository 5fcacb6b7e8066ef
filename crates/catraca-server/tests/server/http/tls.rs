//! TLS, tested with the system's `curl` and `openssl`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::keys::keygen;
use crate::test_server::{TestServer, binary, catalog_file};

const POLICY: &str = "[policy.login]\nby = ['user']\nwindow = '5 per 1h'\n";
const TLS: &str = "[server]\ntls_cert = 'cert.pem'\ntls_key = 'key.pem'\n";

/// A certificate for this machine, made by `openssl`.
pub fn certificate(folder: &Path, serial: &str) {
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=localhost", "-set_serial", serial])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn folder_with(catalog: &str) -> (PathBuf, PathBuf) {
    let file = catalog_file(catalog);
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

/// The serial number of the certificate that a server presents.
fn serial(address: &str) -> String {
    let line = format!(
        "openssl s_client -connect {address} </dev/null 2>/dev/null | openssl x509 -noout -serial"
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    text(&output.stdout).trim().to_owned()
}

/// Waits until `is_so` returns true.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "never {what}");
    }
}

/// Whether a counter of the server is above zero.
fn has_counted(folder: &Path, server: &TestServer, name: &str) -> bool {
    let metrics = curl(folder, &[&format!("https://{}/metrics", server.address)]);
    let metrics = text(&metrics.stdout);
    let mut counted = metrics.lines().filter_map(|line| line.strip_prefix(name));
    counted.any(|rest| rest.starts_with(' ') && rest != " 0")
}

/// Runs `catraca check` for `ana` against this server.
fn run_check(server: &TestServer, more: &[&str]) -> Output {
    let url = format!("https://{}", server.address);
    let mut command = binary();
    command.env_remove("CATRACA_KEY").env_remove("CATRACA_CA");
    command.args(["check", "login", "user=ana", "-o", "json", "--server", &url]).args(more);
    command.output().unwrap()
}

#[test]
fn two_settings_encrypt_every_call_and_nothing_is_said_in_clear() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let server = TestServer::from_file(&file);
    assert!(server.greeting.contains("listens on https://127.0.0.1:"), "{}", server.greeting);
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        let answer = post(&folder, &server.address, &[version, "--tls-max", &version[6..]]);
        let stdout = text(&answer.stdout);
        assert!(stdout.contains("\"allowed\":true"), "{version}: {stdout}{}", text(&answer.stderr));
    }
    let old = post(&folder, &server.address, &["--tlsv1.1", "--tls-max", "1.1"]);
    assert!(!old.status.success());
    // Two requests on one connection, as every HTTP client sends them.
    let url = format!("https://{}/readyz", server.address);
    let both = curl(&folder, &["-w", "%{num_connects}", &url, &url]);
    assert!(text(&both.stdout).contains("}1{") && text(&both.stdout).ends_with("}0"), "{both:?}");
    let mut clear = server.connect();
    clear.send("GET /healthz", &[], b"");
    assert!(clear.try_read_response().is_err());
    wait_until("counted", || has_counted(&folder, &server, "catraca_tls_failed_total"));
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
}

#[test]
fn another_certificate_is_shown_after_a_signal_and_after_the_watch_has_seen_it() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let server = TestServer::from_file(&file);
    assert_eq!(serial(&server.address), "serial=07");
    let shows = |wanted: &str| wait_until(wanted, || serial(&server.address) == wanted);
    certificate(&folder, "8");
    server.signal("HUP");
    shows("serial=08");
    certificate(&folder, "9");
    shows("serial=09");
    // With a key that does not match the certificate, the old pair stays in use.
    let other = folder.join("other");
    fs::create_dir(&other).unwrap();
    certificate(&other, "10");
    fs::copy(other.join("key.pem"), folder.join("key.pem")).unwrap();
    let url = format!("https://{}/v1/config/reload", server.address);
    let refused = curl(&folder, &["-X", "POST", &url]);
    assert!(text(&refused.stdout).contains("tls_key"), "{}", text(&refused.stdout));
    assert_eq!(serial(&server.address), "serial=09");
}

#[test]
fn the_command_line_trusts_the_certificate_that_it_is_given_and_no_other() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let server = TestServer::from_file(&file);
    let trusted = folder.join("trusted.pem");
    fs::copy(folder.join("cert.pem"), &trusted).unwrap();
    let answer = run_check(&server, &["--ca", trusted.to_str().unwrap()]);
    let stdout = text(&answer.stdout);
    assert!(stdout.contains(r#""allowed":true"#), "{stdout}{}", text(&answer.stderr));
    certificate(&folder, "8");
    let stranger = folder.join("cert.pem");
    let refused = run_check(&server, &["--ca", folder.join("key.pem").to_str().unwrap()]);
    assert!(text(&refused.stderr).contains("contains no certificate"), "{refused:?}");
    wait_until("the other certificate", || serial(&server.address) == "serial=08");
    let refused = run_check(&server, &["--ca", trusted.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(text(&refused.stderr).contains("--ca FILE"), "{refused:?}");
    let answer = run_check(&server, &["--ca", stranger.to_str().unwrap()]);
    assert!(text(&answer.stdout).contains(r#""remaining":3"#), "{answer:?}");
}

#[test]
fn nobody_is_sent_away_in_clear() {
    let limits = "connections_max = 2\nconnections_per_address = 1\n";
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}{limits}"));
    certificate(&folder, "7");
    let server = TestServer::from_file(&file);
    // A connection of the live feed is never idle, so it is not closed for a new connection.
    let mut listener = Command::new("curl")
        .args(["-sSN", "--max-time", "30", "--cacert", "cert.pem"])
        .arg(format!("https://{}/v1/events", server.address))
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(listener.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), ": listening");
    assert_eq!(server.connect().read_to_end(), "");
    listener.kill().unwrap();
    listener.wait().unwrap();
    let url = format!("https://{}/metrics", server.address);
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
        ("tls_cert = 'empty.pem'\ntls_key = 'key.pem'", "contains no certificate"),
        ("tls_cert = 'torn.pem'\ntls_key = 'key.pem'", "it is not valid PEM"),
        ("tls_cert = 'cert.pem'\ntls_key = 'cert.pem'", "BEGIN PRIVATE KEY"),
        ("tls_cert = 'cert.pem'\ntls_key = 'other.pem'", "cannot be used with tls_cert"),
        ("tls_cert = 7\ntls_key = 'key.pem'", "tls_cert"),
    ] {
        let file = folder.join("catalog.toml");
        fs::write(&file, format!("{POLICY}[server]\n{settings}\n")).unwrap();
        let output =
            binary().args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file).output();
        let output = output.unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{settings}: {stderr}");
        assert!(stderr.contains(wanted), "{settings}: {stderr}");
    }
}

#[test]
fn keys_in_clear_are_warned_about_where_others_can_reach() {
    let key = keygen(&["--role", "check"]);
    let catalog = format!("{POLICY}{}", key.table);
    let stderr_of = |server: TestServer| {
        server.signal("TERM");
        server.wait_for_exit().1
    };
    let clear = stderr_of(TestServer::listening_on("0.0.0.0:0", &catalog));
    assert!(
        clear.contains("WARN") && clear.contains("sent to this address unencrypted"),
        "{clear}"
    );
    let local = stderr_of(TestServer::with_catalog(&catalog));
    assert!(!local.contains("WARN"), "{local}");
    let (folder, file) = folder_with(&format!("{catalog}{TLS}"));
    certificate(&folder, "7");
    let secure = stderr_of(TestServer::from_file_on("0.0.0.0:0", &file));
    assert!(!secure.contains("WARN"), "{secure}");
}

#[tokio::test]
async fn the_librarys_client_trusts_the_file_that_it_is_given_and_no_other() {
    let (folder, file) = folder_with(&format!("{POLICY}{TLS}"));
    certificate(&folder, "7");
    let server = TestServer::from_file(&file);
    let port = server.address.rsplit(':').next().unwrap();
    let check = catraca::Check::new("login", [("user", "ana")]);
    let builder = || {
        let builder = catraca::Client::builder(&format!("https://localhost:{port}"));
        builder.deadline(Duration::from_secs(20))
    };
    let client = builder().ca_file(folder.join("cert.pem")).build().unwrap();
    assert!(client.check(&check).await.unwrap().allowed);
    assert!(client.check(&check).await.unwrap().allowed);
    let elsewhere = folder.join("other");
    fs::create_dir_all(&elsewhere).unwrap();
    certificate(&elsewhere, "8");
    let other = builder().ca_file(elsewhere.join("cert.pem")).build().unwrap();
    let untrusted = other.check(&check).await;
    let is_unreachable = matches!(untrusted, Err(catraca::ClientError::Unreachable { .. }));
    assert!(is_unreachable, "{untrusted:?}");
    let plain = catraca::Client::builder(&format!("http://localhost:{port}")).build().unwrap();
    assert!(plain.check(&check).await.is_err());
}
