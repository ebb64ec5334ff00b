/* Sends a file by a path: as fast as a path carries it, without another file at the other end.
 *
 * Arguments: "send", the address, the file, and the file for the time; or "receive", the address and the bytes. The time is from
 * the open path until the other end has received all. The file is in memory before. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <titin_path.h>

#include "common.h"

/* The bytes of a message. */
#define PIECE ((int64_t)1 << 24)

static void must(int status) {
    if (status == 0) return;
    fprintf(stderr, "%s\n", titin_error());
    exit(1);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void send_file(const char *address, const char *name, const char *result) {
    const int file = open(name, O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) fail(name);
    const char *data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    if (data == MAP_FAILED) fail(name);
    titin_path *path;
    must(titin_path_open(address, NULL, NULL, &path));
    const double begin = now();
    for (int64_t at = 0; at < about.st_size; at += PIECE)
        must(titin_path_send(path, data + at, least(PIECE, about.st_size - at), TITIN_WAIT));
    must(titin_path_flush(path, TITIN_WAIT));
    add_time(result, 0, now() - begin);
    must(titin_path_close(path, TITIN_WAIT));
}

static void receive(const char *address, int64_t bytes) {
    char *data = memory((size_t)PIECE);
    titin_path_listener *listener;
    titin_path *path;
    must(titin_path_listen(address, NULL, &listener));
    must(titin_path_accept(listener, TITIN_WAIT, &path));
    titin_path_listener_free(listener);
    while (bytes > 0) {
        int64_t length;
        must(titin_path_receive_into(path, data, PIECE, TITIN_WAIT, &length));
        bytes -= length;
    }
    must(titin_path_close(path, TITIN_WAIT));
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "send")) send_file(argv[2], argv[3], argv[4]);
    else if (argc == 4 && !strcmp(argv[1], "receive")) receive(argv[2], atoll(argv[3]));
    else return fprintf(stderr, "send ADDRESS FILE TIME, or receive ADDRESS BYTES\n"), 2;
    return 0;
}
