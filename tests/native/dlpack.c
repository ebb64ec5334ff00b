/* Arrays of DLPack: sent from strided memory, received as a tensor and into one, and tensors that are refused. The other end
 * sends back what it gets. The layout below is that of version 1 of DLPack, as a library's dlpack.h has it. */
#include <string.h>

#include "check.h"

typedef struct {
    uint32_t major, minor;
} DLPackVersion;
typedef struct {
    int32_t device_type, device_id;
} DLDevice;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

enum { READ_ONLY = 1, CPU = 1, CUDA = 2, CUDA_HOST = 3, ROCM = 10, FLOAT = 2 };

static titin_instance *instance;
static titin_port *out, *in;
static int deleted;

static void deleter(DLManagedTensorVersioned *self) {
    CHECK(self->manager_ctx == &deleted);
    ++deleted;
}

/* A tensor of doubles over memory of this program. */
static DLManagedTensorVersioned doubles(double *data, int rank, int64_t *shape, int64_t *strides) {
    return (DLManagedTensorVersioned){
        .version = {1, 1},
        .manager_ctx = &deleted,
        .deleter = deleter,
        .dl_tensor = {data, {CPU, 0}, rank, {FLOAT, 64, 1}, shape, strides, 0},
    };
}

static int send(const DLManagedTensorVersioned *tensor) {
    return titin_send_dlpack(out, TITIN_NO_SLOT, tensor, 1.5, TITIN_NO_NEXT, NULL);
}

static int receive(DLManagedTensorVersioned *tensor, titin_message **message) {
    return titin_receive_into_dlpack(in, TITIN_NO_SLOT, TITIN_WAIT, tensor, message);
}

/* The columns 1 and 3 of a table, from its second number on. */
static DLManagedTensorVersioned columns(double table[3][4]) {
    static int64_t shape[] = {3, 2}, strides[] = {4, 2};
    DLManagedTensorVersioned tensor = doubles(&table[0][0], 2, shape, strides);
    tensor.dl_tensor.byte_offset = sizeof(double);
    return tensor;
}

static void fill(double table[3][4]) {
    for (int i = 0; i < 12; ++i) table[i / 4][i % 4] = i;
}

/* A message as a tensor, which outlives the message. */
static void as_a_tensor(void) {
    double table[3][4];
    fill(table);
    DLManagedTensorVersioned sent = columns(table), *tensor;
    CHECK(send(&sent) == 0);
    memset(table, 0, sizeof table);
    titin_message *message;
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0 && titin_message_timestamp(message) == 1.5);
    const void *elements = titin_message_raw_data(message);
    CHECK(titin_message_dlpack(message, &tensor) == 0);
    titin_message_free(message);
    /* Further messages would come to lie in the memory of the first, had the tensor not kept it. */
    for (int i = 0; i < 20; ++i) {
        CHECK(send(&sent) == 0 && titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
        titin_message_free(message);
    }
    const DLTensor *array = &tensor->dl_tensor;
    CHECK(tensor->version.major == 1 && tensor->flags == READ_ONLY && tensor->deleter);
    CHECK(array->data == elements && array->byte_offset == 0 && array->device.device_type == CPU && array->device.device_id == 0);
    CHECK(array->dtype.code == FLOAT && array->dtype.bits == 64 && array->dtype.lanes == 1);
    CHECK(array->ndim == 2 && array->shape[0] == 3 && array->shape[1] == 2 && array->strides[0] == 2 && array->strides[1] == 1);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 2; ++j) CHECK(((const double *)array->data)[2 * i + j] == 4 * i + 1 + 2 * j);
    /* Such a tensor can be sent on, and not be received into. */
    CHECK(send(tensor) == 0);
    CHECK(receive(tensor, NULL) == TITIN_ERROR_TYPE_MISMATCH && strstr(titin_error(), "it may only be read"));
    CHECK(titin_recover(instance) == 0);
    titin_dlpack_free(tensor);
    titin_dlpack_free(NULL);
}

/* The message that was sent on comes into strided memory, whose other elements stay. */
static void into_a_tensor(void) {
    double table[3][4];
    for (int i = 0; i < 12; ++i) table[i / 4][i % 4] = -1;
    DLManagedTensorVersioned room = columns(table);
    room.dl_tensor.device.device_type = CUDA_HOST;
    titin_message *message;
    CHECK(receive(&room, &message) == 0 && titin_message_timestamp(message) == 1.5);
    titin_message_free(message);
    for (int i = 0; i < 12; ++i) CHECK(table[i / 4][i % 4] == (i % 2 ? i : -1));
    CHECK(deleted == 0);
    titin_dlpack_free(&room);
    CHECK(deleted == 1);
    room.deleter = NULL;
    titin_dlpack_free(&room);
    CHECK(deleted == 1);
}

static void refused(const DLManagedTensorVersioned *tensor, int error, const char *words) {
    DLManagedTensorVersioned copy = *tensor;
    CHECK(send(tensor) == error && strstr(titin_error(), words));
    CHECK(titin_recover(instance) == 0);
    CHECK(receive(&copy, NULL) == error && strstr(titin_error(), words));
    CHECK(titin_recover(instance) == 0);
}

/* Memory of devices is never touched: the addresses here are of nothing. */
static void wrong(void) {
    int64_t shape[] = {2}, strides[] = {1};
    DLManagedTensorVersioned tensor = doubles((double *)16, 1, shape, strides);
    tensor.dl_tensor.device = (DLDevice){CUDA, 5};
    refused(&tensor, TITIN_ERROR_TYPE_MISMATCH, "in the memory of a device (CUDA, DLPack device type 2, number 5)");
    tensor.dl_tensor.device.device_type = ROCM;
    refused(&tensor, TITIN_ERROR_TYPE_MISMATCH, "ROCm");
    tensor.dl_tensor.device.device_type = -7;
    refused(&tensor, TITIN_ERROR_TYPE_MISMATCH, "(unknown, DLPack device type -7, ");
    tensor.dl_tensor.device.device_type = CPU;
    tensor.version.major = 2;
    refused(&tensor, TITIN_ERROR_TYPE_MISMATCH, "of DLPack 2.1, and titin reads version 1");
    tensor.version.major = 1;
    tensor.dl_tensor.dtype.lanes = 4;
    refused(&tensor, TITIN_ERROR_TYPE_MISMATCH, "DLPack code 2 with 64 bits and 4 lanes");
    tensor.dl_tensor.dtype = (DLDataType){10, 8, 1};
    refused(&tensor, TITIN_ERROR_TYPE_MISMATCH, "DLPack code 10 with 8 bits");
    tensor.dl_tensor.dtype = (DLDataType){FLOAT, 64, 1};
    strides[0] = INT64_MAX / 2;
    refused(&tensor, TITIN_ERROR_USAGE, "is too large");
    strides[0] = 1;
    shape[0] = -2;
    refused(&tensor, TITIN_ERROR_USAGE, "extents [-2]");
    shape[0] = 2;
    tensor.dl_tensor.ndim = -1;
    refused(&tensor, TITIN_ERROR_USAGE, "-1 extents");
    tensor.dl_tensor.ndim = 1;
    tensor.dl_tensor.data = NULL;
    refused(&tensor, TITIN_ERROR_USAGE, "NULL was given for the data");
    CHECK(send(NULL) == TITIN_ERROR_USAGE && strstr(titin_error(), "no tensor") && titin_recover(instance) == 0);
    CHECK(receive(NULL, NULL) == TITIN_ERROR_USAGE && titin_recover(instance) == 0);
    CHECK(titin_message_dlpack(NULL, NULL) == TITIN_ERROR_USAGE);
    CHECK(!titin_dlpack_device(CPU) && !titin_dlpack_device(CUDA_HOST) && !strcmp(titin_dlpack_device(CUDA), "CUDA"));
}

/* Other data than an array, a number without dimensions, and an array without elements. */
static void other(void) {
    DLManagedTensorVersioned *tensor = (DLManagedTensorVersioned *)&deleted;
    titin_message *message;
    titin_value *text = titin_new_text("no array", -1);
    CHECK(titin_send_value(out, TITIN_NO_SLOT, text, 1.0, TITIN_NO_NEXT, NULL) == 0);
    titin_value_free(text);
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    CHECK(titin_message_dlpack(message, &tensor) == TITIN_ERROR_TYPE_MISMATCH && !tensor);
    CHECK(strstr(titin_error(), "port 'in'") && strstr(titin_error(), "expected an array, found") && titin_recover(instance) == 0);
    titin_message_free(message);

    double number = 2.5;
    int64_t nothing[] = {0};
    DLManagedTensorVersioned single = doubles(&number, 0, NULL, NULL), empty = doubles(NULL, 1, nothing, NULL);
    CHECK(send(&single) == 0 && send(&empty) == 0);
    number = 0;
    CHECK(receive(&single, NULL) == 0 && number == 2.5);
    CHECK(receive(&empty, NULL) == 0);
}

int main(void) {
    int again;
    titin_options *options = titin_options_new();
    CHECK(titin_options_unchecked(options, "asks and gets answers in turn") == 0);
    CHECK(titin_open("o_i: out; s: in", options, &instance) == 0);
    titin_options_free(options);
    out = titin_port_find(instance, "out");
    in = titin_port_find(instance, "in");
    CHECK(titin_reuse(instance, &again) == 0 && again);
    as_a_tensor();
    into_a_tensor();
    wrong();
    other();
    CHECK(titin_close(instance) == 0);
    return 0;
}
