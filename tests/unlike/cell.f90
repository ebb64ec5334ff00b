! `cell a|b rows|columns`: one side of a pair, as cell.h says. The order of memory is Fortran's, so row and column are swapped.
program cell
   use, intrinsic :: iso_fortran_env, only: real32, real64, int32, int64
   use mpi
   use titin
   use titin_mpi
   implicit none
   integer, parameter :: ny = 13, nx = 7, steps = 48, media = 3
   character(*), parameter :: names(media) = [character(4) :: "shm", "tcp", "file"]
   type(titin_instance) :: instance
   type(titin_decomposition) :: spread
   type(titin_field) :: out(media), in(media), last
   integer(int64), allocatable :: i(:), j(:)
   real(real64), allocatable :: u(:, :), v(:, :), t(:, :)
   real(real32), allocatable :: w(:, :), x(:, :), r(:, :)
   integer(int32), allocatable :: k(:, :), m(:, :)
   real(real64) :: mine, top
   integer(int64) :: row, column
   integer :: ierr, medium, step, side, p, q
   character(8) :: argument

   call MPI_Init(ierr)
   call get_command_argument(1, argument)
   side = merge(1, 0, argument == "b")
   call instance%open(ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   call spread%new([ny, nx])
   call get_command_argument(2, argument)
   if (argument == "rows") then
      call spread%grid([instance%ranks(), 1])
   else
      call spread%grid([1, instance%ranks()])
   end if
   do medium = 1, media
      call instance%field("out_"//trim(names(medium)), spread, out(medium), [titin_f64, titin_f32, titin_i32])
      call instance%field("in_"//trim(names(medium)), spread, in(medium), [titin_f64, titin_f32, titin_i32])
   end do
   call instance%field("last", spread, last, [titin_f64, titin_f32, titin_i32])
   allocate (i, source=last%owned(1))
   allocate (j, source=last%owned(2))
   allocate (u(size(i), size(j)), w(size(i), size(j)), k(size(i), size(j)))
   allocate (v, t, source=u)
   allocate (x, r, source=w)
   allocate (m, source=k)
   do while (instance%reuse())
      do q = 1, size(j)
         do p = 1, size(i)
            row = i(p) - 1
            column = j(q) - 1
            u(p, q) = real(mod(row*259 + column*37 + 11*side, 97_int64), real64)/97.0_real64
            w(p, q) = real(mod(row*5 + column*3 + 13*side, 31_int64), real32)/31.0_real32
            k(p, q) = int(row*nx + column + side, int32)
         end do
      end do
      do step = 0, steps - 1
         mine = max(0.0_real64, maxval(u))
         call MPI_Allreduce(mine, top, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, ierr)
         medium = mod(step, media) + 1
         call out(medium)%send(u, w, k, timestamp=real(step, real64))
         call in(medium)%receive(v, x, m)
         t = 0.75_real64*u + 0.25_real64*v
         u = 3.9_real64*t*(1.0_real64 - t)*(1.0_real64 - 0.001_real64*top)
         r = 0.75_real32*w + 0.25_real32*x
         w = 3.9_real32*r*(1.0_real32 - r)
         k = mod(31*k + m, 65521)
      end do
      call last%send(u, w, k, timestamp=real(steps, real64))
   end do
   call instance%close()
   call MPI_Finalize(ierr)
end program
