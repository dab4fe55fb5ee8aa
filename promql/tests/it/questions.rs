//! Generated questions over the generated series: every function, aggregation, operator and modifier of Prometheus 2.42.
//!
//! Comparisons, rounding and the like make a visible difference of an invisible one, so they are asked of exact
//! expressions only: of samples, counts, extremes, and sums of whole numbers.

use fastrand::Rng;

const RANGES: &[&str] = &["30s", "1m", "90s", "2m", "5m", "7m3s", "10m", "17m", "1h"];

const SELECTORS: &[&str] = &[
    "requests_total",
    "requests_total{job=\"api\"}",
    "requests_total{code=~\"4..|5..\"}",
    "requests_total{code!~\"2.*\", job!=\"web\"}",
    "requests_total{instance=\"a:1\",code=\"200\"}",
    "temperature",
    "temperature{room=\"lab\"}",
    "memory_bytes",
    "memory_limit_bytes",
    "queue_length",
    "up",
    "build_info",
    "jobs_total",
    "latency_seconds_bucket",
    "latency_seconds_count",
    "latency_seconds_sum",
    "nothing",
    "{__name__=~\"memory_.*\"}",
    "{__name__=\"up\",instance=~\".+\"}",
    "jobs_total{worker=\"w1\"}",
];

/// Selectors whose values are never equal, so that a rank is no matter of chance.
const DISTINCT: &[&str] = &["temperature", "temperature{room=\"hall\"}", "memory_bytes"];

const MATH: &[&str] = &[
    "abs", "sqrt", "ln", "log2", "log10", "asin", "acos", "atan", "tanh", "asinh", "acosh", "atanh", "deg",
    "rad",
];

/// Of large values they show little but rounding errors.
const STEEP: &[&str] = &["sin", "cos", "tan", "exp", "sinh", "cosh"];

const EXACT_MATH: &[&str] = &["ceil", "floor", "sgn", "round", "abs"];

const EXACT_OVER: &[&str] = &[
    "min_over_time",
    "max_over_time",
    "count_over_time",
    "last_over_time",
    "present_over_time",
    "changes",
    "resets",
];

const OVER: &[&str] = &[
    "delta",
    "idelta",
    "deriv",
    "avg_over_time",
    "sum_over_time",
    "stddev_over_time",
    "stdvar_over_time",
];

/// They take a value that falls for a counter that began again, however little it falls.
const COUNTERS: &[&str] = &["rate", "increase", "irate"];

const CALENDAR: &[&str] = &[
    "minute",
    "hour",
    "day_of_week",
    "day_of_month",
    "day_of_year",
    "days_in_month",
    "month",
    "year",
];

const LABELS: &[&str] = &[
    "instance", "job", "code", "room", "le", "version", "worker", "missing",
];

const COMPARISONS: &[&str] = &["==", "!=", ">", "<", ">=", "<="];

/// A question; `start_ms` and `end_ms` are times that `@` may name.
pub fn question(rng: &mut Rng, times: (i64, i64)) -> String {
    let mut generator = Generator { rng, times };
    match generator.rng.u32(0..40) {
        0 => generator.scalar(3),
        1 => generator.sorted(),
        2 => format!("\"text {}\"", generator.rng.u8(..)),
        3 => generator.range(2),
        _ => generator.vector(3),
    }
}

struct Generator<'r> {
    rng: &'r mut Rng,
    times: (i64, i64),
}

impl Generator<'_> {
    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.rng.usize(0..from.len())]
    }

    fn number(&mut self) -> String {
        let choices = ["0", "1", "2", "-1", "0.5", "3.25", "100", "1e3", "0x1F", "-0.9"];
        self.pick(&choices).to_owned()
    }

    fn modifiers(&mut self) -> String {
        let offset = self.pick(&["5m", "37s", "1h", "-5m", "-1m30s"]).to_owned();
        let at = match self.rng.u32(0..4) {
            0 => "start()".to_owned(),
            1 => "end()".to_owned(),
            _ => {
                let ms = self.rng.i64(self.times.0..=self.times.1);
                format!("{}.{:03}", ms / 1000, ms % 1000)
            }
        };
        match self.rng.u32(0..12) {
            0 => format!(" offset {offset}"),
            1 => format!(" @ {at}"),
            2 => format!(" offset {offset} @ {at}"),
            3 => format!(" @ {at} offset {offset}"),
            _ => String::new(),
        }
    }

    /// Modifiers of a subquery. With a negative offset, Prometheus takes a part with `@` for one at another time when the
    /// first inner step happens to be the time of the question.
    fn modifiers_around(&mut self, inner: &str) -> String {
        let modifiers = self.modifiers();
        if inner.contains('@') && modifiers.contains("offset -") {
            String::new()
        } else {
            modifiers
        }
    }

    fn selector(&mut self) -> String {
        format!("{}{}", self.pick(SELECTORS), self.modifiers())
    }

    fn range(&mut self, depth: u32) -> String {
        let range = self.pick(RANGES).to_owned();
        if depth > 0 && self.rng.u32(0..4) == 0 {
            let step = self.pick(&["", "30s", "1m", "47s", "5m"]).to_owned();
            let inner = if self.rng.bool() {
                self.pick(SELECTORS).to_owned()
            } else {
                self.vector(depth - 1)
            };
            return format!("({inner})[{range}:{step}]{}", self.modifiers_around(&inner));
        }
        format!("{}[{range}]{}", self.pick(SELECTORS), self.modifiers())
    }

    fn exact_range(&mut self, depth: u32) -> String {
        if depth > 0 && self.rng.u32(0..4) == 0 {
            let inner = self.exact(depth - 1);
            return format!(
                "({inner})[{}:{}]{}",
                self.pick(RANGES),
                self.pick(&["", "30s", "47s"]),
                self.modifiers_around(&inner)
            );
        }
        self.selector_range()
    }

    /// An expression of numbers.
    fn scalar(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.number();
        }
        match self.rng.u32(0..9) {
            0 => "time()".to_owned(),
            1 => "pi()".to_owned(),
            2 => format!("scalar({})", self.exact(depth - 1)),
            3 => format!(
                "({} {} {})",
                self.scalar(depth - 1),
                self.arithmetic(),
                self.scalar(depth - 1)
            ),
            4 => format!(
                "({} {} bool {})",
                self.number(),
                self.pick(COMPARISONS),
                self.number()
            ),
            5 => format!("-{}", self.scalar(depth - 1)),
            _ => self.number(),
        }
    }

    fn arithmetic(&mut self) -> &'static str {
        self.pick(&["+", "-", "*", "/"])
    }

    fn grouping(&mut self) -> String {
        let count = self.rng.usize(0..3);
        let labels: Vec<&str> = (0..count).map(|_| self.pick(LABELS)).collect();
        match self.rng.u32(0..5) {
            0 | 1 => format!("by ({})", labels.join(",")),
            2 | 3 => format!("without ({})", labels.join(",")),
            _ => String::new(),
        }
    }

    fn matching(&mut self) -> String {
        let count = self.rng.usize(0..3);
        let labels: Vec<&str> = (0..count).map(|_| self.pick(LABELS)).collect();
        let labels = labels.join(",");
        let included = self.pick(&["", "version", "room", "job"]).to_owned();
        match self.rng.u32(0..9) {
            0 => format!("on ({labels})"),
            1 => format!("ignoring ({labels})"),
            2 => format!("on (instance) group_left ({included})"),
            3 => format!("on (instance) group_right ({included})"),
            4 => format!("ignoring (code,room,{}) group_left", self.pick(LABELS)),
            5 => "on (instance)".to_owned(),
            6 => "ignoring (code,room,le,version)".to_owned(),
            _ => String::new(),
        }
    }

    /// A vector whose values both sides compute to the last bit.
    fn exact(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.selector();
        }
        match self.rng.u32(0..16) {
            0 => format!("{}({})", self.pick(EXACT_OVER), self.exact_range(depth - 1)),
            1 => format!("{}({})", self.pick(EXACT_MATH), self.exact(depth - 1)),
            2 => format!(
                // Zero has no sign, so that it is no matter of chance which of both zeros is the extreme.
                "{} {} (0 + {})",
                self.pick(&["min", "max", "count", "group"]),
                self.grouping(),
                self.exact(depth - 1)
            ),
            3 => format!(
                "count_values {} (\"value\", queue_length{})",
                self.grouping(),
                self.modifiers()
            ),
            4 => format!(
                "({} {} {} {})",
                self.exact(depth - 1),
                self.pick(COMPARISONS),
                self.pick(&["", "bool"]),
                self.number()
            ),
            5 => format!(
                "({} {} {})",
                self.number(),
                self.pick(COMPARISONS),
                self.exact(depth - 1)
            ),
            6 => {
                let comparison = self.pick(COMPARISONS);
                let matching = self.matching();
                let bool = self.pick(&["", "bool"]);
                format!(
                    "({} {comparison} {bool} {matching} {})",
                    self.exact(depth - 1),
                    self.exact(depth - 1)
                )
            }
            7 => {
                let op = self.pick(&["and", "or", "unless"]);
                let matching = self.pick(&[
                    "",
                    "on (instance)",
                    "ignoring (code,room)",
                    "on ()",
                    "on (job, code)",
                ]);
                format!(
                    "({} {op} {matching} {})",
                    self.exact(depth - 1),
                    self.exact(depth - 1)
                )
            }
            8 => format!("({} + 1)", self.exact(depth - 1)),
            9 => format!("(queue_length % {})", self.pick(&["2", "-3", "1.5"])),
            10 => format!("absent({})", self.selector()),
            11 => format!("absent_over_time({})", self.selector_range()),
            12 => self.relabelled(depth),
            13 => {
                // With `@` and `offset`, Prometheus forgets the offset.
                let inner = self.exact(depth - 1);
                let inner = if inner.contains('@') && inner.contains("offset") {
                    "up"
                } else {
                    &inner
                };
                format!("timestamp({inner})")
            }
            14 => format!("clamp_min({}, {})", self.exact(depth - 1), self.number()),
            _ => self.selector(),
        }
    }

    fn selector_range(&mut self) -> String {
        format!(
            "{}[{}]{}",
            self.pick(SELECTORS),
            self.pick(RANGES),
            self.modifiers()
        )
    }

    fn relabelled(&mut self, depth: u32) -> String {
        let inner = self.exact(depth - 1);
        let target = self.pick(&["instance", "new", "job", "__name__", "code"]);
        if self.rng.bool() {
            let source = self.pick(LABELS);
            let regex = self.pick(&["(.*):(.*)", "(\\\\w).*", "a:1", "", "(?P<x>[a-z]+).*"]);
            let replacement = self.pick(&["$1", "x-$2$1", "${x}", "fixed", "", "$1x"]);
            return format!(
                "label_replace({inner}, \"{target}\", \"{replacement}\", \"{source}\", \"{regex}\")"
            );
        }
        let separator = self.pick(&["-", "", "::"]);
        format!(
            "label_join({inner}, \"{target}\", \"{separator}\", \"instance\", \"{}\")",
            self.pick(LABELS)
        )
    }

    fn vector(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.selector();
        }
        match self.rng.u32(0..30) {
            0..=3 => format!("{}({})", self.pick(OVER), self.range(depth - 1)),
            4..=6 => format!("{}({})", self.pick(COUNTERS), self.exact_range(depth - 1)),
            7 => {
                // With `@`, 2.42 loses the samples after the first step.
                let range = self.range(depth - 1);
                let range = if range.contains('@') {
                    "temperature[10m]"
                } else {
                    &range
                };
                format!(
                    "predict_linear({range}, {})",
                    self.pick(&["0", "60", "-30.5", "3600", "pi()"])
                )
            }
            8 => format!(
                "holt_winters({}, {}, 0.3)",
                self.range(depth - 1),
                self.pick(&["0.1", "0.7", "1.5"])
            ),
            9 => format!(
                "quantile_over_time({}, {})",
                self.pick(&["0.5", "0.93", "0", "1", "-1", "2"]),
                self.range(depth - 1)
            ),
            10 if self.rng.bool() => format!("{}({})", self.pick(STEEP), self.exact(depth - 1)),
            10 => format!("{}({})", self.pick(MATH), self.vector(depth - 1)),
            11 => format!(
                "{}({})",
                self.pick(CALENDAR),
                self.pick(&["", "timestamp(up)", "vector(time())", "requests_total"])
            ),
            12..=14 => format!(
                "{} {} ({})",
                self.pick(&["sum", "avg", "stddev", "stdvar"]),
                self.grouping(),
                self.vector(depth - 1)
            ),
            15 => format!(
                "quantile {} ({}, {})",
                self.grouping(),
                self.pick(&["0.5", "0.9", "0", "1.5"]),
                self.vector(depth - 1)
            ),
            16 => {
                let k = self.pick(&["1", "2", "3", "0", "100", "scalar(count(up))"]);
                format!(
                    "{} {} ({k}, {}{})",
                    self.pick(&["topk", "bottomk"]),
                    self.grouping(),
                    self.pick(DISTINCT),
                    self.modifiers()
                )
            }
            17 => format!(
                "({} {} {})",
                self.vector(depth - 1),
                self.arithmetic(),
                self.scalar(1)
            ),
            18 => format!(
                "({} {} {})",
                self.scalar(1),
                self.arithmetic(),
                self.vector(depth - 1)
            ),
            19 | 20 => {
                let op = self.arithmetic();
                let matching = self.matching();
                format!(
                    "({} {op} {matching} {})",
                    self.vector(depth - 1),
                    self.vector(depth - 1)
                )
            }
            27 => format!("({} atan2 {})", self.exact(depth - 1), self.exact(depth - 1)),
            28 => format!(
                "({} {} {})",
                self.exact(depth - 1),
                self.pick(&["atan2", "^"]),
                self.number()
            ),
            21 => format!("-({})", self.vector(depth - 1)),
            22 => format!(
                "clamp({}, {}, {})",
                self.exact(depth - 1),
                self.number(),
                self.number()
            ),
            23 => format!(
                "histogram_quantile({}, {})",
                self.pick(&["0.5", "0.99", "0", "1", "2"]),
                self.buckets()
            ),
            24 => format!("vector({})", self.scalar(2)),
            25 => format!(
                "round({}, {})",
                self.exact(depth - 1),
                self.pick(&["0.5", "10", "3"])
            ),
            26 => format!("clamp_max({}, {})", self.exact(depth - 1), self.scalar(1)),
            _ => self.exact(depth),
        }
    }

    fn buckets(&mut self) -> String {
        let range = self.pick(&["2m", "5m", "20m"]);
        let buckets = format!("rate(latency_seconds_bucket[{range}])");
        match self.rng.u32(0..4) {
            0 => format!("sum by (le) ({buckets})"),
            1 => format!("sum by (le, instance) ({buckets})"),
            2 => buckets,
            _ => format!("latency_seconds_bucket{}", self.modifiers()),
        }
    }

    fn sorted(&mut self) -> String {
        let sort = self.pick(&["sort", "sort_desc"]);
        format!("{sort}({}{})", self.pick(DISTINCT), self.modifiers())
    }
}
