! Heat spreads through a plate. Each rank has some columns, whose elements are neighbours in memory in Fortran. Another program
! computes the loss to the air.
program plate
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use mpi
   use titin
   use titin_mpi
   implicit none

   type(titin_instance) :: instance
   type(titin_decomposition) :: columns
   type(titin_field) :: temperature, loss
   real(real64), allocatable :: u(:, :), q(:, :), around(:, :)
   real(real64) :: d, dt, t_max, t
   integer(int64), allocatable :: column(:)
   integer :: rank, ranks, ny, nx, mine, left, right, j, step, status(MPI_STATUS_SIZE), ierr

   call MPI_Init(ierr)
   call instance%open(o_i=["temperature"], s=["loss"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   rank = instance%rank()
   ranks = instance%ranks()
   call instance%setting("ny", ny)
   call instance%setting("nx", nx)
   call instance%setting("d", d)
   call instance%setting("dt", dt)
   call instance%setting("t_max", t_max)

   ! The temperature has a halo of one on all sides; the loss has none.
   call columns%new([ny, nx])
   call columns%grid([1, ranks])
   call instance%field("loss", columns, loss, titin_f64)
   call columns%halo(1)
   call instance%field("temperature", columns, temperature, titin_f64)

   ! A hot patch on a cold plate, whose rim stays cold.
   column = loss%owned(2)
   mine = size(column)
   allocate (u(0:ny + 1, 0:mine + 1), q(ny, mine), around(ny, mine))
   u = 0
   do j = 1, mine
      if (column(j) > nx/5 .and. column(j) <= nx/2) u(ny/6 + 1:ny/2, j) = 100
   end do
   left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
   right = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)

   do while (instance%reuse())
      do step = 0, nint(t_max/dt) - 1
         ! O_I
         t = step*dt
         call temperature%send(u, timestamp=t, next_timestamp=t + dt)

         ! S
         call loss%receive(q)
         call MPI_Sendrecv(u(0, 1), ny + 2, MPI_DOUBLE_PRECISION, left, 0, u(0, mine + 1), ny + 2, &
            MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, status, ierr)
         call MPI_Sendrecv(u(0, mine), ny + 2, MPI_DOUBLE_PRECISION, right, 0, u(0, 0), ny + 2, &
            MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, status, ierr)
         associate (inside => u(1:ny, 1:mine))
            around = (u(:ny - 1, 1:mine) + u(2:, 1:mine)) + (u(1:ny, :mine - 1) + u(1:ny, 2:))
            inside = inside + dt*(d*(around - 4*inside) - q)
         end associate
      end do
   end do
   call instance%close()
   call MPI_Finalize(ierr)
end program plate
