/* The two sides of a ping-pong over memory that two MPI processes share (MPI_Win_allocate_shared), with a flag for each
 * direction: a program by hand for two processes of one host. A message is only the payload and the flag.
 *
 * Arguments: way ("loan": the payload is written where the other side reads it; "into": the payload is copied there,
 * and from there) and the task, except a stream. */
#include <mpi.h>

#include "bench.h"

#define HEAD ((size_t)4096)
/* More than the number of messages that a side may be ahead. */
#define AHEAD 4

/* The memory that one side writes and the other side reads. */
struct half {
    uint64_t sent;
    /* Which of the two places has the message, by its number: while the other side reads one, the next is written into the
     * other, and announced by an empty message. */
    uint64_t places[AHEAD];
};

static struct half *mine, *theirs;
static char *outgoing, *incoming;
static size_t largest;
static uint64_t sent, received, place;

static char *in_half(struct half *half, uint64_t number) { return (char *)half + HEAD + number * largest; }

static void *in_place(size_t bytes) {
    if (bytes) place = 1 - place;
    return in_half(mine, place);
}

static void tell(void *data, size_t bytes) {
    (void)data, (void)bytes;
    mine->places[++sent % AHEAD] = place;
    __atomic_store_n(&mine->sent, sent, __ATOMIC_RELEASE);
}

static const void *look(size_t bytes) {
    (void)bytes;
    received++;
    while (__atomic_load_n(&theirs->sent, __ATOMIC_ACQUIRE) < received) __builtin_ia32_pause();
    return in_half(theirs, theirs->places[received % AHEAD]);
}

static void *reused(size_t bytes) {
    (void)bytes;
    return outgoing;
}

/* The other side has copied the payload out before the next message, so one place is enough. The place stays in the caches.
 */
static void copy_in(void *data, size_t bytes) {
    memcpy(in_half(mine, place), data, bytes);
    tell(data, bytes);
}

static const void *copy_out(size_t bytes) {
    memcpy(incoming, look(bytes), bytes);
    return incoming;
}

static void nothing(void) {}

int main(int argc, char **argv) {
    int rank, unit;
    MPI_Aint found;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int copies = strcmp(argv[1], "into") == 0;
    const struct medium lent = {in_place, tell, look, nothing, 1}, copied = {reused, copy_in, copy_out, nothing, 0};
    const struct task task = task_of(argv + 2);
    pin(rank);
    largest = (task.largest + HEAD - 1) / HEAD * HEAD;
    MPI_Win_allocate_shared((MPI_Aint)(HEAD + 2 * largest), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    memset(mine, 0, HEAD + 2 * largest);
    MPI_Win_shared_query(window, 1 - rank, &found, &unit, &theirs);
    outgoing = memory(task.largest);
    incoming = memory(task.largest);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    play(copies ? &copied : &lent, &task, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
