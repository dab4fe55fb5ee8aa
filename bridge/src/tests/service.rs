//! A small service with `POST /api/v2/write` as the contract has it, and with the faults that a test asks for.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// A key that may write.
pub const KEY: &str = "svc_w_key";
/// A line with this text is refused.
pub const BAD: &str = "refuse-me";
const PATIENCE: Duration = Duration::from_secs(60);

/// What to do with a request instead of storing and answering 204.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Nothing is stored; this status, with `Retry-After: 0`.
    Status(u16),
    /// Everything is stored, and the connection ends without an answer.
    StoreThenReset,
    /// Nothing is stored, and the connection ends without an answer.
    Reset,
    /// Nothing is stored, and the request stays unanswered.
    Silence,
}

#[derive(Default)]
struct State {
    stored: RefCell<Vec<String>>,
    requests: RefCell<Vec<String>>,
    heads: RefCell<Vec<String>>,
    faults: RefCell<VecDeque<Fault>>,
    lines_max: Cell<Option<usize>>,
    changed: Notify,
}

/// The service. It ends with the last handle.
#[derive(Clone)]
pub struct Service {
    state: Rc<State>,
    pub url: String,
}

impl Service {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Rc::new(State::default());
        let served = Rc::clone(&state);
        actix_web::rt::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let state = Rc::clone(&served);
                // A connection that breaks is the client's business.
                actix_web::rt::spawn(async move { serve(connection, &state).await.ok() });
            }
        });
        Self { state, url }
    }

    /// The next requests meet these faults.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.faults.borrow_mut().extend(faults);
    }

    /// Requests with more lines are 413.
    pub fn limit_lines(&self, lines_max: usize) {
        self.state.lines_max.set(Some(lines_max));
    }

    /// All lines that were stored, repetitions included.
    pub fn stored(&self) -> Vec<String> {
        self.state.stored.borrow().clone()
    }

    /// The bodies of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.state.requests.borrow().clone()
    }

    /// The head of the last request.
    pub fn head(&self) -> String {
        self.state.heads.borrow().last().cloned().unwrap_or_default()
    }

    /// Waits until something holds of the service.
    #[track_caller]
    pub fn until(&self, holds: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let waiting = async {
                loop {
                    let changed = self.state.changed.notified();
                    if holds(self) {
                        break;
                    }
                    changed.await;
                }
            };
            let waited = tokio::time::timeout(PATIENCE, waiting).await;
            let (stored, requests) = (self.stored().len(), self.requests().len());
            assert!(
                waited.is_ok(),
                "{caller}: stored {stored} lines of {requests} requests"
            );
        }
    }
}

async fn serve(connection: TcpStream, state: &State) -> std::io::Result<()> {
    let mut connection = BufReader::new(connection);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if connection.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length:")?
                .trim()
                .parse()
                .ok()
        });
        let mut body = vec![0; length.unwrap_or_default()];
        connection.read_exact(&mut body).await?;
        let body = String::from_utf8(body).unwrap();
        state.heads.borrow_mut().push(head.clone());
        state.requests.borrow_mut().push(body.clone());
        let fault = state.faults.borrow_mut().pop_front();
        let answer = match fault {
            None => answer(state, &head, &body),
            Some(Fault::Status(status)) => (status, r#"{"message":"not now"}"#.to_owned()),
            Some(Fault::StoreThenReset) => {
                answer(state, &head, &body);
                state.changed.notify_waiters();
                return Ok(());
            }
            Some(Fault::Reset) => {
                state.changed.notify_waiters();
                return Ok(());
            }
            Some(Fault::Silence) => {
                state.changed.notify_waiters();
                std::future::pending().await
            }
        };
        state.changed.notify_waiters();
        let (status, body) = answer;
        let head = format!(
            "HTTP/1.1 {status} Status\r\nretry-after: 0\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all(head.as_bytes()).await?;
        connection.write_all(body.as_bytes()).await?;
    }
}

/// Stores what is good. Returns status and body.
fn answer(state: &State, head: &str, body: &str) -> (u16, String) {
    if !head.starts_with("POST /api/v2/write?precision=ns") {
        return (404, r#"{"message":"no such route"}"#.to_owned());
    }
    if !head.to_ascii_lowercase().contains(&format!("x-api-key: {KEY}")) {
        return (
            401,
            r#"{"code":"unauthorized","message":"unknown key"}"#.to_owned(),
        );
    }
    let points = points(body);
    if state.lines_max.get().is_some_and(|most| points.len() > most) {
        return (
            413,
            r#"{"code":"request too large","message":"smaller"}"#.to_owned(),
        );
    }
    let mut refused = Vec::new();
    for (number, point) in points {
        if point.contains(BAD) {
            refused.push(format!("line {number}: that is refused"));
        } else {
            state.stored.borrow_mut().push(point.to_owned());
        }
    }
    match refused.is_empty() {
        true => (204, String::new()),
        false => (
            400,
            format!(r#"{{"code":"invalid","message":"{}"}}"#, refused.join("; ")),
        ),
    }
}

/// The points of a body with the number of the physical line at which each starts.
fn points(body: &str) -> Vec<(usize, &str)> {
    let (mut points, mut from, mut number, mut first) = (Vec::new(), 0, 1, 1);
    let (mut in_text, mut is_escaped) = (false, false);
    for (at, c) in body.char_indices() {
        match c {
            '"' if !is_escaped => in_text = !in_text,
            '\n' => {
                number += 1;
                if !in_text {
                    points.push((first, &body[from..at]));
                    (from, first) = (at + 1, number);
                }
            }
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    points
}
