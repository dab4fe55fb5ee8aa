//! A page of a mapped file that the disk cannot read. The operating system answers such a read with SIGBUS, which ends
//! the process; and again whenever somebody asks for the same page. Here the page reads as zeros instead: whoever reads
//! compares checksums, so that it is one query's error and not everybody's end.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Maps that are known at a time; the operating system allows fewer. What is beyond is served without this net.
const MAPS_MAX: usize = 1 << 16;

/// Where a map begins and ends; both 0 where there is none.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
}

/// Read by the signal's handler, which may take no lock and allocate nothing.
static MAPS: [Slot; MAPS_MAX] = [const {
    Slot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; MAPS_MAX];
/// No slot behind this one was ever used.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Bytes of a page, known once the handler is in force.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4 << 10);
static UNREADABLE: AtomicU64 = AtomicU64::new(0);
static INSTALL: Once = Once::new();
/// What handled the signal before, set once before the handler is.
static mut BEFORE: MaybeUninit<libc::sigaction> = MaybeUninit::uninit();

/// Pages that read as zeros since the process began, because the disk did not read them.
pub(super) fn unreadable_pages() -> u64 {
    UNREADABLE.load(Ordering::Relaxed)
}

/// A map whose unreadable pages read as zeros as long as this is held.
#[derive(Debug)]
pub(super) struct Guarded(Option<usize>);

impl Guarded {
    /// Guards these bytes, which stay mapped until this is dropped.
    pub(super) fn new(bytes: &[u8]) -> Self {
        INSTALL.call_once(install);
        let start = bytes.as_ptr().addr();
        for (index, slot) in MAPS.iter().enumerate() {
            let taken = slot
                .start
                .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_ok() {
                slot.end.store(start + bytes.len(), Ordering::Release);
                USED.fetch_max(index + 1, Ordering::AcqRel);
                return Guarded(Some(index));
            }
        }
        Guarded(None)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(slot) = self.0.and_then(|index| MAPS.get(index)) {
            slot.end.store(0, Ordering::Release);
            slot.start.store(0, Ordering::Release);
        }
    }
}

fn is_mapped(address: usize) -> bool {
    let used = USED.load(Ordering::Acquire);
    MAPS.iter().take(used).any(|slot| {
        let (start, end) = (
            slot.start.load(Ordering::Acquire),
            slot.end.load(Ordering::Acquire),
        );
        start <= address && address < end
    })
}

#[allow(
    unsafe_code,
    reason = "signals have no safe interface; the proof stands beside each use"
)]
fn install() {
    // SAFETY: `sigaction` is plain data of which all zeros is a value; both pointers are to live values of that type.
    // `BEFORE` is written here alone, within `Once`, and before the handler that reads it is in force. The handler
    // meets the requirements of one, see there. It runs on the alternative stack where the thread has one. `sysconf`
    // has no requirements.
    unsafe {
        if let Ok(bytes @ 1..) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
            PAGE_BYTES.store(bytes, Ordering::Relaxed);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        if libc::sigaction(libc::SIGBUS, ptr::null(), (&raw mut BEFORE).cast()) == 0 {
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    }
}

/// Called by the operating system on the thread that read the page.
#[allow(
    unsafe_code,
    reason = "signals have no safe interface; the proof stands beside each use"
)]
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the operating system gives a valid `info`, and `si_addr` is what SIGBUS is about.
    let address = unsafe { (*info).si_addr() }.addr();
    if is_mapped(address) {
        let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
        let page = address & !(page_bytes - 1);
        // SAFETY: the page belongs to a map of ours, page-aligned as all maps are, and guarded, hence still mapped. Its
        // bytes could not be read, so that nobody has them; whoever is reading now reads zeros, and what it believes of
        // them it compares with a checksum. The map is unmapped as a whole later, this page included. `mmap` only
        // enters the kernel, so that it may be called here, and leaves `errno` alone where it succeeds.
        let mapped = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let at = ptr::without_provenance_mut(page);
            libc::mmap(at, page_bytes, libc::PROT_READ, flags, -1, 0)
        };
        if mapped != libc::MAP_FAILED {
            UNREADABLE.fetch_add(1, Ordering::Relaxed);
            return;
        }
    }
    // SAFETY: set before this handler was in force. What handled the signal before is told; where that was nothing, the
    // default is put back, and the read that is repeated on return ends the process as it would have without us.
    unsafe {
        let before: &libc::sigaction = &*(&raw const BEFORE).cast();
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::sigaction(signal, before, ptr::null_mut());
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Write;

    use super::super::{Disk, StdDisk};

    /// The server ended, and again each time somebody asked for the page.
    #[test]
    fn a_page_that_cannot_be_read_reads_as_zeros_and_the_others_as_they_are() {
        let path = std::env::temp_dir().join(format!("tidewatch-fault-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&[7; 3 * 4096]).unwrap();
        drop(file);
        let mapped = StdDisk.map(&path).unwrap();
        assert_eq!((*mapped).as_ref()[0], 7);
        let before = StdDisk::unreadable_pages();
        // What is beyond the end of the file is answered as a page that the disk does not read.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        let bytes = (*mapped).as_ref();
        assert_eq!((bytes[0], bytes[4096], bytes[2 * 4096 + 5]), (7, 0, 0));
        assert!(StdDisk::unreadable_pages() >= before + 2);
        drop(mapped);
        std::fs::remove_file(&path).unwrap();
    }
}
