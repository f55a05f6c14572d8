// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Counts lookups of buffer heads that found one, on one device: study S1's counter, today mostly metadata. */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "../bpf/counters.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct settings {
	u32 device;
};

const volatile struct settings settings SEC(".rodata.settings");

COUNTERS_OF_EACH_CPU(counters, 1, 1);

SEC("tp_btf/block_touch_buffer")
int BPF_PROG(on_touch, struct buffer_head *buffer)
{
	u32 zero = 0;
	u64 *touched;

	if (buffer->b_bdev->bd_dev != settings.device)
		return 0;
	touched = bpf_map_lookup_elem(&counters, &zero);
	if (touched)
		__sync_fetch_and_add(touched, 1);
	return 0;
}
