//! A server that is unreachable, silent or not Catraca: exit code 3, and an error with a remedy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::operate::helpers::{CliOutput, IP, command, run};
use crate::test_server::TestServer;

/// A server that sends `answer` to one request; returns its URL and its thread.
fn foreign_server(answer: &'static str) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        // The client may have closed the connection already.
        let _ = stream.write_all(answer.as_bytes());
    });
    (url, thread)
}

/// Reads the whole request: closing a socket with unread bytes resets the connection, and the
/// client might lose the response.
fn read_request(stream: &mut TcpStream) {
    let mut request = BufReader::new(stream);
    let mut line = String::new();
    let mut length = 0;
    while request.read_line(&mut line).unwrap() > 2 {
        let line = std::mem::take(&mut line).to_ascii_lowercase();
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    request.read_exact(&mut vec![0; length]).unwrap();
}

fn run_check(url: &str, more: &[&str]) -> CliOutput {
    let args = [&["check", "login", IP], more].concat();
    CliOutput::new(command(url, &args).output().unwrap())
}

#[test]
fn nobody_there_is_3_for_every_verb() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for args in [
        &["check", "login", IP][..],
        &["peek", "login", IP],
        &["settle", "--ticket", "x"],
        &["credit", "E1", "payment", IP],
        &["blocks", "list"],
        &["blocks", "release", IP],
        &["blocklist", "add", "::1"],
        &["allowlist", "list", "--all"],
        &["facts", "get", IP],
        &["reset", "login", IP],
        &["stats"],
        &["audit"],
        &["events"],
        &["config", "show"],
        &["config", "reload"],
        &["whoami"],
        &["privacy", "export", IP],
    ] {
        let output = CliOutput::new(command(&url, args).output().unwrap());
        output.assert_exit(3, &["cannot be reached", "where: ", "catraca serve", "--server"]);
    }
}

#[test]
fn somebody_silent_is_3_after_the_patience() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    run_check(&url, &["--timeout", "50ms"])
        .assert_exit(3, &["did not respond within 50ms", "--timeout"]);
    run_check(&url, &["--timeout", "0s"]).assert_exit(2, &["--timeout"]);
}

#[test]
fn somebody_else_there_is_said_to_be() {
    let answers = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>", 3, "not JSON"),
        ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", 3, "502 Bad Gateway"),
        ("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", 2, "302 Found"),
        ("SSH-2.0-OpenSSH_9\r\n", 3, "the connection to"),
        ("", 3, "the connection to"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", 3, "the connection to"),
    ];
    for (answer, code, word) in answers {
        let (url, thread) = foreign_server(answer);
        run_check(&url, &[]).assert_exit(code, &[word, "check that Catraca listens there"]);
        thread.join().unwrap();
    }
}

/// The texts of a server may contain what one of its callers sent.
#[test]
fn nothing_that_is_answered_can_move_the_cursor() {
    let problem = "HTTP/1.1 400 Bad Request\r\nContent-Length: 63\r\n\r\n\
                   {\"code\":\"x\\u001b[2J\",\"detail\":\"a\\u001b]0;b\\u0007\\u202ec\",\"a\":1}";
    let (url, thread) = foreign_server(problem);
    let output = run_check(&url, &[]);
    thread.join().unwrap();
    output.assert_exit(2, &["a\u{fffd}]0;b\u{fffd}\u{fffd}c"]);
    assert!(!output.err.contains('\u{1b}'), "{:?}", output.err);
}

/// Regression: the error of a reset after a release was dropped, and the command exited with 0.
#[test]
fn a_release_whose_counters_could_not_be_reset_says_so_and_is_1() {
    let body = "{\"released\":true,\
                \"block\":{\"id\":\"7\",\"policy\":\"pay\",\"origin\":\"excess\",\
                \"subject\":{\"ip\":\"192.0.2.1\"}},\"members\":[],\"remaining\":[],\
                \"counters_reset\":false,\"note\":\"redis is unreachable\",\"until\":null,\
                \"incomplete\":\"its end is unknown\",\"durable\":true}";
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).leak();
    for (more, code) in [(&["--reset"][..], 1), (&[], 0)] {
        let (url, thread) = foreign_server(answer);
        let args = [&["blocks", "release", "7"], more].concat();
        let output = CliOutput::new(command(&url, &args).output().unwrap());
        thread.join().unwrap();
        assert_eq!(output.code, Some(code), "{output:?}");
        assert!(output.out.starts_with("released ip=192.0.2.1 from pay"), "{output:?}");
        assert!(output.err.contains("its end is unknown"), "{output:?}");
        assert_eq!(output.err.contains("redis is unreachable"), code == 1, "{output:?}");
        assert_eq!(output.out.contains("`--reset` clears both"), code == 0, "{output:?}");
    }
}

#[test]
fn a_server_without_records_says_what_it_lacks() {
    let thread = TestServer::demo();
    run(&thread, &["blocks", "list"]).assert_exit(2, &["no-records", "--catalog FILE"]);
}

#[test]
fn a_wrong_url_is_named() {
    for (url, word) in [
        ("127.0.0.1:7878", "http://127.0.0.1:7878"),
        ("gopher://x", "neither with http:// nor with https://"),
        ("http://ana:hunter2@127.0.0.1", "--key-file"),
    ] {
        let output = run_check(url, &[]);
        output.assert_exit(2, &[word]);
        assert!(!output.err.contains("hunter2"), "{}", output.err);
    }
}
