//! Tests of attacks: one row for each risk of the OWASP API list, and for other attacks on similar services. The tests
//! of a row are here, or in the chapter of their subject.
//!
//! | risk | where, or why not |
//! |---|---|
//! | other people's objects (API1) | `access::matrix`: every route × caller × whose ids; `access::scopes` within bodies |
//! | keys (API2) | `secrets`. A key is looked up by its SHA-256: no comparison with a secret has measurable timing |
//! | passwords | `passwords`, `access::login` (limits), `access::accounts` (lengths); Argon2id's cost beside the code |
//! | tokens (JWT) | `access::tokens`: every claim and header separately, signed with the server's own secret |
//! | mass assignment (API3) | `mass_assignment`: unknown members are ignored, so they change neither answer nor state |
//! | memory (API4) | `bombs`, `memory`, `crowds`, `general::bodies` (limits), `listener`: connections without a key |
//! | resources held by one organization | `tenants`: counts, texts, pending deliveries |
//! | nesting | `nesting` |
//! | slow clients | `general::slow`; thousands of them: `crowds` |
//! | addresses of webhooks (API7) | `webhooks::addresses`; names whose address changes are tested beside the code |
//! | webhooks | `webhooks::signatures`, `retries`, `events` (no receiver delays another), the crash tests (kill −9) |
//! | regular expressions | none: no route takes a pattern |
//! | cookies, cross-site requests | `access::cookie`; programs send headers that no browser adds by itself; `operation::cors` |
//! | floods of logins | `access::login` (limits); hashing has its own small pool; the bench measures ingest during it |
//! | content sniffing | `sniffing` |
//! | the dashboard | `operation::dashboard` (policy), `dashboard/tests/hostile.spec.ts`: markup in every name |
//! | server errors and schema (API8) | the generated requests of `make test` against `/api/docs` |

mod bombs;
mod crowds;
mod mass_assignment;
mod memory;
mod nesting;
mod passwords;
pub mod process;
mod secrets;
mod sniffing;
mod tenants;
