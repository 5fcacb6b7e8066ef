//! The store over TLS: the same contract, and nobody who is not vouched for.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::Arc;

use catraca::postgres::PostgresStore;
use catraca_testkit::certificates;

use crate::contract::judge;
use crate::helpers::{Database, patient, runtime};
use crate::server::{PASSWORD, Server};

/// A server that speaks TLS with a certificate for `localhost`; none without openssl.
fn encrypted() -> Option<Database> {
    let server = Server::start();
    let (place, data) = (server.directory.clone(), server.data());
    if !certificates::make(&place) {
        println!("skipped: no openssl");
        return None;
    }
    let owner = fs::metadata(&data).unwrap();
    for (from, to) in [("server.key", "server.key"), ("server.pem", "server.crt")] {
        let file = data.join(to);
        fs::copy(place.join(from), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    server.psql("postgres", "ALTER SYSTEM SET ssl = on");
    server.stop("INT");
    server.run();
    Some(Database::on(Arc::new(server)))
}

#[test]
fn the_store_keeps_the_contract_over_tls_and_refuses_who_is_not_vouched_for() {
    let Some(database) = encrypted() else { return };
    let (port, name, place) =
        (database.server.port, &database.name, database.server.directory.display().to_string());
    let at = |host: &str, query: &str| {
        format!("postgres://catraca:{PASSWORD}@{host}:{port}/{name}?connect_timeout=3&{query}")
    };
    let trusted = at("localhost", &format!("sslmode=verify-full&sslrootcert={place}/ca.pem"));
    judge(&database, &trusted, patient());
    let runtime = runtime();
    let store = runtime.block_on(PostgresStore::open(&trusted, patient())).unwrap();
    let ciphers = "SELECT DISTINCT coalesce(version, 'clear') FROM pg_stat_ssl
                   JOIN pg_stat_activity USING (pid) WHERE application_name = 'catraca'";
    assert_eq!(database.server.psql(name, ciphers), [["TLSv1.3"]]);
    drop(store);
    for (host, query) in [
        ("localhost", "sslmode=verify-full".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={place}/ca.pem")),
    ] {
        let opened = runtime.block_on(PostgresStore::open(&at(host, &query), patient()));
        let said = opened.expect_err(&query).to_string();
        assert!(said.contains("certificate") || said.contains("sslrootcert"), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
}
