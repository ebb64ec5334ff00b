! "left" sends three elements of every type that Fortran has, "right" reads them: the script of elements.cpp.
program elements
   use, intrinsic :: iso_c_binding, only: c_bool
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin
   implicit none

   logical(c_bool), parameter :: flags(3) = [.true._c_bool, .false._c_bool, .true._c_bool]
   integer(int8), parameter :: i8(3) = [1_int8, -huge(1_int8) - 1_int8, 3_int8]
   integer(int16), parameter :: i16(3) = [1_int16, -huge(1_int16) - 1_int16, 3_int16]
   integer(int32), parameter :: i32(3) = [1_int32, -huge(1_int32) - 1_int32, 3_int32]
   integer(int64), parameter :: i64(3) = [1_int64, -huge(1_int64) - 1_int64, 3_int64]
   real(real32), parameter :: f32(3) = [0.5, -1.5, 3.0]
   real(real64), parameter :: f64(3) = [0.5_real64, -1.5_real64, 3.0_real64]
   complex(real32), parameter :: c64(3) = [(0.5, -2.0), (-1.5, 0.0), (0.0, 3.0)]
   complex(real64), parameter :: c128(3) = &
      [(0.5_real64, -2.0_real64), (-1.5_real64, 0.0_real64), (0.0_real64, 3.0_real64)]

   type(titin_instance) :: instance
   type(titin_message) :: first, message
   character(len=8) :: side
   integer :: known

   interface numbers
      procedure whole_numbers, real_numbers
   end interface

   call get_command_argument(1, side)
   call instance%open(o_i=["out"], s=["in"])
   do while (instance%reuse())
      if (side == "left") then
         call left()
      else
         call right()
      end if
   end do
   call instance%close()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "elements.f90: "//what
   end subroutine

   subroutine left()
      call send_logical()
      call int8s(sends=.true.)
      call int16s(sends=.true.)
      call int32s(sends=.true.)
      call int64s(sends=.true.)
      call real32s(sends=.true.)
      call real64s(sends=.true.)
      call complex32s(sends=.true.)
      call complex64s(sends=.true.)
      call instance%send_nil("out", timestamp=0.0_real64)
   end subroutine

   subroutine right()
      known = 0
      do
         call instance%receive("in", first)
         if (first%kind() == titin_kind_nil) exit
         known = known + 1
         select case (first%dtype())
         case (titin_bool)
            call receive_logical()
         case (titin_i8)
            call int8s(sends=.false.)
         case (titin_i16)
            call int16s(sends=.false.)
         case (titin_i32)
            call int32s(sends=.false.)
         case (titin_i64)
            call int64s(sends=.false.)
         case (titin_f32)
            call real32s(sends=.false.)
         case (titin_f64)
            call real64s(sends=.false.)
         case (titin_c64)
            call complex32s(sends=.false.)
         case (titin_c128)
            call complex64s(sends=.false.)
         case default
            ! Types that Fortran does not have.
            known = known - 1
            call instance%receive("in", message)
            call instance%receive("in", message)
         end select
      end do
      call check(known >= 9, "types")
   end subroutine

   ! Logicals are compared with another operator, and have two kinds.
   subroutine send_logical()
      type(titin_value) :: map, list
      integer :: i, ierr
      call instance%send("out", flags, timestamp=0.0_real64, ierr=ierr)
      call check(ierr == titin_ok, "to send logicals of a byte")
      ierr = -1
      call instance%send("out", logical(flags), timestamp=0.0_real64, ierr=ierr)
      call check(ierr == titin_ok, "to send logicals")
      call map%new_map()
      call map%add(logical(flags), name="array")
      call map%add(flags(1), name="number")
      call list%new_list()
      do i = 1, 3
         call list%add(logical(flags(i)))
      end do
      call map%add(list, name="list")
      call instance%send("out", map, timestamp=0.0_real64)
   end subroutine

   subroutine receive_logical()
      logical(c_bool), pointer :: seen(:)
      logical :: into(3), flag
      type(titin_value) :: list
      integer :: i, ierr
      nullify (seen)
      call first%view(seen)
      call check(all(logical(seen) .eqv. logical(flags)), "a view of logicals")
      ierr = -1
      call instance%receive("in", into, ierr=ierr)
      call check(ierr == titin_ok .and. all(into .eqv. logical(flags)), "logicals")
      call instance%receive("in", message)
      call message%view(seen, name="array")
      call check(all(logical(seen) .eqv. logical(flags)), "a view of logicals in a map")
      call message%read(flag, name="number")
      call check(flag, "a logical")
      call message%item(list, name="list")
      do i = 1, 3
         call list%read(flag, index=i)
         call check(flag .eqv. logical(flags(i)), "a list of logicals")
      end do
   end subroutine

   subroutine int8s(sends)
      logical, intent(in) :: sends
      integer(int8), parameter :: sample(3) = i8
      integer(int8), pointer :: array(:)
      integer(int8) :: into(3)
      include "elements.inc"
      if (.not. sends) call numbers(int(sample, int64))
   end subroutine

   subroutine int16s(sends)
      logical, intent(in) :: sends
      integer(int16), parameter :: sample(3) = i16
      integer(int16), pointer :: array(:)
      integer(int16) :: into(3)
      include "elements.inc"
      if (.not. sends) call numbers(int(sample, int64))
   end subroutine

   subroutine int32s(sends)
      logical, intent(in) :: sends
      integer(int32), parameter :: sample(3) = i32
      integer(int32), pointer :: array(:)
      integer(int32) :: into(3)
      include "elements.inc"
      if (.not. sends) call numbers(int(sample, int64))
   end subroutine

   subroutine int64s(sends)
      logical, intent(in) :: sends
      integer(int64), parameter :: sample(3) = i64
      integer(int64), pointer :: array(:)
      integer(int64) :: into(3)
      include "elements.inc"
      if (.not. sends) call numbers(int(sample, int64))
   end subroutine

   subroutine real32s(sends)
      logical, intent(in) :: sends
      real(real32), parameter :: sample(3) = f32
      real(real32), pointer :: array(:)
      real(real32) :: into(3)
      include "elements.inc"
      if (.not. sends) call numbers(real(sample, real64))
   end subroutine

   subroutine real64s(sends)
      logical, intent(in) :: sends
      real(real64), parameter :: sample(3) = f64
      real(real64), pointer :: array(:)
      real(real64) :: into(3)
      include "elements.inc"
      if (.not. sends) call numbers(real(sample, real64))
   end subroutine

   subroutine complex32s(sends)
      logical, intent(in) :: sends
      complex(real32), parameter :: sample(3) = c64
      complex(real32), pointer :: array(:)
      complex(real32) :: into(3)
      include "elements.inc"
   end subroutine

   subroutine complex64s(sends)
      logical, intent(in) :: sends
      complex(real64), parameter :: sample(3) = c128
      complex(real64), pointer :: array(:)
      complex(real64) :: into(3)
      include "elements.inc"
   end subroutine

   ! Checks the list in the map, and the number in the map, which is the first of the list.
   subroutine whole_numbers(expected)
      integer(int64), intent(in) :: expected(3)
      integer(int64) :: number
      include "elements_numbers.inc"
   end subroutine

   subroutine real_numbers(expected)
      real(real64), intent(in) :: expected(3)
      real(real64) :: number
      include "elements_numbers.inc"
   end subroutine
end program elements
