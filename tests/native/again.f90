! Drives the ensemble of test_members.py whose members are started again: the script of again.c.
program again
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none
   type(titin_instance) :: instance
   integer :: step, slot, failures

   failures = 0
   call instance%open(o_i=["out[]"], s=["back[]"])
   do while (instance%reuse())
      do step = 0, 3
         do slot = 1, 2
            if (nint(answer(slot, real(step, real64))) /= 2 * step) error stop "again.f90: another answer"
         end do
      end do
   end do
   if (failures /= 4) error stop "again.f90: the failures are not told"
   call instance%close()

contains

   real(real64) function answer(slot, value) result(twice)
      integer, intent(in) :: slot
      real(real64), intent(in) :: value
      integer :: ierr
      do
         call instance%send("out", value, timestamp=value, slot=slot, ierr=ierr)
         if (ierr == titin_ok) call instance%receive("back", twice, slot=slot, ierr=ierr)
         if (ierr == titin_ok) return
         if (ierr /= titin_error_member_failed .or. titin_failed_slot() /= slot) error stop "again.f90: another error"
         if (index(titin_error_text(), "it is started again") == 0) error stop "again.f90: another text"
         failures = failures + 1
      end do
   end function
end program again
