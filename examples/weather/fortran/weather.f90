! A shower drifts over the land. Each rank has some columns, whose elements are neighbours in memory in Fortran. Other programs
! take the rain when they like.
program weather
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   implicit none

   interface
      integer(c_int) function usleep(microseconds) bind(C)
         import :: c_int
         integer(c_int), value :: microseconds
      end function
   end interface
   type(titin_instance) :: instance
   type(titin_decomposition) :: columns
   type(titin_field) :: rain
   type(titin_region) :: work
   real(real64), allocatable :: u(:, :)
   real(real64) :: dt, pace
   integer :: ny, nx, steps, first, mine, step, i, j, ierr

   call MPI_Init(ierr)
   call instance%open(o_i=["rain"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   call instance%setting("ny", ny)
   call instance%setting("nx", nx)
   call instance%setting("steps", steps)
   call instance%setting("dt", dt)
   call instance%setting("pace", pace)
   call columns%new([ny, nx])
   call columns%grid([1, instance%ranks()])
   call instance%field("rain", columns, rain, titin_f64)
   first = begin(nx, instance%ranks(), instance%rank())
   mine = begin(nx, instance%ranks(), instance%rank() + 1) - first
   allocate (u(ny, mine))

   do while (instance%reuse())
      do step = 0, steps - 1
         do j = 1, mine
            do i = 1, ny
               u(i, j) = max(0, 20 - abs(i - 16 - step/2) - abs(first + j - 1 - 2*step))
            end do
         end do

         ! O_I
         call rain%send(u, timestamp=step*dt, next_timestamp=(step + 1)*dt)

         ! S: a pause in place of a larger model.
         call instance%begin_region("work", work)
         ierr = usleep(nint(pace*1e6))
         call instance%end_region(work)
      end do
   end do
   call instance%close()
   call MPI_Finalize(ierr)

contains

   ! The number of columns before those of a process, of n columns that are spread evenly.
   pure integer function begin(n, processes, process)
      integer, intent(in) :: n, processes, process
      begin = n/processes*process + min(process, mod(n, processes))
   end function
end program weather
