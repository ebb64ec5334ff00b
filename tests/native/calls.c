/* Notes the functions of titin that a program calls. LD_AUDIT makes the dynamic linker load this library, and the dynamic
 * linker calls `la_symbind64` at the first call of each function. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned int la_version(unsigned int version) { return version; }

unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie) {
    (void)map, (void)lmid, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to, unsigned int *flags,
                       const char *name) {
    (void)index, (void)from, (void)to, (void)flags;
    const char *place = getenv("CALLS");
    if (!strncmp(name, "titin_", 6) && place) {
        const int file = open(place, O_WRONLY | O_CREAT | O_APPEND, 0600);
        char line[100];
        const size_t length = strlen(name);
        if (length < sizeof line) {
            memcpy(line, name, length);
            line[length] = '\n';
            if (write(file, line, length + 1) < 0) abort();
        }
        close(file);
    }
    return symbol->st_value;
}
