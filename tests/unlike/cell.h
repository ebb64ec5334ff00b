/* One side of a pair of programs, the same in every language: a state of 13 by 7 numbers of three types, spread over ranks
 * by rows or by columns. In each step the pair exchange their states, in turn by each medium, and each moves its state on.
 * The maps are chaotic: a difference in the last bit of one number is a difference in the first digits at the end. */
#define NY 13
#define NX 7
#define STEPS 48
#define MEDIA 3
static const char *const media[MEDIA] = {"shm", "tcp", "file"};
