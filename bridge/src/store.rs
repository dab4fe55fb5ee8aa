//! Writes batches by `POST /api/v2/write`, and says what has become of each.

use std::time::Duration;

use awc::http::{Method, StatusCode};
use bytes::Bytes;
use evaluator::{Backoff, Client, Credential, Reply};
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;

use crate::BridgeError;
use crate::batch::Batch;
use crate::config::Api;
use crate::counts::Counts;

/// The service's own request timeout is 30 seconds.
const EXCHANGE_MAX: Duration = Duration::from_secs(60);
/// How much of a line a log entry shows.
const SHOWN_CHARACTERS: usize = 200;

/// Writes to one service.
pub struct Store {
    client: Client,
    path: String,
    backoff: Backoff,
}

/// What the service says of a batch.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// All of it is durable, except for these lines, which are refused for these reasons.
    Stored(Vec<(usize, String)>),
    /// Nothing is stored; smaller batches may be.
    TooLarge,
    /// Whether anything is stored is not known; the same again does no harm.
    Again(Option<Duration>),
    /// Nothing is stored, and no batch would be.
    Refused,
}

impl Store {
    /// Writes to this service. `backoff` determines the delays between retries.
    ///
    /// # Errors
    /// The address or the key is not valid.
    pub fn new(api: &Api, backoff: Backoff) -> Result<Self, BridgeError> {
        let mut path = "/api/v2/write?precision=ns".to_owned();
        if let Some(bucket) = &api.bucket {
            let encoded: String = form_urlencoded::byte_serialize(bucket.as_bytes()).collect();
            path.push_str("&bucket=");
            path.push_str(&encoded);
        }
        Ok(Self {
            client: Client::new(&api.url, Credential::Key(&api.key)).map_err(BridgeError::Config)?,
            path,
            backoff,
        })
    }

    /// Writes a batch until each of its points is durable or refused for good, in halves if it is too large. Hands every
    /// part that is done with to `done`, in order. Tries again without end while the service is not there or overloaded,
    /// unless `give_up` is cancelled.
    ///
    /// # Errors
    /// The service refuses whatever is written, or `give_up` was cancelled. What `done` did not get may not be stored.
    pub async fn write<T>(
        &self,
        batch: Batch<T>,
        counts: &Counts,
        give_up: &CancellationToken,
        mut done: impl FnMut(Batch<T>),
    ) -> Result<(), BridgeError> {
        let mut parts = vec![batch];
        while let Some(mut part) = parts.pop() {
            let points = part.points();
            if points == 0 {
                done(part);
                continue;
            }
            let Some(refused) = self.write_part(&part, give_up).await? else {
                if let Some(half) = part.split() {
                    parts.push(part);
                    parts.push(half);
                } else {
                    counts.refused(1);
                    let line = shown(part.point_at(1).unwrap_or_default());
                    tracing::error!(line, "a point is too large for the service and is dropped");
                    done(part);
                }
                continue;
            };
            for (number, reason) in &refused {
                let line = shown(part.point_at(*number).unwrap_or_default());
                tracing::error!(line, reason, "the service refuses a point, which is dropped");
            }
            counts.refused(refused.len().min(points));
            counts.stored(points.saturating_sub(refused.len()));
            done(part);
        }
        Ok(())
    }

    /// The refused lines with their reasons; none at all if the part is too large.
    async fn write_part<T>(
        &self,
        part: &Batch<T>,
        give_up: &CancellationToken,
    ) -> Result<Option<Vec<(usize, String)>>, BridgeError> {
        let body = Bytes::from(part.body());
        let mut failures = 0;
        loop {
            let exchange = self
                .client
                .exchange(&Method::POST, &self.path, Some(body.clone()), EXCHANGE_MAX);
            let Some(answer) = give_up.run_until_cancelled(exchange).await else {
                return Err(BridgeError::Stopped);
            };
            let (cause, retry_after) = match answer {
                Ok(reply) => match verdict(&reply) {
                    Verdict::Stored(refused) => return Ok(Some(refused)),
                    Verdict::TooLarge => return Ok(None),
                    Verdict::Again(retry_after) => (reply.describe(), retry_after),
                    Verdict::Refused => return Err(BridgeError::Refused(reply.describe())),
                },
                Err(no_reply) => (no_reply.to_string(), None),
            };
            failures += 1;
            let wait = self.backoff.delay(failures, retry_after, fastrand::f64());
            let messages = part.len();
            tracing::warn!(cause, messages, failures, ?wait, "not stored yet: trying again");
            let sleep = tokio::time::sleep(wait);
            if give_up.run_until_cancelled(sleep).await.is_none() {
                return Err(BridgeError::Stopped);
            }
        }
    }
}

fn verdict(reply: &Reply) -> Verdict {
    match reply.status {
        StatusCode::PAYLOAD_TOO_LARGE => Verdict::TooLarge,
        // The good lines are stored, and each of the others is named. A body that names none was refused whole.
        StatusCode::BAD_REQUEST => match bad_lines(reply.json()["message"].as_str().unwrap_or_default()) {
            lines if lines.is_empty() => Verdict::Refused,
            lines => Verdict::Stored(lines),
        },
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Verdict::Again(reply.retry_after),
        status if status.is_success() => Verdict::Stored(Vec::new()),
        status if status.is_server_error() => Verdict::Again(reply.retry_after),
        _ => Verdict::Refused,
    }
}

/// The entries `line N: reason` of a message.
fn bad_lines(message: &str) -> Vec<(usize, String)> {
    let starts: Vec<(usize, usize, usize)> = message
        .match_indices("line ")
        .filter_map(|(at, word)| {
            // Not the end of a longer word.
            if message[..at].ends_with(char::is_alphanumeric) {
                return None;
            }
            let behind = &message[at + word.len()..];
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            let number = behind[..digits].parse().ok()?;
            Some((at, at + word.len() + digits, number))
        })
        .collect();
    let ends = starts.iter().skip(1).map(|(at, ..)| *at).chain([message.len()]);
    let reason = |text: &str| {
        text.trim_matches(|c: char| matches!(c, ':' | ';' | ',') || c.is_whitespace())
            .to_owned()
    };
    starts
        .iter()
        .zip(ends)
        .map(|((_, from, number), to)| (*number, reason(&message[*from..to])))
        .collect()
}

fn shown(line: &str) -> String {
    match line.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Verdict {
        verdict(&Reply {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: Some(Duration::from_secs(7)),
            body: Bytes::copy_from_slice(body.as_bytes()),
        })
    }

    #[test]
    fn a_batch_counts_as_stored_only_after_an_answer_that_says_so() {
        let wait = Some(Duration::from_secs(7));
        assert_eq!(answer(204, ""), Verdict::Stored(vec![]));
        assert_eq!(answer(413, "{}"), Verdict::TooLarge);
        for status in [408, 429, 500, 502, 503, 504] {
            assert_eq!(answer(status, "{}"), Verdict::Again(wait), "{status}");
        }
        for status in [301, 307, 401, 403, 404, 405, 409, 415] {
            assert_eq!(answer(status, "{}"), Verdict::Refused, "{status}");
        }
    }

    #[test]
    fn a_400_that_names_lines_has_stored_the_others_and_one_that_names_none_nothing() {
        let body = r#"{"code":"invalid","message":"line 2: a field is missing; line 14: \"x\" is a string"}"#;
        let lines = vec![
            (2, "a field is missing".to_owned()),
            (14, "\"x\" is a string".to_owned()),
        ];
        assert_eq!(answer(400, body), Verdict::Stored(lines));
        let whole = r#"{"code":"invalid","message":"bucket is required with an admin key"}"#;
        assert_eq!(answer(400, whole), Verdict::Refused);
        assert_eq!(answer(400, "not JSON: line 5"), Verdict::Refused);
        assert_eq!(
            answer(400, r#"{"message":"the service is online 5 h a day"}"#),
            Verdict::Refused
        );
        assert_eq!(answer(400, r#"{"message":"line : no number"}"#), Verdict::Refused);
        let each = r#"{"message":"line 1: a\nline 2: b\n"}"#;
        let lines = vec![(1, "a".to_owned()), (2, "b".to_owned())];
        assert_eq!(answer(400, each), Verdict::Stored(lines));
    }
}
