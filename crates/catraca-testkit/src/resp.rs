//! The least of the Redis protocol that tests need: requests out, replies in, over a Unix socket.
//!
//! Must not be used outside tests: no reconnects, no limits on what a server sends. Who waits in
//! vain gets an error: a test that hangs tells nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// More than any answer takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(30);

/// A reply of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    Null,
    /// An integer.
    Int(i64),
    /// A status or a string.
    Bytes(Vec<u8>),
    /// Several replies.
    Array(Vec<Self>),
    /// A refusal.
    Error(String),
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// Commands that wait to be sent together.
    queued: Vec<u8>,
}

impl Client {
    /// Connects to the socket of a server.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::new(stream))
    }

    fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream), queued: Vec::new() }
    }

    /// Sends one command and reads its reply.
    pub fn call(&mut self, command: &[&[u8]]) -> io::Result<Value> {
        self.queue(command);
        self.receive()
    }

    /// Queues one command; `receive` must follow, once per command, in order.
    pub fn queue(&mut self, command: &[&[u8]]) {
        let bytes = &mut self.queued;
        bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
        for part in command {
            bytes.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
            bytes.extend_from_slice(part);
            bytes.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what is queued and reads one reply.
    pub fn receive(&mut self) -> io::Result<Value> {
        if !self.queued.is_empty() {
            self.stream.get_mut().write_all(&self.queued)?;
            self.queued.clear();
        }
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Value> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| broken(&line))?;
        match kind {
            "+" => Ok(Value::Bytes(rest.as_bytes().to_vec())),
            "-" => Ok(Value::Error(rest.to_owned())),
            ":" => number(rest).map(Value::Int),
            "$" => self.bulk(number(rest)?),
            "*" => self.array(number(rest)?),
            _ => Err(broken(&line)),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| broken(&line))
    }

    fn bulk(&mut self, length: i64) -> io::Result<Value> {
        let Ok(length) = usize::try_from(length) else { return Ok(Value::Null) };
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Value::Bytes(bytes))
    }

    fn array(&mut self, length: i64) -> io::Result<Value> {
        if length < 0 {
            return Ok(Value::Null);
        }
        let items: io::Result<Vec<Value>> = (0..length).map(|_| self.reply()).collect();
        items.map(Value::Array)
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| broken(text))
}

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client makes of these bytes.
    fn read(bytes: &[u8]) -> io::Result<Value> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(bytes).unwrap();
        drop(theirs);
        Client::new(ours).receive()
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let array =
            Value::Array(vec![Value::Int(-3), Value::Bytes(b"a\r\n".to_vec()), Value::Null]);
        assert_eq!(read(b"*3\r\n:-3\r\n$3\r\na\r\n\r\n$-1\r\n").unwrap(), array);
        assert_eq!(read(b"+OK\r\n").unwrap(), Value::Bytes(b"OK".to_vec()));
        assert_eq!(read(b"-ERR no\r\n").unwrap(), Value::Error("ERR no".to_owned()));
        assert_eq!(read(b"*-1\r\n").unwrap(), Value::Null);
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bytes in [&b""[..], b"\r\n", b":x\r\n", b"?1\r\n", b":1", b"*2\r\n:1\r\n", b"$5\r\nab"]
        {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
