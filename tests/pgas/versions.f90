! Takes versions of a field into a global array, and follows the steps of another field.
program versions
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   use titin_ga
   implicit none
#include "mafdecls.fh"
#include "global.fh"
   type(titin_instance) :: instance
   type(titin_ga_field) :: x, y, back
   integer :: g_a, i, error
   real(real64) :: t, number(1)
   real(real64), parameter :: asked(3) = [2.5_real64, 1.0_real64, 5.5_real64], times(3) = [2, 1, 5]
   logical :: coupled

   call MPI_Init(error)
   call ga_initialize()
   call instance%open(o_i=["back"], s=["x", "y"], ranks=titin_ga_ranks())
   call check(nga_create(MT_DBL, 2, [13, 7], "numbers", [-1, -1], g_a), "a global array")
   call x%new(instance, "x", g_a)
   call y%new(instance, "y", g_a)
   call back%new(instance, "back", g_a)
   call check(instance%reuse(), "a use")

   do i = 1, 3
      call x%receive(at=asked(i), timestamp=t)
      call check(t == times(i), "the time of a version")
      call nga_get(g_a, [13, 7], [13, 7], number, [1])
      call check(number(1) == 90 + 1000*t, "the last number")
      call ga_sync()
   end do
   call x%receive(at=-1.0_real64, ierr=error)
   call check(error == titin_error_evicted, "before the first")
   call x%receive(timestamp=t)
   call check(t == 5, "the latest")
   call y%receive(coupled=coupled)
   call check(.not. coupled, "a step that is not coupled")
   call y%receive(timestamp=t, coupled=coupled)
   call check(coupled .and. t == 1, "a step that is")
   call back%send(timestamp=0.0_real64)
   call back%withdraw()
   call instance%close()
   call ga_terminate()
   call MPI_Finalize(error)

contains

   subroutine check(right, what)
      logical, intent(in) :: right
      character(len=*), intent(in) :: what
      if (.not. right) call instance%fail(what)
   end subroutine
end program
