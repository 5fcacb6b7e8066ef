//! Streaming replicas of a private server: base backup, promotion, synchronous commits, and
//! signals to every process of a server.

use std::fs;

use super::{PostgresServer, kill};
use crate::redis::until;

impl PostgresServer {
    /// Starts a streaming replica of this server, which answers queries.
    ///
    /// # Panics
    ///
    /// If there is no base backup, or the replica does not follow.
    pub fn start_replica(&self) -> Self {
        let replica = Self::without_data();
        let port = self.port.to_string();
        let mut backup = replica.program("pg_basebackup");
        backup.args(["-R", "-X", "stream", "--checkpoint=fast", "--no-sync", "-U", "catraca"]);
        backup.args(["-p", &port, "-h"]).arg(&self.directory).arg("-D").arg(replica.data());
        let backup = backup.output().unwrap();
        let stderr = String::from_utf8_lossy(&backup.stderr);
        assert!(backup.status.success(), "pg_basebackup: {stderr}");
        replica.run();
        until("the replica follows", || self.has_replica("streaming", "async"));
        replica
    }

    /// From now on, a commit is answered when a replica has it on disk.
    ///
    /// # Panics
    ///
    /// If no replica becomes synchronous.
    pub fn commit_synchronously(&self) {
        self.psql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.psql("postgres", "SELECT pg_reload_conf()");
        until("the replica is synchronous", || self.has_replica("streaming", "sync"));
    }

    /// Makes a primary of a replica; returns when it accepts writes.
    pub fn promote(&self) {
        assert_eq!(self.psql("postgres", "SELECT pg_promote()"), [["t"]]);
    }

    /// Sends a signal to the server and to each of its processes, such as `STOP` and `CONT`.
    pub fn signal_all(&self, signal: &str) {
        let Some(id) = self.running.lock().unwrap().as_ref().map(|child| child.id().to_string())
        else {
            return;
        };
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        kill(signal, &id);
        for child in children.unwrap_or_default().split_whitespace() {
            // A process of the server may have ended since the list was read.
            let _ = std::process::Command::new("kill").args(["-s", signal, child]).output();
        }
    }

    fn has_replica(&self, state: &str, sync: &str) -> bool {
        let rows = self.psql("postgres", "SELECT state, sync_state FROM pg_stat_replication");
        rows.iter().any(|row| row == &[state, sync])
    }
}
