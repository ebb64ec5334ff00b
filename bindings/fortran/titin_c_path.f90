! The bare interfaces of titin_path.h.
module titin_c_path
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_funptr, c_int, c_int64_t, c_null_ptr, c_ptr
   implicit none
   private :: c_char, c_double, c_funptr, c_int, c_int64_t, c_null_ptr, c_ptr

   ! The figures of titin_path_figure.
   integer(c_int), parameter :: titin_path_time = 0
   integer(c_int), parameter :: titin_path_messages_sent = 1
   integer(c_int), parameter :: titin_path_bytes_sent = 2
   integer(c_int), parameter :: titin_path_messages_received = 3
   integer(c_int), parameter :: titin_path_bytes_received = 4
   integer(c_int), parameter :: titin_path_send_rate = 5
   integer(c_int), parameter :: titin_path_receive_rate = 6
   integer(c_int), parameter :: titin_path_waited = 7
   integer(c_int), parameter :: titin_path_round_trip = 8
   integer(c_int), parameter :: titin_path_retransmissions = 9
   integer(c_int), parameter :: titin_path_pacing = 10
   integer(c_int), parameter :: titin_path_send_buffer = 11
   integer(c_int), parameter :: titin_path_receive_buffer = 12
   integer(c_int), parameter :: titin_path_piece = 13

   ! The layout of an array of an exchange.
   type, bind(C) :: titin_path_layout
      integer(c_int) :: dtype = 0
      integer(c_int) :: rank = 0
      type(c_ptr) :: extents = c_null_ptr
      type(c_ptr) :: strides = c_null_ptr
      integer(c_int) :: order = 0
      type(c_ptr) :: names = c_null_ptr
   end type

   interface
      type(c_ptr) function titin_path_options_new() bind(C)
         import
      end function

      subroutine titin_path_options_free(options) bind(C)
         import
         type(c_ptr), value :: options
      end subroutine

      integer(c_int) function titin_path_options_key(options, key) bind(C)
         import
         type(c_ptr), value :: options
         character(kind=c_char), intent(in) :: key(*)
      end function

      integer(c_int) function titin_path_options_key_file(options, file) bind(C)
         import
         type(c_ptr), value :: options
         character(kind=c_char), intent(in) :: file(*)
      end function

      integer(c_int) function titin_path_options_streams(options, streams) bind(C)
         import
         type(c_ptr), value :: options
         integer(c_int), value :: streams
      end function

      integer(c_int) function titin_path_options_pacing(options, bytes_per_second) bind(C)
         import
         type(c_ptr), value :: options
         integer(c_int64_t), value :: bytes_per_second
      end function

      integer(c_int) function titin_path_options_buffers(options, send, receive) bind(C)
         import
         type(c_ptr), value :: options
         integer(c_int64_t), value :: send, receive
      end function

      integer(c_int) function titin_path_options_patience(options, seconds) bind(C)
         import
         type(c_ptr), value :: options
         real(c_double), value :: seconds
      end function

      integer(c_int) function titin_path_options_outage(options, seconds) bind(C)
         import
         type(c_ptr), value :: options
         real(c_double), value :: seconds
      end function

      integer(c_int) function titin_path_options_interrupt(options, interrupted, data) bind(C)
         import
         type(c_ptr), value :: options
         type(c_funptr), value :: interrupted
         type(c_ptr), value :: data
      end function

      integer(c_int) function titin_path_open(addresses, name, options, path) bind(C)
         import
         character(kind=c_char), intent(in) :: addresses(*)
         character(kind=c_char), intent(in), optional :: name(*)
         type(c_ptr), value :: options
         type(c_ptr), intent(out) :: path
      end function

      integer(c_int) function titin_path_listen(address, options, listener) bind(C)
         import
         character(kind=c_char), intent(in) :: address(*)
         type(c_ptr), value :: options
         type(c_ptr), intent(out) :: listener
      end function

      type(c_ptr) function titin_path_listener_address(listener) bind(C)
         import
         type(c_ptr), value :: listener
      end function

      integer(c_int) function titin_path_accept(listener, timeout, path) bind(C)
         import
         type(c_ptr), value :: listener
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: path
      end function

      subroutine titin_path_listener_free(listener) bind(C)
         import
         type(c_ptr), value :: listener
      end subroutine

      integer(c_int) function titin_path_close(path, timeout) bind(C)
         import
         type(c_ptr), value :: path
         real(c_double), value :: timeout
      end function

      type(c_ptr) function titin_path_name(path) bind(C)
         import
         type(c_ptr), value :: path
      end function

      integer(c_int) function titin_path_streams(path) bind(C)
         import
         type(c_ptr), value :: path
      end function

      real(c_double) function titin_path_figure(path, figure) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int), value :: figure
      end function

      integer(c_int) function titin_path_set_streams(path, streams) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int), value :: streams
      end function

      integer(c_int) function titin_path_set_piece(path, bytes) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int64_t), value :: bytes
      end function

      integer(c_int) function titin_path_set_pacing(path, bytes_per_second) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int64_t), value :: bytes_per_second
      end function

      integer(c_int) function titin_path_set_buffers(path, send, receive) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int64_t), value :: send, receive
      end function

      integer(c_int) function titin_path_send(path, bytes, length, timeout) bind(C)
         import
         type(c_ptr), value :: path, bytes
         integer(c_int64_t), value :: length
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_send_parts(path, count, parts, lengths, timeout) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int), value :: count
         type(c_ptr), intent(in) :: parts(*)
         integer(c_int64_t), intent(in) :: lengths(*)
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_send_array(path, dtype, rank, extents, strides, order, names, data, timeout) bind(C)
         import
         type(c_ptr), value :: path, data
         integer(c_int), value :: dtype, rank, order
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(in), optional :: names(*)
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_receive(path, timeout, message) bind(C)
         import
         type(c_ptr), value :: path
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_path_receive_into(path, memory, room, timeout, length) bind(C)
         import
         type(c_ptr), value :: path, memory
         integer(c_int64_t), value :: room
         real(c_double), value :: timeout
         integer(c_int64_t), intent(out), optional :: length
      end function

      integer(c_int) function titin_path_receive_array(path, dtype, rank, extents, strides, order, data, timeout) bind(C)
         import
         type(c_ptr), value :: path, data
         integer(c_int), value :: dtype, rank, order
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_exchange(path, bytes, length, memory, room, timeout, received) bind(C)
         import
         type(c_ptr), value :: path, bytes, memory
         integer(c_int64_t), value :: length, room
         real(c_double), value :: timeout
         integer(c_int64_t), intent(out), optional :: received
      end function

      integer(c_int) function titin_path_exchange_message(path, bytes, length, timeout, message) bind(C)
         import
         type(c_ptr), value :: path, bytes
         integer(c_int64_t), value :: length
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_path_exchange_array(path, data, data_layout, memory, memory_layout, timeout) bind(C)
         import
         type(c_ptr), value :: path, data, memory
         type(titin_path_layout), intent(in) :: data_layout, memory_layout
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_exchange_array_message(path, data, layout, timeout, message) bind(C)
         import
         type(c_ptr), value :: path, data
         type(titin_path_layout), intent(in) :: layout
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_path_barrier(path, timeout) bind(C)
         import
         type(c_ptr), value :: path
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_flush(path, timeout) bind(C)
         import
         type(c_ptr), value :: path
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_receive_parts(path, count, parts, rooms, timeout, length) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int), value :: count
         type(c_ptr), intent(in) :: parts(*)
         integer(c_int64_t), intent(in) :: rooms(*)
         real(c_double), value :: timeout
         integer(c_int64_t), intent(out), optional :: length
      end function

      integer(c_int) function titin_path_cycle(from, to, memory, room, timeout, length) bind(C)
         import
         type(c_ptr), value :: from, to, memory
         integer(c_int64_t), value :: room
         real(c_double), value :: timeout
         integer(c_int64_t), intent(out), optional :: length
      end function

      integer(c_int) function titin_path_cycle_message(from, to, timeout, message) bind(C)
         import
         type(c_ptr), value :: from, to
         real(c_double), value :: timeout
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_path_relay(one, other, timeout) bind(C)
         import
         type(c_ptr), value :: one, other
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_isend(path, bytes, length, request) bind(C)
         import
         type(c_ptr), value :: path, bytes
         integer(c_int64_t), value :: length
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_isend_parts(path, count, parts, lengths, request) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int), value :: count
         type(c_ptr), intent(in) :: parts(*)
         integer(c_int64_t), intent(in) :: lengths(*)
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_isend_array(path, dtype, rank, extents, strides, order, names, data, request) bind(C)
         import
         type(c_ptr), value :: path, data
         integer(c_int), value :: dtype, rank, order
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(in), optional :: names(*)
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_ireceive(path, request) bind(C)
         import
         type(c_ptr), value :: path
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_ireceive_into(path, memory, room, request) bind(C)
         import
         type(c_ptr), value :: path, memory
         integer(c_int64_t), value :: room
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_ireceive_parts(path, count, parts, rooms, request) bind(C)
         import
         type(c_ptr), value :: path
         integer(c_int), value :: count
         type(c_ptr), intent(in) :: parts(*)
         integer(c_int64_t), intent(in) :: rooms(*)
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_ireceive_array(path, dtype, rank, extents, strides, order, data, request) bind(C)
         import
         type(c_ptr), value :: path, data
         integer(c_int), value :: dtype, rank, order
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_iexchange(path, bytes, length, memory, room, request) bind(C)
         import
         type(c_ptr), value :: path, bytes, memory
         integer(c_int64_t), value :: length, room
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_iexchange_message(path, bytes, length, request) bind(C)
         import
         type(c_ptr), value :: path, bytes
         integer(c_int64_t), value :: length
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_iexchange_array(path, data, data_layout, memory, memory_layout, request) bind(C)
         import
         type(c_ptr), value :: path, data, memory
         type(titin_path_layout), intent(in) :: data_layout, memory_layout
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_iexchange_array_message(path, data, layout, request) bind(C)
         import
         type(c_ptr), value :: path, data
         type(titin_path_layout), intent(in) :: layout
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_ibarrier(path, request) bind(C)
         import
         type(c_ptr), value :: path
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_icycle(from, to, memory, room, request) bind(C)
         import
         type(c_ptr), value :: from, to, memory
         integer(c_int64_t), value :: room
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_icycle_message(from, to, request) bind(C)
         import
         type(c_ptr), value :: from, to
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_irelay(one, other, request) bind(C)
         import
         type(c_ptr), value :: one, other
         type(c_ptr), intent(out) :: request
      end function

      integer(c_int) function titin_path_test(request, done) bind(C)
         import
         type(c_ptr), value :: request
         integer(c_int), intent(out) :: done
      end function

      integer(c_int) function titin_path_wait(request, timeout) bind(C)
         import
         type(c_ptr), value :: request
         real(c_double), value :: timeout
      end function

      integer(c_int) function titin_path_wait_any(count, requests, timeout, index) bind(C)
         import
         integer(c_int), value :: count
         type(c_ptr), intent(in) :: requests(*)
         real(c_double), value :: timeout
         integer(c_int), intent(out) :: index
      end function

      integer(c_int) function titin_path_cancel(request, cancelled) bind(C)
         import
         type(c_ptr), value :: request
         integer(c_int), intent(out), optional :: cancelled
      end function

      integer(c_int64_t) function titin_path_request_length(request) bind(C)
         import
         type(c_ptr), value :: request
      end function

      integer(c_int) function titin_path_request_message(request, message) bind(C)
         import
         type(c_ptr), value :: request
         type(c_ptr), intent(out) :: message
      end function

      integer(c_int) function titin_path_request_ready(request, list, data) bind(C)
         import
         type(c_ptr), value :: request, list, data
      end function

      subroutine titin_path_request_free(request) bind(C)
         import
         type(c_ptr), value :: request
      end subroutine
   end interface
end module titin_c_path
