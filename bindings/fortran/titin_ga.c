/* The functions of titin_ga.h as the Fortran module titin_ga calls them: with dimensions in the order of Fortran. */

#include "titin_ga.h"

void titin_ga_c_ranks(titin_communicator *ranks);
int titin_ga_c_field(titin_port *port, int g_a, titin_field **field);
int titin_ga_c_send(titin_field *field, int g_a, double timestamp, double next_timestamp);
int titin_ga_c_receive(titin_field *field, int g_a, const double *at, double timeout, double *timestamp, double *next_timestamp);

void titin_ga_c_ranks(titin_communicator *ranks) {
    static MPI_Comm comm; /* until the instance is open */
    comm = GA_MPI_Comm_pgroup_default();
    titin_mpi_communicator(&comm, ranks);
}

int titin_ga_c_field(titin_port *port, int g_a, titin_field **field) {
    return titin_ga_declare(port, g_a, TITIN_ORDER_FORTRAN, field);
}

int titin_ga_c_send(titin_field *field, int g_a, double timestamp, double next_timestamp) {
    return titin_ga_send_in(field, g_a, TITIN_ORDER_FORTRAN, timestamp, next_timestamp);
}

int titin_ga_c_receive(titin_field *field, int g_a, const double *at, double timeout, double *timestamp, double *next_timestamp) {
    return titin_ga_receive_in(field, g_a, TITIN_ORDER_FORTRAN, at, timeout, timestamp, next_timestamp);
}
