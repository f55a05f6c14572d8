/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Pages brought ahead, as bits until they are used, mapped or leave. */
#ifndef PLIMSOLL_AHEAD_BPF_H
#define PLIMSOLL_AHEAD_BPF_H

#include "files.bpf.h"

static __always_inline u64 bits(u64 from, u64 to)
{
	u64 high = to >= 64 ? ~0ULL : (1ULL << to) - 1;

	return high & ~((1ULL << from) - 1);
}

static __always_inline u32 ones(u64 word)
{
	word = word - ((word >> 1) & 0x5555555555555555ULL);
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WAITING_PLACES);
	__type(key, u32);
	__type(value, u32);
} waiting SEC(".maps");

/* How many pages wait in an entry of the map of pages brought ahead; entries that share the place only cost a look. */
static __always_inline u32 *waiting_at(u32 file, u64 page)
{
	u32 place = (file * 40503 + (u32)(page / AHEAD_PAGES)) % WAITING_PLACES;

	return bpf_map_lookup_elem(&waiting, &place);
}

/* A range of pages to mark as waiting for use, or as waiting no more. */
struct marking {
	u64 first, end;
	u32 file, waits;
	u32 changed; /* how many were not so before */
	u32 words;
};

/* One word of it. */
static long mark_word(u32 turn, struct marking *marking)
{
	u64 first = marking->first, from = first & 63, left = marking->end - first;
	u64 to = from + left < 64 ? from + left : 64, mask = bits(from, to);
	struct ahead_key key = {.file = marking->file, .place = first / AHEAD_PAGES};
	u32 *here = waiting_at(marking->file, first), word = (first / 64) % AHEAD_WORDS, changed = 0;
	struct ahead_pages *found;

	marking->first = first + to - from;
	if (!here || (!marking->waits && !*here))
		return 0;
	found = bpf_map_lookup_elem(&ahead, &key);
	if (!found && marking->waits) {
		struct ahead_pages empty = {};

		bpf_map_update_elem(&ahead, &key, &empty, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&ahead, &key);
		if (!found)
			lose(LOST_AHEAD);
	}
	if (!found)
		return 0;
	if (marking->waits) {
		changed = ones(mask & ~__sync_fetch_and_or(&found->waiting[word], mask));
		__sync_fetch_and_add(here, changed);
	} else if (found->waiting[word] & mask) {
		changed = ones(mask & __sync_fetch_and_and(&found->waiting[word], ~mask));
		__sync_fetch_and_add(here, -changed);
	}
	marking->changed += changed;
	return 0;
}

/* For kernels before bpf_loop (5.17): 10 MiB at 4 KiB a page in one call; what is beyond is lost, and counted. */
#define WORDS_WITHOUT_LOOP 40

/*
 * How many of the pages from `first` up to `end` of a file were not so before. A global function, for those are verified once
 * and not at each call: a third of what loading the probe takes would go into this one.
 */
__noinline u32 mark(u32 file, u64 first, u64 end, u32 waits)
{
	struct marking marking = {.first = first, .end = end, .file = file, .waits = waits};
	u32 words;

	if (first >= end)
		return 0;
	words = ((end - 1) >> 6) - (first >> 6) + 1;
	if (words == 1) {
		mark_word(0, &marking);
	} else if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(words, mark_word, &marking, 0);
	} else {
		for (u32 turn = 0; turn < WORDS_WITHOUT_LOOP && turn < words; turn++)
			mark_word(turn, &marking);
		if (words > WORDS_WITHOUT_LOOP)
			lose(LOST_AHEAD);
	}
	return marking.changed;
}

static __always_inline void ahead_add(struct place *place, u64 first, u64 end)
{
	mark(place->number, first, end, true);
}

/* How many of the pages from `first` up to `end` waited for use; they do no more. */
static __always_inline u32 used(struct place *place, u64 first, u64 end)
{
	u32 *here;

	/* Most often all of it lies in one entry, in which nothing waits. */
	if (first / AHEAD_PAGES == (end - 1) / AHEAD_PAGES) {
		here = waiting_at(place->number, first);
		if (here && !*here)
			return 0;
	}
	return mark(place->number, first, end, false);
}

#endif
