"""One collector a file: a lock that the system drops when its holder ends, however it ends."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}
_FAR = 1 << 62  # Windows locks bytes, and whoever reads a locked byte is refused: lock one where no row will be


def lock(fd: int) -> bool:
    """Take the lock of the open file. False: another holds it. Raises OSError where the file system has no locks."""
    try:
        _take(fd)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise
        return False
    return True


if sys.platform == "win32":
    import msvcrt

    def _take(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def holder(fd: int) -> int | None:
    """The process that holds the lock, where the system tells (Linux)."""
    try:
        table = Path("/proc/locks").read_text()
    except OSError:
        return None
    inode = str(os.fstat(fd).st_ino)
    for line in table.splitlines():
        kind, _, _, pid, file, *_ = line.split()[1:]
        if kind == "FLOCK" and file.rpartition(":")[2] == inode and int(pid) > 0:
            return int(pid)
    return None
