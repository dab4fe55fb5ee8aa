//! A bound on the memory allocated for an input.

/// Allowed for any input: buffers of fixed size.
const BYTES_BASE: u64 = 8 << 20;

/// Runs `work`; fails if it holds much more memory at a time than `per_byte` times the length of the input.
pub fn bounded(input_bytes: usize, per_byte: u64, work: impl FnOnce()) {
    let held = allocation_counter::measure(work).bytes_max;
    let bound = BYTES_BASE + per_byte * input_bytes as u64;
    assert!(
        held <= bound,
        "{held} bytes were held for {input_bytes} bytes of input, at most {bound} are expected"
    );
}
