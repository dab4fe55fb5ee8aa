//! The monthly quota and the calendar: a new month, a clock that is set back.

use serde_json::Value;
use tidewatch::catalog::Plan;

use crate::client::Answer;
use crate::time::{DAY, SECOND, date_of};
use crate::world::{START, Scene, scene_with};

const FREE: u64 = 10_000;

/// First days of the world's first month, of the next and of the previous one: days since 1970.
fn month_days() -> [i64; 3] {
    let today = *START / DAY;
    let first = today - date_of(today).2 + 1;
    let next = first + 32 - date_of(first + 31).2;
    let last = first - date_of(first - 1).2;
    [first, next, last]
}

fn call(scene: &Scene) -> Answer {
    scene.call("GET", "/api/organization", &Value::Null)
}

fn number(answer: &Answer, header: &str) -> u64 {
    let value = answer.header(header).and_then(|text| text.parse().ok());
    value.unwrap_or_else(|| panic!("contract 2: {header} stands on every answer: {answer}"))
}

#[track_caller]
fn assert_refused(scene: &Scene, context: &str) {
    let answer = call(scene);
    answer.expect(429, &format!("contract 2: a used-up month refuses ({context})"));
    assert_eq!(number(&answer, "x-ratelimit-remaining"), 0, "{context}");
}

#[track_caller]
fn assert_left(scene: &Scene, left: u64, context: &str) {
    let answer = call(scene);
    answer.expect(200, &format!("contract 2: within the quota ({context})"));
    assert_eq!(number(&answer, "x-ratelimit-remaining"), left, "{context}");
}

#[test]
fn an_exhausted_month_is_refused_to_its_end_despite_clock_changes() {
    let mut scene = scene_with(|config| config.accounts.default_plan = Plan::Free);
    let [_, next, last] = month_days();
    let left = number(&call(&scene), "x-ratelimit-remaining");
    (0..left).for_each(|_| drop(call(&scene).expect(200, "contract 2: within the quota")));
    let answer = call(&scene);
    let refusal = answer.expect(429, "contract 2: the month is used up");
    let now_seconds = *START / SECOND;
    let next_seconds = next * (DAY / SECOND);
    assert_eq!(
        (
            number(&answer, "x-ratelimit-reset"),
            number(&answer, "retry-after")
        ),
        (next_seconds as u64, (next_seconds - now_seconds) as u64),
        "contract 2: it resets on the first of the month, 00:00 UTC: {refusal}"
    );
    let reset = crate::time::timestamp(next * DAY);
    assert!(
        refusal["message"]
            .as_str()
            .is_some_and(|text| text.contains(&reset)),
        "spec: the message states the reset time: {refusal}"
    );

    // Back an hour, and to the end of the previous month, while running and across a restart: the month stays
    // exhausted.
    let to_last_month = last * DAY + 2 * DAY - *START;
    for back in [-3_600, to_last_month / SECOND] {
        scene.world.step(back);
        assert_refused(&scene, "the clock is set back");
        scene.world.restart(0);
        assert_refused(&scene, "restarted while it is back");
        scene.world.step(-back);
        assert_refused(&scene, "and is right again");
    }

    let to_next = next_seconds - now_seconds;
    scene.world.advance(to_next - 1);
    assert_refused(&scene, "the month's last second");
    scene.world.advance(1);
    assert_left(&scene, FREE - 1, "the next month");
    // Key, bearer token and server are the same: counting continues.
    assert_left(&scene, FREE - 2, "the next month");
    scene.world.step(-1);
    assert_refused(&scene, "set back over the first of the month");
    scene.world.restart(1);
    assert_left(
        &scene,
        FREE - 3,
        "and forward again, across a restart: nothing is lost",
    );
    scene.world.step(400 * DAY / SECOND);
    assert_left(&scene, FREE - 1, "a leap of more than a year");
    scene.world.restart(-400 * DAY / SECOND);
    assert_left(&scene, FREE - 4, "and back: nothing is lost");
}
