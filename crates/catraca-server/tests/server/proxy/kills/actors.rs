//! The client and the upstream of a case, as processes: this test program, started again.
//!
//! A test that is named below is one of them if `ROLE` says so, and does nothing otherwise. It
//! writes what happens as lines to its output.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

use super::super::helpers::SOON;

const ROLE: &str = "CATRACA_KILL_ROLE";
const PREFIX: &str = "actor:";
/// The body of a response of which half is sent.
const ANSWER: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\nhalf";
const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalfhalf";

/// A process of a case, killed on drop.
pub struct Actor {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Actor {
    /// Starts a role with an argument.
    pub fn start(role: &str, argument: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = format!("proxy::kills::actors::{role}_process");
        command.args([test.as_str(), "--exact", "--nocapture", "--test-threads", "1"]);
        command.env(ROLE, argument).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // The thread ends with the process.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, event)) = line.split_once(PREFIX) {
                    let _ = sender.send(event.to_owned());
                }
            }
        });
        Self { child, input, lines }
    }

    /// Waits for an event, and returns what follows its name.
    pub fn wait_for(&self, event: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(SOON);
            let line = line.unwrap_or_else(|error| panic!("no event {event}: {error}"));
            if let Some(rest) = line.strip_prefix(event) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Sends a line to the process.
    pub fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.kill();
    }
}

fn report(event: &str) {
    println!("\n{PREFIX}{event}");
}

/// The upstream: what it does is in the path of the request.
#[test]
fn upstream_process() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    report(&format!("port {}", listener.local_addr().unwrap().port()));
    let go = Arc::new((Mutex::new(false), Condvar::new()));
    let told = Arc::clone(&go);
    std::thread::spawn(move || {
        for _line in std::io::stdin().lines().map_while(Result::ok) {
            *told.0.lock().unwrap() = true;
            told.1.notify_all();
        }
        // The test is over.
        std::process::exit(0);
    });
    for stream in listener.incoming() {
        let go = Arc::clone(&go);
        std::thread::spawn(move || serve(BufReader::new(stream.unwrap()), &go));
    }
}

fn serve(mut stream: BufReader<TcpStream>, go: &(Mutex<bool>, Condvar)) {
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        report("head");
        let path = head.split(' ').nth(1).unwrap_or_default();
        let wanted = match path {
            "/Connecting" | "*" | "/HeadSent" => return wait_for_ever(),
            "/BodyUnderWay" => 4,
            _ => content_length(&head),
        };
        let mut body = vec![0; wanted];
        if stream.read_exact(&mut body).is_err() {
            return;
        }
        if matches!(path, "/UpgradePending" | "/TunnelOpen") {
            if path == "/UpgradePending" {
                wait_for_go(go);
            }
            stream.get_mut().write_all(SWITCH.as_bytes()).unwrap();
            // The other side ends the connection.
            let _ = stream.read_to_end(&mut Vec::new());
            return;
        }
        report("body");
        match path {
            "/BodyUnderWay" | "/Waiting" => return wait_for_ever(),
            "/HeadReceived" => {
                let head = ANSWER.strip_suffix("half").unwrap();
                stream.get_mut().write_all(head.as_bytes()).unwrap();
                return wait_for_ever();
            }
            "/AnswerUnderWay" | "/AnswerHeld" | "/RestRead" | "/Ended" => {
                stream.get_mut().write_all(ANSWER.as_bytes()).unwrap();
                if matches!(path, "/AnswerUnderWay" | "/AnswerHeld") {
                    return wait_for_ever();
                }
                wait_for_go(go);
                stream.get_mut().write_all(b"half").unwrap();
            }
            _ => stream.get_mut().write_all(OK.as_bytes()).unwrap(),
        }
    }
}

fn wait_for_go(go: &(Mutex<bool>, Condvar)) {
    let is_told = go.0.lock().unwrap();
    drop(go.1.wait_while(is_told, |is_told| !*is_told).unwrap());
}

fn wait_for_ever() {
    loop {
        std::thread::park();
    }
}

fn content_length(head: &str) -> usize {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().map_or(0, |(_, length)| length.trim().parse().unwrap())
}

/// The client: sends the bytes of its argument to an address, and reports what it receives.
#[test]
fn client_process() {
    let Ok(argument) = std::env::var(ROLE) else { return };
    let (address, request) = argument.split_once(' ').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.replace('|', "\r\n").as_bytes()).unwrap();
    let (ended, is_over): (Sender<()>, Receiver<()>) = channel();
    std::thread::spawn(move || {
        for _line in std::io::stdin().lines().map_while(Result::ok) {}
        let _ = ended.send(());
        // The test is over.
        std::process::exit(0);
    });
    let mut received = String::new();
    let mut buffer = [0; 1_024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        received.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((_, body)) = received.split_once("\r\n\r\n") else { continue };
        report("head");
        report(&format!("bytes {}", body.len()));
    }
    // The other side of a tunnel has ended.
    drop(stream);
    let status = received.split(' ').nth(1).unwrap_or("none");
    report(&format!("end {status}"));
    // Ends when the test has read that.
    let _ = is_over.recv();
}
