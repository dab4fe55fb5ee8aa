//! The Prometheus text format, version 0.0.4, which has three kinds of lines.

use std::fmt::{Display, Write};

use super::Distribution;

/// Builds the text. Names follow the conventions of Prometheus: base units, counters end in `_total`.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// A metric, whose samples follow.
#[derive(Debug)]
pub struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Exposition {
    /// The content type of the response.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// A counter without labels.
    pub fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.counters(name, help).sample(&[], value);
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.gauges(name, help).sample(&[], value);
    }

    /// A histogram without labels.
    pub fn histogram(&mut self, name: &'static str, help: &str, value: &Distribution) {
        self.histograms(name, help).distribution(&[], value);
    }

    /// Counters with labels.
    pub fn counters(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, help, "counter")
    }

    /// Gauges with labels.
    pub fn gauges(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, help, "gauge")
    }

    /// Histograms with labels.
    pub fn histograms(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, help, "histogram")
    }

    /// The finished text.
    pub fn finish(self) -> String {
        self.0
    }

    fn family(&mut self, name: &'static str, help: &str, kind: &str) -> Family<'_> {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family {
            text: &mut self.0,
            name,
        }
    }
}

impl Family<'_> {
    /// Adds a sample. Labels are constants of the program, never user input, so they are not escaped.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds the samples of one histogram.
    pub fn distribution(&mut self, labels: &[(&str, &str)], value: &Distribution) {
        for (bound, count) in value.cumulative() {
            self.line("_bucket", labels, Some(&bound), count);
        }
        self.line("_bucket", labels, Some(&"+Inf"), value.count());
        self.line("_sum", labels, None, value.sum_seconds());
        self.line("_count", labels, None, value.count());
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        bound: Option<&dyn Display>,
        value: impl Display,
    ) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        let mut open = '{';
        for (name, word) in labels {
            let _ = write!(self.text, "{open}{name}=\"{word}\"");
            open = ',';
        }
        if let Some(bound) = bound {
            let _ = write!(self.text, "{open}le=\"{bound}\"");
            open = ',';
        }
        let close = if open == ',' { "}" } else { "" };
        let _ = writeln!(self.text, "{close} {value}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::Histogram;

    #[test]
    fn samples_follow_their_help_and_type() {
        let mut text = Exposition::default();
        text.gauge("rows", "Rows.", 2.5);
        let mut requests = text.counters("requests_total", "Requests.");
        requests.sample(&[("route", "/a/{id}"), ("status", "200")], 7);
        let (histogram, mut all) = (Histogram::default(), Distribution::default());
        histogram.observe(Duration::from_millis(2));
        histogram.add_to(&mut all);
        text.histograms("seconds", "Time.")
            .distribution(&[("of", "x")], &all);
        let text = text.finish();
        assert!(text.starts_with(
            "# HELP rows Rows.\n# TYPE rows gauge\nrows 2.5\n# HELP requests_total Requests.\n\
             # TYPE requests_total counter\nrequests_total{route=\"/a/{id}\",status=\"200\"} 7\n"
        ));
        assert!(
            text.contains(
                "seconds_bucket{of=\"x\",le=\"0.001\"} 0\nseconds_bucket{of=\"x\",le=\"0.0025\"} 1\n"
            )
        );
        assert!(text.ends_with(
            "seconds_bucket{of=\"x\",le=\"+Inf\"} 1\nseconds_sum{of=\"x\"} 0.002\nseconds_count{of=\"x\"} 1\n"
        ));
    }
}
