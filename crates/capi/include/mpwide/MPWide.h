/* The calls of MPWide, over titin's paths (titin_path.h), for programs that were written for MPWide: in C++, and in C the
 * few functions whose names end in _c. Compile with -I$(titin config --include-dir)/mpwide and link with
 * $(titin config --libs). Both ends need this library, and the same key: `titin path key FILE` makes one, and the
 * environment variable TITIN_PATH_KEY names the file.
 *
 * Rules that hold for every call here
 *
 * Numbers. MPW_Init makes channels: one connection each, at its own port. MPW_CreatePath makes a path: one connection with
 *     several streams at the base port, each of which has the number of a channel, too. Both count from 0. A list of channels
 *     is either that of all channels of one path, in their order, and stands for the path; or it has channels of MPW_Init, over
 *     which the message is split as MPW_splitBuf does. Instead of a list, NULL stands for the first `num_channels` channels.
 * Beginning. Both ends make the same call, each with the other one's host, and wait for each other without a limit. For the
 *     host "0" (or "" or "0.0.0.0") this end only waits to be called. Both ends give the same number of streams.
 * Sizes. Both ends give the same size, except to the calls with a D. No bytes are no message: nothing is sent, and nothing is
 *     waited for. Memory to receive into may overlap the bytes to send, which are copied then.
 * Errors. A call that fails prints one line that begins with "MPWide: ", and ends the program with 1. Only
 *     MPW_CreatePathWithoutConnect, MPW_ConnectPath, MPW_CreatePath, MPW_DestroyPath and MPW_Finalize return -1 instead.
 *     The other calls that return an int status return 0.
 * End. MPW_Finalize waits until the other ends have all messages. A program that ends without it does so for at most 10 s.
 * Threads. Any thread may call. Calls that send on a connection take turns, and so do calls that receive.
 */
#ifndef TITIN_MPWIDE_H
#define TITIN_MPWIDE_H

#ifdef __cplusplus
#include <cassert>
#include <iostream>
#include <string>
#include <vector>
extern "C" {
#endif

/* What the calls below are made of. Programs do not call these. */
char *titin_mpw_dns_resolve(const char *host);
const char *titin_mpw_description(void);
int titin_mpw_num_channels(void);
int titin_mpw_create_path_without_connect(const char *host, int port, int streams);
int titin_mpw_connect_path(int path, int server_wait);
int titin_mpw_create_path(const char *host, int port, int streams);
int titin_mpw_destroy_path(int path);
void titin_mpw_send_path(char *bytes, long long size, int path);
void titin_mpw_recv_path(char *memory, long long size, int path);
void titin_mpw_sendrecv_path(char *bytes, long long size, char *memory, long long room, int path);
int titin_mpw_dsendrecv_path(char *bytes, long long size, char *memory, long long room, int path);
void titin_mpw_init(const char *const *hosts, const int *ports, int count);
void titin_mpw_set_win(int channel, int size);
void titin_mpw_set_path_win(int path, int size);
void titin_mpw_close_channels(const int *channels, int count);
void titin_mpw_reopen_channels(const int *channels, int count);
int titin_mpw_finalize(void);
void titin_mpw_psendrecv(char *const *bytes, const long long *sizes, char *const *memory, const long long *rooms,
                         const int *channels, int count);
void titin_mpw_sendrecv(char *bytes, long long size, char *memory, long long room, const int *channels, int count);
long long titin_mpw_dsendrecv(char *bytes, long long size, char *memory, long long room, const int *channels, int count);
void titin_mpw_relay(const int *one, const int *other, int count);
void titin_mpw_send(char *bytes, long long size, const int *channels, int count);
void titin_mpw_recv(char *memory, long long size, const int *channels, int count);
long long titin_mpw_dcycle(char *bytes, long long size, char *memory, long long room, const int *to, int to_count,
                           const int *from, int from_count);
void titin_mpw_cycle(char *bytes, long long size, char *memory, long long room, const int *to, int to_count, const int *from,
                     int from_count);
void titin_mpw_split_buf(char *bytes, long long size, int count, char **pieces, long long *sizes);
void titin_mpw_barrier(int channel);
int titin_mpw_isendrecv(char *bytes, long long size, char *memory, long long room, int path);
int titin_mpw_has_nbe_finished(int exchange);
void titin_mpw_wait(int exchange);
double titin_mpw_pacing_rate(void);
void titin_mpw_set_pacing_rate(double rate);


/* ---- C --------------------------------------------------------------------------------------------------------- */

#ifdef __cplusplus
#define TITIN_MPW_INLINE inline
#else
#define TITIN_MPW_INLINE static inline
#endif

TITIN_MPW_INLINE void MPW_Init_c(char **url, int *ports, int numsockets) {
    titin_mpw_init((const char *const *)url, ports, numsockets);
}

TITIN_MPW_INLINE void MPW_Init1_c(char *url, int port) {
    const char *host = url;
    titin_mpw_init(&host, &port, 1);
}

TITIN_MPW_INLINE int MPW_CreatePath_c(char *host, int server_side_base_port, int num_streams) {
    return titin_mpw_create_path(host, server_side_base_port, num_streams);
}

/* By one channel. */
TITIN_MPW_INLINE void MPW_SendRecv1_c(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize,
                                      int base_channel) {
    titin_mpw_sendrecv(sendbuf, sendsize, recvbuf, recvsize, &base_channel, 1);
}

TITIN_MPW_INLINE void MPW_SendRecv_c(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize,
                                     int *base_channel, int num_channels) {
    titin_mpw_sendrecv(sendbuf, sendsize, recvbuf, recvsize, base_channel, num_channels);
}

TITIN_MPW_INLINE void MPW_PSendRecv_c(char **sendbuf, long long int *sendsize, char **recvbuf, long long int *recvsize,
                                      int *channel, int num_channels) {
    titin_mpw_psendrecv(sendbuf, sendsize, recvbuf, recvsize, channel, num_channels);
}

#undef TITIN_MPW_INLINE

#ifdef __cplusplus
}


/* ---- C++ ------------------------------------------------------------------------------------------------------- */

/* Programs of MPWide rely on this. */
using namespace std;

/* Programs of MPWide ask for these. */
#define PacingMode 1
#define MPW_PacingMode 1
#define OptimizeStreamCount 1

/* ---- Begin and end */

/* Connects to the hosts at these ports, all at once: one channel each. The ports on the side of the client are chosen by the
 * operating system. */
inline int MPW_Init(string *url, int *server_side_ports, int num_channels) {
    vector<const char *> hosts;
    for (int i = 0; i < num_channels; i++) hosts.push_back(url[i].c_str());
    titin_mpw_init(hosts.data(), server_side_ports, num_channels);
    return 0;
}

inline int MPW_Init(string *url, int *server_side_ports, int *, int num_channels) {
    return MPW_Init(url, server_side_ports, num_channels);
}

inline int MPW_Init(string url, int port) { return MPW_Init(&url, &port, 1); }

inline int MPW_Init(string url) { return MPW_Init(url, 6000); }

inline int MPW_Init() { return 0; }

/* Returns the number of the path. The path is not connected. */
inline int MPW_CreatePathWithoutConnect(string host, int server_side_base_port, int streams_in_path) {
    return titin_mpw_create_path_without_connect(host.c_str(), server_side_base_port, streams_in_path);
}

/* Without `server_wait` this end only calls the other one, and gives up after 5 s. */
inline int MPW_ConnectPath(int path_id, bool server_wait) { return titin_mpw_connect_path(path_id, server_wait); }

/* Returns the number of the path, which is connected. */
inline int MPW_CreatePath(string host, int server_side_base_port, int num_streams) {
    return titin_mpw_create_path(host.c_str(), server_side_base_port, num_streams);
}

/* Waits until the other end has all messages, and removes the path. */
inline int MPW_DestroyPath(int path) { return titin_mpw_destroy_path(path); }

/* Waits until the other ends have all messages of these channels. The numbers stay. */
inline void MPW_CloseChannels(int *channels, int num_channels) { titin_mpw_close_channels(channels, num_channels); }

/* Connects closed channels again, as MPW_Init does. */
inline void MPW_ReOpenChannels(int *channels, int num_channels) { titin_mpw_reopen_channels(channels, num_channels); }

inline int MPW_Finalize() { return titin_mpw_finalize(); }

/* ---- By a path */

inline int MPW_Send(char *sendbuf, long long int sendsize, int path) {
    titin_mpw_send_path(sendbuf, sendsize, path);
    return 0;
}

inline int MPW_Recv(char *recvbuf, long long int recvsize, int path) {
    titin_mpw_recv_path(recvbuf, recvsize, path);
    return 0;
}

inline int MPW_SendRecv(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize, int path) {
    titin_mpw_sendrecv_path(sendbuf, sendsize, recvbuf, recvsize, path);
    return 0;
}

/* Returns the number of received bytes. A message that is larger than an int is an error. */
inline int MPW_DSendRecv(char *sendbuf, long long int sendsize, char *recvbuf, long long int maxrecvsize, int path) {
    return titin_mpw_dsendrecv_path(sendbuf, sendsize, recvbuf, maxrecvsize, path);
}

/* Returns the number of the exchange. Any number of them may be under way. Until an exchange has finished the program must
 * neither change the bytes to send nor use the memory. */
inline int MPW_ISendRecv(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize, int path) {
    return titin_mpw_isendrecv(sendbuf, sendsize, recvbuf, recvsize, path);
}

/* True once the exchange has finished. */
inline bool MPW_Has_NBE_Finished(int NBE_id) { return titin_mpw_has_nbe_finished(NBE_id) != 0; }

/* Waits for the exchange, whose number is gone then. */
inline void MPW_Wait(int NBE_id) { titin_mpw_wait(NBE_id); }

/* ---- By channels */

inline int MPW_Send(char *buf, long long int size, int *channels, int num_channels) {
    titin_mpw_send(buf, size, channels, num_channels);
    return 0;
}

inline int MPW_Recv(char *buf, long long int size, int *channels, int num_channels) {
    titin_mpw_recv(buf, size, channels, num_channels);
    return 0;
}

inline int MPW_SendRecv(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize, int *channel,
                        int num_channels) {
    titin_mpw_sendrecv(sendbuf, sendsize, recvbuf, recvsize, channel, num_channels);
    return 0;
}

/* Returns the number of received bytes. */
inline long long int MPW_DSendRecv(char *sendbuf, long long int sendsize, char *recvbuf, long long int maxrecvsize,
                                   int *channel, int num_channels) {
    return titin_mpw_dsendrecv(sendbuf, sendsize, recvbuf, maxrecvsize, channel, num_channels);
}

/* A buffer each way for each channel. */
inline int MPW_PSendRecv(char **sendbuf, long long int *sendsize, char **recvbuf, long long int *recvsize, int *channel,
                         int num_channels) {
    titin_mpw_psendrecv(sendbuf, sendsize, recvbuf, recvsize, channel, num_channels);
    return 0;
}

/* Sends by the channels ch_send and receives by the channels ch_recv, both at once. */
inline int MPW_Cycle(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize, int *ch_send,
                     int num_ch_send, int *ch_recv, int num_ch_recv) {
    titin_mpw_cycle(sendbuf, sendsize, recvbuf, recvsize, ch_send, num_ch_send, ch_recv, num_ch_recv);
    return 0;
}

/* The same for a message of at most recvsize bytes. Returns the number of received bytes. */
inline long long int MPW_DCycle(char *sendbuf, long long int sendsize, char *recvbuf, long long int recvsize, int *ch_send,
                                int num_ch_send, int *ch_recv, int num_ch_recv) {
    return titin_mpw_dcycle(sendbuf, sendsize, recvbuf, recvsize, ch_send, num_ch_send, ch_recv, num_ch_recv);
}

/* Passes all messages on between channels[i] and channels2[i], both ways, until the other end of one of the two closes it. */
inline void MPW_Relay(int *channels, int *channels2, int num_channels) {
    titin_mpw_relay(channels, channels2, num_channels);
}

/* Waits until the other end comes to its barrier on the channel. */
inline void MPW_Barrier(int channel) { titin_mpw_barrier(channel); }

/* Splits memory into pieces of nearly the same size, the first ones larger by a byte where that is needed. */
inline void MPW_splitBuf(char *buf, long long int bsize, int num_chunks, char **split_buf, long long int *chunk_sizes) {
    titin_mpw_split_buf(buf, bsize, num_chunks, split_buf, chunk_sizes);
}

/* ---- Settings. Those of the end that happens to open a connection hold for both ends: set the same at both. */

/* The buffers of a connection's sockets in the operating system, in bytes, once it is connected or connected again. */
inline void MPW_setWin(int channel, int size) { titin_mpw_set_win(channel, size); }
inline void MPW_setPathWin(int path, int size) { titin_mpw_set_path_win(path, size); }

/* The most bytes per second of each stream of connections that are made later; -1 for no limit, which holds at first. */
inline double MPW_getPacingRate() { return titin_mpw_pacing_rate(); }
inline void MPW_setPacingRate(double rate) { titin_mpw_set_pacing_rate(rate); }

/* Without effect: titin and the operating system choose. */
inline void MPW_setChunkSize(int, int) {}

inline bool MPW_AutoTuning(const bool *wanted = nullptr) {
    static bool value = true;
    if (wanted) value = *wanted;
    return value;
}
inline void MPW_setAutoTuning(bool b) { MPW_AutoTuning(&b); }

/* ---- Questions */

/* Prints a line for each channel and each path. */
inline void MPW_Print() { cout << titin_mpw_description() << flush; }

/* The number of channels, those of paths among them. */
inline int MPW_NumChannels() { return titin_mpw_num_channels(); }

/* The address of a host. Lives until the thread's next call of this or of MPW_Print. */
inline char *MPW_DNSResolve(const char *host) { return titin_mpw_dns_resolve(host); }
inline char *MPW_DNSResolve(const string &host) { return MPW_DNSResolve(host.c_str()); }

#endif

#endif
