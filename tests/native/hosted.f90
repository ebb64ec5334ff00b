! Two instances on threads of one process: the script of hosted.c.
module acts
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none
   integer, parameter :: slots = 3

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "hosted.f90: "//what
   end subroutine

   recursive subroutine sender(instance)
      type(titin_instance), intent(inout) :: instance
      type(titin_region) :: region
      real(real64) :: dt
      integer :: slot, ierr
      call check(instance%name() == "sender" .and. instance%reuse(), "a use")
      call instance%setting("dt", dt, unit="ms")
      call check(abs(dt - 500) < 1e-12_real64, "a setting with a unit")
      call check(instance%is_vector("wide") .and. instance%is_resizable("wide"), "vector port")
      call instance%set_slots("wide", slots)
      call check(instance%slots("wide") == slots, "slots")
      call instance%send_nil("wide", timestamp=0.0_real64, slot=slots + 1, ierr=ierr)
      call check(ierr == titin_error_usage, "a slot that is not there")
      call instance%send_nil("wide", timestamp=0.0_real64, slot=0, ierr=ierr)
      call check(ierr == titin_error_usage, "slots count from one")
      do slot = 1, slots
         call instance%send_nil("wide", timestamp=real(slot, real64), slot=slot)
      end do
      call instance%begin_region("send", region)
      call instance%send("out", [1.5_real64, 2.5_real64], timestamp=1.0_real64)
      call instance%end_region(region)
      call instance%log(titin_log_info, "all is sent")
      call check(.not. instance%reuse(), "one use")
   end subroutine

   recursive subroutine receiver(instance)
      type(titin_instance), intent(inout) :: instance
      type(titin_message) :: message
      character(len=:), allocatable :: text
      character(len=8) :: how
      real(real64) :: values(2)
      integer :: slot, which, ierr
      call check(instance%reuse(), "a use")
      call get_command_argument(1, how)
      if (how == "say") then
         call instance%fail("the ice is too thin")
         return
      end if
      ! A call without `ierr` ends the program if there is an error.
      if (how == "return") call instance%setting("the ice is too thin", values(1))
      do slot = slots, 1, -1
         call instance%receive("wide", message, slot=slot)
         call message%read(text)
         call check(message%timestamp() == 10 + slot .and. .not. message%has_next() .and. text == "late", "filter")
      end do
      call instance%receive("in", values)
      call check(all(values == [3.0_real64, 5.0_real64]), "doubled")
      call instance%receive_any(["in  ", "wide"], which, message, ierr=ierr)
      call check(ierr == titin_error_port_closed, "the end")
   end subroutine
end module acts

program hosted
   use acts
   use titin
   implicit none
   call titin_host_guests([titin_guest("sender", "o_i: out wide[]", sender), &
      titin_guest("receiver", "s: in wide[]", receiver)])
   print "(a)", "both are done"
end program hosted
