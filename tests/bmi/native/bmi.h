/* The structure of the Basic Model Interface 2.0 in C: the model's own memory, then its functions in the standard's order. */
#ifndef BMI_H
#define BMI_H

typedef struct Bmi Bmi;
struct Bmi {
    void *data;
    int (*initialize)(Bmi *, const char *config);
    int (*update)(Bmi *);
    int (*update_until)(Bmi *, double time);
    int (*finalize)(Bmi *);
    int (*get_component_name)(Bmi *, char *name);
    int (*get_input_item_count)(Bmi *, int *count), (*get_output_item_count)(Bmi *, int *count);
    int (*get_input_var_names)(Bmi *, char **names), (*get_output_var_names)(Bmi *, char **names);
    int (*get_var_grid)(Bmi *, const char *name, int *grid);
    int (*get_var_type)(Bmi *, const char *name, char *type), (*get_var_units)(Bmi *, const char *name, char *units);
    int (*get_var_itemsize)(Bmi *, const char *name, int *size), (*get_var_nbytes)(Bmi *, const char *name, int *size);
    int (*get_var_location)(Bmi *, const char *name, char *location);
    int (*get_current_time)(Bmi *, double *), (*get_start_time)(Bmi *, double *), (*get_end_time)(Bmi *, double *);
    int (*get_time_units)(Bmi *, char *units);
    int (*get_time_step)(Bmi *, double *);
    int (*get_value)(Bmi *, const char *name, void *values), (*get_value_ptr)(Bmi *, const char *name, void **values);
    int (*get_value_at_indices)(Bmi *, const char *name, void *values, int *indices, int count);
    int (*set_value)(Bmi *, const char *name, void *values);
    int (*set_value_at_indices)(Bmi *, const char *name, int *indices, int count, void *values);
    int (*get_grid_rank)(Bmi *, int grid, int *rank), (*get_grid_size)(Bmi *, int grid, int *size);
    int (*get_grid_type)(Bmi *, int grid, char *type);
    int (*get_grid_shape)(Bmi *, int grid, int *shape);
    int (*get_grid_spacing)(Bmi *, int grid, double *), (*get_grid_origin)(Bmi *, int grid, double *);
    int (*get_grid_x)(Bmi *, int grid, double *), (*get_grid_y)(Bmi *, int grid, double *), (*get_grid_z)(Bmi *, int grid, double *);
    int (*get_grid_node_count)(Bmi *, int grid, int *), (*get_grid_edge_count)(Bmi *, int grid, int *);
    int (*get_grid_face_count)(Bmi *, int grid, int *);
    int (*get_grid_edge_nodes)(Bmi *, int grid, int *), (*get_grid_face_edges)(Bmi *, int grid, int *);
    int (*get_grid_face_nodes)(Bmi *, int grid, int *), (*get_grid_nodes_per_face)(Bmi *, int grid, int *);
};

#endif
