/* The loop by hand around a model by BMI's C entry: loop CONFIG OUTPUT INPUT COUNT SIZE. It writes what the output
 * variable holds before each step and at the end; the input variable is half of that, and one. */
#include "bmi.h"
#include <stdio.h>
#include <stdlib.h>

Bmi *ENTRY(Bmi *);

int main(int argc, char **argv) {
    Bmi model;
    ENTRY(&model);
    int count = atoi(argv[4]), size = atoi(argv[5]);
    char *got = malloc(count * size), *given = malloc(count * size);
    double now, end;
    if (model.initialize(&model, argv[1])) return 1;
    model.get_end_time(&model, &end);
    for (model.get_current_time(&model, &now); now < end; model.get_current_time(&model, &now)) {
        model.get_value(&model, argv[2], got);
        fwrite(got, size, count, stdout);
        for (int i = 0; i < count; i++) {
            if (size == sizeof(double)) ((double *)given)[i] = 0.5 * ((double *)got)[i] + 1.0;
            else ((float *)given)[i] = 0.5f * ((float *)got)[i] + 1.0f;
        }
        model.set_value(&model, argv[3], given);
        model.update(&model);
    }
    model.get_value(&model, argv[2], got);
    fwrite(got, size, count, stdout);
    model.finalize(&model);
    return 0;
}
