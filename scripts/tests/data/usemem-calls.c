// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linked to usemem with --wrap, this logs its memory system calls: one line
 * "PID NAME LENGTH FLAG" each, in order over all processes, to the file that
 * USEMEM_CALLS names. It also makes each child start late, which shows in
 * whose hands the clock is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__real_mmap(void *at, size_t length, int prot, int flags, int fd,
	off_t offset);
void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd,
	off_t offset);
int __real_munmap(void *at, size_t length);
int __wrap_munmap(void *at, size_t length);
void *__real_mremap(void *at, size_t length, size_t new_length, int flags, ...);
void *__wrap_mremap(void *at, size_t length, size_t new_length, int flags, ...);
int __real_madvise(void *at, size_t length, int advice);
int __wrap_madvise(void *at, size_t length, int advice);
int __real_msync(void *at, size_t length, int flags);
int __wrap_msync(void *at, size_t length, int flags);
int __real_mincore(void *at, size_t length, unsigned char *vec);
int __wrap_mincore(void *at, size_t length, unsigned char *vec);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

static void log_call(const char *name, size_t length, int flag)
{
	int fd = open(getenv("USEMEM_CALLS"), O_WRONLY | O_APPEND | O_CREAT,
		      0600);
	char line[100];
	int len = snprintf(line, sizeof(line), "%d %s %zu %d\n", getpid(), name,
			   length, flag);

	if (fd < 0 || write(fd, line, len) != len)
		abort();
	close(fd);
}

void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd,
		  off_t offset)
{
	log_call("mmap", length, flags);
	return __real_mmap(at, length, prot, flags, fd, offset);
}

int __wrap_munmap(void *at, size_t length)
{
	log_call("munmap", length, 0);
	return __real_munmap(at, length);
}

/* The caller always passes a new address. */
void *__wrap_mremap(void *at, size_t length, size_t new_length, int flags, ...)
{
	va_list args;
	void *to;

	va_start(args, flags);
	to = va_arg(args, void *);
	va_end(args);
	log_call("mremap", length, flags);
	return __real_mremap(at, length, new_length, flags, to);
}

int __wrap_madvise(void *at, size_t length, int advice)
{
	log_call("madvise", length, advice);
	return __real_madvise(at, length, advice);
}

int __wrap_msync(void *at, size_t length, int flags)
{
	log_call("msync", length, flags);
	return __real_msync(at, length, flags);
}

int __wrap_mincore(void *at, size_t length, unsigned char *vec)
{
	log_call("mincore", length, 0);
	return __real_mincore(at, length, vec);
}

pid_t __wrap_fork(void)
{
	pid_t pid = __real_fork();

	if (!pid)
		usleep(50000);
	return pid;
}
