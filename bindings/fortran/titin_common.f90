! Procedures that the modules of titin share: text in Fortran and C, the end of a call, errors.
module titin_common
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_int, c_int64_t, c_loc, c_null_char, &
      c_null_ptr, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
   use titin_c
   implicit none
   private

   public :: text, c, finish, began, ended, extents_of, is_there, fits_int32, misfit_int32, misfit_real32, &
      rounded_real32, following, slot_number, index_names, patience, same_bits, told

   ! The only open instance of the process. Values and messages know no instance, so their errors fail this one. A process
   ! with several instances, such as a host, has no such instance.
   type(c_ptr) :: alone = c_null_ptr
   logical :: several = .false.

   interface
      pure function strlen(chars) result(length) bind(C)
         import :: c_ptr, c_size_t
         type(c_ptr), value :: chars
         integer(c_size_t) :: length
      end function
   end interface

contains

   ! Text of C; "" for NULL. `length` where the text may hold NULs.
   function text(chars, length) result(string)
      type(c_ptr), intent(in) :: chars
      integer(c_int64_t), intent(in), optional :: length
      character(len=:), allocatable :: string
      character(kind=c_char), pointer :: bytes(:)
      integer(c_int64_t) :: i, n

      n = 0
      if (c_associated(chars)) then
         if (present(length)) then
            n = length
         else
            n = int(strlen(chars), c_int64_t)
         end if
         call c_f_pointer(chars, bytes, [n])
      end if
      allocate (character(len=n) :: string)
      do i = 1, n
         string(i:i) = bytes(i)
      end do
   end function

   ! Text for C: trimmed, with a NUL at the end.
   pure function c(string) result(chars)
      character(len=*), intent(in) :: string
      character(len=:, kind=c_char), allocatable :: chars
      chars = trim(string)//c_null_char
   end function

   ! The end of every procedure: the status goes to `ierr`; without `ierr` an error fails the run and ends the program.
   ! `found` is the text of an error of these modules, which becomes the last error of the library.
   subroutine finish(status, ierr, instance, found)
      integer(c_int), intent(in) :: status
      integer, intent(out), optional :: ierr
      type(c_ptr), intent(in), optional :: instance
      character(len=*), intent(in), optional :: found
      character(len=:), allocatable :: message
      type(c_ptr) :: culprit
      integer(c_int) :: ignored

      if (present(found)) then
         call titin_set_error(c(found))
      else if (status /= titin_ok) then
         call without_handles()
      end if
      if (present(ierr)) then
         ierr = int(status)
         return
      end if
      if (status == titin_ok) return
      message = text(titin_error())
      culprit = c_null_ptr
      if (present(instance)) then
         culprit = instance
      else if (.not. several) then
         culprit = alone
      end if
      if (c_associated(culprit)) then
         ! If an error only follows from a failure elsewhere, this instance does not fail.
         if (status /= titin_error_peer_lost .and. status /= titin_error_deadlock) then
            ignored = titin_fail(culprit, c(message))
         end if
         ignored = titin_close(culprit)
      end if
      error stop "titin: "//message
   end subroutine

   ! Programs name ports, and see no handles. So for a port that does not exist, the program gets the error of the search
   ! for the port, and not the error of the next call, which got NULL.
   subroutine without_handles()
      character(len=*), parameter :: none = "no port: NULL was given where titin_port_find gives one; the last error before was: "
      character(len=:), allocatable :: message
      message = text(titin_error())
      if (index(message, none) == 1) call titin_set_error(c(message(len(none) + 1:)))
   end subroutine

   ! An instance of this process was opened, or borrowed from a host.
   subroutine began(instance, borrowed)
      type(c_ptr), intent(in) :: instance
      logical, intent(in) :: borrowed
      if (borrowed .or. c_associated(alone)) several = .true.
      if (.not. borrowed) alone = instance
   end subroutine

   ! An instance of this process is about to be closed.
   subroutine ended(instance)
      type(c_ptr), intent(in) :: instance
      if (c_associated(alone, instance)) alone = c_null_ptr
   end subroutine

   elemental function fits_int32(number) result(fits)
      integer(int64), intent(in) :: number
      logical :: fits
      fits = number >= -int(huge(0_int32), int64) - 1 .and. number <= huge(0_int32)
   end function

   ! The error text for a whole number that does not fit.
   function misfit_int32(number) result(words)
      integer(int64), intent(in) :: number
      character(len=:), allocatable :: words
      character(len=20) :: digits
      write (digits, "(i0)") number
      words = trim(digits)//" does not fit integer(int32) (-2147483648 to 2147483647): read integer(int64)"
   end function

   ! The error text for a number that would become infinite as real(real32); "" for others.
   function misfit_real32(number) result(words)
      real(real64), intent(in) :: number
      character(len=:), allocatable :: words
      character(len=24) :: digits
      words = ""
      if (abs(number) <= huge(0.0_real32) .or. .not. abs(number) <= huge(0.0_real64)) return
      write (digits, "(es24.15e3)") number
      words = trim(adjustl(digits))//" does not fit real(real32) (up to 3.4028235e38): read real(real64)"
   end function

   ! The error text for a whole number that real(real32) could only round; "" for others. Rounding real numbers is no error.
   function rounded_real32(number) result(words)
      real(real64), intent(in) :: number
      character(len=:), allocatable :: words
      character(len=24) :: digits, near
      words = ""
      if (.not. abs(number) < 2.0_real64**63) return
      if (real(real(number, real32), real64) == number) return
      write (digits, "(i0)") int(number, int64)
      write (near, "(i0)") int(real(number, real32), int64)
      words = "the value is "//trim(digits)//", a whole number that real(real32) does not have: its nearest is "// &
         trim(near)//"; read it as a whole number"
   end function

   ! The extents of a shape. gfortran gives -1 for some arrays without elements.
   elemental function extents_of(shape) result(extents)
      integer(c_int64_t), intent(in) :: shape
      integer(c_int64_t) :: extents
      extents = max(shape, 0_c_int64_t)
   end function

   ! Whether an array is allocated. An array that is not allocated has no memory, and undefined extents; Fortran allows no
   ! second specific procedure for such an array. Constants without elements have no memory either, but extents of 0.
   function is_there(memory, shape) result(there)
      type(c_ptr), intent(in) :: memory
      integer(c_int64_t), intent(in) :: shape(:)
      logical :: there
      there = c_associated(memory) .or. (all(shape >= -1) .and. any(shape <= 0))
   end function

   ! A next timestamp for C.
   pure function following(next_timestamp) result(next)
      real(real64), intent(in), optional :: next_timestamp
      real(c_double) :: next
      next = titin_no_next
      if (present(next_timestamp)) next = next_timestamp
   end function

   ! A timeout for C.
   pure function patience(timeout) result(seconds)
      real(real64), intent(in), optional :: timeout
      real(c_double) :: seconds
      seconds = titin_wait
      if (present(timeout)) seconds = timeout
   end function

   ! Slots count from one in Fortran.
   pure function slot_number(slot) result(number)
      integer, intent(in), optional :: slot
      integer(c_int) :: number
      number = titin_no_slot
      if (.not. present(slot)) return
      ! A number that is no slot must not become titin_no_slot.
      number = -2
      if (slot > 0) number = int(slot - 1, c_int)
   end function

   ! Index names as C takes them: pointers into `chars`.
   function index_names(names, chars) result(pointers)
      character(len=*), intent(in) :: names(:)
      character(kind=c_char), allocatable, target, intent(out) :: chars(:)
      type(c_ptr) :: pointers(size(names))
      integer :: i, j, at
      allocate (chars(sum(len_trim(names) + 1)))
      at = 0
      do i = 1, size(names)
         pointers(i) = c_loc(chars(at + 1))
         do j = 1, len_trim(names(i))
            at = at + 1
            chars(at) = names(i)(j:j)
         end do
         at = at + 1
         chars(at) = c_null_char
      end do
   end function

   ! Fortran has no unsigned numbers, and no reals of 16 bits: integers of the same size hold their bits.
   pure function same_bits(given, wanted) result(same)
      integer(c_int), intent(in) :: given, wanted
      logical :: same
      same = given == wanted .or. any(titin_without_kind == wanted .and. titin_their_integers == given)
   end function

   ! The type of elements by which an array is sent: the type of the array's kind, or the type `as`, whose bits the array
   ! holds. `wrong` is allocated, with the error text, if the kind cannot hold such bits.
   subroutine told(dtype, as, used, wrong)
      integer(c_int), intent(in) :: dtype
      integer, intent(in), optional :: as
      integer(c_int), intent(out) :: used
      character(len=:), allocatable, intent(out) :: wrong
      character(len=11) :: number
      used = dtype
      if (.not. present(as)) return
      used = int(as, c_int)
      if (same_bits(dtype, used)) return
      wrong = text(titin_dtype_name(used))
      if (len(wrong) == 0) then
         write (number, "(i0)") as
         wrong = trim(number)//", which is no type of elements"
      end if
      wrong = "as: an array of "//text(titin_dtype_name(dtype))//" does not hold the bits of "//wrong// &
         "; give titin_u8 to titin_u64, titin_f16 or titin_bf16, with integers of the same size"
   end subroutine
end module titin_common
