/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef PLIMSOLL_THROTTLE_H
#define PLIMSOLL_THROTTLE_H

#define NAME_BYTES 32 /* of the field bdi */

struct settings {
	unsigned int name_at, pause_at; /* where the event has its fields, in bytes */
	char name[NAME_BYTES];		/* of the backing device */
};

#endif
