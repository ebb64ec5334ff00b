/* The blocks of both sides in one MPI job: the ranks of the first side come first. */
#ifndef BLOCKS_SHARES_H
#define BLOCKS_SHARES_H

#include "blocks.h"
#include "by_hand.h"

static inline int senders_of(const struct task *task) { return task->grids[0][0] * task->grids[0][1]; }

/* The blocks of all ranks, and the boxes that this rank shares with ranks of the other side. */
static inline struct shares blocks_shares(const struct task *task, int place, int all) {
    const int senders = senders_of(task), second = place >= senders;
    struct shares shares = shares_new(all);
    for (int k = 0; k < all; k++) box_of(task, k >= senders, k < senders ? k : k - senders, shares.boxes[k]);
    share(&shares, shares.boxes[place], second ? 0 : senders, second ? senders : all);
    return shares;
}

#endif
