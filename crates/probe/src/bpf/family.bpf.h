/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whose a task is. A target is known by its first process, so that a comparison or two tell at every event. */
#ifndef PLIMSOLL_FAMILY_BPF_H
#define PLIMSOLL_FAMILY_BPF_H

/* The first process has started it, as PostgreSQL's starts the one of each client. */
static __always_inline bool is_child(struct task_struct *task, u32 first)
{
	return task->real_parent->tgid == first;
}

/* It is the first process, or that has started it. */
static __always_inline bool is_of_family(struct task_struct *task, u32 first)
{
	return is_child(task, first) || task->tgid == first;
}

#endif
