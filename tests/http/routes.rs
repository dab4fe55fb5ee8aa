//! Every route with its permitted callers: the tables of the contract and the spec as data. The tests of access, of the
//! order of checks and of malformed bodies are generated from it, so that every listed route is covered by them.

mod agents;
mod ids;

pub use agents::AGENT_ROUTES;
pub use ids::Ids;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Bearer,
    Admin,
    Write,
    Read,
    Integration,
    /// The operator, with the token of the configuration.
    Operator,
}

const BEARER: &[Role] = &[Role::Bearer];
const ADMIN: &[Role] = &[Role::Bearer, Role::Admin];
const WRITE: &[Role] = &[Role::Bearer, Role::Admin, Role::Write];
const READ: &[Role] = &[Role::Bearer, Role::Admin, Role::Write, Role::Read];
const EVALUATE: &[Role] = &[Role::Bearer, Role::Admin, Role::Integration];
const OPERATOR: &[Role] = &[Role::Operator];
const QUERY: &[Role] = &[
    Role::Bearer,
    Role::Admin,
    Role::Write,
    Role::Read,
    Role::Integration,
];

pub struct Route {
    pub method: &'static str,
    /// With placeholders for the ids of a scene: `{bucket}`, `{source}`, `{key}`, `{organizationKey}`, `{rule}`,
    /// `{plainRule}`, `{silence}`, `{annotation}`, `{board}`, `{share}`, `{webhook}`, `{delivery}`, `{organization}`,
    /// `{member}`, `{invitation}`, `{session}`.
    pub path: &'static str,
    /// The same placeholders, `{unique}` for a new name, and `{soon}` for a time in a month.
    pub body: Option<&'static str>,
    pub roles: &'static [Role],
    /// The status for a caller of those roles.
    pub success: u16,
}

const fn route(
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
    roles: &'static [Role],
    success: u16,
) -> Route {
    Route {
        method,
        path,
        body,
        roles,
        success,
    }
}

pub const OPERATOR_ROUTES: &[Route] = &[
    route("GET", "/api/operator/organizations", None, OPERATOR, 200),
    route(
        "PATCH",
        "/api/operator/organizations/{organization}",
        Some(r#"{"plan":"Enterprise"}"#),
        OPERATOR,
        200,
    ),
    route("GET", "/api/operator/cluster", None, OPERATOR, 200),
];

/// Public routes: they ignore credentials and succeed for every caller.
pub const PUBLIC_ROUTES: &[Route] = &[
    route("GET", "/api/auth/status", None, &[], 200),
    route("GET", "/health", None, &[], 200),
    route("GET", "/ready", None, &[], 200),
    route("GET", "/metrics", None, &[], 200),
    route("GET", "/api/docs", None, &[], 200),
    route("GET", "/ping", None, &[], 204),
    route("GET", "/", None, &[], 200),
    // No link has this token.
    route("GET", "/api/shared/{token}", None, &[], 404),
    route("POST", "/api/shared/{token}/panels/{index}", None, &[], 404),
    // No asset has this name.
    route("GET", "/assets/{asset}", None, &[], 404),
    route(
        "POST",
        "/api/auth/signup",
        Some(r#"{"email":"{unique}@example.com","password":"correct horse battery","name":"Ada"}"#),
        &[],
        201,
    ),
    // An empty body: a valid one would need a separate account.
    route("POST", "/api/auth/login", Some("{}"), &[], 400),
    // A valid body would need a link.
    route("POST", "/api/auth/invitations/accept", Some("{}"), &[], 400),
    route("POST", "/api/auth/reset", Some("{}"), &[], 400),
];

/// Ends the session of its caller.
pub const LOG_OUT: &str = "/api/auth/logout";

/// All other routes.
pub const ROUTES: &[Route] = &[
    route("GET", "/api/auth/me", None, BEARER, 200),
    // An empty body, which is refused by the last check: a valid one would end the caller's own token.
    route("POST", "/api/auth/password", Some("{}"), BEARER, 400),
    route("POST", "/api/auth/renew", None, BEARER, 200),
    route("GET", "/api/auth/sessions", None, BEARER, 200),
    route("GET", "/api/auth/sessions/{session}", None, BEARER, 200),
    route("DELETE", "/api/auth/sessions/{session}", None, BEARER, 200),
    route("GET", "/api/changes", None, BEARER, 200),
    route("GET", "/api/organization/members", None, BEARER, 200),
    route(
        "PATCH",
        "/api/organization/members/{member}",
        Some(r#"{"role":"viewer"}"#),
        BEARER,
        200,
    ),
    route("DELETE", "/api/organization/members/{member}", None, BEARER, 200),
    route(
        "POST",
        "/api/organization/members/{member}/reset",
        None,
        BEARER,
        201,
    ),
    route("GET", "/api/organization/invitations", None, BEARER, 200),
    route(
        "POST",
        "/api/organization/invitations",
        Some(r#"{"email":"{unique}@example.com","role":"viewer"}"#),
        BEARER,
        201,
    ),
    route(
        "GET",
        "/api/organization/invitations/{invitation}",
        None,
        BEARER,
        200,
    ),
    route(
        "DELETE",
        "/api/organization/invitations/{invitation}",
        None,
        BEARER,
        200,
    ),
    route("GET", "/api/organization/audit", None, ADMIN, 200),
    route("GET", "/api/organization", None, ADMIN, 200),
    route(
        "PATCH",
        "/api/organization",
        Some(r#"{"name":"Tide Laboratory"}"#),
        ADMIN,
        200,
    ),
    route("GET", "/api/organization/keys", None, ADMIN, 200),
    route(
        "POST",
        "/api/organization/keys",
        Some(r#"{"name":"{unique}","type":"integration"}"#),
        ADMIN,
        201,
    ),
    route(
        "DELETE",
        "/api/organization/keys/{organizationKey}",
        None,
        ADMIN,
        200,
    ),
    route(
        "POST",
        "/api/organization/keys/{organizationKey}/rotate",
        Some(r#"{"overlapSeconds":60}"#),
        ADMIN,
        200,
    ),
    route("GET", "/api/buckets", None, ADMIN, 200),
    route("POST", "/api/buckets", Some(r#"{"name":"{unique}"}"#), ADMIN, 201),
    route("GET", "/api/buckets/{bucket}", None, ADMIN, 200),
    route(
        "PATCH",
        "/api/buckets/{bucket}",
        Some(r#"{"description":"{unique}"}"#),
        ADMIN,
        200,
    ),
    route("DELETE", "/api/buckets/{bucket}", None, ADMIN, 200),
    route("GET", "/api/buckets/{bucket}/keys", None, ADMIN, 200),
    route(
        "POST",
        "/api/buckets/{bucket}/keys",
        Some(r#"{"name":"{unique}","type":"read"}"#),
        ADMIN,
        201,
    ),
    route("DELETE", "/api/buckets/{bucket}/keys/{key}", None, ADMIN, 200),
    route(
        "POST",
        "/api/buckets/{bucket}/keys/{key}/rotate",
        Some(r#"{"overlapSeconds":60}"#),
        ADMIN,
        200,
    ),
    route("GET", "/api/buckets/{bucket}/sources", None, READ, 200),
    route(
        "POST",
        "/api/buckets/{bucket}/sources",
        Some(r#"{"name":"{unique}","schema":{"level":{"type":"number"}}}"#),
        WRITE,
        201,
    ),
    route("GET", "/api/buckets/{bucket}/sources/{source}", None, READ, 200),
    route(
        "PATCH",
        "/api/buckets/{bucket}/sources/{source}",
        Some(r#"{"description":"{unique}"}"#),
        WRITE,
        200,
    ),
    route(
        "GET",
        "/api/buckets/{bucket}/sources/{source}/dimensions",
        None,
        READ,
        200,
    ),
    route(
        "GET",
        "/api/buckets/{bucket}/sources/{source}/dimensions/host",
        None,
        READ,
        200,
    ),
    route(
        "GET",
        "/api/buckets/{bucket}/sources/{source}/series",
        None,
        READ,
        200,
    ),
    route(
        "DELETE",
        "/api/buckets/{bucket}/sources/{source}",
        None,
        ADMIN,
        200,
    ),
    route(
        "POST",
        "/api/data",
        Some(r#"{"bucketId":"{bucket}","dataSourceId":"{source}","values":{"level":1}}"#),
        WRITE,
        201,
    ),
    route(
        "POST",
        "/api/data/batch",
        Some(r#"{"bucketId":"{bucket}","dataPoints":[{"dataSourceId":"{source}","values":{"level":1}}]}"#),
        WRITE,
        201,
    ),
    route(
        "POST",
        "/api/data/delete",
        Some(
            r#"{"bucketId":"{bucket}","filters":{"startTime":"2000-01-01T00:00:00Z","endTime":"2000-01-02T00:00:00Z"}}"#,
        ),
        ADMIN,
        200,
    ),
    route(
        "POST",
        "/api/data/query",
        Some(r#"{"bucketId":"{bucket}"}"#),
        QUERY,
        200,
    ),
    route(
        "POST",
        "/api/data/export",
        Some(r#"{"bucketId":"{bucket}","format":"csv"}"#),
        READ,
        200,
    ),
    route("GET", "/api/buckets/{bucket}/alerts", None, READ, 200),
    route(
        "POST",
        "/api/alerts",
        Some(
            r#"{"bucketId":"{bucket}","dataSourceId":"{source}","name":"{unique}","naturalLanguageQuery":"level > 5"}"#,
        ),
        WRITE,
        201,
    ),
    route("GET", "/api/alerts/{rule}", None, READ, 200),
    // A rule that has not fired.
    route("POST", "/api/alerts/{rule}/acknowledge", None, WRITE, 409),
    // A rule with an evaluation block may be changed only by admins: `alerts/changes.rs`.
    route(
        "PATCH",
        "/api/alerts/{plainRule}",
        Some(r#"{"name":"{unique}"}"#),
        WRITE,
        200,
    ),
    route("DELETE", "/api/alerts/{plainRule}", None, WRITE, 200),
    route("GET", "/api/alerts/{rule}/history", None, READ, 200),
    route("GET", "/api/alerts/{rule}/deliveries", None, READ, 200),
    route(
        "POST",
        "/api/alerts/{rule}/backtest",
        Some(r#"{"startTime":"2026-01-01T00:00:00Z","endTime":"2026-01-01T01:00:00Z"}"#),
        QUERY,
        200,
    ),
    route(
        "POST",
        "/api/alerts/{rule}/backtest/verdicts",
        Some(r#"{"verdicts":[{"at":"2026-01-01T00:00:00Z","outcome":"met"}]}"#),
        QUERY,
        200,
    ),
    route(
        "POST",
        "/api/alerts/backtest",
        Some(
            r#"{"bucketId":"{bucket}","dataSourceId":"{source}","name":"{unique}","naturalLanguageQuery":"level > 5","evaluation":{"intervalSeconds":60,"windowSeconds":300,"inputs":[{"key":"x","field":"level"}],"parameters":{}},"startTime":"2026-01-01T00:00:00Z","endTime":"2026-01-01T01:00:00Z"}"#,
        ),
        QUERY,
        200,
    ),
    route(
        "POST",
        "/api/alerts/backtest/verdicts",
        Some(
            r#"{"bucketId":"{bucket}","dataSourceId":"{source}","name":"{unique}","naturalLanguageQuery":"level > 5","evaluation":{"intervalSeconds":60,"windowSeconds":300,"inputs":[{"key":"x","field":"level"}],"parameters":{}},"verdicts":[{"at":"2026-01-01T00:00:00Z","outcome":"met"}]}"#,
        ),
        QUERY,
        200,
    ),
    route("GET", "/api/silences", None, READ, 200),
    route(
        "POST",
        "/api/silences",
        Some(
            r#"{"bucketId":"{bucket}","alertIds":["{rule}"],"until":"2200-01-01T00:00:00Z","reason":"{unique}"}"#,
        ),
        WRITE,
        201,
    ),
    route("GET", "/api/silences/{silence}", None, READ, 200),
    route("DELETE", "/api/silences/{silence}", None, WRITE, 200),
    route("GET", "/api/annotations", None, READ, 200),
    route(
        "POST",
        "/api/annotations",
        Some(
            r#"{"bucketId":"{bucket}","dataSourceId":"{source}","at":"2026-01-01T00:00:00Z","text":"{unique}"}"#,
        ),
        WRITE,
        201,
    ),
    route("GET", "/api/annotations/{annotation}", None, READ, 200),
    route(
        "PATCH",
        "/api/annotations/{annotation}",
        Some(r#"{"text":"{unique}"}"#),
        WRITE,
        200,
    ),
    route("DELETE", "/api/annotations/{annotation}", None, WRITE, 200),
    route("GET", "/api/boards", None, ADMIN, 200),
    route("POST", "/api/boards", Some(BOARD), ADMIN, 201),
    route("POST", "/api/boards/import", Some(BOARD), ADMIN, 201),
    route("GET", "/api/boards/{board}", None, ADMIN, 200),
    route(
        "PATCH",
        "/api/boards/{board}",
        Some(r#"{"name":"{unique}"}"#),
        ADMIN,
        200,
    ),
    route("DELETE", "/api/boards/{board}", None, ADMIN, 200),
    route("POST", "/api/boards/{board}/copy", None, ADMIN, 201),
    route("GET", "/api/boards/{board}/export", None, ADMIN, 200),
    route(
        "POST",
        "/api/boards/{board}/share",
        Some(r#"{"expiresAt":"{soon}"}"#),
        ADMIN,
        201,
    ),
    route("GET", "/api/boards/{board}/shares", None, ADMIN, 200),
    route("DELETE", "/api/boards/{board}/shares/{share}", None, ADMIN, 200),
    route("GET", "/api/evaluations/due", None, EVALUATE, 200),
    route(
        "POST",
        "/api/evaluations/{rule}/verdict",
        Some(r#"{"outcome":"met"}"#),
        EVALUATE,
        200,
    ),
    route("GET", "/api/analytics/buckets/{bucket}", None, READ, 200),
    route("GET", "/api/analytics/overview", None, ADMIN, 200),
    route("GET", "/api/webhooks", None, ADMIN, 200),
    route(
        "POST",
        "/api/webhooks",
        Some(r#"{"url":"https://hooks.invalid/tides","events":["alert.triggered"],"status":"paused"}"#),
        ADMIN,
        201,
    ),
    route("GET", "/api/webhooks/{webhook}", None, ADMIN, 200),
    route(
        "PATCH",
        "/api/webhooks/{webhook}",
        Some(r#"{"events":["bucket.updated","alert.triggered"]}"#),
        ADMIN,
        200,
    ),
    route("DELETE", "/api/webhooks/{webhook}", None, ADMIN, 200),
    route("GET", "/api/webhooks/{webhook}/deliveries", None, ADMIN, 200),
    route("POST", "/api/webhooks/{webhook}/test", None, ADMIN, 202),
    route(
        "POST",
        "/api/webhooks/{webhook}/deliveries/{delivery}/redeliver",
        None,
        ADMIN,
        202,
    ),
    // Last, since it ends the session of the token.
    route("POST", LOG_OUT, None, BEARER, 200),
];

/// A board's body without what it names.
const BOARD: &str = r#"{"name":"{unique}","range":"24h","panels":[]}"#;

impl Route {
    pub fn path(&self, ids: &Ids) -> String {
        ids.fill(self.path)
    }

    pub fn body(&self, ids: &Ids) -> Option<String> {
        self.body.map(|body| ids.fill(body))
    }

    /// Whether 404 and the bucket's 403 depend on an id in the path or the body; a rule belongs to a bucket, and
    /// so do silence and annotation.
    pub fn names_a_bucket(&self) -> bool {
        let named = |text: &str| {
            ["{bucket}", "{rule}", "{plainRule}", "{silence}", "{annotation}"]
                .iter()
                .any(|id| text.contains(id))
        };
        named(self.path) || self.body.is_some_and(named)
    }

    pub fn names_a_resource(&self) -> bool {
        self.names_a_bucket() || self.path.contains('{')
    }

    /// Whether it names an object and, separately, its owner.
    pub fn names_a_part(&self) -> bool {
        let named = |id: &str| self.path.contains(id) || self.body.is_some_and(|body| body.contains(id));
        named("{bucket}") && (named("{source}") || named("{key}"))
            || named("{webhook}") && named("{delivery}")
            || named("{board}") && named("{share}")
    }
}

/// The dimension of a scene's source, as paths name it.
const DIMENSION: &str = "host";

/// `/api/buckets/{bucketId}` → `/api/buckets/{}`: the description has its own names of parameters.
pub fn shape(path: &str) -> String {
    let segment = |segment: &str| {
        let is_named = segment.starts_with('{') || segment == DIMENSION;
        let name = if is_named { "{}" } else { segment };
        name.to_owned()
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}
