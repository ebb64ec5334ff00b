! Drives the ensemble of test_members.py, of which the member at slot 2 fails: the script of members.c.
program members
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none
   type(titin_instance) :: instance
   type(titin_message) :: message
   integer :: slot, which, answers, ierr

   call instance%open(o_i=["out[]"], s=["back[]"])
   do while (instance%reuse())
      do slot = 1, 4
         call instance%send("out", 1.0_real64, timestamp=0.0_real64, slot=slot)
      end do
      do slot = 1, 4
         call instance%receive("back", message, slot=slot, ierr=ierr)
         call told(slot, ierr)
      end do
      do slot = 1, 4
         call instance%send("out", 2.0_real64, timestamp=1.0_real64, slot=slot, ierr=ierr)
         call told(slot, ierr)
      end do
      answers = 0
      do while (answers < 3)
         call instance%receive_any(["back"], which, message, slot=slot, ierr=ierr)
         if (ierr == titin_ok) then
            answers = answers + 1
         else
            call told(titin_failed_slot(), ierr)
         end if
      end do
   end do
   call instance%close()

contains

   subroutine told(slot, ierr)
      integer, intent(in) :: slot, ierr
      if (slot /= 2) then
         if (ierr /= titin_ok) error stop "members.f90: "//titin_error_text()
         return
      end if
      if (ierr /= titin_error_member_failed) error stop "members.f90: the failed member is not told"
      if (titin_failed_member() /= "micro[1]" .or. titin_failed_slot() /= 2) error stop "members.f90: another member"
      if (index(titin_error_text(), "member micro[1] has failed: it ended with exit code 3") == 0) error stop titin_error_text()
   end subroutine
end program members
