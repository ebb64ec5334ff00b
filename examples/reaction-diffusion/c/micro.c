/* Logistic growth in each cell by itself: the fast model of the pair. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <titin.h>

int main(void) {
    titin_instance *instance;
    if (titin_open("f_init: initial_state; o_f: final_state", NULL, &instance)) return titin_explain(stderr);
    titin_port *in = titin_port_find(instance, "initial_state");
    titin_port *out = titin_port_find(instance, "final_state");

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* F_INIT */
        double k, dt, t_max;
        titin_setting_f64(instance, "k", &k);
        titin_setting_f64(instance, "dt", &dt);
        titin_setting_f64(instance, "t_max", &t_max);
        titin_message *msg;
        if (titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &msg)) break;
        int64_t cells = TITIN_ANY;
        const double *initial = titin_message_array(msg, TITIN_F64, 1, &cells, TITIN_ORDER_C);
        if (!initial) break;
        double *u = malloc(sizeof(double) * (size_t)cells);
        memcpy(u, initial, sizeof(double) * (size_t)cells);

        /* S */
        for (long step = 0; step < lround(t_max / dt); ++step)
            for (int64_t i = 0; i < cells; ++i) u[i] += dt * k * u[i] * (1.0 - u[i]);

        /* O_F */
        const double t = titin_message_timestamp(msg) + t_max;
        titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &cells, u, t, TITIN_NO_NEXT);
        titin_message_free(msg);
        free(u);
    }
    return titin_close(instance);
}
