/* One instance alone: how it is opened, what it knows, unconnected ports, and values that are built and read. solo.cpp and
 * solo.f90 follow the same script. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static titin_instance *instance;

static int near(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }

static void known(void) {
    char here[4096], version[64];
    snprintf(version, sizeof version, "%d.%d.%d", TITIN_VERSION_MAJOR, TITIN_VERSION_MINOR, TITIN_VERSION_PATCH);
    CHECK(!strcmp(titin_version(), version) && !strcmp(version, getenv("RELEASE")));
    CHECK(!strcmp(titin_instance_name(instance), "solo"));
    CHECK(!strcmp(titin_workdir(instance), getcwd(here, sizeof here)));
    CHECK(!strcmp(titin_time_unit(instance), "min"));
    CHECK(titin_log(instance, TITIN_LOG_INFO, "alone, and well") == 0);
    CHECK(titin_log(instance, 1000, "too loud") == TITIN_ERROR_USAGE && titin_recover(instance) == 0);
    CHECK(!strcmp(titin_error_name(titin_error_kind()), "TITIN_ERROR_USAGE") && !titin_error_name(99));
    CHECK(titin_skip_checks(instance, "shows that it can") == 0);
}

static void scales(void) {
    const titin_value *scale = titin_scale(instance), *dx = titin_value_find(scale, "dx");
    double number;
    CHECK(titin_value_f64(titin_value_find(scale, "dt"), &number) == 0 && near(number, 360.0));
    CHECK(titin_value_f64(titin_value_find(scale, "total"), &number) == 0 && near(number, 144000.0));
    CHECK(titin_value_size(dx) == 2 && titin_value_f64(titin_value_item(dx, 1), &number) == 0 && near(number, 2.5e-6));
    CHECK(titin_value_f64(titin_value_item(titin_value_find(scale, "extent"), 0), &number) == 0 && near(number, 1200.0));
    int stops;
    CHECK(titin_will_stop(instance, 2400.0 - 6.0, &stops) == 0 && !stops);
    CHECK(titin_will_stop(instance, 2400.0, &stops) == 0 && stops);
    CHECK(titin_will_stop(NULL, 0.0, &stops) == TITIN_ERROR_USAGE && stops);
}

static void units(void) {
    double number;
    CHECK(titin_convert(1.5, "h", titin_time_unit(instance), &number) == 0 && number == 90.0);
    CHECK(titin_convert(0.1, "km/h", "km/h", &number) == 0 && number == 0.1);
    CHECK(titin_convert(1.0, "h", "m", &number) == TITIN_ERROR_USAGE && isnan(number));
    CHECK(titin_convert(1.0, "hx", "s", &number) == TITIN_ERROR_USAGE && strstr(titin_error(), "hx"));
    CHECK(titin_convert(1.0, NULL, "s", &number) == TITIN_ERROR_USAGE && titin_convert(1.0, "h", "s", NULL) == TITIN_ERROR_USAGE);
    CHECK(titin_setting_quantity(instance, "width", "m", &number) == 0 && near(number, 0.0025));
    CHECK(titin_setting_quantity(instance, "width", "um", &number) == 0 && near(number, 2500.0));
    CHECK(titin_setting_f64(instance, "width", &number) == TITIN_ERROR_SETTING && strstr(titin_error(), "in the unit"));
    CHECK(titin_recover(instance) == 0);
    CHECK(titin_setting_quantity(instance, "day", "h", &number) == 0 && near(number, 24.0));
    CHECK(titin_setting_quantity(instance, "plain", "km", &number) == 0 && number == 4.0);
    CHECK(titin_setting_quantity(instance, "width", "s", &number) == TITIN_ERROR_SETTING && isnan(number));
    CHECK(strstr(titin_error(), "width") && titin_recover(instance) == 0);
    CHECK(titin_setting_quantity(instance, "plain", "furlongs", &number) == TITIN_ERROR_USAGE && isnan(number));
    CHECK(strstr(titin_error(), "correct the program") && titin_recover(instance) == 0);
}

static void settings(void) {
    titin_value *value;
    int64_t number;
    CHECK(titin_setting_value(instance, "points", &value) == 0 && titin_value_kind(value) == TITIN_KIND_LIST);
    CHECK(titin_value_i64(titin_value_item(value, 2), &number) == 0 && number == 3);
    CHECK(titin_setting_i64(instance, "half", &number) == TITIN_ERROR_SETTING && strstr(titin_error(), "type float (2.5)"));
    CHECK(titin_recover(instance) == 0);
    titin_value_free(value);
    CHECK(titin_settings(instance, &value) == 0 && titin_value_find(value, "solo.width"));
    CHECK(titin_value_kind(value) == TITIN_KIND_MAP && titin_value_name(value, 0));
    CHECK(!strncmp(titin_value_summary(value), "a map of ", 9));
    titin_value_free(value);
    CHECK(titin_overlay(instance, &value) == 0 && titin_value_size(value) == 0);
    titin_value_free(value);
}

static void ports(void) {
    static const char *const names[] = {"start", "out", "wide", "in", "end"};
    CHECK(titin_port_count(instance) == 5);
    for (int i = 0; i < 5; ++i) {
        titin_port *port = titin_port_at(instance, i);
        CHECK(port == titin_port_find(instance, titin_port_name(port)) && !titin_port_is_connected(port));
        int known = 0;
        for (int j = 0; j < 5; ++j) known += !strcmp(titin_port_name(port), names[j]);
        CHECK(known == 1);
    }
    titin_port *wide = titin_port_find(instance, "wide");
    CHECK(titin_port_is_vector(wide) && !titin_port_is_vector(titin_port_find(instance, "out")));
    CHECK(titin_port_set_slots(wide, 7) == 0 && titin_port_slots(wide) == 7);
}

/* An unconnected port has a default. Messages to an unconnected port are dropped. */
static void unconnected(void) {
    titin_port *start = titin_port_find(instance, "start"), *end = titin_port_find(instance, "end");
    titin_value *value = titin_new_f64(1.5);
    titin_message *message = NULL, *fallback = titin_message_new(value, 2.0, TITIN_NO_NEXT);
    double number;
    titin_value_free(value);
    CHECK(titin_receive(start, TITIN_NO_SLOT, TITIN_WAIT, &message) == TITIN_ERROR_USAGE && !message);
    CHECK(titin_recover(instance) == 0);
    if (!titin_port_is_connected(start)) message = titin_message_retain(fallback);
    titin_message_free(fallback);
    CHECK(titin_message_timestamp(message) == 2.0 && !titin_message_has_next(message));
    CHECK(titin_value_f64(titin_message_value(message), &number) == 0 && number == 1.5);
    titin_message_free(message);
    CHECK(titin_send(end, TITIN_NO_SLOT, TITIN_F64, 0, NULL, &number, 2.0, TITIN_NO_NEXT) == 0);
}

/* An array of a message as a tensor of DLPack, which is sent on: the port has no conduit. */
static void tensors(void) {
    const double number = 2.5;
    titin_value *value = titin_new_array(TITIN_F64, 0, NULL, NULL, TITIN_ORDER_C, NULL, &number, 0);
    titin_message *message = titin_message_new(value, 0.0, TITIN_NO_NEXT);
    struct DLManagedTensorVersioned *tensor;
    titin_value_free(value);
    CHECK(titin_message_dlpack(message, &tensor) == 0 && tensor);
    titin_message_free(message);
    CHECK(titin_send_dlpack(titin_port_find(instance, "end"), TITIN_NO_SLOT, tensor, 2.0, TITIN_NO_NEXT, NULL) == 0);
    CHECK(titin_receive_into_dlpack(NULL, TITIN_NO_SLOT, TITIN_WAIT, tensor, &message) == TITIN_ERROR_USAGE);
    titin_dlpack_free(tensor);
    CHECK(titin_dlpack_device(2) && !titin_dlpack_device(1));
}

static void values(void) {
    static const unsigned char bytes[3] = {1, 0, 255};
    const int32_t table[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    titin_value *list = titin_new_list(), *map = titin_new_map();
    int64_t length;
    uint64_t large;
    CHECK(titin_list_append(list, list) == TITIN_ERROR_USAGE && strstr(titin_error(), "an item of itself"));
    CHECK(titin_list_append(list, titin_new_nil()) == 0 && titin_list_append(list, titin_new_u64(UINT64_MAX)) == 0);
    CHECK(titin_list_append(list, titin_new_bytes(bytes, 3, 1)) == 0);
    titin_value *marked = titin_new_settings();
    CHECK(titin_map_set(marked, "k", titin_new_f32(0.5f)) == 0 && titin_map_set(map, "marked", marked) == 0);
    CHECK(titin_list_append(list, titin_new_array(TITIN_I32, 2, (int64_t[]){3, 2}, NULL, TITIN_ORDER_FORTRAN,
                                                  (const char *const[]){"row", "column"}, table, 0)) == 0);
    CHECK(titin_map_set(map, "all", list) == 0);
    titin_message *message = titin_message_new(map, 0.0, 1.0);
    titin_value_free(map);
    const titin_value *all = titin_value_find(titin_message_value(message), "all"), *array = titin_value_item(all, 3);
    CHECK(titin_value_kind(titin_value_item(all, 0)) == TITIN_KIND_NIL);
    CHECK(titin_value_is_settings(titin_value_find(titin_message_value(message), "marked")) && !titin_value_is_f32(array));
    CHECK(titin_value_u64(titin_value_item(all, 1), &large) == 0 && large == UINT64_MAX);
    CHECK(titin_value_i64(titin_value_item(all, 1), &length) == TITIN_ERROR_TYPE_MISMATCH && length == 0);
    CHECK(strstr(titin_error(), "a whole number of type int64 (-9223372036854775808 to 9223372036854775807)"));
    CHECK(strstr(titin_error(), "the value is the whole number 18446744073709551615"));
    CHECK(!strcmp(titin_error_in("C++"), titin_error()));
    CHECK(!memcmp(titin_value_bytes(titin_value_item(all, 2), &length), bytes, 3) && length == 3);
    CHECK(titin_value_dtype(array) == TITIN_I32 && titin_value_rank(array) == 2);
    CHECK(titin_value_extent(array, 0) == 3 && titin_value_extent(array, 1) == 2);
    CHECK(titin_value_order(array) == TITIN_ORDER_FORTRAN);
    CHECK(titin_value_stride(array, 0) == 4 && titin_value_stride(array, 1) == 12);
    CHECK(!strcmp(titin_value_index_name(array, 1), "column") && titin_value_elements(array) == 6);
    CHECK(titin_value_nbytes(array) == 24 && ((const int32_t *)titin_value_raw_data(array))[5] == 6);
    titin_message_free(message);
    titin_value *pair = titin_new_array(TITIN_F32, 1, (int64_t[]){2}, NULL, TITIN_ORDER_C, NULL, (float[]){1.0f, 2.0f}, 0);
    message = titin_message_new(pair, 0.0, TITIN_NO_NEXT);
    titin_value_free(pair);
    CHECK(titin_message_kind(message) == TITIN_KIND_ARRAY && titin_message_order(message) == TITIN_ORDER_C);
    CHECK(titin_message_nbytes(message) == 8 && titin_message_stride(message, 0) == 4);
    titin_message_free(message);
}

int main(void) {
    titin_options *options = titin_options_new();
    CHECK(titin_options_instance(options, "solo") == 0 && titin_options_language(options, "C11") == 0);
    CHECK(titin_options_manager(options, getenv("TITIN_MANAGER")) == 0);
    CHECK(titin_options_port(options, "start", TITIN_F_INIT) == 0 && titin_options_port(options, "end", TITIN_O_F) == 0);
    CHECK(titin_options_unchecked(options, "shows what it knows") == 0);
    CHECK(titin_options_checks(options, TITIN_CHECKS_ERROR) == 0);
    CHECK(titin_options_receive(options, TITIN_RECEIVE_ALL_RANKS) == 0);
    CHECK(titin_options_overlays(options, TITIN_OVERLAYS_INHERITED) == 0);
    CHECK(titin_open("o_i: out, wide[]; s: in", options, &instance) == 0);
    titin_options_free(options);
    int again;
    CHECK(titin_reuse(instance, &again) == 0 && again);
    known();
    scales();
    units();
    settings();
    ports();
    unconnected();
    tensors();
    values();
    titin_region *late = titin_region_begin(instance, "late");
    CHECK(titin_reuse(instance, &again) == 0 && !again);
    CHECK(titin_close(instance) == 0);
    CHECK(titin_region_end(late) == 0 && titin_region_end(NULL) == TITIN_ERROR_USAGE);
    return 0;
}
