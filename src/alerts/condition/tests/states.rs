//! What boolean and string fields are said to be.

use super::*;

#[test]
fn booleans() {
    understood(&[
        ("is_open is true", "is_open eq true"),
        ("is_open = true", "is_open eq true"),
        ("is_open equals false", "is_open eq false"),
        ("is_open = 1", "is_open eq true"),
        ("is_open == 0", "is_open eq false"),
        ("is_open is not true", "is_open neq true"),
        ("is_open != false", "is_open neq false"),
        ("pump equals off", "pump eq false"),
        ("Alert me when the pump is OFF.", "pump eq false"),
        ("pump turns on", "pump eq true"),
        ("pump is active", "pump eq true"),
        ("pump becomes inactive", "pump eq false"),
        ("pump isn't enabled", "pump neq true"),
        ("pump is disabled", "pump eq false"),
        ("is_open is yes", "is_open eq true"),
        ("is_open is no", "is_open eq false"),
        ("is_open is closed", "is_open eq false"),
        ("if pump is off, alert me", "pump eq false"),
    ]);
}

#[test]
fn texts() {
    understood(&[
        ("status is up", "status eq \"up\""),
        ("door equals open", "door eq \"open\""),
        ("door equals 'open'", "door eq \"open\""),
        ("door equals \"open\"", "door eq \"open\""),
        ("door equals “open”", "door eq \"open\""),
        ("door equals „offen“", "door eq \"offen\""),
        ("door='open'", "door eq \"open\""),
        ("door is open.", "door eq \"open\""),
        ("door is Open", "door eq \"Open\""),
        ("door is not open", "door neq \"open\""),
        ("door isn't 'closed'", "door neq \"closed\""),
        ("door differs from closed", "door neq \"closed\""),
        ("status is Out  Of Order", "status eq \"Out  Of Order\""),
        ("status is ' in  Order '", "status eq \" in  Order \""),
        ("status is in progress", "status eq \"in progress\""),
        ("status is rising", "status eq \"rising\""),
        ("status equals 'not ok'", "status eq \"not ok\""),
        ("status is \"open and closed\"", "status eq \"open and closed\""),
        ("status is ''", "status eq \"\""),
        ("status is \"it's 5 o'clock\"", "status eq \"it's 5 o'clock\""),
        ("status equals out-of-range #3", "status eq \"out-of-range #3\""),
        ("status equals 'n/a'", "status eq \"n/a\""),
        ("status equals v1.2", "status eq \"v1.2\""),
        ("status is Gestört", "status eq \"Gestört\""),
        ("error_code equals 42", "error-code eq \"42\""),
        ("error code = -1,5", "error-code eq \"-1,5\""),
        ("error code = 10.0.0.1", "error-code eq \"10.0.0.1\""),
        ("status is down, then notify me", "status eq \"down\""),
        ("status turns 🔥", "status eq \"🔥\""),
    ]);
}
