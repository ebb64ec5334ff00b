! Many instances on a few threads: the script of light.c.
module cells
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none
   integer, parameter :: count = 40, laps = 6
   integer, parameter :: to_reuse = 1, to_send = 2, to_receive = 3, to_probe = 4

   type :: cell
      integer :: lap = 0, next = to_reuse
      logical :: gave_way = .false., gave_up = .false.
      real(real64) :: value = 0
   end type

   type(cell), target :: ring(count)
   character(len=8) :: how = ""

contains

   recursive subroutine step(instance, number, ierr)
      type(titin_instance), intent(inout) :: instance
      integer, intent(in) :: number
      integer, intent(out) :: ierr
      type(cell), pointer :: me
      type(titin_message) :: message
      real(real64) :: value
      logical :: again
      me => ring(number)
      do
         select case (me%next)
         case (to_reuse)
            again = instance%reuse(ierr)
            if (ierr /= titin_ok .or. .not. again) return
            me%next = to_send
         case (to_send)
            if (me%lap == 3 .and. .not. me%gave_way) then
               ! Lets other instances have their turn.
               me%gave_way = .true.
               ierr = titin_pending
               return
            end if
            me%value = number - 1 + me%lap
            call instance%send("out", me%value, timestamp=real(me%lap, real64), ierr=ierr)
            if (ierr /= titin_ok) return
            if (how == "fail" .and. number == 4 .and. me%lap == 1) then
               call instance%fail("the ice is too thin", ierr)
               ierr = titin_error_usage
               return
            end if
            me%next = to_receive
         case (to_receive)
            ierr = titin_pending
            if (.not. me%gave_up) then
               me%gave_up = .true.
               call instance%receive("in", message, timeout=3600.0_real64, ierr=ierr)
               if (ierr == titin_pending) then
                  ! The call is given up. Another call takes its place.
                  call instance%cancel("in")
                  call instance%cancel()
               end if
            end if
            if (ierr == titin_pending) call instance%receive("in", message, ierr=ierr)
            if (ierr /= titin_ok) return
            call message%read(value)
            if (value /= merge(number - 2, count - 1, number > 1) + message%timestamp()) error stop "light.f90: a value"
            me%next = to_probe
         case (to_probe)
            call instance%receive("spare", message, ierr=ierr)
            if (ierr /= titin_ok) return
            me%lap = me%lap + 1
            me%next = merge(to_send, to_reuse, me%lap < laps)
         end select
      end do
   end subroutine
end module cells

program light
   use, intrinsic :: iso_fortran_env, only: error_unit
   use cells
   use titin
   implicit none
   character(len=16) :: names(count)
   integer :: i, ierr
   call get_command_argument(1, how)
   do i = 1, count
      write (names(i), "(a, i0)") "cell_", i - 1
   end do
   call titin_run_steps(names, step, threads=3, ports="o_i: out; s: in spare", ierr=ierr)
   if (ierr /= titin_ok) then
      write (error_unit, "(a)") titin_error_text()
      error stop 1
   end if
   print "(a)", "all are done"
end program light
