//! Threads that can wait run at a lower priority than those that acknowledge: queries, checkpoints, merges and password
//! hashes.

/// Niceness of these threads: about a third of the weight of the others when all cores are busy, so they still make
/// progress.
const NICENESS: i32 = 5;

/// Niceness of the helpers of a query: about a third of the weight of queries, so that a small one that shares a core
/// with a helper still ends within its short turn.
const HELPER_NICENESS: i32 = 10;

/// Lowers the priority of the calling thread.
pub fn lower() {
    set(NICENESS);
}

/// Lowers the priority of the calling thread, which helps a query.
pub fn lower_for_help() {
    set(HELPER_NICENESS);
}

fn set(niceness: i32) {
    // If the kernel refuses, the thread keeps its normal priority: others become slower, but nothing breaks.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), niceness);
}
