/* One side of the ping-pong of small fields, as an instance of one or more ranks. Arguments: side (0 or 1), and the words
 * of the task. */
#include <titin_mpi.h>

#include "small_field.h"
#include "over_titin.h"

static titin_field *sent[MOST_FIELDS], *received[MOST_FIELDS];
static double *arrays[MOST_FIELDS];
static int count;
static long sends, receives;

static void send_field(void) {
    const long turn = sends++;
    const int field = (int)(turn % count);
    must(titin_field_send(sent[field], (const void *[]){arrays[field]}, (double)turn, TITIN_NO_NEXT));
}

static void receive_field(void) {
    const int field = (int)(receives++ % count);
    must(titin_field_receive(received[field], (void *[]){arrays[field]}, TITIN_WAIT, NULL, NULL));
}

static titin_field *declare(titin_instance *instance, const char *port, int number, const titin_decomposition *spread) {
    char name[16];
    titin_field *field;
    snprintf(name, sizeof name, "%s%d", port, number);
    must(titin_field_new(titin_port_find(instance, name), spread, 1, (int[]){TITIN_F64}, &field));
    return field;
}

int main(int argc, char **argv) {
    if (argc != 2 + WORDS) return 2;
    MPI_Init(&argc, &argv);
    const struct counted_medium medium = {send_field, receive_field, NULL};
    const struct task task = task_of(argv + 2);
    char ports[48 * MOST_FIELDS] = "", text[48];
    count = task.fields;
    for (int field = 0; field < count; field++) {
        snprintf(text, sizeof text, "o_i: out%d; s: in%d; ", field, field);
        strcat(ports, text);
    }
    titin_instance *instance;
    int again;
    must(titin_mpi_open(ports, NULL, MPI_COMM_WORLD, &instance));
    const struct counted_rank own = {atoi(argv[1]), titin_rank(instance), titin_ranks(instance)};
    must(titin_reuse(instance, &again));
    titin_decomposition *spread = titin_decomposition_new(2, (int64_t[]){HEIGHT, WIDTH});
    titin_decomposition_grid(spread, own.side == 0 ? (int[]){own.ranks, 1} : (int[]){1, own.ranks});
    for (int field = 0; field < count; field++) {
        sent[field] = declare(instance, "out", field, spread);
        received[field] = declare(instance, "in", field, spread);
    }
    titin_decomposition_free(spread);
    arrays_new(arrays, count, own);
    play(&medium, own, &task);
    arrays_free(arrays, count, own);
    for (int field = 0; field < count; field++) titin_field_free(sent[field]), titin_field_free(received[field]);
    must(titin_close(instance));
    MPI_Finalize();
    return 0;
}
