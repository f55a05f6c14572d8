/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The system call that a task is in: its arguments, the open file it names, the bytes it asks for. */
#ifndef PLIMSOLL_SYSTEM_CALLS_BPF_H
#define PLIMSOLL_SYSTEM_CALLS_BPF_H

extern void *bpf_rdonly_cast(const void *from, u32 type) __ksym __weak;

/* A field of what has only an address: a load where the kernel can be told the type (from 6.2 on), else a helper's call. */
#define FIELD(type, from, field)                                                                    \
	(bpf_ksym_exists(bpf_rdonly_cast) ? bpf_core_cast((struct type *)(from), struct type)->field \
					  : BPF_CORE_READ((struct type *)(from), field))

static __always_inline struct pt_regs *registers_of(struct task_struct *task)
{
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

/* The arguments of the call, from 0. */
static __always_inline u64 argument(struct pt_regs *regs, u32 number)
{
#if defined(__TARGET_ARCH_x86)
	return number == 0 ? regs->di : number == 1 ? regs->si : number == 2 ? regs->dx : regs->r10;
#else
	return number == 0 ? regs->orig_x0 : regs->regs[number];
#endif
}

static __always_inline struct file *file_of_descriptor(struct task_struct *task, u32 descriptor)
{
	struct fdtable *table = task->files->fdt;
	struct file *file;

	if (descriptor >= table->max_fds)
		return NULL;
	return bpf_probe_read_kernel(&file, sizeof(file), table->fd + descriptor) ? NULL : file;
}

/* The open file of an argument of the call. */
static __always_inline struct file *file_of(struct task_struct *task, u32 number)
{
	return file_of_descriptor(task, argument(registers_of(task), number));
}

struct vector {
	u64 base, length;
};

/* The bytes of so many vectors; 0 if those cannot be read, or are more than `vectors_max`. */
static __always_inline u64 bytes_of_vectors_at(void *at, u64 vectors, u32 vectors_max)
{
	struct vector vector;
	u64 length = 0;

	if (vectors > vectors_max)
		return 0;
	for (u32 i = 0; i < vectors_max; i++) {
		if (i >= vectors)
			break;
		if (bpf_probe_read_user(&vector, sizeof(vector), at + i * sizeof(vector)))
			return 0;
		length += vector.length;
	}
	return length;
}

/* The same of the vectors that the second and third argument give. */
static __always_inline u64 bytes_of_vectors(struct pt_regs *regs, u32 vectors_max)
{
	return bytes_of_vectors_at((void *)argument(regs, 1), argument(regs, 2), vectors_max);
}

#endif
