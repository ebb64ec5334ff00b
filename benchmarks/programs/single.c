/* benchmarks/many.py: the same as cell.c in a process of its own, which waits. It says how much memory it took. */
#include <stdio.h>
#include <sys/resource.h>
#include <titin.h>

int main(void) {
    titin_instance *instance;
    titin_message *message;
    struct rusage used;
    int again;
    if (titin_open(NULL, NULL, &instance)) return titin_explain(stderr);
    titin_reuse(instance, &again);
    for (int wanted = TITIN_O_I; wanted <= TITIN_S; wanted++) {
        for (int i = 0; i < titin_port_count(instance); i++) {
            titin_port *port = titin_port_at(instance, i);
            if (titin_port_operator(port) != wanted) continue;
            if (wanted == TITIN_O_I) titin_send_nil(port, TITIN_NO_SLOT, 0.0, TITIN_NO_NEXT, NULL);
            else if (titin_receive(port, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0) titin_message_free(message);
        }
    }
    getrusage(RUSAGE_SELF, &used);
    printf("%ld\n", used.ru_maxrss);
    return titin_close(instance) ? titin_explain(stderr) : 0;
}
