//! Labels, tags and attributes as the JSON object that is a point's metadata.

use crate::Refusal;
use crate::json::{write_inside, write_string};

/// Bytes of a point's metadata: what the API takes.
pub const METADATA_BYTES_MAX: usize = 16_384;
/// Bytes of the metadata of all series of a body that are read; those that a sink recalls do not count. OTLP and
/// remote write 2.0 send a label once and refer to it, so that a small body could make a series of the maximum size
/// out of every few bytes.
pub const METADATA_TOTAL_BYTES_MAX: usize = 512 << 20;

/// Bytes of the label that a bucket or quantile adds: `"quantile":"",` and a number.
const LABEL_BYTES_MAX: usize = 48;

/// A JSON object in the making. One buffer serves all series of a body.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// `{` and members, each followed by a comma; once closed the object, or nothing.
    json: Vec<u8>,
    /// What is left of [`METADATA_TOTAL_BYTES_MAX`].
    left: usize,
}

impl Metadata {
    pub(crate) fn new() -> Self {
        Self {
            json: Vec::with_capacity(512),
            left: METADATA_TOTAL_BYTES_MAX,
        }
    }

    /// Begins an object without members.
    pub(crate) fn begin(&mut self) {
        self.json.clear();
        self.json.push(b'{');
    }

    /// Begins an object with members, each followed by a comma.
    pub(crate) fn begin_with(&mut self, members: &[u8]) {
        self.begin();
        self.members(members);
    }

    /// Adds members that are written already, each followed by a comma.
    pub(crate) fn members(&mut self, members: &[u8]) {
        self.json.extend_from_slice(members);
    }

    /// Adds a member with a text.
    #[inline]
    pub(crate) fn text(&mut self, name: &[u8], value: &[u8]) {
        // What is too long already is not made longer: its references may repeat a long text many times.
        if self.json.len() <= METADATA_BYTES_MAX {
            self.json.push(b'"');
            write_inside(name, &mut self.json);
            self.json.extend_from_slice(b"\":\"");
            write_inside(value, &mut self.json);
            self.json.extend_from_slice(b"\",");
        }
    }

    /// As [`Metadata::text`], without a byte that JSON escapes.
    #[inline]
    pub(crate) fn plain(&mut self, name: &[u8], value: &[u8]) {
        if self.json.len() <= METADATA_BYTES_MAX {
            self.json.reserve(name.len() + value.len() + 6);
            self.json.push(b'"');
            self.json.extend_from_slice(name);
            self.json.extend_from_slice(b"\":\"");
            self.json.extend_from_slice(value);
            self.json.extend_from_slice(b"\",");
        }
    }

    /// Adds a member whose value `write` appends as JSON.
    pub(crate) fn json<E>(
        &mut self,
        name: &[u8],
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.is_too_long() {
            true => Ok(()),
            false => write_member(name, write, &mut self.json),
        }
    }

    /// Whether no further member would make a difference.
    pub(crate) fn is_too_long(&self) -> bool {
        self.json.len() > METADATA_BYTES_MAX
    }

    /// Ends the object.
    ///
    /// # Errors
    /// It is too long by itself or with all others, or its text is not UTF-8.
    #[inline]
    pub(crate) fn close<'e>(&mut self) -> Result<(), Refusal<'e>> {
        match self.json.last_mut() {
            Some(last) if *last == b',' => *last = b'}',
            _ => self.json.clear(),
        }
        if self.is_too_long() {
            return Err(Refusal::MetadataTooLong);
        }
        self.spend()
    }

    /// Counts the closed object.
    fn spend<'e>(&mut self) -> Result<(), Refusal<'e>> {
        // The first that is too much ends it for all behind it, so that they cost nothing.
        match self.left.checked_sub(self.json.len()) {
            Some(left) => self.left = left,
            None => self.left = 0,
        }
        self.check_total()
    }

    /// Refuses a series before its metadata is built, once all together are too long.
    pub(crate) const fn check_total<'e>(&self) -> Result<(), Refusal<'e>> {
        match self.left {
            0 => Err(Refusal::MetadataTotal),
            _ => Ok(()),
        }
    }

    /// Checks that the closed object may be used with one more label of at most [`LABEL_BYTES_MAX`], `times` times.
    pub(crate) fn check_labels<'e>(&self, times: usize) -> Result<(), Refusal<'e>> {
        let bytes = self.json.len() + LABEL_BYTES_MAX;
        if bytes > METADATA_BYTES_MAX {
            Err(Refusal::MetadataTooLong)
        } else if bytes * times >= self.left {
            Err(Refusal::MetadataTotal)
        } else {
            Ok(())
        }
    }

    /// Shows the closed object with one more label, and takes it away again. See [`Metadata::check_labels`].
    pub(crate) fn with_label<'e, T>(
        &mut self,
        name: &str,
        value: &[u8],
        show: impl FnOnce(&str) -> T,
    ) -> Result<T, Refusal<'e>> {
        let closed = self.json.len();
        match self.json.last_mut() {
            Some(last) => *last = b',',
            None => self.json.push(b'{'),
        }
        self.plain(name.as_bytes(), value);
        self.close()?;
        let shown = show(self.closed()?);
        self.json.truncate(closed);
        if let Some(last) = self.json.last_mut() {
            *last = b'}';
        }
        Ok(shown)
    }

    /// The closed object as text: a JSON object, or "".
    #[inline]
    pub(crate) fn closed<'e>(&self) -> Result<&str, Refusal<'e>> {
        std::str::from_utf8(&self.json).map_err(|_| Refusal::NotUtf8)
    }
}

/// Appends a member whose value `write` appends as JSON, and a comma.
pub(crate) fn write_member<E>(
    name: &[u8],
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    json: &mut Vec<u8>,
) -> Result<(), E> {
    write_string(name, json);
    json.push(b':');
    write(json)?;
    json.push(b',');
    Ok(())
}
