//! The welcome text of the demo: address, login, suggested views, and how to stop.

use crate::data_dir::DataDir;
use crate::plant::Sensor;
use crate::site::{EMAIL, Site};

/// The text printed on standard output. `base` is `http://ADDR:PORT`, `board` the id of the board.
pub fn text(base: &str, password: &str, site: &Site, board: &str, data_dir: &DataDir) -> String {
    let (bucket, pump) = (&site.bucket, site.source(Sensor::MainPump.name()));
    let vibration = format!("f={bucket}.{pump}.vibration");
    let bearing = format!("f={bucket}.{pump}.bearing_temperature");
    let removed_or_kept = match data_dir.temporary {
        None => "kept",
        Some(_) => "gone with it",
    };
    let data_dir = data_dir.path.display();
    format!(
        "tidewatch demo

  address   {base}/
  email     {EMAIL}
  password  {password}

Look first at
  the control room      {base}/#/boards/{board}
  a pump, live          {base}/#/explore?{vibration}&r=15m&live=1
  its bearing's month   {base}/#/explore?{vibration}&{bearing}&r=30d
  rules, one firing     {base}/#/rules
  webhooks, one failing {base}/#/webhooks

A month of history arrives within seconds. Ctrl-C ends the demo.
Its data are in {data_dir} and are {removed_or_kept}.
"
    )
}
