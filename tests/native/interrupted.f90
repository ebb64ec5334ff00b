! A signal while a receive waits: the script of interrupted.c.
module signals
   use, intrinsic :: iso_c_binding, only: c_funptr, c_int
   implicit none
   integer(c_int), parameter :: sigusr1 = 10
   logical, volatile :: came = .false.
   integer :: questions = 0

   interface
      function c_signal(number, handler) result(before) bind(C, name="signal")
         import :: c_funptr, c_int
         integer(c_int), value :: number
         type(c_funptr), value :: handler
         type(c_funptr) :: before
      end function
   end interface

contains

   subroutine note(number) bind(C)
      integer(c_int), value :: number
      came = number == sigusr1
   end subroutine

   function asked() result(yes)
      logical :: yes
      questions = questions + 1
      yes = came
   end function
end module signals

program interrupted
   use, intrinsic :: iso_c_binding, only: c_funloc, c_funptr
   use, intrinsic :: iso_fortran_env, only: real64
   use signals
   use titin
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: message
   character(len=8) :: role

   call get_command_argument(1, role)
   if (role == "newcomer") then
      call newcomer()
      stop
   end if
   call instance%open()
   do while (instance%reuse())
      if (role == "caller") then
         call caller()
      else
         call instance%receive("in", message)
         call instance%send_nil("out", timestamp=0.0_real64)
      end if
   end do
   call instance%close()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "interrupted.f90: "//what
   end subroutine

   subroutine newcomer()
      integer :: ierr
      call prepare()
      call instance%open(interrupted=asked, ierr=ierr)
      call check(ierr == titin_error_interrupted, "the signal ends the opening")
      call check(came .and. questions > 0, "the callback is asked")
   end subroutine

   subroutine prepare()
      type(c_funptr) :: before
      integer :: unit
      before = c_signal(sigusr1, c_funloc(note))
      open (newunit=unit, file="waiting")
      close (unit)
   end subroutine

   subroutine caller()
      integer :: ierr
      call instance%on_interrupt(asked)
      call prepare()
      call instance%receive("in", message, ierr=ierr)
      call check(ierr == titin_error_interrupted, "the signal ends the wait")
      call check(came .and. questions > 0, "the callback is asked")
      came = .false.
      call instance%send_nil("out", timestamp=0.0_real64)
      call instance%receive("in", message)
   end subroutine
end program interrupted
