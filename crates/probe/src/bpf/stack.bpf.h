/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The kernel's stack of a task that leaves its CPU. */
#ifndef PLIMSOLL_STACK_BPF_H
#define PLIMSOLL_STACK_BPF_H

#define FRAMES 32
/* Of the program itself and of what calls it, before the scheduler's own. */
#define OWN_FRAMES 3

struct stack {
	u64 frames[FRAMES]; /* innermost first */
};

/* A stack is too large for a program's own. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack);
} scratch SEC(".maps");

/* NULL if it cannot be read. */
static __always_inline struct stack *stack_of(void *context)
{
	u32 zero = 0;
	struct stack *stack = bpf_map_lookup_elem(&scratch, &zero);

	if (!stack)
		return NULL;
	__builtin_memset(stack, 0, sizeof(*stack));
	return bpf_get_stack(context, stack->frames, sizeof(stack->frames), OWN_FRAMES) > 0 ? stack : NULL;
}

#endif
