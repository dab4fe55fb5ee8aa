//! `tidewatch import`: files of rows.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use importer::{Counts, Format, Target, Watcher, import_file};
use indicatif::ProgressBar;

use crate::{KEY_VARIABLE, Outcome, progress_bar};

#[derive(Args)]
pub struct ImportArguments {
    /// CSV, NDJSON or Parquet files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Address of the service
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Key for the service; preferably set as TIDEWATCH_KEY in the environment, where the process list does not show it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The bucket, by its id, or by its name with an admin key
    #[arg(long, value_name = "BUCKET")]
    bucket: String,
    /// The data source, by its name or id; created if it does not exist
    #[arg(long, value_name = "SOURCE")]
    source: String,
    /// csv, ndjson or parquet; by the extension of each file when absent
    #[arg(long, value_name = "FORMAT", value_parser = |name: &str| Format::of(name).ok_or("must be csv, ndjson or parquet"))]
    format: Option<Format>,
    /// The column with the time; `timestamp`, else `time`, when absent
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Columns that are dimensions, separated by commas
    #[arg(long, value_name = "COLUMN,…")]
    dimensions: Option<String>,
    /// The unit of times that are numbers; when absent, times are ISO 8601
    #[arg(long, value_name = "UNIT", value_parser = ["ns", "us", "ms", "s"])]
    precision: Option<String>,
}

impl ImportArguments {
    /// Imports the files one after the other. Fails if rows were refused.
    pub fn run(self) -> Outcome {
        let key = self.key.or_else(|| std::env::var(KEY_VARIABLE).ok());
        let key = key.filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| format!("a key is needed: set {KEY_VARIABLE}, or give --key"))?;
        let parameters = [
            ("time", self.time),
            ("dimensions", self.dimensions),
            ("precision", self.precision),
        ];
        let given = parameters
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        let importing = async {
            let target = Target::find(&self.url, &key, &self.bucket, &self.source, given).await?;
            let mut failed = 0;
            for file in &self.files {
                let mut shown = Shown::new(file.display().to_string());
                let counts = import_file(file, self.format, &target, &mut shown).await;
                failed += shown.end(counts?);
            }
            Ok::<_, Box<dyn std::error::Error>>(failed)
        };
        let failed = actix_web::rt::System::new().block_on(importing)?;
        Ok(match failed {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        })
    }
}

/// Shows the progress of a file: a bar on a terminal, otherwise only what is refused and how it ended.
struct Shown {
    file: String,
    bar: ProgressBar,
    started: Instant,
}

impl Shown {
    fn new(file: String) -> Self {
        Shown {
            bar: progress_bar::of_bytes(file.clone()),
            file,
            started: Instant::now(),
        }
    }

    /// Shows how it ended. Returns the number of refused rows.
    fn end(self, counts: Counts) -> u64 {
        self.bar.finish_and_clear();
        let Counts {
            inserted,
            duplicates,
            failed,
        } = counts;
        println!(
            "{}: {inserted} rows stored, {duplicates} were there already, {failed} refused, in {:.1?}",
            self.file,
            self.started.elapsed()
        );
        failed
    }
}

impl Watcher for Shown {
    fn at(&mut self, bytes: u64, size: u64) {
        self.bar.set_length(size);
        self.bar.set_position(bytes);
    }

    fn refused(&mut self, row: &str) {
        self.bar.suspend(|| eprintln!("{}, {row}", self.file));
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| eprintln!("{}: {text}", self.file));
    }
}
