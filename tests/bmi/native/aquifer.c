/* Ground water by xmipy's convention, which MODFLOW 6 has: the library exports the functions, and holds one model. */
#include <stdio.h>
#include <string.h>
#ifdef RANKS
#include <mpi.h>
#endif

#define ROWS 3
#define COLUMNS 4

int BMI_LENVARADDRESS = 40, BMI_LENVARTYPE = 50, BMI_LENCOMPONENTNAME = 30, BMI_LENERRMESSAGE = 200, BMI_LENGRIDTYPE = 20;

static double now, step, last, head[ROWS][COLUMNS], recharge[ROWS][COLUMNS];
/* The rows of this process, which are all rows unless several ranks share them. */
static int wells, first, rows = ROWS;
static const char *failure = "";

int initialize(const char *config) {
    /* As MODFLOW 6, it reads a file of this name in the folder where it is. */
    FILE *file = fopen("aquifer.txt", "r");
    if (!file || fscanf(file, "%lf %lf %d", &step, &last, &wells) != 3) return failure = "aquifer.txt cannot be read", 1;
    fclose(file);
    now = 0;
    for (int i = 0; i < rows * COLUMNS; i++) head[0][i] = 10 - 0.3 * (first * COLUMNS + i), recharge[0][i] = 0;
    return 0;
}

#ifdef RANKS
int initialize_mpi(const int *communicator) {
    MPI_Comm ranks = MPI_Comm_f2c(*communicator);
    int rank, count;
    MPI_Comm_rank(ranks, &rank);
    MPI_Comm_size(ranks, &count);
    first = rank * ROWS / count;
    rows = (rank + 1) * ROWS / count - first;
    return initialize("");
}

int get_grid_partition_range(const int *grid, int *begin, int *end) {
    begin[0] = first, begin[1] = 0, end[0] = first + rows, end[1] = COLUMNS;
    return 0;
}
#endif

int update(void) {
    for (int i = 0; i < rows * COLUMNS; i++) head[0][i] += step * (recharge[0][i] - 0.01 * wells * head[0][i]);
    now += step;
    return 0;
}

int finalize(void) { return 0; }
int get_component_name(char *to) { return !strcpy(to, "Aquifer"); }
int get_input_item_count(int *to) { return *to = 2, 0; }
int get_output_item_count(int *to) { return *to = 3, 0; }

static int names(char *to, const char *const *from, int count) {
    for (int i = 0; i < count; i++) strcpy(to + i * BMI_LENVARADDRESS, from[i]);
    return 0;
}

int get_input_var_names(char *to) { return names(to, (const char *[]){"GWF/RECHARGE", "GWF/WELLS"}, 2); }
int get_output_var_names(char *to) { return names(to, (const char *[]){"GWF/HEAD", "GWF/RECHARGE", "GWF/WELLS"}, 3); }
int get_var_grid(const char *name, int *to) { return *to = 1, 0; }

int get_var_type(const char *name, char *to) {
    return !strcpy(to, strcmp(name, "GWF/WELLS") ? "DOUBLE (3, 4)" : "INTEGER");
}

int get_var_itemsize(const char *name, int *to) { return *to = strcmp(name, "GWF/WELLS") ? 8 : 4, 0; }
int get_var_nbytes(const char *name, int *to) { return *to = strcmp(name, "GWF/WELLS") ? 8 * rows * COLUMNS : 4, 0; }
int get_var_rank(const char *name, int *to) { return *to = strcmp(name, "GWF/WELLS") ? 2 : 0, 0; }
int get_var_shape(const char *name, int *to) { return to[0] = rows, to[1] = COLUMNS, 0; }
int get_current_time(double *to) { return *to = now, 0; }
int get_start_time(double *to) { return *to = 0, 0; }
int get_end_time(double *to) { return *to = last, 0; }
int get_time_step(double *to) { return *to = step, 0; }

int get_value_ptr(const char *name, void **to) {
    if (!strcmp(name, "GWF/HEAD")) return *to = head, 0;
    if (!strcmp(name, "GWF/RECHARGE")) return *to = recharge, 0;
    if (!strcmp(name, "GWF/WELLS")) return *to = &wells, 0;
    return failure = "no such variable", 1;
}

/* As in MODFLOW 6, the argument leads to a pointer. */
int set_value(const char *name, void **from) {
    void *to;
    return get_value_ptr(name, &to) || !memcpy(to, *from, strcmp(name, "GWF/WELLS") ? rows * sizeof *head : sizeof wells);
}

int get_grid_rank(const int *grid, int *to) { return *to = 2, 0; }
int get_grid_size(const int *grid, int *to) { return *to = ROWS * COLUMNS, 0; }
int get_grid_type(const int *grid, char *to) { return !strcpy(to, "rectilinear"); }
int get_grid_shape(const int *grid, int *to) { return to[0] = ROWS, to[1] = COLUMNS, 0; }
int get_grid_x(const int *grid, double *to) { return memcpy(to, (double[]){5, 15, 25, 35}, 4 * sizeof *to) ? 0 : 1; }
int get_grid_y(const int *grid, double *to) { return memcpy(to, (double[]){25, 15, 5}, 3 * sizeof *to) ? 0 : 1; }
int get_last_bmi_error(char *to) { return !strcpy(to, failure); }
