//! The byte stream of a connection, plain or TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Looks at received bytes without taking them, and without waiting.
const PEEK: RecvFlags = RecvFlags::PEEK.union(RecvFlags::DONTWAIT);

/// The byte stream of a connection.
pub enum ConnectionStream {
    /// Not encrypted.
    Plain(TcpStream),
    /// Encrypted. Boxed because a TLS session is large and most connections are plain.
    Tls(Box<TlsStream<TcpStream>>),
}

impl ConnectionStream {
    /// Whether bytes have arrived that were not read. Asks the system, because tokio may not have
    /// reported them yet.
    pub fn has_unread(&self) -> bool {
        let peeked = recv(self.socket(), &mut [0_u8; 1], PEEK);
        peeked.is_ok_and(|(_, bytes)| bytes > 0)
    }

    /// Whether the peer has closed, even only its sending half. Bytes that it sent before, such as
    /// the alert that ends a TLS session, do not hide it.
    pub fn is_closed_by_peer(&self) -> bool {
        const CLOSED: PollFlags = PollFlags::RDHUP.union(PollFlags::HUP).union(PollFlags::ERR);
        let mut sockets = [PollFd::new(self.socket(), PollFlags::RDHUP)];
        let found = poll(&mut sockets, Some(&Timespec::default()));
        found.is_ok() && sockets[0].revents().intersects(CLOSED)
    }

    /// The protocol that was agreed on by ALPN.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// The certificate that the client has authenticated with, in DER.
    pub fn client_certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => Some(stream.get_ref().1.peer_certificates()?.first()?.as_ref()),
        }
    }

    /// The socket below.
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for ConnectionStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for ConnectionStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, slices),
        }
    }
}
