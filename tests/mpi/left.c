/* Is killed within MPI_Init, as it would remove the file that MPICH has its ranks meet in; the file's name goes to `left`. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

/* In place of the system's, for MPICH too. */
int unlink(const char *path) {
    if (strstr(path, "mpich_shar_tmp")) {
        FILE *file = fopen("left", "w");
        fputs(path, file);
        fclose(file);
        raise(SIGKILL);
    }
    return unlinkat(AT_FDCWD, path, 0);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return 0;
}
