// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Counts the system calls of a server's processes, by kind and by the class of the file they name.
 *
 * The fact that constrains it: a program that runs at every system call of the machine costs something however little it does, and
 * most calls name no file. So calls that name files have tracepoints of their own, and all others are counted in slices of time, unless every
 * one is asked for. The entry notes only what the end cannot know any more (when, which file was closed, where it stood), and
 * names and vectors are read at the end, when the kernel has just had them in memory.
 */
#include "../bpf/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "syscalls.h"
#include "../bpf/counters.bpf.h"
#include "../bpf/system_calls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct settings settings SEC(".rodata.settings");

volatile struct target target SEC(".data.target");

COUNTERS_OF_EACH_CPU(counters, CALL_CLASSES *KINDS, NUMBERS);
COUNTERS_OF_EACH_CPU(others, SYSCALLS, OTHER_NUMBERS);
LOSSES_OF_EACH_CPU(LOSSES)

#include "../bpf/family.bpf.h"
#include "../folders/folders.bpf.h"
#include "names.bpf.h"

#include "notes.bpf.h"

/* Global functions are verified once and not at each call, or there would be too many ways through the program. */
__noinline u32 log2_of(u64 value)
{
	u32 log = 0;

	for (int shift = 32; shift; shift >>= 1) {
		if (value >> shift) {
			value >>= shift;
			log += shift;
		}
	}
	return log;
}

/* The class of an open file; fills its key, and gives its entry, if it is one of the server's. */
static __always_inline struct file_entry *entry_of(struct file *file, struct file_key *key, u32 *class)
{
	struct inode *inode = FIELD(file, file, f_inode);
	struct super_block *block = FIELD(inode, inode, i_sb);
	u32 device = FIELD(super_block, block, s_dev), kind = FIELD(inode, inode, i_mode) & S_IFMT;
	struct file_entry *entry = NULL;

	*class = CLASS_NO_FILE;
	if (kind != S_IFREG && kind != S_IFDIR)
		return NULL;
	*class = CLASS_ELSEWHERE;
	if (!watched(device))
		return NULL;
	entry = look_up(key, FIELD(inode, inode, i_ino), inode, FIELD(inode, inode, i_generation), device);
	if (entry)
		*class = entry->class;
	return entry;
}

static __always_inline u32 class_of_descriptor(struct task_struct *task, u32 descriptor)
{
	struct file *file = file_of_descriptor(task, descriptor);
	struct file_key key = {};
	u32 class = CLASS_NO_FILE;

	if (file)
		entry_of(file, &key, &class);
	return class;
}

static __always_inline bool in_root(struct task_struct *task)
{
	struct inode *folder = BPF_CORE_READ(task, fs, pwd.dentry, d_inode);

	return BPF_CORE_READ(folder, i_ino) == settings.root_inode &&
	       numbered_by(folder, BPF_CORE_READ(folder, i_sb, s_dev)) == settings.root_device;
}

static __always_inline bool is_empty(u64 user)
{
	char first = 1;

	return bpf_probe_read_user(&first, sizeof(first), (void *)user) == 0 && !first;
}

/* The class of a call that names its file, at its end. Global, as log2_of() is. */
__noinline u32 class_of_named(u32 way, s64 result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = registers_of(task);
	u64 user = argument(regs, way & BY_PATH_AT ? 1 : 0);
	int folder = (int)argument(regs, 0);

	if (way & GIVES_DESCRIPTOR && result >= 0)
		return class_of_descriptor(task, result);
	/* fstat is stat of nothing, relative to the file. */
	if (way & BY_PATH_AT && folder >= 0 && is_empty(user))
		return class_of_descriptor(task, folder);
	return class_of_path(user, (way & BY_PATH || folder == -100) && in_root(task));
}

/* What a read or write of an open file asks for, and from where. */
static __always_inline void note_transfer(struct call *call, struct file *file, struct pt_regs *regs, u32 way)
{
	struct file_entry *entry = entry_of(file, &call->file, &call->class);
	struct inode *inode;

	call->of_server = entry != NULL;
	if (!entry)
		return;
	call->position = way & FROM_ARGUMENT ? (s64)argument(regs, 3) : -1;
	if (call->position >= 0)
		return;
	inode = FIELD(file, file, f_inode);
	if (way & TRANSFERS_WRITE && FIELD(file, file, f_flags) & settings.append_flag)
		call->position = FIELD(inode, inode, i_size);
	else
		call->position = FIELD(file, file, f_pos);
}

/* Of a call that names an open file: whose that is, and from where it is read or written. */
static __always_inline void note_file(struct call *call, struct task_struct *task, struct pt_regs *regs, u32 way)
{
	struct file *file = file_of_descriptor(task, argument(regs, 0));

	if (file && way & (TRANSFERS_READ | TRANSFERS_WRITE))
		note_transfer(call, file, regs, way);
	else if (file)
		entry_of(file, &call->file, &call->class);
}

static __always_inline void count(u64 *counted, s64 result, u64 ns)
{
	counted[COUNT]++;
	if (result < 0 && result >= -4095)
		counted[ERRORS]++;
	counted[NS] += ns;
}

/* Whether it begins where the last one ended. */
static __always_inline bool goes_on(struct call *call, u32 way, s64 bytes)
{
	struct file_entry *entry = bpf_map_lookup_elem(&files, &call->file);
	u64 from = call->position + 1, *end;
	bool same;

	if (!entry)
		return false;
	end = way & TRANSFERS_READ ? &entry->read_end : &entry->write_end;
	same = *end == from;
	*end = from + bytes;
	return same;
}

static __always_inline void count_transfer(u64 *counted, struct call *call, struct pt_regs *regs, u32 way, s64 result)
{
	u64 asked = way & OF_VECTORS ? bytes_of_vectors(regs, VECTORS_MAX) : argument(regs, 2);
	u32 bucket = 0;

	if (way & OF_VECTORS && !asked && result > 0) {
		lose(LOST_VECTORS);
		asked = result;
	}
	counted[ASKED_BYTES] += asked;
	if (result < 0)
		return;
	counted[RETURNED_BYTES] += result;
	if (result > 0)
		bucket = log2_of(result) + 1;
	counted[BYTES_BUCKETS_AT + (bucket < BYTES_BUCKETS ? bucket : BYTES_BUCKETS - 1)]++;
	if (result > 0 && call->of_server && goes_on(call, way, result))
		counted[SEQUENTIAL]++;
}

/* Numbers beyond the tables share their last place, which no call has. */
static __always_inline u32 place_of_number(u32 number)
{
	u32 place = number < SYSCALLS ? number : SYSCALLS - 1;

	/* Keeps clang from dropping the mask, by which the verifier sees the bound. */
	asm volatile("" : "+r"(place));
	return place & (SYSCALLS - 1);
}

/* How many calls of a number were timed because they were the first; two CPUs at once may time one more. */
u8 timed_first[SYSCALLS];

/* One number a CPU, drawn at each call of the machine. */
COUNTERS_OF_EACH_CPU(draws, 1, 1);

/*
 * For how many calls the time of the one that begins is to stand; 0: it is not taken. Drawn, for calls come in patterns, and
 * before it is asked whose call it is, for that costs more.
 */
static __always_inline u32 stands_for(u32 number)
{
	u32 zero = 0;
	u64 *drawn;

	if (settings.counted != COUNTED_ALL || timed_first[place_of_number(number)] < TIMED_FIRST)
		return 1;
	drawn = bpf_map_lookup_elem(&draws, &zero);
	if (!drawn)
		return 0;
	*drawn = *drawn * 6364136223846793005ULL + 1442695040888963407ULL;
	return *drawn >> (64 - TIMED_SHIFT) ? 0 : 1 << TIMED_SHIFT;
}

/* `timed`: for so many calls its time stands. */
static __always_inline void count_other(u32 number, s64 result, u64 ns, u32 timed)
{
	u32 place = place_of_number(number);
	u64 *counted = bpf_map_lookup_elem(&others, &place);

	if (!counted)
		return;
	count(counted, result, ns * timed);
	counted[TIMED] += timed;
}

static __always_inline u32 kind_of(u32 number)
{
	return settings.kinds[place_of_number(number)];
}

/* A call without a note: one that is counted by number alone, or that began before anybody looked. */
static __always_inline void returned_unnoted(struct pt_regs *regs, s64 result)
{
	u32 number = call_in(regs), kind;

	if (number == (u32)-1)
		number = settings.sigreturn;
	kind = kind_of(number);
	if (kind == KIND_OTHER || (kind == KIND_RETURNS_TWICE && result))
		count_other(number, result, 0, 0);
}

static __always_inline void returned(struct call *call, struct pt_regs *regs, s64 result, u64 ns)
{
	u32 number = call->number, class = call->class, kind, way, place, bucket;
	u64 *counted;

	kind = kind_of(number);
	if (kind == KIND_OTHER || kind > KINDS) {
		count_other(number, result, ns, call->stands_for);
		return;
	}
	way = settings.ways[place_of_number(number)];
	if (way & (BY_PATH | BY_PATH_AT))
		class = class_of_named(way, result);
	place = class * KINDS + kind;
	counted = bpf_map_lookup_elem(&counters, &place);
	if (!counted)
		return;
	count(counted, result, ns);
	bucket = log2_of(ns);
	counted[NS_BUCKETS_AT + (bucket < NS_BUCKETS ? bucket : NS_BUCKETS - 1)]++;
	if (way & (TRANSFERS_READ | TRANSFERS_WRITE))
		count_transfer(counted, call, regs, way, result);
}

/* What the end of the call has to know, with the present moment as its begin. */
static __always_inline int note(struct task_struct *task, struct pt_regs *regs, u32 number, u32 way, u32 stands_for)
{
	struct call *call = new_note(task);

	if (!call)
		return lose(LOST_TASKS);
	call->number = number;
	call->stands_for = stands_for;
	call->class = CLASS_NO_FILE;
	call->of_server = false;
	if (way & BY_DESCRIPTOR)
		note_file(call, task, regs, way);
	/* Last, so that what is done here is in no call's time. */
	call->entered = bpf_ktime_get_ns();
	return 0;
}

/* --- tracepoints of each call of a kind: no other call of the machine is slowed by them -------------------------------- */

/* What they give: the kernel's own head, the call's number, and its arguments or its result. */
struct of_call {
	u64 head;
	s32 number;
	u32 padding;
	s64 result;
};

SEC("tracepoint")
int on_call_enters(struct of_call *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = event->number;

	if (!is_of_family(task, target.parent))
		return 0;
	return note(task, registers_of(task), number, settings.ways[place_of_number(number)], 1);
}

SEC("tracepoint")
int on_call_returns(struct of_call *event)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call;

	if (!is_of_family(task, target.parent))
		return 0;
	call = note_of(task);
	if (!call || call->number != event->number)
		return 0;
	returned(call, registers_of(task), event->result, bpf_ktime_get_ns() - call->entered);
	done_with(call);
	return 0;
}

/* --- the tracepoints of all calls: for those of no kind, in slices of time, or for every one ------------------------- */

static __always_inline bool is_of_a_kind(u32 number)
{
	u32 kind = kind_of(number);

	return kind != KIND_OTHER && kind < KINDS;
}

/* Calls of a kind that began in the slice and have not ended. */
s64 under_way SEC(".data.under_way");

static __always_inline bool slice_goes_on(void)
{
	return settings.counted == COUNTED_ALL || (target.slice_since && !target.slice_until);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long call_number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number = call_number, calls = 1, way = 0;
	bool of_a_kind = is_of_a_kind(number);

	if ((settings.counted == COUNTED_FILES && of_a_kind) || !slice_goes_on())
		return 0;
	if (of_a_kind)
		way = settings.ways[place_of_number(number)];
	else
		calls = kind_of(number) == KIND_NEVER_RETURNS ? 0 : stands_for(number);
	if (!calls || !is_of_family(task, target.parent))
		return 0;
	if (!of_a_kind && calls == 1 && settings.counted == COUNTED_ALL)
		timed_first[place_of_number(number)]++;
	if (of_a_kind && settings.counted != COUNTED_ALL)
		__sync_fetch_and_add(&under_way, 1);
	return note(task, regs, number, way, calls);
}

/* Of a call that began in an earlier slice another may have ended between them. */
static __always_inline bool is_of_slice(struct call *call)
{
	return !(settings.counted == COUNTED_FILES && is_of_a_kind(call->number)) && call->entered >= target.slice_since;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call;
	bool of_a_kind;

	if ((settings.counted != COUNTED_ALL && !target.slice_since) || !is_of_family(task, target.parent))
		return 0;
	call = note_of(task);
	if (!call || (settings.counted != COUNTED_ALL && !is_of_slice(call))) {
		if (!target.slice_until)
			returned_unnoted(regs, result);
		return 0;
	}
	/* A call of a kind is waited for behind the end of its slice: else the longer calls last the fewer would be seen. */
	of_a_kind = settings.counted != COUNTED_FILES && is_of_a_kind(call->number);
	if (settings.counted == COUNTED_FILES && !target.slice_until)
		count_other(call->number, result, bpf_ktime_get_ns() - call->entered, call->stands_for);
	else if (of_a_kind || !target.slice_until)
		returned(call, regs, result, bpf_ktime_get_ns() - call->entered);
	if (of_a_kind && settings.counted != COUNTED_ALL)
		__sync_fetch_and_add(&under_way, -1);
	done_with(call);
	return 0;
}
