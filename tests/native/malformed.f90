! Receives messages with each receiving call in turn, and prints each error. All messages but the last are malformed.
program malformed
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: message
   character(len=8) :: argument
   character(len=:), allocatable :: words
   real(real64) :: number
   integer :: count, i, ierr, which
   logical :: found

   call get_command_argument(1, argument)
   read (argument, *) count
   call instance%open(s=["in"])
   if (.not. instance%reuse()) error stop "malformed.f90: no use"
   do i = 0, count - 1
      ierr = titin_ok
      select case (mod(i, 4))
      case (0)
         call instance%receive("in", message, ierr=ierr)
      case (1)
         call instance%receive_any(["in"], which, message, ierr=ierr)
      case (2)
         call instance%receive("in", number, ierr=ierr)
      case default
         found = .false.
         do while (ierr == titin_ok .and. .not. found)
            call instance%try_receive("in", message, found, ierr=ierr)
         end do
      end select
      if (ierr /= titin_error_type_mismatch) error stop "malformed.f90: a malformed message"
      print "(a)", titin_error_text()
   end do
   call instance%receive("in", message)
   call message%read(words)
   if (words /= "well") error stop "malformed.f90: the message after them"
   if (instance%reuse()) error stop "malformed.f90: another use"
   call instance%close()
end program malformed
