//! Who gets in: decisions about requests, without sockets.
//!
//! Every user of the host reaches the loopback network, and so does every web page in the user's
//! browser. The link has a token that works once. It is exchanged for a cookie, whose path nobody
//! else knows: browsers send a cookie to all ports of a host, and another user may serve one of them.

use std::sync::Mutex;

use hyper::header::{COOKIE, HOST, ORIGIN};
use hyper::{HeaderMap, Method, Uri};

/// The names by which a browser may call this host. Another name leads here only by a false answer of
/// the DNS. The port may be another one, since ssh forwards any port.
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The secrets of a server.
pub(crate) struct Access {
    /// The token of the link, until it is used.
    token: Mutex<Option<String>>,
    /// The value of the cookie.
    session: String,
    /// The name of the cookie: browsers keep the cookies of all ports of a host together.
    cookie: String,
    /// The folder of the page, with slashes around it.
    folder: String,
}

/// The decision about a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The link was used for the first time: the browser gets the cookie, and goes to the page.
    Enter { cookie: String, page: String },
    /// The browser may have the resource of this name.
    Serve(String),
    /// The browser gets nothing but a status and a text.
    Refuse(u16, &'static str),
}

const NO_LINK: &str = "This page belongs to one browser: the one that has opened the link of `titin view`.\n\n\
    The link works once. For a new one, end `titin view` in its terminal with Ctrl-C, and start it again:\n\n    titin view RUN_DIR\n";
const OTHER_NAME: &str = "This server answers to 127.0.0.1 and localhost only.\n\n\
    Open the link as `titin view` has printed it. From another machine, use the line with ssh that `titin view` prints there.\n";
const OTHER_ORIGIN: &str = "Another web page has made this request, and gets no answer.\n";
const NO_METHOD: &str = "The page of a run is read with GET only.\n";

impl Access {
    pub(crate) fn new(port: u16) -> Result<Self, getrandom::Error> {
        Ok(Access {
            token: Mutex::new(Some(random_text()?)),
            session: random_text()?,
            cookie: format!("titin_view_{port}"),
            folder: format!("/{}/", random_text()?),
        })
    }

    /// The path and query of the link; `None` once it was used.
    pub(crate) fn link(&self) -> Option<String> {
        let token = self.token.lock().expect("never poisoned");
        token.as_ref().map(|token| format!("/?token={token}"))
    }

    /// Decides about a request.
    pub(crate) fn decide(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let Some(host) = single(headers, HOST.as_str()).filter(|host| is_own(host)) else {
            return Verdict::Refuse(403, OTHER_NAME);
        };
        if headers.contains_key(ORIGIN) {
            let own = format!("http://{host}");
            if single(headers, ORIGIN.as_str()) != Some(own.as_str()) {
                return Verdict::Refuse(403, OTHER_ORIGIN);
            }
        }
        if method != Method::GET && method != Method::HEAD {
            return Verdict::Refuse(405, NO_METHOD);
        }
        // A program that looks at links before their user does, by HEAD, does not use the link up.
        if method == Method::GET && uri.path() == "/" && self.use_token(uri.query().unwrap_or("")) {
            return Verdict::Enter {
                cookie: format!(
                    "{}={}; Path={}; HttpOnly; SameSite=Lax",
                    self.cookie, self.session, self.folder
                ),
                page: self.folder.clone(),
            };
        }
        match uri.path().strip_prefix(&self.folder) {
            Some(name) if self.has_cookie(headers) => Verdict::Serve(name.to_owned()),
            _ => Verdict::Refuse(403, NO_LINK),
        }
    }

    /// Uses the token up if the query has it.
    fn use_token(&self, query: &str) -> bool {
        let given = query.strip_prefix("token=").unwrap_or("");
        let mut token = self.token.lock().expect("never poisoned");
        token.take_if(|token| is_same(token, given)).is_some()
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let lists = headers.get_all(COOKIE).iter();
        let cookies = lists.filter_map(|list| list.to_str().ok());
        let mut cookies = cookies.flat_map(|list| list.split(';'));
        cookies.any(|cookie| match cookie.trim().split_once('=') {
            Some((name, value)) => name == self.cookie && is_same(&self.session, value),
            None => false,
        })
    }
}

/// The value of a header that is there once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a browser that names this host calls this host, on any port.
fn is_own(host: &str) -> bool {
    OWN_NAMES.iter().any(|name| {
        let rest = host.strip_prefix(name);
        rest.is_some_and(|rest| {
            let port = rest.strip_prefix(':');
            rest.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_ok())
        })
    })
}

/// Compares with a secret in a time that does not tell how much of it was right.
fn is_same(secret: &str, given: &str) -> bool {
    let pairs = secret.bytes().zip(given.bytes());
    secret.len() == given.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// 128 random bits as text.
pub(crate) fn random_text() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(access: &Access, uri: &str, headers: &[(&'static str, &str)]) -> Verdict {
        let mut map = HeaderMap::new();
        map.insert("host", "127.0.0.1:4711".parse().unwrap());
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        access.decide(&Method::GET, &uri.parse().unwrap(), &map)
    }

    /// Opens the link, and returns the cookie and the page.
    fn enter(access: &Access) -> (String, String) {
        let link = access.link().unwrap();
        match decide(access, &link, &[]) {
            Verdict::Enter { cookie, page } => (cookie.split(';').next().unwrap().to_owned(), page),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_link_works_once() {
        let access = Access::new(4711).unwrap();
        let link = access.link().unwrap();
        let (cookie, page) = enter(&access);
        assert_eq!(access.link(), None);
        assert_eq!(decide(&access, &link, &[]), Verdict::Refuse(403, NO_LINK));
        let state = format!("{page}state");
        let with_cookie = decide(&access, &state, &[("cookie", &format!("x=1; {cookie}"))]);
        assert_eq!(with_cookie, Verdict::Serve("state".to_owned()));
    }

    #[test]
    fn nobody_else_gets_in() {
        let access = Access::new(4711).unwrap();
        for query in ["/?token=", "/?token=00000000000000000000000000000000", "/"] {
            assert_eq!(decide(&access, query, &[]), Verdict::Refuse(403, NO_LINK));
        }
        let (cookie, page) = enter(&access);
        let wrong = format!("{}0", &cookie[..cookie.len() - 1]);
        let wrong = if wrong == cookie {
            format!("{}1", &cookie[..cookie.len() - 1])
        } else {
            wrong
        };
        for headers in [
            vec![],
            vec![("cookie", wrong.as_str())],
            vec![("cookie", "titin_view_4711")],
        ] {
            assert_eq!(
                decide(&access, &page, &headers),
                Verdict::Refuse(403, NO_LINK)
            );
        }
        for path in ["/", "/state", "/0/state"] {
            assert_eq!(
                decide(&access, path, &[("cookie", &cookie)]),
                Verdict::Refuse(403, NO_LINK)
            );
        }
    }

    #[test]
    fn other_names_and_origins_are_refused() {
        let access = Access::new(4711).unwrap();
        let (cookie, page) = enter(&access);
        let ask = |headers: &[(&'static str, &str)]| {
            decide(&access, &page, &[headers, &[("cookie", &cookie)]].concat())
        };
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:4711",
            "localhost:port",
            "localhost:",
            "",
            "127.0.0.1:70000",
        ] {
            assert_eq!(
                ask(&[("host", host)]),
                Verdict::Refuse(403, OTHER_NAME),
                "{host}"
            );
        }
        for host in ["localhost:8000", "127.0.0.1", "[::1]:4711"] {
            assert_eq!(
                ask(&[("host", host)]),
                Verdict::Serve(String::new()),
                "{host}"
            );
        }
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost:4711",
            "https://127.0.0.1:4711",
        ] {
            assert_eq!(
                ask(&[("origin", origin)]),
                Verdict::Refuse(403, OTHER_ORIGIN),
                "{origin}"
            );
        }
        assert_eq!(
            ask(&[("origin", "http://127.0.0.1:4711")]),
            Verdict::Serve(String::new())
        );
    }

    #[test]
    fn only_get_and_head_are_answered() {
        let access = Access::new(4711).unwrap();
        let link: Uri = access.link().unwrap().parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("host", "localhost:4711".parse().unwrap());
        for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
            assert_eq!(
                access.decide(&method, &link, &headers),
                Verdict::Refuse(405, NO_METHOD)
            );
        }
        assert_eq!(
            access.decide(&Method::HEAD, &link, &headers),
            Verdict::Refuse(403, NO_LINK)
        );
        assert!(access.link().is_some());
    }
}
