//! Sends points to the service: the month before the demo, newest first so that every chart starts with current data,
//! and then one point per second from each sensor.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::api::{Api, ApiError};
use super::plant::{Plant, Sample, Sensor};
use super::series;
use super::site::Site;
use crate::clock::{Clock, SECOND_NS};
use crate::evaluator::{Credential, Stop};
use crate::limits::{BATCH_AGE_DAYS_MAX, BATCH_ENTRIES_MAX};
use crate::timestamp::format_timestamp_ns;

/// Length of the history. Batches accept points up to this many days old; an hour less, because the oldest are sent
/// last.
const HISTORY_S: i64 = BATCH_AGE_DAYS_MAX * 86_400 - 3_600;
/// The newest part of a sensor's history has one point per second, like live data, so that charts show no break.
const DENSE_S: i64 = 15 * 60;
/// Time between two points in the rest of the history.
const STEP_S: i64 = 10;
/// Wait before a batch is retried.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Sends points with a write key.
pub struct Feed {
    api: Api,
    bucket: String,
    plant: Plant,
    /// Ids of the sensors' sources, in the order of [`Sensor::ALL`].
    sensors: Vec<String>,
    tracks: Vec<Track>,
}

/// The history of one source.
struct Track {
    source: String,
    points: usize,
    read: Box<dyn Fn(usize) -> Reading>,
}

/// The values of a source at `at_s`, seconds since the epoch.
struct Reading {
    at_s: i64,
    values: Vec<(&'static str, Sample)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Batch<'a> {
    bucket_id: &'a str,
    data_points: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    data_source_id: &'a str,
    #[serde(serialize_with = "timestamp")]
    timestamp: i64,
    #[serde(serialize_with = "members")]
    values: Vec<(&'static str, Sample)>,
}

impl Feed {
    /// A feed of the plant and of the recorded series. The series end at `began_s`, seconds since the epoch.
    ///
    /// # Errors
    /// The write key is not valid.
    pub fn new(base: &str, site: &Site, plant: Plant, began_s: i64) -> Result<Self, ApiError> {
        let plant_tracks = Sensor::ALL.map(|sensor| Track {
            source: site.source(sensor.name()).to_owned(),
            points: (DENSE_S + (HISTORY_S - DENSE_S) / STEP_S) as usize,
            read: Box::new(move |nth| reading(&plant, sensor, began_s - age_s(nth))),
        });
        let series_tracks = series::ALL.iter().map(|series| {
            let points = series.ending_at(began_s, HISTORY_S);
            Track {
                source: site.source(series.name).to_owned(),
                points: points.len(),
                read: Box::new(move |nth| {
                    let (at_s, value) = points[points.len() - 1 - nth];
                    Reading {
                        at_s,
                        values: vec![(series.field, Sample::Number(value))],
                    }
                }),
            }
        });
        Ok(Self {
            api: Api::new(base, Credential::Key(&site.write_key))?,
            bucket: site.bucket.clone(),
            plant,
            sensors: Sensor::ALL
                .map(|sensor| site.source(sensor.name()).to_owned())
                .into(),
            tracks: plant_tracks.into_iter().chain(series_tracks).collect(),
        })
    }

    /// Sends the newest points of all sources.
    ///
    /// # Errors
    /// The service refuses them.
    pub async fn send_newest(&self) -> Result<(), ApiError> {
        for track in &self.tracks {
            if let Some(batch) = self.chunk(track, 0) {
                self.send(&batch).await?;
            }
        }
        Ok(())
    }

    /// Sends the rest of the history, from newer to older. Returns the number of points; `None` if stopped before the
    /// end.
    pub async fn send_rest(&self, stop: &Stop) -> Option<usize> {
        let mut sent = 0;
        let longest = self.tracks.iter().map(|track| track.points).max();
        for nth in 1..longest.unwrap_or_default().div_ceil(BATCH_ENTRIES_MAX) {
            for batch in self.tracks.iter().filter_map(|track| self.chunk(track, nth)) {
                if stop.is_told() {
                    return None;
                }
                sent += batch.data_points.len();
                self.insist(&batch, stop).await;
            }
        }
        Some(sent)
    }

    /// Sends the sensors' values every full second until stopped.
    pub async fn send_live(&self, clock: &dyn Clock, stop: &Stop) {
        loop {
            let now_ns = clock.now_ns();
            let next_s = now_ns.div_euclid(SECOND_NS) + 1;
            let wait = Duration::from_nanos((next_s * SECOND_NS - now_ns).unsigned_abs());
            if stop.told_within(wait).await {
                return;
            }
            let readings = Sensor::ALL.map(|sensor| reading(&self.plant, sensor, next_s));
            let entries = self.sensors.iter().zip(readings);
            let batch = self.batch(entries.map(|(source, reading)| entry(source, reading)));
            self.insist(&batch, stop).await;
        }
    }

    /// The `nth` chunk of a track's points, counted from the newest. Within a chunk, points are in ascending order of
    /// time.
    fn chunk<'a>(&'a self, track: &'a Track, nth: usize) -> Option<Batch<'a>> {
        let from = nth * BATCH_ENTRIES_MAX;
        let to = track.points.min(from + BATCH_ENTRIES_MAX);
        let places = (from < to).then(|| (from..to).rev())?;
        Some(self.batch(places.map(|nth| entry(&track.source, (track.read)(nth)))))
    }

    fn batch<'a>(&'a self, entries: impl Iterator<Item = Entry<'a>>) -> Batch<'a> {
        Batch {
            bucket_id: &self.bucket,
            data_points: entries.collect(),
        }
    }

    async fn send(&self, batch: &Batch<'_>) -> Result<(), ApiError> {
        // Numbers, strings and ids can always be serialized.
        let body = serde_json::to_string(batch).unwrap_or_default();
        let answer = self.api.post("/api/data/batch", body).await?;
        if let Some(errors) = answer.get("errors") {
            tracing::warn!(%errors, "points were refused");
        }
        Ok(())
    }

    /// Sends a batch and retries while that may help.
    async fn insist(&self, batch: &Batch<'_>, stop: &Stop) {
        while let Err(error) = self.send(batch).await {
            tracing::warn!(%error, "sending a batch failed");
            if !error.passing || stop.told_within(AGAIN_AFTER).await {
                return;
            }
        }
    }
}

/// Age in seconds of the `nth` newest point of a sensor's history when the demo starts.
fn age_s(nth: usize) -> i64 {
    let nth = nth as i64;
    if nth < DENSE_S {
        nth
    } else {
        DENSE_S + (nth - DENSE_S) * STEP_S
    }
}

fn reading(plant: &Plant, sensor: Sensor, at_s: i64) -> Reading {
    let names = sensor.fields().iter().map(|field| field.name);
    Reading {
        at_s,
        values: names.zip(plant.samples(sensor, at_s)).collect(),
    }
}

fn entry(source: &str, Reading { at_s, values }: Reading) -> Entry<'_> {
    Entry {
        data_source_id: source,
        timestamp: at_s,
        values,
    }
}

fn timestamp<S: Serializer>(at_s: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(format_timestamp_ns(at_s * SECOND_NS).as_str())
}

fn members<S: Serializer>(values: &Vec<(&'static str, Sample)>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(name, sample)| (name, sample)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_has_a_point_a_second_at_its_end_and_one_in_ten_before() {
        let first: Vec<i64> = [0, 1, 899, 900, 901, 902].map(age_s).into();
        assert_eq!(first, [0, 1, 899, 900, 910, 920]);
    }
}
