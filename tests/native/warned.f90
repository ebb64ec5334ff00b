! A program whose calls out of order only make warnings: the script of warned.c.
program warned
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   character(len=*), parameter :: ports = "f_init: one two; o_f: early out"
   type(titin_instance) :: instance
   type(titin_message) :: message
   real(real64) :: number
   integer :: ierr, use_number

   call instance%open(ports=ports, checks=2, ierr=ierr)
   if (ierr /= titin_error_usage) error stop "warned.f90: no such checks"
   call instance%open(ports=ports, checks=titin_checks_warn)
   use_number = 0
   do while (instance%reuse())
      number = 0.0_real64
      call instance%send("early", number, timestamp=0.0_real64)
      if (use_number == 1) call instance%receive("two", number)
      call instance%receive("one", message)
      call instance%send("out", number, timestamp=0.0_real64)
      use_number = use_number + 1
   end do
   call instance%close()
end program warned
