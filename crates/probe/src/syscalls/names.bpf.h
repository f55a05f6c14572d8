/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The class of a file by the name that a call was given. */
#ifndef PLIMSOLL_SYSCALLS_NAMES_BPF_H
#define PLIMSOLL_SYSCALLS_NAMES_BPF_H

/* Where a name is put for the time of looking at it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, char[PATH_BYTES]);
} names SEC(".maps");

static __always_inline bool begins(const char *name, const char *with, u32 bytes)
{
	for (u32 i = 0; i < bytes; i++)
		if (name[i] != with[i])
			return false;
	/* What ends there is the folder itself. */
	return name[bytes] == '/' || !name[bytes];
}

/* The class of a name within the target's folder, as PostgreSQL writes names if they tell. */
static __always_inline u32 class_of_rest(const char *name, u32 at)
{
	const char *rest = name + at;

	if (!settings.names_tell)
		return CLASS_OTHER;
	if (begins(rest, "pg_wal", 6))
		return CLASS_WAL;
	if (begins(rest, "global", 6))
		return CLASS_GLOBAL;
	if (!begins(rest, "base", 4) && !begins(rest, "pg_tblspc", 9))
		return CLASS_OTHER;
	for (u32 i = 4; i < REST_BYTES; i++) {
		if (!rest[i])
			break;
		if (rest[i] == '/' && is_temp(&rest[i + 1]))
			return CLASS_TEMP;
	}
	return CLASS_DATA;
}

/* The class of a name given to a call. */
__noinline u32 class_of_path(u64 user, bool relative_to_root)
{
	u32 zero = 0;
	char *name = bpf_map_lookup_elem(&names, &zero);
	long bytes;

	if (!name)
		return CLASS_NO_FILE;
	bytes = bpf_probe_read_user_str(name, PATH_BYTES, (void *)user);
	if (bytes <= 0) {
		lose(LOST_PATHS);
		return CLASS_NO_FILE;
	}
	if (name[0] != '/')
		return relative_to_root ? class_of_rest(name, 0) : CLASS_ELSEWHERE;
	for (u32 i = 0; i < ROOT_BYTES - 1 && settings.root[i]; i++)
		if (name[i] != settings.root[i])
			return CLASS_ELSEWHERE;
	return class_of_rest(name, settings.root_bytes);
}

#endif
