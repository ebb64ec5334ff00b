! Two fields in coarrays, temperature and velocity, with a block of each on every image. They are sent in each step, straight from
! the coarrays. The description alone says at which steps other programs receive them.
program producer
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   use titin_coarray
   implicit none

   type(titin_instance) :: instance
   type(titin_decomposition) :: blocks
   type(titin_field) :: hot, fast
   real(real64), allocatable :: temperature(:, :)[:, :], velocity(:, :)[:, :]
   integer :: nx, ny, steps, p, q, lower(2), upper(2), mx, my, i, j, step
   real(real64) :: t

   call instance%open(o_i=["temperature", "velocity   "], ranks=titin_coarray_ranks())
   call instance%setting("nx", nx)
   call instance%setting("ny", ny)
   call instance%setting("steps", steps)

   ! A grid of images, 2 by half their number. A coarray has the same size on every image; on the last images the part beyond the
   ! end of the whole is not used.
   p = 2
   q = num_images()/p
   call titin_coarray_blocks(blocks, [nx, ny], [p, q], lower, upper)
   call instance%field("temperature", blocks, hot, titin_f64)
   call instance%field("velocity", blocks, fast, titin_f64)
   mx = upper(1) - lower(1) + 1
   my = upper(2) - lower(2) + 1
   allocate (temperature((nx + p - 1)/p, (ny + q - 1)/q)[p, *], velocity((nx + p - 1)/p, (ny + q - 1)/q)[p, *])

   do while (instance%reuse())
      do step = 1, steps
         do j = 1, my
            do i = 1, mx
               associate (x => lower(1) + i - 1, y => lower(2) + j - 1)
                  temperature(i, j) = step + x*y
                  velocity(i, j) = step*(x + y)
               end associate
            end do
         end do

         ! O_I
         t = step
         call hot%send(temperature(:mx, :my), timestamp=t)
         call fast%send(velocity(:mx, :my), timestamp=t)
      end do
   end do
   call instance%close()
end program producer
