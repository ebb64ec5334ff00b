! The bare interfaces of errors, options, instances, settings, ports, sending and receiving.
module titin_c_instance
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_funptr, c_int, c_int64_t, c_null_funptr, c_null_ptr, c_ptr, c_size_t
   implicit none
   private :: c_char, c_double, c_funptr, c_int, c_int64_t, c_null_funptr, c_null_ptr, c_ptr, c_size_t

   !> The ranks of a parallel program, as in titin.h.
   type, bind(C) :: titin_communicator
      integer(c_size_t) :: size = 0
      integer(c_int) :: rank = 0
      integer(c_int) :: ranks = 1
      type(c_ptr) :: context = c_null_ptr
      type(c_funptr) :: broadcast = c_null_funptr
      type(c_funptr) :: gather = c_null_funptr
   end type

   interface
      type(c_ptr) function titin_error() bind(C)
         import
      end function

      integer(c_int) function titin_error_kind() bind(C)
         import
      end function

      type(c_ptr) function titin_error_member() bind(C)
         import
      end function

      integer(c_int) function titin_error_slot() bind(C)
         import
      end function

      type(c_ptr) function titin_error_in(language) bind(C)
         import
         character(kind=c_char), intent(in) :: language(*)
      end function

      type(c_ptr) function titin_error_name(kind) bind(C)
         import
         integer(c_int), value :: kind
      end function

      integer(c_int) function titin_explain(stream) bind(C)
         import
         type(c_ptr), value :: stream
      end function

      subroutine titin_set_error(text) bind(C)
         import
         character(kind=c_char), intent(in) :: text(*)
      end subroutine

      type(c_ptr) function titin_version() bind(C)
         import
      end function

      type(c_ptr) function titin_options_new() bind(C)
         import
      end function

      subroutine titin_options_free(options) bind(C)
         import
         type(c_ptr), value :: options
      end subroutine

      integer(c_int) function titin_options_instance(options, name) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_options_manager(options, manager) bind(C)
         import
         character(kind=c_char), intent(in) :: manager(*)
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_options_port(options, name, op) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: options
         integer(c_int), value :: op
      end function

      integer(c_int) function titin_options_unchecked(options, reason) bind(C)
         import
         character(kind=c_char), intent(in) :: reason(*)
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_options_checks(options, checks) bind(C)
         import
         type(c_ptr), value :: options
         integer(c_int), value :: checks
      end function

      integer(c_int) function titin_options_receive(options, ranks) bind(C)
         import
         type(c_ptr), value :: options
         integer(c_int), value :: ranks
      end function

      integer(c_int) function titin_options_overlays(options, overlays) bind(C)
         import
         type(c_ptr), value :: options
         integer(c_int), value :: overlays
      end function

      integer(c_int) function titin_options_language(options, language) bind(C)
         import
         character(kind=c_char), intent(in) :: language(*)
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_options_exceptions(options) bind(C)
         import
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_options_communicator(options, communicator) bind(C)
         import
         type(c_ptr), value :: options
         type(titin_communicator), intent(in) :: communicator
      end function

      integer(c_int) function titin_options_interrupt(options, interrupted, data) bind(C)
         import
         type(c_ptr), value :: options, data
         type(c_funptr), value :: interrupted
      end function

      integer(c_int) function titin_options_filters(options, find, call, drop, data) bind(C)
         import
         type(c_ptr), value :: options, data
         type(c_funptr), value :: find, call, drop
      end function

      integer(c_int) function titin_open(ports, options, instance) bind(C)
         import
         character(kind=c_char), intent(in), optional :: ports(*)
         type(c_ptr), value :: options
         type(c_ptr), intent(out) :: instance
      end function

      integer(c_int) function titin_close(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_fail(instance, text) bind(C)
         import
         character(kind=c_char), intent(in) :: text(*)
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_reuse(instance, again) bind(C)
         import
         type(c_ptr), value :: instance
         integer(c_int), intent(out) :: again
      end function

      integer(c_int) function titin_recover(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      type(c_ptr) function titin_instance_name(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_rank(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_ranks(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      type(c_ptr) function titin_workdir(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      type(c_ptr) function titin_time_unit(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_will_stop(instance, timestamp, stops) bind(C)
         import
         type(c_ptr), value :: instance
         real(c_double), value :: timestamp
         integer(c_int), intent(out) :: stops
      end function

      type(c_ptr) function titin_scale(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_log(instance, level, text) bind(C)
         import
         character(kind=c_char), intent(in) :: text(*)
         type(c_ptr), value :: instance
         integer(c_int), value :: level
      end function

      integer(c_int) function titin_skip_checks(instance, reason) bind(C)
         import
         character(kind=c_char), intent(in) :: reason(*)
         type(c_ptr), value :: instance
      end function

      type(c_ptr) function titin_region_begin(instance, name) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_region_end(region) bind(C)
         import
         type(c_ptr), value :: region
      end function

      integer(c_int) function titin_on_interrupt(instance, interrupted, data) bind(C)
         import
         type(c_ptr), value :: instance, data
         type(c_funptr), value :: interrupted
      end function

      integer(c_int) function titin_host(count, names, ports, entries, data, options) bind(C)
         import
         type(c_ptr), intent(in) :: names(*)
         type(c_ptr), intent(in), optional :: ports(*)
         type(c_funptr), intent(in) :: entries(*)
         type(c_ptr), intent(in), optional :: data(*)
         integer(c_int), value :: count
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_open_begin(ports, options, opening) bind(C)
         import
         character(kind=c_char), intent(in), optional :: ports(*)
         type(c_ptr), value :: options
         type(c_ptr), intent(out) :: opening
      end function

      integer(c_int) function titin_open_end(opening, instance) bind(C)
         import
         type(c_ptr), value :: opening
         type(c_ptr), intent(out) :: instance
      end function

      subroutine titin_open_cancel(opening) bind(C)
         import
         type(c_ptr), value :: opening
      end subroutine

      integer(c_int) function titin_cancel(instance, port, slot) bind(C)
         import
         type(c_ptr), value :: instance, port
         integer(c_int), value :: slot
      end function

      integer(c_int) function titin_skip_deadlocks(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_host_steps(count, names, ports, steps, data, threads, options) bind(C)
         import
         type(c_ptr), intent(in) :: names(*)
         type(c_ptr), intent(in), optional :: ports(*)
         type(c_funptr), intent(in) :: steps(*)
         type(c_ptr), intent(in), optional :: data(*)
         integer(c_int), value :: count, threads
         type(c_ptr), value :: options
      end function

      integer(c_int) function titin_options_ready(options, ready, data) bind(C)
         import
         type(c_ptr), value :: options, ready, data
      end function

      type(c_ptr) function titin_ready_new() bind(C)
         import
      end function

      subroutine titin_ready_free(ready) bind(C)
         import
         type(c_ptr), value :: ready
      end subroutine

      integer(c_int) function titin_ready_next(ready, timeout, data) bind(C)
         import
         type(c_ptr), value :: ready
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: data
      end function

      integer(c_int) function titin_ready_descriptor(ready) bind(C)
         import
         type(c_ptr), value :: ready
      end function

      integer(c_int) function titin_setting_type(instance, name) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_setting_f64(instance, name, value) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         real(c_double), intent(out) :: value
      end function

      integer(c_int) function titin_setting_quantity(instance, name, unit, value) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         character(kind=c_char), intent(in) :: unit(*)
         type(c_ptr), value :: instance
         real(c_double), intent(out) :: value
      end function

      integer(c_int) function titin_convert(number, unit, wanted, converted) bind(C)
         import
         real(c_double), value :: number
         character(kind=c_char), intent(in) :: unit(*)
         character(kind=c_char), intent(in) :: wanted(*)
         real(c_double), intent(out) :: converted
      end function

      integer(c_int) function titin_setting_i64(instance, name, value) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), intent(out) :: value
      end function

      integer(c_int) function titin_setting_bool(instance, name, value) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         integer(c_int), intent(out) :: value
      end function

      integer(c_int) function titin_setting_text(instance, name, value) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: value
      end function

      integer(c_int) function titin_setting_f64s(instance, name, values, capacity, count) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         real(c_double), intent(out), optional :: values(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out) :: count
      end function

      integer(c_int) function titin_setting_i64s(instance, name, values, capacity, count) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), intent(out), optional :: values(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out) :: count
      end function

      integer(c_int) function titin_setting_table(instance, name, values, capacity, rows, columns) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         real(c_double), intent(out), optional :: values(*)
         type(c_ptr), value :: instance
         integer(c_int64_t), value :: capacity
         integer(c_int64_t), intent(out) :: rows, columns
      end function

      integer(c_int) function titin_setting_value(instance, name, value) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: value
      end function

      integer(c_int) function titin_settings(instance, settings) bind(C)
         import
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: settings
      end function

      integer(c_int) function titin_overlay(instance, settings) bind(C)
         import
         type(c_ptr), value :: instance
         type(c_ptr), intent(out) :: settings
      end function

      type(c_ptr) function titin_port_find(instance, name) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: instance
      end function

      integer(c_int) function titin_port_count(instance) bind(C)
         import
         type(c_ptr), value :: instance
      end function

      type(c_ptr) function titin_port_at(instance, index) bind(C)
         import
         type(c_ptr), value :: instance
         integer(c_int), value :: index
      end function

      type(c_ptr) function titin_port_name(port) bind(C)
         import
         type(c_ptr), value :: port
      end function

      integer(c_int) function titin_port_operator(port) bind(C)
         import
         type(c_ptr), value :: port
      end function

      integer(c_int) function titin_port_is_vector(port) bind(C)
         import
         type(c_ptr), value :: port
      end function

      integer(c_int) function titin_port_is_resizable(port) bind(C)
         import
         type(c_ptr), value :: port
      end function

      integer(c_int) function titin_port_is_connected(port) bind(C)
         import
         type(c_ptr), value :: port
      end function

      integer(c_int) function titin_port_slots(port) bind(C)
         import
         type(c_ptr), value :: port
      end function

      integer(c_int) function titin_port_set_slots(port, slots) bind(C)
         import
         type(c_ptr), value :: port
         integer(c_int), value :: slots
      end function

      integer(c_int) function titin_send(port, slot, dtype, rank, extents, data, timestamp, next_timestamp) bind(C)
         import
         integer(c_int64_t), intent(in) :: extents(*)
         type(c_ptr), value :: port, data
         integer(c_int), value :: slot, dtype, rank
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_send_array(port, slot, dtype, rank, extents, strides, order, names, data, &
         timestamp, next_timestamp, settings) bind(C)
         import
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(in), optional :: names(*)
         type(c_ptr), value :: port, data, settings
         integer(c_int), value :: slot, dtype, rank, order
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_loan_new(port, slot, dtype, rank, extents, order, names, loan) bind(C)
         import
         type(c_ptr), value :: port
         integer(c_int), value :: slot, dtype, rank, order
         integer(c_int64_t), intent(in) :: extents(*)
         type(c_ptr), intent(in), optional :: names(*)
         type(c_ptr), intent(out) :: loan
      end function

      type(c_ptr) function titin_loan_data(loan) bind(C)
         import
         type(c_ptr), value :: loan
      end function

      integer(c_int) function titin_send_loan(port, slot, loan, timestamp, next_timestamp, settings) bind(C)
         import
         type(c_ptr), value :: port
         integer(c_int), value :: slot
         type(c_ptr), intent(inout) :: loan
         real(c_double), value :: timestamp, next_timestamp
         type(c_ptr), value :: settings
      end function

      type(c_ptr) function titin_loan_retain(loan) bind(C)
         import
         type(c_ptr), value :: loan
      end function

      subroutine titin_loan_free(loan) bind(C)
         import
         type(c_ptr), value :: loan
      end subroutine

      type(c_ptr) function titin_loan_find(data, nbytes) bind(C)
         import
         type(c_ptr), value :: data
         integer(c_int64_t), value :: nbytes
      end function

      integer(c_int) function titin_send_nil(port, slot, timestamp, next_timestamp, settings) bind(C)
         import
         type(c_ptr), value :: port, settings
         integer(c_int), value :: slot
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_send_value(port, slot, value, timestamp, next_timestamp, settings) bind(C)
         import
         type(c_ptr), value :: port, value, settings
         integer(c_int), value :: slot
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_receive(port, slot, timeout, message) bind(C)
         import
         type(c_ptr), value :: port
         integer(c_int), value :: slot
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_try_receive(port, slot, message) bind(C)
         import
         type(c_ptr), value :: port
         integer(c_int), value :: slot
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_receive_any(ports, count, timeout, index, slot, message) bind(C)
         import
         type(c_ptr), intent(in) :: ports(*)
         integer(c_int), value :: count
         real(c_double), value :: timeout
         integer(c_int), intent(out) :: index, slot
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_receive_into(port, slot, timeout, dtype, rank, extents, strides, order, data, &
         message) bind(C)
         import
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), value :: port, data
         integer(c_int), value :: slot, dtype, rank, order
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_send_dlpack(port, slot, tensor, timestamp, next_timestamp, settings) bind(C)
         import
         type(c_ptr), value :: port, tensor, settings
         integer(c_int), value :: slot
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_receive_into_dlpack(port, slot, timeout, tensor, message) bind(C)
         import
         type(c_ptr), value :: port, tensor
         integer(c_int), value :: slot
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_message_dlpack(message, tensor) bind(C)
         import
         type(c_ptr), value :: message
         type(c_ptr), intent(out) :: tensor
      end function

      subroutine titin_dlpack_free(tensor) bind(C)
         import
         type(c_ptr), value :: tensor
      end subroutine

      type(c_ptr) function titin_dlpack_device(type) bind(C)
         import
         integer(c_int), value :: type
      end function
   end interface
end module titin_c_instance
