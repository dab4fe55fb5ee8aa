//! The known units and their spellings. Any other unit is understood only as the unit of a field whose schema has it.

/// Units of time. After a change they may be durations.
pub(super) const TIMES: &[&str] = &["ns", "µs", "ms", "s", "min", "h", "d", "weeks", "months", "years"];

/// Symbols that often are not units: "5 m" may mean million.
pub(super) const AMBIGUOUS: &[&str] = &["m", "K", "B", "in"];

/// Currency signs, before or after an amount.
pub(super) const CURRENCIES: &[(&str, &str)] = &[
    ("$", "USD"),
    ("€", "EUR"),
    ("£", "GBP"),
    ("¥", "JPY"),
    ("₹", "INR"),
];

/// Symbols of units. They match as written; if none does, those of several letters match in any case.
#[rustfmt::skip]
pub(super) const SYMBOLS: &[&str] = &[
    "ns", "µs", "ms", "s", "min", "h", "d",
    "°", "°C", "°F", "K", "%", "‰", "ppm", "ppb", "dB", "dBm", "dBA", "pH", "NTU", "rad",
    "nm", "µm", "mm", "cm", "m", "km", "in", "ft", "yd", "mi",
    "mm²", "cm²", "m²", "km²", "ha", "ft²", "cm³", "m³", "ft³", "ml", "cl", "l", "hl", "gal",
    "µg", "mg", "g", "kg", "t", "oz", "lb", "µmol", "mmol", "mol",
    "Pa", "hPa", "kPa", "MPa", "µbar", "mbar", "bar", "psi", "atm", "mmHg", "inHg", "Torr", "N", "kN", "Nm", "kNm",
    "µV", "mV", "V", "kV", "nA", "µA", "mA", "A", "kA", "mAh", "Ah", "mΩ", "Ω", "kΩ", "MΩ", "pF", "nF", "µF", "mF",
    "µW", "mW", "W", "kW", "MW", "GW", "VA", "kVA", "MVA", "var", "kvar", "hp", "µT", "mT", "µH", "mH",
    "J", "kJ", "MJ", "GJ", "Wh", "kWh", "MWh", "GWh", "cal", "kcal", "BTU", "eV", "keV", "MeV",
    "Hz", "kHz", "MHz", "GHz", "lm", "lx", "cd", "Bq", "kBq", "µSv", "mSv", "Sv", "mGy", "Gy", "cP", "px",
    "B", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "bit", "kbit", "Mbit", "Gbit",
    "B/s", "kB/s", "MB/s", "GB/s", "KiB/s", "MiB/s", "GiB/s", "bit/s", "kbit/s", "Mbit/s", "Gbit/s",
    "mm/s", "cm/s", "m/s", "km/h", "m/s²", "ml/min", "l/s", "l/min", "l/h", "m³/s", "m³/min", "m³/h", "kg/s", "kg/h",
    "t/h", "ng/m³", "µg/m³", "mg/m³", "g/m³", "kg/m³", "µg/l", "mg/l", "g/l", "mmol/l", "µS/cm", "mS/cm", "W/m²",
    "kWh/m²", "Bq/m³", "µSv/h", "USD", "EUR", "GBP", "JPY", "INR",
];

/// Other spellings in any case, as patterns of `phrase`, and the unit. Things are counted in the plural only where the
/// singular is also a verb ("message me").
#[rustfmt::skip]
pub(super) const SPELLINGS: &[(&str, &str)] = &[
    // Temperatures and shares.
    ("°|º|˚|degree|degrees|deg", "°"),
    ("c|℃|ºc|degc|celsius|centigrade", "°C"), ("°|º|˚|degree|degrees|deg c|celsius|centigrade", "°C"),
    ("f|℉|ºf|degf|fahrenheit", "°F"), ("°|º|˚|degree|degrees|deg f|fahrenheit", "°F"),
    ("kelvin|kelvins", "K"), ("°|º|˚|degree|degrees|deg k|kelvin", "K"),
    ("percent|pct", "%"), ("per cent", "%"), ("percentage points", "%"), ("%|percent rh", "%"),
    ("parts per million", "ppm"), ("parts per billion", "ppb"),
    // Times.
    ("nanosecond|nanoseconds", "ns"), ("us|μs|microsecond|microseconds", "µs"), ("millisecond|milliseconds", "ms"),
    ("sec|secs|second|seconds", "s"), ("mins|minute|minutes", "min"), ("hr|hrs|hour|hours", "h"), ("day|days", "d"),
    ("wk|week|weeks", "weeks"), ("month|months", "months"), ("yr|year|years", "years"),
    // Lengths, areas and volumes.
    ("um|μm|micrometer|micrometers|micrometre|micrometres", "µm"),
    ("millimeter|millimeters|millimetre|millimetres", "mm"), ("centimeter|centimeters|centimetre|centimetres", "cm"),
    ("meter|meters|metre|metres", "m"), ("kilometer|kilometers|kilometre|kilometres", "km"),
    ("inch|inches", "in"), ("foot|feet", "ft"), ("yard|yards", "yd"), ("mile|miles", "mi"),
    ("m2|sqm", "m²"), ("m ^ 2", "m²"), ("square|sq meter|meters|metre|metres|m", "m²"), ("hectare|hectares", "ha"),
    ("ft2|sqft", "ft²"), ("square|sq feet|foot|ft", "ft²"), ("ft3", "ft³"), ("cubic|cu feet|foot|ft", "ft³"),
    ("m3", "m³"), ("m ^ 3", "m³"), ("cubic|cu meter|meters|metre|metres|m", "m³"),
    ("milliliter|milliliters|millilitre|millilitres", "ml"), ("liter|liters|litre|litres", "l"),
    ("gallon|gallons", "gal"),
    // Masses, pressures and forces.
    ("ug|μg|microgram|micrograms", "µg"), ("milligram|milligrams", "mg"), ("gram|grams|gramme|grammes", "g"),
    ("kilogram|kilograms", "kg"), ("tonne|tonnes", "t"), ("metric ton|tons", "t"), ("ounce|ounces", "oz"),
    ("lbs|pound|pounds", "lb"), ("pascal|pascals", "Pa"), ("hectopascal|hectopascals", "hPa"),
    ("kilopascal|kilopascals", "kPa"), ("megapascal|megapascals", "MPa"), ("bars", "bar"),
    ("millibar|millibars", "mbar"),
    ("newton|newtons", "N"), ("n ·|⋅|* m", "Nm"), ("newton|newtons -? meter|meters|metre|metres", "Nm"),
    // Electricity and energy.
    ("millivolt|millivolts", "mV"), ("volt|volts", "V"), ("kilovolt|kilovolts", "kV"),
    ("milliamp|milliamps|milliampere|milliamperes", "mA"), ("amp|amps|ampere|amperes", "A"), ("ohm|ohms|\u{2126}", "Ω"),
    ("watt|watts", "W"), ("kilowatt|kilowatts", "kW"), ("megawatt|megawatts", "MW"), ("horsepower", "hp"),
    ("watt|watts -? hour|hours", "Wh"), ("kw ·|⋅|* h", "kWh"), ("kilowatt|kilowatts -? hour|hours", "kWh"),
    ("megawatt|megawatts -? hour|hours", "MWh"),
    ("joule|joules", "J"), ("kilojoule|kilojoules", "kJ"), ("calorie|calories", "cal"),
    // Frequency, light and data.
    ("decibel|decibels", "dB"), ("radian|radians", "rad"),
    ("hertz", "Hz"), ("kilohertz", "kHz"), ("megahertz", "MHz"), ("gigahertz", "GHz"), ("lux", "lx"),
    ("lumen|lumens", "lm"),
    ("pixel|pixels", "px"), ("bits", "bit"), ("byte|bytes", "B"), ("kilobyte|kilobytes", "kB"),
    ("megabyte|megabytes", "MB"), ("gigabyte|gigabytes", "GB"), ("terabyte|terabytes", "TB"),
    ("byte|bytes /|per s|sec|second", "B/s"), ("bps", "bit/s"), ("kbps", "kbit/s"), ("mbps", "Mbit/s"),
    ("gbps", "Gbit/s"),
    // Quotients.
    ("mps", "m/s"), ("meter|meters|metre|metres /|per s|sec|second", "m/s"), ("m / s2", "m/s²"), ("m / s ^ 2", "m/s²"),
    ("kph|kmh|kmph", "km/h"), ("km|kilometer|kilometers|kilometre|kilometres per|/ hour|h|hr", "km/h"),
    ("mph", "mi/h"), ("mile|miles|mi /|per h|hr|hour", "mi/h"), ("kn|kt|kts|knot|knots", "nmi/h"),
    ("lpm", "l/min"), ("liter|liters|litre|litres per min|minute", "l/min"),
    ("liter|liters|litre|litres per hour", "l/h"),
    ("gpm", "gal/min"), ("cfm", "ft³/min"), ("m3 / s", "m³/s"), ("m3 / h", "m³/h"),
    ("cubic meter|meters|metre|metres per hour", "m³/h"), ("ug|μg|µg / m3|m³", "µg/m³"), ("mg / m3", "mg/m³"),
    ("g / m3", "g/m³"), ("kg / m3", "kg/m³"), ("w / m2", "W/m²"), ("rpm", "revolutions/min"), ("bpm", "beats/min"),
    ("fps", "frames/s"), ("/|per s|sec|second", "/s"), ("/|per min|minute", "/min"), ("/|per h|hr|hour", "/h"),
    ("/|per d|day", "/d"), ("request|requests|req|reqs /|per s|sec|second", "requests/s"),
    ("request|requests|req|reqs /|per min|minute", "requests/min"),
    ("message|messages|msg|msgs /|per s|sec|second", "messages/s"), ("event|events /|per s|sec|second", "events/s"),
    ("error|errors /|per s|sec|second", "errors/s"), ("error|errors /|per min|minute", "errors/min"),
    // Money and things.
    ("dollar|dollars", "USD"), ("euro|euros", "EUR"), ("yen", "JPY"), ("rupee|rupees", "INR"),
    ("unit|units", "units"), ("item|items", "items"), ("piece|pieces|pcs", "pieces"), ("person|people", "people"),
    ("user|users", "users"), ("visitor|visitors", "visitors"), ("customer|customers", "customers"),
    ("vehicle|vehicles", "vehicles"), ("event|events", "events"), ("request|requests|req|reqs", "requests"),
    ("response|responses", "responses"), ("query|queries", "queries"), ("messages|msg|msgs", "messages"),
    ("calls", "calls"), ("packet|packets", "packets"), ("connection|connections", "connections"),
    ("session|sessions", "sessions"), ("transaction|transactions", "transactions"), ("orders", "orders"),
    ("job|jobs", "jobs"), ("task|tasks", "tasks"), ("thread|threads", "threads"), ("error|errors", "errors"),
    ("failure|failures", "failures"), ("row|rows", "rows"), ("records", "records"), ("file|files", "files"),
    ("points", "points"), ("beat|beats", "beats"), ("frame|frames", "frames"),
    ("revolution|revolutions|rev", "revolutions"),
];
