! Receives the messages of test_wanted.py, and asks for each message as its own type and as every other type: the script
! of wanted.c.
program wanted
   use, intrinsic :: iso_c_binding, only: c_bool, c_int
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin
   use titin_c, only: titin_dtype_name
   use titin_common, only: text
   implicit none

   ! The types of elements that Fortran has kinds for.
   integer, parameter :: kinds(9) = [titin_bool, titin_i8, titin_i16, titin_i32, titin_i64, titin_f32, &
      titin_f64, titin_c64, titin_c128]
   type(titin_instance) :: instance
   type(titin_message) :: message
   integer :: ierr

   call instance%open(f_init=["in"], unchecked="receives many messages in F_INIT")
   if (.not. instance%reuse()) error stop "wanted.f90: no use"
   call types()
   call shapes("(2, 3), as C lies", turned=.true.)
   call shapes("(2, 3), as Fortran lies", turned=.false.)
   call others()
   ! The program ignores the last error, so the error ends the program and fails the run.
   call last()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "wanted.f90: "//what//": "//titin_error_text()
   end subroutine

   ! Checks the error of the last call, which must have these words.
   subroutine refused(expected, found)
      character(len=*), intent(in) :: expected, found
      call check(ierr == titin_error_type_mismatch, "no mismatch of types")
      call check(index(titin_error_text(), "port 'in', message from sender.out: ") == 1, "no port")
      call check(index(titin_error_text(), "expected an array of "//expected) > 0, "expected "//expected)
      call check(index(titin_error_text(), "found "//found) > 0, "found "//found)
   end subroutine

   ! Two elements of each type, which are asked for as each kind.
   subroutine types()
      integer :: sent, i
      character(len=:), allocatable :: found
      do sent = titin_bool, titin_bf16
         found = text(titin_dtype_name(int(sent, c_int)))//" of shape [2]"
         do i = 1, size(kinds)
            if (kinds(i) == sent) cycle
            call ask(kinds(i), own=.false., came=.false.)
            call refused(text(titin_dtype_name(int(kinds(i), c_int)))//" of shape [2], ", found)
         end do
         call instance%receive("in", message)
         do i = 1, size(kinds)
            call ask(kinds(i), own=kinds(i) == sent, came=.true.)
            if (kinds(i) /= sent) call refused(text(titin_dtype_name(int(kinds(i), c_int)))//" of rank 1, ", found)
         end do
      end do
   end subroutine

   subroutine ask(kind, own, came)
      integer, intent(in) :: kind
      logical, intent(in) :: own, came
      select case (kind)
      case (titin_bool); call ask_bool(own, came)
      case (titin_i8); call ask_int8(own, came)
      case (titin_i16); call ask_int16(own, came)
      case (titin_i32); call ask_int32(own, came)
      case (titin_i64); call ask_int64(own, came)
      case (titin_f32); call ask_real32(own, came)
      case (titin_f64); call ask_real64(own, came)
      case (titin_c64); call ask_complex32(own, came)
      case (titin_c128); call ask_complex64(own, came)
      end select
   end subroutine

   subroutine ask_bool(own, came)
      logical, intent(in) :: own, came
      logical(c_bool), pointer :: seen(:)
      logical(c_bool) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_int8(own, came)
      logical, intent(in) :: own, came
      integer(int8), pointer :: seen(:)
      integer(int8) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_int16(own, came)
      logical, intent(in) :: own, came
      integer(int16), pointer :: seen(:)
      integer(int16) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_int32(own, came)
      logical, intent(in) :: own, came
      integer(int32), pointer :: seen(:)
      integer(int32) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_int64(own, came)
      logical, intent(in) :: own, came
      integer(int64), pointer :: seen(:)
      integer(int64) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_real32(own, came)
      logical, intent(in) :: own, came
      real(real32), pointer :: seen(:)
      real(real32) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_real64(own, came)
      logical, intent(in) :: own, came
      real(real64), pointer :: seen(:)
      real(real64) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_complex32(own, came)
      logical, intent(in) :: own, came
      complex(real32), pointer :: seen(:)
      complex(real32) :: into(2)
      include "wanted_type.inc"
   end subroutine

   subroutine ask_complex64(own, came)
      logical, intent(in) :: own, came
      complex(real64), pointer :: seen(:)
      complex(real64) :: into(2)
      include "wanted_type.inc"
   end subroutine

   ! Two rows and three columns.
   subroutine shapes(lies, turned)
      character(len=*), intent(in) :: lies
      logical, intent(in) :: turned
      character(len=*), parameter :: found = "float64 of shape [2, 3]"
      real(real64) :: other(3, 2), flat(6), one, into(2, 3)
      real(real64), pointer :: line(:), table(:, :), cube(:, :, :)
      nullify (line, table, cube)
      call instance%receive("in", other, ierr=ierr)
      call refused("float64 of shape [3, 2], ", found)
      call instance%receive("in", flat, ierr=ierr)
      call refused("float64 of shape [6], ", found)
      call instance%receive("in", one, ierr=ierr)
      call refused("float64, a single value, ", found)
      ! A receive into memory puts each element in its place.
      call instance%receive("in", into, message=message)
      call check(all(into == reshape([0, 3, 1, 4, 2, 5], [2, 3])), "into, "//lies)
      call message%view(line, ierr=ierr)
      call refused("float64 of rank 1, ", found)
      call message%view(cube, ierr=ierr)
      call refused("float64 of rank 3 in Fortran order, ", found)
      call check(index(titin_error_text(), "reversed") == 0, "advice that does not help")
      call message%view(table, ierr=ierr)
      if (turned) then
         call refused("float64 of rank 2 in Fortran order, ", found//" in C order: ")
         call check(index(titin_error_text(), "give reversed=.true.") > 0, "advice")
         call message%view(table, reversed=.true.)
         call check(all(table == transpose(into)), "reversed")
      else
         call check(ierr == titin_ok .and. all(table == into), "as it lies")
      end if
   end subroutine

   ! Messages that are not arrays.
   subroutine others()
      character(len=19), parameter :: found(4) = [character(len=19) :: "nil", "the real number 1.5", "text", "a map of 1"]
      real(real64), pointer :: line(:)
      integer :: i
      nullify (line)
      do i = 1, size(found)
         call instance%receive("in", message)
         call message%view(line, ierr=ierr)
         call refused("float64 of rank 1, ", trim(found(i)))
         if (i == 2) call check(index(titin_error_text(), "read it with read(x)") > 0, "how a number is read")
      end do
   end subroutine

   subroutine last()
      real(real64), pointer :: table(:, :)
      real(real32), pointer :: other(:, :)
      nullify (table, other)
      call instance%receive("in", message)
      call message%view(table, ierr=ierr)
      call check(ierr == titin_error_type_mismatch, "a row is no table")
      call instance%receive("in", message)
      ! With an extent of one the elements follow each other in both orders.
      call message%view(table)
      call check(all(shape(table) == [1, 3]), "one row")
      call message%view(other)
   end subroutine
end program wanted
