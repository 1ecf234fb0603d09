"""Describe how full a file system is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileSystem:
    """How full a file system is. Available is what is left to users without privileges; 0 inodes: it counts none."""

    capacity_bytes: int
    used_bytes: int
    available_bytes: int
    inodes: int
    inodes_free: int
