"""What the probes in the kernel and the double-caching readings give per trial: name, unit, scale and definition.

The page cache's figures are of the files of class "data" (the databases' own files) and of the measured segment, unless
the definition says otherwise.
"""

from plimsoll.analysis.metric import EVIDENCE, Metric
from plimsoll.analysis.trial.metrics import PERCENT

_FAULTS = "on a kernel that does not report page faults only reads count"

PROBE_METRICS = [
    Metric(
        "page_cache_hit_ratio",
        "Linux page-cache hit ratio",
        "ratio",
        "plain",
        "higher",
        "1 - missed pages / pages asked for, by reads and page faults of the data files; missed: not in the page cache "
        "when asked for, and again when it was evicted before the call had read it (the ratio ends at 0); what is "
        f"prefetched before it is asked for is no miss; {_FAULTS}",
        ceiling=1.0,
        display=PERCENT,
        shown_in=(EVIDENCE,),
    ),
    Metric(
        "page_cache_read_hit_ratio_blocks",
        "Linux page-cache hit ratio of 8 KiB reads",
        "ratio",
        "plain",
        "higher",
        "1 - missed blocks / blocks asked for, by reads of the data files in the server's own unit; a block of which "
        "one page is missing is missed",
        ceiling=1.0,
    ),
    Metric(
        "page_cache_misses_per_query",
        "page-cache misses per query",
        "blocks/query",
        "plain",
        "lower",
        "blocks of the data files read and missed in the page cache, divided by the statements sent, BEGIN and COMMIT "
        "not counted",
    ),
    Metric(
        "database_misses_per_page_cache_miss",
        "database misses per page-cache miss",
        "blocks/block",
        "log",
        None,
        "blks_read of pg_stat_database divided by the blocks of the data files that the page cache missed; unknown "
        "where it missed none",
    ),
    Metric(
        "readahead_pages_per_missed_page",
        "pages read ahead per missed page",
        "pages/page",
        "plain",
        None,
        "pages of the data files loaded by reads and page faults beyond what they asked for, per missed page",
    ),
    Metric(
        "ahead_used_share",
        "prefetched pages that were used",
        "ratio",
        "plain",
        "higher",
        "pages of the data files prefetched (by read-ahead or on the program's advice) and asked for later, in the "
        "segment of their first use, divided by the pages prefetched in it: above 1 where earlier ones are used up",
    ),
    Metric(
        "ahead_evicted_share",
        "prefetched pages that left the cache unused",
        "ratio",
        "plain",
        "lower",
        "prefetched pages of the data files that left the page cache without having been asked for, divided by the "
        "pages prefetched in the segment",
    ),
    Metric(
        "page_cache_waited_reads_per_transaction",
        "reads that waited for a page in flight",
        "reads",
        "plain",
        "lower",
        "read calls on the data files that missed nothing and yet waited, per done transaction: another task had "
        "already issued the read of the page",
    ),
    Metric(
        "page_cache_brought_bytes_per_transaction",
        "loaded into the page cache per transaction",
        "bytes",
        "plain",
        "lower",
        "pages missed, read ahead, prefetched or added otherwise, of every file class, per done transaction; pages "
        "added by writes are not read from the device and not counted",
    ),
    Metric(
        "device_read_unexplained_share",
        "device reads the probe does not explain",
        "ratio",
        "plain",
        None,
        "bytes the device read, less the bytes the probe saw loaded and the bytes swapped in, divided by the bytes "
        "the device read; negative where more was loaded than read",
        floor=None,
    ),
    Metric(
        "double_cached_bytes",
        "double caching: held in both caches",
        "bytes",
        "plain",
        "lower",
        "bytes of the database that lie in the server's cache and in Linux's page cache, read just after the measured "
        "segment",
    ),
    Metric(
        "buffer_head_touches_per_query",
        "buffer heads touched per query",
        "touches/query",
        "plain",
        None,
        "block:block_touch_buffer of the data's file system per statement sent: study S1's own counter, mostly "
        "metadata, never file pages",
    ),
    Metric(
        "probe_ns_per_transaction",
        "time in the page-cache probe",
        "ns",
        "plain",
        "lower",
        "run time of the page-cache probe's programs by the kernel's own accounting, on behalf of whoever set them "
        "off, per done transaction",
    ),
    Metric(
        "probe_core_share",
        "the page-cache probe's share of core time",
        "ratio",
        "plain",
        "lower",
        "run time of the page-cache probe's programs divided by the core time of the CPUs of server and load",
        ceiling=1.0,
    ),
]
