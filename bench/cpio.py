# SPDX-License-Identifier: GPL-2.0-only
"""Write a cpio archive (newc) that the kernel unpacks after the initramfs it follows."""

from __future__ import annotations

from collections.abc import Mapping

TRAILER = "TRAILER!!!"


def _entry(name: str, mode: int, data: bytes) -> bytes:
    path = name.encode() + b"\0"
    # ino, mode, uid, gid, nlink, mtime, size, device numbers, name length, checksum
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % n for n in fields) + path
    head += b"\0" * (-len(head) % 4)
    return head + data + b"\0" * (-len(data) % 4)


def archive(files: Mapping[str, str]) -> bytes:
    """Files of mode 0755; their directory must be in the initramfs already."""
    out = b"".join(_entry(name, 0o100755, text.encode()) for name, text in files.items())
    out += _entry(TRAILER, 0, b"")
    return out + b"\0" * (-len(out) % 512)
