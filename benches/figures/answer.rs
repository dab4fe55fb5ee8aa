//! How an answer is framed: by its length, or in chunks.

use std::ops::Range;

const HEAD_END: &[u8] = b"\r\n\r\n";
const LINE_END: &[u8] = b"\r\n";

/// What the head of an answer says.
#[derive(Clone, Copy)]
pub struct Head {
    pub status: u16,
    /// Whether the connection ends with the answer.
    pub closes: bool,
    body_start: usize,
    /// `None`: it comes in chunks.
    body_len: Option<usize>,
}

impl Head {
    /// The head of what has come; `None` while it is not whole.
    pub fn read(received: &[u8]) -> Option<Self> {
        let end = find(received, HEAD_END)?;
        let head = std::str::from_utf8(&received[..end]).ok()?.to_ascii_lowercase();
        let header = |name: &str| {
            let values = head.lines().filter_map(|line| line.split_once(':'));
            let mut values = values.filter(|(found, _)| *found == name);
            values.next().map(|(_, value)| value.trim())
        };
        Some(Self {
            status: head.split(' ').nth(1)?.parse().ok()?,
            closes: header("connection") == Some("close"),
            body_start: end + HEAD_END.len(),
            body_len: header("content-length").and_then(|len| len.parse().ok()),
        })
    }

    /// Where the answer ends; `None` while it is not whole.
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

    /// Bytes that have to be there before the answer can be whole.
    pub fn least(&self) -> usize {
        self.body_start + self.body_len.unwrap_or(0)
    }

    /// Where the body is of an answer that is whole, brought together.
    pub fn gather(&self, received: &mut [u8]) -> Range<usize> {
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

/// The content of the chunk that begins there; it may reach behind what has come.
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
