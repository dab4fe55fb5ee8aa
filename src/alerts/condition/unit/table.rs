//! The built-in units and their spellings. Any other unit is understood only after a number of a field that has this
//! unit.

/// A part of a unit, such as the hours of "km/h": `h` to the power of -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    pub prefix: &'static str,
    pub base: &'static str,
    pub power: i8,
}

/// A base without prefix.
pub(super) const fn factor(base: &'static str) -> Factor {
    power(base, 1)
}

const fn power(base: &'static str, power: i8) -> Factor {
    let prefix = "";
    Factor { prefix, base, power }
}

/// Symbols that often are not units: "5 m" may mean million, and "5 pm" a time of day.
pub(super) const AMBIGUOUS: &[&str] = &["m", "K", "B", "b", "T", "in", "pm"];

/// Prefixes: the canonical symbol, its spellings, and the prefix of names.
const PREFIXES: &[(&str, &str, &str)] = &[
    ("k", "k|K", "kilo"),
    ("M", "M", "mega"),
    ("G", "G", "giga"),
    ("T", "T", "tera"),
    ("P", "P", "peta"),
    ("m", "m", "milli"),
    ("µ", "µ|μ|u", "micro"),
    ("n", "n", "nano"),
    ("p", "p", "pico"),
    ("c", "c", "centi"),
    ("d", "d", "deci"),
    ("h", "h", "hecto"),
    ("Ki", "Ki", "kibi"),
    ("Mi", "Mi", "mebi"),
    ("Gi", "Gi", "gibi"),
    ("Ti", "Ti", "tebi"),
];
const ALL: &str = "k|M|G|T|P|m|µ|n|p|c|d|h";
const THOUSANDS: &str = "k|M|G|T|P|m|µ|n|p";
const LARGE: &str = "k|M|G|T|P|Ki|Mi|Gi|Ti";

/// Canonical unit, symbols, names, allowed prefixes. Names match in any case and with a plural "s". Symbols match
/// exactly; if no symbol does, symbols of several letters match in any case.
#[rustfmt::skip]
const UNITS: &[(&str, &str, &str, &str)] = &[
    ("m", "m", "meter|metre", ALL),
    ("g", "g", "gram|gramme", ALL),
    ("l", "l|L", "liter|litre", ALL),
    ("Pa", "Pa", "pascal", ALL),
    ("s", "s|sec|secs", "second", THOUSANDS),
    ("A", "A", "ampere|amp", THOUSANDS),
    ("mol", "mol", "mole", THOUSANDS),
    ("cd", "cd", "candela", ""),
    ("Hz", "Hz", "hertz", THOUSANDS),
    ("N", "N", "newton", THOUSANDS),
    ("J", "J", "joule", THOUSANDS),
    ("W", "W", "watt", THOUSANDS),
    ("V", "V", "volt", THOUSANDS),
    ("Ω", "Ω|Ω", "ohm", THOUSANDS),
    ("S", "S", "siemens", THOUSANDS),
    ("T", "T", "tesla", THOUSANDS),
    ("H", "H", "henry", THOUSANDS),
    ("lm", "lm", "lumen", ""),
    ("lx", "lx", "lux", THOUSANDS),
    ("Bq", "Bq", "becquerel", THOUSANDS),
    ("Gy", "Gy", "gray", THOUSANDS),
    ("Sv", "Sv", "sievert", THOUSANDS),
    ("eV", "eV", "electronvolt", THOUSANDS),
    ("t", "t", "tonne", THOUSANDS),
    ("bar", "bar", "bar", THOUSANDS),
    ("cal", "cal", "calorie", THOUSANDS),
    ("rad", "rad", "radian", THOUSANDS),
    ("var", "var", "", THOUSANDS),
    // A bare C or F is a temperature.
    ("°C", "C|c|ºC|degC", "celsius|centigrade", ""),
    ("°F", "F|f|ºF|degF", "fahrenheit", ""),
    ("F", "F", "farad", THOUSANDS),
    ("K", "K", "kelvin", THOUSANDS),
    ("min", "min|mins", "minute", ""),
    ("h", "h|hr|hrs", "hour", ""),
    ("d", "d", "day", ""),
    ("week", "wk", "week", ""),
    ("month", "", "month", ""),
    ("year", "yr", "year", ""),
    ("psi", "psi", "", ""),
    ("atm", "atm", "atmosphere", ""),
    ("mmHg", "mmHg", "", ""),
    ("inHg", "inHg", "", ""),
    ("Torr", "Torr", "", "m"),
    ("in", "in", "inch|inches", ""),
    ("ft", "ft", "foot|feet", ""),
    ("yd", "yd", "yard", ""),
    ("mi", "mi", "mile", ""),
    ("nmi", "nmi", "", ""),
    ("ha", "ha", "hectare", ""),
    ("acre", "", "acre", ""),
    ("gal", "gal", "gallon", ""),
    ("oz", "oz", "ounce", ""),
    ("lb", "lb|lbs", "pound", ""),
    ("ton", "", "ton", ""),
    ("hp", "hp", "horsepower", ""),
    ("BTU", "BTU", "", ""),
    ("cP", "cP", "", ""),
    ("ppm", "ppm", "", ""),
    ("ppb", "ppb", "", ""),
    ("dB", "dB", "decibel", ""),
    ("dBm", "dBm", "", ""),
    ("dBA", "dBA", "", ""),
    ("pH", "pH", "", ""),
    ("NTU", "NTU", "", ""),
    ("byte", "B", "byte", LARGE),
    ("bit", "bit|b", "bit", LARGE),
    ("px", "px", "pixel", ""),
    ("USD", "USD", "dollar", ""),
    ("EUR", "EUR", "euro", ""),
    ("GBP", "GBP", "", ""),
    ("JPY", "JPY", "yen", ""),
    ("INR", "INR", "rupee", ""),
    ("revolution", "rev", "revolution", ""),
    ("beat", "", "beat", ""),
    ("frame", "", "frame", ""),
    // Counted things. If the singular is also a verb ("message me"), only the plural is listed.
    ("unit", "", "unit", ""),
    ("item", "", "item", ""),
    ("piece", "pcs", "piece", ""),
    ("person", "", "person|people", ""),
    ("user", "", "user", ""),
    ("visitor", "", "visitor", ""),
    ("customer", "", "customer", ""),
    ("vehicle", "", "vehicle", ""),
    ("event", "", "event", ""),
    ("request", "req|reqs", "request", ""),
    ("response", "", "response", ""),
    ("query", "", "query|queries", ""),
    ("message", "msg|msgs", "messages", ""),
    ("call", "", "calls", ""),
    ("packet", "", "packet", ""),
    ("connection", "", "connection", ""),
    ("session", "", "session", ""),
    ("transaction", "", "transaction", ""),
    ("order", "", "orders", ""),
    ("job", "", "job", ""),
    ("task", "", "task", ""),
    ("thread", "", "thread", ""),
    ("error", "", "error", ""),
    ("failure", "", "failure", ""),
    ("row", "", "row", ""),
    ("record", "", "records", ""),
    ("file", "", "file", ""),
    ("point", "", "points", ""),
];

/// Units that consist of several words or of signs.
pub(super) const PHRASES: &[(&str, Factor)] = &[
    ("°|º|˚|degree|degrees|deg", factor("°")),
    ("°|º|˚|degree|degrees|deg celsius|centigrade|c", factor("°C")),
    ("°|º|˚|degree|degrees|deg fahrenheit|f", factor("°F")),
    ("°|º|˚|degree|degrees|deg kelvin|k", factor("K")),
    ("℃", factor("°C")),
    ("℉", factor("°F")),
    ("%|percent|pct", factor("%")),
    ("per cent", factor("%")),
    ("percentage points", factor("%")),
    ("%|percent rh", factor("%")),
    ("‰", factor("‰")),
    ("parts per million", factor("ppm")),
    ("parts per billion", factor("ppb")),
    ("nautical mile|miles", factor("nmi")),
    ("metric ton|tons", factor("t")),
];

/// Currency signs, before or after an amount.
pub(super) const CURRENCIES: &[(&str, Factor)] = &[
    ("$", factor("USD")),
    ("€", factor("EUR")),
    ("£", factor("GBP")),
    ("¥", factor("JPY")),
    ("₹", factor("INR")),
];

/// Symbols of products, their allowed prefixes, their factors.
const PRODUCTS: &[(&str, &str, &[Factor])] = &[
    ("Wh", THOUSANDS, &[factor("W"), factor("h")]),
    ("Ah", THOUSANDS, &[factor("A"), factor("h")]),
    ("VA", THOUSANDS, &[factor("V"), factor("A")]),
    ("Nm", "k", &[factor("N"), factor("m")]),
    ("bps", LARGE, &[factor("bit"), power("s", -1)]),
    ("mph", "", &[factor("mi"), power("h", -1)]),
    ("mps", "", &[factor("m"), power("s", -1)]),
    ("kn|kt|kts|knot|knots", "", &[factor("nmi"), power("h", -1)]),
    ("kph|kmh|kmph", "", &[KILOMETER, power("h", -1)]),
    ("lpm", "", &[factor("l"), power("min", -1)]),
    ("gpm", "", &[factor("gal"), power("min", -1)]),
    ("cfm", "", &[power("ft", 3), power("min", -1)]),
    ("rpm", "", &[factor("revolution"), power("min", -1)]),
    ("bpm", "", &[factor("beat"), power("min", -1)]),
    ("fps", "", &[factor("frame"), power("s", -1)]),
];
const KILOMETER: Factor = Factor {
    prefix: "k",
    base: "m",
    power: 1,
};

/// The factors of a word without a power. A listed word takes precedence over splitting it into prefix and unit.
pub(super) fn find(word: &str) -> Option<Vec<Factor>> {
    [Spelling::Symbol, Spelling::Name, Spelling::SymbolInAnyCase]
        .into_iter()
        .find_map(|spelling| {
            let prefixed = || {
                PREFIXES.iter().find_map(|(prefix, symbols, name)| {
                    let beginnings = if spelling == Spelling::Name { name } else { symbols };
                    beginnings.split('|').find_map(|beginning| {
                        let (begun, rest) = word.split_at_checked(beginning.len())?;
                        spelling
                            .begins(beginning, begun)
                            .then(|| unit(spelling, prefix, rest))?
                    })
                })
            };
            unit(spelling, "", word).or_else(prefixed)
        })
}

/// The unit with this spelling, if it allows the prefix.
fn unit(spelling: Spelling, prefix: &'static str, word: &str) -> Option<Vec<Factor>> {
    let taken = |prefixes: &str| prefix.is_empty() || prefixes.split('|').any(|one| one == prefix);
    let simple = UNITS.iter().find_map(|(base, symbols, names, prefixes)| {
        let found = taken(prefixes) && spelling.is(symbols, names, word);
        found.then(|| {
            vec![Factor {
                prefix,
                ..factor(base)
            }]
        })
    });
    let product = || {
        PRODUCTS.iter().find_map(|(symbols, prefixes, factors)| {
            let found = taken(prefixes) && spelling.is(symbols, "", word);
            let mut factors = found.then(|| factors.to_vec())?;
            if !prefix.is_empty() {
                factors.first_mut()?.prefix = prefix;
            }
            Some(factors)
        })
    };
    simple.or_else(product)
}

/// How a word can match a unit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Symbol,
    Name,
    SymbolInAnyCase,
}

impl Spelling {
    fn begins(self, beginning: &str, word: &str) -> bool {
        match self {
            Self::Name => beginning.eq_ignore_ascii_case(word),
            Self::Symbol | Self::SymbolInAnyCase => beginning == word,
        }
    }

    /// Whether the word matches one of the symbols or names. List entries are separated by `|`.
    fn is(self, symbols: &str, names: &str, word: &str) -> bool {
        let singular = word
            .strip_suffix(['s', 'S'])
            .filter(|singular| !singular.is_empty());
        let is_one = |entry: &str| match self {
            Self::Symbol => entry == word,
            Self::Name => [Some(word), singular]
                .into_iter()
                .flatten()
                .any(|one| entry.eq_ignore_ascii_case(one)),
            Self::SymbolInAnyCase => entry.chars().nth(1).is_some() && entry.eq_ignore_ascii_case(word),
        };
        let list = if self == Self::Name { names } else { symbols };
        !word.is_empty() && list.split('|').any(is_one)
    }
}
