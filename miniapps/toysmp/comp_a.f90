! compA, the atmosphere: sends its ten fields to compB, takes the answers as its new state, and moves it to the east by a cell.
program comp_a
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   use toysmp
   implicit none

   type(titin_instance) :: instance
   type(slab) :: mine
   type(bundle) :: out, in
   type(stopwatch) :: watch
   real(real64), allocatable :: u(:, :, :)
   integer :: step, ierr

   call MPI_Init(ierr)
   call instance%open(ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   do while (instance%reuse())
      ! F_INIT
      call mine%open(instance)
      call out%open(instance, "out", mine)
      call in%open(instance, "in", mine)
      call watch%open(mine%steps)
      u = mine%initial(of_a)

      do step = 0, mine%steps - 1
         call watch%begin()
         ! O_I
         call out%send(u, timestamp=real(step, real64))
         call watch%mark()
         ! S
         call in%receive(u)
         call watch%mark()
         call move_east(u)
         call watch%mark()
         if (mine%checks) call mine%check(instance, u, of_a, step + 1)
      end do
      call mine%check(instance, u, of_a, mine%steps)
   end do
   call watch%write("begin,sent,received,computed")
   call instance%close()
   call MPI_Finalize(ierr)

contains

   ! Each rank's easternmost column is the westernmost of the next, round the world.
   subroutine move_east(u)
      real(real64), intent(inout) :: u(:, :, :)
      real(real64), dimension(size(u, 2), size(u, 3)) :: east, west
      integer :: i, j, field, rank, ranks
      rank = instance%rank()
      ranks = instance%ranks()
      east = u(size(u, 1), :, :)
      call MPI_Sendrecv(east, size(east), MPI_DOUBLE_PRECISION, modulo(rank + 1, ranks), 0, west, size(west), &
         MPI_DOUBLE_PRECISION, modulo(rank - 1, ranks), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      do field = 1, size(u, 3)
         do j = 1, size(u, 2)
            do i = size(u, 1), 2, -1
               u(i, j, field) = u(i - 1, j, field)
            end do
            u(1, j, field) = west(j, field)
         end do
      end do
   end subroutine
end program
