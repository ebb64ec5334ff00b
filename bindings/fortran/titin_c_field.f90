! The bare interfaces of fields. Dimensions, arrays and indices count from 0 here, and upper bounds are exclusive.
module titin_c_field
   use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int64_t, c_ptr
   implicit none
   private :: c_double, c_int, c_int64_t, c_ptr

   interface
      type(c_ptr) function titin_decomposition_new(dims, shape) bind(C)
         import
         integer(c_int), value :: dims
         integer(c_int64_t), intent(in) :: shape(*)
      end function

      subroutine titin_decomposition_free(decomposition) bind(C)
         import
         type(c_ptr), value :: decomposition
      end subroutine

      integer(c_int) function titin_decomposition_grid(decomposition, processes) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int), intent(in) :: processes(*)
      end function

      integer(c_int) function titin_decomposition_spread(decomposition, dim, spread, block) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int), value :: dim, spread
         integer(c_int64_t), value :: block
      end function

      integer(c_int) function titin_decomposition_bounds(decomposition, dim, count, bounds) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int), value :: dim, count
         integer(c_int64_t), intent(in) :: bounds(*)
      end function

      integer(c_int) function titin_decomposition_ranks(decomposition, order) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int), value :: order
      end function

      integer(c_int) function titin_decomposition_box(decomposition, lower, upper) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int64_t), intent(in) :: lower(*), upper(*)
      end function

      integer(c_int) function titin_decomposition_indices(decomposition, count, indices) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int64_t), value :: count
         integer(c_int64_t), intent(in) :: indices(*)
      end function

      integer(c_int) function titin_decomposition_region(decomposition, lower, upper) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int64_t), intent(in) :: lower(*), upper(*)
      end function

      integer(c_int) function titin_decomposition_halo(decomposition, below, above) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int64_t), intent(in) :: below(*), above(*)
      end function

      integer(c_int) function titin_decomposition_order(decomposition, order) bind(C)
         import
         type(c_ptr), value :: decomposition
         integer(c_int), value :: order
      end function

      integer(c_int) function titin_field_new(port, decomposition, arrays, dtypes, field) bind(C)
         import
         type(c_ptr), value :: port, decomposition
         integer(c_int), value :: arrays
         integer(c_int), intent(in) :: dtypes(*)
         type(c_ptr), intent(out) :: field
      end function

      subroutine titin_field_free(field) bind(C)
         import
         type(c_ptr), value :: field
      end subroutine

      integer(c_int) function titin_field_dtype(field, array) bind(C)
         import
         type(c_ptr), value :: field
         integer(c_int), value :: array
      end function

      integer(c_int64_t) function titin_field_bytes(field, array) bind(C)
         import
         type(c_ptr), value :: field
         integer(c_int), value :: array
      end function

      integer(c_int) function titin_field_extents(field, extents) bind(C)
         import
         type(c_ptr), value :: field
         integer(c_int64_t), intent(out) :: extents(*)
      end function

      integer(c_int64_t) function titin_field_owned(field, dim, indices) bind(C)
         import
         type(c_ptr), value :: field
         integer(c_int), value :: dim
         integer(c_int64_t), intent(out), optional :: indices(*)
      end function

      integer(c_int) function titin_field_layout(field, array, extents, strides) bind(C)
         import
         type(c_ptr), value :: field
         integer(c_int), value :: array
         integer(c_int64_t), intent(in) :: extents(*), strides(*)
      end function

      integer(c_int) function titin_field_send(field, arrays, timestamp, next_timestamp) bind(C)
         import
         type(c_ptr), value :: field
         type(c_ptr), intent(in) :: arrays(*)
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_field_receive(field, arrays, timeout, timestamp, next_timestamp) bind(C)
         import
         type(c_ptr), value :: field
         type(c_ptr), intent(in) :: arrays(*)
         real(c_double), value :: timeout
         real(c_double), intent(out), optional :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_field_receive_at(field, arrays, at, timeout, timestamp, next_timestamp) bind(C)
         import
         type(c_ptr), value :: field
         type(c_ptr), intent(in) :: arrays(*)
         real(c_double), value :: at, timeout
         real(c_double), intent(out), optional :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_field_withdraw(field) bind(C)
         import
         type(c_ptr), value :: field
      end function
   end interface
end module titin_c_field
