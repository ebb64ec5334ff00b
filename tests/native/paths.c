/* One of the two ends of a path: `paths listen` prints its address, `paths ADDRESS` opens the path. The programs in other
 * languages do the same, in the same order. */
#include "check.h"

#include <math.h>
#include <string.h>
#include <titin_path.h>
#include <unistd.h>

enum { MANY = 700000 };

static void give(titin_path *path) {
    const int32_t whole[] = {1, -2, 3};
    CHECK(titin_path_send_array(path, TITIN_I32, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, NULL, whole, TITIN_WAIT) == 0);
    /* Every second column of a larger array. */
    double wide[2][6];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6; j++) wide[i][j] = j % 2 ? -1 : 10 * i + j / 2;
    const int64_t steps[] = {sizeof wide[0], 2 * sizeof(double)};
    CHECK(titin_path_send_array(path, TITIN_F64, 2, (int64_t[]){2, 3}, steps, TITIN_ORDER_C, NULL, wide, TITIN_WAIT) == 0);
    const double complexes[] = {1, 2, 3, 4};
    CHECK(titin_path_send_array(path, TITIN_C128, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, NULL, complexes, TITIN_WAIT) == 0);
    const uint8_t flags[] = {1, 0, 7};
    CHECK(titin_path_send_array(path, TITIN_BOOL, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, NULL, flags, TITIN_WAIT) == 0);
    CHECK(titin_path_send_array(path, TITIN_I8, 1, (int64_t[]){0}, NULL, TITIN_ORDER_C, NULL, NULL, TITIN_WAIT) == 0);
    double *many = malloc(MANY * sizeof *many);
    for (int i = 0; i < MANY; i++) many[i] = i;
    CHECK(titin_path_send_array(path, TITIN_F64, 1, (int64_t[]){MANY}, NULL, TITIN_ORDER_C, NULL, many, TITIN_WAIT) == 0);
    free(many);
}

static void take(titin_path *path) {
    int32_t whole[3];
    CHECK(titin_path_receive_array(path, TITIN_I32, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, whole, TITIN_WAIT) == 0);
    CHECK(whole[0] == 1 && whole[1] == -2 && whole[2] == 3);
    double wide[2][6] = {{0}};
    const int64_t steps[] = {sizeof wide[0], 2 * sizeof(double)};
    CHECK(titin_path_receive_array(path, TITIN_F64, 2, (int64_t[]){2, 3}, steps, TITIN_ORDER_C, wide, TITIN_WAIT) == 0);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 6; j++) CHECK(wide[i][j] == (j % 2 ? 0 : 10 * i + j / 2));
    double complexes[4];
    CHECK(titin_path_receive_array(path, TITIN_C128, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, complexes, TITIN_WAIT) == 0);
    for (int i = 0; i < 4; i++) CHECK(complexes[i] == i + 1);
    uint8_t flags[3];
    CHECK(titin_path_receive_array(path, TITIN_BOOL, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, flags, TITIN_WAIT) == 0);
    CHECK(flags[0] == 1 && flags[1] == 0 && flags[2] == 1);
    CHECK(titin_path_receive_array(path, TITIN_I8, 1, (int64_t[]){0}, NULL, TITIN_ORDER_C, NULL, TITIN_WAIT) == 0);
    double *many = malloc(MANY * sizeof *many);
    CHECK(titin_path_receive_array(path, TITIN_F64, 1, (int64_t[]){MANY}, NULL, TITIN_ORDER_C, many, TITIN_WAIT) == 0);
    for (int i = 0; i < MANY; i++) CHECK(many[i] == i);
    free(many);
}

/* A message of a type and shape that the receiver does not know. */
static void surprise(titin_path *path, int listens) {
    if (!listens) {
        float numbers[4][5];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 5; j++) numbers[i][j] = i - 2 * j;
        CHECK(titin_path_send_array(path, TITIN_F32, 2, (int64_t[]){4, 5}, NULL, TITIN_ORDER_C,
                                    (const char *const[]){"y", "x"}, numbers, TITIN_WAIT) == 0);
        return;
    }
    titin_message *message;
    CHECK(titin_path_receive(path, TITIN_WAIT, &message) == 0);
    CHECK(titin_message_dtype(message) == TITIN_F32 && titin_message_rank(message) == 2);
    CHECK(titin_message_extent(message, 0) == 4 && titin_message_extent(message, 1) == 5);
    const char *element = titin_message_raw_data(message);
    element += titin_message_stride(message, 0) * 3 + titin_message_stride(message, 1) * 2;
    float found;
    memcpy(&found, element, sizeof found);
    CHECK(found == 3 - 2 * 2);
    CHECK(titin_message_array(message, TITIN_F64, 2, (int64_t[]){4, 5}, TITIN_ANY) == NULL);
    CHECK(strstr(titin_error(), "path 'mesh': expected an array of float64"));
    titin_message_free(message);
}

/* Both ends hear of a message that does not fit. */
static void misfit(titin_path *path, int listens) {
    static const char bytes[100];
    char room[99];
    if (!listens) {
        CHECK(titin_path_send(path, bytes, sizeof bytes, TITIN_WAIT) == 0);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == TITIN_ERROR_MESSAGE_LOST);
        CHECK(strstr(titin_error(), "100") && strstr(titin_error(), "99"));
        CHECK(titin_path_send_array(path, TITIN_I32, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, NULL, bytes, TITIN_WAIT) == 0);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == TITIN_ERROR_MESSAGE_LOST);
        CHECK(!strcmp(titin_error_name(titin_error_kind()), "TITIN_ERROR_MESSAGE_LOST"));
        CHECK(titin_path_send(path, bytes, sizeof bytes, TITIN_WAIT) == 0);
        CHECK(titin_path_receive_into(path, room, sizeof room, TITIN_WAIT, NULL) == TITIN_ERROR_MESSAGE_LOST);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
        return;
    }
    int64_t length = 7;
    CHECK(titin_path_receive_into(path, room, sizeof room, TITIN_WAIT, &length) == TITIN_ERROR_TYPE_MISMATCH);
    CHECK(length == 0);
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
    double numbers[2];
    CHECK(titin_path_receive_array(path, TITIN_F64, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, numbers, TITIN_WAIT) ==
          TITIN_ERROR_TYPE_MISMATCH);
    CHECK(strstr(titin_error(), "expected an array of float64 of shape [2], found int32 of shape [2]"));
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
    CHECK(titin_path_receive_into(path, room, sizeof room, TITIN_WAIT, NULL) == TITIN_ERROR_TYPE_MISMATCH);
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
}

static void exchange(titin_path *path, int listens) {
    double own[1000], others[1001];
    for (int i = 0; i < 1000; i++) own[i] = listens * 1000 + i;
    int64_t received;
    CHECK(titin_path_exchange(path, own, sizeof own, others, sizeof others, TITIN_WAIT, &received) == 0);
    CHECK(received == sizeof own);
    for (int i = 0; i < 1000; i++) CHECK(others[i] == (1 - listens) * 1000 + i);
    titin_message *message;
    CHECK(titin_path_exchange_message(path, own, listens ? 8 : 16, TITIN_WAIT, &message) == 0);
    CHECK(titin_message_nbytes(message) == (listens ? 16 : 8));
    CHECK(!memcmp(titin_message_raw_data(message), others, listens ? 16 : 8));
    titin_message_free(message);
}

/* Writes a number as an element of a type. For the types of 16 bits that C does not have, the number stands for the bits. */
static void put(int dtype, int number, void *element) {
    const int64_t whole = number;
    const float real32[] = {(float)number, (float)-number};
    const double real64[] = {number, -number};
    const uint8_t flag = number % 2;
    const int is_real32 = dtype == TITIN_F32 || dtype == TITIN_C64, is_real64 = dtype == TITIN_F64 || dtype == TITIN_C128;
    const void *from = dtype == TITIN_BOOL ? &flag : is_real32 ? real32 : is_real64 ? real64 : (const void *)&whole;
    memcpy(element, from, (size_t)titin_dtype_size(dtype));
}

/* Six numbers in two rows, as elements of a type. */
static void fill(int dtype, int order, int first, char *elements) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            const int place = order == TITIN_ORDER_C ? 3 * i + j : 2 * j + i;
            put(dtype, first + 3 * i + j, elements + place * titin_dtype_size(dtype));
        }
}

/* An exchange of arrays of every type, from and into either order. The last one of each type does not wait. */
static void types(titin_path *path, int listens) {
    static const int all[] = {TITIN_BOOL, TITIN_I8,  TITIN_I16, TITIN_I32, TITIN_I64, TITIN_U8,   TITIN_U16, TITIN_U32,
                              TITIN_U64,  TITIN_F32, TITIN_F64, TITIN_C64, TITIN_C128, TITIN_F16, TITIN_BF16};
    static const int64_t extents[] = {2, 3};
    for (size_t type = 0; type < sizeof all / sizeof *all; type++)
        for (int turn = 0; turn < 4; turn++) {
            const titin_path_layout sent = {all[type], 2, extents, .order = turn % 2 ? TITIN_ORDER_FORTRAN : TITIN_ORDER_C};
            const titin_path_layout wanted = {all[type], 2, extents, .order = turn / 2 ? TITIN_ORDER_FORTRAN : TITIN_ORDER_C};
            char own[6 * 16], others[6 * 16] = {0}, expected[6 * 16] = {0};
            fill(all[type], sent.order, 1 + 10 * listens, own);
            fill(all[type], wanted.order, 11 - 10 * listens, expected);
            if (turn < 3) CHECK(titin_path_exchange_array(path, own, &sent, others, &wanted, TITIN_WAIT) == 0);
            else {
                titin_path_request *request;
                CHECK(titin_path_iexchange_array(path, own, &sent, others, &wanted, &request) == 0);
                CHECK(titin_path_wait(request, TITIN_WAIT) == 0);
                CHECK(titin_path_request_length(request) == 6 * titin_dtype_size(all[type]));
                titin_path_request_free(request);
            }
            CHECK(!memcmp(others, expected, sizeof others));
        }
}

/* Exchanges of arrays of other kinds: large ones, with strides, of two types, and where the receiver does not know the type. */
static void arrays(titin_path *path, int listens) {
    double *own = malloc(MANY * sizeof *own), *others = malloc(MANY * sizeof *others);
    for (int i = 0; i < MANY; i++) own[i] = i + listens;
    const int64_t many = MANY;
    const titin_path_layout numbers = {TITIN_F64, 1, &many, .order = TITIN_ORDER_C};
    CHECK(titin_path_exchange_array(path, own, &numbers, others, &numbers, TITIN_WAIT) == 0);
    for (int i = 0; i < MANY; i++) CHECK(others[i] == i + 1 - listens);
    free(own);
    free(others);

    /* The last column but one goes out, and the last one is the neighbour's. */
    double u[4][5] = {{0}};
    for (int i = 0; i < 4; i++) u[i][3] = i + 10 * listens;
    const titin_path_layout column = {TITIN_F64, 1, (int64_t[]){4}, (int64_t[]){sizeof u[0]}, .order = TITIN_ORDER_C};
    CHECK(titin_path_exchange_array(path, &u[0][3], &column, &u[0][4], &column, TITIN_WAIT) == 0);
    for (int i = 0; i < 4; i++) CHECK(u[i][3] == i + 10 * listens && u[i][4] == i + 10 * (1 - listens));

    /* The program that listens sends whole numbers, and the other one a single real number. */
    const int32_t whole[] = {7, -8};
    const float real = 2.5F;
    int32_t back[2] = {0};
    float found = 0;
    const titin_path_layout two = {TITIN_I32, 1, (int64_t[]){2}, .order = TITIN_ORDER_C}, one = {.dtype = TITIN_F32};
    if (listens) CHECK(titin_path_exchange_array(path, whole, &two, &found, &one, TITIN_WAIT) == 0 && found == 2.5F);
    else CHECK(titin_path_exchange_array(path, &real, &one, back, &two, TITIN_WAIT) == 0 && !memcmp(back, whole, sizeof back));

    titin_message *message;
    const titin_path_layout named = {TITIN_I32, 1, (int64_t[]){2}, .names = (const char *const[]){"cell"}};
    CHECK(titin_path_exchange_array_message(path, whole, &named, TITIN_WAIT, &message) == 0);
    const int32_t *seen = titin_message_array(message, TITIN_I32, 1, (int64_t[]){2}, TITIN_ANY);
    CHECK(seen && seen[0] == 7 && seen[1] == -8);
    titin_message_free(message);
    titin_path_request *request;
    CHECK(titin_path_iexchange_array_message(path, whole, &two, &request) == 0);
    CHECK(titin_path_wait(request, TITIN_WAIT) == 0 && titin_path_request_message(request, &message) == 0);
    CHECK(titin_message_dtype(message) == TITIN_I32 && titin_message_extent(message, 0) == 2);
    titin_path_request_free(request);
    titin_message_free(message);
}

/* Both ends hear of an array that does not fit, in an exchange at either end. */
static void exchange_misfit(titin_path *path, int listens) {
    const titin_path_layout whole = {TITIN_I32, 1, (int64_t[]){2}, .order = TITIN_ORDER_C};
    const titin_path_layout real = {TITIN_F64, 1, (int64_t[]){2}, .order = TITIN_ORDER_C};
    const int32_t numbers[2] = {1, 2};
    double room[2] = {5, 6};
    static const char both[] = "expected an array of float64 of shape [2], found int32 of shape [2]";
    static const char shapes[] = "expected an array of float64 of shape [2], found float64 of shape [3]";
    if (listens) {
        CHECK(titin_path_receive_array(path, TITIN_F64, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, room, TITIN_WAIT) ==
              TITIN_ERROR_TYPE_MISMATCH);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
        CHECK(titin_path_exchange_array(path, room, &real, &room, &real, TITIN_WAIT) == TITIN_ERROR_USAGE);
        double others[2];
        CHECK(titin_path_exchange_array(path, room, &real, others, &real, TITIN_WAIT) == TITIN_ERROR_TYPE_MISMATCH);
        CHECK(strstr(titin_error(), both));
        CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
        titin_path_request *request;
        CHECK(titin_path_iexchange_array(path, room, &real, others, &real, &request) == 0);
        CHECK(titin_path_wait(request, TITIN_WAIT) == TITIN_ERROR_TYPE_MISMATCH && strstr(titin_error(), shapes));
        titin_path_request_free(request);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
        return;
    }
    CHECK(titin_path_exchange_array(path, numbers, &whole, room, &real, TITIN_WAIT) == TITIN_ERROR_MESSAGE_LOST);
    CHECK(strstr(titin_error(), both) && room[0] == 5);
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
    for (int turn = 0; turn < 2; turn++) {
        const double three[3] = {1, 2, 3};
        const int dtype = turn ? TITIN_F64 : TITIN_I32;
        const int64_t extents[] = {2 + turn};
        room[0] = 0;
        CHECK(titin_path_send_array(path, dtype, 1, extents, NULL, TITIN_ORDER_C, NULL, turn ? (const void *)three : numbers,
                                    TITIN_WAIT) == 0);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == TITIN_ERROR_MESSAGE_LOST);
        CHECK(strstr(titin_error(), turn ? shapes : both));
        CHECK(titin_path_receive_array(path, TITIN_F64, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, room, TITIN_WAIT) == 0);
        CHECK(room[0] == 5 && room[1] == 6);
    }
}

static void parts(titin_path *path, int listens) {
    char word[8] = "";
    int64_t length;
    if (listens) {
        CHECK(titin_path_receive_into(path, word, sizeof word, TITIN_WAIT, &length) == 0);
        CHECK(length == 5 && !strcmp(word, "hello"));
    } else
        CHECK(titin_path_send_parts(path, 2, (const void *[]){"he", "llo"}, (int64_t[]){2, 3}, TITIN_WAIT) == 0);
}

/* Waits for a call without an error, and frees its request. */
static void complete(titin_path_request *request) {
    CHECK(titin_path_wait(request, TITIN_WAIT) == 0);
    int done;
    CHECK(titin_path_test(request, &done) == 0 && done);
    titin_path_request_free(request);
}

/* Both ways at once, while no thread waits. */
static void requests(titin_path *path, int listens) {
    double *own = malloc(MANY * sizeof *own), *others = calloc(MANY, sizeof *others);
    for (int i = 0; i < MANY; i++) own[i] = i + listens;
    titin_path_request *all[2], *request;
    const int64_t extents[] = {2, MANY / 2};
    CHECK(titin_path_ireceive_array(path, TITIN_F64, 2, extents, NULL, TITIN_ORDER_FORTRAN, others, &all[0]) == 0);
    CHECK(titin_path_isend_array(path, TITIN_F64, 2, extents, NULL, TITIN_ORDER_C, NULL, own, &all[1]) == 0);
    for (int done = 0; done < 2; done++) {
        int index;
        CHECK(titin_path_wait_any(2, all, TITIN_WAIT, &index) == 0);
        if (index == 0) CHECK(titin_path_request_length(all[0]) == (int64_t)(MANY * sizeof *own));
        else CHECK(titin_path_request_length(all[1]) == -1 && strstr(titin_error(), "received no message"));
        titin_path_request_free(all[index]);
        all[index] = NULL;
    }
    for (int i = 0; i < MANY / 2; i++)
        for (int j = 0; j < 2; j++) CHECK(others[2 * i + j] == j * (MANY / 2) + i + 1 - listens);
    CHECK(titin_path_iexchange(path, own, 800, others, 808, &request) == 0);
    complete(request);
    for (int i = 0; i < 100; i++) CHECK(others[i] == i + 1 - listens);
    CHECK(titin_path_iexchange_message(path, own, listens ? 8 : 16, &request) == 0);
    CHECK(titin_path_wait(request, TITIN_WAIT) == 0);
    titin_message *message;
    CHECK(titin_path_request_message(request, &message) == 0);
    titin_path_request_free(request);
    CHECK(titin_message_nbytes(message) == (listens ? 16 : 8));
    titin_message_free(message);
    CHECK(titin_path_ibarrier(path, &request) == 0);
    titin_ready *list = titin_ready_new();
    CHECK(titin_path_request_ready(request, list, own) == 0);
    void *ready;
    CHECK(titin_ready_next(list, TITIN_WAIT, &ready) == 0 && ready == own);
    complete(request);
    titin_ready_free(list);
    free(own);
    free(others);
}

/* Several places in memory, and a call that is cancelled. */
static void pieces(titin_path *path, int listens) {
    titin_path_request *request;
    int64_t length;
    char first[3], second[5] = "";
    if (!listens) {
        CHECK(titin_path_isend_parts(path, 2, (const void *[]){"he", "llo"}, (int64_t[]){2, 3}, &request) == 0);
        complete(request);
        CHECK(titin_path_isend(path, "hello", 5, &request) == 0);
        complete(request);
        CHECK(titin_path_isend(path, "hello", 5, &request) == 0);
        complete(request);
        CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
        CHECK(titin_path_send(path, "next", 4, TITIN_WAIT) == 0);
        return;
    }
    void *const parts[] = {first, second};
    const int64_t rooms[] = {sizeof first, sizeof second};
    CHECK(titin_path_ireceive_parts(path, 2, parts, rooms, &request) == 0);
    complete(request);
    CHECK(!memcmp(first, "hel", 3) && !strcmp(second, "lo"));
    memset(first, 0, sizeof first);
    CHECK(titin_path_receive_parts(path, 2, parts, rooms, TITIN_WAIT, &length) == 0);
    CHECK(length == 5 && !memcmp(first, "hel", 3) && !strcmp(second, "lo"));
    CHECK(titin_path_ireceive_into(path, second, sizeof second, &request) == 0);
    complete(request);
    CHECK(!memcmp(second, "hello", 5));
    CHECK(titin_path_ireceive(path, &request) == 0);
    int done, cancelled;
    CHECK(titin_path_test(request, &done) == 0 && !done);
    CHECK(titin_path_wait(request, 0.01) == TITIN_ERROR_TIMEOUT);
    CHECK(titin_path_cancel(request, &cancelled) == 0 && cancelled);
    CHECK(titin_path_wait(request, TITIN_WAIT) == TITIN_ERROR_CLOSED);
    titin_path_request_free(request);
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
    CHECK(titin_path_receive_into(path, second, sizeof second, TITIN_WAIT, &length) == 0);
    CHECK(length == 4 && !memcmp(second, "next", 4));
}

/* The program that listens sends back what comes. */
static void echo(titin_path *path, int listens) {
    titin_path_request *request;
    titin_message *message;
    int64_t length;
    int32_t numbers[3] = {5, -6, 7}, back[3] = {0};
    if (!listens) {
        for (int i = 0; i < 5; i++) {
            CHECK(titin_path_send_array(path, TITIN_I32, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, NULL, numbers, TITIN_WAIT) == 0);
            CHECK(titin_path_receive_array(path, TITIN_I32, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, back, TITIN_WAIT) == 0);
            CHECK(!memcmp(numbers, back, sizeof back));
            numbers[0]++;
        }
        CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
        return;
    }
    CHECK(titin_path_cycle(path, path, back, sizeof back, TITIN_WAIT, &length) == 0);
    CHECK(length == sizeof back && !memcmp(numbers, back, sizeof back));
    CHECK(titin_path_icycle(path, path, back, sizeof back, &request) == 0);
    complete(request);
    CHECK(back[0] == 6);
    CHECK(titin_path_cycle_message(path, path, TITIN_WAIT, &message) == 0);
    CHECK(titin_message_dtype(message) == TITIN_I32 && *(const int32_t *)titin_message_raw_data(message) == 7);
    titin_message_free(message);
    CHECK(titin_path_icycle_message(path, path, &request) == 0);
    CHECK(titin_path_wait(request, TITIN_WAIT) == 0 && titin_path_request_message(request, &message) == 0);
    titin_path_request_free(request);
    CHECK(*(const int32_t *)titin_message_raw_data(message) == 8);
    titin_message_free(message);
    CHECK(titin_path_cycle(path, path, NULL, 0, TITIN_WAIT, NULL) == 0);
    CHECK(titin_path_relay(path, path, 0.01) == TITIN_ERROR_TIMEOUT);
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
}

/* Large messages by other numbers of streams and in other pieces. */
static void change_streams(titin_path *path) {
    const int counts[] = {3, 5, 1, 2};
    double *many = malloc(MANY * sizeof *many);
    for (int step = 0; step < 4; step++) {
        const int count = counts[step];
        CHECK(titin_path_set_streams(path, count) == 0 && titin_path_set_piece(path, 1500 * (step + 1)) == 0);
        CHECK(titin_path_figure(path, TITIN_PATH_PIECE) == 1500 * (step + 1));
        for (int tries = 0; titin_path_streams(path) != count && tries < 20000; tries++) usleep(1000);
        CHECK(titin_path_streams(path) == count);
        for (int i = 0; i < MANY; i++) many[i] = i + step;
        CHECK(titin_path_send_array(path, TITIN_F64, 1, (int64_t[]){MANY}, NULL, TITIN_ORDER_C, NULL, many, TITIN_WAIT) == 0);
        memset(many, 0, MANY * sizeof *many);
        CHECK(titin_path_receive_array(path, TITIN_F64, 1, (int64_t[]){MANY}, NULL, TITIN_ORDER_C, many, TITIN_WAIT) == 0);
        for (int i = 0; i < MANY; i++) CHECK(many[i] == i + step);
    }
    free(many);
    CHECK(titin_path_set_streams(path, 257) == TITIN_ERROR_USAGE && strstr(titin_error(), "at most 256"));
    CHECK(titin_path_set_streams(path, -1) == TITIN_ERROR_USAGE && titin_path_set_streams(path, 0) == 0);
    CHECK(titin_path_set_piece(path, 1023) == TITIN_ERROR_USAGE && strstr(titin_error(), "1024 to 1048576"));
    CHECK(titin_path_set_piece(path, 0) == 0 && titin_path_figure(path, TITIN_PATH_PIECE) == 0);
}

static int wanted;

static int interrupted(void *data) { return *(int *)data; }

static void end(titin_path *path, int listens) {
    titin_message *message;
    wanted = 1;
    CHECK(titin_path_receive(path, TITIN_WAIT, &message) == TITIN_ERROR_INTERRUPTED && !message);
    wanted = 0;
    CHECK(titin_path_receive(path, 0.01, &message) == TITIN_ERROR_TIMEOUT && !message);
    CHECK(titin_path_barrier(path, TITIN_WAIT) == 0);
    CHECK(titin_path_figure(path, TITIN_PATH_BYTES_SENT) > 2 * 8 * MANY);
    CHECK(titin_path_figure(path, TITIN_PATH_BYTES_RECEIVED) > 2 * 8 * MANY);
    CHECK(titin_path_figure(path, TITIN_PATH_MESSAGES_SENT) > 10 && titin_path_figure(path, TITIN_PATH_MESSAGES_RECEIVED) > 10);
    const double time = titin_path_figure(path, TITIN_PATH_TIME), waited = titin_path_figure(path, TITIN_PATH_WAITED);
    CHECK(waited > 0.01 && time > waited && titin_path_figure(path, TITIN_PATH_SEND_RATE) * time > 8 * MANY);
    CHECK(titin_path_figure(path, TITIN_PATH_RECEIVE_RATE) * time > 8 * MANY);
    CHECK(titin_path_figure(path, TITIN_PATH_ROUND_TRIP) > 0 && titin_path_figure(path, TITIN_PATH_RETRANSMISSIONS) >= 0);
    CHECK(isnan(titin_path_figure(path, 14)) && strstr(titin_error(), "14 is no figure of a path"));
    CHECK(titin_path_figure(path, TITIN_PATH_PACING) == 4e9);
    CHECK(titin_path_set_pacing(path, 5000000) == 0 && titin_path_figure(path, TITIN_PATH_PACING) == 5e6);
    CHECK(titin_path_set_pacing(path, 0) == 0 && titin_path_figure(path, TITIN_PATH_PACING) == 0);
    CHECK(titin_path_set_pacing(path, -1) == TITIN_ERROR_USAGE);
    const double receive_buffer = titin_path_figure(path, TITIN_PATH_RECEIVE_BUFFER);
    /* Linux doubles the buffer of a socket, and a session has a smallest one. */
    const double send_buffer = getenv("PATHS_SESSION") ? 32768 : 60000;
    CHECK(titin_path_set_buffers(path, 30000, 0) == 0 && titin_path_figure(path, TITIN_PATH_SEND_BUFFER) == send_buffer);
    CHECK(titin_path_figure(path, TITIN_PATH_RECEIVE_BUFFER) == receive_buffer);
    CHECK(titin_path_flush(path, TITIN_WAIT) == 0);
    if (listens) {
        /* What comes goes back, until the other program closes the path. */
        titin_path_request *request;
        CHECK(titin_path_irelay(path, path, &request) == 0);
        complete(request);
        CHECK(titin_path_receive(path, TITIN_WAIT, &message) == TITIN_ERROR_PORT_CLOSED);
    } else
        for (char sent = 0, back; sent < 20; sent++) {
            CHECK(titin_path_send(path, &sent, 1, TITIN_WAIT) == 0);
            CHECK(titin_path_receive_into(path, &back, 1, TITIN_WAIT, NULL) == 0 && back == sent);
        }
    CHECK(titin_path_close(path, TITIN_WAIT) == 0);
}

static void converse(titin_path *path, int listens) {
    CHECK(!strcmp(titin_path_name(path), "mesh"));
    CHECK(titin_path_streams(path) == 3);
    for (int round = 0; round < 2; round++) (round == listens ? give : take)(path);
    surprise(path, listens);
    misfit(path, listens);
    exchange(path, listens);
    types(path, listens);
    arrays(path, listens);
    exchange_misfit(path, listens);
    parts(path, listens);
    requests(path, listens);
    pieces(path, listens);
    echo(path, listens);
    change_streams(path);
    end(path, listens);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    titin_path *path;
    if (!strcmp(argv[1], "listen")) {
        titin_path_listener *listener;
        titin_path_options *options = titin_path_options_new();
        CHECK(titin_path_options_interrupt(options, interrupted, &wanted) == 0);
        CHECK(titin_path_listen("127.0.0.1:0", options, &listener) == 0);
        titin_path_options_free(options);
        puts(titin_path_listener_address(listener));
        fflush(stdout);
        CHECK(titin_path_accept(listener, TITIN_WAIT, &path) == 0);
        converse(path, 1);
        titin_path_listener_free(listener);
        return 0;
    }
    titin_path_options *options = titin_path_options_new();
    CHECK(titin_path_options_key(options, "0123") == TITIN_ERROR_USAGE);
    CHECK(titin_path_options_key_file(options, getenv("TITIN_PATH_KEY")) == 0);
    CHECK(titin_path_options_streams(options, 3) == 0);
    CHECK(titin_path_options_pacing(options, INT64_C(4000000000)) == 0);
    CHECK(titin_path_options_buffers(options, 1 << 20, 1 << 20) == 0);
    CHECK(titin_path_options_patience(options, 20) == 0 && titin_path_options_outage(options, 30) == 0);
    CHECK(titin_path_options_interrupt(options, NULL, NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_path_options_interrupt(options, interrupted, &wanted) == 0);
    CHECK(titin_path_open(argv[1], "mesh", options, &path) == 0);
    titin_path_options_free(options);
    converse(path, 0);
}
