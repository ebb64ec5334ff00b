/* An array in the blocks of one side, as a field of titin. */
#ifndef BLOCKS_FIELD_H
#define BLOCKS_FIELD_H

#include "blocks.h"
#include "over_titin.h"

static inline titin_field *declare(const struct task *task, titin_instance *instance, const char *port, int second) {
    titin_decomposition *blocks = titin_decomposition_new(2, task->extents);
    must(titin_decomposition_grid(blocks, task->grids[second]));
    for (int dim = 0; dim < 2; dim++) must(titin_decomposition_spread(blocks, dim, TITIN_BLOCK, 0));
    titin_field *field;
    must(titin_field_new(titin_port_find(instance, port), blocks, 1, (int[]){TITIN_F64}, &field));
    titin_decomposition_free(blocks);
    return field;
}

#endif
