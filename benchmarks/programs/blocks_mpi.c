/* The exchange of blocks by hand in one MPI job, in one of the two ways of by_hand.h. The boxes that ranks share are
 * computed beforehand. Arguments: the words of the task, and alltoallv|isend. */
#include "blocks_shares.h"

int main(int argc, char **argv) {
    if (argc != 2 + WORDS) return 2;
    const int typed = strcmp(argv[1 + WORDS], "isend") == 0;
    MPI_Init(&argc, &argv);
    const struct task task = task_of(argv + 1);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = senders_of(&task), second = place >= senders;
    const int sends = task.ways == 2 || !second, receives = task.ways == 2 || second;
    struct shares shares = blocks_shares(&task, place, all);
    if (typed) share_types(&shares, shares.boxes[place]);
    const int64_t *own = shares.boxes[place], count = count_of(own);
    double *u = doubles(count), *other = doubles(count), *packed = doubles(count), *arrived = doubles(count), begin = 0;
    each_of(u, own, task.extents[1], 1);
    for (int trip = -WARM; trip < task.trips; trip++) {
        if (trip == 0) {
            if (second) each_of(other, own, task.extents[1], 0);
            MPI_Barrier(MPI_COMM_WORLD);
            begin = now();
        }
        if (typed) exchange_typed(&shares, sends ? u : NULL, receives ? other : NULL);
        else exchange_packed(&shares, own, sends ? u : NULL, packed, receives ? other : NULL, arrived);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const double seconds = now() - begin;
    if (receives) each_of(other, own, task.extents[1], 0);
    if (place == senders) add_time(task.file, 0, seconds / task.trips);
    free(u), free(other), free(packed), free(arrived);
    shares_free(&shares);
    MPI_Finalize();
    return 0;
}
