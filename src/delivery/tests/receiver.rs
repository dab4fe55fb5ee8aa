//! A local receiver: accepts connections, records requests, and answers as scripted.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Answers a request on its connection; `false` closes it.
pub(super) type Answer = dyn Fn(&mut TcpStream) -> bool + Send + Sync;

/// One listener. Its threads end with the test process.
pub(super) struct Receiver {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Received>>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Received {
    /// Request line and headers, in order, without their line ends.
    pub(super) head: Vec<String>,
    pub(super) body: Vec<u8>,
}

impl Receiver {
    pub(super) fn start(
        address: SocketAddr,
        answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::listening(TcpListener::bind(address).unwrap(), answer)
    }

    /// Two receivers at one port of two addresses, which answer every request with 200.
    pub(super) fn pair(addresses: [IpAddr; 2]) -> [Self; 2] {
        // The port that is free at one address may be taken at the other.
        let listeners = std::iter::repeat_with(|| {
            let first = TcpListener::bind((addresses[0], 0))?;
            let second = TcpListener::bind((addresses[1], first.local_addr()?.port()))?;
            io::Result::Ok([first, second])
        });
        let listeners = listeners.take(100).find_map(Result::ok).expect("a port");
        listeners.map(|listener| Self::listening(listener, with_status("200 OK")))
    }

    fn listening(
        listener: TcpListener,
        answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let receiver = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            requests: Arc::default(),
        };
        let (connections, requests) = (Arc::clone(&receiver.connections), Arc::clone(&receiver.requests));
        let answer: Arc<Answer> = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &requests, &*answer));
            }
        });
        receiver
    }

    /// A receiver that answers every request with this status.
    pub(super) fn answering(address: SocketAddr, status: &'static str) -> Self {
        Self::start(address, with_status(status))
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook?a=b", self.address)
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(super) fn requests(&self) -> Vec<Received> {
        self.requests.lock().clone()
    }
}

fn with_status(status: &'static str) -> impl Fn(&mut TcpStream) -> bool {
    move |stream| {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes()).is_ok()
    }
}

fn serve(mut stream: TcpStream, requests: &Mutex<Vec<Received>>, answer: &Answer) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(&mut reader) {
        requests.lock().push(request);
        if !answer(&mut stream) {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head
        .iter()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Received { head, body })
}
