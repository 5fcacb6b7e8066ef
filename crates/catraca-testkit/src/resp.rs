//! A minimal client of the Redis protocol (RESP) over a Unix socket, for tests only: it never
//! reconnects and does not limit the size of replies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longer than any reply takes on a busy machine; a test then fails instead of hanging.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespValue {
    /// A null bulk string or array.
    Null,
    /// An integer.
    Int(i64),
    /// A simple or bulk string.
    Bytes(Vec<u8>),
    /// An array.
    Array(Vec<Self>),
    /// An error.
    Error(String),
}

/// A connection to a server.
#[derive(Debug)]
pub struct RespClient {
    stream: BufReader<UnixStream>,
    /// Encoded commands that the next `receive` sends.
    queued: Vec<u8>,
}

impl RespClient {
    /// Connects to the socket of a server.
    pub fn connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self::new(stream))
    }

    fn new(stream: UnixStream) -> Self {
        Self { stream: BufReader::new(stream), queued: Vec::new() }
    }

    /// Sends one command and reads its reply.
    pub fn call(&mut self, command: &[&[u8]]) -> io::Result<RespValue> {
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

    /// Sends the queued commands and reads one reply.
    pub fn receive(&mut self) -> io::Result<RespValue> {
        if !self.queued.is_empty() {
            self.stream.get_mut().write_all(&self.queued)?;
            self.queued.clear();
        }
        self.reply()
    }

    fn reply(&mut self) -> io::Result<RespValue> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| invalid_reply(&line))?;
        match kind {
            "+" => Ok(RespValue::Bytes(rest.as_bytes().to_vec())),
            "-" => Ok(RespValue::Error(rest.to_owned())),
            ":" => number(rest).map(RespValue::Int),
            "$" => self.bulk(number(rest)?),
            "*" => self.array(number(rest)?),
            _ => Err(invalid_reply(&line)),
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| invalid_reply(&line))
    }

    fn bulk(&mut self, length: i64) -> io::Result<RespValue> {
        // A length of -1 is null.
        let Ok(length) = usize::try_from(length) else { return Ok(RespValue::Null) };
        // The string is followed by CRLF.
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(RespValue::Bytes(bytes))
    }

    fn array(&mut self, length: i64) -> io::Result<RespValue> {
        if length < 0 {
            return Ok(RespValue::Null);
        }
        let items: io::Result<Vec<RespValue>> = (0..length).map(|_| self.reply()).collect();
        items.map(RespValue::Array)
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| invalid_reply(text))
}

fn invalid_reply(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply that a client reads from these bytes.
    fn read(bytes: &[u8]) -> io::Result<RespValue> {
        let (client, mut server) = UnixStream::pair().unwrap();
        server.write_all(bytes).unwrap();
        drop(server);
        RespClient::new(client).receive()
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let array = RespValue::Array(vec![
            RespValue::Int(-3),
            RespValue::Bytes(b"a\r\n".to_vec()),
            RespValue::Null,
        ]);
        assert_eq!(read(b"*3\r\n:-3\r\n$3\r\na\r\n\r\n$-1\r\n").unwrap(), array);
        assert_eq!(read(b"+OK\r\n").unwrap(), RespValue::Bytes(b"OK".to_vec()));
        assert_eq!(read(b"-ERR no\r\n").unwrap(), RespValue::Error("ERR no".to_owned()));
        assert_eq!(read(b"*-1\r\n").unwrap(), RespValue::Null);
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bytes in [&b""[..], b"\r\n", b":x\r\n", b"?1\r\n", b":1", b"*2\r\n:1\r\n", b"$5\r\nab"]
        {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
    }
}
