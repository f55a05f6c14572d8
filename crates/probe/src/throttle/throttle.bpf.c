// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counts the pauses that balance_dirty_pages gives to tasks that dirty pages of one backing device too fast. */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include "throttle.h"
#include "../bpf/counters.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct settings settings SEC(".rodata.settings");

COUNTERS_OF_EACH_CPU(counters, 1, 2);

/* Classic, because the arguments changed twice while the event's fields kept their names. */
SEC("tracepoint")
int on_throttle(void *event)
{
	char name[NAME_BYTES] = {};
	u32 zero = 0;
	u64 *counted;
	s64 pause_ms = 0;

	bpf_probe_read_kernel(name, sizeof(name), event + settings.name_at);
	for (int i = 0; i < NAME_BYTES; i++) {
		if (name[i] != settings.name[i])
			return 0;
		if (!name[i])
			break;
	}
	bpf_probe_read_kernel(&pause_ms, sizeof(pause_ms), event + settings.pause_at);
	if (pause_ms <= 0)
		return 0; /* looked at, and let go on */
	counted = bpf_map_lookup_elem(&counters, &zero);
	if (counted) {
		__sync_fetch_and_add(&counted[0], 1);
		__sync_fetch_and_add(&counted[1], pause_ms * 1000000);
	}
	return 0;
}
