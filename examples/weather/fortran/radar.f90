! Shows the latest rain again and again: the amount, and the mean column.
program radar
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
   type(titin_decomposition) :: whole
   type(titin_field) :: rain
   real(real64), allocatable :: u(:, :)
   real(real64) :: pace, t
   integer :: ny, nx, j, ierr

   call instance%open(s=["rain"])
   call instance%setting("ny", ny)
   call instance%setting("nx", nx)
   call instance%setting("pace", pace)
   call whole%new([ny, nx])
   call instance%field("rain", whole, rain, titin_f64)
   allocate (u(ny, nx))

   do while (instance%reuse())
      do
         ! S: the latest version, until the weather has ended and its last version was taken.
         call rain%receive(u, timestamp=t, ierr=ierr)
         if (ierr /= titin_ok) exit
         print "(3(g0, 1x))", t, sum(u), sum([((j - 1)*sum(u(:, j)), j=1, nx)])/sum(u)
         ierr = usleep(nint(pace*1e6))
      end do
      if (ierr /= titin_error_port_closed) call instance%fail(titin_error_text())
   end do
   call instance%close()
end program radar
