//! HTTP/1.1 over one connection that is kept open, and opened again after an error.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any answer may take; a call that takes longer counts as not answered.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A response.
pub struct HttpResponse {
    pub status: u16,
    pub body: Value,
}

/// A client of one server.
pub struct HttpClient {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

impl HttpClient {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None }
    }

    /// Sends a request with a JSON body, or without one if it is empty.
    pub async fn call(&mut self, line: &str, body: &str) -> io::Result<HttpResponse> {
        let answer = timeout(TIMEOUT, self.exchange(line, body)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    async fn exchange(&mut self, line: &str, body: &str) -> io::Result<HttpResponse> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address).await?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let address = &self.address;
        let mut text = format!("{line} HTTP/1.1\r\nHost: {address}\r\n");
        if !body.is_empty() {
            let length = body.len();
            text += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        text += "\r\n";
        text += body;
        stream.get_mut().write_all(text.as_bytes()).await?;
        let response = read_response(&mut stream).await?;
        self.stream = Some(stream);
        Ok(response)
    }
}

async fn read_response(stream: &mut BufReader<TcpStream>) -> io::Result<HttpResponse> {
    let status_line = read_line(stream).await?;
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or(io::ErrorKind::InvalidData)?;
    let mut length = 0;
    loop {
        let line = read_line(stream).await?;
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(HttpResponse { status, body: serde_json::from_slice(&body).unwrap_or_default() })
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
