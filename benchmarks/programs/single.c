/* The instance of benchmarks/many.py, as cell.c, in a process of its own. Its calls wait. The program prints the memory
 * that it took. */
#include <stdio.h>
#include <titin.h>

/* The largest memory so far, in kilobytes. (The figure of getrusage begins with the memory of the parent at the fork.) */
static long most(void) {
    char line[256];
    long found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &found);
    if (status) fclose(status);
    return found;
}

int main(void) {
    titin_instance *instance;
    titin_message *message;
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
    printf("%ld\n", most());
    return titin_close(instance) ? titin_explain(stderr) : 0;
}
