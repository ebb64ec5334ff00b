/* Sending and receiving on the ports of the description. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "muscle2/muscle_types.h"

static const char *const type_names[] = {"MUSCLE_DOUBLE", "MUSCLE_FLOAT",   "MUSCLE_INT32", "MUSCLE_INT64",
                                         "MUSCLE_STRING", "MUSCLE_BOOLEAN", "MUSCLE_RAW",   "MUSCLE_COMPLEX"};
/* The element types of arrays; 0 for what is no array. */
static const int dtypes[] = {TITIN_F64, TITIN_F32, TITIN_I32, TITIN_I64, 0, TITIN_BOOL, 0, 0};
static const size_t sizes[] = {8, 4, 4, 8, 1, 1, 1, 0};

static int known_type(const char *call, int type) {
    if (type >= MUSCLE_DOUBLE && type <= MUSCLE_RAW) return 0;
    if (type == MUSCLE_COMPLEX)
        return titin_muscle2_refuse("%s with MUSCLE_COMPLEX: a ComplexData is a class of C++, and only muscle::env takes it", call);
    return titin_muscle2_refuse("%s with the type %d, which is none of muscle_datatype_t", call, type);
}

/* ---- Ports ---- */

static int port_of(const char *call, const char *name, int sends, struct muscle2_port **port) {
    struct muscle2 *own = titin_muscle2_instance();
    char names[300] = "";
    *port = NULL;
    if (titin_muscle2_need(call)) return 1;
    if (!name) return titin_muscle2_refuse("%s: the name of the port is a NULL pointer", call);
    for (int i = 0; i < own->count; ++i) {
        struct muscle2_port *found = &own->ports[i];
        if (strcmp(found->name, name)) {
            if (strlen(names) + strlen(found->name) + 2 < sizeof names) strcat(strcat(names, " "), found->name);
            continue;
        }
        if (sends != (found->op == TITIN_O_I || found->op == TITIN_O_F))
            return titin_muscle2_refuse("%s on port '%s' of %s, which the description has among the ports that %s: change the "
                                        "description, or the program",
                                        call, name, titin_instance_name(own->handle), sends ? "receive" : "send");
        if (titin_port_is_vector(found->handle))
            return titin_muscle2_refuse("port '%s' of %s has slots, since the components that it joins have different "
                                        "multiplicities: a program of MUSCLE 2 knows ports without slots only",
                                        name, titin_instance_name(own->handle));
        *port = found;
        return 0;
    }
    return titin_muscle2_refuse("%s: there is no port '%s' on %s in the description; its ports are%s", call, name,
                                titin_instance_name(own->handle), *names ? names : " none");
}

/* ---- Sending ---- */

/* Notes that a message was sent: the next one goes a timestep later. */
static int sent(struct muscle2_port *port, int failed) {
    if (failed) return titin_muscle2_refuse_by_titin();
    port->time += titin_muscle2_instance()->dt;
    return 0;
}

int titin_muscle2_send_array(const char *name, int dtype, int rank, const int64_t *extents, const void *data) {
    static const double nothing; /* an array without elements may have no memory */
    struct muscle2_port *port;
    if (port_of("send", name, 1, &port)) return 1;
    double next = port->time + titin_muscle2_instance()->dt;
    return sent(port, titin_send(port->handle, TITIN_NO_SLOT, dtype, rank, extents, data ? data : &nothing, port->time, next));
}

int titin_muscle2_send_nil(const char *name) {
    struct muscle2_port *port;
    if (port_of("send", name, 1, &port)) return 1;
    double next = port->time + titin_muscle2_instance()->dt;
    return sent(port, titin_send_nil(port->handle, TITIN_NO_SLOT, port->time, next, NULL));
}

static int send_value(const char *name, titin_value *value) {
    struct muscle2_port *port;
    if (!value) return titin_muscle2_refuse_by_titin();
    int failed = port_of("send", name, 1, &port);
    if (!failed) {
        double next = port->time + titin_muscle2_instance()->dt;
        failed = sent(port, titin_send_value(port->handle, TITIN_NO_SLOT, value, port->time, next, NULL));
    }
    titin_value_free(value);
    return failed;
}

int titin_muscle2_send(const char *name, const void *data, size_t count, int type) {
    /* As in MUSCLE 2, the other ranks of an MPI program send nothing. */
    if (titin_muscle2_is_silent()) return 0;
    if (known_type("send", type)) return 1;
    if (count > INT64_MAX / 8)
        return titin_muscle2_refuse("send on port '%s' of %zu elements, more than there can be", name, count);
    if (!data && count) return titin_muscle2_refuse("send on port '%s' of %zu elements at a NULL pointer", name, count);
    int64_t extent = (int64_t)count;
    if (dtypes[type]) return titin_muscle2_send_array(name, dtypes[type], 1, &extent, data);
    if (type == MUSCLE_RAW) return send_value(name, titin_new_bytes(data ? data : "", extent, 1));
    size_t length = data ? strnlen(data, count) : 0;
    titin_value *text = titin_new_text(data ? data : "", (int64_t)length);
    if (text) return send_value(name, text);
    return titin_muscle2_refuse("send on port '%s' with MUSCLE_STRING: %s. Text is UTF-8; send other bytes as MUSCLE_RAW", name,
                                titin_error());
}

/* ---- Receiving ---- */

/* Begins the next use of F_INIT ports; `*again` is 0 if there is none. */
static int next_use(int *again) {
    struct muscle2 *own = titin_muscle2_instance();
    if (titin_reuse(own->handle, again)) return titin_muscle2_refuse_by_titin();
    own->in_use = *again;
    for (int i = 0; *again && i < own->count; ++i) own->ports[i].taken = 0;
    return 0;
}

/* Makes sure that the port has its next message, or is closed. */
static int wait_for(struct muscle2_port *port) {
    if (port->kept || port->closed) return 0;
    if (port->op == TITIN_F_INIT && (!titin_muscle2_instance()->in_use || port->taken)) {
        int again;
        if (next_use(&again)) return 1;
        if (!again) {
            port->closed = 1;
            return 0;
        }
    }
    if (titin_receive(port->handle, TITIN_NO_SLOT, TITIN_WAIT, &port->kept)) {
        port->kept = NULL;
        if (titin_error_kind() != TITIN_ERROR_PORT_CLOSED) return titin_muscle2_refuse_by_titin();
        port->closed = 1;
    }
    return 0;
}

int titin_muscle2_has_next(const char *name, int *has) {
    struct muscle2_port *port;
    *has = 0;
    if (port_of("has_next", name, 0, &port) || wait_for(port)) return 1;
    *has = port->kept != NULL;
    return 0;
}

/* The next message, which stays the port's. */
static int look(const char *name, struct muscle2_port **port) {
    if (port_of("receive", name, 0, port) || wait_for(*port)) return 1;
    if ((*port)->kept) return 0;
    return titin_muscle2_refuse("receive on port '%s' of %s: the sender has finished, and no more messages will come. Ask "
                                "has_next first, in C++, or receive as often as is sent",
                                name, titin_instance_name(titin_muscle2_instance()->handle));
}

/* Takes the message from the port. */
static titin_message *take(struct muscle2_port *port) {
    titin_message *message = port->kept;
    double time = titin_message_has_next(message) ? titin_message_next_timestamp(message) : titin_message_timestamp(message);
    port->kept = NULL;
    port->taken = 1;
    if (time > port->time) port->time = time;
    return message;
}

int titin_muscle2_next(const char *name, titin_message **message) {
    struct muscle2_port *port;
    *message = NULL;
    if (look(name, &port)) return 1;
    *message = take(port);
    return 0;
}

void titin_muscle2_copy(const titin_message *message, size_t element, void *to) {
    const char *from = titin_message_raw_data(message);
    int rank = titin_message_rank(message);
    int64_t elements = titin_message_elements(message), index[TITIN_MAX_RANK] = {0};
    if (rank < 2 || titin_message_order(message) == TITIN_ORDER_C) {
        if (elements) memcpy(to, from, (size_t)elements * element);
        return;
    }
    for (int64_t i = 0; i < elements; ++i) {
        int64_t offset = 0;
        for (int d = 0; d < rank; ++d) offset += index[d] * titin_message_stride(message, d);
        memcpy((char *)to + (size_t)i * element, from + offset, element);
        for (int d = rank - 1; d >= 0 && ++index[d] == titin_message_extent(message, d); --d) index[d] = 0;
    }
}

/* What a message holds, for the types of MUSCLE 2: elements one after the other. */
struct content {
    int type;
    const void *data;
    size_t count;
    union {
        double real;
        int64_t whole;
        unsigned char flag;
    } single;
};

/* The elements of an array of rank 0 or 1. */
static int content_of_array(const titin_message *message, int wanted, struct content *content) {
    int dtype = titin_message_dtype(message);
    if (titin_message_rank(message) > 1) return 1;
    content->data = titin_message_raw_data(message);
    content->count = (size_t)titin_message_elements(message);
    content->type = wanted;
    /* A byte is a byte: arrays of 8 bit whole numbers are MUSCLE_RAW. */
    if (wanted == MUSCLE_RAW) return dtype != TITIN_U8 && dtype != TITIN_I8;
    return dtypes[wanted] == 0 || dtypes[wanted] != dtype;
}

/* The content of a message as the wanted type; 1 if the message is of another type. */
static int content_of(const titin_message *message, int wanted, struct content *content) {
    const titin_value *value = titin_message_value(message);
    int64_t length = 0;
    int flag;
    content->type = wanted;
    content->data = &content->single;
    content->count = 1;
    switch (titin_message_kind(message)) {
    case TITIN_KIND_ARRAY: return content_of_array(message, wanted, content);
    case TITIN_KIND_BYTES:
        content->data = titin_value_bytes(value, &length);
        content->count = (size_t)length;
        return wanted != MUSCLE_RAW;
    case TITIN_KIND_TEXT:
        content->data = titin_value_text(value, &length);
        content->count = (size_t)length + 1;
        return wanted != MUSCLE_STRING;
    case TITIN_KIND_FLOAT: return wanted != MUSCLE_DOUBLE || titin_value_f64(value, &content->single.real);
    case TITIN_KIND_INT: return wanted != MUSCLE_INT64 || titin_value_i64(value, &content->single.whole);
    case TITIN_KIND_BOOL:
        if (titin_value_bool(value, &flag)) return 1;
        content->single.flag = (unsigned char)flag;
        return wanted != MUSCLE_BOOLEAN;
    default: return 1;
    }
}

/* What the message holds, for an error. */
static const char *described(const titin_message *message, char *room, size_t size) {
    static const char *const kinds[] = {"", "no data", "a truth value", "a whole number", "a whole number", "a real number",
                                        "text (MUSCLE_STRING)", "bytes (MUSCLE_RAW)", "", "a list", "a map"};
    static const char *const elements[] = {"", "bool (MUSCLE_BOOLEAN)", "int8 (MUSCLE_RAW)", "int16", "int32 (MUSCLE_INT32)",
                                           "int64 (MUSCLE_INT64)", "uint8 (MUSCLE_RAW)", "uint16", "uint32", "uint64", "float16",
                                           "float32 (MUSCLE_FLOAT)", "float64 (MUSCLE_DOUBLE)", "complex64", "complex128",
                                           "bfloat16"};
    int kind = titin_message_kind(message), rank = titin_message_rank(message);
    if (kind != TITIN_KIND_ARRAY) return kinds[kind];
    int length = snprintf(room, size, "an array of %s", elements[titin_message_dtype(message)]);
    if (rank > 1 && length > 0) snprintf(room + length, size - (size_t)length, " with %d dimensions (MUSCLE_COMPLEX)", rank);
    return room;
}

int titin_muscle2_receive(const char *name, void **data, size_t *count, int type) {
    struct muscle2_port *port;
    struct content content;
    char room[160];
    if (titin_muscle2_is_silent()) {
        *data = NULL;
        return 0;
    }
    if (known_type("receive", type) || look(name, &port)) return 1;
    if (content_of(port->kept, type, &content))
        return titin_muscle2_refuse("receive on port '%s' with %s: %s, holds %s", name, type_names[type],
                                    titin_message_origin(port->kept), described(port->kept, room, sizeof room));
    if (*data && content.count > *count)
        return titin_muscle2_refuse("receive on port '%s': %zu elements of %s have come, and the program's memory has room for "
                                    "%zu (the count that it gives): make it larger, or give NULL for new memory",
                                    name, content.count, type_names[type], *count);
    size_t bytes = content.count * sizes[type];
    if (!*data && !(*data = malloc(bytes ? bytes : 1)))
        return titin_muscle2_refuse("receive on port '%s': there is no memory for %zu bytes", name, bytes);
    if (bytes) memcpy(*data, content.data, type == MUSCLE_STRING ? bytes - 1 : bytes);
    if (type == MUSCLE_STRING) ((char *)*data)[bytes - 1] = '\0';
    *count = content.count;
    titin_message_free(take(port));
    return 0;
}
