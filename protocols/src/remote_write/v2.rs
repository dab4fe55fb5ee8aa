//! `io.prometheus.write.v2.Request`: labels as references to texts that the message has once.

use super::samples::Numbers;
use super::series::{Label, Labels, Writer};
use super::shown;
use crate::Sink;
use crate::sink::Family;
use crate::wire::{self, Fields, Malformed, Wire};

const SYMBOLS: u32 = 4;
const TIMESERIES: u32 = 5;
const LABELS: u32 = 1;
const METADATA: u32 = 5;
const NUMBERS: Numbers = Numbers {
    samples: 2,
    histograms: 3,
};

pub(super) fn parse(message: &[u8], writer: &mut Writer<'_, impl Sink>) -> Result<(), Malformed> {
    let symbols = symbols(message)?;
    let mut texts = Vec::new();
    // Series of a family follow each other.
    let mut previous = None;
    Fields::of(message).each(|number, value| {
        if number == TIMESERIES {
            let fields = value.message()?;
            let metadata = read(fields, &symbols, &mut texts)?;
            let family = metadata.map(|metadata| family(metadata, &symbols)).transpose()?;
            let source = writer.series(Pairs::of(&texts, fields)?, None, NUMBERS)?;
            if let (Some(source), Some(family)) = (source, family)
                && previous != Some((source, family))
            {
                writer.sink.family(source, family);
                previous = Some((source, family));
            }
        }
        Ok(())
    })
}

pub(super) fn names(message: &[u8], entries: &[u32]) -> Result<Vec<String>, Malformed> {
    let symbols = symbols(message)?;
    let mut texts = Vec::new();
    let mut names = shown::Names::new(entries);
    Fields::of(message).each(|number, value| {
        if number == TIMESERIES {
            let fields = value.message()?;
            read(fields, &symbols, &mut texts)?;
            names.add(Pairs::of(&texts, fields)?)?;
        }
        Ok(())
    })?;
    Ok(names.shown)
}

fn symbols(message: &[u8]) -> Result<Vec<&str>, Malformed> {
    let mut symbols = Vec::new();
    Fields::of(message).each(|number, value| {
        if number == SYMBOLS {
            symbols.push(value.text()?);
        }
        Ok(())
    })?;
    Ok(symbols)
}

#[inline]
fn symbol<'a>(symbols: &[&'a str], reference: u64) -> Result<&'a str, Malformed> {
    let found = usize::try_from(reference)
        .ok()
        .and_then(|reference| symbols.get(reference));
    found.copied().ok_or(Malformed::Symbol)
}

/// Reads the texts of a time series' labels, in pairs. Returns its metadata, if it has some.
fn read<'a, 's>(
    fields: Fields<'a>,
    symbols: &[&'s str],
    texts: &mut Vec<&'s str>,
) -> Result<Option<Wire<'a>>, Malformed> {
    let mut metadata = None;
    texts.clear();
    fields.each(|number, value| match number {
        LABELS => wire::varints(value, |reference| {
            texts.push(symbol(symbols, reference)?);
            Ok(())
        }),
        METADATA => {
            metadata = Some(value);
            Ok(())
        }
        _ => Ok(()),
    })?;
    Ok(metadata)
}

/// Labels as pairs of texts.
#[derive(Clone, Copy)]
struct Pairs<'a, 's> {
    pairs: &'s [[&'a str; 2]],
    series: Fields<'a>,
}

impl<'a, 's> Pairs<'a, 's> {
    fn of(texts: &'s [&'a str], series: Fields<'a>) -> Result<Self, Malformed> {
        match texts.as_chunks::<2>() {
            (pairs, []) => Ok(Self { pairs, series }),
            _ => Err(Malformed::OddLabels),
        }
    }
}

impl<'a> Labels<'a> for Pairs<'a, '_> {
    #[inline]
    fn next(&mut self) -> Result<Option<Label<'a>>, Malformed> {
        let Some(([name, value], rest)) = self.pairs.split_first() else {
            return Ok(None);
        };
        self.pairs = rest;
        Ok(Some((name.as_bytes(), value.as_bytes())))
    }

    fn samples(&self) -> Fields<'a> {
        self.series
    }
}

fn family<'a>(metadata: Wire<'_>, symbols: &[&'a str]) -> Result<Family<'a>, Malformed> {
    let (mut kind, mut help, mut unit) = (0, 0, 0);
    metadata.message()?.each(|number, field| {
        match number {
            1 => kind = field.varint()?,
            3 => help = field.varint()?,
            4 => unit = field.varint()?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(Family {
        help: symbol(symbols, help)?,
        unit: symbol(symbols, unit)?,
        unit_fields: super::UNIT_FIELDS,
        kind: super::kind(kind),
    })
}
