/* What the sources of this folder share. */
#ifndef TITIN_MUSCLE2_INTERNAL_H
#define TITIN_MUSCLE2_INTERNAL_H

#include "muscle2/detail/core.h"

#pragma GCC visibility push(hidden)

struct muscle2_port {
    titin_port *handle;
    const char *name;
    int op;
    double time;         /* up to which messages have told the time: the next timestamp of the last one */
    titin_message *kept; /* a message that has_next has received */
    int closed;          /* no more messages will come */
    int taken;           /* F_INIT: the message of this use is received */
};

struct muscle2 {
    titin_instance *handle; /* NULL before init, after finalize, and on other ranks than 0 */
    const char *language;   /* NULL before init */
    int is_main;
    int count;
    struct muscle2_port *ports;
    int has_f_init, in_use;
    double dt, end;
    int ends; /* whether `end` is known */
};

struct muscle2 *titin_muscle2_instance(void);
int titin_muscle2_refuse_by_titin(void);
/* An error unless the instance is open. */
int titin_muscle2_need(const char *call);
/* As titin_muscle2_log. */
void titin_muscle2_log_text(int level, const char *format, ...);
/* Reads dt, T and max_timesteps. */
int titin_muscle2_read_times(void);

#pragma GCC visibility pop

#endif
