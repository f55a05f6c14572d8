/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Buckets of a distribution: 32 to each power of two, so that a bucket is at most 1/32 wide. block/histogram.rs reads them. */
#ifndef PLIMSOLL_HISTOGRAM_BPF_H
#define PLIMSOLL_HISTOGRAM_BPF_H

#define PARTS_LOG2 5

/* Values below 64 have a bucket each; above, the five bits behind the uppermost decide. */
static __always_inline u32 bucket_of(u64 value)
{
	u32 log = 0;
	u64 rest = value;

	for (int shift = 32; shift; shift >>= 1) {
		if (rest >> shift) {
			rest >>= shift;
			log += shift;
		}
	}
	if (log < PARTS_LOG2)
		return value;
	return ((log - PARTS_LOG2) << PARTS_LOG2) + (value >> (log - PARTS_LOG2));
}

#endif
