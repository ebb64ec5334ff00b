! Exchanges messages for a few steps and then fails in the way that the argument says.
program culprit
   use, intrinsic :: iso_c_binding, only: c_int, c_ptr
   use, intrinsic :: iso_fortran_env, only: error_unit, real64
   use titin
   implicit none

   include "endings.inc"

   interface
      integer(c_int) function c_panic(instance) bind(C, name="titin_test_panic")
         import :: c_int, c_ptr
         type(c_ptr), value :: instance
      end function
   end interface

   type(titin_instance) :: instance
   type(titin_message) :: message
   character(len=32) :: how
   integer :: step

   call get_command_argument(1, how)
   if (how(1:7) == "before-") call fail(how(8:))
   if (how == "never") stop
   if (how == "misspelt") then
      call instance%open(o_i=["outt"], s=["in"])
   else
      call instance%open(o_i=["out"], s=["in"])
   end if
   do while (instance%reuse())
      do step = 0, 4
         call instance%send("out", [step], timestamp=real(step, real64))
         call instance%receive("in", message)
         if (step == 2) call fail(how)
      end do
   end do
   call instance%close()
   if (how(1:6) == "after-") call fail(how(7:))

contains

   subroutine fail(how)
      character(len=*), intent(in) :: how
      integer(c_int) :: status

      select case (how)
      case ("exception")
         ! The text of error stop would be lost above gfortran's backtrace.
         call instance%fail("the mesh is tangled")
         call instance%close(ierr=status)
         error stop 1
      case ("exit")
         call c_exit(3)
      case ("exit0")
         call c_exit(0)
      case ("abort")
         call c_abort()
      case ("kill")
         status = c_raise(9)
      case ("panic")
         status = c_panic(instance%raw)
         write (error_unit, "(a, i0, a)") "titin_test_panic returned ", status, ": "//titin_error_text()
         call instance%fail(titin_error_text())
         call instance%close(ierr=status)
         error stop 1
      end select
   end subroutine

end program
