//! `prometheus.WriteRequest`: labels as texts in each time series, metadata of families beside them.

use super::samples::Numbers;
use super::series::{Label, Labels, Writer};
use super::shown;
use crate::Sink;
use crate::sink::{Family, KeyKind, SeriesKey};
use crate::wire::{self, Fields, Malformed, Wire};

const TIMESERIES: u32 = 1;
const METADATA: u32 = 3;
const LABELS: u32 = 1;
const NUMBERS: Numbers = Numbers {
    samples: 2,
    histograms: 4,
};

pub(super) fn parse(message: &[u8], writer: &mut Writer<'_, impl Sink>) -> Result<(), Malformed> {
    Fields::of(message).each(|number, value| match number {
        TIMESERIES => {
            let labels = TextLabels::of(value)?;
            let key = labels.key()?;
            if let Some((key, others)) = key
                && writer.sink.recall(key)
            {
                return writer.recalled(others, NUMBERS);
            }
            writer.series(labels, key.map(|(key, _)| key), NUMBERS)?;
            Ok(())
        }
        METADATA => family(value, writer.sink),
        _ => Ok(()),
    })
}

pub(super) fn names(message: &[u8], entries: &[u32]) -> Result<Vec<String>, Malformed> {
    let mut names = shown::Names::new(entries);
    Fields::of(message).each(|number, value| match number {
        TIMESERIES => names.add(TextLabels::of(value)?),
        _ => Ok(()),
    })?;
    Ok(names.shown)
}

/// The labels among the fields of a time series.
#[derive(Clone, Copy)]
struct TextLabels<'a> {
    rest: Fields<'a>,
    /// The fields from the first on that is no label, once it was met: senders write labels first.
    others: Fields<'a>,
    has_met_others: bool,
}

impl<'a> TextLabels<'a> {
    fn of(series: Wire<'a>) -> Result<Self, Malformed> {
        let fields = series.message()?;
        Ok(Self {
            rest: fields,
            others: fields,
            has_met_others: false,
        })
    }

    /// The encoded labels, and the fields behind them; `None` if there are labels among these.
    fn key(&self) -> Result<Option<(SeriesKey<'a>, Fields<'a>)>, Malformed> {
        let mut rest = self.rest;
        let mut others = rest;
        while let Some((LABELS, _)) = rest.next()? {
            others = rest;
        }
        let key = SeriesKey::new(KeyKind::Labels, self.rest.until(others));
        while let Some((number, _)) = rest.next()? {
            if number == LABELS {
                return Ok(None);
            }
        }
        Ok(Some((key, others)))
    }
}

impl<'a> Labels<'a> for TextLabels<'a> {
    #[inline]
    fn next(&mut self) -> Result<Option<Label<'a>>, Malformed> {
        loop {
            let behind = self.rest;
            match self.rest.next()? {
                Some((LABELS, value)) => return wire::pair(value).map(Some),
                Some(_) if self.has_met_others => {}
                Some(_) => (self.others, self.has_met_others) = (behind, true),
                None => return Ok(None),
            }
        }
    }

    fn samples(&self) -> Fields<'a> {
        self.others
    }
}

fn family(value: Wire<'_>, sink: &mut impl Sink) -> Result<(), Malformed> {
    let (mut kind, mut name, mut help, mut unit) = (0, "", "", "");
    value.message()?.each(|number, field| {
        match number {
            1 => kind = field.varint()?,
            2 => name = field.text()?,
            4 => help = field.text()?,
            5 => unit = field.text()?,
            _ => {}
        }
        Ok(())
    })?;
    sink.family(
        name,
        Family {
            help,
            unit,
            unit_fields: super::UNIT_FIELDS,
            kind: super::kind(kind),
        },
    );
    Ok(())
}
