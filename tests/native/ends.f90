! Errors that end a program, because the program does not ask for `ierr`. The argument names the error.
program ends
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none
   type(titin_instance) :: instance, other
   type(titin_value) :: value
   type(titin_message) :: msg
   real(real64), pointer :: matrix(:, :)
   real(real64), allocatable :: u(:)
   logical, allocatable :: flags(:, :)
   character(len=20) :: which

   call get_command_argument(1, which)
   call instance%open()
   select case (which)
   case ("copied")
      other = instance
   case ("array")
      call receive_array(u)
   case ("logicals")
      call receive_logicals(flags)
   case ("unsent")
      call send_array(u)
   case ("unsent-logicals")
      call send_logicals(flags)
   case ("nothing")
      call value%new_list()
      call add_logicals(flags)
   case ("viewed")
      call value%new(1.5_real64)
      call msg%new(value, timestamp=0.0_real64)
      call msg%view(matrix)
   end select
   print "(a)", other%name()

contains

   ! These calls are in subroutines of their own, because a compiler that sees an array that is not allocated warns.
   subroutine receive_array(u)
      real(real64), allocatable, intent(inout) :: u(:)
      call instance%receive("start", u)
   end subroutine

   subroutine receive_logicals(flags)
      logical, allocatable, intent(inout) :: flags(:, :)
      call instance%receive("start", flags)
   end subroutine

   subroutine send_array(u)
      real(real64), allocatable, intent(inout) :: u(:)
      call instance%send("end", u, timestamp=0.0_real64)
   end subroutine

   subroutine send_logicals(flags)
      logical, allocatable, intent(inout) :: flags(:, :)
      call instance%send("end", flags, timestamp=0.0_real64)
   end subroutine

   subroutine add_logicals(flags)
      logical, allocatable, intent(inout) :: flags(:, :)
      call value%add(flags)
   end subroutine
end program ends
