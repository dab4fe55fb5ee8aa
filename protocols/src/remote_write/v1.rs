//! `prometheus.WriteRequest`: labels as texts in each time series, metadata of families beside them.

use super::samples::Numbers;
use super::series::{Label, Labels, Writer};
use super::shown;
use crate::Sink;
use crate::sink::Family;
use crate::wire::{Fields, Malformed, Wire};

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
            let fields = value.message()?;
            writer.series(TextLabels(fields), behind_labels(fields)?, NUMBERS)?;
            Ok(())
        }
        METADATA => family(value, writer.sink),
        _ => Ok(()),
    })
}

pub(super) fn names(message: &[u8], entries: &[u32]) -> Result<Vec<String>, Malformed> {
    let mut names = shown::Names::new(entries);
    Fields::of(message).each(|number, value| match number {
        TIMESERIES => names.add(TextLabels(value.message()?)),
        _ => Ok(()),
    })?;
    Ok(names.shown)
}

/// The labels among the fields of a time series.
#[derive(Clone, Copy)]
struct TextLabels<'a>(Fields<'a>);

impl<'a> Labels<'a> for TextLabels<'a> {
    #[inline]
    fn next(&mut self) -> Result<Option<Label<'a>>, Malformed> {
        while let Some((number, value)) = self.0.next()? {
            if number == LABELS {
                return label(value).map(Some);
            }
        }
        Ok(None)
    }
}

#[inline]
fn label(value: Wire<'_>) -> Result<Label<'_>, Malformed> {
    let bytes = value.bytes()?;
    // As senders write it: the name, then the value, both shorter than 128 bytes.
    if let [0x0a, length @ 0..0x80, rest @ ..] = bytes
        && let Some((name, [0x12, length @ 0..0x80, value @ ..])) =
            rest.split_at_checked(usize::from(*length))
        && value.len() == usize::from(*length)
    {
        return Ok((name, value));
    }
    any_label(value)
}

fn any_label(value: Wire<'_>) -> Result<Label<'_>, Malformed> {
    let mut label = (&[][..], &[][..]);
    value.message()?.each(|number, text| {
        match number {
            1 => label.0 = text.bytes()?,
            2 => label.1 = text.bytes()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(label)
}

/// The fields from the first on that is no label: senders write labels first.
#[inline]
fn behind_labels(mut fields: Fields<'_>) -> Result<Fields<'_>, Malformed> {
    loop {
        let behind = fields;
        match fields.next()? {
            Some((LABELS, _)) => {}
            _ => return Ok(behind),
        }
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
