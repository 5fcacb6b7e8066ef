//! Databases that cannot be opened: the errors name them without the password, and they stay
//! unchanged.

use std::sync::Arc;

use catraca::records::{AuditNote, BlockQuery, OpenError, Options, Record, RecordKind, Records};

use super::helpers::{TestDatabase, at, excess_block, write};
use catraca_testkit::postgres::PASSWORD;

fn open_error(url: &str) -> OpenError {
    Records::open(url, Options::default()).expect_err("must not open")
}

fn over_tcp(database: &TestDatabase, user: &str, password: &str, name: &str) -> String {
    format!("postgres://{user}:{password}@127.0.0.1:{}/{name}", database.server.port)
}

#[test]
fn a_password_opens_over_tcp_and_is_never_shown() {
    let database = TestDatabase::new();
    let records = Records::open(
        &over_tcp(&database, "catraca", PASSWORD, &database.name),
        Options::default(),
    );
    write(&records.unwrap(), vec![excess_block("login", "198.51.100.7", at(0), at(60))]);
    let wrong = [
        (
            over_tcp(&database, "catraca", "s3cret", &database.name),
            "password authentication failed",
        ),
        (over_tcp(&database, "catraca", PASSWORD, "nowhere"), "does not exist"),
        (format!("postgres://ana:s3cret@127.0.0.1:1/{}", database.name), "refused"),
        (format!("postgres://ana:s3cret@no-such-host.invalid/{}", database.name), "out of reach"),
    ];
    for (url, why) in wrong {
        let error = open_error(&url).to_string();
        assert!(error.contains(why) && error.contains("postgres://"), "{error}");
        assert!(!error.contains("s3cret") && !error.contains(PASSWORD), "{error}");
    }
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let database = TestDatabase::new();
    database.open().close();
    database.rows("INSERT INTO catraca.migrations (version) VALUES (99)");
    let error = open_error(&database.url());
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains(&database.name), "{error}");
}

#[test]
fn the_schema_of_another_program_is_left_alone() {
    let database = TestDatabase::new();
    database.rows("CREATE SCHEMA catraca");
    database.rows("CREATE TABLE catraca.theirs (x int)");
    let error = open_error(&database.url());
    assert!(matches!(error, OpenError::Taken { .. }), "{error}");
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'catraca'";
    assert_eq!(database.rows(tables), [["theirs"]]);
}

/// An administrator may create the schema, and grant the program nothing else.
#[test]
fn an_empty_schema_is_enough() {
    let database = TestDatabase::new();
    database.rows("CREATE SCHEMA catraca");
    database.open().close();
    let again = database.open();
    assert!(again.verify().unwrap().is_empty());
}

///
#[test]
fn nobody_escapes_the_records_by_a_name() {
    let database = TestDatabase::new();
    let records = Arc::new(database.open());
    for name in ["a\0b", "it's", "x'); DROP TABLE catraca.blocks; --", "\u{1f}", "日本"] {
        write(&records, vec![excess_block("login", name, at(0), at(60))]);
    }
    assert_eq!(records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len(), 5);
    let note = AuditNote { act: "note".to_owned(), target: "\0".to_owned() };
    write(&records, vec![Record::operator(at(0), "ana", None, RecordKind::Note(note))]);
    assert_eq!(records.health().rejected, 0);
}
