/* One side of an exchange, "left" or "right"; exchange.cpp and exchange.f90 follow the same script, so any two fit. */
#include <complex.h>
#include <string.h>

#include "check.h"

static titin_instance *instance;
static titin_port *in, *out;

static titin_message *next(double timestamp) {
    titin_message *message;
    CHECK(titin_receive(in, TITIN_NO_SLOT, TITIN_WAIT, &message) == TITIN_OK);
    CHECK(titin_message_timestamp(message) == timestamp && !strcmp(titin_message_port(message), "in"));
    CHECK(strstr(titin_message_origin(message), "port 'in', message from ") == titin_message_origin(message));
    return message;
}

/* Sends an array in titin's memory twice, without a copy. */
static void lend(void) {
    titin_loan *loan, *again;
    CHECK(titin_loan_new(out, TITIN_NO_SLOT, TITIN_F64, 2, (int64_t[]){100, 200}, TITIN_ORDER_C,
                         (const char *const[]){"x", "y"}, &loan) == 0);
    double *data = titin_loan_data(loan);
    for (int i = 0; i < 100; ++i)
        for (int j = 0; j < 200; ++j) data[200 * i + j] = 1000 * i + j;
    CHECK(titin_loan_find(data, 160000) == loan && titin_loan_find(data, 8) == NULL && titin_loan_find(&loan, 8) == NULL);
    again = titin_loan_retain(loan);
    /* After a refused send the loan still belongs to the caller, and its memory cannot be changed any more. */
    CHECK(titin_send_loan(out, 3, &loan, 8.5, TITIN_NO_NEXT, NULL) == TITIN_ERROR_USAGE && loan == again);
    CHECK(titin_recover(instance) == 0 && titin_loan_data(loan) == NULL);
    CHECK(strstr(titin_error(), "was handed to a send"));
    CHECK(titin_send_loan(out, TITIN_NO_SLOT, &loan, 8.5, TITIN_NO_NEXT, NULL) == 0 && loan == NULL);
    CHECK(titin_loan_data(loan) == NULL && titin_loan_data(again) == NULL);
    CHECK(titin_send_loan(out, TITIN_NO_SLOT, &again, 8.75, TITIN_NO_NEXT, NULL) == 0 && again == NULL);
    CHECK(titin_loan_new(out, TITIN_NO_SLOT, TITIN_I8, 0, NULL, TITIN_ORDER_C, NULL, &loan) == 0);
    titin_loan_free(loan);
    titin_loan_free(NULL);
}

/* Elements for which Fortran has no kind: unsigned integers (the smallest, the largest, and 2) and 16-bit real numbers. */
static const uint8_t u8[] = {0, 255, 2};
static const uint16_t u16[] = {0, UINT16_MAX, 2}, f16[] = {0, 0xc000, 0x3c00}, bf16[] = {0, 0xc000, 0x3f80};
static const uint32_t u32[] = {0, UINT32_MAX, 2};
static const uint64_t u64[] = {0, UINT64_MAX, 2};
static const struct {
    int dtype;
    const void *data;
} unusual[] = {{TITIN_U8, u8}, {TITIN_U16, u16}, {TITIN_U32, u32}, {TITIN_U64, u64}, {TITIN_F16, f16},
             {TITIN_BF16, bf16}};

static void left(void) {
    double line[10], grid[3][4];
    int32_t table[2][3];
    for (int i = 0; i < 10; ++i) line[i] = 0.5 * i;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j) table[i][j] = 10 * i + j;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) grid[i][j] = 10 * i + j;
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, (int64_t[]){10}, line, 0.0, 1.0) == 0);
    CHECK(titin_send_array(out, TITIN_NO_SLOT, TITIN_I32, 2, (int64_t[]){2, 3}, NULL, TITIN_ORDER_C,
                           (const char *const[]){"x", "y"}, table, 1.0, TITIN_NO_NEXT, NULL) == 0);
    /* Every second row and column, the columns backwards. */
    CHECK(titin_send_array(out, TITIN_NO_SLOT, TITIN_F64, 2, (int64_t[]){2, 2}, (int64_t[]){64, -16}, TITIN_ORDER_C,
                           NULL, &grid[0][3], 2.0, TITIN_NO_NEXT, NULL) == 0);
    const double complex waves[2] = {1.0 - 2.0 * I, 3.0 * I};
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_C128, 1, (int64_t[]){2}, waves, 3.0, TITIN_NO_NEXT) == 0);
    const char flags[3] = {1, 0, 1};
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_BOOL, 1, (int64_t[]){3}, flags, 4.0, TITIN_NO_NEXT) == 0);
    const double number = 2.5;
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &number, 5.0, TITIN_NO_NEXT) == 0);
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_F64, 1, (int64_t[]){0}, NULL, 6.0, TITIN_NO_NEXT) == 0);
    titin_value *overlay = titin_new_map();
    CHECK(titin_map_set(overlay, "k", titin_new_f64(7.0)) == 0);
    CHECK(titin_send_nil(out, TITIN_NO_SLOT, 7.0, TITIN_NO_NEXT, overlay) == 0);
    titin_value_free(overlay);
    titin_value *map = titin_new_map(), *list = titin_new_list();
    titin_map_set(map, "name", titin_new_text("wall", -1));
    titin_map_set(map, "flux", titin_new_f64(3.5));
    titin_map_set(map, "line", titin_new_array(TITIN_F64, 1, (int64_t[]){10}, NULL, TITIN_ORDER_C, NULL, line, 1));
    titin_list_append(list, titin_new_i64(1));
    titin_list_append(list, titin_new_text("two", 3));
    titin_list_append(list, titin_new_bool(1));
    CHECK(titin_map_set(map, "list", list) == 0);
    CHECK(titin_send_value(out, TITIN_NO_SLOT, map, 8.0, TITIN_NO_NEXT, NULL) == 0);
    titin_value_free(map);
    for (int i = 0; i < 6; ++i)
        CHECK(titin_send(out, TITIN_NO_SLOT, unusual[i].dtype, 1, (int64_t[]){3}, unusual[i].data, 8.0, TITIN_NO_NEXT) == 0);
    map = titin_new_map();
    titin_map_set(map, "bits", titin_new_array(TITIN_U32, 1, (int64_t[]){3}, NULL, TITIN_ORDER_C, NULL, u32, 1));
    titin_map_set(map, "large", titin_new_u64(UINT64_MAX));
    CHECK(titin_send_value(out, TITIN_NO_SLOT, map, 8.0, TITIN_NO_NEXT, NULL) == 0);
    titin_value_free(map);
    CHECK(titin_send(out, TITIN_NO_SLOT, TITIN_U16, 1, (int64_t[]){3}, u16, 8.0, TITIN_NO_NEXT) == 0);
    lend();
    titin_message *back = next(9.0);
    const double *again = titin_message_array(back, TITIN_F64, 1, (int64_t[]){10}, TITIN_ORDER_C);
    CHECK(titin_message_elements(back) == 10 && again[9] == 4.5);
    titin_message_free(back);
}

static void right(void) {
    titin_message *message = next(0.0);
    CHECK(titin_message_kind(message) == TITIN_KIND_ARRAY && titin_message_dtype(message) == TITIN_F64);
    CHECK(titin_message_rank(message) == 1 && titin_message_extent(message, 0) == 10);
    CHECK(titin_message_has_next(message) && titin_message_next_timestamp(message) == 1.0);
    CHECK(titin_message_stride(message, 0) == 8 && titin_message_nbytes(message) == 80);
    titin_message *line = titin_message_retain(message);
    titin_message_free(message);

    int32_t table[2][3];
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_I32, 2, (int64_t[]){2, 3}, NULL, TITIN_ORDER_C, table,
                             &message) == 0);
    CHECK(table[1][2] == 12 && table[0][1] == 1 && !strcmp(titin_message_index_name(message, 1), "y"));
    titin_message_free(message);
    double part[2][2];
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 2, (int64_t[]){2, 2}, (int64_t[]){0, 8}, TITIN_ORDER_C, part,
                             NULL) == TITIN_ERROR_USAGE);
    CHECK(strstr(titin_error(), "an array of extents [2, 2] and strides of [0, 8] bytes has elements that share memory"));
    CHECK(titin_recover(instance) == 0);
    CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 2, (int64_t[]){2, 2}, NULL, TITIN_ORDER_C, part,
                             NULL) == 0);
    CHECK(part[0][0] == 3.0 && part[0][1] == 1.0 && part[1][0] == 23.0 && part[1][1] == 21.0);
    message = next(3.0);
    const double complex *waves = titin_message_array(message, TITIN_C128, 1, (int64_t[]){2}, TITIN_ORDER_C);
    CHECK(titin_message_dtype(message) == TITIN_C128 && cimag(waves[0]) == -2.0);
    titin_message_free(message);
    message = next(4.0);
    CHECK(titin_message_dtype(message) == TITIN_BOOL && !memcmp(titin_message_raw_data(message), "\1\0\1", 3));
    titin_message_free(message);
    message = next(5.0);
    double number;
    CHECK(titin_value_f64(titin_message_value(message), &number) == 0 && number == 2.5);
    titin_message_free(message);
    message = next(6.0);
    CHECK(titin_message_rank(message) == 1 && titin_message_elements(message) == 0 && titin_message_raw_data(message));
    titin_message_free(message);
    message = next(7.0);
    CHECK(titin_message_kind(message) == TITIN_KIND_NIL && !titin_message_has_next(message));
    CHECK(titin_value_f64(titin_value_find(titin_message_settings(message), "k"), &number) == 0 && number == 7.0);
    titin_message_free(message);
    message = next(8.0);
    const titin_value *map = titin_message_value(message), *list = titin_value_find(map, "list");
    CHECK(titin_value_kind(map) == TITIN_KIND_MAP && !strcmp(titin_value_text(titin_value_find(map, "name"), NULL), "wall"));
    CHECK(titin_value_f64(titin_value_find(map, "flux"), &number) == 0 && number == 3.5);
    int64_t length = TITIN_ANY;
    const double *numbers = titin_value_array(titin_value_find(map, "line"), TITIN_F64, 1, &length, TITIN_ORDER_C);
    CHECK(length == 10 && numbers[9] == 4.5);
    int64_t whole;
    int flag;
    CHECK(titin_value_size(list) == 3 && titin_value_i64(titin_value_item(list, 0), &whole) == 0 && whole == 1);
    CHECK(!strcmp(titin_value_text(titin_value_item(list, 1), NULL), "two"));
    CHECK(titin_value_bool(titin_value_item(list, 2), &flag) == 0 && flag);
    titin_message_free(message);

    for (int i = 0; i < 6; ++i) {
        message = next(8.0);
        const void *bits = titin_message_array(message, unusual[i].dtype, 1, (int64_t[]){3}, TITIN_ORDER_C);
        CHECK(bits && !memcmp(bits, unusual[i].data, (size_t)titin_message_nbytes(message)));
        titin_message_free(message);
    }
    message = next(8.0);
    uint64_t large;
    map = titin_message_value(message);
    CHECK(titin_value_u64(titin_value_find(map, "large"), &large) == 0 && large == UINT64_MAX);
    const uint32_t *bits = titin_value_array(titin_value_find(map, "bits"), TITIN_U32, 1, (int64_t[]){3}, TITIN_ORDER_C);
    CHECK(bits && bits[1] == UINT32_MAX);
    titin_message_free(message);
    message = next(8.0);
    const uint16_t *last = titin_message_array(message, TITIN_U16, 1, (int64_t[]){3}, TITIN_ORDER_C);
    CHECK(last && last[1] == UINT16_MAX);
    titin_message_free(message);

    static double lent[100][200];
    for (int i = 0; i < 2; ++i) {
        memset(lent, 0, sizeof lent);
        CHECK(titin_receive_into(in, TITIN_NO_SLOT, TITIN_WAIT, TITIN_F64, 2, (int64_t[]){100, 200}, NULL, TITIN_ORDER_C,
                                 lent, &message) == 0);
        CHECK(titin_message_timestamp(message) == 8.5 + 0.25 * i && lent[99][198] == 99198.0 && lent[3][0] == 3000.0);
        titin_message_free(message);
    }

    CHECK(titin_try_receive(in, TITIN_NO_SLOT, &message) == 0 && message == NULL);
    CHECK(titin_receive(in, TITIN_NO_SLOT, 0.01, &message) == TITIN_ERROR_TIMEOUT && message == NULL);
    CHECK(titin_send_value(out, TITIN_NO_SLOT, titin_message_value(line), 9.0, TITIN_NO_NEXT, NULL) == 0);
    titin_message_free(line);
}

static void settings(void) {
    double k, dt, list[2], table[4];
    int64_t n, count, columns, ints[3];
    int flag;
    const char *text;
    CHECK(titin_setting_f64(instance, "k", &k) == 0 && k == 0.5);
    CHECK(titin_setting_i64(instance, "n", &n) == 0 && n == 3);
    CHECK(titin_setting_bool(instance, "flag", &flag) == 0 && flag);
    CHECK(titin_setting_text(instance, "text", &text) == 0 && !strcmp(text, "some text"));
    CHECK(titin_setting_quantity(instance, "dt", "s", &dt) == 0 && dt == 0.01);
    CHECK(titin_setting_f64s(instance, "floats", NULL, 0, &count) == 0 && count == 2);
    CHECK(titin_setting_f64s(instance, "floats", list, 2, &count) == 0 && list[1] == 2.5);
    CHECK(titin_setting_i64s(instance, "ints", ints, 3, &count) == 0 && count == 3 && ints[2] == 3);
    CHECK(titin_setting_table(instance, "table", table, 4, &count, &columns) == 0 && columns == 2 && table[2] == 3.0);
    CHECK(titin_setting_type(instance, "absent") == TITIN_TYPE_NONE);
}

int main(int argc, char **argv) {
    CHECK(argc == 2 && titin_open("o_i: out; s: in", NULL, &instance) == 0);
    out = titin_port_find(instance, "out");
    in = titin_port_find(instance, "in");
    CHECK(titin_port_operator(out) == TITIN_O_I && titin_port_is_connected(in) && titin_port_slots(in) == 1);
    int again;
    while (titin_reuse(instance, &again) == 0 && again) {
        titin_region *region = titin_region_begin(instance, "exchange");
        settings();
        if (!strcmp(argv[1], "left")) left();
        else right();
        CHECK(titin_region_end(region) == 0);
    }
    CHECK(titin_close(instance) == 0);
    return 0;
}
