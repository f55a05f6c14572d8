"""What the original studies found, in their terms, to stand beside today's figures.

The originals' figures carry no numbers in the text we have, so nothing of theirs is drawn: only what they say. Study
S4's scaling factors are numbers in its text, and stand in a table.
"""

from typing import Any

Study = dict[str, str]
S1: Study = {
    "name": "WPI and EMC, January 2002",
    "setup": (
        "2 × Pentium III Xeon 550 MHz, 768 MB of memory, 1536 MB of swap, six SCSI disks, Linux 2.4.4, Oracle 9i; "
        "nine tables, five transactions 10:10:1:1:1, one client, 100 transactions a test"
    ),
    "hit": (
        "The study: the small database gave the same Oracle hit ratio for every cache but the smallest, the medium "
        "one from 512 MB on; for the large one the ratio rose with the cache and passed 90 % from 672 MB on."
    ),
    "misses": "The study drew Oracle misses per query in its figure 4.5; the text gives no numbers.",
    "time": (
        "The study: fastest between 256 and 736 MB; slower when the cache was too small (churn) and when it was "
        "larger than memory (swapping); standard deviation about 200 s over three runs."
    ),
    "linux_hit": (
        "The study's Linux hit ratio (figure 4.6) counted getblk() calls on the database's disks. In Linux 2.4 these "
        "served metadata and raw device blocks, and file pages passed them by: above 99 % throughout, 0.25 points "
        "lower from 736 MB on. It was not a page-cache hit ratio; today's figure is one."
    ),
    "linux_misses": (
        "The study's figure 4.7 drew the misses of its getblk() counter per query, mostly of metadata; the text gives "
        "no numbers."
    ),
    "linux_per_miss": (
        "The study's figure 4.8 divided Oracle's misses by the misses of its getblk() counter, which were not misses "
        "of the same blocks; the text gives no numbers."
    ),
    "buffer_heads": (
        "The nearest there is today to the study's own counter: lookups of buffer heads, which file pages still pass "
        "by. It stands for itself and is part of no other figure."
    ),
}

S1_BDFLUSH = {
    "name": S1["name"],
    "setup": S1["setup"],
    "writeback": (
        "The study: its changes to bdflush (interval longer, nfract, nfract_sync and ndirty higher) made tests up to "
        "15 minutes longer. How far it changed them is not in its text."
    ),
}


S2 = {
    "name": "CITI, University of Michigan, 2001",
    "setup": (
        "2 × Pentium III 933 MHz, 512 MB of memory, two 18 GB SCSI disks, Linux 2.4.4; pgbench with 1 to 30 clients "
        "and 50 to 1000 transactions each, scale 1, later 25, ten runs averaged"
    ),
    "clients": (
        "The study: throughput fell drastically as clients grew, on local disks and NFS alike, with the CPU idle and "
        "the network under 2 % used. Its text gives no numbers of its graphs."
    ),
    "scale": (
        "The study left open what limits 20 or 30 clients. It ran scale 1 first and scale 25 later, and does not set "
        "one against the other."
    ),
    "calls": (
        "The study counted opens, reads, writes, seeks, closes, fsync and fdatasync of the classes global, base and "
        "WAL. Of its figures only a run that counted seeks can be read: global 3,715, base 275,408, WAL 16,095, over "
        "99 % of the last to an offset that was not 0. Reads and writes were typically of 8 KB in all classes."
    ),
    "syncs": (
        "The study, 1 client and 200 transactions, in the probable reading of its digits: an fdatasync took 440 µs on "
        "the filer, 932 µs on the second NFS server and 4,987 µs on the local RAID-0, where about the first 60 were "
        "as fast as on NFS; an fsync 942 µs on the filer and 23,009 µs on the local disk. On the filer 99.5 % of an "
        "fdatasync was waiting for one write, on the second server two waits made about 98 %, on the local disk waits "
        "took 2 to 4 ms."
    ),
    "nfs_calls": (
        "The study drew READ, GETATTR and the others as points over 3000 s, replies under 0.15 s: with noac a longer "
        "run and an abundance of GETATTR, with rsize and wsize of 1 and 2 KiB far fewer reads, everything else sparse."
    ),
    "promise": (
        "The study: over RAID-0 Bonnie wrote about twice as fast by block as over one disk, with every chunk, and "
        "pgbench did not improve. Its text gives no numbers of the latter."
    ),
    "phases": (
        "The study: Bonnie with a file of 1000 MB and 512 MB of memory; K/s, and in brackets the share of one CPU. Its "
        "page runs the figures together without blanks; they are parted here by the known layout."
    ),
}
# Bonnie's table of the study: storage, then K/s and %CPU of each phase, and seeks a second, in the columns of BONNIE.
BONNIE = ("putc", "write", "rewrite", "getc", "read", "seeks")
S2_BONNIE: dict[str, tuple[tuple[float, float], ...]] = {
    "SCSI ext2": ((12804, 98.9), (37651, 17.7), (8172, 5.7), (10690, 86.3), (26940, 8.2), (374.3, 2.4)),
    "RAID-0 8k, no stride": ((12795, 98.6), (61704, 28.9), (16489, 11.9), (12108, 98.3), (46795, 16.6), (374.2, 2.2)),
    "RAID-0 8k, stride": ((12812, 98.9), (63690, 30.4), (16520, 12.5), (12107, 98.2), (46892, 16.4), (383.7, 2.6)),
    "RAID-0 128k, stride": ((12813, 99.1), (62531, 30.3), (19429, 14.8), (12187, 99.0), (46948, 17.1), (501.0, 3.6)),
    "RAID-0 512k, stride": ((12815, 99.1), (64177, 30.3), (19796, 15.4), (12205, 99.1), (47638, 16.3), (553.8, 4.2)),
    "NFS filer": ((11766, 97.5), (12194, 6.8), (6003, 4.2), (10363, 92.7), (12041, 6.0), (129.5, 1.5)),
}

S3 = {
    "name": "OSDL, 2003: durability of Linux 2.6",
    "setup": (
        "8 × Pentium III 700 MHz, 16 GB of memory, RAID-0 of 14 disks, the log and sort files on disks of their own, "
        "Linux 2.6.0-test7, PostgreSQL 7.3.3; DBT-3 at scale factor 10 with 8 streams, five throughput tests one after "
        "the other over 14 days, VACUUM after each"
    ),
}
# The study's figure of each throughput test, by its number.
S3_THROUGHPUT = {1: 27.50, 2: 27.34, 3: 26.31, 4: 25.24, 5: 25.10}

S4 = {
    "name": "IBM, 2004: CPU scaling of Linux 2.4 and 2.6",
    "setup": (
        "z990 with 1 to 16 CPUs; dbench 2.1 on ext2 with 2 GB of memory under kernels 2.4.21 and 2.6.5, and order "
        "entry on Informix 9.4 under kernel 2.4"
    ),
    "scaling": (
        "The study: order entry carried 11.5 times the transactions of one CPU with 16; kernel 2.6 on the newer "
        "machine scaled similarly, with 50 % more throughput."
    ),
}
# Throughput over that of one CPU, by the number of CPUs.
S4_FACTORS = {
    "order entry (Informix 9.4), kernel 2.4": {4: 3.7, 8: 6.9, 12: 9.5, 16: 11.5},
    "dbench, kernel 2.4.21": {2: 1.7, 4: 3.3, 8: 5.0, 16: 5.4},
    "dbench, kernel 2.6.5": {2: 2.0, 4: 3.8, 8: 7.2, 16: 12.7},
}

S5 = {
    "name": "IBM, 2004: fixed I/O buffers",
    "setup": (
        "order entry on Informix 9.4 in a guest with 4 CPUs and 2 to 10 GB of memory; IOzone in guests of 256 MB and "
        "of 4 GB"
    ),
    "memory": (
        "The study's knob was fixed I/O buffers, on and off: without them throughput fell from 8 GB on and kept rising "
        "with them; on bare LPAR they cost slightly. With IOzone in 4 GB throughput stayed as with 256 MB and the CPU "
        "cost rose (a write to 32 disks: +75 % in the guest, +400 % in the hypervisor). Its figures pair throughput "
        "with CPU cost."
    ),
    "passes": (
        "The study: IOzone, sequential write and read of files of 700 MB on up to 32 disks, 2 CPUs. In a guest of "
        "256 MB throughput was the same and up to 60 % more system CPU was used with fixed I/O buffers; in one of 4 GB "
        "throughput was as with 256 MB and CPU much higher (write to 32 disks: +75 % in the guest, +400 % in the "
        "hypervisor)."
    ),
}


# By the name that an experiment gives as its `study` (experiment/page.py).
STUDIES: dict[str, Study] = {
    "wpi-2002-caches": S1,
    "wpi-2002-writeback": S1_BDFLUSH,
    "citi-2001": S2,
    "osdl-2003": S3,
    "ibm-2004-cpus": S4,
    "ibm-2004-memory": S5,
}


def study_of(experiment: dict[str, Any]) -> Study | None:
    """The study that an experiment names, of which we hold the findings; None where it names none."""
    if "study" in experiment:
        return STUDIES.get(experiment["study"])
    return _by_source(experiment)


def _by_source(experiment: dict[str, Any]) -> Study | None:
    """The study of a record of before experiments named theirs, by the reason that its question gives."""
    source = str(experiment.get("source") or "")
    if "S4" in source or "S5" in source:
        return S4 if "S4" in source else S5
    if "S3" in source:
        return S3
    if "S2" in source:
        return S2
    if "S1" not in source:
        return None
    return S1_BDFLUSH if "vm.dirty_" in str(experiment.get("factors")) else S1
