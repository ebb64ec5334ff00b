! One of two programs, "left" or "right". The right program takes versions of the left program's field: the script of
! versions.c.
program versions
   use, intrinsic :: iso_fortran_env, only: error_unit, real64
   use titin
   implicit none

   type(titin_instance) :: instance
   type(titin_decomposition) :: whole
   type(titin_field) :: out, in
   character(len=8) :: side
   real(real64) :: numbers(4)

   call get_command_argument(1, side)
   call instance%open(o_i=["out"], s=["in"])
   call check(instance%reuse(), "a use")
   call whole%new([4])
   call instance%field("out", whole, out, titin_f64)
   call instance%field("in", whole, in, titin_f64)
   if (side == "left") then
      call left()
   else
      call right()
   end if
   call check(.not. instance%reuse(), "one use")
   call instance%close()

contains

   subroutine send(t)
      real(real64), intent(in) :: t
      call out%send([t, t + 1, t + 2, t + 3], timestamp=t)
   end subroutine

   subroutine left()
      integer :: t
      logical :: coupled
      real(real64) :: stamp
      do t = 0, 3
         call send(real(t, real64))
      end do
      numbers = -1
      call in%receive(numbers, coupled=coupled)
      call check(.not. coupled .and. all(numbers == -1), "a step that is not coupled")
      call in%receive(numbers, timestamp=stamp, coupled=coupled)
      call check(coupled .and. stamp == 2 .and. numbers(1) == 2, "a step that is")
      call out%withdraw()
   end subroutine

   subroutine right()
      real(real64) :: stamp, next
      real(real64), parameter :: asked(2) = [3.0_real64, 2.5_real64]
      integer :: i, ierr
      do i = 1, 2
         call in%receive(numbers, at=asked(i), timestamp=stamp, next_timestamp=next)
         call check(stamp == floor(asked(i)) .and. next < 0, "timestamps")
         call check(numbers(1) == stamp .and. numbers(4) == stamp + 3, "numbers")
      end do
      call in%receive(numbers, at=0.0_real64, ierr=ierr)
      call check(ierr == titin_error_evicted, "what is not kept")
      call in%receive(numbers, at=3.5_real64, timeout=0.01_real64, ierr=ierr)
      call check(ierr == titin_error_timeout, "what is not there yet")
      call in%receive(numbers, timestamp=stamp)
      call check(stamp == 3, "the latest")
      call in%withdraw(ierr)
      call check(ierr == titin_error_usage, "to withdraw what is received")
      call send(1.0_real64)
      call send(2.0_real64)
      do
         call in%receive(numbers, timestamp=stamp, ierr=ierr)
         if (ierr /= titin_ok) exit
         call check(stamp == 3, "the same again")
      end do
      call check(ierr == titin_error_port_closed, "what was withdrawn")
   end subroutine

   subroutine check(right, what)
      logical, intent(in) :: right
      character(len=*), intent(in) :: what
      if (right) return
      write (error_unit, "(2a)") "wrong: ", what
      error stop
   end subroutine
end program versions
