//! Serving a socket with the limits that a public one needs.

use std::{future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, task::Poll, time::Duration};

use axum::extract::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, Sleep},
};

use crate::{Server, call::Peer};

impl Server {
    /// Serves a socket until `stop` is done. Then no connection is accepted any more, runs are parked, streams end, and what is still
    /// being answered gets [`Limits::drain`](crate::Limits::drain) in all. The controllers are shut down when this returns.
    ///
    /// # Errors
    /// When the socket cannot be listened to at all.
    pub async fn serve(&self, listener: TcpListener, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let app = &self.0;
        let router = self.router();
        let free = Arc::new(Semaphore::new(app.limits.connections));
        let leave = ac_core::CancelToken::new();
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let (socket, peer) = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    // Out of descriptors, or the peer was gone already: others can still be served.
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                },
            };
            let Ok(place) = free.clone().try_acquire_owned() else {
                app.metrics.refused_connection();
                continue;
            };
            app.metrics.connection();
            let (router, limits, leave) = (router.clone(), app.limits.clone(), leave.child());
            connections.spawn(async move {
                let _place = place;
                converse(socket, peer, router, &limits, &leave).await;
            });
        }
        drop(listener);
        leave.cancel();
        let drained = async {
            // Parks runs and ends the streams of their sessions, after what they had to say.
            let parking = app.served.iter().map(|served| served.controller.shutdown());
            futures::future::join_all(parking).await;
            app.cut.cancel();
            while connections.join_next().await.is_some() {}
        };
        if tokio::time::timeout(app.limits.drain, drained).await.is_err() {
            tracing::warn!("some connections did not end in time and are cut");
        }
        app.cut.cancel();
        connections.shutdown().await;
        Ok(())
    }
}

async fn converse(socket: TcpStream, peer: SocketAddr, router: axum::Router, limits: &crate::Limits, leave: &ac_core::CancelToken) {
    // Small frames go out at once.
    let _ = socket.set_nodelay(true);
    let io = TokioIo::new(Patient::new(socket, limits.stall_time));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let router = router.clone();
        async move {
            let mut request: Request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(Peer(peer));
            tower_call(router, request).await
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(limits.head.max(8192))
        .max_headers(limits.headers)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = leave.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended badly");
    }
}

async fn tower_call(router: axum::Router, request: Request) -> Result<axum::response::Response, std::convert::Infallible> {
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    TowerToHyperService::new(router).call(request).await
}

/// A socket whose peer must take what is there for it now and then.
struct Patient {
    socket: TcpStream,
    patience: Duration,
    /// Set while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(socket: TcpStream, patience: Duration) -> Self {
        Self { socket, patience, stalled: None }
    }

    fn judge<T>(&mut self, cx: &mut std::task::Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + patience)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bytes);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
