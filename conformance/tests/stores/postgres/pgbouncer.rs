//! The store behind a real PgBouncer in transaction mode: each transaction may use another
//! connection.
//!
//! The program is `CATRACA_PGBOUNCER`, else `pgbouncer` on the path or in `/usr/sbin`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::contract::assert_contract;
use super::helpers::{Database, long_deadline};
use super::locks::{LockClient, assert_wakes, compare_traces};
use catraca_testkit::postgres::other_user;
use catraca_testkit::redis::until;

const PROGRAM_VARIABLE: &str = "CATRACA_PGBOUNCER";

struct Bouncer {
    child: Child,
    port: u16,
}

impl Bouncer {
    /// Starts a pooler with two connections to the server.
    fn start(program: PathBuf, database: &Database) -> Self {
        let server = &database.server;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = &server.directory;
        // Tests that share the server have poolers of their own.
        let file = folder.join(format!("pgbouncer-{port}.ini"));
        let users = file.with_extension("txt");
        fs::write(&users, "\"catraca\" \"\"\n").unwrap();
        let socket = folder.display();
        let to = server.port;
        let settings = format!(
            "[databases]\n* = host={socket} port={to}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 2\n\
             max_client_conn = 200\n",
            users.display()
        );
        fs::write(&file, settings).unwrap();
        let mut command = match other_user() {
            Some(user) => {
                [&users, &file].iter().for_each(|file| chown(file, Some(user), None).unwrap());
                let mut command = Command::new("setpriv");
                command.args([
                    "--reuid",
                    "postgres",
                    "--regid",
                    "postgres",
                    "--clear-groups",
                    "--",
                ]);
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        let mut child = command.arg(&file).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = String::new();
        while !lines.contains("process up") {
            let line = log.next().unwrap_or_else(|| panic!("pgbouncer did not start: {lines}"));
            lines.push_str(&line.unwrap());
        }
        std::thread::spawn(move || log.for_each(drop));
        Self { child, port }
    }
}

impl Drop for Bouncer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|file| file.is_file())
}

#[test]
fn the_store_keeps_the_contract_behind_a_pooler() {
    let Some(program) = program() else {
        println!("skipped: no pgbouncer found and {PROGRAM_VARIABLE} is not set");
        return;
    };
    let database = Database::new();
    let bouncer = Bouncer::start(program, &database);
    let url = format!("postgres://catraca@127.0.0.1:{}/{}", bouncer.port, database.name);
    assert_contract(&database, &url, long_deadline());
}

#[test]
fn locks_do_behind_a_pooler_and_whoever_waits_is_told_to_look() {
    let Some(program) = program() else {
        println!("skipped: no pgbouncer found and {PROGRAM_VARIABLE} is not set");
        return;
    };
    let database = Database::new();
    let bouncer = Bouncer::start(program, &database);
    let url = format!("postgres://catraca@127.0.0.1:{}/{}", bouncer.port, database.name);
    let client = LockClient::of(&url);
    compare_traces(&client, 3);
    assert_wakes(&client, false);
}

/// Regression: callers that wait for a lock then polled for ever, and nothing said so.
#[test]
fn a_pooler_that_passes_no_notifications_is_reported() {
    let Some(program) = program() else {
        println!("skipped: no pgbouncer found and {PROGRAM_VARIABLE} is not set");
        return;
    };
    let database = Database::new();
    let bouncer = Bouncer::start(program, &database);
    let url = format!("postgres://catraca@127.0.0.1:{}/{}", bouncer.port, database.name);
    let pooled = LockClient::of(&url);
    assert_wakes(&pooled, false);
    until("it is reported", || pooled.background_error().is_some());
    let reported = pooled.background_error().unwrap();
    println!("{reported}");
    assert!(reported.contains("pooler") && reported.contains("wait for a lock"), "{reported}");
    let direct = LockClient::of(&database.url());
    assert_wakes(&direct, true);
    assert_eq!(direct.background_error(), None);
}
