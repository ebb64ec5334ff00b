! The layout in memory of an array of the program, of any kind and rank.
module titin_memory
   use, intrinsic :: iso_c_binding, only: c_bool, c_int, c_int64_t, c_intptr_t, c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: extents_of
   implicit none
   private

   public :: memory, look

   integer, parameter :: most = 7

   !> An array in memory.
   type :: memory
      !> The number of the element type. 0 for a type without a number, and for an array without elements, whose memory is
      !> not read.
      integer(c_int) :: dtype = 0
      integer :: rank = 0
      !> The address of the first element.
      type(c_ptr) :: address = c_null_ptr
      integer(c_int64_t) :: extents(most) = 0
      !> Strides in bytes.
      integer(c_int64_t) :: strides(most) = 0
      logical :: empty = .true.
   end type

contains

   !> The layout of an array of up to 7 dimensions; for others the rank alone.
   subroutine look(array, seen)
      class(*), intent(in), target :: array(..)
      type(memory), intent(out) :: seen
      seen%rank = rank(array)
      if (seen%rank < 1 .or. seen%rank > most) return
      seen%extents(:seen%rank) = extents_of(shape(array, c_int64_t))
      seen%empty = any(seen%extents(:seen%rank) == 0)
      if (seen%empty) return
      select rank (array)
      rank (1); call look_1(array, seen)
      rank (2); call look_2(array, seen)
      rank (3); call look_3(array, seen)
      rank (4); call look_4(array, seen)
      rank (5); call look_5(array, seen)
      rank (6); call look_6(array, seen)
      rank (7); call look_7(array, seen)
      end select
   end subroutine

   ! Lower bounds are 1 here, whatever the lower bounds in the program. The address of the second element of a dimension
   ! gives its stride.

   subroutine look_1(a, seen)
      class(*), intent(in), target :: a(:)
      type(memory), intent(inout) :: seen
      call begin(a(1), seen)
      if (size(a, 1) > 1) call step(a(2), 1, seen)
   end subroutine

   subroutine look_2(a, seen)
      class(*), intent(in), target :: a(:, :)
      type(memory), intent(inout) :: seen
      call begin(a(1, 1), seen)
      if (size(a, 1) > 1) call step(a(2, 1), 1, seen)
      if (size(a, 2) > 1) call step(a(1, 2), 2, seen)
   end subroutine

   subroutine look_3(a, seen)
      class(*), intent(in), target :: a(:, :, :)
      type(memory), intent(inout) :: seen
      call begin(a(1, 1, 1), seen)
      if (size(a, 1) > 1) call step(a(2, 1, 1), 1, seen)
      if (size(a, 2) > 1) call step(a(1, 2, 1), 2, seen)
      if (size(a, 3) > 1) call step(a(1, 1, 2), 3, seen)
   end subroutine

   subroutine look_4(a, seen)
      class(*), intent(in), target :: a(:, :, :, :)
      type(memory), intent(inout) :: seen
      call begin(a(1, 1, 1, 1), seen)
      if (size(a, 1) > 1) call step(a(2, 1, 1, 1), 1, seen)
      if (size(a, 2) > 1) call step(a(1, 2, 1, 1), 2, seen)
      if (size(a, 3) > 1) call step(a(1, 1, 2, 1), 3, seen)
      if (size(a, 4) > 1) call step(a(1, 1, 1, 2), 4, seen)
   end subroutine

   subroutine look_5(a, seen)
      class(*), intent(in), target :: a(:, :, :, :, :)
      type(memory), intent(inout) :: seen
      call begin(a(1, 1, 1, 1, 1), seen)
      if (size(a, 1) > 1) call step(a(2, 1, 1, 1, 1), 1, seen)
      if (size(a, 2) > 1) call step(a(1, 2, 1, 1, 1), 2, seen)
      if (size(a, 3) > 1) call step(a(1, 1, 2, 1, 1), 3, seen)
      if (size(a, 4) > 1) call step(a(1, 1, 1, 2, 1), 4, seen)
      if (size(a, 5) > 1) call step(a(1, 1, 1, 1, 2), 5, seen)
   end subroutine

   subroutine look_6(a, seen)
      class(*), intent(in), target :: a(:, :, :, :, :, :)
      type(memory), intent(inout) :: seen
      call begin(a(1, 1, 1, 1, 1, 1), seen)
      if (size(a, 1) > 1) call step(a(2, 1, 1, 1, 1, 1), 1, seen)
      if (size(a, 2) > 1) call step(a(1, 2, 1, 1, 1, 1), 2, seen)
      if (size(a, 3) > 1) call step(a(1, 1, 2, 1, 1, 1), 3, seen)
      if (size(a, 4) > 1) call step(a(1, 1, 1, 2, 1, 1), 4, seen)
      if (size(a, 5) > 1) call step(a(1, 1, 1, 1, 2, 1), 5, seen)
      if (size(a, 6) > 1) call step(a(1, 1, 1, 1, 1, 2), 6, seen)
   end subroutine

   subroutine look_7(a, seen)
      class(*), intent(in), target :: a(:, :, :, :, :, :, :)
      type(memory), intent(inout) :: seen
      call begin(a(1, 1, 1, 1, 1, 1, 1), seen)
      if (size(a, 1) > 1) call step(a(2, 1, 1, 1, 1, 1, 1), 1, seen)
      if (size(a, 2) > 1) call step(a(1, 2, 1, 1, 1, 1, 1), 2, seen)
      if (size(a, 3) > 1) call step(a(1, 1, 2, 1, 1, 1, 1), 3, seen)
      if (size(a, 4) > 1) call step(a(1, 1, 1, 2, 1, 1, 1), 4, seen)
      if (size(a, 5) > 1) call step(a(1, 1, 1, 1, 2, 1, 1), 5, seen)
      if (size(a, 6) > 1) call step(a(1, 1, 1, 1, 1, 2, 1), 6, seen)
      if (size(a, 7) > 1) call step(a(1, 1, 1, 1, 1, 1, 2), 7, seen)
   end subroutine

   subroutine begin(element, seen)
      class(*), intent(in), target :: element
      type(memory), intent(inout) :: seen
      call locate(element, seen%address, seen%dtype)
      ! For dimensions of one element.
      seen%strides(:seen%rank) = titin_dtype_size(seen%dtype)
   end subroutine

   subroutine step(element, dim, seen)
      class(*), intent(in), target :: element
      integer, intent(in) :: dim
      type(memory), intent(inout) :: seen
      type(c_ptr) :: address
      integer(c_int) :: dtype
      call locate(element, address, dtype)
      seen%strides(dim) = transfer(address, 0_c_intptr_t) - transfer(seen%address, 0_c_intptr_t)
   end subroutine

   subroutine locate(element, address, dtype)
      class(*), intent(in), target :: element
      type(c_ptr), intent(out) :: address
      integer(c_int), intent(out) :: dtype
      address = c_null_ptr
      dtype = 0
      select type (element)
      type is (integer(int8))
         address = c_loc(element)
         dtype = titin_i8
      type is (integer(int16))
         address = c_loc(element)
         dtype = titin_i16
      type is (integer(int32))
         address = c_loc(element)
         dtype = titin_i32
      type is (integer(int64))
         address = c_loc(element)
         dtype = titin_i64
      type is (real(real32))
         address = c_loc(element)
         dtype = titin_f32
      type is (real(real64))
         address = c_loc(element)
         dtype = titin_f64
      type is (complex(real32))
         address = c_loc(element)
         dtype = titin_c64
      type is (complex(real64))
         address = c_loc(element)
         dtype = titin_c128
      type is (logical(c_bool))
         address = c_loc(element)
         dtype = titin_bool
      end select
   end subroutine
end module titin_memory
