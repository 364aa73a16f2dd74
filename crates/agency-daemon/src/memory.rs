//! The allocator's settings.

/// Gives large blocks back to the system as soon as they are free.
///
/// glibc raises the size from which it maps blocks on their own with every large block that is freed. After that, the queues
/// of viewers are cut from its arenas, and what they leave behind stays with the daemon: 100 MB after 60 viewers of a flood.
/// A fixed size stops this. Other allocators need no such setting.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "glibc has no other door to this setting")]
pub fn give_back_large_blocks() {
    const MAPPED_FROM_BYTES: libc::c_int = 128 << 10;
    // SAFETY: mallopt takes two numbers, reads no memory of ours, and no other thread runs yet.
    let accepted = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) };
    if accepted == 0 {
        tracing::warn!(
            "cannot set the allocator's threshold; the daemon may keep memory that it no longer needs"
        );
    }
}

/// See above.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_large_blocks() {}
