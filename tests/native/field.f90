! One side of an exchange of fields, "left" or "right": the script of field.c. Indices count from one here.
module one_rank
   use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_ptr
   implicit none

contains

   integer(c_int) function keep(context, bytes, count) bind(C)
      type(c_ptr), value :: context, bytes
      integer(c_int64_t), value :: count
      associate (unused => context, same => bytes, all => count)
      end associate
      keep = 0
   end function

   integer(c_int) function give(context, mine, all, count) bind(C)
      use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int8_t
      type(c_ptr), value :: context, mine, all
      integer(c_int64_t), value :: count
      integer(c_int8_t), pointer :: from(:), to(:)
      associate (unused => context)
      end associate
      call c_f_pointer(mine, from, [count])
      call c_f_pointer(all, to, [count])
      to = from
      give = 0
   end function
end module one_rank

program field
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_funloc, c_int64_t, c_loc, c_sizeof
   use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
   use one_rank, only: give, keep
   use titin
   use titin_c, only: titin_communicator, titin_field_dtype
   implicit none

   type(titin_instance) :: instance
   type(titin_communicator) :: alone
   character(len=8) :: side

   call get_command_argument(1, side)
   alone%ranks = 1
   alone%broadcast = c_funloc(keep)
   alone%gather = c_funloc(give)
   alone%size = c_sizeof(alone)
   call instance%open(o_i=["out"], s=["in"], ranks=alone)
   call check(instance%rank() == 0 .and. instance%ranks() == 1, "one rank")
   call check(instance%reuse(), "a use")
   call errors()
   if (side == "left") then
      call left()
   else
      call right()
   end if
   call check(.not. instance%reuse(), "one use")
   call instance%close()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "field.f90: "//what
   end subroutine

   ! Checks that the error of a wrong call has these words, and does not name functions of the C library.
   subroutine told(words, ierr)
      character(len=*), intent(in) :: words
      integer, intent(in) :: ierr
      call check(ierr == titin_error_usage .and. index(titin_error_text(), words) > 0 .and. &
         index(titin_error_text(), "titin_") == 0, words//", but: "//titin_error_text())
   end subroutine

   subroutine errors()
      type(titin_decomposition) :: line
      type(titin_field) :: none
      integer :: ierr
      call line%grid([1], ierr=ierr)
      call check(ierr == titin_error_usage, "a decomposition without a shape")
      call line%new([1, 1, 1, 1, 1, 1, 1, 1], ierr=ierr)
      call check(ierr == titin_error_usage, "8 dimensions")
      call line%new([10])
      call line%spread(2, titin_even, ierr=ierr)
      call check(ierr == titin_error_usage, "a dimension that is not there")
      call line%halo([1, 1], [1, 1], ierr=ierr)
      call told("2 numbers were given for an array of 1 dimensions", ierr)
      call instance%field("otu", line, none, titin_f64, ierr=ierr)
      call told("no port 'otu'", ierr)
      call instance%send_nil("otu", timestamp=0.0_real64, ierr=ierr)
      call told("no port 'otu'", ierr)
      call line%spread(1, titin_cyclic, 0, ierr=ierr)
      call check(ierr == titin_error_usage, "cyclic in no blocks")
      call line%box([0], [3], ierr=ierr)
      call check(ierr == titin_error_usage, "indices count from one")
      call line%new([10])
      call line%grid([2])
      call instance%field("out", line, none, titin_f64, ierr=ierr)
      call check(ierr == titin_error_usage, "more processes than ranks")
      call none%send(1, timestamp=0.0_real64, ierr=ierr)
      call check(ierr == titin_error_usage, "a field that was not declared")
   end subroutine

   subroutine left()
      type(titin_decomposition) :: grid, backwards
      type(titin_field) :: send, receive
      real(real64) :: a(0:7, 0:5), line(10), time, next
      integer(int32), allocatable :: b(:, :)
      real(real32) :: short(8, 6)
      integer(int32) :: many(1, 1, 1, 1, 1, 1, 1, 1)
      integer :: i, j, ierr

      call grid%new([6, 4])
      call grid%grid([instance%ranks(), 1])
      call grid%ranks(titin_order_fortran)
      call grid%spread(1, titin_cyclic, 2)
      call grid%bounds(2, [1, 5])
      call grid%halo([1, 1], [1, 1])
      call grid%halo(1)
      call instance%field("out", grid, send, [titin_f64, titin_i32])
      call check(send%bytes(1) == 384 .and. send%bytes(2) == 192, "halo and all")
      call check(titin_field_dtype(send%raw, 1) == titin_i32, "type of an array")
      call check(all(send%extents() == [8, 6]) .and. all(send%owned(1) == [1, 2, 3, 4, 5, 6]), "what is owned")

      call backwards%new([10_int64])
      call backwards%indices([(int(11 - i, int64), i=1, 10)])
      call instance%field("in", backwards, receive, titin_f64)
      call receive%receive(line, timeout=0.01_real64, ierr=ierr)
      call check(ierr == titin_error_timeout, "what is not there yet")

      call send%send(a, b, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 2 was not given, or is not allocated", ierr)
      call send%send(b, a, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 1 was not given, or is not allocated", ierr)
      allocate (b(8, 6))
      a = -1
      b = -1
      do j = 1, 4
         do i = 1, 6
            a(i, j) = 10*(i - 1) + j - 1
            b(i + 1, j + 1) = 100 + 10*(i - 1) + j - 1
         end do
      end do
      call send%send(a, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 2 was not given, or is not allocated", ierr)
      call send%send(a, b, b, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out' was declared with 2 arrays, and array 3 was given", ierr)
      call send%send(a, 1, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 2 has to be an array, but a single value was given", ierr)
      call send%send(a, many, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 2 has 8 dimensions; fields have 1 to 7", ierr)
      call send%send(a, b(:0, :), timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 2 has no elements, but this rank owns some", ierr)
      call send%send(a(1:, :), b, timestamp=1.0_real64, ierr=ierr)
      call told("field on port 'out': array 1 has the shape [8, 6] on this rank, halo and all, but one of shape [7, 6] was given", &
         ierr)
      call send%send(a, short, timestamp=1.0_real64, ierr=ierr)
      call check(ierr == titin_error_usage, "another type")
      call check(index(titin_error_text(), "'out': array 2 is of int32, but one of float32") > 0, "which array")
      call send%send(a, b(:, :5), timestamp=1.0_real64, ierr=ierr)
      call check(ierr == titin_error_usage, "another shape")
      call send%send(a, b(:, 1), timestamp=1.0_real64, ierr=ierr)
      call check(ierr == titin_error_usage, "one dimension of two")
      call send%send(a, b, timestamp=1.0_real64, next_timestamp=2.0_real64)
      call receive%receive(line, timestamp=time, next_timestamp=next)
      call check(time == 1.0_real64 .and. next < 0, "timestamps")
      call check(all(line == [(real(11 - i, real64), i=1, 10)]), "ten numbers backwards")
   end subroutine

   subroutine right()
      type(titin_decomposition) :: whole, boxes
      type(titin_field) :: receive, send
      real(real64), target :: a(9, 6)
      real(real64) :: line(12), time, next
      integer(int32), allocatable :: b(:, :)
      integer(int32), pointer :: within_a(:, :)
      integer :: i, j, ierr

      call whole%new([6, 4])
      call whole%box([1, 1], [6, 4])
      call whole%order(titin_order_fortran)
      call instance%field("in", whole, receive, [titin_f64, titin_i32])
      allocate (b(6, 4))
      a = -1
      call c_f_pointer(c_loc(a(6, 3)), within_a, [6, 4])
      call receive%receive(a(8:3:-1, 2:5), within_a, ierr=ierr)
      call told("share memory", ierr)
      ! Receives the first array into a part of an array, backwards.
      call receive%receive(a(8:3:-1, 2:5), b, timestamp=time, next_timestamp=next)
      call check(time == 1.0_real64 .and. next == 2.0_real64, "timestamps")
      do j = 1, 4
         do i = 1, 6
            call check(int(a(9 - i, j + 1)) == 10*(i - 1) + j - 1 .and. b(i, j) == 100 + 10*(i - 1) + j - 1, "elements")
         end do
      end do
      call check(all(a(:2, :) == -1) .and. all(a(9, :) == -1) .and. all(a(:, [1, 6]) == -1), "nothing else")

      call boxes%new([12])
      call boxes%box([7], [12])
      call boxes%box([1], [6])
      call boxes%region([2], [11])
      call instance%field("out", boxes, send, titin_f64)
      line = [(real(mod(i + 5, 12), real64), i=1, 12)]
      call send%send(line(:11), timestamp=1.0_real64, ierr=ierr)
      call check(ierr == titin_error_usage, "too short an array")
      call send%send(line, timestamp=1.0_real64)
   end subroutine
end program field
