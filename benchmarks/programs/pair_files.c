/* The two sides of a ping-pong through files by hand. A message is written under another name and renamed. The receiver
 * looks for the name for a moment, and then sleeps until the system reports a new file. The receiver reads and deletes the
 * file. Arguments: the folder, and the task. */
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

/* How often the receiver looks before it sleeps: some 50 µs. */
enum { LOOKS = 40 };

static char inbox[512], outbox[512];
static long sent, received;
static int notices;
static void *outgoing;
static char *incoming;

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

static void send_it(void *data, size_t bytes) {
    char draft[600], name[600];
    snprintf(draft, sizeof draft, "%s/new", outbox);
    snprintf(name, sizeof name, "%s/%ld", outbox, sent++);
    const int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0) fail(draft);
    for (size_t done = 0; done < bytes;) {
        const ssize_t count = write(file, (char *)data + done, bytes - done);
        if (count < 0) fail("write");
        done += (size_t)count;
    }
    if (close(file) != 0 || rename(draft, name) != 0) fail(name);
}

static int next_file(const char *name) {
    for (int looks = 0;; looks++) {
        const int file = open(name, O_RDONLY);
        if (file >= 0) return file;
        if (errno != ENOENT) fail(name);
        char events[4096];
        if (looks >= LOOKS && read(notices, events, sizeof events) < 0) fail("inotify");
    }
}

static const void *receive(size_t bytes) {
    char name[600];
    snprintf(name, sizeof name, "%s/%ld", inbox, received++);
    const int file = next_file(name);
    for (size_t done = 0; done < bytes;) {
        const ssize_t count = read(file, incoming + done, bytes - done);
        if (count <= 0) fail("read");
        done += (size_t)count;
    }
    close(file);
    if (unlink(name) != 0) fail(name);
    return incoming;
}

static void nothing(void) {}

int main(int argc, char **argv) {
    if (argc != 7) return fprintf(stderr, "%s: six arguments are needed\n", argv[0]), 2;
    const struct task task = task_of(argv + 2);
    char folder[256], sides[2][512];
    snprintf(folder, sizeof folder, "%s/by-hand-XXXXXX", argv[1]);
    if (!mkdtemp(folder)) fail(folder);
    for (int side = 0; side < 2; side++) {
        snprintf(sides[side], sizeof sides[side], "%s/%d", folder, side);
        if (mkdir(sides[side], 0700) != 0) fail(sides[side]);
    }
    const pid_t child = fork();
    if (child < 0) fail("fork");
    const int side = child == 0;
    pin(side);
    strcpy(inbox, sides[side]);
    strcpy(outbox, sides[1 - side]);
    notices = inotify_init1(IN_CLOEXEC);
    if (notices < 0 || inotify_add_watch(notices, inbox, IN_MOVED_TO) < 0) fail("inotify");
    outgoing = memory(task.largest);
    incoming = memory(task.largest);
    const struct medium medium = {reused, send_it, receive, nothing, 0};
    play(&medium, &task, side);
    int status = 0;
    if (side == 0) {
        waitpid(child, &status, 0);
        for (int i = 0; i < 2; i++) rmdir(sides[i]);
        rmdir(folder);
    }
    return status != 0;
}
