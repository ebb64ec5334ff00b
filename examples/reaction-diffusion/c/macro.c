/* Diffusion along a line: the slow, coarse model of the pair. */

#include <math.h>
#include <stdlib.h>
#include <titin.h>

int main(void) {
    titin_instance *instance;
    if (titin_open("o_i: state_out; s: state_in; o_f: final_state", NULL, &instance)) return titin_explain(stderr);
    titin_port *out = titin_port_find(instance, "state_out");
    titin_port *in = titin_port_find(instance, "state_in");
    titin_port *final = titin_port_find(instance, "final_state");

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* F_INIT */
        double d, dx, dt, t_max;
        int64_t cells;
        titin_setting_f64(instance, "d", &d);
        titin_setting_f64(instance, "dx", &dx);
        titin_setting_f64(instance, "dt", &dt);
        titin_setting_f64(instance, "t_max", &t_max);
        titin_setting_i64(instance, "cells", &cells);
        double *u = calloc((size_t)cells, sizeof(double));
        for (int64_t i = 0; i < cells / 10; ++i) u[i] = 1.0;
        const double a = d * dt / (dx * dx);

        double t = 0.0;
        for (long step = 0; step < lround(t_max / dt); ++step) {
            /* O_I */
            t = step * dt;
            titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, &cells, u, t, t + dt);

            /* S */
            titin_message *msg;
            if (titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &msg)) break;
            const double *grown = titin_message_array(msg, TITIN_F64, 1, &cells, TITIN_ORDER_C);
            if (!grown) break;
            for (int64_t i = 1; i < cells - 1; ++i)
                u[i] = grown[i] + a * (grown[i - 1] - 2.0 * grown[i] + grown[i + 1]);
            u[0] = u[1];
            u[cells - 1] = u[cells - 2];
            titin_message_free(msg);
        }

        /* O_F */
        titin_send(final, TITIN_NO_SLOT, TITIN_F64, 1, &cells, u, t + dt, TITIN_NO_NEXT);
        free(u);
    }
    return titin_close(instance);
}
