! Adds 1 to a field of 17 by 12 numbers, as adds.c. The numbers lie in every second column of an array with one more
! row.
program adds
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   implicit none
   integer, parameter :: halo = 2
   type(titin_instance) :: instance
   type(titin_decomposition) :: columns
   type(titin_field) :: in, out
   real(real64), allocatable :: numbers(:, :)
   real(real64) :: time
   integer :: width, ierr

   call MPI_Init(ierr)
   call instance%open(f_init=["ask"], o_f=["answer"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   call columns%new([17, 12])
   call columns%grid([1, instance%ranks()])
   call columns%spread(2, titin_block)
   call columns%halo([0, halo], [1, 0])
   call instance%field("ask", columns, in, titin_f64)
   call instance%field("answer", columns, out, titin_f64)
   width = int(in%bytes(1)/8/18)
   allocate (numbers(19, 2*width))
   do while (instance%reuse())
      numbers = -1
      call in%receive(numbers(:18, ::2), timestamp=time)
      numbers(:17, 2*halo + 1::2) = numbers(:17, 2*halo + 1::2) + 1
      call out%send(numbers(:18, ::2), timestamp=time)
      numbers(:17, 2*halo + 1::2) = -1
      if (any(numbers > -1 .or. numbers < -1)) call instance%fail("the halo was written")
   end do
   call instance%close()
   call MPI_Finalize(ierr)
end program
