//! Which nodes clients use: those that answer `GET /ready`, as behind a load balancer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::client::Client;
use crate::world::World;

/// Time between two requests to a node.
const PERIOD: Duration = Duration::from_millis(250);
/// Time for an answer: a frozen node takes connections, and does not answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

pub struct Balancer {
    is_ready: Vec<Arc<AtomicBool>>,
    /// The threads that ask end when this does.
    _asking: Vec<Sender<()>>,
}

impl Balancer {
    /// Asks each node, on a thread of its own, for as long as this lives.
    pub fn start(world: &World) -> Self {
        let asked = world.nodes.iter().map(|node| {
            let is_ready = Arc::new(AtomicBool::new(true));
            let (asking, end) = channel();
            let (node, answered) = (node.client.clone(), Arc::clone(&is_ready));
            thread::spawn(move || ask(&node, &answered, &end));
            (is_ready, asking)
        });
        let (is_ready, asking) = asked.unzip();
        Balancer {
            is_ready,
            _asking: asking,
        }
    }

    /// The nodes that are ready.
    pub fn ready(&self) -> Vec<usize> {
        let nodes = self.is_ready.iter().enumerate();
        let ready = nodes.filter(|(_, is_ready)| is_ready.load(Ordering::SeqCst));
        ready.map(|(node, _)| node).collect()
    }
}

fn ask(node: &Client, is_ready: &AtomicBool, end: &Receiver<()>) {
    let client = Client::with_timeout(ANSWERED_WITHIN);
    while end.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
        // A node that was started again has another address.
        client.point_at(&node.base());
        let answer = client.get("/ready").try_send();
        let is_answer = answer.is_ok_and(|answer| answer.status == 200);
        is_ready.store(is_answer, Ordering::SeqCst);
    }
}
