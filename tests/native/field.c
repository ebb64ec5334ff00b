/* One side of an exchange of fields, "left" or "right", each with a communicator of one rank; field.cpp and field.f90 follow the
 * same script, so any two fit. To the right go two arrays of 6 by 4, to the left the inner ten of twelve numbers. */
#include <string.h>

#include "check.h"

static titin_instance *instance;
static titin_port *in, *out;

static int keep(void *context, void *bytes, int64_t count) {
    (void)bytes, (void)count;
    ++*(int *)context;
    return 0;
}

static int give(void *context, const void *mine, void *all, int64_t count) {
    ++*(int *)context;
    memcpy(all, mine, (size_t)count);
    return 0;
}

/* Checks that a call was refused with these words, and takes the error back. */
static void refused(int status, const char *words) {
    CHECK(status == TITIN_ERROR_USAGE && strstr(titin_error(), words) && titin_recover(instance) == 0);
}

static void errors(void) {
    titin_field *field = NULL;
    CHECK(!titin_decomposition_new(8, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1}) && !titin_decomposition_new(1, (int64_t[]){-1}));
    titin_decomposition *two = titin_decomposition_new(1, (int64_t[]){10});
    refused(titin_decomposition_grid(NULL, (int[]){1}), "NULL");
    refused(titin_decomposition_spread(two, 1, TITIN_EVEN, 0), "no dimension 1");
    refused(titin_decomposition_spread(two, 0, TITIN_CYCLIC, 0), "at least 1");
    refused(titin_decomposition_box(two, (int64_t[]){-1}, (int64_t[]){3}), "-1");
    refused(titin_decomposition_indices(two, 2, (int64_t[]){3, -1}), "-1 is among the indices");
    /* The program has ignored these errors, so the next call reports the first of them. */
    refused(titin_field_new(out, two, 1, (int[]){TITIN_F64}, &field), "a call on its decomposition has failed: there is no dimension 1");
    CHECK(!field);
    titin_decomposition_free(two);
    two = titin_decomposition_new(1, (int64_t[]){10});
    CHECK(titin_decomposition_grid(two, (int[]){2}) == 0);
    refused(titin_field_new(out, two, 1, (int[]){TITIN_F64}, &field), "needs 2 ranks");
    CHECK(!field);
    refused(titin_field_new(out, NULL, 1, (int[]){TITIN_F64}, &field), "NULL");
    refused(titin_field_send(NULL, NULL, 0.0, TITIN_NO_NEXT), "NULL");
    titin_decomposition_free(two);
    titin_decomposition_free(NULL);
    titin_field_free(NULL);
}

static void left(void) {
    static double a[8][6];
    static int32_t b[8][6];
    double stamp, next, line[10];
    titin_field *send, *receive;
    titin_decomposition *grid = titin_decomposition_new(2, (int64_t[]){6, 4});
    CHECK(titin_decomposition_grid(grid, (int[]){1, 1}) == 0 && titin_decomposition_ranks(grid, TITIN_ORDER_FORTRAN) == 0);
    CHECK(titin_decomposition_spread(grid, 0, TITIN_CYCLIC, 2) == 0);
    CHECK(titin_decomposition_bounds(grid, 1, 2, (int64_t[]){0, 4}) == 0);
    CHECK(titin_decomposition_halo(grid, (int64_t[]){1, 1}, (int64_t[]){1, 1}) == 0);
    CHECK(titin_field_new(out, grid, 2, (int[]){TITIN_F64, TITIN_I32}, &send) == 0);
    titin_decomposition_free(grid);
    CHECK(titin_field_dtype(send, 0) == TITIN_F64 && titin_field_dtype(send, 9) == 0);
    CHECK(titin_field_bytes(send, 0) == 384 && titin_field_bytes(send, 1) == 192 && titin_field_bytes(send, 2) == 0);

    int64_t numbers[10], rows[6];
    CHECK(titin_field_extents(send, numbers) == 0 && numbers[0] == 8 && numbers[1] == 6);
    CHECK(titin_field_owned(send, 0, NULL) == 6 && titin_field_owned(send, 0, rows) == 6);
    for (int i = 0; i < 6; ++i) CHECK(rows[i] == i);
    refused(titin_field_extents(send, NULL), "NULL");
    CHECK(titin_field_owned(send, 2, rows) == -1 && strstr(titin_error(), "dimension 2"));
    for (int i = 0; i < 10; ++i) numbers[i] = 9 - i;
    titin_decomposition *backwards = titin_decomposition_new(1, (int64_t[]){10});
    CHECK(titin_decomposition_indices(backwards, 10, numbers) == 0);
    CHECK(titin_field_new(in, backwards, 1, (int[]){TITIN_F64}, &receive) == 0);
    titin_decomposition_free(backwards);
    int64_t owned[10];
    CHECK(titin_field_owned(receive, 0, owned) == 10 && memcmp(owned, numbers, sizeof owned) == 0);
    CHECK(titin_field_receive(receive, (void *[]){line}, 0.01, NULL, NULL) == TITIN_ERROR_TIMEOUT);
    CHECK(titin_recover(instance) == 0);

    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 6; ++j) {
            const int inside = i > 0 && i < 7 && j > 0 && j < 5;
            a[i][j] = inside ? 10 * (i - 1) + j - 1 : -1;
            b[i][j] = inside ? 100 + 10 * (i - 1) + j - 1 : -1;
        }
    refused(titin_field_send(send, (const void *[]){a, NULL}, 1.0, 2.0), "array 1 of its 2, which count from 0, was given as NULL");
    CHECK(titin_field_send(send, (const void *[]){a, b}, 1.0, 2.0) == 0);
    CHECK(titin_field_receive(receive, (void *[]){line}, TITIN_WAIT, &stamp, &next) == 0);
    CHECK(stamp == 1.0 && next == TITIN_NO_NEXT);
    for (int i = 0; i < 10; ++i) CHECK(line[i] == 10 - i);
    titin_field_free(send);
    titin_field_free(receive);
}

static void right(void) {
    double a[4][6], stamp, next, line[12];
    int32_t b[4][6];
    titin_field *receive, *send;
    titin_decomposition *whole = titin_decomposition_new(2, (int64_t[]){6, 4});
    CHECK(titin_decomposition_box(whole, (int64_t[]){0, 0}, (int64_t[]){6, 4}) == 0);
    CHECK(titin_decomposition_order(whole, TITIN_ORDER_FORTRAN) == 0);
    CHECK(titin_field_new(in, whole, 2, (int[]){TITIN_F64, TITIN_I32}, &receive) == 0);
    titin_decomposition_free(whole);
    /* The first array, with its first dimension backwards. */
    CHECK(titin_field_layout(receive, 0, (int64_t[]){6, 4}, (int64_t[]){-16, 96}) == 0 && titin_field_bytes(receive, 0) == 376);
    CHECK(titin_field_layout(receive, 0, NULL, NULL) == 0 && titin_field_bytes(receive, 0) == 192);
    CHECK(titin_field_layout(receive, 0, (int64_t[]){6, 4}, (int64_t[]){8, 40}) == 0);
    refused(titin_field_receive(receive, (void *[]){a, b}, TITIN_WAIT, NULL, NULL), "array 0 of its 2, which count from 0, has elements that share memory");
    CHECK(titin_field_layout(receive, 0, (int64_t[]){6, 4}, (int64_t[]){-8, 48}) == 0);
    refused(titin_field_layout(receive, 0, (int64_t[]){6, 4}, (int64_t[]){3, 48}), "a stride of 3 bytes");
    refused(titin_field_layout(receive, 1, (int64_t[]){6, 5}, (int64_t[]){4, 24}), "halo and all");
    refused(titin_field_receive(receive, (void *[]){b, b}, TITIN_WAIT, NULL, NULL), "arrays 0 and 1, which count from 0, share memory");
    refused(titin_field_receive(receive, (void *[]){&a[0][5], &a[3][5]}, TITIN_WAIT, NULL, NULL), "arrays 0 and 1, which count from 0, share memory");
    CHECK(titin_field_receive(receive, (void *[]){&a[0][5], b}, TITIN_WAIT, &stamp, &next) == 0);
    CHECK(stamp == 1.0 && next == 2.0);
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 4; ++j) CHECK(a[j][5 - i] == 10 * i + j && b[j][i] == 100 + 10 * i + j);

    titin_decomposition *boxes = titin_decomposition_new(1, (int64_t[]){12});
    CHECK(titin_decomposition_box(boxes, (int64_t[]){6}, (int64_t[]){12}) == 0);
    CHECK(titin_decomposition_box(boxes, (int64_t[]){0}, (int64_t[]){6}) == 0);
    CHECK(titin_decomposition_region(boxes, (int64_t[]){1}, (int64_t[]){11}) == 0);
    CHECK(titin_field_new(out, boxes, 1, (int[]){TITIN_F64}, &send) == 0);
    titin_decomposition_free(boxes);
    refused(titin_field_layout(send, 0, (int64_t[]){12}, (int64_t[]){8}), "is flat here");
    for (int i = 0; i < 12; ++i) line[i] = (i + 6) % 12;
    CHECK(titin_field_send(send, (const void *[]){line}, 1.0, TITIN_NO_NEXT) == 0);
    titin_field_free(send);
    titin_field_free(receive);
}

int main(int argc, char **argv) {
    int asked = 0, again;
    titin_options *options = titin_options_new();
    const titin_communicator alone = {
        .size = sizeof alone, .rank = 0, .ranks = 1, .context = &asked, .broadcast = keep, .gather = give};
    CHECK(titin_options_communicator(options, &alone) == 0);
    CHECK(argc == 2 && titin_open("o_i: out; s: in", options, &instance) == 0);
    titin_options_free(options);
    CHECK(titin_rank(instance) == 0 && titin_ranks(instance) == 1);
    out = titin_port_find(instance, "out");
    in = titin_port_find(instance, "in");
    CHECK(titin_reuse(instance, &again) == 0 && again);
    errors();
    if (!strcmp(argv[1], "left")) left();
    else right();
    CHECK(titin_reuse(instance, &again) == 0 && !again && titin_close(instance) == 0);
    return 0;
}
