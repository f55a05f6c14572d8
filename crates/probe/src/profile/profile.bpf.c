// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Where the processes of a server are at each tick of a clock: the kernel's stack as addresses, the user's as registers and memory. */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "profile.h"
#include "../bpf/counters.bpf.h"
#include "../bpf/family.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

volatile struct target target SEC(".data.target");

COUNTERS_OF_EACH_CPU(counters, 1, COUNTERS);
COUNTERS_OF_EACH_CPU(losses, 1, LOST);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} samples SEC(".maps");

/* A sample is too large for a program's own stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sample);
} scratch SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
	unsigned long start_stack;
};

struct task_struct___with_memory {
	struct mm_struct *mm;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs___sampled {
	unsigned long bp, ip, sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs___sampled {
	u64 regs[31], sp, pc;
};
#endif

#pragma clang attribute pop

static __always_inline bool is_watched(struct task_struct *task)
{
	return is_child(task, target.parent) || (target.itself && task->tgid == target.parent);
}

static __always_inline void count(void *map, u32 which)
{
	u32 zero = 0;
	u64 *counts = bpf_map_lookup_elem(map, &zero);

	if (counts)
		counts[which]++;
}

#include "contention.bpf.h"

static __always_inline void read_registers(struct sample *sample, struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	struct pt_regs___sampled *regs = (void *)bpf_task_pt_regs(task);

	sample->ip = regs->ip;
	sample->sp = regs->sp;
	sample->fp = regs->bp;
	sample->lr = 0;
#elif defined(__TARGET_ARCH_arm64)
	struct user_pt_regs___sampled *regs = (void *)bpf_task_pt_regs(task);

	sample->ip = regs->pc;
	sample->sp = regs->sp;
	sample->fp = regs->regs[29];
	sample->lr = regs->regs[30];
#endif
}

/* From the stack pointer up to where the process's first function began, as far as there is room and it is in memory. */
static __always_inline u32 read_stack(struct sample *sample, struct task_struct *task)
{
	struct mm_struct *mm = ((struct task_struct___with_memory *)task)->mm;
	u64 room = STACK_BYTES;

	if (!mm)
		return 0;
	if (mm->start_stack > sample->sp && mm->start_stack - sample->sp < STACK_BYTES)
		room = mm->start_stack - sample->sp;
	for (int tries = 0; tries < 3; tries++) {
		room &= 2 * STACK_BYTES - 1; /* which the verifier has to see */
		if (room > STACK_BYTES)
			return 0;
		if (!bpf_probe_read_user(sample->stack, room, (void *)sample->sp))
			return room;
		room /= 4;
	}
	return 0;
}

SEC("perf_event")
int on_clock(void *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sample *sample;
	u32 zero = 0, stack_bytes;
	long kernel_bytes;

	if (!is_watched(task) || task->flags & PF_KTHREAD) {
		count(&counters, OF_OTHERS);
		return 0;
	}
	count(&counters, OF_TARGET);
	sample = bpf_map_lookup_elem(&scratch, &zero);
	if (!sample)
		return 0;
	sample->pid = task->tgid;
	kernel_bytes = bpf_get_stack(context, sample->kernel, sizeof(sample->kernel), 0);
	sample->kernel_bytes = kernel_bytes > 0 ? kernel_bytes : 0;
	read_registers(sample, task);
	stack_bytes = read_stack(sample, task);
	sample->stack_bytes = stack_bytes;
	if (stack_bytes > STACK_BYTES)
		return 0;
	if (bpf_ringbuf_output(&samples, sample, offsetof(struct sample, stack) + stack_bytes, BPF_RB_NO_WAKEUP))
		count(&losses, NO_ROOM);
	return 0;
}
