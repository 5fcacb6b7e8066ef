//! What is refused at a start, by name and without a password, and left as it is.

use std::sync::Arc;

use catraca::records::{AuditNote, BlockQuery, OpenError, Options, Record, RecordKind, Records};

use crate::helpers::{Folder, at, excess, write};
use crate::server::PASSWORD;

fn refused(url: &str) -> OpenError {
    Records::open(url, Options::default()).expect_err("must not open")
}

fn over_tcp(folder: &Folder, user: &str, password: &str, database: &str) -> String {
    format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", folder.server.port)
}

#[test]
fn a_password_opens_over_tcp_and_is_never_shown() {
    let folder = Folder::new();
    let records =
        Records::open(&over_tcp(&folder, "catraca", PASSWORD, &folder.name), Options::default());
    write(&records.unwrap(), vec![excess("login", "198.51.100.7", at(0), at(60))]);
    let wrong = [
        (over_tcp(&folder, "catraca", "s3cret", &folder.name), "password authentication failed"),
        (over_tcp(&folder, "catraca", PASSWORD, "nowhere"), "does not exist"),
        (format!("postgres://ana:s3cret@127.0.0.1:1/{}", folder.name), "refused"),
        (format!("postgres://ana:s3cret@no-such-host.invalid/{}", folder.name), "out of reach"),
    ];
    for (url, why) in wrong {
        let said = refused(&url).to_string();
        assert!(said.contains(why) && said.contains("postgres://"), "{said}");
        assert!(!said.contains("s3cret") && !said.contains(PASSWORD), "{said}");
    }
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let folder = Folder::new();
    folder.open().close();
    folder.rows("INSERT INTO catraca.migrations (version) VALUES (99)");
    let error = refused(&folder.url());
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains(&folder.name), "{error}");
}

#[test]
fn the_schema_of_another_program_is_left_alone() {
    let folder = Folder::new();
    folder.rows("CREATE SCHEMA catraca");
    folder.rows("CREATE TABLE catraca.theirs (x int)");
    let error = refused(&folder.url());
    assert!(matches!(error, OpenError::Taken { .. }), "{error}");
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'catraca'";
    assert_eq!(folder.rows(tables), [["theirs"]]);
}

/// An administrator may make the schema, and let the program have nothing else.
#[test]
fn an_empty_schema_is_enough() {
    let folder = Folder::new();
    folder.rows("CREATE SCHEMA catraca");
    folder.open().close();
    let again = folder.open();
    assert!(again.verify().unwrap().is_empty());
}

///
#[test]
fn nobody_escapes_the_records_by_a_name() {
    let folder = Folder::new();
    let records = Arc::new(folder.open());
    for name in ["a\0b", "it's", "x'); DROP TABLE catraca.blocks; --", "\u{1f}", "日本"] {
        write(&records, vec![excess("login", name, at(0), at(60))]);
    }
    assert_eq!(records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len(), 5);
    let noted = AuditNote { act: "note".to_owned(), target: "\0".to_owned() };
    write(&records, vec![Record::operator(at(0), "ana", None, RecordKind::Note(noted))]);
    assert_eq!(records.health().rejected, 0);
}
