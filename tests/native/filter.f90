! Own filters in a shared library: the filters of filter.c.
module filters
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_int64_t, c_null_char, c_ptr
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   use titin_c
   implicit none
   private
   public :: twice, late

contains

   recursive function twice(in, out) result(failed) bind(C)
      type(c_ptr), value :: in, out
      integer(c_int) :: failed
      type(titin_message) :: message
      real(real64), pointer :: from(:), to(:)
      integer :: ierr
      failed = 1
      call message%own(titin_message_retain(in))
      call message%view(from, ierr=ierr)
      if (ierr /= titin_ok) then
         call titin_set_error("only real numbers can be doubled here"//c_null_char)
         return
      end if
      call c_f_pointer(titin_output_array(out, titin_f64, 1_c_int, message%extents(), titin_order_c), to, shape(from))
      to = 2*from
      failed = 0
   end function

   recursive function late(in, out) result(failed) bind(C)
      type(c_ptr), value :: in, out
      integer(c_int) :: failed
      type(titin_value) :: text
      call text%own(titin_new_text("late", 4_c_int64_t))
      failed = titin_output_value(out, text%raw)
      if (failed == 0) failed = titin_output_timestamp(out, titin_message_timestamp(in) + 10, titin_no_next)
   end function
end module filters
