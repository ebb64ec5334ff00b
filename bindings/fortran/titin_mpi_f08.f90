!> titin with MPI for programs that use mpi_f08: all of titin_mpi, for the types of mpi_f08.
module titin_mpi_f08
   use mpi_f08, only: MPI_Comm
   use titin_c, only: titin_communicator
   use titin_mpi, only: ranks_of => titin_mpi_ranks
   implicit none
   private

   public :: titin_mpi_ranks

   interface titin_mpi_ranks
      module procedure :: ranks_of_comm
      procedure :: ranks_of
   end interface

contains

   function ranks_of_comm(comm) result(ranks)
      type(MPI_Comm), intent(in) :: comm
      type(titin_communicator) :: ranks
      ranks = ranks_of(comm%MPI_VAL)
   end function
end module
