/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a task that leaves its CPU waits for, by the functions in its stack: functions.rs tells where each is that says so.
 *
 * The fact that constrains it: stacks are many and what they tell are few, so they are told apart here and not handed over.
 */
#ifndef PLIMSOLL_FUNCTIONS_BPF_H
#define PLIMSOLL_FUNCTIONS_BPF_H

#include "stack.bpf.h"

/* A power of two. */
#define FUNCTIONS 256
/* What a function tells, below both. */
#define IF_NOTHING_ELSE 0x100 /* only where no other function tells anything */
#define NOT_OURS 0x200 /* wherever it is in a stack: something else is waited for */

struct function {
	u64 begin, end;
	u32 tells, unused;
};

/* By address; those that are no function begin behind all others. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FUNCTIONS);
	__type(key, u32);
	__type(value, struct function);
} functions SEC(".maps");

/* Not static, so that it is verified once and not for each frame. */
__noinline int told_by_address(u64 address)
{
	struct function *function;
	u32 at = 0, next;

	for (u32 half = FUNCTIONS / 2; half; half /= 2) {
		next = at + half;
		function = bpf_map_lookup_elem(&functions, &next);
		if (function && function->begin <= address)
			at = next;
	}
	function = bpf_map_lookup_elem(&functions, &at);
	return function && function->begin <= address && address < function->end ? function->tells : 0;
}

/* What the innermost function tells that tells anything; 0 if none does. */
static __noinline u32 told_by_stack(void *context)
{
	struct stack *stack = stack_of(context);
	u32 told = 0, here;

	if (!stack)
		return 0;
	for (u32 i = 0; i < FRAMES; i++) {
		if (!stack->frames[i])
			break;
		here = told_by_address(stack->frames[i]);
		if (here & NOT_OURS)
			return 0;
		if (here && (!told || told & IF_NOTHING_ELSE))
			told = here;
	}
	return told & ~IF_NOTHING_ELSE;
}

#endif
