//! A private PgBouncer in transaction mode: each transaction may use another connection.
//!
//! The program is `CATRACA_PGBOUNCER`, else `pgbouncer` on the path or in `/usr/sbin`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::{PostgresServer, kill, other_user, run_as_other_user};

const PROGRAM_VARIABLE: &str = "CATRACA_PGBOUNCER";

/// A pooler that is killed on drop.
pub struct PgBouncer {
    child: Child,
    file: PathBuf,
    connections: usize,
    /// Its port on loopback.
    pub port: u16,
}

impl PgBouncer {
    /// Starts a pooler with this many connections to each database of a server; `None`, with a line
    /// on standard output, if the program is not installed.
    ///
    /// # Panics
    ///
    /// If the program exists but does not start.
    pub fn start(server: &PostgresServer, connections: usize) -> Option<Self> {
        let Some(program) = program() else {
            println!("skipped: no pgbouncer found and {PROGRAM_VARIABLE} is not set");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // Tests that share the server have poolers of their own.
        let file = server.directory.join(format!("pgbouncer-{port}.ini"));
        write_settings(&file, port, connections, server);
        let mut command = run_as_other_user(&program);
        let mut child = command.arg(&file).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = String::new();
        while !lines.contains("process up") {
            let line = log.next().unwrap_or_else(|| panic!("pgbouncer did not start: {lines}"));
            lines.push_str(&line.unwrap());
        }
        std::thread::spawn(move || log.for_each(drop));
        Some(Self { child, file, connections, port })
    }

    /// The URL of a database of the server.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://catraca@127.0.0.1:{}/{database}", self.port)
    }

    /// Sends new connections to another server, as an operator does after a failover.
    pub fn point_to(&self, server: &PostgresServer) {
        write_settings(&self.file, self.port, self.connections, server);
        kill("HUP", &self.child.id().to_string());
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn write_settings(file: &Path, port: u16, connections: usize, server: &PostgresServer) {
    let users = file.with_extension("txt");
    fs::write(&users, "\"catraca\" \"\"\n").unwrap();
    let socket = server.directory.display();
    let to = server.port;
    let settings = format!(
        "[databases]\n* = host={socket} port={to}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = trust\nauth_file = {}\npool_mode = transaction\n\
         default_pool_size = {connections}\nserver_login_retry = 0.2\nmax_client_conn = 200\n",
        users.display()
    );
    fs::write(file, settings).unwrap();
    if let Some(user) = other_user() {
        [&users, file].iter().for_each(|file| chown(file, Some(user), None).unwrap());
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
