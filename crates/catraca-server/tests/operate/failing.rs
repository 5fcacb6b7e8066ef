//! Nobody there, somebody else there, somebody slow there: exit code 3, and what to do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::desk::{IP, Ran, command, run};
use crate::served::Served;

/// One answer of a stranger, and the URL to ask for it.
fn stranger(answer: &'static str) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&mut stream);
        // Whoever asks may have heard enough.
        let _ = stream.write_all(answer.as_bytes());
    });
    (url, served)
}

/// Reads all of it: what is left unread would cut the answer off.
fn read_request(stream: &mut TcpStream) {
    let mut request = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while request.read_line(&mut line).unwrap() > 2 {
        let line = std::mem::take(&mut line).to_ascii_lowercase();
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
    }
    request.read_exact(&mut vec![0; length]).unwrap();
}

fn asked(url: &str, more: &[&str]) -> Ran {
    let args = [&["check", "login", IP], more].concat();
    Ran::of(command(url, &args).output().unwrap())
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
        let ran = Ran::of(command(&url, args).output().unwrap());
        ran.says(3, &["cannot be reached", "where: ", "catraca serve", "--server"]);
    }
}

#[test]
fn somebody_silent_is_3_after_the_patience() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    asked(&url, &["--timeout", "50ms"]).says(3, &["did not answer within 50ms", "--timeout"]);
    asked(&url, &["--timeout", "0s"]).says(2, &["--timeout"]);
}

#[test]
fn somebody_else_there_is_said_to_be() {
    let answers = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>", 3, "else than JSON"),
        ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", 3, "502 Bad Gateway"),
        ("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", 2, "302 Found"),
        ("SSH-2.0-OpenSSH_9\r\n", 3, "broke off"),
        ("", 3, "broke off"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", 3, "broke off"),
    ];
    for (answer, code, word) in answers {
        let (url, served) = stranger(answer);
        asked(&url, &[]).says(code, &[word, "is it Catraca that listens there"]);
        served.join().unwrap();
    }
}

/// What a server says may once have come from a stranger.
#[test]
fn nothing_that_is_answered_can_move_the_cursor() {
    let problem = "HTTP/1.1 400 Bad Request\r\nContent-Length: 63\r\n\r\n\
                   {\"code\":\"x\\u001b[2J\",\"detail\":\"a\\u001b]0;b\\u0007\\u202ec\",\"a\":1}";
    let (url, served) = stranger(problem);
    let ran = asked(&url, &[]);
    served.join().unwrap();
    ran.says(2, &["a\u{fffd}]0;b\u{fffd}\u{fffd}c"]);
    assert!(!ran.err.contains('\u{1b}'), "{:?}", ran.err);
}

#[test]
fn a_server_without_records_says_what_it_lacks() {
    let served = Served::demo();
    run(&served, &["blocks", "list"]).says(2, &["no-records", "--config FILE"]);
}

#[test]
fn a_wrong_url_is_named() {
    for (url, word) in [
        ("127.0.0.1:7878", "http://127.0.0.1:7878"),
        ("gopher://x", "neither with http:// nor with https://"),
        ("http://ana:hunter2@127.0.0.1", "--key-file"),
    ] {
        let ran = asked(url, &[]);
        ran.says(2, &[word]);
        assert!(!ran.err.contains("hunter2"), "{}", ran.err);
    }
}
