/* The pull by hand in one MPI job, one-sided. Each rank of the first side copies a version, under a lock, to memory that
 * other ranks may read. A rank that pulls gets its parts from these ranks. Cache-Pull of XpressSpace does the same.
 * Arguments: the words of the task. */
#include "blocks_shares.h"
#include "pull.h"

static void keep(MPI_Win window, int place, double *kept, const double *u, int64_t count) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, place, 0, window);
    memcpy(kept, u, (size_t)count * sizeof *u);
    MPI_Win_unlock(place, window);
}

static void make(const struct task *task, MPI_Comm side, MPI_Win window, int place, double *kept, const int64_t box[4],
                 const char *pause) {
    const int64_t count = count_of(box);
    double *u = doubles(count), seconds = 0;
    for (int version = 0; version <= task->trips; version++) {
        each_in(u, box, box, task->extents[1], version, 1);
        MPI_Barrier(side);
        const double begin = now();
        keep(window, place, kept, u, count);
        if (version > 0) seconds += now() - begin;
        else MPI_Barrier(MPI_COMM_WORLD);
        pause_for(pause);
    }
    seconds = slowest(seconds, side);
    if (place == 0) add_time(task->file, KEEP, seconds / task->trips);
    free(u);
}

static void pull(const struct task *task, MPI_Comm side, MPI_Win window, int place, const struct shares *shares, int senders,
                 const char *pause) {
    const int64_t *box = shares->boxes[place], columns = task->extents[1];
    MPI_Datatype *here = calloc((size_t)senders, sizeof *here), *there = calloc((size_t)senders, sizeof *there);
    for (int k = 0; k < senders; k++) {
        if (!shares->counts[k]) continue;
        here[k] = part_of(box, shares->shared[k]);
        there[k] = part_of(shares->boxes[k], shares->shared[k]);
    }
    double *u = doubles(count_of(box)), seconds = 0, oldest = 0;
    int pulls = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (; oldest < task->trips; pulls++) {
        MPI_Barrier(side);
        const double begin = now();
        for (int k = 0; k < senders; k++) {
            if (!shares->counts[k]) continue;
            MPI_Win_lock(MPI_LOCK_SHARED, k, 0, window);
            MPI_Get(u, 1, here[k], k, 0, 1, there[k], window);
            MPI_Win_unlock(k, window);
        }
        const double took = slowest(now() - begin, side);
        if (pulls > 0) seconds += took;
        /* Each sender has a lock of its own: the part from one sender is of one version, but parts from other senders, or
         * for other ranks, may be of other versions. So each part is checked by itself, and the oldest part counts as the
         * version that all have. */
        double least = task->trips;
        for (int k = 0; k < senders; k++) {
            if (!shares->counts[k]) continue;
            const int64_t *part = shares->shared[k];
            const double first = u[(part[0] - box[0]) * (box[3] - box[2]) + part[2] - box[2]];
            const double version = first - (double)(part[0] * columns + part[2]);
            each_in(u, box, part, columns, version, 0);
            if (version < least) least = version;
        }
        MPI_Allreduce(&least, &oldest, 1, MPI_DOUBLE, MPI_MIN, side);
        pause_for(pause);
    }
    if (place == senders) add_time(task->file, PULL, seconds / more_than_one(pulls));
    for (int k = 0; k < senders; k++) {
        if (shares->counts[k]) MPI_Type_free(&here[k]), MPI_Type_free(&there[k]);
    }
    free(here), free(there), free(u);
}

int main(int argc, char **argv) {
    if (argc != 1 + ALL_WORDS) return 2;
    MPI_Init(&argc, &argv);
    const struct task task = task_of(argv + 1);
    int place, all;
    MPI_Comm_rank(MPI_COMM_WORLD, &place);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    const int senders = senders_of(&task), second = place >= senders;
    MPI_Comm side;
    MPI_Comm_split(MPI_COMM_WORLD, second, place, &side);
    struct shares shares = blocks_shares(&task, place, all);
    const int64_t *box = shares.boxes[place];
    double *kept;
    MPI_Win window;
    const MPI_Aint bytes = second ? 0 : (MPI_Aint)((size_t)count_of(box) * sizeof *kept);
    MPI_Win_allocate(bytes, sizeof *kept, MPI_INFO_NULL, MPI_COMM_WORLD, &kept, &window);
    const char *pause = argv[1 + WORDS + second];
    if (second) pull(&task, side, window, place, &shares, senders, pause);
    else make(&task, side, window, place, kept, box, pause);
    MPI_Win_free(&window);
    MPI_Comm_free(&side);
    shares_free(&shares);
    MPI_Finalize();
    return 0;
}
