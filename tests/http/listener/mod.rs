//! The listener that nobody can exhaust: what connections hold, what is refused before it is a request, what a stop waits
//! for. No key is needed for any of it, so anybody can try it.

mod bodies;
mod heads;
mod http2;
mod pipelining;
mod places;
mod stop;
mod wire;
