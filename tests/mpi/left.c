/* Is killed within MPI_Init, just before MPICH removes the file through which its ranks meet. The name of the file is
 * written to `left`. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

/* Takes the place of the system's function, also within MPICH. */
int unlink(const char *path) {
    if (strstr(path, "mpich_shar_tmp")) {
        FILE *file = fopen("left", "w");
        fputs(path, file);
        fclose(file);
        /* Other processes may keep the guard from the processor for so long. */
        usleep(300000);
        raise(SIGKILL);
    }
    return unlinkat(AT_FDCWD, path, 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return 0;
}
