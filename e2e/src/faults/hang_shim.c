/* Makes one thread of the process that it is preloaded into hang, or every look at one folder.
 *
 * CORRIDOR_HANG_THREAD: the name of the thread. It hangs as soon as CORRIDOR_HANG_TRIGGER has a file named after the
 * process number, in the call in which it would have waited for something to happen.
 * CORRIDOR_HANG_FOLDER: to make this folder takes for ever, as on a file server that is gone. */

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <fcntl.h>

static void hang(void) {
    for (;;)
        pause();
}

static void hang_if_struck(void) {
    const char *thread = getenv("CORRIDOR_HANG_THREAD"), *trigger = getenv("CORRIDOR_HANG_TRIGGER");
    char name[16] = {0}, path[4096];
    if (thread == NULL || trigger == NULL || prctl(PR_GET_NAME, name) != 0 || strcmp(name, thread) != 0)
        return;
    snprintf(path, sizeof path, "%s/%d", trigger, (int)getpid());
    if (access(path, F_OK) == 0)
        hang();
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
    hang_if_struck();
    return (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout, NULL, 8);
}

int mkdir(const char *path, mode_t mode) {
    const char *folder = getenv("CORRIDOR_HANG_FOLDER");
    if (folder != NULL && strcmp(path, folder) == 0)
        hang();
    return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
