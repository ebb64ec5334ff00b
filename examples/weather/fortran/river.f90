! The level of a river, in steps of its own length. Each step takes the rain of its time on the catchment, a third of the land.
program river
   use, intrinsic :: iso_c_binding, only: c_int
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   interface
      integer(c_int) function usleep(microseconds) bind(C)
         import :: c_int
         integer(c_int), value :: microseconds
      end function
   end interface
   type(titin_instance) :: instance
   type(titin_decomposition) :: catchment
   type(titin_field) :: rain
   real(real64), allocatable :: u(:, :)
   real(real64) :: dt, k, pace, level, t
   integer :: ny, nx, steps, step, ierr

   call instance%open(s=["rain"])
   call instance%setting("ny", ny)
   call instance%setting("nx", nx)
   call instance%setting("steps", steps)
   call instance%setting("dt", dt)
   call instance%setting("k", k)
   call instance%setting("pace", pace)
   call catchment%new([ny, nx])
   call catchment%box([1, nx/3 + 1], [ny, 2*nx/3])
   call instance%field("rain", catchment, rain, titin_f64)
   allocate (u(ny, 2*nx/3 - nx/3))
   level = 0

   do while (instance%reuse())
      do step = 0, steps - 1
         ! S: the rain at or before this time.
         call rain%receive(u, at=step*dt, timestamp=t)
         level = level + dt*(sum(u)/size(u) - k*level)
         print "(3(g0, 1x))", step*dt, t, level
         ierr = usleep(nint(pace*1e6))
      end do
   end do
   call instance%close()
end program river
