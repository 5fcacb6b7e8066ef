//! The store over TLS: the store contract, and servers whose certificate is not trusted.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::Arc;

use catraca::postgres::PostgresStore;
use catraca_testkit::certificates;

use super::contract::assert_contract;
use super::helpers::{Database, long_deadline, runtime};
use catraca_testkit::postgres::{PASSWORD, PostgresServer};

/// A server with TLS and a certificate for `localhost`; `None` without openssl.
fn encrypted() -> Option<Database> {
    let server = PostgresServer::start();
    let place = server.directory.clone();
    let data = server.data();
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
    let port = database.server.port;
    let name = &database.name;
    let place = database.server.directory.display().to_string();
    let at = |host: &str, query: &str| {
        format!("postgres://catraca:{PASSWORD}@{host}:{port}/{name}?connect_timeout=3&{query}")
    };
    let trusted = at("localhost", &format!("sslmode=verify-full&sslrootcert={place}/ca.pem"));
    assert_contract(&database, &trusted, long_deadline());
    let runtime = runtime();
    let store = runtime.block_on(PostgresStore::open(&trusted, long_deadline())).unwrap();
    let ciphers = "SELECT DISTINCT coalesce(version, 'clear') FROM pg_stat_ssl
                   JOIN pg_stat_activity USING (pid) WHERE application_name = 'catraca'";
    assert_eq!(database.server.psql(name, ciphers), [["TLSv1.3"]]);
    drop(store);
    for (host, query) in [
        ("localhost", "sslmode=verify-full".to_owned()),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={place}/ca.pem")),
    ] {
        let opened = runtime.block_on(PostgresStore::open(&at(host, &query), long_deadline()));
        let said = opened.expect_err(&query).to_string();
        assert!(said.contains("certificate") || said.contains("sslrootcert"), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
}
