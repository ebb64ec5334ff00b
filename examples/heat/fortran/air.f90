! The heat that a warm plate loses to the air. Each rank has some rows.
program air
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   implicit none

   type(titin_instance) :: instance
   type(titin_decomposition) :: rows
   type(titin_field) :: temperature, loss
   real(real64), allocatable :: u(:, :)
   real(real64) :: k, t
   integer :: ny, nx, mine, ierr

   call MPI_Init(ierr)
   call instance%open(f_init=["temperature"], o_f=["loss"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   call instance%setting("ny", ny)
   call instance%setting("nx", nx)
   call instance%setting("k", k)
   call rows%new([ny, nx])
   call rows%grid([instance%ranks(), 1])
   call instance%field("temperature", rows, temperature, titin_f64)
   call instance%field("loss", rows, loss, titin_f64)
   mine = ny/instance%ranks() + merge(1, 0, instance%rank() < mod(ny, instance%ranks()))
   allocate (u(mine, nx))

   do while (instance%reuse())
      ! F_INIT
      call temperature%receive(u, timestamp=t)

      ! S
      u = k*u

      ! O_F
      call loss%send(u, timestamp=t)
   end do
   call instance%close()
   call MPI_Finalize(ierr)
end program air
