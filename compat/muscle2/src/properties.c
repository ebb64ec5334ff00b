/* Properties: the settings of the description, as MUSCLE 2 names them and as text. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A text that grows. */
struct text {
    char *begin;
    size_t size;
    FILE *stream;
};

static int begin(struct text *text) {
    text->begin = NULL;
    text->stream = open_memstream(&text->begin, &text->size);
    return text->stream ? 0 : titin_muscle2_refuse("there is no memory for a property");
}

static int end(struct text *text, char **result) {
    if (fclose(text->stream)) return titin_muscle2_refuse("there is no memory for a property");
    *result = text->begin;
    return 0;
}

/* The shortest form that reads back as the same number, with a point or an exponent as Java writes it. */
static void write_real(FILE *stream, double number) {
    char digits[40];
    for (int precision = 15; precision <= 17; ++precision) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) break;
    }
    fputs(digits, stream);
    if (!strpbrk(digits, ".en")) fputs(".0", stream);
}

static void write_value(FILE *stream, const titin_value *value) {
    int64_t whole = 0;
    double real = 0.0;
    int flag = 0;
    switch (titin_value_kind(value)) {
    case TITIN_KIND_TEXT: fputs(titin_value_text(value, NULL), stream); break;
    case TITIN_KIND_INT:
        titin_value_i64(value, &whole);
        fprintf(stream, "%lld", (long long)whole);
        break;
    case TITIN_KIND_FLOAT:
        titin_value_f64(value, &real);
        write_real(stream, real);
        break;
    case TITIN_KIND_BOOL:
        titin_value_bool(value, &flag);
        fputs(flag ? "true" : "false", stream);
        break;
    case TITIN_KIND_LIST:
        for (int64_t i = 0; i < titin_value_size(value); ++i) {
            fputc(i ? ',' : '[', stream);
            write_value(stream, titin_value_item(value, i));
        }
        fputc(']', stream);
        break;
    default: break;
    }
}

/* The name of a property without that of this instance before it; with the name of another instance NULL. */
static const char *own_name(const char *property) {
    const char *own = titin_instance_name(titin_muscle2_instance()->handle), *colon = strchr(property, ':');
    if (!colon) return property;
    size_t length = (size_t)(colon - property);
    return strlen(own) == length && !strncmp(property, own, length) ? colon + 1 : NULL;
}

int titin_muscle2_no_property(const char *property) {
    const char *name = titin_muscle2_kernel_name();
    if (own_name(property))
        return titin_muscle2_refuse("there is no property '%s' for %s: add a setting of this name to the description",
                                    property, name);
    return titin_muscle2_refuse("property '%s' is of another instance than %s: titin gives an instance its own settings and "
                                "those for all. Make it a setting without an instance",
                                property, name);
}

int titin_muscle2_property(const char *name, char **result) {
    *result = NULL;
    if (titin_muscle2_need("get_property")) return 1;
    if (!name) return titin_muscle2_refuse("get_property: the name is a NULL pointer");
    titin_instance *handle = titin_muscle2_instance()->handle;
    name = own_name(name);
    if (!name || titin_setting_type(handle, name) == TITIN_TYPE_NONE) return 0;
    titin_value *value;
    struct text text;
    if (titin_setting_value(handle, name, &value)) return titin_muscle2_refuse_by_titin();
    int failed = begin(&text);
    if (!failed) {
        write_value(text.stream, value);
        failed = end(&text, result);
    }
    titin_value_free(value);
    return failed;
}

int titin_muscle2_properties(char **result) {
    titin_value *settings;
    struct text text;
    *result = NULL;
    if (titin_muscle2_need("get_properties")) return 1;
    if (titin_settings(titin_muscle2_instance()->handle, &settings)) return titin_muscle2_refuse_by_titin();
    int failed = begin(&text);
    for (int64_t i = 0; !failed && i < titin_value_size(settings); ++i) {
        const char *name = titin_value_name(settings, i), *dot = strrchr(name, '.');
        if (dot) fprintf(text.stream, "%.*s:%s=", (int)(dot - name), name, dot + 1);
        else fprintf(text.stream, "%s=", name);
        write_value(text.stream, titin_value_item(settings, i));
        fputc('\n', text.stream);
    }
    if (!failed) failed = end(&text, result);
    titin_value_free(settings);
    return failed;
}
