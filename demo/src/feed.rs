//! Sends points to the service: the month before the demo, newest first so that every chart starts with current data,
//! and then one point per second from each sensor.

use std::time::Duration;

use actix_web::http::Method;
use evaluator::Credential;
use jiff::Timestamp;
use serde::{Serialize, Serializer};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::api::{Api, ApiError};
use crate::plant::{Plant, Sample, Sensor};
use crate::series::Series;
use crate::site::Site;

/// Maximum points in a batch.
const BATCH_POINTS: usize = 1_000;
/// Length of the history. Batches accept points that are up to 30 days old; an hour less, because the oldest are sent
/// last.
const HISTORY_S: i64 = 30 * 86_400 - 3_600;
/// The newest part of a sensor's history has one point per second, like live data, so that charts show no break.
const DENSE_S: i64 = 15 * 60;
/// Time between two points in the rest of the history.
const STEP_S: i64 = 10;
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Sends points with a write key.
pub struct Feed {
    api: Api,
    bucket: String,
    plant: Plant,
    /// The sensors in the order of [`Sensor::ALL`], then the series.
    tracks: Vec<Track>,
}

/// The history of one source.
struct Track {
    source: String,
    points: usize,
    /// The point with this number, counted from the newest.
    point: Box<dyn Fn(usize) -> Point>,
}

/// Seconds since the epoch, and the values.
type Point = (i64, Vec<(&'static str, Sample)>);

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
    timestamp: Timestamp,
    #[serde(serialize_with = "members")]
    values: Vec<(&'static str, Sample)>,
}

impl Feed {
    /// A feed of the plant and of the recorded series. The history ends at `start_s`, seconds since the epoch.
    ///
    /// # Errors
    /// The write key is not valid.
    pub fn new(
        base: &str,
        site: &Site,
        plant: Plant,
        series: &[Series],
        start_s: i64,
    ) -> Result<Self, ApiError> {
        let plant_tracks = Sensor::ALL.map(|sensor| Track {
            source: site.source(sensor.name()).to_owned(),
            points: (DENSE_S + (HISTORY_S - DENSE_S) / STEP_S) as usize,
            point: Box::new(move |nth| point(&plant, sensor, start_s - age_s(nth))),
        });
        let series_tracks = series.iter().map(|series| {
            let points = series.ending_at(start_s, HISTORY_S);
            let field = series.about.field.name;
            Track {
                source: site.source(series.about.name).to_owned(),
                points: points.len(),
                point: Box::new(move |nth| {
                    let (at_s, value) = points[points.len() - 1 - nth];
                    (at_s, vec![(field, Sample::Number(value))])
                }),
            }
        });
        Ok(Self {
            api: Api::new(base, Credential::Key(&site.write_key))?,
            bucket: site.bucket.clone(),
            plant,
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
    pub async fn send_history(&self, stop: &CancellationToken) -> Option<usize> {
        let mut sent = 0;
        let longest = self.tracks.iter().map(|track| track.points).max();
        for nth in 1..longest.unwrap_or_default().div_ceil(BATCH_POINTS) {
            for batch in self.tracks.iter().filter_map(|track| self.chunk(track, nth)) {
                if stop.is_cancelled() {
                    return None;
                }
                sent += batch.data_points.len();
                self.send_with_retries(&batch, stop).await;
            }
        }
        Some(sent)
    }

    /// Sends the sensors' values every full second until stopped.
    pub async fn send_live(&self, stop: &CancellationToken) {
        loop {
            let now = Timestamp::now();
            let next_s = now.as_second() + 1;
            let wait =
                Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanosecond().unsigned_abs().into());
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
            let sensors = self.tracks.iter().zip(Sensor::ALL);
            let batch =
                self.batch(sensors.map(|(track, sensor)| (track, point(&self.plant, sensor, next_s))));
            self.send_with_retries(&batch, stop).await;
        }
    }

    /// The `nth` chunk of a track's points, counted from the newest. Within a chunk, points are in ascending order of
    /// time.
    fn chunk<'a>(&'a self, track: &'a Track, nth: usize) -> Option<Batch<'a>> {
        let from = nth * BATCH_POINTS;
        let to = track.points.min(from + BATCH_POINTS);
        let places = (from < to).then(|| (from..to).rev())?;
        Some(self.batch(places.map(|nth| (track, (track.point)(nth)))))
    }

    fn batch<'a>(&'a self, points: impl Iterator<Item = (&'a Track, Point)>) -> Batch<'a> {
        let entry = |(track, (at_s, values)): (&'a Track, Point)| Entry {
            data_source_id: &track.source,
            timestamp: Timestamp::from_second(at_s).unwrap_or_default(),
            values,
        };
        Batch {
            bucket_id: &self.bucket,
            data_points: points.map(entry).collect(),
        }
    }

    async fn send(&self, batch: &Batch<'_>) -> Result<(), ApiError> {
        let answer = self.api.send(Method::POST, "/api/data/batch", batch).await?;
        if let Some(errors) = answer.get("errors") {
            tracing::warn!(%errors, "points were refused");
        }
        Ok(())
    }

    async fn send_with_retries(&self, batch: &Batch<'_>, stop: &CancellationToken) {
        while let Err(error) = self.send(batch).await {
            tracing::warn!(%error, "sending a batch failed");
            if !error.retryable || stop.run_until_cancelled(sleep(RETRY_DELAY)).await.is_none() {
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

fn point(plant: &Plant, sensor: Sensor, at_s: i64) -> Point {
    let names = sensor.fields().iter().map(|field| field.name);
    (at_s, names.zip(plant.samples(sensor, at_s)).collect())
}

fn members<S: Serializer>(values: &[(&'static str, Sample)], serializer: S) -> Result<S::Ok, S::Error> {
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
