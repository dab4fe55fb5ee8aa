//! The welcome text of the demo: address, login, suggested views, and how to stop.

use std::fmt;

use super::home::Home;
use super::plant::Sensor;
use super::site::{EMAIL, Site};

/// The text printed on standard output.
pub struct Welcome<'a> {
    /// `http://ADDR:PORT`
    pub base: &'a str,
    /// Generated for this demo.
    pub password: &'a str,
    /// The created objects.
    pub site: &'a Site,
    /// The data directory.
    pub home: &'a Home,
}

impl fmt::Display for Welcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, password, .. } = self;
        writeln!(f, "tidewatch demo")?;
        writeln!(f)?;
        writeln!(f, "  address   {base}/")?;
        writeln!(f, "  email     {EMAIL}")?;
        writeln!(f, "  password  {password}")?;
        writeln!(f)?;
        writeln!(f, "Look first at")?;
        writeln!(
            f,
            "  a pump, live          {base}/{}",
            self.explore(&["vibration"], "r=15m&live=1")
        )?;
        let month = self.explore(&["vibration", "bearing_temperature"], "r=30d");
        writeln!(f, "  its bearing's month   {base}/{month}")?;
        writeln!(f, "  rules, one firing     {base}/#/rules")?;
        writeln!(f, "  webhooks, one failing {base}/#/webhooks")?;
        writeln!(f)?;
        let stays = if self.home.is_temporary() {
            "gone with it"
        } else {
            "kept"
        };
        writeln!(
            f,
            "A month of history arrives within seconds. Ctrl-C ends the demo."
        )?;
        writeln!(
            f,
            "Its data are in {} and are {stays}.",
            self.home.path().display()
        )
    }
}

impl Welcome<'_> {
    /// Link to an explorer view of fields of the main pump over a time range.
    fn explore(&self, fields: &[&str], range: &str) -> String {
        let (bucket, source) = (&self.site.bucket, self.site.source(Sensor::MainPump.name()));
        let fields = fields.iter().map(|field| format!("f={bucket}.{source}.{field}&"));
        format!("#/explore?{}{range}", fields.collect::<String>())
    }
}
