//! Progress bars of commands that take long. They are drawn on a terminal only.

use std::io::{self, LineWriter, Write, stdout};

use indicatif::{ProgressBar, ProgressStyle};
use tidewatch::progress::Progress;

/// A bar for bytes, whose number is not known yet.
pub fn of_bytes(what: String) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    let bar = ProgressBar::new(0).with_prefix(what);
    match style {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows how far a command has come, until it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(what: &str) -> Self {
        Bar(of_bytes(what.to_owned()))
    }

    /// Standard output, for use while the bar is shown. The bar is drawn again after each line.
    pub fn output(&self) -> LineWriter<Output<'_>> {
        LineWriter::new(Output(&self.0))
    }
}

impl Progress for Bar {
    fn expect(&self, bytes: u64) {
        self.0.set_length(self.0.length().unwrap_or(0) + bytes);
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Writes above a bar.
pub struct Output<'a>(&'a ProgressBar);

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| stdout().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        stdout().flush()
    }
}
