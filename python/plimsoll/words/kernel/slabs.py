"""What the kernel's slab caches hold, for those that grow on machines that serve; names as in /proc/slabinfo.

The constraint: the kernel merges caches of equal objects into one under any of their names (slub_merge), so that other
objects may lie there, too; and a name that is not here is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PREFIX: Final = "slab "
# A name's whole pattern and what is in it; the first that matches.
_HOLDS: Final[Sequence[tuple[str, str]]] = (
    ("dentry", "names of files that were looked up"),
    ("radix_tree_node|xa_node", "trees of the page cache: pages of files, and what remembers those evicted"),
    ("buffer_head", "blocks of files in the page cache, and of file systems' own data"),
    ("extent_status|ext4_extent_status", "where blocks of ext4's files lie"),
    ("jbd2_journal_(head|handle)", "blocks in ext4's journal"),
    ("filp", "open files"),
    ("kernfs_node_cache", "files of cgroups and of sysfs"),
    ("task_struct|signal_cache|sighand_cache|pid", "processes and threads"),
    ("vm_area_struct|maple_node|anon_vma.*", "mappings of processes' memory"),
    ("mm_struct", "address spaces of processes"),
    ("cred_jar", "credentials of processes"),
    ("(request_sock_|tw_sock_)?(TCP|UDP|UNIX|RAW|MPTCP)(v6)?|sock_inode_cache", "sockets"),
    ("skbuff_.*", "packets"),
    ("nf_conntrack", "connections that the firewall follows"),
    ("nfs_.*|rpc_.*", "files and calls of NFS"),
    (".*inode_cache|.*_inode", "inodes: files that were opened or looked up"),
    ("bio.*", "requests to devices"),
    (r"kmalloc(-(cg|rcl|rnd-\d+))?-\d+[kM]?", "pieces of that size, of any part of the kernel"),
)
_PATTERNS: Final = [(re.compile(pattern), holds) for pattern, holds in _HOLDS]


def holds(name: str) -> str | None:
    """Of a series that is watched ("slab dentry"); None where it is no slab cache, or one that is not known."""
    if not name.startswith(_PREFIX):
        return None
    cache = name.removeprefix(_PREFIX)
    return next((words for pattern, words in _PATTERNS if pattern.fullmatch(cache)), None)
