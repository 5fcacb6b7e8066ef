//! Opening a store: errors name their remedy and never show a password.

use catraca::postgres::{PostgresError, PostgresStore};

use super::helpers::{Database, long_deadline, runtime};
use super::locks::{LockClient, compare_traces};
use catraca_testkit::postgres::PASSWORD;

fn refused(url: &str) -> PostgresError {
    runtime().block_on(PostgresStore::open(url, long_deadline())).expect_err(url)
}

#[test]
fn what_cannot_be_opened_is_told_without_the_password() {
    let database = Database::new();
    let port = database.server.port;
    let name = &database.name;
    let at = |user: &str, password: &str| {
        format!("postgres://{user}:{password}@127.0.0.1:{port}/{name}")
    };
    let wrong = [
        (at("catraca", "not-the-pass"), "check the user and the password"),
        ("postgres://catraca:not-the-pass@127.0.0.1:1/x".to_owned(), "out of reach"),
        ("postgres://catraca:not-the-pass@/x".to_owned(), "names no host"),
        ("postgres://catraca:not-the-pass@127.0.0.1:1".to_owned(), "names no database"),
    ];
    for (url, why) in wrong {
        let said = refused(&url).to_string();
        assert!(said.contains(why), "{said}");
        assert!(!said.contains("not-the-pass"), "{said}");
    }
    let store = runtime().block_on(PostgresStore::open(&at("catraca", PASSWORD), long_deadline()));
    let store = store.unwrap();
    assert!(!format!("{store:?} {}", store.redacted_url()).contains(PASSWORD));
}

#[test]
fn a_schema_of_a_later_program_or_of_another_one_is_left_alone() {
    let [later, other] = [Database::new(), Database::new()];
    drop(runtime().block_on(later.open(long_deadline())));
    drop(runtime().block_on(later.open(long_deadline())));
    later.query("INSERT INTO catraca_store.migrations (version) VALUES (99)");
    let said = refused(&later.url());
    assert!(matches!(said, PostgresError::Newer { found: 99, .. }), "{said}");
    other.query("CREATE SCHEMA catraca_store; CREATE TABLE catraca_store.theirs (id int)");
    let said = refused(&other.url());
    assert!(matches!(said, PostgresError::Taken { .. }), "{said}");
}

/// Once the schema exists, a role that may use but not create it is enough.
#[test]
fn a_role_that_may_not_make_the_schema_is_told_how() {
    let database = Database::new();
    let name = &database.name;
    database.query(&format!("CREATE ROLE clerk_{name} LOGIN"));
    let url = database.url().replace("catraca@", &format!("clerk_{name}@"));
    let said = refused(&url);
    assert!(matches!(said, PostgresError::Forbidden { .. }), "{said}");
    assert!(said.to_string().contains("GRANT CREATE"), "{said}");
    drop(runtime().block_on(database.open(long_deadline())));
    database.query(&format!(
        "GRANT USAGE ON SCHEMA catraca_store TO clerk_{name};
         GRANT SELECT ON catraca_store.migrations TO clerk_{name};
         GRANT SELECT, UPDATE ON catraca_store.state TO clerk_{name};
         GRANT SELECT, INSERT, UPDATE, DELETE ON catraca_store.cells, catraca_store.leases,
             catraca_store.lock_rooms, catraca_store.lock_names, catraca_store.slots,
             catraca_store.lock_versions, catraca_store.lock_counts, catraca_store.nodes,
             catraca_store.notices TO clerk_{name}"
    ));
    let runtime = runtime();
    let store = runtime.block_on(PostgresStore::open(&url, long_deadline())).unwrap();
    let batch = super::helpers::gate([super::helpers::row(1, super::helpers::bucket(5))]);
    assert!(runtime.block_on(super::helpers::check(&store, &batch)).unwrap().passed);
    compare_traces(&LockClient::of(&url), 1);
}

/// The first migration, which never changes, creates the schema of the first version.
#[test]
fn a_store_of_the_first_schema_is_brought_up_to_date_and_keeps_its_cells() {
    const FIRST: &str = include_str!("../../../../crates/catraca/src/postgres/schema/0001.sql");
    let database = Database::new();
    let runtime = runtime();
    database.query(&format!(
        "CREATE SCHEMA catraca_store; {FIRST};
         INSERT INTO catraca_store.migrations (version) VALUES (1)"
    ));
    let batch = super::helpers::gate([super::helpers::row(1, super::helpers::bucket(1))]);
    let passes = || {
        let store = runtime.block_on(database.open(long_deadline()));
        runtime.block_on(super::helpers::check(&store, &batch)).unwrap().passed
    };
    assert!(passes());
    // Back to the first version of the schema, with a cell.
    database.query(
        "DROP TABLE catraca_store.slots, catraca_store.lock_names, catraca_store.leases,
             catraca_store.lock_rooms, catraca_store.lock_versions, catraca_store.lock_counts;
         DROP FUNCTION catraca_store.lock_room, catraca_store.lock_count, catraca_store.timeline;
         DROP TABLE catraca_store.nodes, catraca_store.notices;
         DROP FUNCTION catraca_store.exchange, catraca_store.trim_notices;
         ALTER TABLE catraca_store.state DROP COLUMN notices;
         DELETE FROM catraca_store.migrations WHERE version >= 2",
    );
    assert!(!passes(), "the cell is still there");
    compare_traces(&LockClient::of(&database.url()), 1);
    assert_eq!(database.query("SELECT max(version) FROM catraca_store.migrations"), "3");
}

#[test]
fn nodes_that_start_together_make_one_schema() {
    let database = Database::new();
    let runtime = runtime();
    let open = |_| {
        let url = database.url();
        async move { PostgresStore::open(&url, long_deadline()).await.map(drop) }
    };
    let opened = runtime.block_on(super::helpers::all((0..8).map(open)));
    assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    assert_eq!(database.query("SELECT count(*) FROM catraca_store.migrations"), "3");
}
