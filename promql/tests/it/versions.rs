//! What differs between versions of Prometheus: version 3 is meant.
