//! Threads that may wait give way to those that acknowledge: queries, checkpoints, merges and password hashes run at a
//! lower priority.

/// Niceness of such a thread: about a third of the weight of the others when all cores are busy, so it still moves.
const NICENESS: i32 = 5;

/// Lowers the priority of the calling thread.
pub fn lower() {
    // A kernel that refuses leaves the thread at the common priority: slower neighbours, right answers.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}
