//! The server: HTTP/1.1 on the loopback network.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::access::{Access, Verdict};
use crate::html;
use crate::viewed_run::{ViewError, ViewedRun};

/// The most connections at a time. A page opens one or two.
const MOST_CONNECTIONS: usize = 64;

/// How long a client may take for the head of a request, and the longest life of a connection: whoever
/// holds places without a use loses them.
const HEAD_TIME: Duration = Duration::from_secs(10);
const CONNECTION_TIME: Duration = Duration::from_secs(60);

/// The longest head of a request.
const HEAD: usize = 16 << 10;

/// How long no connections are accepted when the system has no descriptors for them.
const PAUSE: Duration = Duration::from_millis(100);

/// Headers of every answer: nothing is kept, and no other page may show or read this one.
const HEADERS: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// A policy under which an answer that is no page does nothing.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// A server for the page of a run, that listens already.
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
}

struct Site {
    access: Access,
    run: ViewedRun,
}

type Answer = Response<Full<Bytes>>;

impl Server {
    /// Listens on the loopback network, at a port of the system's choice if `port` is 0.
    ///
    /// # Errors
    /// [`ViewError`] if the port is taken, or the system has no random numbers.
    pub fn listen(run: ViewedRun, port: u16) -> Result<Self, ViewError> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let refused = |error| ViewError::Listen { port, error };
        let listener = listener.map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let access = Access::new(address.port())?;
        Ok(Server {
            listener,
            address,
            site: Arc::new(Site { access, run }),
        })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The link, which works once.
    pub fn link(&self) -> String {
        let path = self.site.access.link().unwrap_or_default();
        format!("http://{}{path}", self.address)
    }

    /// Serves until the future is ready.
    ///
    /// # Errors
    /// [`ViewError::Listen`] if the system refuses what a server needs.
    pub fn serve(self, until: impl Future<Output = ()>) -> Result<(), ViewError> {
        let port = self.port();
        let refused = |error| ViewError::Listen { port, error };
        // Few threads: one for all connections, one that looks at the run.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .map_err(refused)?;
        let (listener, site) = (self.listener, self.site);
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(listener)?;
            tokio::select! {
                () = accept(listener, site) => {}
                () = until => {}
            }
            Ok(())
        });
        // A look at the run may last some seconds, and nobody waits for it any more.
        runtime.shutdown_background();
        served.map_err(refused)
    }
}

async fn accept(listener: TcpListener, site: Arc<Site>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let site = site.clone();
                tokio::spawn(async move {
                    // An end by time or by error is the client's trouble alone.
                    let _ = tokio::time::timeout(CONNECTION_TIME, connection(stream, site)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, site: Arc<Site>) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(site.answer(&request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

impl Site {
    async fn answer(self: Arc<Self>, request: &Request<Incoming>) -> Answer {
        let (method, uri) = (request.method(), request.uri());
        match self.access.decide(method, uri, request.headers()) {
            Verdict::Refuse(status, text) => plain(status, text),
            Verdict::Enter { cookie, page } => {
                let mut answer = plain(303, "");
                set(&mut answer, "set-cookie", &cookie);
                set(&mut answer, "location", &page);
                answer
            }
            Verdict::Serve(name) => {
                let query = uri.query().unwrap_or("").to_owned();
                // Files are read and the manager is asked on another thread.
                let made = tokio::task::spawn_blocking(move || self.resource(&name, &query)).await;
                made.unwrap_or_else(|_| plain(500, "titin view has failed to make this answer.\n"))
            }
        }
    }

    fn resource(&self, name: &str, query: &str) -> Answer {
        match name {
            "" => match html::served() {
                Ok((page, policy)) => {
                    let mut answer = whole("text/html; charset=utf-8", page.into());
                    set(&mut answer, "content-security-policy", &policy);
                    answer
                }
                Err(error) => plain(500, &error.to_string()),
            },
            "facts" => json(&*self.run.look().0),
            "state" => json(&*self.run.look().1),
            "log" => {
                let instance = value(query, "of").unwrap_or_default();
                let is_error = value(query, "stream").as_deref() == Some("stderr");
                match self.run.log(&instance, is_error) {
                    Some(end) => json(&end),
                    None => plain(404, "The run has no such instance.\n"),
                }
            }
            _ => plain(404, "There is no such page.\n"),
        }
    }
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(text) => whole("application/json", text),
        Err(error) => plain(500, &error.to_string()),
    }
}

fn plain(status: u16, text: &str) -> Answer {
    let mut answer = whole("text/plain; charset=utf-8", text.into());
    *answer.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer
}

fn whole(kind: &'static str, content: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(content)));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers.insert("content-security-policy", HeaderValue::from_static(NOTHING));
    answer
}

/// Sets a header whose value this crate has made.
fn set(answer: &mut Answer, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
}

/// The value of a name in a query, decoded.
fn value(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name);
    Some(decode(values.next()?.1))
}

/// Replaces each `%` with two digits by the byte that it stands for.
fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded() {
        let query = "of=micro%5B3%5D&stream=stderr";
        assert_eq!(value(query, "of").as_deref(), Some("micro[3]"));
        assert_eq!(value(query, "stream").as_deref(), Some("stderr"));
        assert_eq!(value(query, "x"), None);
        for (text, decoded) in [
            ("%", "%"),
            ("%4", "%4"),
            ("%+1", "%+1"),
            ("%C3%A9", "é"),
            ("%ff", "\u{fffd}"),
            ("é%41", "éA"),
        ] {
            assert_eq!(decode(text), decoded);
        }
    }
}
