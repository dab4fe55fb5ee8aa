//! A mail server: listens on a free local port, records mails, and answers by a script.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for an expected mail, on two busy cores.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);

/// A mail, whether it was accepted or not.
#[derive(Clone, Debug)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    /// The whole message, with `\n` as line end.
    pub text: String,
}

impl Mail {
    /// The value of a header, unfolded.
    pub fn header(&self, name: &str) -> Option<String> {
        let (head, _) = self.text.split_once("\n\n")?;
        let unfolded = head.replace("\n ", " ");
        let start = format!("{name}: ");
        unfolded
            .lines()
            .find_map(|line| Some(line.strip_prefix(&start)?.to_owned()))
    }
}

#[derive(Default)]
struct Shared {
    mails: Mutex<Vec<Mail>>,
    arrived: Condvar,
    /// Commands as they came, for what must not be said.
    commands: Mutex<Vec<String>>,
}

pub struct MailServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl MailServer {
    /// Answers the n-th mail, counted from 0, by `reply`.
    pub fn start(reply: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (for_thread, reply) = (Arc::clone(&shared), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, reply) = (Arc::clone(&for_thread), Arc::clone(&reply));
                // A client that breaks off is its own business.
                thread::spawn(move || drop(serve(&stream, &shared, &*reply)));
            }
        });
        MailServer { address, shared }
    }

    /// Waits until so many mails have come; returns all.
    #[track_caller]
    pub fn wait(&self, count: usize) -> Vec<Mail> {
        let mut mails = self.shared.mails.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + ARRIVES_WITHIN;
        while mails.len() < count {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{count} mails were expected, not {mails:?}");
            let waited = self.shared.arrived.wait_timeout(mails, left);
            mails = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        mails.clone()
    }

    /// All commands so far.
    pub fn commands(&self) -> Vec<String> {
        self.shared
            .commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn serve(
    stream: &TcpStream,
    shared: &Shared,
    reply: &(dyn Fn(usize) -> &'static str + Send + Sync),
) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    out.write_all(b"220 mail.test ESMTP\r\n")?;
    let (mut from, mut to) = (String::new(), Vec::new());
    while let Some(line) = lines.next() {
        let line = line?;
        shared
            .commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(line.clone());
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => "250-mail.test\r\n250-8BITMIME\r\n250 SMTPUTF8",
            "MAIL" => {
                from = line;
                "250 ok"
            }
            "RCPT" => {
                to.push(line);
                "250 ok"
            }
            "DATA" => {
                out.write_all(b"354 go on\r\n")?;
                let mut text = String::new();
                for line in lines.by_ref() {
                    let line = line?;
                    if line == "." {
                        break;
                    }
                    text.push_str(line.strip_prefix('.').unwrap_or(&line));
                    text.push('\n');
                }
                let mut mails = shared.mails.lock().unwrap_or_else(PoisonError::into_inner);
                let answer = reply(mails.len());
                let to = std::mem::take(&mut to);
                mails.push(Mail {
                    from: from.clone(),
                    to,
                    text,
                });
                shared.arrived.notify_all();
                answer
            }
            "QUIT" => "221 bye",
            _ => "502 unknown",
        };
        out.write_all(answer.as_bytes())?;
        out.write_all(b"\r\n")?;
    }
    Ok(())
}
