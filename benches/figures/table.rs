//! The table: its rows, their required values, and how it is printed.

use crate::Outcome;

/// A row of the table before it is measured.
pub struct Figure {
    pub what: &'static str,
    pub required: Requirement,
    pub unit: &'static str,
}

/// The required value of a figure.
#[derive(Clone, Copy)]
pub enum Requirement {
    AtLeast(f64),
    AtMost(f64),
    /// None: the figure is informative.
    Shown,
}

/// The result of an experiment for one row.
pub struct Measured {
    pub value: f64,
    /// How it was measured, and further observations.
    pub note: String,
}

/// Rows that are measured together; `run` returns a result for each.
pub struct Experiment {
    pub figures: &'static [Figure],
    pub run: fn() -> Outcome<Vec<Measured>>,
}

#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 4]>,
    notes: Vec<String>,
}

impl Requirement {
    fn holds(self, value: f64) -> bool {
        match self {
            Requirement::AtLeast(least) => value >= least,
            Requirement::AtMost(most) => value <= most,
            Requirement::Shown => true,
        }
    }

    fn describe(self, unit: &str) -> String {
        match self {
            Requirement::AtLeast(least) => format!("≥ {least} {unit}"),
            Requirement::AtMost(most) => format!("≤ {most} {unit}"),
            Requirement::Shown => String::from("–"),
        }
    }
}

impl Table {
    pub fn add(&mut self, experiment: &Experiment, measured: Outcome<Vec<Measured>>) {
        let measured = match measured {
            Ok(measured) => measured.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => experiment
                .figures
                .iter()
                .map(|_| Err(error.to_string()))
                .collect(),
        };
        for (figure, measured) in experiment.figures.iter().zip(measured) {
            let (value, verdict, note) = match measured {
                Ok(Measured { value, note }) => {
                    let verdict = match figure.required {
                        Requirement::Shown => "",
                        required if required.holds(value) => "pass",
                        _ => "FAIL",
                    };
                    (format!("{} {}", significant(value), figure.unit), verdict, note)
                }
                Err(reason) => (String::from("–"), "NOT MEASURED", reason),
            };
            let required = figure.required.describe(figure.unit);
            self.rows
                .push([figure.what.to_owned(), value, required, verdict.to_owned()]);
            self.notes.push(note);
        }
    }

    pub fn print(&self) {
        let head = ["figure", "measured", "required", "result"].map(str::to_owned);
        let mut widths = head.clone().map(|cell| cell.chars().count());
        for row in &self.rows {
            widths
                .iter_mut()
                .zip(row)
                .for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
        }
        let line = |cells: &[String; 4]| {
            let padded = cells
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!(" {cell:<width$} "));
            println!("|{}|", padded.collect::<Vec<_>>().join("|"));
        };
        line(&head);
        line(&widths.map(|width| "-".repeat(width)));
        self.rows.iter().for_each(line);
        println!();
        for (row, note) in self.rows.iter().zip(&self.notes) {
            println!("- {}: {note}", row[0]);
        }
    }
}

/// Formats with three significant digits.
pub fn significant(value: f64) -> String {
    let digits = if value == 0.0 {
        0
    } else {
        value.abs().log10().floor() as i32
    };
    format!("{value:.*}", usize::try_from(2 - digits).unwrap_or(0))
}

/// The quantile at `share`; sorts the values.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values
        .get((last as f64 * share).round() as usize)
        .copied()
        .unwrap_or(f64::NAN)
}

pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}
