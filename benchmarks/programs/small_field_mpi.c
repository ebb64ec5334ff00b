/* The ping-pong of small fields by hand in one MPI job, by derived types. The ranks of side 0 come first. Arguments: the
 * words of the task. */
#include "by_hand.h"
#include "small_field.h"

static struct shares shares;
static double *arrays[MOST_FIELDS];
static int count;
static long sends, receives;

static void send_typed(void) { exchange_typed(&shares, arrays[sends++ % count], NULL); }

static void receive_typed(void) { exchange_typed(&shares, NULL, arrays[receives++ % count]); }

static void probe(void) {
    int is_there;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    if (argc != 1 + WORDS) return 2;
    MPI_Init(&argc, &argv);
    const struct counted_medium medium = {send_typed, receive_typed, probe};
    const struct task task = task_of(argv + 1);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int ranks = all / 2, side = place / ranks, first = side == 0 ? ranks : 0;
    const struct counted_rank own = {side, place % ranks, ranks};
    shares = shares_new(all);
    for (int k = 0; k < all; k++) box_of((struct counted_rank){k / ranks, k % ranks, ranks}, shares.boxes[k]);
    share(&shares, shares.boxes[place], first, first + ranks);
    share_types(&shares, shares.boxes[place]);
    count = task.fields;
    arrays_new(arrays, count, own);
    MPI_Barrier(MPI_COMM_WORLD);
    play(&medium, own, &task);
    arrays_free(arrays, count, own);
    shares_free(&shares);
    MPI_Finalize();
    return 0;
}
