! Diffusion along a line: the slow, coarse model of the pair.
program macro
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   type(titin_instance) :: instance
   real(real64), allocatable :: u(:), grown(:)
   real(real64) :: d, dx, dt, t_max, t, a
   integer :: cells, step

   call instance%open(o_i=["state_out"], s=["state_in"], o_f=["final_state"])
   do while (instance%reuse())
      ! F_INIT
      call instance%setting("d", d)
      call instance%setting("dx", dx)
      call instance%setting("dt", dt)
      call instance%setting("t_max", t_max)
      call instance%setting("cells", cells)
      allocate (u(cells), grown(cells))
      u = 0.0_real64
      u(:cells/10) = 1.0_real64
      a = d*dt/(dx*dx)

      t = 0.0_real64
      do step = 0, nint(t_max/dt) - 1
         ! O_I
         t = step*dt
         call instance%send("state_out", u, timestamp=t, next_timestamp=t + dt)

         ! S
         call instance%receive("state_in", grown)
         u(2:cells - 1) = grown(2:cells - 1) + a*(grown(1:cells - 2) - 2.0_real64*grown(2:cells - 1) + grown(3:cells))
         u(1) = u(2)
         u(cells) = u(cells - 1)
      end do

      ! O_F
      call instance%send("final_state", u, timestamp=t + dt)
      deallocate (u, grown)
   end do
   call instance%close()
end program macro
