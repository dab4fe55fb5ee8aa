//! Framing of an HTTP answer: by length or in chunks.

use std::ops::Range;

const HEAD_END: &[u8] = b"\r\n\r\n";
const LINE_END: &[u8] = b"\r\n";

/// The parsed head of an answer.
#[derive(Clone, Copy)]
pub struct Head {
    pub status: u16,
    /// Whether the server closes the connection after the answer.
    pub closes: bool,
    body_start: usize,
    /// `None` if the body is chunked.
    body_len: Option<usize>,
}

impl Head {
    /// Parses the head; `None` while it is incomplete.
    pub fn read(received: &[u8]) -> Option<Self> {
        let end = find(received, HEAD_END)?;
        let head = std::str::from_utf8(&received[..end]).ok()?.to_ascii_lowercase();
        let header = |name: &str| {
            let values = head.lines().filter_map(|line| line.split_once(':'));
            let mut values = values.filter(|(found, _)| *found == name);
            values.next().map(|(_, value)| value.trim())
        };
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self {
            status,
            closes: header("connection") == Some("close"),
            body_start: end + HEAD_END.len(),
            body_len: match status {
                204 => Some(0),
                _ => header("content-length").and_then(|len| len.parse().ok()),
            },
        })
    }

    /// Offset of the end of the answer; `None` while it is incomplete.
    pub fn end(&self, received: &[u8]) -> Option<usize> {
        match self.body_len {
            Some(len) => Some(self.body_start + len).filter(|end| received.len() >= *end),
            None => {
                let mut at = self.body_start;
                while let Some(chunk) = chunk_at(received, at) {
                    at = chunk.end + LINE_END.len();
                    if received.len() < at {
                        return None;
                    }
                    if chunk.is_empty() {
                        return Some(at);
                    }
                }
                None
            }
        }
    }

    /// The least number of bytes that a complete answer can have.
    pub fn length_min(&self) -> usize {
        self.body_start + self.body_len.unwrap_or(0)
    }

    /// Joins the chunks of a complete answer; returns the range of its body.
    pub fn join_chunks(&self, received: &mut [u8]) -> Range<usize> {
        if let Some(len) = self.body_len {
            return self.body_start..self.body_start + len;
        }
        let (mut at, mut end) = (self.body_start, self.body_start);
        while let Some(chunk) = chunk_at(received, at).filter(|chunk| !chunk.is_empty()) {
            at = chunk.end + LINE_END.len();
            let len = chunk.len();
            received.copy_within(chunk, end);
            end += len;
        }
        self.body_start..end
    }
}

/// Range of the content of the chunk that begins at `at`; it may extend beyond the received bytes.
fn chunk_at(received: &[u8], at: usize) -> Option<Range<usize>> {
    let line = received.get(at..)?;
    let line = &line[..find(line, LINE_END)?];
    let len = usize::from_str_radix(std::str::from_utf8(line).ok()?, 16).ok()?;
    let start = at + line.len() + LINE_END.len();
    Some(start..start + len)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|found| found == wanted)
}
