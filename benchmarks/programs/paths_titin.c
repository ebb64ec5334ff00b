/* A ping-pong by a path. Arguments: as in `paths.h`; the number of streams is 0 for titin's choice. */
#include <titin_path.h>

#include "paths.h"

static titin_path *path;

static void must(int status) {
    if (status == 0) return;
    fprintf(stderr, "%s\n", titin_error());
    exit(1);
}

static void send_it(const void *data, size_t bytes) { must(titin_path_send(path, data, (int64_t)bytes, TITIN_WAIT)); }

static void receive(void *data, size_t bytes) {
    must(titin_path_receive_into(path, data, (int64_t)bytes, TITIN_WAIT, NULL));
}

int main(int argc, char **argv) {
    const int first = argc == 8 && !strcmp(argv[1], "here");
    if (!first && argc != 4) return fprintf(stderr, "%s: the arguments are those of paths.h\n", argv[0]), 2;
    const struct medium medium = {send_it, receive};
    if (first) {
        titin_path_options *options = titin_path_options_new();
        if (atoi(argv[3])) must(titin_path_options_streams(options, atoi(argv[3])));
        must(titin_path_open(argv[2], NULL, options, &path));
        titin_path_options_free(options);
        here(&medium, argv[4], atof(argv[5]), atof(argv[6]), argv[7]);
    } else {
        titin_path_listener *listener;
        must(titin_path_listen(argv[2], NULL, &listener));
        must(titin_path_accept(listener, TITIN_WAIT, &path));
        titin_path_listener_free(listener);
        there(&medium);
    }
    must(titin_path_close(path, TITIN_WAIT));
    return 0;
}
