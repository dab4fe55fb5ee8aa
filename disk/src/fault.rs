//! Handles pages of a mapped file that the disk cannot read. The operating system reports such a read with SIGBUS,
//! which ends the process, and does so again for every read of that page. Here the page reads as zeros instead. Readers
//! verify checksums, so the failure is an error of one query rather than the end of the process.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Maximum number of guarded maps; the operating system allows fewer. Further maps work, but are not guarded.
const MAPS_MAX: usize = 1 << 16;

/// Address range of a map; both 0 if the slot is free.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
}

/// Read by the signal handler, which must not lock or allocate.
static MAPS: [Slot; MAPS_MAX] = [const {
    Slot {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; MAPS_MAX];
/// Number of slots that were ever used; none behind it is.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Page size in bytes, set before the handler is installed.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4 << 10);
static UNREADABLE: AtomicU64 = AtomicU64::new(0);
static INSTALL: Once = Once::new();
/// The previous handler of the signal, set once before ours is installed.
static mut BEFORE: MaybeUninit<libc::sigaction> = MaybeUninit::uninit();

/// Pages that the disk could not read, and that read as zeros, since the process started.
pub(super) fn unreadable_pages() -> u64 {
    UNREADABLE.load(Ordering::Relaxed)
}

/// Guards a map: while this is held, its unreadable pages read as zeros.
#[derive(Debug)]
pub(super) struct Guarded(Option<usize>);

impl Guarded {
    /// Guards these bytes, which must stay mapped until this is dropped.
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
    // SAFETY: `sigaction` is plain data for which all zeros is a valid value; both pointers point to live values of
    // that type. `BEFORE` is written only here, within `Once`, and before the handler that reads it is installed. The
    // handler meets the requirements of a signal handler, see there. It runs on the alternate stack if the thread has
    // one. `sysconf` has no requirements.
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

/// The signal handler, called on the thread that read the page.
#[allow(
    unsafe_code,
    reason = "signals have no safe interface; the proof stands beside each use"
)]
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the operating system passes a valid `info`, and `si_addr` is the address that faulted.
    let address = unsafe { (*info).si_addr() }.addr();
    if is_mapped(address) {
        let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
        let page = address & !(page_bytes - 1);
        // SAFETY: the page belongs to one of our maps, is page-aligned like all maps, and is guarded, hence still
        // mapped. Its bytes could not be read, so nobody has a copy of them; the current reader sees zeros and verifies
        // what it reads against a checksum. The map is later unmapped as a whole, including this page. `mmap` is only a
        // system call, so it may be called here, and it leaves `errno` unchanged on success.
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
    // SAFETY: set before this handler was installed. A previous handler is called. If there was none, the default is
    // restored, and the read that is repeated on return ends the process as it would have without us.
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

    /// Regression: the server crashed each time the page was read.
    #[test]
    fn an_unreadable_page_reads_as_zeros_and_others_unchanged() {
        let path = std::env::temp_dir().join(format!("tidewatch-fault-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(&[7; 3 * 4096]).unwrap();
        drop(file);
        let mapped = StdDisk.map(&path).unwrap();
        assert_eq!((*mapped).as_ref()[0], 7);
        let before = StdDisk::unreadable_pages();
        // A page beyond the end of the file behaves like one that the disk cannot read.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        let bytes = (*mapped).as_ref();
        assert_eq!((bytes[0], bytes[4096], bytes[2 * 4096 + 5]), (7, 0, 0));
        assert!(StdDisk::unreadable_pages() >= before + 2);
        drop(mapped);
        std::fs::remove_file(&path).unwrap();
    }
}
