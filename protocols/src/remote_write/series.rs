//! A time series of either message: its labels, then its samples.

use super::samples::{self, Numbers};
use crate::metadata::{METADATA_BYTES_MAX, Metadata};
use crate::names;
use crate::refusal::Fault;
use crate::wire::{Fields, Malformed};
use crate::{Refusal, SeriesKey, Sink};

/// The label that names the metric.
pub(super) const NAME: &[u8] = b"__name__";

/// Bytes of a time series' labels, with those that do not become metadata: the name and empty ones.
const LABEL_BYTES_MAX: usize = 2 * METADATA_BYTES_MAX;

/// A label as bytes of the message.
pub(super) type Label<'a> = (&'a [u8], &'a [u8]);

/// The labels of a time series. Each clone begins with the first.
pub(super) trait Labels<'a>: Clone {
    /// The next label; `None` behind the last.
    fn next(&mut self) -> Result<Option<Label<'a>>, Malformed>;

    /// Fields of the time series among which all samples are: fewer, once all labels were read.
    fn samples(&self) -> Fields<'a>;
}

/// Hands the time series of a message to a sink.
pub(super) struct Writer<'s, S> {
    pub(super) sink: &'s mut S,
    metadata: Metadata,
    /// Index of the time series.
    pub(super) entry: u32,
    /// Samples so far.
    pub(super) number: u32,
}

impl<'s, S: Sink> Writer<'s, S> {
    pub(super) fn new(sink: &'s mut S) -> Self {
        Self {
            sink,
            metadata: Metadata::new(),
            entry: 0,
            number: 0,
        }
    }

    /// Hands a time series over that the sink has recalled, whose samples are among `fields`.
    pub(super) fn recalled(&mut self, fields: Fields<'_>, numbers: Numbers) -> Result<(), Malformed> {
        samples::parse(self, None, fields, numbers)?;
        self.entry += 1;
        Ok(())
    }

    /// Hands a time series over, which the sink is to remember by `key`. Returns its metric name, if it is in order.
    pub(super) fn series<'a>(
        &mut self,
        mut labels: impl Labels<'a>,
        key: Option<SeriesKey<'a>>,
        numbers: Numbers,
    ) -> Result<Option<&'a str>, Malformed> {
        let source = match self.labels(&mut labels) {
            Ok(source) => {
                let source = std::str::from_utf8(source).map_err(|_| Malformed::NotUtf8)?;
                samples::parse(self, Some((source, key)), labels.samples(), numbers)?;
                Some(source)
            }
            Err(Fault::Body(malformed)) => return Err(malformed),
            Err(Fault::Entry(refusal)) => {
                // A body is unreadable whether or not the entry is refused for a label before that.
                while labels.next()?.is_some() {}
                let count = samples::count(labels.samples(), numbers)?;
                self.sink.refuse(self.entry, count, refusal);
                self.number += count;
                None
            }
        };
        self.entry += 1;
        Ok(source)
    }

    /// Builds the metadata. Returns the metric name.
    fn labels<'a>(&mut self, labels: &mut impl Labels<'a>) -> Result<&'a [u8], Fault<'a>> {
        self.metadata.check_total()?;
        self.metadata.begin();
        let (mut source, mut previous, mut ascending) = (&[][..], &[][..], true);
        // Also of labels that are left out, which references make as cheap as others.
        let mut bytes = 0;
        let first = labels.clone();
        while let Some((name, value)) = labels.next()? {
            if name.is_empty() {
                return Err(Refusal::EmptyName.into());
            }
            bytes += name.len() + value.len();
            if bytes > LABEL_BYTES_MAX {
                return Err(Refusal::MetadataTooLong.into());
            }
            ascending &= is_behind(name, previous);
            previous = name;
            if name == NAME {
                source = value;
            } else if !value.is_empty() {
                self.metadata.text(name, value);
            }
        }
        // Senders sort labels, and then none can occur twice.
        if !ascending && let Some(name) = twice(first)? {
            return Err(Refusal::NameTwice(name).into());
        }
        if source.is_empty() {
            return Err(Refusal::NoMetricName.into());
        }
        self.metadata.close()?;
        Ok(source)
    }

    /// Names the current series to the sink.
    pub(super) fn announce(&mut self, source: &str, key: Option<SeriesKey<'_>>) -> Result<(), Malformed> {
        let metadata = self.metadata.closed().map_err(|_| Malformed::NotUtf8)?;
        self.sink.series(source, metadata);
        if let Some(key) = key {
            self.sink.remember(key);
        }
        Ok(())
    }
}

/// Whether `name`, which is not empty, is greater than `previous`.
#[inline]
fn is_behind(name: &[u8], previous: &[u8]) -> bool {
    match previous.first() {
        None => true,
        Some(first) => name[0] > *first || name > previous,
    }
}

fn twice<'a>(mut labels: impl Labels<'a>) -> Result<Option<&'a [u8]>, Malformed> {
    let mut names = Vec::new();
    while let Some((name, _)) = labels.next()? {
        names.push(name);
    }
    Ok(names::twice(&mut names))
}
