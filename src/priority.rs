//! Threads that can wait run at a lower priority than those that acknowledge: queries, checkpoints, merges and password
//! hashes.

/// Niceness of these threads: about a third of the weight of the others when all cores are busy, so they still make
/// progress.
const NICENESS: i32 = 5;

/// Lowers the priority of the calling thread.
pub fn lower() {
    // If the kernel refuses, the thread keeps its normal priority: others become slower, but nothing breaks.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}
