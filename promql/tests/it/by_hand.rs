//! Questions at the edges of the grammar and of the types, to a real Prometheus and to this crate.

use fastrand::Rng;

use crate::differential::{Asking, comparable, compare, feed};
use crate::samples::{self, START_MS};

/// One a line.
const QUESTIONS: &str = r#"
1 +
up up
sum(up,)
sum()
sum(up, up)
sum by (a,) (up)
sum by (instance) up
topk(up)
topk(up, up)
topk(NaN, up)
topk(1e300, up)
quantile("a", up)
count_values("", up)
count_values("a-b", up)
count_values without (v) ("v", up)
rate(up)
rate(up[5m] offset 1m)
up[5m] offset 1m
up[5m:1m]
up[5m] @ 5
up[0s]
up[5m:0s]
up offset
up @
up @ start
up @ 1e300
up offset 1h5m
up offset 5m1h
up offset -1h
(up) offset 5m
(up[5m])
up and 1
1 and 2
1 == 2
1 == bool 2
up + bool 1
up == on(instance) bool up
up + on(instance) group_left() up
up + group_left(instance) up
up + on(instance) group_left(instance) up
up and on(instance) group_left() up
1 + on(instance) 2
requests_total / ignoring(code) requests_total
requests_total * on(instance) memory_bytes
memory_bytes * on(instance) group_right() requests_total
memory_bytes * on(instance) group_left() requests_total
{}
{__name__=""}
{a=~".*"}
{a=~".+"}
{a!=""}
up{__name__="up"}
up{a="b"
up{a=b}
up{a=~"("}
up{instance=~"[a-b]:\\d"}
up{instance=~'a:1|b:1',}
up{,}
-up
--up
-1 ^ 2
2 ^ 3 ^ 2
-2 ^ 2
1 - 2 - 3
2 * 3 + 4 * 5 % 3
10 % 4 * 2
1 + 2 > bool 2 and up
up or up unless up and up
+up
1e3
0x1f + 017 + .5 + 1.
Inf - inf
NaN
"a\tb"
'a\'b'
`a\b`
up # comment
SUM(up)
sum
time
time()
hour(up, up)
abs(1)
abs("a")
vector(up)
scalar(1)
absent(sum(up))
absent(nothing{a="b",a="c",d=~"e"})
absent((nothing{a="b"}))
absent_over_time(nothing{a="b"}[5m])
absent(rate(nothing[5m]))
label_replace(up, "a-b", "", "", "")
label_replace(up, "a", "b", "instance", "(")
label_replace(up, "instance", "", "", "")
label_join(up, "a")
label_join(up, "a", "-")
label_join(up, "a", "-", "b-c")
holt_winters(up[5m], 0, 0.5)
unknown(up)
sum_over_time(up[1m:1m:1m])
min_over_time(up[5m:])[5m:]
sort(up)[5m:]
{__name__=~"memory_.*"} + 1
-{__name__=~"memory_.*"}
rate({__name__=~"memory_.*"}[5m])
{__name__=~"memory_.*"} > 1
{__name__=~"memory_.*"} > bool 1
sum({__name__=~"memory_.*"})
histogram_quantile(0.5, up)
1e300 * 1e300
1e21 * up
1e-7 * up
"#;

#[test]
fn questions_at_the_edges_are_answered_and_refused_alike() {
    let Some(prometheus) = comparable() else {
        return;
    };
    let storage = samples::generated(&mut Rng::with_seed(1));
    feed(&prometheus, &storage);
    let mut differences = Vec::new();
    for query in QUESTIONS.trim().lines() {
        for range in [None, Some((START_MS + 40 * 60_000, 60_000))] {
            let asking = Asking {
                query: query.to_owned(),
                start_ms: START_MS + 30 * 60_000,
                range,
            };
            let (expected, answer) = (asking.of(&prometheus), asking.here(&storage));
            if let Err(difference) = compare(&expected, &answer, &asking) {
                differences.push(format!("{asking:?}: {difference}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
