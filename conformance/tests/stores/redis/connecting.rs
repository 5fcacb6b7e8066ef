//! Connecting: URLs, passwords and TLS, and servers that are refused at start.

use catraca::redis::RedisOptions;
use catraca_testkit::certificates;
use catraca_testkit::redis::{RedisCluster, RedisSentinels, RedisServer};

use super::helpers::{LONG_DEADLINE, connect, connect_with, passes};

const SECRET: &str = "s3cr3t-w0rd";

fn refused(url: &str) -> String {
    let error = connect_with(url, RedisOptions::default()).expect_err("it is refused");
    let error = format!("{error} {error:?}");
    assert!(!error.contains(SECRET), "a password is shown: {error}");
    error
}

#[test]
fn a_server_that_may_evict_blocks_is_refused_by_name_with_the_command_that_helps() {
    for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
        let settings = ["--maxmemory", "100mb", "--maxmemory-policy", policy];
        let Some(server) = RedisServer::start_with(&settings) else { return };
        let error = refused(&server.url());
        assert!(error.contains(policy), "{error}");
        assert!(error.contains("CONFIG SET maxmemory-policy noeviction"), "{error}");
        server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        assert!(passes(&connect(&server.url()), 1).unwrap());
    }
}

#[test]
fn users_passwords_and_databases_are_taken_from_the_url_and_never_shown() {
    let Some(server) = RedisServer::start_with(&["--requirepass", SECRET]) else { return };
    let port = server.port();
    assert!(refused(&server.url()).contains("NOAUTH"));
    assert!(refused(&format!("redis://:{SECRET}x@127.0.0.1:{port}")).contains("WRONGPASS"));
    assert!(refused(&format!("redis://who:{SECRET}@127.0.0.1:{port}")).contains("WRONGPASS"));
    let store = connect(&format!("redis://default:{SECRET}@127.0.0.1:{port}/3"));
    assert!(passes(&store, 1).unwrap());
    assert_eq!(store.store().redacted_url(), format!("redis://127.0.0.1:{port}/3"));
    assert!(!format!("{store:?}").contains(SECRET));
    let socket = server.socket();
    let store = connect(&format!("unix://{}?db=3&pass={SECRET}", socket.display()));
    let used = catraca::store::Store::apply(
        &store,
        &super::helpers::check(1, 1_000),
        catraca::store::When::Store,
    );
    let catraca_core::batch::Reply::Check(reply) = used.unwrap() else { panic!("not a check") };
    assert_eq!(reply.rows[0].free, 998, "both ways lead to the same database");
}

#[test]
fn nobody_there_and_a_replica_are_said_to_be_so() {
    let Some(mut server) = RedisServer::start() else { return };
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert!(refused(&server.url()).contains("is a replica"));
    server.kill();
    let error = refused(&server.url());
    assert!(error.contains(&format!("127.0.0.1:{}", server.port())), "{error}");
    assert!(error.contains("cannot be reached"), "{error}");
    server.restart();
}

/// R7. Each error names the URL without its password, what the server is, and what to write.
#[test]
fn a_url_that_does_not_fit_its_server_is_refused_with_the_one_that_does() {
    let Some(group) = RedisSentinels::start() else { return };
    let Some(cluster) = RedisCluster::start() else { return };
    let plain = group.servers[0].port();
    let sentinel = group.sentinels[0].port();
    let member = cluster.servers[0].port();
    for (url, words) in [
        (format!("redis+cluster://127.0.0.1:{plain}"), "no server of a cluster"),
        (format!("redis+cluster://127.0.0.1:{sentinel}"), "may be a Sentinel"),
        (format!("redis://127.0.0.1:{member}/0"), "write redis+cluster://"),
        (format!("redis://127.0.0.1:{sentinel}/0"), "write redis+sentinel://"),
        (format!("redis+sentinel://127.0.0.1:{plain}/main?db=0"), "not a Sentinel"),
        (format!("redis+sentinel://127.0.0.1:{sentinel}/main?db=0"), "it watches catraca"),
    ] {
        let error = refused(&url);
        println!("{error}");
        assert!(error.contains(&format!("{url} cannot be used")), "{error}");
        assert!(error.contains(words), "{url}: {error}");
    }
    let secret = format!("redis+cluster://:{SECRET}@127.0.0.1:{}", group.servers[0].port());
    assert!(refused(&secret).contains("redis+cluster://127.0.0.1"));
}

#[test]
fn an_encrypted_connection_needs_a_certificate_that_is_trusted() {
    let directory = std::env::temp_dir().join(format!("catraca-tls-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    if !certificates::make(&directory) {
        println!("skipped: no openssl");
        return;
    }
    let file = |name: &str| directory.join(name).display().to_string();
    let cert = file("server.pem");
    let key = file("server.key");
    let ca = file("ca.pem");
    let tls = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let port = free_port().to_string();
    let more = ["--tls-port", &port, "--tls-auth-clients", "no"];
    let settings: Vec<&str> = tls.into_iter().chain(more).collect();
    let Some(_server) = RedisServer::start_with(&settings) else { return };
    let url = format!("rediss://localhost:{port}");
    let trusted = RedisOptions {
        deadline: LONG_DEADLINE,
        ca_file: Some(directory.join("ca.pem")),
        ..RedisOptions::default()
    };
    let store = connect_with(&url, trusted.clone()).unwrap_or_else(|error| panic!("{error}"));
    assert!(passes(&store, 1).unwrap());
    let error = refused(&url);
    assert!(error.contains("certificate") || error.contains("UnknownIssuer"), "{error}");
    let wrong = RedisOptions { ca_file: Some(directory.join("server.key")), ..trusted.clone() };
    let error = connect_with(&url, wrong).unwrap_err().to_string();
    assert!(error.contains("server.key") && error.contains("PEM"), "{error}");
    let gone = RedisOptions { ca_file: Some(directory.join("no.pem")), ..trusted };
    assert!(connect_with(&url, gone).unwrap_err().to_string().contains("no.pem"));
    std::fs::remove_dir_all(&directory).unwrap();
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
    listener.local_addr().expect("it is bound").port()
}
