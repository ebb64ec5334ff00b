//! The part of `titin.h` and `titin_path.h` that the extension uses. A test compares the numbers, and the arguments of
//! each function, with the header.

use std::ffi::{CStr, c_char, c_double, c_float, c_int, c_void};
use std::sync::OnceLock;

/// Opaque types of the header.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)] #[allow(non_camel_case_types)] pub struct $name { _private: [u8; 0] })*
    };
}

opaque!(titin_instance titin_port titin_message titin_value titin_options titin_region titin_output);
opaque!(titin_opening titin_ready titin_loan titin_decomposition titin_field);
opaque!(titin_path titin_path_listener titin_path_options titin_path_request);

pub const OK: c_int = 0;
pub const USAGE: c_int = 1;
pub const SETTING: c_int = 3;
pub const TYPE_MISMATCH: c_int = 4;
pub const MEMBER_FAILED: c_int = 19;
pub const NO_MEMORY: c_int = 10;
pub const INTERRUPTED: c_int = 13;
pub const CLOSED: c_int = 15;
pub const PENDING: c_int = 16;
pub const TIMEOUT: c_int = 5;

pub const CHECKS_ERROR: c_int = 0;
pub const CHECKS_WARN: c_int = 1;
pub const RECEIVE_ALL_RANKS: c_int = 0;
pub const RECEIVE_ROOT_ONLY: c_int = 1;
pub const OVERLAYS_INHERITED: c_int = 0;
pub const OVERLAYS_EXPLICIT: c_int = 1;
pub const OPERATORS: [&str; 4] = ["f_init", "o_i", "s", "o_f"];

pub const ORDER_C: c_int = 0;
pub const ORDER_FORTRAN: c_int = 1;

pub const NIL: c_int = 1;
pub const BOOL: c_int = 2;
pub const INT: c_int = 3;
pub const UINT: c_int = 4;
pub const FLOAT: c_int = 5;
pub const TEXT: c_int = 6;
pub const BYTES: c_int = 7;
pub const ARRAY: c_int = 8;
pub const LIST: c_int = 9;
pub const MAP: c_int = 10;

pub const TYPE_NONE: c_int = 0;
pub const TYPE_TEXT: c_int = 4;

/// libtitin's names of the element types, in the order of their numbers from 1 on.
fn element_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let name = |number| {
            // SAFETY: libtitin gives a constant in ASCII that ends with a NUL, or NULL after the
            // last type.
            let name = unsafe { titin_dtype_name(number) };
            if name.is_null() {
                return None;
            }
            // SAFETY: as above.
            unsafe { CStr::from_ptr(name) }.to_str().ok()
        };
        (1..).map_while(name).collect()
    })
}

/// The name of the element type `number`. `number` comes from libtitin.
pub fn element_name(number: c_int) -> &'static str {
    element_names()[number as usize - 1]
}

/// The number of the element type `name`.
pub fn element_type(name: &str) -> Option<c_int> {
    let place = element_names().iter().position(|known| *known == name)?;
    Some(place as c_int + 1)
}

pub const MAX_RANK: usize = 32;
pub const NO_SLOT: c_int = -1;
pub const WAIT: c_double = f64::MAX;
pub const NO_NEXT: c_double = -f64::MAX;

pub type Interrupted = unsafe extern "C" fn(*mut c_void) -> c_int;
pub type Find = unsafe extern "C" fn(*mut c_void, *const c_char, *mut *mut c_void) -> c_int;
pub type Call = unsafe extern "C" fn(*mut c_void, *const titin_message, *mut titin_output) -> c_int;
pub type Dispose = unsafe extern "C" fn(*mut c_void);

/// As in titin_path.h.
#[repr(C)]
pub struct titin_path_layout {
    pub dtype: c_int,
    pub rank: c_int,
    pub extents: *const i64,
    pub strides: *const i64,
    pub order: c_int,
    pub names: *const *const c_char,
}

/// As in titin.h.
#[repr(C)]
pub struct titin_communicator {
    pub size: usize,
    pub rank: c_int,
    pub ranks: c_int,
    pub context: *mut c_void,
    pub broadcast: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, i64) -> c_int>,
    pub gather: Option<unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, i64) -> c_int>,
}

unsafe extern "C" {
    pub fn titin_error() -> *const c_char;
    pub fn titin_error_kind() -> c_int;
    pub fn titin_error_member() -> *const c_char;
    pub fn titin_error_slot() -> c_int;
    pub fn titin_set_error(text: *const c_char);
    pub fn titin_version() -> *const c_char;
    pub fn titin_dtype_name(dtype: c_int) -> *const c_char;
    pub fn titin_dtype_size(dtype: c_int) -> c_int;

    pub fn titin_options_new() -> *mut titin_options;
    pub fn titin_options_free(options: *mut titin_options);
    pub fn titin_options_instance(options: *mut titin_options, name: *const c_char) -> c_int;
    pub fn titin_options_manager(options: *mut titin_options, manager: *const c_char) -> c_int;
    pub fn titin_options_port(options: *mut titin_options, name: *const c_char, op: c_int)
    -> c_int;
    pub fn titin_options_unchecked(options: *mut titin_options, reason: *const c_char) -> c_int;
    pub fn titin_options_checks(options: *mut titin_options, checks: c_int) -> c_int;
    pub fn titin_options_receive(options: *mut titin_options, ranks: c_int) -> c_int;
    pub fn titin_options_overlays(options: *mut titin_options, overlays: c_int) -> c_int;
    pub fn titin_options_language(options: *mut titin_options, language: *const c_char) -> c_int;
    pub fn titin_options_exceptions(options: *mut titin_options) -> c_int;
    pub fn titin_options_communicator(
        options: *mut titin_options,
        communicator: *const titin_communicator,
    ) -> c_int;
    pub fn titin_options_interrupt(
        options: *mut titin_options,
        interrupted: Interrupted,
        data: *mut c_void,
    ) -> c_int;
    pub fn titin_options_filters(
        options: *mut titin_options,
        find: Find,
        call: Call,
        drop: Dispose,
        data: *mut c_void,
    ) -> c_int;

    pub fn titin_rank(instance: *const titin_instance) -> c_int;
    pub fn titin_ranks(instance: *const titin_instance) -> c_int;

    pub fn titin_decomposition_new(dims: c_int, shape: *const i64) -> *mut titin_decomposition;
    pub fn titin_decomposition_free(decomposition: *mut titin_decomposition);
    pub fn titin_decomposition_grid(
        decomposition: *mut titin_decomposition,
        processes: *const c_int,
    ) -> c_int;
    pub fn titin_decomposition_spread(
        decomposition: *mut titin_decomposition,
        dim: c_int,
        spread: c_int,
        block: i64,
    ) -> c_int;
    pub fn titin_decomposition_bounds(
        decomposition: *mut titin_decomposition,
        dim: c_int,
        count: c_int,
        bounds: *const i64,
    ) -> c_int;
    pub fn titin_decomposition_ranks(
        decomposition: *mut titin_decomposition,
        order: c_int,
    ) -> c_int;
    pub fn titin_decomposition_box(
        decomposition: *mut titin_decomposition,
        lower: *const i64,
        upper: *const i64,
    ) -> c_int;
    pub fn titin_decomposition_indices(
        decomposition: *mut titin_decomposition,
        count: i64,
        indices: *const i64,
    ) -> c_int;
    pub fn titin_decomposition_region(
        decomposition: *mut titin_decomposition,
        lower: *const i64,
        upper: *const i64,
    ) -> c_int;
    pub fn titin_decomposition_halo(
        decomposition: *mut titin_decomposition,
        below: *const i64,
        above: *const i64,
    ) -> c_int;
    pub fn titin_decomposition_order(
        decomposition: *mut titin_decomposition,
        order: c_int,
    ) -> c_int;
    pub fn titin_field_new(
        port: *mut titin_port,
        decomposition: *const titin_decomposition,
        arrays: c_int,
        dtypes: *const c_int,
        field: *mut *mut titin_field,
    ) -> c_int;
    pub fn titin_field_free(field: *mut titin_field);
    pub fn titin_field_bytes(field: *const titin_field, array: c_int) -> i64;
    pub fn titin_field_extents(field: *const titin_field, extents: *mut i64) -> c_int;
    pub fn titin_field_owned(field: *const titin_field, dim: c_int, indices: *mut i64) -> i64;
    pub fn titin_field_layout(
        field: *mut titin_field,
        array: c_int,
        extents: *const i64,
        strides: *const i64,
    ) -> c_int;
    pub fn titin_field_send(
        field: *mut titin_field,
        arrays: *const *const c_void,
        timestamp: c_double,
        next_timestamp: c_double,
    ) -> c_int;
    pub fn titin_field_receive(
        field: *mut titin_field,
        arrays: *const *mut c_void,
        timeout: c_double,
        timestamp: *mut c_double,
        next_timestamp: *mut c_double,
    ) -> c_int;
    pub fn titin_field_receive_at(
        field: *mut titin_field,
        arrays: *const *mut c_void,
        at: f64,
        timeout: c_double,
        timestamp: *mut c_double,
        next_timestamp: *mut c_double,
    ) -> c_int;
    pub fn titin_field_withdraw(field: *mut titin_field) -> c_int;

    pub fn titin_open(
        ports: *const c_char,
        options: *const titin_options,
        instance: *mut *mut titin_instance,
    ) -> c_int;
    pub fn titin_open_begin(
        ports: *const c_char,
        options: *const titin_options,
        opening: *mut *mut titin_opening,
    ) -> c_int;
    pub fn titin_open_end(opening: *mut titin_opening, instance: *mut *mut titin_instance)
    -> c_int;
    pub fn titin_open_cancel(opening: *mut titin_opening);
    pub fn titin_cancel(
        instance: *mut titin_instance,
        port: *const titin_port,
        slot: c_int,
    ) -> c_int;
    pub fn titin_skip_deadlocks(instance: *mut titin_instance) -> c_int;
    pub fn titin_options_ready(
        options: *mut titin_options,
        ready: *mut titin_ready,
        data: *mut c_void,
    ) -> c_int;
    pub fn titin_ready_new() -> *mut titin_ready;
    pub fn titin_ready_free(ready: *mut titin_ready);
    pub fn titin_ready_next(
        ready: *mut titin_ready,
        timeout: c_double,
        data: *mut *mut c_void,
    ) -> c_int;
    pub fn titin_ready_descriptor(ready: *const titin_ready) -> c_int;
    pub fn titin_close(instance: *mut titin_instance) -> c_int;
    pub fn titin_fail(instance: *mut titin_instance, text: *const c_char) -> c_int;
    pub fn titin_reuse(instance: *mut titin_instance, again: *mut c_int) -> c_int;
    pub fn titin_instance_name(instance: *const titin_instance) -> *const c_char;
    pub fn titin_workdir(instance: *const titin_instance) -> *const c_char;
    pub fn titin_convert(
        number: f64,
        unit: *const c_char,
        wanted: *const c_char,
        converted: *mut f64,
    ) -> c_int;
    pub fn titin_time_unit(instance: *const titin_instance) -> *const c_char;
    pub fn titin_will_stop(
        instance: *const titin_instance,
        timestamp: f64,
        stops: *mut c_int,
    ) -> c_int;
    pub fn titin_scale(instance: *const titin_instance) -> *const titin_value;
    pub fn titin_log(instance: *mut titin_instance, level: c_int, text: *const c_char) -> c_int;
    pub fn titin_skip_checks(instance: *mut titin_instance, reason: *const c_char) -> c_int;
    pub fn titin_region_begin(
        instance: *mut titin_instance,
        name: *const c_char,
    ) -> *mut titin_region;
    pub fn titin_region_end(region: *mut titin_region) -> c_int;

    pub fn titin_setting_type(instance: *const titin_instance, name: *const c_char) -> c_int;
    pub fn titin_setting_f64(
        instance: *mut titin_instance,
        name: *const c_char,
        value: *mut c_double,
    ) -> c_int;
    pub fn titin_setting_quantity(
        instance: *mut titin_instance,
        name: *const c_char,
        unit: *const c_char,
        value: *mut c_double,
    ) -> c_int;
    pub fn titin_setting_i64(
        instance: *mut titin_instance,
        name: *const c_char,
        value: *mut i64,
    ) -> c_int;
    pub fn titin_setting_bool(
        instance: *mut titin_instance,
        name: *const c_char,
        value: *mut c_int,
    ) -> c_int;
    pub fn titin_setting_f64s(
        instance: *mut titin_instance,
        name: *const c_char,
        values: *mut c_double,
        capacity: i64,
        count: *mut i64,
    ) -> c_int;
    pub fn titin_setting_i64s(
        instance: *mut titin_instance,
        name: *const c_char,
        values: *mut i64,
        capacity: i64,
        count: *mut i64,
    ) -> c_int;
    pub fn titin_setting_table(
        instance: *mut titin_instance,
        name: *const c_char,
        values: *mut c_double,
        capacity: i64,
        rows: *mut i64,
        columns: *mut i64,
    ) -> c_int;
    pub fn titin_setting_value(
        instance: *mut titin_instance,
        name: *const c_char,
        value: *mut *mut titin_value,
    ) -> c_int;
    pub fn titin_settings(instance: *mut titin_instance, settings: *mut *mut titin_value) -> c_int;
    pub fn titin_overlay(instance: *mut titin_instance, settings: *mut *mut titin_value) -> c_int;

    pub fn titin_port_find(instance: *mut titin_instance, name: *const c_char) -> *mut titin_port;
    pub fn titin_port_count(instance: *const titin_instance) -> c_int;
    pub fn titin_port_at(instance: *mut titin_instance, index: c_int) -> *mut titin_port;
    pub fn titin_port_name(port: *const titin_port) -> *const c_char;
    pub fn titin_port_operator(port: *const titin_port) -> c_int;
    pub fn titin_port_is_vector(port: *const titin_port) -> c_int;
    pub fn titin_port_is_resizable(port: *const titin_port) -> c_int;
    pub fn titin_port_is_connected(port: *const titin_port) -> c_int;
    pub fn titin_port_slots(port: *const titin_port) -> c_int;
    pub fn titin_port_set_slots(port: *mut titin_port, slots: c_int) -> c_int;

    pub fn titin_send_array(
        port: *mut titin_port,
        slot: c_int,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        names: *const *const c_char,
        data: *const c_void,
        timestamp: c_double,
        next_timestamp: c_double,
        settings: *const titin_value,
    ) -> c_int;
    pub fn titin_send_nil(
        port: *mut titin_port,
        slot: c_int,
        timestamp: c_double,
        next_timestamp: c_double,
        settings: *const titin_value,
    ) -> c_int;
    pub fn titin_loan_new(
        port: *mut titin_port,
        slot: c_int,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        order: c_int,
        names: *const *const c_char,
        loan: *mut *mut titin_loan,
    ) -> c_int;
    pub fn titin_loan_data(loan: *mut titin_loan) -> *mut c_void;
    pub fn titin_send_loan(
        port: *mut titin_port,
        slot: c_int,
        loan: *mut *mut titin_loan,
        timestamp: c_double,
        next_timestamp: c_double,
        settings: *const titin_value,
    ) -> c_int;
    pub fn titin_loan_retain(loan: *mut titin_loan) -> *mut titin_loan;
    pub fn titin_loan_free(loan: *mut titin_loan);
    pub fn titin_send_value(
        port: *mut titin_port,
        slot: c_int,
        value: *const titin_value,
        timestamp: c_double,
        next_timestamp: c_double,
        settings: *const titin_value,
    ) -> c_int;

    pub fn titin_receive(
        port: *mut titin_port,
        slot: c_int,
        timeout: c_double,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_try_receive(
        port: *mut titin_port,
        slot: c_int,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_receive_any(
        ports: *const *mut titin_port,
        count: c_int,
        timeout: c_double,
        index: *mut c_int,
        slot: *mut c_int,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_receive_into(
        port: *mut titin_port,
        slot: c_int,
        timeout: c_double,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        data: *mut c_void,
        message: *mut *mut titin_message,
    ) -> c_int;

    pub fn titin_dlpack_device(kind: c_int) -> *const c_char;

    pub fn titin_message_retain(message: *mut titin_message) -> *mut titin_message;
    pub fn titin_message_free(message: *mut titin_message);
    pub fn titin_message_port(message: *const titin_message) -> *const c_char;
    pub fn titin_message_timestamp(message: *const titin_message) -> c_double;
    pub fn titin_message_has_next(message: *const titin_message) -> c_int;
    pub fn titin_message_next_timestamp(message: *const titin_message) -> c_double;
    pub fn titin_message_value(message: *const titin_message) -> *const titin_value;
    pub fn titin_message_settings(message: *const titin_message) -> *const titin_value;

    pub fn titin_new_nil() -> *mut titin_value;
    pub fn titin_new_bool(flag: c_int) -> *mut titin_value;
    pub fn titin_new_i64(number: i64) -> *mut titin_value;
    pub fn titin_new_u64(number: u64) -> *mut titin_value;
    pub fn titin_new_f64(number: c_double) -> *mut titin_value;
    pub fn titin_new_f32(number: c_float) -> *mut titin_value;
    pub fn titin_new_text(text: *const c_char, length: i64) -> *mut titin_value;
    pub fn titin_new_bytes(bytes: *const c_void, length: i64, borrow: c_int) -> *mut titin_value;
    pub fn titin_new_array(
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        names: *const *const c_char,
        data: *const c_void,
        borrow: c_int,
    ) -> *mut titin_value;
    pub fn titin_new_list() -> *mut titin_value;
    pub fn titin_new_map() -> *mut titin_value;
    pub fn titin_new_settings() -> *mut titin_value;
    pub fn titin_list_append(list: *mut titin_value, item: *mut titin_value) -> c_int;
    pub fn titin_map_set(
        map: *mut titin_value,
        name: *const c_char,
        item: *mut titin_value,
    ) -> c_int;
    pub fn titin_value_free(value: *mut titin_value);
    pub fn titin_value_kind(value: *const titin_value) -> c_int;
    pub fn titin_value_is_f32(value: *const titin_value) -> c_int;
    pub fn titin_value_is_settings(value: *const titin_value) -> c_int;
    pub fn titin_value_bool(value: *const titin_value, flag: *mut c_int) -> c_int;
    pub fn titin_value_i64(value: *const titin_value, number: *mut i64) -> c_int;
    pub fn titin_value_u64(value: *const titin_value, number: *mut u64) -> c_int;
    pub fn titin_value_f64(value: *const titin_value, number: *mut c_double) -> c_int;
    pub fn titin_value_text(value: *const titin_value, length: *mut i64) -> *const c_char;
    pub fn titin_value_bytes(value: *const titin_value, length: *mut i64) -> *const c_void;
    pub fn titin_value_size(value: *const titin_value) -> i64;
    pub fn titin_value_item(value: *const titin_value, index: i64) -> *const titin_value;
    pub fn titin_value_name(value: *const titin_value, index: i64) -> *const c_char;
    pub fn titin_value_dtype(value: *const titin_value) -> c_int;
    pub fn titin_value_rank(value: *const titin_value) -> c_int;
    pub fn titin_value_extent(value: *const titin_value, dimension: c_int) -> i64;
    pub fn titin_value_order(value: *const titin_value) -> c_int;
    pub fn titin_value_index_name(value: *const titin_value, dimension: c_int) -> *const c_char;
    pub fn titin_value_raw_data(value: *const titin_value) -> *const c_void;
    pub fn titin_value_nbytes(value: *const titin_value) -> i64;

    pub fn titin_output_array(
        out: *mut titin_output,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        order: c_int,
    ) -> *mut c_void;
    pub fn titin_output_value(out: *mut titin_output, value: *const titin_value) -> c_int;
    pub fn titin_output_timestamp(
        out: *mut titin_output,
        timestamp: c_double,
        next_timestamp: c_double,
    ) -> c_int;

    pub fn titin_path_options_new() -> *mut titin_path_options;
    pub fn titin_path_options_free(options: *mut titin_path_options);
    pub fn titin_path_options_key(options: *mut titin_path_options, key: *const c_char) -> c_int;
    pub fn titin_path_options_key_file(
        options: *mut titin_path_options,
        file: *const c_char,
    ) -> c_int;
    pub fn titin_path_options_streams(options: *mut titin_path_options, streams: c_int) -> c_int;
    pub fn titin_path_options_pacing(
        options: *mut titin_path_options,
        bytes_per_second: i64,
    ) -> c_int;
    pub fn titin_path_options_buffers(
        options: *mut titin_path_options,
        send: i64,
        receive: i64,
    ) -> c_int;
    pub fn titin_path_options_patience(
        options: *mut titin_path_options,
        seconds: c_double,
    ) -> c_int;
    pub fn titin_path_options_outage(options: *mut titin_path_options, seconds: c_double) -> c_int;
    pub fn titin_path_options_interrupt(
        options: *mut titin_path_options,
        interrupted: Interrupted,
        data: *mut c_void,
    ) -> c_int;
    pub fn titin_path_open(
        addresses: *const c_char,
        name: *const c_char,
        options: *const titin_path_options,
        path: *mut *mut titin_path,
    ) -> c_int;
    pub fn titin_path_listen(
        address: *const c_char,
        options: *const titin_path_options,
        listener: *mut *mut titin_path_listener,
    ) -> c_int;
    pub fn titin_path_listener_address(listener: *const titin_path_listener) -> *const c_char;
    pub fn titin_path_accept(
        listener: *mut titin_path_listener,
        timeout: c_double,
        path: *mut *mut titin_path,
    ) -> c_int;
    pub fn titin_path_listener_free(listener: *mut titin_path_listener);
    pub fn titin_path_close(path: *mut titin_path, timeout: c_double) -> c_int;
    pub fn titin_path_name(path: *const titin_path) -> *const c_char;
    pub fn titin_path_streams(path: *const titin_path) -> c_int;
    pub fn titin_path_send_array(
        path: *mut titin_path,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        names: *const *const c_char,
        data: *const c_void,
        timeout: c_double,
    ) -> c_int;
    pub fn titin_path_receive(
        path: *mut titin_path,
        timeout: c_double,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_path_receive_array(
        path: *mut titin_path,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        data: *mut c_void,
        timeout: c_double,
    ) -> c_int;
    pub fn titin_path_exchange_array_message(
        path: *mut titin_path,
        data: *const c_void,
        layout: *const titin_path_layout,
        timeout: c_double,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_path_set_streams(path: *mut titin_path, streams: c_int) -> c_int;
    pub fn titin_path_set_piece(path: *mut titin_path, bytes: i64) -> c_int;
    pub fn titin_path_set_pacing(path: *mut titin_path, bytes_per_second: i64) -> c_int;
    pub fn titin_path_set_buffers(path: *mut titin_path, send: i64, receive: i64) -> c_int;
    pub fn titin_path_figure(path: *const titin_path, figure: c_int) -> c_double;
    pub fn titin_path_send_parts(
        path: *mut titin_path,
        count: c_int,
        parts: *const *const c_void,
        lengths: *const i64,
        timeout: c_double,
    ) -> c_int;
    pub fn titin_path_receive_parts(
        path: *mut titin_path,
        count: c_int,
        parts: *const *mut c_void,
        rooms: *const i64,
        timeout: c_double,
        length: *mut i64,
    ) -> c_int;
    pub fn titin_path_cycle(
        from: *mut titin_path,
        to: *mut titin_path,
        memory: *mut c_void,
        room: i64,
        timeout: c_double,
        length: *mut i64,
    ) -> c_int;
    pub fn titin_path_cycle_message(
        from: *mut titin_path,
        to: *mut titin_path,
        timeout: c_double,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_path_relay(
        one: *mut titin_path,
        other: *mut titin_path,
        timeout: c_double,
    ) -> c_int;
    pub fn titin_path_isend_parts(
        path: *mut titin_path,
        count: c_int,
        parts: *const *const c_void,
        lengths: *const i64,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_isend_array(
        path: *mut titin_path,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        names: *const *const c_char,
        data: *const c_void,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_ireceive(
        path: *mut titin_path,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_ireceive_parts(
        path: *mut titin_path,
        count: c_int,
        parts: *const *mut c_void,
        rooms: *const i64,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_ireceive_array(
        path: *mut titin_path,
        dtype: c_int,
        rank: c_int,
        extents: *const i64,
        strides: *const i64,
        order: c_int,
        data: *mut c_void,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_ibarrier(
        path: *mut titin_path,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_icycle(
        from: *mut titin_path,
        to: *mut titin_path,
        memory: *mut c_void,
        room: i64,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_icycle_message(
        from: *mut titin_path,
        to: *mut titin_path,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_irelay(
        one: *mut titin_path,
        other: *mut titin_path,
        request: *mut *mut titin_path_request,
    ) -> c_int;
    pub fn titin_path_test(request: *mut titin_path_request, done: *mut c_int) -> c_int;
    pub fn titin_path_wait(request: *mut titin_path_request, timeout: c_double) -> c_int;
    pub fn titin_path_wait_any(
        count: c_int,
        requests: *const *mut titin_path_request,
        timeout: c_double,
        index: *mut c_int,
    ) -> c_int;
    pub fn titin_path_cancel(request: *mut titin_path_request, cancelled: *mut c_int) -> c_int;
    pub fn titin_path_request_length(request: *const titin_path_request) -> i64;
    pub fn titin_path_request_message(
        request: *const titin_path_request,
        message: *mut *mut titin_message,
    ) -> c_int;
    pub fn titin_path_request_ready(
        request: *mut titin_path_request,
        list: *mut titin_ready,
        data: *mut c_void,
    ) -> c_int;
    pub fn titin_path_request_free(request: *mut titin_path_request);
    pub fn titin_path_barrier(path: *mut titin_path, timeout: c_double) -> c_int;
    pub fn titin_path_flush(path: *mut titin_path, timeout: c_double) -> c_int;
}
