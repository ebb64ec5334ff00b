/* Rivers that break BMI's C entry, one way each: `register_bmi_` and the way. */
#include "river.c"

static int refuse(Bmi *model, double *to) { return 1; }
static int refuse_pointer(Bmi *model, const char *name, void **to) { return 1; }

static int one_too_many(Bmi *model, const char *name, void *to) {
    memcpy(to, RIVER(model)->depth, RIVER(model)->cells * sizeof(double));
    ((double *)to)[RIVER(model)->cells] = 1.0;
    return 0;
}

static int three_dimensions(Bmi *model, int grid, int *to) { return to[0] = to[1] = to[2] = 2, 0; }
static int many(Bmi *model, int *to) { return number(to, 2000000000); }
static int crash(Bmi *model) { return *(volatile int *)8; }

static int give_up(Bmi *model) {
    fprintf(stderr, "the river has run dry\n");
    abort();
}

#define ENTRY(way, ...)                        \
    Bmi *register_bmi_##way(Bmi *model) {      \
        register_bmi_river(model);             \
        __VA_ARGS__;                           \
        return model;                          \
    }

ENTRY(values, model->get_value = one_too_many, model->get_value_ptr = refuse_pointer)
ENTRY(shape, model->get_grid_shape = three_dimensions)
ENTRY(names, model->get_input_item_count = many)
ENTRY(end, model->get_end_time = refuse)
ENTRY(crash, model->update = crash)
ENTRY(abort, model->update = give_up)

Bmi *register_bmi_nothing(Bmi *model) { return NULL; }
