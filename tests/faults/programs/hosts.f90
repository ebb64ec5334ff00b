! Functions that one program runs as instances, on threads of their own or as light steps: the script of hosts.c.
module acts
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   include "endings.inc"

   ! The next call to make. A step makes a pending call again, so the progress of the instance must outlive the step.
   integer, parameter :: to_reuse = 1, to_send = 2, to_receive = 3
   integer :: next(2) = to_reuse, number = 0
   character(len=32) :: how = ""

contains

   subroutine fail(when)
      character(len=*), intent(in) :: when
      integer(c_int) :: status
      if (how == when//"exit") call c_exit(3)
      if (how == when//"exit0") call c_exit(0)
      if (how == when//"abort") call c_abort()
      if (how == when//"kill") status = c_raise(9)
   end subroutine

   recursive subroutine culprit_step(instance, ierr)
      type(titin_instance), intent(inout) :: instance
      integer, intent(out) :: ierr
      type(titin_message) :: message
      logical :: again
      do
         select case (next(1))
         case (to_reuse)
            again = instance%reuse(ierr)
            if (ierr /= titin_ok .or. .not. again) return
            number = 0
            next(1) = to_send
         case (to_send)
            call instance%send_nil("out", timestamp=real(number, real64), ierr=ierr)
            if (ierr /= titin_ok) return
            next(1) = to_receive
         case (to_receive)
            call instance%receive("in", message, ierr=ierr)
            if (ierr /= titin_ok) return
            if (number == 2) then
               call fail("")
               if (how == "exception") then
                  call instance%fail("the mesh is tangled", ierr)
                  ierr = titin_error_usage
                  return
               end if
            end if
            number = number + 1
            next(1) = merge(to_send, to_reuse, number < 5)
         end select
      end do
   end subroutine

   recursive subroutine guest_step(instance, ierr)
      type(titin_instance), intent(inout) :: instance
      integer, intent(out) :: ierr
      type(titin_message) :: message
      logical :: again
      do
         if (next(2) == to_reuse) then
            again = instance%reuse(ierr)
            if (ierr /= titin_ok .or. .not. again) return
            next(2) = to_receive
         end if
         call instance%receive("in", message, ierr=ierr)
         if (ierr /= titin_ok) return
         next(2) = to_reuse
      end do
   end subroutine

   recursive subroutine step(instance, which, ierr)
      type(titin_instance), intent(inout) :: instance
      integer, intent(in) :: which
      integer, intent(out) :: ierr
      if (which == 1) call culprit_step(instance, ierr)
      if (which == 2) call guest_step(instance, ierr)
   end subroutine

   ! On a thread of its own an instance waits in its calls, so one step runs the whole instance.
   recursive subroutine culprit(instance)
      type(titin_instance), intent(inout) :: instance
      integer :: ierr
      call culprit_step(instance, ierr)
      if (ierr /= titin_ok) error stop 1
   end subroutine

   recursive subroutine guest(instance)
      type(titin_instance), intent(inout) :: instance
      integer :: ierr
      call guest_step(instance, ierr)
      if (ierr /= titin_ok) error stop 1
   end subroutine
end module acts

program hosts
   use, intrinsic :: iso_fortran_env, only: error_unit
   use acts
   implicit none
   character(len=8) :: names(2) = [character(len=8) :: "culprit", "guest"], kind
   type(titin_guest) :: guests(2)
   integer :: count, ierr

   call get_command_argument(2, kind)
   read (kind, *) count
   call get_command_argument(1, kind)
   call get_command_argument(3, how)
   if (how == "before-exception") error stop 1
   call fail("before-")
   if (how == "never") stop
   guests = [titin_guest("culprit", "o_i: out; s: in", culprit), titin_guest("guest", "f_init: in", guest)]
   if (kind == "steps") then
      call titin_run_steps(names(:count), step, threads=2, ierr=ierr)
   else
      call titin_host_guests(guests(:count), ierr=ierr)
   end if
   if (ierr /= titin_ok) then
      write (error_unit, "(a)") titin_error_text()
      error stop 1
   end if
   call fail("after-")
end program hosts
