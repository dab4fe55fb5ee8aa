//! Many nodes on one log store in memory, in simulated time, with clocks that run at different rates.

mod simulation;
mod world;
