//! The byte stream of a connection, plain or encrypted. It reports reads and writes to the connection, below the HTTP
//! library.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::bounds;
use crate::connection::Connection;

/// Boxed: the state of TLS is large.
pub(crate) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// A stream that reports to its connection what happens.
///
/// The HTTP library itself answers a head that it cannot read, without a body. No request runs then, so what the
/// library writes is withheld from the client, and the connection's task sends the service's own answer instead.
pub(crate) struct Watched {
    stream: Stream,
    connection: Rc<Connection>,
}

impl Watched {
    pub fn new(stream: Stream, connection: Rc<Connection>) -> Self {
        Self { stream, connection }
    }

    pub fn into_stream(self) -> Stream {
        self.stream
    }

    /// Whether the bytes being written are the library's own answer to a head.
    fn is_refusal(&self) -> bool {
        !self.connection.is_multiplexed() && !self.connection.is_busy()
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.connection
            .read(read.is_ready().then(|| buffer.filled().len() - before));
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            self.connection.refuse(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_refusal() {
            self.connection.refuse(slices.first().map_or(&[], |first| first));
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        if length > bounds::JOINED_BYTES_MAX {
            return Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        }
        let mut joined = [0; bounds::JOINED_BYTES_MAX];
        let mut end = 0;
        for slice in slices {
            joined[end..end + slice.len()].copy_from_slice(slice);
            end += slice.len();
        }
        Pin::new(&mut self.stream).poll_write(context, &joined[..end])
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        if !self.connection.is_multiplexed() {
            self.connection.flushed();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // With HTTP/1, the connection's task still uses the stream afterwards.
        if self.connection.is_multiplexed() {
            return Pin::new(&mut self.stream).poll_shutdown(context);
        }
        Poll::Ready(Ok(()))
    }
}
