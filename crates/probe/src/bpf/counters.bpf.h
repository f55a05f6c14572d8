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

#endif
