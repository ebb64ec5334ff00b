! A bar that conducts heat, in two halves: `bar left ADDRESS` listens there, `bar right ADDRESS` opens the path.
program bar
   use, intrinsic :: iso_fortran_env, only: real64
   use titin_path
   implicit none
   integer, parameter :: cells = 50, steps = 2000
   type(path_listener_type) :: listener
   type(path_type) :: path
   character(len=256) :: half, address
   real(real64) :: u(0:cells + 1)
   integer :: own, other, step

   call get_command_argument(1, half)
   call get_command_argument(2, address)
   ! Cells 1 to `cells` are this half's; the first and the last are its neighbours'. The left end is hot.
   u = 0
   if (half == "left") then
      call listener%start(address)
      call listener%accept(path)
      call listener%stop()
      u(0) = 100
      own = cells
      other = cells + 1
   else
      call path%open(address, name="bar")
      own = 1
      other = 0
   end if
   do step = 1, steps
      call path%exchange(u(own:own), u(other:other))
      u(1:cells) = u(1:cells) + 0.25_real64*(u(0:cells - 1) - 2*u(1:cells) + u(2:cells + 1))
   end do
   print "(es24.16e3)", u(1:cells)
   call path%close()
end program bar
