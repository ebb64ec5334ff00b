/* "left" sends three elements of every type, "right" reads them: the script of elements.cpp. */
#include <complex.h>
#include <string.h>

#include "check.h"

static const signed char flags[] = {1, 0, 1};
static const int8_t i8[] = {1, INT8_MIN, 3};
static const int16_t i16[] = {1, INT16_MIN, 3};
static const int32_t i32[] = {1, INT32_MIN, 3};
static const int64_t i64[] = {1, INT64_MIN, 3};
static const uint8_t u8[] = {1, UINT8_MAX, 3};
static const uint16_t u16[] = {1, UINT16_MAX, 3};
static const uint32_t u32[] = {1, UINT32_MAX, 3};
static const uint64_t u64[] = {1, UINT64_MAX, 3};
static const float f32[] = {0.5F, -1.5F, 3.0F};
static const uint16_t bf16[] = {0x3f00, 0xbfc0, 0x4040}; /* 0.5, -1.5, 3 */
static const double f64[] = {0.5, -1.5, 3.0};
static const float c64[] = {0.5F, -2.0F, -1.5F, 0.0F, 0.0F, 3.0F};
static const double c128[] = {0.5, -2.0, -1.5, 0.0, 0.0, 3.0};

static const struct {
    int dtype;
    const void *elements;
} types[] = {{TITIN_BOOL, flags}, {TITIN_I8, i8},   {TITIN_I16, i16}, {TITIN_I32, i32}, {TITIN_I64, i64},
             {TITIN_U8, u8},      {TITIN_U16, u16}, {TITIN_U32, u32}, {TITIN_U64, u64}, {TITIN_F32, f32},
             {TITIN_F64, f64},    {TITIN_C64, c64}, {TITIN_C128, c128}, {TITIN_BF16, bf16}};

static const int64_t extents[] = {3};
static titin_port *in, *out;

/* Returns the element at a place as a value, or NULL if a value cannot have this type. */
static titin_value *number(int dtype, const void *elements, int place) {
    titin_value *made = NULL;
    if (dtype != TITIN_C64 && dtype != TITIN_C128) {
        const char *at = (const char *)elements + place * titin_dtype_size(dtype);
        titin_value *one = titin_new_array(dtype, 0, NULL, NULL, TITIN_ORDER_C, NULL, at, 0);
        double real;
        int64_t whole;
        uint64_t natural;
        int flag;
        if (titin_value_bool(one, &flag) == 0) made = titin_new_bool(flag);
        else if (titin_value_i64(one, &whole) == 0) made = titin_new_i64(whole);
        else if (titin_value_u64(one, &natural) == 0) made = titin_new_u64(natural);
        else if (titin_value_f64(one, &real) == 0) made = dtype == TITIN_F32 ? titin_new_f32((float)real) : titin_new_f64(real);
        titin_value_free(one);
    }
    return made;
}

static void left(void) {
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
        const int dtype = types[i].dtype;
        const void *elements = types[i].elements;
        titin_loan *loan;
        CHECK(titin_send(out, TITIN_NO_SLOT, dtype, 1, extents, elements, 0.0, TITIN_NO_NEXT) == 0);
        CHECK(titin_loan_new(out, TITIN_NO_SLOT, dtype, 1, extents, TITIN_ORDER_C, NULL, &loan) == 0);
        memcpy(titin_loan_data(loan), elements, 3 * (size_t)titin_dtype_size(dtype));
        CHECK(titin_send_loan(out, TITIN_NO_SLOT, &loan, 0.0, TITIN_NO_NEXT, NULL) == 0);
        titin_value *map = titin_new_map(), *list = titin_new_list();
        titin_map_set(map, "array", titin_new_array(dtype, 1, extents, NULL, TITIN_ORDER_C, NULL, elements, 0));
        titin_value *first = number(dtype, elements, 0);
        if (first) {
            titin_map_set(map, "number", first);
            for (int place = 0; place < 3; ++place) titin_list_append(list, number(dtype, elements, place));
        }
        CHECK(titin_map_set(map, "list", list) == 0);
        CHECK(titin_send_value(out, TITIN_NO_SLOT, map, 0.0, TITIN_NO_NEXT, NULL) == 0);
        titin_value_free(map);
    }
    CHECK(titin_send_nil(out, TITIN_NO_SLOT, 0.0, TITIN_NO_NEXT, NULL) == 0);
}

/* Returns whether a value equals the element at a place. */
static int is(const titin_value *value, int dtype, const void *elements, int place) {
    titin_value *wanted = number(dtype, elements, place);
    double real, wanted_real;
    uint64_t natural, wanted_natural;
    int64_t whole, wanted_whole;
    int flag, wanted_flag, same = 0;
    if (titin_value_bool(wanted, &wanted_flag) == 0) same = titin_value_bool(value, &flag) == 0 && flag == wanted_flag;
    else if (titin_value_i64(wanted, &wanted_whole) == 0)
        same = titin_value_i64(value, &whole) == 0 && whole == wanted_whole;
    else if (titin_value_u64(wanted, &wanted_natural) == 0)
        same = titin_value_u64(value, &natural) == 0 && natural == wanted_natural;
    else if (titin_value_f64(wanted, &wanted_real) == 0)
        same = titin_value_f64(value, &real) == 0 && real >= wanted_real && real <= wanted_real;
    titin_value_free(wanted);
    return same;
}

static void read_all(int dtype, const void *elements) {
    const size_t bytes = 3 * (size_t)titin_dtype_size(dtype);
    char into[3 * 16];
    titin_message *message;
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, dtype, 1, extents, NULL, TITIN_ORDER_C, into, NULL) == 0);
    CHECK(!memcmp(into, elements, bytes));
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
    const titin_value *map = titin_message_value(message), *array = titin_value_find(map, "array");
    CHECK(titin_value_dtype(array) == dtype && titin_value_elements(array) == 3);
    CHECK(titin_value_nbytes(array) == (int64_t)bytes);
    const titin_value *first = titin_value_find(map, "number"), *list = titin_value_find(map, "list");
    if (dtype != TITIN_C64 && dtype != TITIN_C128 && dtype != TITIN_BF16) {
        CHECK(is(first, dtype, elements, 0) && titin_value_size(list) == 3);
        for (int place = 0; place < 3; ++place) CHECK(is(titin_value_item(list, place), dtype, elements, place));
    }
    titin_message_free(message);
}

static void right(void) {
    int known = 0;
    for (;;) {
        titin_message *message;
        CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
        const int dtype = titin_message_dtype(message), nil = titin_message_kind(message) == TITIN_KIND_NIL;
        CHECK(nil || (titin_message_rank(message) == 1 && titin_message_extent(message, 0) == 3));
        titin_message_free(message);
        if (nil) break;
        for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
            if (types[i].dtype != dtype) continue;
            read_all(dtype, types[i].elements);
            ++known;
        }
        /* C has no type for float16. */
        for (int i = 0; dtype == TITIN_F16 && i < 2; ++i) {
            CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == 0);
            titin_message_free(message);
        }
    }
    CHECK(known >= 9);
}

int main(int argc, char **argv) {
    titin_instance *instance;
    int again;
    CHECK(argc == 2 && titin_open("o_i: out; s: in", NULL, &instance) == 0);
    out = titin_port_find(instance, "out");
    in = titin_port_find(instance, "in");
    while (titin_reuse(instance, &again) == 0 && again) {
        if (!strcmp(argv[1], "left")) left();
        else right();
    }
    CHECK(titin_close(instance) == 0);
    return 0;
}
