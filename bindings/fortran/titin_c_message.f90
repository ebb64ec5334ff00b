! The bare interfaces of messages, values, types of elements and filters.
module titin_c_message
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int, c_int64_t, c_ptr
   implicit none
   private :: c_char, c_double, c_float, c_int, c_int64_t, c_ptr

   interface
      type(c_ptr) function titin_message_retain(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      subroutine titin_message_free(message) bind(C)
         import
         type(c_ptr), value :: message
      end subroutine

      type(c_ptr) function titin_message_new(value, timestamp, next_timestamp) bind(C)
         import
         type(c_ptr), value :: value
         real(c_double), value :: timestamp, next_timestamp
      end function

      real(c_double) function titin_message_timestamp(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      integer(c_int) function titin_message_has_next(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      real(c_double) function titin_message_next_timestamp(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      integer(c_int) function titin_message_kind(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_message_array(message, dtype, rank, extents, order) bind(C)
         import
         type(c_ptr), value :: message
         integer(c_int), value :: dtype, rank, order
         integer(c_int64_t), intent(inout) :: extents(*)
      end function

      integer(c_int) function titin_message_dtype(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      integer(c_int) function titin_message_rank(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      integer(c_int64_t) function titin_message_extent(message, dimension) bind(C)
         import
         type(c_ptr), value :: message
         integer(c_int), value :: dimension
      end function

      integer(c_int64_t) function titin_message_stride(message, dimension) bind(C)
         import
         type(c_ptr), value :: message
         integer(c_int), value :: dimension
      end function

      integer(c_int) function titin_message_order(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_message_index_name(message, dimension) bind(C)
         import
         type(c_ptr), value :: message
         integer(c_int), value :: dimension
      end function

      type(c_ptr) function titin_message_raw_data(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      integer(c_int64_t) function titin_message_elements(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      integer(c_int64_t) function titin_message_nbytes(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_message_value(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_message_port(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_message_origin(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_message_settings(message) bind(C)
         import
         type(c_ptr), value :: message
      end function

      type(c_ptr) function titin_new_nil() bind(C)
         import
      end function

      type(c_ptr) function titin_new_bool(flag) bind(C)
         import
         integer(c_int), value :: flag
      end function

      type(c_ptr) function titin_new_i64(number) bind(C)
         import
         integer(c_int64_t), value :: number
      end function

      type(c_ptr) function titin_new_u64(number) bind(C)
         import
         integer(c_int64_t), value :: number
      end function

      type(c_ptr) function titin_new_f64(number) bind(C)
         import
         real(c_double), value :: number
      end function

      type(c_ptr) function titin_new_f32(number) bind(C)
         import
         real(c_float), value :: number
      end function

      type(c_ptr) function titin_new_text(text, length) bind(C)
         import
         character(kind=c_char), intent(in) :: text(*)
         integer(c_int64_t), value :: length
      end function

      type(c_ptr) function titin_new_bytes(bytes, length, borrow) bind(C)
         import
         type(c_ptr), value :: bytes
         integer(c_int64_t), value :: length
         integer(c_int), value :: borrow
      end function

      type(c_ptr) function titin_new_array(dtype, rank, extents, strides, order, names, data, borrow) bind(C)
         import
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int64_t), intent(in), optional :: strides(*)
         type(c_ptr), intent(in), optional :: names(*)
         integer(c_int), value :: dtype, rank, order, borrow
         type(c_ptr), value :: data
      end function

      type(c_ptr) function titin_new_list() bind(C)
         import
      end function

      type(c_ptr) function titin_new_map() bind(C)
         import
      end function

      type(c_ptr) function titin_new_settings() bind(C)
         import
      end function

      integer(c_int) function titin_list_append(list, item) bind(C)
         import
         type(c_ptr), value :: list, item
      end function

      integer(c_int) function titin_map_set(map, name, item) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: map, item
      end function

      subroutine titin_value_free(value) bind(C)
         import
         type(c_ptr), value :: value
      end subroutine

      integer(c_int) function titin_value_kind(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int) function titin_value_is_f32(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int) function titin_value_is_settings(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      type(c_ptr) function titin_value_summary(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int) function titin_value_bool(value, flag) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int), intent(out) :: flag
      end function

      integer(c_int) function titin_value_i64(value, number) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out) :: number
      end function

      integer(c_int) function titin_value_u64(value, number) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out) :: number
      end function

      integer(c_int) function titin_value_f64(value, number) bind(C)
         import
         type(c_ptr), value :: value
         real(c_double), intent(out) :: number
      end function

      type(c_ptr) function titin_value_text(value, length) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out), optional :: length
      end function

      type(c_ptr) function titin_value_bytes(value, length) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int64_t), intent(out), optional :: length
      end function

      integer(c_int64_t) function titin_value_size(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      type(c_ptr) function titin_value_item(value, index) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int64_t), value :: index
      end function

      type(c_ptr) function titin_value_name(value, index) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int64_t), value :: index
      end function

      type(c_ptr) function titin_value_find(value, name) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
         type(c_ptr), value :: value
      end function

      type(c_ptr) function titin_value_array(value, dtype, rank, extents, order) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int), value :: dtype, rank, order
         integer(c_int64_t), intent(inout) :: extents(*)
      end function

      integer(c_int) function titin_value_dtype(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int) function titin_value_rank(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int64_t) function titin_value_extent(value, dimension) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int), value :: dimension
      end function

      integer(c_int64_t) function titin_value_stride(value, dimension) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int), value :: dimension
      end function

      integer(c_int) function titin_value_order(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      type(c_ptr) function titin_value_index_name(value, dimension) bind(C)
         import
         type(c_ptr), value :: value
         integer(c_int), value :: dimension
      end function

      type(c_ptr) function titin_value_raw_data(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int64_t) function titin_value_elements(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int64_t) function titin_value_nbytes(value) bind(C)
         import
         type(c_ptr), value :: value
      end function

      integer(c_int) function titin_dtype_size(dtype) bind(C)
         import
         integer(c_int), value :: dtype
      end function

      type(c_ptr) function titin_dtype_name(dtype) bind(C)
         import
         integer(c_int), value :: dtype
      end function

      integer(c_int) function titin_dtype_find(name) bind(C)
         import
         character(kind=c_char), intent(in) :: name(*)
      end function

      type(c_ptr) function titin_output_array(out, dtype, rank, extents, order) bind(C)
         import
         integer(c_int64_t), intent(in) :: extents(*)
         type(c_ptr), value :: out
         integer(c_int), value :: dtype, rank, order
      end function

      integer(c_int) function titin_output_value(out, value) bind(C)
         import
         type(c_ptr), value :: out, value
      end function

      integer(c_int) function titin_output_timestamp(out, timestamp, next_timestamp) bind(C)
         import
         type(c_ptr), value :: out
         real(c_double), value :: timestamp, next_timestamp
      end function
   end interface
end module titin_c_message
