! Logistic growth in each cell by itself: the fast model of the pair.
program micro
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: msg
   real(real64), pointer :: initial(:)
   real(real64), allocatable :: u(:)
   real(real64) :: k, dt, t_max
   integer :: step

   call instance%open(f_init=["initial_state"], o_f=["final_state"])
   do while (instance%reuse())
      ! F_INIT
      call instance%setting("k", k)
      call instance%setting("dt", dt)
      call instance%setting("t_max", t_max)
      call instance%receive("initial_state", msg)
      call msg%view(initial)
      u = initial

      ! S
      do step = 1, nint(t_max/dt)
         u = u + dt*k*u*(1.0_real64 - u)
      end do

      ! O_F
      call instance%send("final_state", u, timestamp=msg%timestamp() + t_max)
   end do
   call instance%close()
end program micro
