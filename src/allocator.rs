//! The allocator of the process, mimalloc.
//!
//! Requests allocate on one thread and free on another, and merges allocate by the megabyte. With both, glibc's allocator
//! causes page faults, which stop all threads of the process.
//!
//! mimalloc has a call for any alignment, and a shorter one for an alignment that all its blocks have. The `mimalloc` crate
//! uses the first for everything. It leaves the fast path for sizes that are not a power of two whenever they are larger
//! than 1 KiB or their size class has no free block at hand. Nearly all allocations need no more than the alignment of a
//! word; here they take the shorter call.

#![allow(
    unsafe_code,
    reason = "an allocator has no safe interface; the proof stands beside each use"
)]

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// The alignment in bytes of every block: sizes of blocks are multiples of a word, and so are their places in a page
/// (`mi_bin` and `mi_page_start` in mimalloc's sources).
const BLOCK_ALIGN: usize = size_of::<usize>();

/// mimalloc as the global allocator.
pub struct Allocator;

// SAFETY: a block is as large and as aligned as the layout asks, or null, and belongs to the caller until it is freed; no
// call of mimalloc unwinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    // SAFETY: has no requirements beyond the trait's.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: neither call has requirements; every block has the alignment of a word.
        let block = unsafe {
            if align <= BLOCK_ALIGN {
                mi_malloc(size)
            } else {
                mi_malloc_aligned(size, align)
            }
        };
        block.cast()
    }

    #[inline]
    // SAFETY: has no requirements beyond the trait's.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as in `alloc`.
        let block = unsafe {
            if align <= BLOCK_ALIGN {
                mi_zalloc(size)
            } else {
                mi_zalloc_aligned(size, align)
            }
        };
        block.cast()
    }

    #[inline]
    // SAFETY: has no requirements beyond the trait's.
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller gives a block of this allocator, whichever call it is of, and does not use it again.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    // SAFETY: has no requirements beyond the trait's.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`; the new block has the alignment of the old one. mimalloc chooses the shorter way itself.
        unsafe { mi_realloc_aligned(block.cast(), size, layout.align()) }.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_large_and_as_aligned_as_asked() {
        let sizes = (1..=64).chain([100, 1_000, 1_025, 5_000, 100_000, 3_000_000]);
        for (size, align) in sizes.flat_map(|size| [1, 2, 4, 8, 16, 64, 4_096].map(|align| (size, align))) {
            let layout = Layout::from_size_align(size, align).unwrap();
            let grown = Layout::from_size_align(2 * size + 1, align).unwrap();
            let is_good = |block: *mut u8| !block.is_null() && block.addr().is_multiple_of(align);
            // SAFETY: no size is zero; each block is used within its size, and freed once with its layout.
            unsafe {
                // Several, because the first of a page is aligned better than the others.
                let blocks = [(); 3].map(|()| (Allocator.alloc_zeroed(layout), Allocator.alloc(layout)));
                for (zeroed, other) in blocks {
                    assert!(is_good(zeroed) && is_good(other), "{layout:?}");
                    assert_eq!(*zeroed.add(size - 1), 0);
                    *zeroed.add(size - 1) = 7;
                    let block = Allocator.realloc(zeroed, layout, grown.size());
                    assert!(is_good(block), "{grown:?}");
                    assert_eq!(*block.add(size - 1), 7);
                    Allocator.dealloc(block, grown);
                    Allocator.dealloc(other, layout);
                }
            }
        }
    }
}
