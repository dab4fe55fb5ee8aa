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
    ("°|º|˚|degree~|deg", "°"), ("c|℃|ºc|degc|celsius|centigrade; °|º|˚|degree~|deg c|celsius|centigrade", "°C"),
    ("f|℉|ºf|degf|fahrenheit; °|º|˚|degree~|deg f|fahrenheit", "°F"), ("kelvin~; °|º|˚|degree~|deg k|kelvin", "K"),
    ("percent|pct; per cent; percentage points; %|percent rh", "%"), ("parts per million", "ppm"),
    ("parts per billion", "ppb"),
    // Times.
    ("nanosecond~", "ns"), ("us|μs|microsecond~", "µs"), ("millisecond~", "ms"), ("sec~|second~", "s"),
    ("mins|minute~", "min"), ("hr~|hour~", "h"), ("day~", "d"), ("wk|week~", "weeks"), ("month~", "months"),
    ("yr|year~", "years"),
    // Lengths, areas and volumes.
    ("um|μm|micrometer~|micrometre~", "µm"), ("millimeter~|millimetre~", "mm"), ("centimeter~|centimetre~", "cm"),
    ("meter~|metre~", "m"), ("kilometer~|kilometre~", "km"), ("inch|inches", "in"), ("foot|feet", "ft"),
    ("yard~", "yd"), ("mile~", "mi"), ("m2|sqm; m ^ 2; square|sq meter~|metre~|m", "m²"), ("hectare~", "ha"),
    ("ft2|sqft; square|sq feet|foot|ft", "ft²"), ("ft3; cubic|cu feet|foot|ft", "ft³"),
    ("m3; m ^ 3; cubic|cu meter~|metre~|m", "m³"), ("milliliter~|millilitre~", "ml"), ("liter~|litre~", "l"),
    ("gallon~", "gal"),
    // Masses, pressures and forces.
    ("ug|μg|microgram~", "µg"), ("milligram~", "mg"), ("gram~|gramme~", "g"), ("kilogram~", "kg"),
    ("tonne~; metric ton~", "t"), ("ounce~", "oz"), ("lbs|pound~", "lb"), ("pascal~", "Pa"), ("hectopascal~", "hPa"),
    ("kilopascal~", "kPa"), ("megapascal~", "MPa"), ("bars", "bar"), ("millibar~", "mbar"), ("newton~", "N"),
    ("n ·|⋅|* m; newton~ -? meter~|metre~", "Nm"),
    // Electricity and energy.
    ("millivolt~", "mV"), ("volt~", "V"), ("kilovolt~", "kV"), ("milliamp~|milliampere~", "mA"), ("amp~|ampere~", "A"),
    ("ohm~|\u{2126}", "Ω"), ("watt~", "W"), ("kilowatt~", "kW"), ("megawatt~", "MW"), ("horsepower", "hp"),
    ("watt~ -? hour~", "Wh"), ("kw ·|⋅|* h; kilowatt~ -? hour~", "kWh"), ("megawatt~ -? hour~", "MWh"), ("joule~", "J"),
    ("kilojoule~", "kJ"), ("calorie~", "cal"),
    // Frequency, light and data.
    ("decibel~", "dB"), ("radian~", "rad"), ("hertz", "Hz"), ("kilohertz", "kHz"), ("megahertz", "MHz"),
    ("gigahertz", "GHz"), ("lux", "lx"), ("lumen~", "lm"), ("pixel~", "px"), ("bits", "bit"), ("byte~", "B"),
    ("kilobyte~", "kB"), ("megabyte~", "MB"), ("gigabyte~", "GB"), ("terabyte~", "TB"),
    ("byte~ /|per s|sec|second", "B/s"), ("bps", "bit/s"), ("kbps", "kbit/s"), ("mbps", "Mbit/s"), ("gbps", "Gbit/s"),
    // Quotients.
    ("mps; meter~|metre~ /|per s|sec|second", "m/s"), ("m / s2; m / s ^ 2", "m/s²"),
    ("kph|kmh|kmph; km|kilometer~|kilometre~ per|/ hour|h|hr", "km/h"), ("mph; mile~|mi /|per h|hr|hour", "mi/h"),
    ("kn|kt~|knot~", "nmi/h"), ("lpm; liter~|litre~ per min|minute", "l/min"), ("liter~|litre~ per hour", "l/h"),
    ("gpm", "gal/min"), ("cfm", "ft³/min"), ("m3 / s", "m³/s"), ("m3 / h; cubic meter~|metre~ per hour", "m³/h"),
    ("ug|μg|µg / m3|m³", "µg/m³"), ("mg / m3", "mg/m³"), ("g / m3", "g/m³"), ("kg / m3", "kg/m³"), ("w / m2", "W/m²"),
    ("rpm", "revolutions/min"), ("bpm", "beats/min"), ("fps", "frames/s"), ("/|per s|sec|second", "/s"),
    ("/|per min|minute", "/min"), ("/|per h|hr|hour", "/h"), ("/|per d|day", "/d"),
    ("request~|req~ /|per s|sec|second", "requests/s"), ("request~|req~ /|per min|minute", "requests/min"),
    ("message~|msg~ /|per s|sec|second", "messages/s"), ("event~ /|per s|sec|second", "events/s"),
    ("error~ /|per s|sec|second", "errors/s"), ("error~ /|per min|minute", "errors/min"),
    // Money and things.
    ("dollar~", "USD"), ("euro~", "EUR"), ("yen", "JPY"), ("rupee~", "INR"), ("unit~", "units"), ("item~", "items"),
    ("piece~|pcs", "pieces"), ("person|people", "people"), ("user~", "users"), ("visitor~", "visitors"),
    ("customer~", "customers"), ("vehicle~", "vehicles"), ("event~", "events"), ("request~|req~", "requests"),
    ("response~", "responses"), ("query|queries", "queries"), ("messages|msg~", "messages"), ("calls", "calls"),
    ("packet~", "packets"), ("connection~", "connections"), ("session~", "sessions"), ("transaction~", "transactions"),
    ("orders", "orders"), ("job~", "jobs"), ("task~", "tasks"), ("thread~", "threads"), ("error~", "errors"),
    ("failure~", "failures"), ("row~", "rows"), ("records", "records"), ("file~", "files"), ("points", "points"),
    ("beat~", "beats"), ("frame~", "frames"), ("revolution~|rev", "revolutions"),
];
