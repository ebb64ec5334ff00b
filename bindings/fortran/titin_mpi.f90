!> titin with MPI: the ranks of a communicator, for open of a titin_instance that is a parallel program.
!>
!>    use mpi
!>    use titin
!>    use titin_mpi
!>    call instance%open(f_init=["initial"], o_f=["final"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
!>
!> Compiled with the program's own MPI, which libtitin does not know. Programs with mpi_f08 use titin_mpi_f08 instead.
module titin_mpi
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_funloc, c_int, c_int64_t, c_int8_t, c_intptr_t, c_null_ptr, c_ptr, &
      c_size_t, c_sizeof
   use mpi
   use titin_c, only: titin_communicator
   implicit none
   private

   public :: titin_mpi_ranks

contains

   !> The ranks of this communicator. The communicator is used while the instance is opened, and not afterwards.
   function titin_mpi_ranks(comm) result(ranks)
      integer, intent(in) :: comm
      type(titin_communicator) :: ranks
      integer :: rank, count, ierr
      call MPI_Comm_rank(comm, rank, ierr)
      call MPI_Comm_size(comm, count, ierr)
      ranks%rank = rank
      ranks%ranks = count
      ranks%context = transfer(int(comm, c_intptr_t), c_null_ptr)
      ranks%broadcast = c_funloc(broadcast)
      ranks%gather = c_funloc(gather)
      ranks%size = c_sizeof(ranks)
   end function

   integer(c_int) function broadcast(context, bytes, count) bind(C, name="")
      type(c_ptr), value :: context, bytes
      integer(c_int64_t), value :: count
      integer(c_int8_t), pointer :: all(:)
      integer :: ierr
      call c_f_pointer(bytes, all, [count])
      call MPI_Bcast(all, int(count), MPI_BYTE, 0, handle(context), ierr)
      broadcast = int(ierr, c_int)
   end function

   integer(c_int) function gather(context, mine, all, count) bind(C, name="")
      type(c_ptr), value :: context, mine, all
      integer(c_int64_t), value :: count
      integer(c_int8_t), pointer :: from(:), to(:)
      integer(c_int8_t), target :: nowhere(1)
      integer :: rank, ranks, ierr
      call MPI_Comm_rank(handle(context), rank, ierr)
      call MPI_Comm_size(handle(context), ranks, ierr)
      call c_f_pointer(mine, from, [count])
      if (rank == 0) then
         call c_f_pointer(all, to, [count*ranks])
      else
         to => nowhere
      end if
      call MPI_Gather(from, int(count), MPI_BYTE, to, int(count), MPI_BYTE, 0, handle(context), ierr)
      gather = int(ierr, c_int)
   end function

   integer function handle(context)
      type(c_ptr), intent(in) :: context
      handle = int(transfer(context, 0_c_intptr_t))
   end function
end module
