//! Which mount an open file lies on.

use std::{io, os::fd::AsFd};

/// A mark that two open files share only when they lie on the same mount. A bind mount has the device number of what it shows, so on Linux
/// the mount itself is asked for.
#[cfg(target_os = "linux")]
pub(super) fn id(file: impl AsFd) -> io::Result<u64> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    Ok(stat.stx_mnt_id)
}

/// A mark that two open files share only when they lie on the same device.
#[cfg(not(target_os = "linux"))]
pub(super) fn id(file: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_dev as u64)
}

/// Whether an open file is a regular one, and the mark of its mount, in one question.
#[cfg(target_os = "linux")]
pub(super) fn look(file: impl AsFd) -> io::Result<(bool, u64)> {
    use rustix::fs::{AtFlags, FileType, StatxFlags, statx};
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE | StatxFlags::MNT_ID)?;
    Ok((FileType::from_raw_mode(stat.stx_mode.into()) == FileType::RegularFile, stat.stx_mnt_id))
}

/// Whether an open file is a regular one, and the mark of its device.
#[cfg(not(target_os = "linux"))]
pub(super) fn look(file: impl AsFd) -> io::Result<(bool, u64)> {
    let stat = rustix::fs::fstat(file)?;
    Ok((rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile, stat.st_dev as u64))
}
