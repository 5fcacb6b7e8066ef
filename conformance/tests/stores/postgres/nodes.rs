//! Several processes on one database: together they admit exactly the limit, and a stopped one does
//! not block the others.
//!
//! The test starts itself again as its nodes, and stops them by closing their input.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catraca::postgres::{PostgresOptions, PostgresStore};

use super::helpers::{
    Database, HOUR, all, bucket, check, gate, long_deadline, row, runtime, setting, window,
};
use catraca_testkit::postgres::kill;

const NODE_URL: &str = "CATRACA_NODE_OF";
const NODES: usize = 4;
const LIMIT: i64 = 10;

/// A child process.
struct Node {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Node {
    fn start(test: &str, database: &Database) -> Self {
        let mut node = Command::new(std::env::current_exe().unwrap());
        node.args([test, "--exact", "--nocapture"]).env(NODE_URL, database.url());
        node.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut node = Self { child, orders, answers };
        node.answer("ready");
        node
    }

    fn order(&mut self, text: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{text}").unwrap();
    }

    /// Waits for a line with `word`; returns the text after it.
    fn answer(&mut self, word: &str) -> String {
        let line = self.answers.by_ref().map(|line| line.expect("the node is running"));
        let mut values = line.filter_map(|line| Some(line.split_once(word)?.1.trim().to_owned()));
        values.next().expect("the node answers")
    }

    fn id(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.orders.take());
        drop(self.child.wait());
    }
}

/// The orders of the parent process, each a list of numbers.
fn orders() -> impl Iterator<Item = Vec<u64>> {
    let numbers = |line: String| line.split(' ').map(|word| word.parse().unwrap()).collect();
    std::io::stdin().lines().map(|line| line.unwrap()).map(numbers)
}

/// The main loop of a node: each order is a key and a number of callers.
fn run_node(url: &str) {
    let runtime = runtime();
    let store = Arc::new(runtime.block_on(PostgresStore::open(url, long_deadline())).unwrap());
    println!("\nready");
    for order in orders() {
        let call = |_| {
            let store = Arc::clone(&store);
            let batch = gate([row(order[0], window(LIMIT, HOUR))]);
            async move { check(&store, &batch).await.unwrap().passed }
        };
        let passed = runtime.block_on(all((0..order[1]).map(call)));
        println!("\nadmitted {}", passed.iter().filter(|passed| **passed).count());
    }
}

/// covers: 002-35, B-33, B-34
#[test]
fn four_processes_together_admit_exactly_the_limit() {
    if let Ok(url) = std::env::var(NODE_URL) {
        return run_node(&url);
    }
    let database = Database::new();
    let test = "postgres::nodes::four_processes_together_admit_exactly_the_limit";
    let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::start(test, &database)).collect();
    let rounds = setting("CATRACA_POSTGRES_ROUNDS", 20);
    for (callers, first) in [(64 / NODES, 0), (256 / NODES, 1_000_000), (256, 2_000_000)] {
        for round in 0..if callers == 256 { rounds / 10 } else { rounds } {
            nodes.iter_mut().for_each(|node| node.order(&format!("{} {callers}", first + round)));
            let admitted: i64 =
                nodes.iter_mut().map(|node| node.answer("admitted").parse::<i64>().unwrap()).sum();
            assert_eq!(admitted, LIMIT, "round {round} of 4 times {callers} callers");
        }
    }
    println!("{rounds} rounds of 64 and of 256 callers, {} of 1024: {LIMIT} each", rounds / 10);
}

/// Checks one key without a pause until the input ends.
fn run_busy_node(url: &str) {
    let runtime = runtime();
    let short_deadline =
        PostgresOptions { deadline: Duration::from_millis(200), ..long_deadline() };
    let store = Arc::new(runtime.block_on(PostgresStore::open(url, short_deadline)).unwrap());
    for _ in 0..8 {
        let store = Arc::clone(&store);
        runtime.spawn(async move {
            loop {
                drop(check(&store, &gate([row(1, bucket(1_000_000_000))])).await);
                // A refused call does not wait, and the connection tasks must run too.
                tokio::task::yield_now().await;
            }
        });
    }
    println!("\nready");
    orders().for_each(drop);
}

/// The server ends the transaction of a stopped node after a timeout, which releases its rows.
#[test]
fn a_node_that_stands_still_holds_nobody_up() {
    if let Ok(url) = std::env::var(NODE_URL) {
        return run_busy_node(&url);
    }
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    let node = Node::start("postgres::nodes::a_node_that_stands_still_holds_nobody_up", &database);
    let batch = gate([row(1, bucket(1_000_000_000))]);
    let mut longest = Duration::ZERO;
    for _ in 0..setting("CATRACA_POSTGRES_ROUNDS", 20) {
        kill("STOP", &node.id());
        let start = Instant::now();
        let answer = runtime.block_on(check(&store, &batch));
        longest = longest.max(start.elapsed());
        kill("CONT", &node.id());
        assert!(answer.is_ok_and(|reply| reply.passed));
        // Lets the node run, so that it is next stopped at another point.
        (0..5).for_each(|_| drop(runtime.block_on(check(&store, &batch))));
    }
    println!("the longest wait was {longest:?}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}
