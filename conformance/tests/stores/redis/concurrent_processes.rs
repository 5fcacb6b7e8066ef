//! Concurrent callers of several processes: exactly the limit is admitted in every round.
//!
//! The test starts itself again as each process. A line on the standard input starts a round, when
//! the callers of all processes are ready. The processes share only the store.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{SharedStore, When};
use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;
use catraca_core::limit::{Limit, WindowTerms};
use catraca_core::time::Span;
use catraca_testkit::redis::RedisServer;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::helpers::{LONG_DEADLINE, check, setting};

const PROCESSES: usize = 4;
const LIMIT: i64 = 100;
/// Set in a child process: the server's URL, and the number of its callers.
const URL: &str = "CATRACA_CHILD_URL";
const CALLERS: &str = "CATRACA_CHILD_CALLERS";
/// The prefix of a result line, among the output of the test harness.
const MARK: &str = "admitted ";

/// covers: 002-35, B-33, B-34
#[test]
fn four_processes_with_many_callers_each_get_exactly_the_limit() {
    if let Ok(url) = env::var(URL) {
        return run_child(&url);
    }
    let Some(server) = RedisServer::start() else { return };
    let rounds = setting("CATRACA_REDIS_ROUNDS", 20);
    for callers in [64, 256] {
        let start = Instant::now();
        let mut processes: Vec<Process> =
            (0..PROCESSES).map(|_| Process::start(&server.url(), callers)).collect();
        let first = callers as u64 * 1_000_000;
        for round in first..first + rounds {
            processes.iter_mut().for_each(|process| process.release(round));
            let admitted: i64 = processes.iter_mut().map(Process::admitted).sum();
            assert_eq!(admitted, LIMIT, "round {round} of {callers} callers");
        }
        processes.into_iter().for_each(Process::end);
        println!(
            "{PROCESSES} processes of {callers} callers, {rounds} rounds: {LIMIT} of {} each, {:?}",
            PROCESSES * callers,
            start.elapsed()
        );
    }
}

/// A child process.
struct Process {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(url: &str, callers: usize) -> Self {
        let mut command = Command::new(env::current_exe().expect("a test has a file"));
        command.args(["--exact", "--nocapture", "--test-threads=1"]);
        command.arg(concat!(
            "redis::concurrent_processes::",
            "four_processes_with_many_callers_each_get_exactly_the_limit"
        ));
        command.env(URL, url).env(CALLERS, callers.to_string());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("the test starts again");
        let answers = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, answers }
    }

    fn release(&mut self, round: u64) {
        let input = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(input, "{round}").expect("the process listens");
    }

    fn admitted(&mut self) -> i64 {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.answers.read_line(&mut line).expect("the process answers");
            assert!(read > 0, "the process ended without an answer");
            if let Some(number) = line.trim().split(MARK).nth(1) {
                return number.parse().expect("a number");
            }
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

/// The main loop of a child process.
fn run_child(url: &str) {
    let callers: usize = env::var(CALLERS).unwrap().parse().unwrap();
    let threads = tokio::runtime::Runtime::new().unwrap();
    let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
    let store = Arc::new(threads.block_on(RedisStore::connect(url, options)).unwrap());
    for line in std::io::stdin().lines() {
        let round = line.unwrap().parse().unwrap();
        println!("\n{MARK}{}", threads.block_on(round_of(store.clone(), callers, round)));
    }
}

async fn round_of(store: Arc<RedisStore>, callers: usize, round: u64) -> i64 {
    let barrier = Arc::new(Barrier::new(callers));
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let store = store.clone();
        let barrier = barrier.clone();
        tasks.spawn(async move {
            barrier.wait().await;
            store.apply(&round_check(round), When::Store).await.unwrap()
        });
    }
    let replies = tasks.join_all().await;
    let passed = |reply: &Reply| matches!(reply, Reply::Check(reply) if reply.passed);
    replies.iter().filter(|reply| passed(reply)).count() as i64
}

/// A bucket in even rounds, a window in the others.
fn round_check(round: u64) -> Batch {
    let Batch::Check(mut batch) = check(0, LIMIT) else { panic!("a check") };
    batch.rows[0].key = Key::from_bytes((u128::from(round) << 40).to_be_bytes());
    if round % 2 == 1 {
        let window = WindowTerms { limit: LIMIT, span: Span::from_secs(3_600) };
        batch.rows[0].limit = Limit::Window([window].into_iter().collect());
    }
    Batch::Check(batch)
}
