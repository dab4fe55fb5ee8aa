//! All limits of the specification and the contract.

/// Body of `POST /api/data`. All limits of bodies apply to the decompressed size.
pub const INGEST_BODY_BYTES_MAX: usize = 102_400;
/// Body of `POST /api/data/batch`.
pub const BATCH_BODY_BYTES_MAX: usize = 10_485_760;
/// Body of every other route.
pub const BODY_BYTES_MAX: usize = 1_048_576;
pub const BATCH_ENTRIES_MAX: usize = 1_000;
/// Length of the text of a dimension's value, in bytes; a longer string is no dimension.
pub const DIMENSION_VALUE_BYTES_MAX: usize = 1_024;
/// Number of dimensions that a source may name.
pub const DIMENSIONS_MAX: usize = 32;
/// Dimensions that a query has conditions for.
pub const DIMENSION_FILTERS_MAX: usize = 64;
/// Dimensions by which a query groups.
pub const GROUP_DIMENSIONS_MAX: usize = 8;
/// Length of a dimension's name in a list, in characters.
pub const DIMENSION_NAME_CHARS_MAX: usize = 128;
/// Metadata of one point, as sent.
pub const METADATA_BYTES_MAX: usize = 16_384;
/// Age of a batch entry.
pub const BATCH_AGE_DAYS_MAX: i64 = 30;
/// Length of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// Refused entries of an agent that an answer lists; it has the number of all.
pub const REFUSALS_SHOWN_MAX: usize = 1_000;
/// Faults listed in an error; the message has the total number.
pub const FAULTS_SHOWN_MAX: usize = 100;
/// Bytes of the names that a message lists.
pub const NAMES_SHOWN_BYTES_MAX: usize = 1_024;

/// Deletions of points that an organization has in progress. They are done one after the other.
pub const DELETIONS_OF_ORGANIZATION_MAX: usize = 4;
/// Exports that an organization has in progress.
pub const EXPORTS_OF_ORGANIZATION_MAX: usize = 4;
/// Imports that an organization has in progress.
pub const IMPORTS_OF_ORGANIZATION_MAX: usize = 4;
/// Distinct names in a query's `fields`: the maximum of a schema.
pub const QUERY_FIELDS_MAX: usize = SCHEMA_FIELDS_MAX;
/// Entries of each array of a query.
pub const QUERY_ENTRIES_MAX: usize = 10_000;
/// Members of a query's metadata filter.
pub const METADATA_FILTER_MEMBERS_MAX: usize = 64;
/// Aggregations of a query.
pub const AGGREGATIONS_MAX: usize = 8;
/// Fields that a query has conditions for.
pub const VALUE_FILTER_FIELDS_MAX: usize = 64;
/// Expressions of a query.
pub const EXPRESSIONS_MAX: usize = 8;
/// Characters of an expression.
pub const EXPRESSION_CHARS_MAX: usize = 1_000;
/// Rows that `fill` makes.
pub const FILLED_ROWS_MAX: usize = 1_000_000;
/// Sources that `top` keeps.
pub const TOP_MAX: u64 = 1_000;
/// Values of an `in` of a query.
pub const VALUE_FILTER_VALUES_MAX: usize = 1_000;

/// Default `limit` of a list.
pub const LIST_LIMIT_DEFAULT: u64 = 100;
pub const LIST_LIMIT_MAX: u64 = 1_000;
/// Default `limit` of raw rows.
pub const QUERY_LIMIT_DEFAULT: u64 = 100;
pub const QUERY_LIMIT_MAX: u64 = 10_000;
/// Minimum of `maxPoints`; the maximum is [`QUERY_LIMIT_MAX`].
pub const QUERY_POINTS_MIN: u64 = 100;

/// Characters of a bucket's or a key's name.
pub const NAME_CHARS_MAX: usize = 100;
/// Characters of names without a limit in the specification: users, organizations, data sources, types, units.
pub const OPEN_NAME_CHARS_MAX: usize = 200;
/// Characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 4_096;
/// Characters of an email address (RFC 5321: a path of 256 with its angle brackets).
pub const EMAIL_CHARS_MAX: usize = 254;
/// Characters of a password.
pub const PASSWORD_CHARS_MIN: usize = 10;
/// Characters of a password.
pub const PASSWORD_CHARS_MAX: usize = 128;

/// Seconds for which the former value of a rotated key works.
pub const KEY_OVERLAP_SECONDS_MAX: u64 = 604_800;

/// Fields of a schema, including fields added while ingesting.
pub const SCHEMA_FIELDS_MAX: usize = 256;
/// Characters of a field's name.
pub const FIELD_NAME_CHARS_MAX: usize = 128;

/// Maximum `retentionDays`. It is longer than the range of timestamps in 64-bit nanoseconds.
pub const RETENTION_DAYS_MAX: u32 = 1_000_000;
/// `retentionDays` of a new bucket on a plan without a maximum.
pub const RETENTION_DAYS_UNLIMITED_DEFAULT: u32 = 365;

/// Characters of a rule's condition.
pub const CONDITION_CHARS_MAX: usize = 1_000;
/// Characters of the note of an acknowledgement.
pub const ACKNOWLEDGEMENT_CHARS_MAX: usize = 1_000;
/// Rules that a silence names.
pub const SILENCED_RULES_MAX: usize = 1_000;
/// Characters of a silence's reason.
pub const SILENCE_REASON_CHARS_MAX: usize = 1_000;
/// Characters of an annotation's text.
pub const ANNOTATION_CHARS_MAX: usize = 2_000;
/// Boards of an organization.
pub const BOARDS_MAX: usize = 1_000;
/// Bytes of a board as JSON: what is exported can be imported.
pub const BOARD_BYTES_MAX: usize = 524_288;
/// Minimum and maximum `refreshSeconds` of a board.
pub const BOARD_REFRESH_SECONDS: (u64, u64) = (5, 86_400);
/// Variables of a board.
pub const BOARD_VARIABLES_MAX: usize = 20;
/// Choices of a variable.
pub const VARIABLE_VALUES_MAX: usize = 1_000;
/// Characters of a variable's value.
pub const VARIABLE_VALUE_CHARS_MAX: usize = 1_024;
/// Panels of a board.
pub const BOARD_PANELS_MAX: usize = 100;
/// Characters of a panel's title.
pub const PANEL_TITLE_CHARS_MAX: usize = 100;
/// Characters of a panel's unit.
pub const PANEL_UNIT_CHARS_MAX: usize = 32;
/// Digits behind the point that a panel shows.
pub const PANEL_DECIMALS_MAX: u64 = 10;
/// Thresholds of a panel.
pub const PANEL_THRESHOLDS_MAX: usize = 10;
/// Columns of a board's grid.
pub const BOARD_COLUMNS: u64 = 12;
/// The greatest first row of a panel.
pub const PANEL_ROW_MAX: u64 = 1_000;
/// Rows of a panel.
pub const PANEL_ROWS_MAX: u64 = 100;
/// Links of a board that have not expired.
pub const BOARD_SHARES_MAX: usize = 100;
/// Days for which a link shows its board at most.
pub const SHARE_DAYS_MAX: i64 = 366;
/// Requests with one link in a minute.
pub const SHARED_CALLS_PER_MINUTE: usize = 60;
/// Minimum and maximum seconds after which a rule is due again.
pub const INTERVAL_SECONDS: (u64, u64) = (60, 86_400);
/// Minimum and maximum seconds that a rule or an input observes.
pub const WINDOW_SECONDS: (u64, u64) = (60, 31_536_000);
/// Inputs of a rule.
pub const EVALUATION_INPUTS_MAX: usize = 10;
/// Characters of a rule's `kind`.
pub const EVALUATION_KIND_CHARS_MAX: usize = 64;
/// Characters of an input's key.
pub const INPUT_KEY_CHARS_MAX: usize = 128;
/// Parameters of a rule.
pub const PARAMETERS_MAX: usize = 256;
/// Characters of a parameter's name, and of a text parameter.
pub const PARAMETER_CHARS_MAX: usize = 4_096;
/// Evidence of a verdict, as sent.
pub const EVIDENCE_BYTES_MAX: usize = 65_536;
/// Minimum and maximum seconds of a claim.
pub const CLAIM_SECONDS: (u64, u64) = (5, 3_600);
/// Minimum and maximum seconds that are expected between two points of a source: up to a year.
pub const EXPECTED_INTERVAL_SECONDS: (u64, u64) = (1, 31_536_000);
/// Verdicts of a backtest.
pub const BACKTEST_VERDICTS_MAX: usize = 10_000;
/// Days that a rule's history is kept.
pub const HISTORY_DAYS: i64 = 90;
/// Days that entries of the audit are kept.
pub const AUDIT_DAYS: i64 = 365;
/// Bytes of JSON of a value in the audit's changes; a longer one is cut.
pub const AUDIT_VALUE_BYTES_MAX: usize = 4_096;
/// Bytes of JSON of a deletion's filters in the audit, which say which points are gone; longer ones are cut.
pub const AUDIT_FILTERS_BYTES_MAX: usize = 65_536;
/// Days that deliveries are kept.
pub const DELIVERIES_DAYS: i64 = 7;
/// Attempts after the first.
pub const RETRIES_MAX: u64 = 10;
/// Minimum and maximum base of the waits between attempts.
pub const BACKOFF_MULTIPLIER: (u64, u64) = (1, 10);
/// Characters of a webhook's URL.
pub const URL_CHARS_MAX: usize = 2_048;
/// Characters of a webhook's template.
pub const TEMPLATE_CHARS_MAX: usize = 16_384;
/// Characters of a webhook's routing key.
pub const ROUTING_KEY_CHARS_MAX: usize = 128;
/// Characters of a webhook's secret.
pub const SECRET_CHARS_MAX: usize = 512;

/// Hours a bearer token is valid.
pub const TOKEN_HOURS: i64 = 12;
/// Hours for which a session can be renewed: 30 days.
pub const SESSION_HOURS_MAX: i64 = 30 * 24;
/// Sessions of a user; beyond it the oldest ends.
pub const USER_SESSIONS_MAX: usize = 100;
/// Characters of a session's user agent; the rest is cut off.
pub const USER_AGENT_CHARS_MAX: usize = 256;
/// Members of an organization and its open invitations together.
pub const MEMBERS_MAX: usize = 1_000;
/// Open invitations of an organization.
pub const INVITATIONS_MAX: usize = 100;
/// Days for which an invitation is open.
pub const INVITATION_DAYS: i64 = 7;
/// Hours for which a link to reset a password works.
pub const RESET_HOURS: i64 = 24;
/// Characters of the token of an invitation or of a link to reset a password, as sent.
pub const LINK_TOKEN_CHARS_MAX: usize = 128;
/// Failed logins of one email within the window before it is locked.
pub const LOGIN_FAILURES_PER_EMAIL_MAX: usize = 10;
/// Failed logins from one address within the window before it is locked.
pub const LOGIN_FAILURES_PER_ADDRESS_MAX: usize = 50;
/// The window of failed logins.
pub const LOGIN_WINDOW_SECONDS: i64 = 15 * 60;

const _: () = assert!(LIST_LIMIT_DEFAULT <= LIST_LIMIT_MAX && QUERY_LIMIT_DEFAULT <= QUERY_LIMIT_MAX);
const _: () = assert!(INGEST_BODY_BYTES_MAX < BODY_BYTES_MAX && BODY_BYTES_MAX < BATCH_BODY_BYTES_MAX);
const _: () = assert!(SCHEMA_FIELDS_MAX < u16::MAX as usize);
