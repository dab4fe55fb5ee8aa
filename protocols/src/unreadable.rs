//! Why nothing of a body is stored.

use crate::wire::Malformed;

/// A body that cannot be read. The texts are for the sender.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The first bytes of the compressed body announce more than the limit.
    #[error("the body is larger than {max} bytes after decompression; send less at once")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// Not the block format of Snappy.
    #[error("the body is not a Snappy block: {0}")]
    Snappy(#[from] snap::Error),
    /// A Snappy block announces more bytes than its length can hold.
    #[error("the body is not a Snappy block: it is too short for the {0} bytes that it announces")]
    SnappyLength(usize),
    /// Not protobuf, or another message.
    #[error("the body is not the protobuf message that its Content-Type names: {0}")]
    Protobuf(#[from] Malformed),
    /// Not JSON, or not of the shape of the message.
    #[error("the body is not OTLP metrics as JSON: {0}")]
    Json(#[from] serde_json::Error),
}
