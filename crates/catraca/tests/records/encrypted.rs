//! Encrypted connections: who is trusted, who is not, and what is said of it, on a real server
//! with certificates that the test makes.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use catraca::records::{Options, Records};

use crate::helpers::{Folder, at, excess, write};
use crate::server::{PASSWORD, Server};

fn openssl(folder: &Path, args: &[&str]) {
    let made = Command::new("openssl").args(args).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

const KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

/// An authority with this name, in a file of this name.
fn authority(folder: &Path, name: &str) -> PathBuf {
    let key = format!("{name}.key");
    let cert = format!("{name}.pem");
    let subject = format!("/CN={name}");
    let mut args = vec!["req", "-x509", "-days", "2", "-subj", &subject, "-keyout", &key];
    args.extend(["-out", &cert, "-addext", "keyUsage=critical,keyCertSign"]);
    args.extend(KEY);
    openssl(folder, &args);
    folder.join(cert)
}

/// A server that speaks TLS with a certificate for `localhost` alone, and who signed it.
fn encrypted() -> (Folder, PathBuf) {
    let server = Server::start();
    let place = server.directory.clone();
    let data = server.data();
    let signer = authority(&place, "signer");
    let mut request = vec!["req", "-subj", "/CN=localhost", "-keyout", "server.key"];
    request.extend(["-out", "server.csr", "-addext", "subjectAltName=DNS:localhost"]);
    request.extend(KEY);
    openssl(&place, &request);
    let mut sign = vec!["x509", "-req", "-in", "server.csr", "-CA", "signer.pem", "-days", "2"];
    sign.extend(["-CAkey", "signer.key", "-copy_extensions", "copy", "-out", "server.crt"]);
    openssl(&place, &sign);
    let owner = fs::metadata(&data).unwrap();
    for name in ["server.key", "server.crt"] {
        let file = data.join(name);
        fs::copy(place.join(name), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    server.psql("postgres", "ALTER SYSTEM SET ssl = on");
    server.stop("INT");
    server.run();
    (Folder::on(Arc::new(server)), signer)
}

fn url(folder: &Folder, host: &str, query: &str) -> String {
    let port = folder.server.port;
    let name = &folder.name;
    format!("postgres://catraca:{PASSWORD}@{host}:{port}/{name}?connect_timeout=3{query}")
}

fn trusting(mode: &str, file: &Path) -> String {
    format!("&sslmode={mode}&sslrootcert={}", file.display())
}

fn opened(url: &str) -> Result<Records, String> {
    let opened = Records::open(url, Options::default()).map_err(|error| error.to_string());
    let said = opened.as_ref().err().cloned().unwrap_or_default();
    assert!(!said.contains(PASSWORD), "{said}");
    opened
}

/// Whether each connection of ours is encrypted.
fn ciphers(folder: &Folder) -> Vec<String> {
    let sql = "SELECT coalesce(version, 'clear') FROM pg_stat_ssl \
               JOIN pg_stat_activity USING (pid) WHERE application_name = 'catraca'";
    folder.rows(sql).concat()
}

#[test]
fn the_modes_of_libpq_encrypt_and_ask_as_much_as_they_promise() {
    let (folder, signer) = encrypted();
    let asked = [
        ("localhost", trusting("verify-full", &signer), "TLSv1.3"),
        ("127.0.0.1", trusting("verify-ca", &signer), "TLSv1.3"),
        ("127.0.0.1", trusting("require", &signer), "TLSv1.3"),
        ("127.0.0.1", "&sslmode=require".to_owned(), "TLSv1.3"),
        ("127.0.0.1", "&sslmode=prefer".to_owned(), "TLSv1.3"),
        ("127.0.0.1", String::new(), "TLSv1.3"),
        ("127.0.0.1", "&sslmode=disable".to_owned(), "clear"),
    ];
    for (place, (host, query, wanted)) in asked.into_iter().enumerate() {
        let records = opened(&url(&folder, host, &query)).unwrap();
        let address = format!("198.51.100.{place}");
        write(&records, vec![excess("login", &address, at(0), at(60))]);
        assert_eq!(ciphers(&folder), [wanted, wanted], "{host} {query}");
        assert_eq!(records.close(), 0);
    }
    assert_eq!(folder.rows("SELECT count(*) FROM catraca.blocks"), [["7"]]);
}

#[test]
fn a_server_that_nobody_vouches_for_is_refused_by_name() {
    let (folder, signer) = encrypted();
    let place = folder.server.directory.clone();
    let stranger = authority(&place, "stranger");
    let empty = place.join("empty.pem");
    fs::write(&empty, "").unwrap();
    let pipe = place.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let gone = place.join("gone.pem");
    let named = format!("sslrootcert={}", stranger.display());
    for (host, query, wanted) in [
        ("localhost", trusting("verify-full", &stranger), named.as_str()),
        ("127.0.0.1", trusting("verify-ca", &stranger), named.as_str()),
        ("127.0.0.1", trusting("require", &stranger), "UnknownIssuer"),
        ("localhost", "&sslmode=verify-full".to_owned(), "sslrootcert=system"),
        ("127.0.0.1", trusting("verify-full", &signer), "use the host name of the certificate"),
        ("localhost", trusting("verify-full", &empty), "no `BEGIN CERTIFICATE`"),
        ("localhost", trusting("verify-full", &pipe), "not a regular file"),
        ("localhost", trusting("verify-full", &gone), "cannot be read"),
        ("localhost", trusting("prefer", &signer), "does not check certificates"),
        ("localhost", "&sslmode=maybe".to_owned(), "sslmode is one of disable, prefer"),
    ] {
        let said = opened(&url(&folder, host, &query)).map(drop).unwrap_err();
        assert!(said.contains(wanted), "{host} {query}: {said}");
    }
    assert_eq!(folder.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'catraca'"), [["0"]]);
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_required_and_taken_where_it_is_not() {
    let folder = Folder::new();
    let said = opened(&url(&folder, "127.0.0.1", "&sslmode=require")).map(drop).unwrap_err();
    assert!(said.contains("the server speaks no TLS, and sslmode=require asks for it"), "{said}");
    for query in ["&sslmode=prefer", ""] {
        assert_eq!(opened(&url(&folder, "127.0.0.1", query)).unwrap().close(), 0);
    }
}
