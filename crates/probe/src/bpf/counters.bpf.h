/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Numbers that each CPU counts for itself; bpf/mod.rs adds them up. */
#ifndef PLIMSOLL_COUNTERS_BPF_H
#define PLIMSOLL_COUNTERS_BPF_H

#define COUNTERS_OF_EACH_CPU(name, rows, numbers)         \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);  \
		__uint(max_entries, rows);                \
		__type(key, u32);                         \
		__type(value, u64[numbers]);              \
	} name SEC(".maps")

/* What was lost, by kind, and the function that counts it. */
#define LOSSES_OF_EACH_CPU(numbers)                                \
	COUNTERS_OF_EACH_CPU(losses, 1, numbers);                  \
	static __noinline int lose(u32 what)                       \
	{                                                          \
		u32 zero = 0;                                      \
		u64 *lost = bpf_map_lookup_elem(&losses, &zero);   \
                                                                   \
		if (lost && what < (numbers))                      \
			lost[what]++;                              \
		return 0;                                          \
	}

#endif
