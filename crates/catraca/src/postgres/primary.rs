//! Connects to the primary among the hosts of a URL.
//!
//! After a failover, an old primary may be restarted as it was: then two servers accept writes, and
//! the one with the newer timeline is right. So all hosts are asked at once, the primary with the
//! newest timeline is used, and a timeline that is older than one in use before is refused. The
//! hosts are watched, so that connections to an old primary end when another one takes over. A URL
//! with one host is trusted.

use std::io;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Connection, Error, SimpleQueryMessage, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::database_url::{DatabaseHost, DatabaseUrl};
use super::failure::PostgresFailure;
use super::tls::Tls;

/// How long hosts may answer later than the first primary. A host that hangs costs this much.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the hosts of a URL are asked for their timelines.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// The timeline of a primary in hexadecimal; empty on a standby.
const TIMELINE: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN '' \
                        ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END";

/// The connection that must be polled for its client to work.
pub(super) type DatabaseConnection =
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A connection to a primary.
pub(super) struct PrimaryConnection {
    pub(super) client: Client,
    pub(super) connection: DatabaseConnection,
    /// The timeline of the server; 0 if it is not known.
    pub(super) timeline: u32,
}

/// Connects to the primary; each host may take `connect_timeout`.
pub(super) async fn connect(
    url: &DatabaseUrl,
    connect_timeout: Duration,
) -> Result<PrimaryConnection, PostgresFailure> {
    if let [host] = &*url.hosts {
        let (client, connection) = connect_to(host, &url.tls, connect_timeout).await?;
        return Ok(PrimaryConnection { client, connection, timeline: 0 });
    }
    let mut attempts = JoinSet::new();
    for host in &*url.hosts {
        let host = host.clone();
        let tls = url.tls.clone();
        attempts.spawn(async move {
            let found = find_primary(&host, &tls, connect_timeout).await;
            found.map_err(|failure| (host.name, failure))
        });
    }
    let mut best: Option<PrimaryConnection> = None;
    let mut failures = Vec::new();
    let mut until = Instant::now() + connect_timeout + PATIENCE;
    while let Ok(Some(ended)) = timeout_at(until, attempts.join_next()).await {
        match ended {
            Ok(Ok(found)) => {
                until = until.min(Instant::now() + PATIENCE);
                if best.as_ref().is_none_or(|best| best.timeline < found.timeline) {
                    best = Some(found);
                }
            }
            Ok(Err(failure)) => failures.push(failure),
            Err(error) => failures.push((String::new(), lost_connection(error.to_string()))),
        }
    }
    let best = best.ok_or_else(|| join_failures(failures))?;
    match url.newest_timeline.raise(best.timeline) {
        newest if newest > best.timeline => Err(lost_connection(format!(
            "the only primary has timeline {:X}, and this node has used timeline {newest:X}: it is \
             a former primary; make it a standby of the present one",
            best.timeline
        ))),
        _ => Ok(best),
    }
}

/// Asks a host for its timeline at an interval, until the task is aborted. A standby is asked too,
/// because it may be promoted.
pub(super) async fn watch_host(url: DatabaseUrl, mut host: DatabaseHost, timeout_of: Duration) {
    host.config.target_session_attrs(TargetSessionAttrs::Any);
    loop {
        if let Ok((client, connection)) = connect_to(&host, &url.tls, timeout_of).await {
            let driver = tokio::spawn(connection);
            while let Ok(Ok(answer)) = timeout(timeout_of, client.simple_query(TIMELINE)).await {
                url.newest_timeline.raise(read_timeline(Ok(answer)));
                sleep(WATCH_INTERVAL).await;
            }
            driver.abort();
        }
        sleep(WATCH_INTERVAL).await;
    }
}

async fn connect_to(
    host: &DatabaseHost,
    tls: &Tls,
    connect_timeout: Duration,
) -> Result<(Client, DatabaseConnection), PostgresFailure> {
    match timeout(connect_timeout, host.config.connect(tls.connector.clone())).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err(error)) => match tls.explain(&error) {
            Some(reason) => Err(lost_connection(reason)),
            None => Err(PostgresFailure::of(error)),
        },
        Err(_) => Err(PostgresFailure::TimedOut(connect_timeout)),
    }
}

/// Connects to a host that accepts writes, and reads its timeline.
async fn find_primary(
    host: &DatabaseHost,
    tls: &Tls,
    connect_timeout: Duration,
) -> Result<PrimaryConnection, PostgresFailure> {
    let find = async {
        let (client, mut connection) = connect_to(host, tls, connect_timeout).await?;
        let timeline = tokio::select! {
            answer = client.simple_query(TIMELINE) => read_timeline(answer),
            ended = &mut connection => {
                return Err(ended.map_or_else(PostgresFailure::of, |()| closed_connection()));
            }
        };
        Ok(PrimaryConnection { client, connection, timeline })
    };
    match timeout(connect_timeout, find).await {
        Ok(found) => found,
        Err(_) => Err(PostgresFailure::TimedOut(connect_timeout)),
    }
}

/// A server that does not tell its timeline, such as some managed services, has 0.
fn read_timeline(answer: Result<Vec<SimpleQueryMessage>, Error>) -> u32 {
    let messages = answer.unwrap_or_default();
    let text = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    text.and_then(|text| u32::from_str_radix(text, 16).ok()).unwrap_or_default()
}

/// The failures of all hosts as one. An answer of a server says more than a lost connection.
fn join_failures(failures: Vec<(String, PostgresFailure)>) -> PostgresFailure {
    let mut reasons = Vec::new();
    for (host, failure) in failures {
        match failure {
            PostgresFailure::Server(error) => return PostgresFailure::Server(error),
            other => reasons.push(format!("{host}: {other}")),
        }
    }
    lost_connection(reasons.join("; "))
}

fn lost_connection(reason: String) -> PostgresFailure {
    PostgresFailure::ConnectionLost(reason)
}

fn closed_connection() -> PostgresFailure {
    lost_connection(io::Error::from(io::ErrorKind::ConnectionReset).to_string())
}
