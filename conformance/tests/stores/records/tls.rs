//! TLS connections to a real server with certificates that the test makes: trusted and refused
//! certificates, and the errors.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use catraca::records::{Options, Records};

use super::helpers::{TestDatabase, at, excess_block, write};
use catraca_testkit::postgres::{PASSWORD, PostgresServer};

fn openssl(dir: &Path, args: &[&str]) {
    let output = Command::new("openssl").args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/// Makes a certificate authority with this name; returns the path of its certificate.
fn authority(dir: &Path, name: &str) -> PathBuf {
    let key = format!("{name}.key");
    let cert = format!("{name}.pem");
    let subject = format!("/CN={name}");
    let mut args = vec!["req", "-x509", "-days", "2", "-subj", &subject, "-keyout", &key];
    args.extend(["-out", &cert, "-addext", "keyUsage=critical,keyCertSign"]);
    args.extend(KEY);
    openssl(dir, &args);
    dir.join(cert)
}

/// A server with a TLS certificate for `localhost` only, and the certificate of its authority.
fn tls_database() -> (TestDatabase, PathBuf) {
    let server = PostgresServer::start();
    let dir = server.directory.clone();
    let data = server.data();
    let signer = authority(&dir, "signer");
    let mut request = vec!["req", "-subj", "/CN=localhost", "-keyout", "server.key"];
    request.extend(["-out", "server.csr", "-addext", "subjectAltName=DNS:localhost"]);
    request.extend(KEY);
    openssl(&dir, &request);
    let mut sign = vec!["x509", "-req", "-in", "server.csr", "-CA", "signer.pem", "-days", "2"];
    sign.extend(["-CAkey", "signer.key", "-copy_extensions", "copy", "-out", "server.crt"]);
    openssl(&dir, &sign);
    let owner = fs::metadata(&data).unwrap();
    for name in ["server.key", "server.crt"] {
        let file = data.join(name);
        fs::copy(dir.join(name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    server.psql("postgres", "ALTER SYSTEM SET ssl = on");
    server.stop("INT");
    server.run();
    (TestDatabase::on(Arc::new(server)), signer)
}

fn url(database: &TestDatabase, host: &str, query: &str) -> String {
    let port = database.server.port;
    let name = &database.name;
    format!("postgres://catraca:{PASSWORD}@{host}:{port}/{name}?connect_timeout=3{query}")
}

fn trusting(mode: &str, file: &Path) -> String {
    format!("&sslmode={mode}&sslrootcert={}", file.display())
}

fn open_url(url: &str) -> Result<Records, String> {
    let opened = Records::open(url, Options::default()).map_err(|error| error.to_string());
    let error = opened.as_ref().err().cloned().unwrap_or_default();
    assert!(!error.contains(PASSWORD), "{error}");
    opened
}

/// The TLS version of each of the records' connections, or `clear`.
fn ciphers(database: &TestDatabase) -> Vec<String> {
    let sql = "SELECT coalesce(version, 'clear') FROM pg_stat_ssl \
               JOIN pg_stat_activity USING (pid) WHERE application_name = 'catraca'";
    database.rows(sql).concat()
}

/// Waits until the server has ended the sessions of closed records: it notices the end of a
/// connection a moment later, and would list it among those of the next records.
fn wait_until_disconnected(database: &TestDatabase) {
    for _ in 0..500 {
        if ciphers(database).is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("connections are still open: {:?}", ciphers(database));
}

#[test]
fn the_modes_of_libpq_encrypt_and_ask_as_much_as_they_promise() {
    let (database, signer) = tls_database();
    let cases = [
        ("localhost", trusting("verify-full", &signer), "TLSv1.3"),
        ("127.0.0.1", trusting("verify-ca", &signer), "TLSv1.3"),
        ("127.0.0.1", trusting("require", &signer), "TLSv1.3"),
        ("127.0.0.1", "&sslmode=require".to_owned(), "TLSv1.3"),
        ("127.0.0.1", "&sslmode=prefer".to_owned(), "TLSv1.3"),
        ("127.0.0.1", String::new(), "TLSv1.3"),
        ("127.0.0.1", "&sslmode=disable".to_owned(), "clear"),
    ];
    for (number, (host, query, wanted)) in cases.into_iter().enumerate() {
        let records = open_url(&url(&database, host, &query)).unwrap();
        let address = format!("198.51.100.{number}");
        write(&records, vec![excess_block("login", &address, at(0), at(60))]);
        assert_eq!(ciphers(&database), [wanted, wanted], "{host} {query}");
        assert_eq!(records.close(), 0);
        wait_until_disconnected(&database);
    }
    assert_eq!(database.rows("SELECT count(*) FROM catraca.blocks"), [["7"]]);
}

#[test]
fn a_server_that_nobody_vouches_for_is_refused_by_name() {
    let (database, signer) = tls_database();
    let dir = database.server.directory.clone();
    let stranger = authority(&dir, "stranger");
    let empty = dir.join("empty.pem");
    fs::write(&empty, "").unwrap();
    let pipe = dir.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let missing = dir.join("gone.pem");
    let named = format!("sslrootcert={}", stranger.display());
    for (host, query, wanted) in [
        ("localhost", trusting("verify-full", &stranger), named.as_str()),
        ("127.0.0.1", trusting("verify-ca", &stranger), named.as_str()),
        ("127.0.0.1", trusting("require", &stranger), "UnknownIssuer"),
        ("localhost", "&sslmode=verify-full".to_owned(), "sslrootcert=system"),
        ("127.0.0.1", trusting("verify-full", &signer), "use the host name of the certificate"),
        ("localhost", trusting("verify-full", &empty), "no `BEGIN CERTIFICATE`"),
        ("localhost", trusting("verify-full", &pipe), "not a regular file"),
        ("localhost", trusting("verify-full", &missing), "cannot be read"),
        ("localhost", trusting("prefer", &signer), "does not check certificates"),
        ("localhost", "&sslmode=maybe".to_owned(), "sslmode is one of disable, prefer"),
    ] {
        let error = open_url(&url(&database, host, &query)).map(drop).unwrap_err();
        assert!(error.contains(wanted), "{host} {query}: {error}");
    }
    assert_eq!(
        database.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'catraca'"),
        [["0"]]
    );
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required_and_taken_where_it_is_not() {
    let database = TestDatabase::new();
    let error = open_url(&url(&database, "127.0.0.1", "&sslmode=require")).map(drop).unwrap_err();
    assert!(error.contains("the server speaks no TLS, and sslmode=require asks for it"), "{error}");
    for query in ["&sslmode=prefer", ""] {
        assert_eq!(open_url(&url(&database, "127.0.0.1", query)).unwrap().close(), 0);
    }
}
