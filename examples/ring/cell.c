/* A cell of a ring that conducts heat: its own temperature, and the temperatures of its two neighbours. */

#include <stdio.h>
#include <titin.h>

static int receive(titin_port *port, double *value) {
    return titin_receive_into(port, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 0, NULL, NULL, TITIN_ORDER_C, value, NULL);
}

int main(void) {
    titin_instance *instance;
    if (titin_open("o_i: to_left to_right; s: from_left from_right", NULL, &instance)) return titin_explain(stderr);
    titin_port *to_left = titin_port_find(instance, "to_left"), *from_left = titin_port_find(instance, "from_left");
    titin_port *to_right = titin_port_find(instance, "to_right"), *from_right = titin_port_find(instance, "from_right");

    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        /* F_INIT */
        double u, a;
        int64_t steps;
        titin_setting_f64(instance, "u", &u);
        titin_setting_f64(instance, "a", &a);
        titin_setting_i64(instance, "steps", &steps);

        for (int64_t step = 0; step < steps; ++step) {
            /* O_I */
            const double t = (double)step, next = t + 1.0;
            titin_send(to_left, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &u, t, next);
            titin_send(to_right, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &u, t, next);

            /* S */
            double left, right;
            if (receive(from_left, &left) || receive(from_right, &right)) break;
            u += a * (left - 2.0 * u + right);
        }

        /* O_F */
        printf("%.17g\n", u);
    }
    return titin_close(instance);
}
