//! Name resolution: the system's resolver, behind a trait so that tests can supply false answers.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

/// A pending lookup.
pub type Lookup<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Resolves names to addresses.
pub trait Resolve: Send + Sync {
    /// All addresses of the name, each with this port.
    fn lookup<'a>(&'a self, name: &'a str, port: u16) -> Lookup<'a>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn lookup<'a>(&'a self, name: &'a str, port: u16) -> Lookup<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((name, port)).await?.collect()) })
    }
}
