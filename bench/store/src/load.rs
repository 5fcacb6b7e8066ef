//! The driver: connections that send one prepared command, wait for its answer and send another.
//!
//! Must not look into an answer beyond its end and whether it is an error.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Callers at once.
pub const CONNECTIONS: usize = 32;

/// The result of a run.
pub struct Run {
    /// Answers.
    pub answers: u64,
    /// How long it ran.
    pub seconds: f64,
    /// Every answer's time, sorted, in microseconds.
    pub times: Vec<u32>,
}

/// Sends commands in a random order for a while.
pub async fn run(port: u16, commands: &[Vec<u8>], length: Duration) -> Result<Run, String> {
    let begun = Instant::now();
    let end = begun + length;
    let callers = (0..CONNECTIONS).map(|seed| caller(port, commands, end, seed as u64 + 1));
    let mut times = Vec::new();
    for done in join(callers).await {
        times.extend(done.map_err(|error| error.to_string())?);
    }
    let seconds = begun.elapsed().as_secs_f64();
    times.sort_unstable();
    Ok(Run { answers: times.len() as u64, seconds, times })
}

/// Sends every command so many times, many at once.
pub async fn fill(port: u16, commands: &[Vec<u8>], times: usize) -> Result<(), String> {
    let part = commands.len().div_ceil(CONNECTIONS).max(1);
    let fillers = commands.chunks(part).map(|some| filler(port, some, times));
    for done in join(fillers).await {
        done.map_err(|error| error.to_string())?;
    }
    Ok(())
}

async fn join<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(answer) = future.as_mut().poll(context) {
                *done = Some(answer);
            }
        }
        if done.iter().all(Option::is_some) { ().into() } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn caller(port: u16, commands: &[Vec<u8>], end: Instant, seed: u64) -> io::Result<Vec<u32>> {
    let mut wire = Wire::connect(port).await?;
    let mut times = Vec::new();
    let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    loop {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let begun = Instant::now();
        if begun >= end {
            return Ok(times);
        }
        let place = (dice % commands.len() as u64) as usize;
        wire.stream.write_all(&commands[place]).await?;
        wire.answer().await?;
        times.push(begun.elapsed().as_micros() as u32);
    }
}

async fn filler(port: u16, commands: &[Vec<u8>], times: usize) -> io::Result<()> {
    let mut wire = Wire::connect(port).await?;
    for some in commands.chunks(100) {
        let bytes = some.concat();
        for _ in 0..times {
            wire.stream.write_all(&bytes).await?;
            for _ in some {
                wire.answer().await?;
            }
        }
    }
    Ok(())
}

struct Wire {
    stream: TcpStream,
    heard: Vec<u8>,
    read: usize,
}

impl Wire {
    async fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, heard: Vec::with_capacity(4_096), read: 0 })
    }

    /// Passes over one answer.
    async fn answer(&mut self) -> io::Result<()> {
        let mut left = 1;
        while left > 0 {
            let line = self.line().await?;
            left -= 1;
            let number = || line.get(1..).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
            match line.as_bytes().first() {
                Some(b'-') => return Err(io::Error::other(line)),
                Some(b'*') => left += number(),
                Some(b'$') if !line.starts_with("$-") => self.skip(number() + 2).await?,
                _ => {}
            }
        }
        self.heard.drain(..self.read);
        self.read = 0;
        Ok(())
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            let rest = &self.heard[self.read..];
            if let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&rest[..end]).into_owned();
                self.read += end + 2;
                return Ok(line);
            }
            self.more().await?;
        }
    }

    async fn skip(&mut self, count: usize) -> io::Result<()> {
        while self.heard.len() < self.read + count {
            self.more().await?;
        }
        self.read += count;
        Ok(())
    }

    async fn more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.heard).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
