//! The application behind the gateways: it answers 200 to everything and notes what reached it.
//!
//! Must listen on loopback alone. Its threads end with their connections.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

use super::message::Request;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\napp";

/// A running application.
pub(crate) struct Upstream {
    pub(crate) port: u16,
    notes: Notes,
    stopped: Arc<AtomicBool>,
}

type Notes = Arc<Mutex<Vec<Request>>>;

impl Upstream {
    pub(crate) fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let notes = Notes::default();
        let stopped = Arc::new(AtomicBool::new(false));
        let upstream = Self { port, notes: notes.clone(), stopped: stopped.clone() };
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let notes = notes.clone();
                thread::spawn(move || serve(stream, &notes));
            }
        });
        Ok(upstream)
    }

    /// What reached it since the last time it was asked.
    pub(crate) fn take_notes(&self) -> Vec<Request> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a request as if it had arrived.
    pub(crate) fn note(&self, request: Request) {
        note(&self.notes, request);
    }
}

impl Drop for Upstream {
    /// The listener sees the flag with its next connection.
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// A request is noted before it is answered, so that its client finds the note.
fn serve(stream: TcpStream, notes: &Notes) {
    let _ = stream.set_nodelay(true);
    let Ok(reading) = stream.try_clone() else { return };
    let mut reading = BufReader::new(reading);
    let mut writing = stream;
    while let Ok(Some(request)) = Request::read(&mut reading) {
        note(notes, request);
        if writing.write_all(ANSWER).is_err() {
            return;
        }
    }
}

fn note(notes: &Notes, request: Request) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(request);
}
