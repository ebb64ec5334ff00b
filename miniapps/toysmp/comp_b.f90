! compB, the land between: waits for the ten fields of compA and of compC, and answers each with fields computed from both.
program comp_b
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   use toysmp
   implicit none

   type(titin_instance) :: instance
   type(slab) :: mine
   type(bundle) :: from_a, from_c, to_a, to_c
   type(stopwatch) :: watch
   real(real64), allocatable, dimension(:, :, :) :: a, c
   integer :: step, ierr

   call MPI_Init(ierr)
   call instance%open(ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   do while (instance%reuse())
      ! F_INIT
      call mine%open(instance)
      call from_a%open(instance, "from_a", mine)
      call from_c%open(instance, "from_c", mine)
      call to_a%open(instance, "to_a", mine)
      call to_c%open(instance, "to_c", mine)
      call watch%open(mine%steps)
      allocate (a(mine%width, mine%ny, fields), source=0.0_real64)
      allocate (c, source=a)

      do step = 0, mine%steps - 1
         call watch%begin()
         ! S
         call from_a%receive(a)
         call from_c%receive(c)
         call watch%mark()
         if (mine%checks) then
            call mine%check(instance, a, of_a, step)
            call mine%check(instance, c, of_c, step)
         end if
         call combine(a, c)
         call watch%mark()
         ! O_I
         call to_a%send(a, timestamp=real(step, real64))
         call to_c%send(c, timestamp=real(step, real64))
         call watch%mark()
      end do
   end do
   call watch%write("begin,received,computed,sent")
   call instance%close()
   call MPI_Finalize(ierr)

contains

   elemental subroutine combine(a, c)
      real(real64), intent(inout) :: a, c
      real(real64) :: both
      both = a - c
      a = 2*a - 3*c
      c = both
   end subroutine
end program
