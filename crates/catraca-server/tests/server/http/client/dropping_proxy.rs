//! Servers that misbehave on purpose: a proxy that loses answers, and a program that is no Catraca.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::raw_connection::RawConnection;

/// Passes requests on to a server, and resets the connection in place of some answers: after the
/// server has executed the request.
pub struct DroppingProxy {
    pub address: String,
    /// How many answers were lost.
    lost: Arc<AtomicU32>,
}

impl DroppingProxy {
    /// Loses every `nth` answer; 1 loses all.
    pub fn start(server: &str, nth: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let lost = Arc::new(AtomicU32::new(0));
        let requests = Arc::new(AtomicU32::new(0));
        let server = server.to_owned();
        let counted = Arc::clone(&lost);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let server = server.clone();
                let requests = Arc::clone(&requests);
                let lost = Arc::clone(&counted);
                thread::spawn(move || pass_on(stream.unwrap(), &server, &requests, &lost, nth));
            }
        });
        Self { address, lost }
    }

    pub fn lost(&self) -> u32 {
        self.lost.load(Ordering::SeqCst)
    }
}

fn pass_on(mut stream: TcpStream, server: &str, requests: &AtomicU32, lost: &AtomicU32, nth: u32) {
    let mut upstream = RawConnection::open(server);
    while let Some(request) = read_request(&mut stream) {
        upstream.send_bytes(&request);
        let answer = upstream.read_response();
        if (requests.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(nth) {
            lost.fetch_add(1, Ordering::SeqCst);
            // With a linger of zero, closing sends a reset.
            set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
            return;
        }
        let text = format!(
            "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
            answer.status,
            answer.body.len(),
            answer.body
        );
        stream.write_all(text.as_bytes()).unwrap();
    }
}

/// Passes requests on to a server, and answers with another `Date`: a server whose clock is wrong.
/// Returns its address.
pub fn start_with_date(server: &str, date: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut upstream = RawConnection::open(&server);
            while let Some(request) = read_request(&mut stream) {
                upstream.send_bytes(&request);
                let answer = upstream.read_response();
                let length = answer.body.len();
                let text = format!(
                    "HTTP/1.1 {} X\r\nDate: {date}\r\nContent-Length: {length}\r\n\r\n{}",
                    answer.status, answer.body
                );
                stream.write_all(text.as_bytes()).unwrap();
            }
        }
    });
    address
}

/// The bytes of one request; `None` at the end of the connection.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        if body.len() >= length {
            return Some(bytes);
        }
    }
}

/// Answers every request with the same text.
pub struct AnsweringServer {
    pub address: String,
}

impl AnsweringServer {
    pub fn start(body: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                while read_request(&mut stream).is_some() {
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
                    stream.write_all(answer.as_bytes()).unwrap();
                }
            }
        });
        Self { address }
    }
}
