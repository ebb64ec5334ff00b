! The bare interfaces of titin.h: what each does, who frees, what waits and which errors there are is said there.
! Handles are type(c_ptr); text ends with c_null_char; what may be NULL in C and is no handle is optional here.
! Programs use the module titin, which is built on this one.
module titin_c
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_funptr, c_int, c_int64_t, c_ptr
   implicit none
   private :: c_char, c_double, c_funptr, c_int, c_int64_t, c_ptr

   integer(c_int), parameter :: titin_ok = 0
   integer(c_int), parameter :: titin_error_usage = 1
   integer(c_int), parameter :: titin_error_call_order = 2
   integer(c_int), parameter :: titin_error_setting = 3
   integer(c_int), parameter :: titin_error_type_mismatch = 4
   integer(c_int), parameter :: titin_error_timeout = 5
   integer(c_int), parameter :: titin_error_port_closed = 6
   integer(c_int), parameter :: titin_error_peer_lost = 7
   integer(c_int), parameter :: titin_error_deadlock = 8
   integer(c_int), parameter :: titin_error_connection = 9
   integer(c_int), parameter :: titin_error_no_memory = 10
   integer(c_int), parameter :: titin_error_forked = 11
   integer(c_int), parameter :: titin_error_internal = 12
   integer(c_int), parameter :: titin_error_interrupted = 13
   integer(c_int), parameter :: titin_error_filter = 14
   integer(c_int), parameter :: titin_error_closed = 15
   integer(c_int), parameter :: titin_f_init = 1
   integer(c_int), parameter :: titin_o_i = 2
   integer(c_int), parameter :: titin_s = 3
   integer(c_int), parameter :: titin_o_f = 4
   integer(c_int), parameter :: titin_bool = 1
   integer(c_int), parameter :: titin_i8 = 2
   integer(c_int), parameter :: titin_i16 = 3
   integer(c_int), parameter :: titin_i32 = 4
   integer(c_int), parameter :: titin_i64 = 5
   integer(c_int), parameter :: titin_u8 = 6
   integer(c_int), parameter :: titin_u16 = 7
   integer(c_int), parameter :: titin_u32 = 8
   integer(c_int), parameter :: titin_u64 = 9
   integer(c_int), parameter :: titin_f16 = 10
   integer(c_int), parameter :: titin_f32 = 11
   integer(c_int), parameter :: titin_f64 = 12
   integer(c_int), parameter :: titin_c64 = 13
   integer(c_int), parameter :: titin_c128 = 14
   integer(c_int), parameter :: titin_order_c = 0
   integer(c_int), parameter :: titin_order_fortran = 1
   integer(c_int), parameter :: titin_kind_nil = 1
   integer(c_int), parameter :: titin_kind_bool = 2
   integer(c_int), parameter :: titin_kind_int = 3
   integer(c_int), parameter :: titin_kind_uint = 4
   integer(c_int), parameter :: titin_kind_float = 5
   integer(c_int), parameter :: titin_kind_text = 6
   integer(c_int), parameter :: titin_kind_bytes = 7
   integer(c_int), parameter :: titin_kind_array = 8
   integer(c_int), parameter :: titin_kind_list = 9
   integer(c_int), parameter :: titin_kind_map = 10
   integer(c_int), parameter :: titin_type_none = 0
   integer(c_int), parameter :: titin_type_bool = 1
   integer(c_int), parameter :: titin_type_int = 2
   integer(c_int), parameter :: titin_type_float = 3
   integer(c_int), parameter :: titin_type_text = 4
   integer(c_int), parameter :: titin_type_ints = 5
   integer(c_int), parameter :: titin_type_floats = 6
   integer(c_int), parameter :: titin_type_table = 7
   integer(c_int), parameter :: titin_log_debug = 10
   integer(c_int), parameter :: titin_log_info = 20
   integer(c_int), parameter :: titin_log_warning = 30
   integer(c_int), parameter :: titin_log_error = 40
   integer(c_int), parameter :: titin_log_critical = 50
   integer(c_int), parameter :: titin_no_slot = -1, titin_max_rank = 32
   real(c_double), parameter :: titin_wait = huge(1.0_c_double), titin_no_next = -huge(1.0_c_double)

   interface
      function titin_error() result(answer) bind(C)
         import :: c_ptr
         type(c_ptr) :: answer
      end function

      function titin_error_kind() result(answer) bind(C)
         import :: c_int
         integer(c_int) :: answer
      end function

      function titin_error_name(kind) result(answer) bind(C)
         import :: c_int, c_ptr
         integer(c_int), value :: kind
         type(c_ptr) :: answer
      end function

      function titin_explain(stream) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: stream
         integer(c_int) :: answer
      end function

      subroutine titin_set_error(text) bind(C)
         import :: c_char
         character(kind=c_char), intent(in) :: text(*)
      end subroutine

      function titin_version() result(answer) bind(C)
         import :: c_ptr
         type(c_ptr) :: answer
      end function

      function titin_options_new() result(answer) bind(C)
         import :: c_ptr
         type(c_ptr) :: answer
      end function

      subroutine titin_options_free(options) bind(C)
         import :: c_ptr
         type(c_ptr), value :: options
      end subroutine

      function titin_options_instance(options, name) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: options
         integer(c_int) :: answer
      end function

      function titin_options_manager(options, manager) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: manager(*)
         type(c_ptr), value :: options
         integer(c_int) :: answer
      end function

      function titin_options_port(options, name, op) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: options
         integer(c_int), value :: op
         integer(c_int) :: answer
      end function

      function titin_options_unchecked(options, reason) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: reason(*)
         type(c_ptr), value :: options
         integer(c_int) :: answer
      end function

      function titin_options_language(options, language) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: language(*)
         type(c_ptr), value :: options
         integer(c_int) :: answer
      end function

      function titin_options_exceptions(options) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: options
         integer(c_int) :: answer
      end function

      function titin_open(ports, options, instance) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in), optional :: ports(*)
         type(c_ptr), value :: options
         type(c_ptr), intent(out) :: instance
         integer(c_int) :: answer
      end function

      function titin_close(instance) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         integer(c_int) :: answer
      end function

      function titin_fail(instance, text) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: text(*)
         type(c_ptr), value :: instance
         integer(c_int) :: answer
      end function

      function titin_reuse(instance, again) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         integer(c_int), intent(out) :: again
         integer(c_int) :: answer
      end function

      function titin_recover(instance) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         integer(c_int) :: answer
      end function

      function titin_instance_name(instance) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: instance
         type(c_ptr) :: answer
      end function

      function titin_workdir(instance) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: instance
         type(c_ptr) :: answer
      end function

      function titin_scale(instance) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: instance
         type(c_ptr) :: answer
      end function

      function titin_log(instance, level, text) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: text(*)
         type(c_ptr), value :: instance
         integer(c_int), value :: level
         integer(c_int) :: answer
      end function

      function titin_skip_checks(instance, reason) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: reason(*)
         type(c_ptr), value :: instance
         integer(c_int) :: answer
      end function

      function titin_region_begin(instance, name) result(answer) bind(C)
         import :: c_char, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         type(c_ptr) :: answer
      end function

      function titin_region_end(instance, region) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance, region
         integer(c_int) :: answer
      end function

      function titin_on_interrupt(instance, interrupted, data) result(answer) bind(C)
         import :: c_funptr, c_int, c_ptr
         type(c_ptr), value :: instance, data
         type(c_funptr), value :: interrupted
         integer(c_int) :: answer
      end function

      function titin_host(count, names, ports, entries, data, options) result(answer) bind(C)
         import :: c_funptr, c_int, c_ptr
         type(c_ptr), intent(in) :: names(*)
         type(c_ptr), intent(in), optional :: ports(*)
         type(c_funptr), intent(in) :: entries(*)
         type(c_ptr), intent(in), optional :: data(*)
         integer(c_int), value :: count
         type(c_ptr), value :: options
         integer(c_int) :: answer
      end function

      function titin_setting_type(instance, name) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         integer(c_int) :: answer
      end function

      function titin_setting_f64(instance, name, value) result(answer) bind(C)
         import :: c_char, c_double, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         real(c_double), intent(out) :: value
         integer(c_int) :: answer
      end function

      function titin_setting_quantity(instance, name, unit, value) result(answer) bind(C)
         import :: c_char, c_double, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         character(kind=c_char), intent(in) :: unit(*)
         type(c_ptr), value :: instance
         real(c_double), intent(out) :: value
         integer(c_int) :: answer
      end function

      function titin_setting_i64(instance, name, value) result(answer) bind(C)
         import :: c_char, c_int, c_int64_t, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), intent(out) :: value
         integer(c_int) :: answer
      end function

      function titin_setting_bool(instance, name, value) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         integer(c_int), intent(out) :: value
         integer(c_int) :: answer
      end function

      function titin_setting_text(instance, name, value) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: value
         integer(c_int) :: answer
      end function

      function titin_setting_f64s(instance, name, values, capacity, count) result(answer) bind(C)
         import :: c_char, c_double, c_int, c_int64_t, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         real(c_double), intent(out), optional :: values(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out) :: count
         integer(c_int) :: answer
      end function

      function titin_setting_i64s(instance, name, values, capacity, count) result(answer) bind(C)
         import :: c_char, c_int, c_int64_t, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), intent(out), optional :: values(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out) :: count
         integer(c_int) :: answer
      end function

      function titin_setting_table(instance, name, values, capacity, rows, columns) result(answer) bind(C)
         import :: c_char, c_double, c_int, c_int64_t, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         real(c_double), intent(out), optional :: values(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out) :: rows, columns
         integer(c_int) :: answer
      end function

      function titin_setting_value(instance, name, value) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: value
         integer(c_int) :: answer
      end function

      function titin_settings(instance, settings) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: settings
         integer(c_int) :: answer
      end function

      function titin_overlay(instance, settings) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: settings
         integer(c_int) :: answer
      end function

      function titin_port_find(instance, name) result(answer) bind(C)
         import :: c_char, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         type(c_ptr) :: answer
      end function

      function titin_port_count(instance) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         integer(c_int) :: answer
      end function

      function titin_port_at(instance, index) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
         integer(c_int), value :: index
         type(c_ptr) :: answer
      end function

      function titin_port_name(port) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: port
         type(c_ptr) :: answer
      end function

      function titin_port_operator(port) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int) :: answer
      end function

      function titin_port_is_vector(port) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int) :: answer
      end function

      function titin_port_is_resizable(port) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int) :: answer
      end function

      function titin_port_is_connected(port) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int) :: answer
      end function

      function titin_port_slots(port) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int) :: answer
      end function

      function titin_port_set_slots(port, slots) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int), value :: slots
         integer(c_int) :: answer
      end function

      function titin_send(port, slot, dtype, rank, extents, data, timestamp, next_timestamp) result(answer) bind(C)
         import :: c_double, c_int, c_int64_t, c_ptr
         integer(c_int64_t), intent(in) :: extents(*)
         type(c_ptr), value :: port, data
         integer(c_int), value :: slot, dtype, rank
         real(c_double), value :: timestamp, next_timestamp
         integer(c_int) :: answer
      end function

      function titin_send_array(port, slot, dtype, rank, extents, strides, order, names, data, timestamp, next_timestamp, &
         settings) result(answer) bind(C)
         import :: c_double, c_int, c_int64_t, c_ptr
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(in), optional :: names(*)
         type(c_ptr), value :: port, data, settings
         integer(c_int), value :: slot, dtype, rank, order
         real(c_double), value :: timestamp, next_timestamp
         integer(c_int) :: answer
      end function

      function titin_send_nil(port, slot, timestamp, next_timestamp, settings) result(answer) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: port, settings
         integer(c_int), value :: slot
         real(c_double), value :: timestamp, next_timestamp
         integer(c_int) :: answer
      end function

      function titin_send_value(port, slot, value, timestamp, next_timestamp, settings) result(answer) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: port, value, settings
         integer(c_int), value :: slot
         real(c_double), value :: timestamp, next_timestamp
         integer(c_int) :: answer
      end function

      function titin_receive(port, slot, timeout, message) result(answer) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int), value :: slot
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
         integer(c_int) :: answer
      end function

      function titin_try_receive(port, slot, message) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int), value :: slot
         type(c_ptr), intent(out) :: message
         integer(c_int) :: answer
      end function

      function titin_receive_any(ports, count, timeout, index, slot, message) result(answer) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), intent(in) :: ports(*)
         integer(c_int), value :: count
         real(c_double), value :: timeout
         integer(c_int), intent(out) :: index, slot
         type(c_ptr), intent(out) :: message
         integer(c_int) :: answer
      end function

      function titin_receive_into(port, slot, timeout, dtype, rank, extents, strides, order, data, message) result(answer) &
         bind(C)
         import :: c_double, c_int, c_int64_t, c_ptr
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), value :: port, data
         integer(c_int), value :: slot, dtype, rank, order
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
         integer(c_int) :: answer
      end function

      function titin_message_retain(message) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: message
         type(c_ptr) :: answer
      end function

      subroutine titin_message_free(message) bind(C)
         import :: c_ptr
         type(c_ptr), value :: message
      end subroutine

      function titin_message_new(value, timestamp, next_timestamp) result(answer) bind(C)
         import :: c_double, c_ptr
         type(c_ptr), value :: value
         real(c_double), value :: timestamp, next_timestamp
         type(c_ptr) :: answer
      end function

      function titin_message_timestamp(message) result(answer) bind(C)
         import :: c_double, c_ptr
         type(c_ptr), value :: message
         real(c_double) :: answer
      end function

      function titin_message_has_next(message) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: message
         integer(c_int) :: answer
      end function

      function titin_message_next_timestamp(message) result(answer) bind(C)
         import :: c_double, c_ptr
         type(c_ptr), value :: message
         real(c_double) :: answer
      end function

      function titin_message_kind(message) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: message
         integer(c_int) :: answer
      end function

      function titin_message_dtype(message) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: message
         integer(c_int) :: answer
      end function

      function titin_message_rank(message) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: message
         integer(c_int) :: answer
      end function

      function titin_message_extent(message, dimension) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: message
         integer(c_int), value :: dimension
         integer(c_int64_t) :: answer
      end function

      function titin_message_stride(message, dimension) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: message
         integer(c_int), value :: dimension
         integer(c_int64_t) :: answer
      end function

      function titin_message_order(message) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: message
         integer(c_int) :: answer
      end function

      function titin_message_index_name(message, dimension) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: message
         integer(c_int), value :: dimension
         type(c_ptr) :: answer
      end function

      function titin_message_data(message) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: message
         type(c_ptr) :: answer
      end function

      function titin_message_elements(message) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: message
         integer(c_int64_t) :: answer
      end function

      function titin_message_nbytes(message) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: message
         integer(c_int64_t) :: answer
      end function

      function titin_message_value(message) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: message
         type(c_ptr) :: answer
      end function

      function titin_message_settings(message) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: message
         type(c_ptr) :: answer
      end function

      function titin_new_nil() result(answer) bind(C)
         import :: c_ptr
         type(c_ptr) :: answer
      end function

      function titin_new_bool(flag) result(answer) bind(C)
         import :: c_int, c_ptr
         integer(c_int), value :: flag
         type(c_ptr) :: answer
      end function

      function titin_new_i64(number) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         integer(c_int64_t), value :: number
         type(c_ptr) :: answer
      end function

      function titin_new_u64(number) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         integer(c_int64_t), value :: number
         type(c_ptr) :: answer
      end function

      function titin_new_f64(number) result(answer) bind(C)
         import :: c_double, c_ptr
         real(c_double), value :: number
         type(c_ptr) :: answer
      end function

      function titin_new_text(text, length) result(answer) bind(C)
         import :: c_char, c_int64_t, c_ptr
         character(kind=c_char), intent(in) :: text(*)
         integer(c_int64_t), value :: length
         type(c_ptr) :: answer
      end function

      function titin_new_bytes(bytes, length, borrow) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: bytes
         integer(c_int64_t), value :: length
         integer(c_int), value :: borrow
         type(c_ptr) :: answer
      end function

      function titin_new_array(dtype, rank, extents, strides, order, names, data, borrow) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(in), optional :: names(*)
         integer(c_int), value :: dtype, rank, order, borrow
         type(c_ptr), value :: data
         type(c_ptr) :: answer
      end function

      function titin_new_list() result(answer) bind(C)
         import :: c_ptr
         type(c_ptr) :: answer
      end function

      function titin_new_map() result(answer) bind(C)
         import :: c_ptr
         type(c_ptr) :: answer
      end function

      function titin_list_append(list, item) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: list, item
         integer(c_int) :: answer
      end function

      function titin_map_set(map, name, item) result(answer) bind(C)
         import :: c_char, c_int, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: map, item
         integer(c_int) :: answer
      end function

      subroutine titin_value_free(value) bind(C)
         import :: c_ptr
         type(c_ptr), value :: value
      end subroutine

      function titin_value_kind(value) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: value
         integer(c_int) :: answer
      end function

      function titin_value_bool(value, flag) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: value
         integer(c_int), intent(out) :: flag
         integer(c_int) :: answer
      end function

      function titin_value_i64(value, number) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out) :: number
         integer(c_int) :: answer
      end function

      function titin_value_u64(value, number) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out) :: number
         integer(c_int) :: answer
      end function

      function titin_value_f64(value, number) result(answer) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: value
         real(c_double), intent(out) :: number
         integer(c_int) :: answer
      end function

      function titin_value_text(value, length) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out), optional :: length
         type(c_ptr) :: answer
      end function

      function titin_value_bytes(value, length) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out), optional :: length
         type(c_ptr) :: answer
      end function

      function titin_value_size(value) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t) :: answer
      end function

      function titin_value_item(value, index) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t), value :: index
         type(c_ptr) :: answer
      end function

      function titin_value_name(value, index) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t), value :: index
         type(c_ptr) :: answer
      end function

      function titin_value_find(value, name) result(answer) bind(C)
         import :: c_char, c_ptr
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: value
         type(c_ptr) :: answer
      end function

      function titin_value_dtype(value) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: value
         integer(c_int) :: answer
      end function

      function titin_value_rank(value) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: value
         integer(c_int) :: answer
      end function

      function titin_value_extent(value, dimension) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int), value :: dimension
         integer(c_int64_t) :: answer
      end function

      function titin_value_stride(value, dimension) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int), value :: dimension
         integer(c_int64_t) :: answer
      end function

      function titin_value_order(value) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: value
         integer(c_int) :: answer
      end function

      function titin_value_index_name(value, dimension) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: value
         integer(c_int), value :: dimension
         type(c_ptr) :: answer
      end function

      function titin_value_data(value) result(answer) bind(C)
         import :: c_ptr
         type(c_ptr), value :: value
         type(c_ptr) :: answer
      end function

      function titin_value_elements(value) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t) :: answer
      end function

      function titin_value_nbytes(value) result(answer) bind(C)
         import :: c_int64_t, c_ptr
         type(c_ptr), value :: value
         integer(c_int64_t) :: answer
      end function

      function titin_dtype_size(dtype) result(answer) bind(C)
         import :: c_int
         integer(c_int), value :: dtype
         integer(c_int) :: answer
      end function

      function titin_dtype_name(dtype) result(answer) bind(C)
         import :: c_int, c_ptr
         integer(c_int), value :: dtype
         type(c_ptr) :: answer
      end function

      function titin_dtype_find(name) result(answer) bind(C)
         import :: c_char, c_int
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int) :: answer
      end function

      function titin_output_array(out, dtype, rank, extents, order) result(answer) bind(C)
         import :: c_int, c_int64_t, c_ptr
         integer(c_int64_t), intent(in) :: extents(*)
         type(c_ptr), value :: out
         integer(c_int), value :: dtype, rank, order
         type(c_ptr) :: answer
      end function

      function titin_output_value(out, value) result(answer) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: out, value
         integer(c_int) :: answer
      end function

      function titin_output_timestamp(out, timestamp, next_timestamp) result(answer) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: out
         real(c_double), value :: timestamp, next_timestamp
         integer(c_int) :: answer
      end function

      function titin_options_filters(options, find, call, drop, data) result(answer) bind(C)
         import :: c_funptr, c_int, c_ptr
         type(c_ptr), value :: options, data
         type(c_funptr), value :: find, call, drop
         integer(c_int) :: answer
      end function
   end interface
end module titin_c
