//! A TCP proxy on a link between two processes, which breaks the link as a test tells it to. Where it leads can be changed,
//! as an address is moved to another machine.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What happens to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They pass.
    Pass,
    /// All connections end, and new ones end at once.
    Cut,
    /// They pass after this time.
    Delay(Duration),
    /// Nothing arrives, in either direction, and no connection ends. What was sent arrives when the link is mended, as on a
    /// network that loses packets for a while.
    Hold,
    /// The same for what clients send only; answers arrive.
    HoldRequests,
    /// As `Hold`, for the connections on which nodes renew their leases.
    HoldRenewals,
    /// What the client sends with these bytes at its begin is answered with the second ones, and the connection ends.
    Answer(&'static [u8], &'static [u8]),
}

struct State {
    mode: Mode,
    target: u16,
    /// What is changed in what clients send: bytes, and others of the same length.
    changes: Vec<(&'static [u8], &'static [u8])>,
    /// How often something was changed.
    changed: u64,
    /// Parts of what clients send, other than renewals of leases, that wait for the link to be mended.
    held: usize,
    /// Connections so far.
    accepted: u64,
    /// Both ends of the open connections.
    open: HashMap<u64, [TcpStream; 2]>,
}

/// The proxy. Its threads end with their connections, or with the process.
#[derive(Clone)]
pub struct Link {
    pub port: u16,
    shared: Arc<(Mutex<State>, Condvar)>,
}

/// One direction of a connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    /// Whether the client sends in this direction.
    is_request: bool,
    /// The end of what the client has sent, and whether it renews a lease here.
    sent: Arc<Mutex<(Vec<u8>, bool)>>,
}

impl Link {
    /// A link to this port of the machine.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = State {
            mode: Mode::Pass,
            target,
            changes: Vec::new(),
            changed: 0,
            held: 0,
            accepted: 0,
            open: HashMap::new(),
        };
        let link = Link {
            port: listener.local_addr().unwrap().port(),
            shared: Arc::new((Mutex::new(state), Condvar::new())),
        };
        let own = link.clone();
        thread::spawn(move || {
            for (number, client) in (0..).zip(listener.incoming().flatten()) {
                own.join(number, client);
            }
        });
        link
    }

    pub fn set(&self, mode: Mode) {
        let (state, changed) = &*self.shared;
        let mut state = state.lock().unwrap();
        state.mode = mode;
        if mode == Mode::Cut {
            state.end_all();
        }
        changed.notify_all();
    }

    /// Leads to another port. Connections to the former one end.
    pub fn lead_to(&self, target: u16) {
        let mut state = self.shared.0.lock().unwrap();
        state.target = target;
        state.end_all();
    }

    /// From the next connections on, these bytes are replaced by others of the same length in what clients send. The present
    /// connections end.
    pub fn change(&self, from: &'static [u8], to: &'static [u8]) {
        assert_eq!(from.len(), to.len(), "a message that is changed keeps its length");
        let mut state = self.shared.0.lock().unwrap();
        state.changes.push((from, to));
        state.end_all();
    }

    /// How often something was changed.
    pub fn changed(&self) -> u64 {
        self.shared.0.lock().unwrap().changed
    }

    /// How many connections there were.
    pub fn accepted(&self) -> u64 {
        self.shared.0.lock().unwrap().accepted
    }

    /// How much of what clients have sent waits for the link to be mended, renewals of leases left out.
    pub fn held(&self) -> usize {
        self.shared.0.lock().unwrap().held
    }

    fn join(&self, number: u64, client: TcpStream) {
        let (mode, target) = {
            let mut state = self.shared.0.lock().unwrap();
            state.accepted += 1;
            (state.mode, state.target)
        };
        // Otherwise the client's connection ends here.
        if mode != Mode::Cut
            && let Ok(server) = TcpStream::connect(("127.0.0.1", target))
            && client.set_nodelay(true).is_ok()
            && server.set_nodelay(true).is_ok()
        {
            let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
            self.shared.0.lock().unwrap().open.insert(number, ends);
            let sent = Arc::default();
            let [requests, answers] = [true, false].map(|is_request| {
                let (client, server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (from, to) = if is_request {
                    (client, server)
                } else {
                    (server, client)
                };
                let sent = Arc::clone(&sent);
                Direction {
                    from,
                    to,
                    is_request,
                    sent,
                }
            });
            let (link, own) = (self.clone(), self.clone());
            thread::spawn(move || own.relay(requests));
            thread::spawn(move || {
                link.relay(answers);
                link.shared.0.lock().unwrap().open.remove(&number);
            });
        }
    }

    /// Copies bytes in one direction, until either end ends it.
    fn relay(&self, mut direction: Direction) {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = direction.from.read(&mut buffer) {
            if direction.is_request {
                direction.note(&buffer[..length]);
                self.apply_changes(&mut buffer[..length]);
            }
            if let Some(answer) = self.pass(&direction, &buffer[..length]) {
                // The client may be gone.
                let _ = direction.from.write_all(answer);
                let _ = direction.from.shutdown(Shutdown::Both);
                break;
            }
            if direction.to.write_all(&buffer[..length]).is_err() {
                let _ = direction.from.shutdown(Shutdown::Both);
                break;
            }
        }
        if self.shared.0.lock().unwrap().mode == Mode::Hold {
            // Neither is the end of a connection seen at the other side.
            self.pass(&direction, &[]);
        }
        let _ = direction.to.shutdown(Shutdown::Write);
    }

    fn apply_changes(&self, bytes: &mut [u8]) {
        let mut state = self.shared.0.lock().unwrap();
        for (from, to) in state.changes.clone() {
            let mut rest = &mut *bytes;
            while let Some(at) = rest.windows(from.len()).position(|part| part == from) {
                let (changed, after) = rest[at..].split_at_mut(from.len());
                changed.copy_from_slice(to);
                rest = after;
                state.changed += 1;
            }
        }
    }

    /// Waits until these bytes may pass. Returns what they are answered with, if they may not.
    fn pass(&self, direction: &Direction, bytes: &[u8]) -> Option<&'static [u8]> {
        let (state, changed) = &*self.shared;
        let began = Instant::now();
        let mut state = state.lock().unwrap();
        loop {
            match state.mode {
                Mode::Hold => {}
                Mode::HoldRequests if direction.is_request => {}
                Mode::HoldRenewals if direction.renews() => {}
                Mode::Delay(time) if began.elapsed() < time => {
                    let left = time.saturating_sub(began.elapsed());
                    state = changed.wait_timeout(state, left).unwrap().0;
                    continue;
                }
                Mode::Answer(begin, answer) if direction.is_request && bytes.starts_with(begin) => {
                    return Some(answer);
                }
                Mode::Pass
                | Mode::Cut
                | Mode::Delay(_)
                | Mode::HoldRequests
                | Mode::HoldRenewals
                | Mode::Answer(..) => return None,
            }
            let counts = usize::from(direction.is_request && !bytes.is_empty() && !direction.renews());
            state.held += counts;
            state = changed.wait(state).unwrap();
            state.held -= counts;
        }
    }
}

impl State {
    fn end_all(&mut self) {
        for end in self.open.drain().flat_map(|(_, ends)| ends) {
            // It may have ended already.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// What a node sends on the connection on which it renews its lease: the begin of the statement, as it is prepared.
const RENEWAL: &[u8] = b"WITH renewed AS (";

impl Direction {
    /// Notes whether the connection is one that renews a lease.
    fn note(&self, bytes: &[u8]) {
        let mut sent = self.sent.lock().unwrap();
        if sent.1 {
            return;
        }
        let (end, is_found) = &mut *sent;
        end.extend_from_slice(bytes);
        *is_found = end.windows(RENEWAL.len()).any(|part| part == RENEWAL);
        let cut = end.len().saturating_sub(RENEWAL.len());
        end.drain(..cut);
    }

    fn renews(&self) -> bool {
        self.sent.lock().unwrap().1
    }
}
