/* Functions that a host runs as instances. The description names these functions. */
#include <malloc.h>
#include <string.h>

#include "check.h"

/* Prints the number of arenas of the allocator. */
static void tell_arenas(void) {
    char *text = NULL;
    size_t size;
    int arenas = 0;
    FILE *out = open_memstream(&text, &size);
    CHECK(out && malloc_info(0, out) == 0 && fclose(out) == 0);
    for (const char *at = text; (at = strstr(at, "<heap nr=")); at++) arenas++;
    fprintf(stderr, "%d\n", arenas);
    free(text);
}

/* Sends three numbers, on a thread of its own. */
int source(titin_instance *instance, void *data) {
    titin_port *out = titin_port_find(instance, "out");
    int again;
    CHECK(*(void **)data == NULL);
    CHECK(titin_reuse(instance, &again) == 0 && again);
    for (int i = 0; i < 3; i++) {
        const double value = i;
        CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &value, i, TITIN_NO_NEXT) == 0);
    }
    tell_arenas();
    return 0;
}

/* A light instance that adds up the received numbers. The sum so far outlives a pending call, in memory of its own. */
int sum(titin_instance *instance, void *data) {
    double **place = data, value;
    titin_message *message;
    int again, failed;
    if (!*place) {
        if ((failed = titin_reuse(instance, &again))) return failed;
        *place = calloc(1, sizeof **place);
    }
    while ((failed = titin_receive(titin_port_find(instance, "in"), TITIN_NO_SLOT, TITIN_WAIT, &message)) == 0) {
        CHECK(titin_value_f64(titin_message_value(message), &value) == 0);
        **place += value;
        titin_message_free(message);
    }
    if (failed != TITIN_ERROR_PORT_CLOSED) return failed;
    CHECK(**place == 3.0);
    free(*place);
    printf("%s has them all\n", titin_instance_name(instance));
    tell_arenas();
    return 0;
}

/* Fails. */
int broken(titin_instance *instance, void *data) {
    (void)instance;
    (void)data;
    titin_set_error("the ice is too thin");
    return 1;
}

/* Ends the process. */
int quits(titin_instance *instance, void *data) {
    (void)instance;
    (void)data;
    exit(5);
}
