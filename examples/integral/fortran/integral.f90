! The integral of exp(-x*x) from 0 to a limit. The ranks share the work: each adds up some of the points.
program integral
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi_f08
   use titin
   use titin_mpi_f08
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: msg
   real(real64) :: limit, dx, mine, total
   integer :: points, i

   call MPI_Init()
   call instance%open(f_init=["limit"], o_f=["integral"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   do while (instance%reuse())
      ! F_INIT: all ranks get the message that rank 0 receives.
      call instance%setting("points", points)
      call instance%receive("limit", msg)
      call msg%read(limit)

      ! S
      dx = limit/points
      mine = 0
      do i = instance%rank(), points - 1, instance%ranks()
         mine = mine + exp(-((i + 0.5_real64)*dx)**2)*dx
      end do
      total = 0
      call MPI_Reduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)

      ! O_F: all ranks call send, and the data of rank 0 go out.
      call instance%send("integral", total, timestamp=msg%timestamp())
   end do
   call instance%close()
   call MPI_Finalize()
end program integral
