/* Adds one to each number that comes, in place, and sends it on. Writes what it knows of itself. */
#include <muscle2/cmuscle.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MUSCLE_Init(&argc, &argv);
    char *steps = (char *)MUSCLE_Get_Property("steps");
    printf("%s: %s steps, has k: %d, has steps: %d\n", MUSCLE_Kernel_Name(), steps, MUSCLE_Has_Property("k"),
           MUSCLE_Has_Property("steps"));
    for (int step = 0; step < atoi(steps); ++step) {
        double room[8];
        size_t count = 8;
        double *data = MUSCLE_Receive("in", room, &count, MUSCLE_DOUBLE);
        for (size_t i = 0; i < count; ++i) data[i] += 1.0;
        MUSCLE_Send("out", data, count, MUSCLE_DOUBLE);
    }
    free(steps);
    size_t length;
    char *text = MUSCLE_Receive("text", NULL, &length, MUSCLE_STRING);
    printf("%s %zu\n", text, length);
    MUSCLE_Free(text, MUSCLE_STRING);
    MUSCLE_Log_Info("%d steps are done", 3);
    MUSCLE_Log(MUSCLE_LOG_WARNING, "level %d", (int)MUSCLE_LOG_WARNING);
    MUSCLE_Log_String(MUSCLE_LOG_SEVERE, "100 % plain");
    MUSCLE_Log_String(MUSCLE_LOG_INFO, "Latin-1: gr\xfc\xdf" "e");
    printf("stops: %d\n", MUSCLE_Will_Stop());
    if (argc > 1 && !strcmp(argv[1], "wrong")) MUSCLE_Get_Property("unknown");
    if (argc > 1 && !strcmp(argv[1], "latin")) MUSCLE_Send("gr\xfc\xdf" "e", NULL, 0, MUSCLE_RAW);
    MUSCLE_Finalize();
    return 0;
}
