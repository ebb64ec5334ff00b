/* MUSCLE 2's instance over titin: one in a process, with the ports of the description. */
#define _GNU_SOURCE
#include "muscle2/detail/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muscle2/muscle_types.h"
#include "internal.h"

static struct muscle2 instance;

struct muscle2 *titin_muscle2_instance(void) { return &instance; }

/* ---- Errors ---- */

static char *error_text;

const char *titin_muscle2_error(void) { return error_text ? error_text : "there is no memory for the text of an error"; }

int titin_muscle2_refuse(const char *format, ...) {
    va_list arguments;
    char *text;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    free(error_text);
    error_text = text;
    return 1;
}

int titin_muscle2_refuse_by_titin(void) { return titin_muscle2_refuse("%s", titin_error_in(instance.language)); }

void titin_muscle2_die(void) {
    fprintf(stderr, "muscle2: %s\n", titin_muscle2_error());
    if (instance.handle) titin_fail(instance.handle, titin_muscle2_error());
    exit(1);
}

/* ---- Beginning and end ---- */

/* The rank of this process, from the variables that launchers of MPI set. */
static int rank_of_process(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MPISPAWN_ID", "MP_CHILD",
                                            "PMI_RANK",             "PMIX_RANK",           "X10_PLACE",   "LAMRANK",
                                            "GMPI_ID",              "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; ++i) {
        const char *rank = getenv(variables[i]);
        if (rank) return atoi(rank);
    }
    return 0;
}

int titin_muscle2_is_main(void) { return instance.is_main; }

int titin_muscle2_is_silent(void) { return instance.language && !instance.is_main; }

/* Looks for the ports once. */
static int find_ports(void) {
    instance.count = titin_port_count(instance.handle);
    instance.ports = calloc((size_t)instance.count + 1, sizeof *instance.ports);
    if (!instance.ports) return titin_muscle2_refuse("there is no memory for %d ports", instance.count);
    for (int i = 0; i < instance.count; ++i) {
        struct muscle2_port *port = &instance.ports[i];
        port->handle = titin_port_at(instance.handle, i);
        port->name = titin_port_name(port->handle);
        port->op = titin_port_operator(port->handle);
        /* `muscle_settings_in` is titin's own. */
        if (port->op == TITIN_F_INIT && titin_port_is_connected(port->handle) && strcmp(port->name, "muscle_settings_in"))
            instance.has_f_init = 1;
    }
    return 0;
}

int titin_muscle2_init(const char *language) {
    if (instance.handle) return titin_muscle2_refuse("MUSCLE is initialized twice: call MUSCLE_Init or env::init once");
    if (instance.is_main)
        return titin_muscle2_refuse("MUSCLE is initialized again after MUSCLE_Finalize, or env::finalize: a program takes part "
                                    "in a run once");
    memset(&instance, 0, sizeof instance);
    instance.language = language;
    if (rank_of_process() > 0) return 0;
    titin_options *options = titin_options_new();
    int failed = !options || titin_options_language(options, language) || titin_options_exceptions(options) ||
                 titin_options_unchecked(options, "a program of MUSCLE 2 names no operators");
    if (failed || titin_open(NULL, options, &instance.handle)) failed = titin_muscle2_refuse_by_titin();
    titin_options_free(options);
    if (failed) {
        instance.handle = NULL;
        return 1;
    }
    instance.is_main = 1;
    if (find_ports()) return 1;
    /* Without F_INIT ports there is one use, and its beginning waits for nothing. */
    int again;
    if (!instance.has_f_init && titin_reuse(instance.handle, &again)) return titin_muscle2_refuse_by_titin();
    return titin_muscle2_read_times();
}

int titin_muscle2_finalize(void) {
    if (!instance.handle) return 0;
    for (int i = 0; i < instance.count; ++i) titin_message_free(instance.ports[i].kept);
    free(instance.ports);
    titin_instance *handle = instance.handle;
    instance.handle = NULL;
    instance.ports = NULL;
    instance.count = 0;
    return titin_close(handle) ? titin_muscle2_refuse_by_titin() : 0;
}

int titin_muscle2_need(const char *call) {
    if (instance.handle) return 0;
    if (!instance.language) return titin_muscle2_refuse("%s is called before MUSCLE_Init, or env::init", call);
    if (!instance.is_main)
        return titin_muscle2_refuse("%s is called on another rank than 0: only rank 0 of an MPI program may ask", call);
    return titin_muscle2_refuse("%s is called after MUSCLE_Finalize, or env::finalize", call);
}

const char *titin_muscle2_kernel_name(void) {
    return titin_muscle2_need("kernel_name") ? NULL : titin_instance_name(instance.handle);
}

const char *titin_muscle2_workdir(void) {
    return titin_muscle2_need("get_tmp_path") ? NULL : titin_workdir(instance.handle);
}

/* ---- Time ---- */

/* A time in seconds from a property of the instance, or a global one: `*known` is 1 if there is one. */
static int time_of(const char *name, double *time, int *known) {
    *known = 0;
    switch (titin_setting_type(instance.handle, name)) {
    case TITIN_TYPE_NONE: return 0;
    case TITIN_TYPE_TEXT: {
        /* Scripts in Ruby also write "4" for 4. */
        const char *text;
        char *end;
        if (titin_setting_text(instance.handle, name, &text)) return titin_muscle2_refuse_by_titin();
        *time = strtod(text, &end);
        *known = end != text && !*end;
        if (*known) return 0;
        break;
    }
    default: break;
    }
    if (titin_setting_quantity(instance.handle, name, "s", time)) return titin_muscle2_refuse_by_titin();
    *known = 1;
    return 0;
}

int titin_muscle2_read_times(void) {
    int known, bounded;
    double most;
    if (time_of("dt", &instance.dt, &known)) return 1;
    if (!known && time_of("default_dt", &instance.dt, &known)) return 1;
    if (!known) instance.dt = 1.0;
    if (time_of("T", &instance.end, &instance.ends)) return 1;
    if (time_of("max_timesteps", &most, &bounded)) return 1;
    if (bounded && (!instance.ends || most < instance.end)) instance.end = most;
    instance.ends |= bounded;
    return 0;
}

int titin_muscle2_will_stop(int *stops) {
    *stops = 1;
    if (titin_muscle2_need("will_stop")) return 1;
    if (!instance.ends)
        return titin_muscle2_refuse("will_stop of %s asks for an end that the description does not have: add the setting "
                                    "max_timesteps (s), or %s.T for this instance",
                                    titin_instance_name(instance.handle), titin_instance_name(instance.handle));
    double latest = 0.0;
    for (int i = 0; i < instance.count; ++i)
        if (instance.ports[i].time > latest) latest = instance.ports[i].time;
    *stops = latest >= instance.end;
    return 0;
}

/* ---- Log ---- */

/* The log takes UTF-8. Puts '?' in the place of each byte of another text that is not ASCII. */
static char *ascii_of(char *text) {
    for (char *byte = text; *byte; ++byte)
        if ((unsigned char)*byte > 127) *byte = '?';
    return text;
}

void titin_muscle2_log(int level, const char *format, va_list arguments) {
    static const int levels[] = {TITIN_LOG_ERROR, TITIN_LOG_WARNING, TITIN_LOG_INFO, TITIN_LOG_DEBUG};
    char *text;
    if (vasprintf(&text, format, arguments) < 0) return;
    if (level < 0) level = 0;
    int kept = levels[level > 3 ? 3 : level];
    if (instance.handle) {
        if (titin_log(instance.handle, kept, text)) titin_log(instance.handle, kept, ascii_of(text));
    } else if (level <= MUSCLE_LOG_INFO) fprintf(stderr, "muscle2: %s\n", text);
    free(text);
}

void titin_muscle2_log_text(int level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    titin_muscle2_log(level, format, arguments);
    va_end(arguments);
}
