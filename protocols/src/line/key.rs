//! Measurement and tags: the key of a series.

use std::borrow::Cow;

use super::names::{Name, Names};
use super::scan;
use crate::Refusal;
use crate::metadata::Metadata;
use crate::sink::{KeyKind, SeriesKey, Sink};

/// The series of the last line whose key was in order.
pub(super) struct Key<'a> {
    /// The key as it stands in the body, without the space behind it; empty if there is none.
    raw: &'a [u8],
    /// Source and metadata of the last key that was read, rather than recalled.
    source: Cow<'a, str>,
    metadata: Metadata,
    /// Whether the sink knows it.
    announced: bool,
    /// Whether the sink was asked for it. A key with a backslash or a control character is not remembered, because finding
    /// its end takes reading it.
    may_be_recalled: bool,
    names: Names<'a>,
}

impl<'a> Key<'a> {
    pub(super) fn new() -> Self {
        Self {
            raw: &[],
            source: Cow::Borrowed(""),
            metadata: Metadata::new(),
            announced: false,
            may_be_recalled: false,
            names: Names::default(),
        }
    }

    /// Reads the key that begins at `start`, unless the sink remembers it. Returns where the space behind it stands.
    pub(super) fn read(
        &mut self,
        body: &'a [u8],
        start: usize,
        sink: &mut impl Sink,
    ) -> Result<usize, Refusal<'a>> {
        let end = start + self.raw.len();
        if !self.raw.is_empty() && body[start..].starts_with(self.raw) && body.get(end) == Some(&b' ') {
            return Ok(end);
        }
        self.raw = &[];
        self.announced = false;
        let space = scan::space(body, start);
        self.may_be_recalled = space.is_some();
        if let Some(end) = space
            && sink.recall(SeriesKey::new(KeyKind::Line, &body[start..end]))
        {
            self.raw = &body[start..end];
            self.announced = true;
            return Ok(end);
        }
        let end = self.build(body, start)?;
        self.raw = &body[start..end];
        Ok(end)
    }

    fn build(&mut self, body: &'a [u8], start: usize) -> Result<usize, Refusal<'a>> {
        let (measurement, mut at) = scan::token::<false>(body, start);
        if measurement.raw.is_empty() {
            return Err(Refusal::NoMeasurement);
        }
        self.source = text(scan::unescape(measurement, ESCAPABLE))?;
        self.metadata.begin();
        self.names.begin();
        while body.get(at) == Some(&b',') {
            let Name {
                token: name,
                end: name_end,
                ..
            } = self.names.next(body, at + 1);
            if name.raw.is_empty() {
                return Err(Refusal::EmptyName);
            }
            if body.get(name_end) != Some(&b'=') {
                return Err(Refusal::NoTagValue(name.raw));
            }
            let (value, value_end) = scan::token::<true>(body, name_end + 1);
            if body.get(value_end) == Some(&b'=') {
                return Err(Refusal::TagValueEquals(name.raw));
            }
            if value.raw.is_empty() {
                return Err(Refusal::NoTagValue(name.raw));
            }
            match name.plain && value.plain {
                true => self.metadata.plain(name.raw, value.raw),
                false => {
                    let (name, value) = (scan::unescape(name, ESCAPABLE), scan::unescape(value, ESCAPABLE));
                    self.metadata.text(&name, &value);
                }
            }
            if self.metadata.is_too_long() {
                return Err(Refusal::MetadataTooLong);
            }
            at = value_end;
        }
        if body.get(at) != Some(&b' ') {
            return Err(Refusal::NoFields);
        }
        self.names.end().map_err(Refusal::NameTwice)?;
        self.metadata.close()?;
        Ok(at)
    }

    /// Names the series to the sink, unless it is the current one.
    #[inline]
    pub(super) fn announce(&mut self, sink: &mut impl Sink) -> Result<(), Refusal<'a>> {
        if !self.announced {
            sink.series(&self.source, self.metadata.closed()?);
            if self.may_be_recalled {
                sink.remember(SeriesKey::new(KeyKind::Line, self.raw));
            }
            self.announced = true;
        }
        Ok(())
    }
}

/// What a backslash escapes outside of strings.
pub(super) const ESCAPABLE: &[u8] = b",= ";

/// A token as text.
#[inline]
pub(super) fn text<'a, 'e>(bytes: Cow<'a, [u8]>) -> Result<Cow<'a, str>, Refusal<'e>> {
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes)
            .map(Cow::Borrowed)
            .map_err(|_| Refusal::NotUtf8),
        Cow::Owned(bytes) => String::from_utf8(bytes)
            .map(Cow::Owned)
            .map_err(|_| Refusal::NotUtf8),
    }
}
