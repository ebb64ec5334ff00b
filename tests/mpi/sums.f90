! Sums the received numbers over its ranks.
program sums
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   implicit none
   type(titin_instance) :: instance
   type(titin_message) :: message
   real(real64), pointer :: numbers(:)
   real(real64) :: mine, total
   integer :: rank, ranks, ierr

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
   call instance%open(f_init=["numbers"], o_f=["sum"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   do while (instance%reuse())
      call instance%receive("numbers", message)
      call message%view(numbers)
      mine = sum(numbers(1 + rank::ranks))
      call MPI_Reduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      call instance%send("sum", total, timestamp=message%timestamp())
   end do
   call instance%close()
   call MPI_Finalize(ierr)
end program
