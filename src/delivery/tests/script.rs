//! A scripted transport that records its requests.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::delivery::transport::{AttemptFuture, Outcome, Request, Transport};

/// The behaviour of a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Status(u16),
    /// Refuses the connection.
    Refuse,
    /// Does not respond until it is released.
    Hold,
}

/// Replies by URL prefix and number of earlier requests. Clones share the script.
#[derive(Clone, Default)]
pub(super) struct Script(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    sent: Vec<Request>,
    replies: Vec<(&'static str, Vec<Reply>)>,
    held: Vec<(String, oneshot::Sender<u16>)>,
}

impl Script {
    /// Sets the replies of receivers whose URL has this prefix: in order, then the last one repeatedly.
    pub(super) fn answer(&self, url: &'static str, replies: impl Into<Vec<Reply>>) {
        let mut state = self.0.lock();
        state.replies.retain(|(known, _)| *known != url);
        state.replies.push((url, replies.into()));
    }

    /// Releases all requests held at URLs with this prefix.
    pub(super) fn release(&self, url: &str, status: u16) {
        let held = std::mem::take(&mut self.0.lock().held);
        for (at, reply) in held {
            if at.starts_with(url) {
                let _ = reply.send(status);
            } else {
                self.0.lock().held.push((at, reply));
            }
        }
    }

    pub(super) fn held(&self) -> usize {
        self.0.lock().held.len()
    }

    /// The requests sent to URLs with this prefix.
    pub(super) fn sent(&self, url: &str) -> Vec<Request> {
        let state = self.0.lock();
        let sent = state.sent.iter().filter(|sent| sent.url.starts_with(url));
        sent.cloned().collect()
    }

    /// The transport that follows the script; called on the actor's thread.
    pub(super) fn transport(self) -> Rc<dyn Transport> {
        Rc::new(self)
    }
}

impl Transport for Script {
    fn attempt(&self, request: Request) -> AttemptFuture {
        let mut state = self.0.lock();
        let before = state.sent.iter().filter(|sent| sent.url == request.url).count();
        let replies = state.replies.iter().find(|(url, _)| request.url.starts_with(url));
        let replies = replies.map_or(&[][..], |(_, replies)| replies);
        let reply = replies.get(before).or(replies.last()).copied();
        let answer = match reply.unwrap_or(Reply::Status(200)) {
            Reply::Status(status) => Ok(status),
            Reply::Refuse => Err("connection refused".to_owned()),
            Reply::Hold => {
                let (release, released) = oneshot::channel();
                state.held.push((request.url.clone(), release));
                state.sent.push(request);
                return Box::pin(async move {
                    let status = released.await.map_err(|_| "the test is over".to_owned());
                    outcome(status)
                });
            }
        };
        state.sent.push(request);
        Box::pin(std::future::ready(outcome(answer)))
    }
}

fn outcome(answer: Result<u16, String>) -> Outcome {
    Outcome {
        answer,
        took: Duration::from_millis(7),
    }
}

pub(super) fn header<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    let header = request.headers.iter().find(|(known, _)| *known == name);
    header.map(|(_, value)| value.as_str())
}
