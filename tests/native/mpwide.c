/* The functions of MPWide for C: `mpwide PORT,PORT,PORT PATHPORT SIDE`. */
#include "check.h"

#include <string.h>

#include "MPWide.h"

int main(int argc, char **argv) {
    int ports[3], side;
    CHECK(argc == 4 && sscanf(argv[1], "%d,%d,%d", &ports[0], &ports[1], &ports[2]) == 3);
    side = atoi(argv[3]);
    char *hosts[] = {"localhost", "localhost"};
    MPW_Init_c(hosts, ports, 2);
    MPW_Init1_c("localhost", ports[2]);
    CHECK(MPW_CreatePath_c("localhost", atoi(argv[2]), 2) == 0);

    /* The message is split over the channels 0 and 1. */
    char out[8], in[8] = "";
    snprintf(out, sizeof out, "%s", side ? "right" : "leftist");
    MPW_SendRecv_c(out, side ? 6 : 8, in, side ? 8 : 6, (int[]){0, 1}, 2);
    CHECK(strcmp(in, side ? "leftist" : "right") == 0);

    /* By channel 2 alone. */
    memset(in, 0, sizeof in);
    MPW_SendRecv1_c(side ? "xyz" : "abc", 3, in, 3, 2);
    CHECK(strcmp(in, side ? "abc" : "xyz") == 0);

    /* By the path, whose channels are 3 and 4. */
    MPW_SendRecv_c(side ? "path" : "PATH", 5, in, 5, (int[]){3, 4}, 2);
    CHECK(strcmp(in, side ? "PATH" : "path") == 0);

    /* A buffer for each of the channels 0 to 2. */
    char first[2] = "", second[4] = "";
    char *to_send[] = {side ? "B" : "A", NULL, side ? "bbb" : "aaa"};
    char *to_receive[] = {first, NULL, second};
    MPW_PSendRecv_c(to_send, (long long[]){1, 0, 3}, to_receive, (long long[]){1, 0, 3}, (int[]){0, 1, 2}, 3);
    CHECK(strcmp(first, side ? "A" : "B") == 0 && strcmp(second, side ? "aaa" : "bbb") == 0);
    return 0;
}
