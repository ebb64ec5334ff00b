/* A cell of a ring that conducts heat, in steps. titin calls the function when the instance can go on. The function goes as far
 * as possible, and returns TITIN_PENDING when a call in it returns that. A struct keeps how far the cell has come. */

#include <stdio.h>
#include <stdlib.h>
#include <titin.h>

enum stage { BEGIN, SEND_LEFT, SEND_RIGHT, RECEIVE_LEFT, RECEIVE_RIGHT };

struct cell {
    enum stage next;
    titin_port *to_left, *from_left, *to_right, *from_right;
    double u, a, left;
    int64_t step, steps;
};

static int receive(titin_port *port, double *value) {
    return titin_receive_into(port, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 0, NULL, NULL, TITIN_ORDER_C, value, NULL);
}

int cell(titin_instance *instance, void *data) {
    struct cell **place = data, *me = *place;
    int again, pending;
    double right;
    if (!me) {
        me = *place = calloc(1, sizeof *me);
        me->to_left = titin_port_find(instance, "to_left");
        me->from_left = titin_port_find(instance, "from_left");
        me->to_right = titin_port_find(instance, "to_right");
        me->from_right = titin_port_find(instance, "from_right");
    }
    for (;;) switch (me->next) {
    case BEGIN:
        if ((pending = titin_reuse(instance, &again))) return pending;
        if (!again) {
            free(me);
            return 0;
        }
        /* F_INIT */
        titin_setting_f64(instance, "u", &me->u);
        titin_setting_f64(instance, "a", &me->a);
        titin_setting_i64(instance, "steps", &me->steps);
        me->step = 0;
        me->next = SEND_LEFT;
        break;

    /* O_I */
    case SEND_LEFT:
        pending = titin_send(me->to_left, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &me->u, (double)me->step, TITIN_NO_NEXT);
        if (pending) return pending;
        me->next = SEND_RIGHT;
        break;
    case SEND_RIGHT:
        pending = titin_send(me->to_right, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &me->u, (double)me->step, TITIN_NO_NEXT);
        if (pending) return pending;
        me->next = RECEIVE_LEFT;
        break;

    /* S */
    case RECEIVE_LEFT:
        if ((pending = receive(me->from_left, &me->left))) return pending;
        me->next = RECEIVE_RIGHT;
        break;
    case RECEIVE_RIGHT:
        if ((pending = receive(me->from_right, &right))) return pending;
        me->u += me->a * (me->left - 2.0 * me->u + right);
        me->next = SEND_LEFT;
        if (++me->step == me->steps) {
            /* O_F */
            printf("%s %.17g\n", titin_instance_name(instance), me->u);
            me->next = BEGIN;
        }
        break;
    }
}
