! Ranks of which the root alone gets the data of messages: the script of rooted.c.
program rooted
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   implicit none
   type(titin_instance) :: instance
   type(titin_message) :: message
   type(titin_value) :: settings
   real(real64) :: numbers(3), use_time, time
   logical :: root
   integer :: ierr

   call MPI_Init(ierr)
   call instance%open(ports="f_init: ask more; o_f: answer", ranks=titin_mpi_ranks(MPI_COMM_WORLD), receive=titin_receive_root_only)
   root = instance%rank() == 0
   use_time = 0
   do while (instance%reuse())
      call instance%receive("ask", message)
      call check(message%kind() == merge(titin_kind_array, titin_kind_nil, root))
      call check(message%timestamp() >= use_time .and. message%timestamp() <= use_time)
      call check(message%next_timestamp() >= use_time + 1 .and. message%next_timestamp() <= use_time + 1)
      call message%settings(settings)
      call check(settings%size() == 1)
      numbers = -1
      call instance%receive("more", numbers, timestamp=time)
      call check(time >= use_time .and. time <= use_time)
      call check(numbers(3) >= merge(use_time, -1.0_real64, root) .and. numbers(3) <= merge(use_time, -1.0_real64, root))
      if (root .or. use_time < 1) call instance%send("answer", numbers, timestamp=use_time)
      use_time = use_time + 1
   end do
   call instance%close()
   call MPI_Finalize(ierr)

contains

   subroutine check(holds)
      logical, intent(in) :: holds
      if (.not. holds) call instance%fail("rooted.f90: a check failed")
   end subroutine
end program
