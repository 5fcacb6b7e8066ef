//! A real PgBouncer that hands the connection to somebody else after every transaction.
//!
//! The program is `CATRACA_PGBOUNCER`, else `pgbouncer` on the path or where Debian has it. Must
//! not touch any other pooler.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::contract::judge;
use crate::helpers::{Database, patient};
use crate::locks::{Asked, tell, wakes};
use crate::server::other_user;

const NAMED: &str = "CATRACA_PGBOUNCER";

struct Bouncer {
    child: Child,
    port: u16,
}

impl Bouncer {
    /// Two connections to the server, for however many there are to the pooler.
    fn start(program: PathBuf, database: &Database) -> Self {
        let server = &database.server;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = &server.directory;
        // Others may have a pooler for the same server.
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
        let mut said = String::new();
        while !said.contains("process up") {
            let line = log.next().unwrap_or_else(|| panic!("pgbouncer did not start: {said}"));
            said.push_str(&line.unwrap());
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
    if let Some(named) = std::env::var_os(NAMED) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    places.map(|place| place.join("pgbouncer")).find(|file| file.is_file())
}

#[test]
fn the_store_keeps_the_contract_behind_a_pooler() {
    let Some(program) = program() else {
        println!("skipped: no pgbouncer found and {NAMED} is not set");
        return;
    };
    let database = Database::new();
    let bouncer = Bouncer::start(program, &database);
    let url = format!("postgres://catraca@127.0.0.1:{}/{}", bouncer.port, database.name);
    judge(&database, &url, patient());
}

#[test]
fn locks_do_behind_a_pooler_and_whoever_waits_is_told_to_look() {
    let Some(program) = program() else {
        println!("skipped: no pgbouncer found and {NAMED} is not set");
        return;
    };
    let database = Database::new();
    let bouncer = Bouncer::start(program, &database);
    let url = format!("postgres://catraca@127.0.0.1:{}/{}", bouncer.port, database.name);
    let asked = Asked::of(&url);
    tell(&asked, 3);
    wakes(&asked, false);
}
