/* A river of cells that pass on their water: a model in C by BMI's C entry. Its config has the cells, the step and the end. */
#include "bmi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef RANKS
#include <mpi.h>
#endif

/* On several ranks each has the cells from `first` on; `all` are those of the whole river. */
typedef struct {
    int cells, first, all;
    double time, step, end, *depth, *inflow;
} River;

#define RIVER(model) ((River *)(model)->data)

#ifdef RANKS
static MPI_Comm ranks = MPI_COMM_NULL;

int parallel_initialize(Bmi *model, int communicator) {
    ranks = MPI_Comm_f2c(communicator);
    return model->initialize ? 0 : 1;
}

/* The cells of this rank, without ghosts: from the first; the end is the first cell behind. */
int get_grid_partition_range(Bmi *model, int grid, int *begin, int *end) {
    *begin = RIVER(model)->first;
    *end = RIVER(model)->first + RIVER(model)->cells;
    return 0;
}

static void share(River *river) {
    int rank, count;
    MPI_Comm_rank(ranks, &rank);
    MPI_Comm_size(ranks, &count);
    river->first = rank * river->all / count;
    river->cells = (rank + 1) * river->all / count - river->first;
}

/* What flows out of the last cell of the rank upstream; what flows out of one's own goes downstream. */
static double from_upstream(double gone) {
    double came = 0;
    int rank, count;
    MPI_Comm_rank(ranks, &rank);
    MPI_Comm_size(ranks, &count);
    MPI_Sendrecv(&gone, 1, MPI_DOUBLE, rank + 1 < count ? rank + 1 : MPI_PROC_NULL, 0, &came, 1, MPI_DOUBLE,
                 rank > 0 ? rank - 1 : MPI_PROC_NULL, 0, ranks, MPI_STATUS_IGNORE);
    return came;
}
#else
static void share(River *river) { river->cells = river->all; }
static double from_upstream(double gone) { return 0 * gone; }
#endif

static int initialize(Bmi *model, const char *config) {
    FILE *file = fopen(config, "r");
    River *river = calloc(1, sizeof *river);
    if (!file || fscanf(file, "%d %lf %lf", &river->all, &river->step, &river->end) != 3) return 1;
    fclose(file);
    share(river);
    river->depth = malloc(river->cells * sizeof(double));
    river->inflow = calloc(river->cells, sizeof(double));
    for (int i = 0; i < river->cells; i++) river->depth[i] = 1.0 + 0.1 * (river->first + i);
    model->data = river;
    return 0;
}

static int update_until(Bmi *model, double time) {
    River *river = RIVER(model);
    double step = time - river->time;
    double came = from_upstream(step * 0.01 * river->depth[river->cells - 1]);
    for (int i = river->cells - 1; i >= 0; i--) {
        double gone = step * 0.01 * river->depth[i];
        river->depth[i] += step * river->inflow[i] - gone;
        if (i + 1 < river->cells) river->depth[i + 1] += gone;
    }
    if (river->first > 0) river->depth[0] += came;
    river->time = time;
    return 0;
}

static int update(Bmi *model) { return update_until(model, RIVER(model)->time + RIVER(model)->step); }

static int finalize(Bmi *model) {
    River *river = RIVER(model);
    /* What is read after the end is not what was there. */
    memset(river->depth, 0xff, river->cells * sizeof(double));
    free(river->depth);
    free(river->inflow);
    free(river);
    model->data = NULL;
    return 0;
}

static double *array(Bmi *model, const char *name) {
    if (!strcmp(name, "river__depth")) return RIVER(model)->depth;
    return strcmp(name, "river__inflow") ? NULL : RIVER(model)->inflow;
}

static int text(char *to, const char *from) { return strcpy(to, from) ? 0 : 1; }
static int number(int *to, int from) { return *to = from, 0; }
static int real(double *to, double from) { return *to = from, 0; }

static int component(Bmi *model, char *to) { return text(to, "River"); }
static int one(Bmi *model, int *to) { return number(to, 1); }
static int inputs(Bmi *model, char **to) { return text(to[0], "river__inflow"); }
static int outputs(Bmi *model, char **to) { return text(to[0], "river__depth"); }
static int grid(Bmi *model, const char *name, int *to) { return number(to, 0); }
static int type(Bmi *model, const char *name, char *to) { return text(to, "double"); }
static int units(Bmi *model, const char *name, char *to) { return text(to, strcmp(name, "river__depth") ? "m s-1" : "m"); }
static int item(Bmi *model, const char *name, int *to) { return number(to, sizeof(double)); }
static int bytes(Bmi *model, const char *name, int *to) { return number(to, RIVER(model)->cells * (int)sizeof(double)); }
static int location(Bmi *model, const char *name, char *to) { return text(to, "node"); }
static int now(Bmi *model, double *to) { return real(to, RIVER(model)->time); }
static int start(Bmi *model, double *to) { return real(to, 0.0); }
static int end(Bmi *model, double *to) { return real(to, RIVER(model)->end); }
static int step(Bmi *model, double *to) { return real(to, RIVER(model)->step); }
static int time_units(Bmi *model, char *to) { return text(to, "seconds"); }
static int rank(Bmi *model, int grid, int *to) { return number(to, 1); }
static int size(Bmi *model, int grid, int *to) { return number(to, RIVER(model)->all); }
static int shape(Bmi *model, int grid, int *to) { return number(to, RIVER(model)->all); }
static int grid_type(Bmi *model, int grid, char *to) { return text(to, "uniform_rectilinear"); }
static int spacing(Bmi *model, int grid, double *to) { return real(to, 250.0); }
static int origin(Bmi *model, int grid, double *to) { return real(to, 0.0); }

static int get_value(Bmi *model, const char *name, void *to) {
    double *from = array(model, name);
    return from ? !memcpy(to, from, RIVER(model)->cells * sizeof(double)) : 1;
}

static int get_value_ptr(Bmi *model, const char *name, void **to) { return !(*to = array(model, name)); }

static int set_value(Bmi *model, const char *name, void *from) {
    double *to = array(model, name);
    return to ? !memcpy(to, from, RIVER(model)->cells * sizeof(double)) : 1;
}

Bmi *register_bmi_river(Bmi *model) {
    *model = (Bmi){
        .initialize = initialize, .update = update, .update_until = update_until, .finalize = finalize,
        .get_component_name = component, .get_input_item_count = one, .get_output_item_count = one,
        .get_input_var_names = inputs, .get_output_var_names = outputs, .get_var_grid = grid, .get_var_type = type,
        .get_var_units = units, .get_var_itemsize = item, .get_var_nbytes = bytes, .get_var_location = location,
        .get_current_time = now, .get_start_time = start, .get_end_time = end, .get_time_units = time_units,
        .get_time_step = step, .get_value = get_value, .get_value_ptr = get_value_ptr, .set_value = set_value,
        .get_grid_rank = rank, .get_grid_size = size, .get_grid_shape = shape, .get_grid_type = grid_type,
        .get_grid_spacing = spacing, .get_grid_origin = origin,
    };
    return model;
}
