//! What a person presses: single keys of a terminal, or the same letters from a pipe.

use std::io::{IsTerminal, Read, stdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

use crate::world::NODES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Chooses the node that the next keys are about.
    Node(usize),
    /// Kills the node, or starts it again.
    Kill,
    /// Stops the node's process, or lets it go on.
    Freeze,
    /// Breaks the node's link to the database, or mends it.
    Database,
    /// Breaks the way of the other nodes to the node, or mends it.
    Nodes,
    /// Kills the database's primary.
    Primary,
    Quit,
}

/// The keys, for the person who presses them.
pub const HELP: [&str; 2] = [
    "1 2 3 choose a node: k kill or start, f freeze or wake, d cut off from the database or mend, n from the other nodes",
    "p kill the database's primary    q quit, and compare what was acknowledged with what is there",
];

pub struct Keys {
    pressed: Receiver<Key>,
    /// The modes that the terminal had.
    former: Option<Termios>,
}

impl Keys {
    /// Reads standard input, until it ends. A terminal passes single keys from now on, Ctrl-C too.
    pub fn open() -> Self {
        let former = stdin().is_terminal().then(|| {
            let former = tcgetattr(stdin()).unwrap();
            let mut modes = former.clone();
            // A signal of the terminal would reach the nodes, too.
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            modes.special_codes[SpecialCodeIndex::VMIN] = 1;
            modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(stdin(), OptionalActions::Now, &modes).unwrap();
            former
        });
        let (sender, pressed) = channel();
        let of_signals = sender.clone();
        // Both end with the process.
        thread::spawn(move || quit_by_signal(&of_signals));
        thread::spawn(move || read(&sender));
        Keys { pressed, former }
    }

    /// The next key, if one is pressed in this time.
    pub fn next(&self, within: Duration) -> Option<Key> {
        match self.pressed.recv_timeout(within) {
            Ok(key) => Some(key),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Key::Quit),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(former) = &self.former {
            // The terminal may be gone.
            let _ = tcsetattr(stdin(), OptionalActions::Now, former);
        }
    }
}

fn read(sender: &Sender<Key>) {
    for byte in stdin().lock().bytes() {
        let Ok(byte) = byte else { break };
        // The session may have ended.
        if let Some(key) = key(byte)
            && sender.send(key).is_err()
        {
            return;
        }
    }
    let _ = sender.send(Key::Quit);
}

fn key(byte: u8) -> Option<Key> {
    /// Of a terminal in raw mode.
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    match byte {
        b'1'..=b'9' => Some(usize::from(byte - b'1'))
            .filter(|node| *node < NODES)
            .map(Key::Node),
        b'k' => Some(Key::Kill),
        b'f' => Some(Key::Freeze),
        b'd' => Some(Key::Database),
        b'n' => Some(Key::Nodes),
        b'p' => Some(Key::Primary),
        b'q' | CTRL_C | CTRL_D => Some(Key::Quit),
        _ => None,
    }
}

/// A session that is told to end does so in order.
fn quit_by_signal(sender: &Sender<Key>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let [mut interrupt, mut terminate, mut hang_up] = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ]
        .map(|kind| signal(kind).unwrap());
        loop {
            futures_util::future::select_all([
                Box::pin(interrupt.recv()),
                Box::pin(terminate.recv()),
                Box::pin(hang_up.recv()),
            ])
            .await;
            if sender.send(Key::Quit).is_err() {
                return;
            }
        }
    });
}

#[test]
fn letters_are_keys_and_what_is_no_key_is_ignored() {
    let keys: Vec<Key> = b"2k \n9f\x03".iter().filter_map(|byte| key(*byte)).collect();
    assert_eq!(keys, [Key::Node(1), Key::Kill, Key::Freeze, Key::Quit]);
}
