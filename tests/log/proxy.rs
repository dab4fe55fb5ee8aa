//! A TCP proxy in front of a server, which breaks connections as a test tells it to.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What happens to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They pass.
    None,
    /// Connections end when the client sends something, which does not arrive.
    LoseRequests,
    /// What the client sends arrives; the connection ends before the answer does.
    LoseAnswers,
    /// As `LoseAnswers`, but the connection stays open and silent.
    Silence,
    /// What the client sends arrives when [`Proxy::deliver`] is called, also if the client has ended the connection by then.
    Late,
}

struct State {
    fault: Fault,
    /// Only what the client sends with these bytes in it meets the fault.
    part: &'static [u8],
    /// How many times the fault still happens; then bytes pass.
    times: u32,
}

/// What is late.
#[derive(Default)]
struct Late {
    is_waiting: Mutex<bool>,
    delivered: Condvar,
}

/// The proxy. Its threads end with the process.
pub struct Proxy {
    pub port: u16,
    state: Arc<Mutex<State>>,
    late: Arc<Late>,
    /// Connections whose server has not ended them.
    open: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            fault: Fault::None,
            part: b"",
            times: 0,
        }));
        let late: Arc<Late> = Arc::default();
        let to_deliver = Arc::clone(&late);
        let shared = Arc::clone(&state);
        let open: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&open);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", to)) {
                    counted.fetch_add(1, Ordering::SeqCst);
                    join(client, server, &shared, &to_deliver, &counted);
                }
            }
        });
        Proxy {
            port,
            state,
            late,
            open,
        }
    }

    /// Connections that the server has not ended, and whose client knows it where it did.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The next time this is possible, and as many times as given, this happens.
    pub fn fail(&self, fault: Fault, times: u32) {
        self.fail_with(b"", fault, times);
    }

    /// As `fail`, for what has these bytes in it.
    pub fn fail_with(&self, part: &'static [u8], fault: Fault, times: u32) {
        *self.state.lock().unwrap() = State { fault, part, times };
    }

    /// Whether something is late.
    pub fn is_late(&self) -> bool {
        *self.late.is_waiting.lock().unwrap()
    }

    /// Delivers what is late.
    pub fn deliver(&self) {
        *self.late.is_waiting.lock().unwrap() = false;
        self.late.delivered.notify_all();
    }
}

/// Copies bytes in both directions, each on a thread.
fn join(
    client: TcpStream,
    server: TcpStream,
    state: &Arc<Mutex<State>>,
    late: &Arc<Late>,
    open: &Arc<AtomicUsize>,
) {
    let mut requests = client.try_clone().unwrap();
    let mut to_server = server.try_clone().unwrap();
    let (shared, silent) = (Arc::clone(state), Arc::new(Mutex::new(false)));
    let (is_silent, late) = (Arc::clone(&silent), Arc::clone(late));
    // An error ends the connection in both directions, as the end of either side does.
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = requests.read(&mut buffer) {
            let fault = {
                let mut state = shared.lock().unwrap();
                let part = state.part;
                let has_part = part.is_empty() || buffer[..length].windows(part.len()).any(|it| it == part);
                match state.times {
                    1.. if has_part => {
                        state.times -= 1;
                        state.fault
                    }
                    _ => Fault::None,
                }
            };
            match fault {
                Fault::None => {}
                Fault::LoseRequests => break,
                Fault::LoseAnswers | Fault::Silence => *silent.lock().unwrap() = true,
                Fault::Late => {
                    let mut is_waiting = late.is_waiting.lock().unwrap();
                    *is_waiting = true;
                    while *is_waiting {
                        is_waiting = late.delivered.wait(is_waiting).unwrap();
                    }
                }
            }
            if to_server.write_all(&buffer[..length]).is_err() {
                break;
            }
            if fault == Fault::LoseAnswers {
                let _ = requests.shutdown(Shutdown::Both);
                // The server must have read it before it notices the end.
                let _ = to_server.shutdown(Shutdown::Write);
                return;
            }
        }
        let _ = requests.shutdown(Shutdown::Both);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let (mut answers, mut to_client) = (server, client);
    let open = Arc::clone(open);
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(length @ 1..) = answers.read(&mut buffer) {
            if !*is_silent.lock().unwrap() && to_client.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        if !*is_silent.lock().unwrap() {
            let _ = to_client.shutdown(Shutdown::Both);
        }
        open.fetch_sub(1, Ordering::SeqCst);
    });
}
