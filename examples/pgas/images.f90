! The temperature arrives in a coarray, block by image, whose elements other images can get.
program images
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   use titin_coarray
   implicit none

   type(titin_instance) :: instance
   type(titin_decomposition) :: blocks
   type(titin_field) :: field
   real(real64), allocatable :: temperature(:, :)[:]
   real(real64) :: t, after
   integer :: nx, ny, width, lower(2), upper(2), mine, steps, step, times, x, y
   logical :: coupled

   call instance%open(s=["temperature"], ranks=titin_coarray_ranks())
   call instance%setting("nx", nx)
   call instance%setting("ny", ny)
   call instance%setting("steps", steps)
   call titin_coarray_blocks(blocks, [nx, ny], [1, num_images()], lower, upper)
   call instance%field("temperature", blocks, field, titin_f64)
   width = (ny + num_images() - 1)/num_images()
   mine = upper(2) - lower(2) + 1
   allocate (temperature(nx, width)[*])

   times = 0
   do while (instance%reuse())
      do step = 1, steps
         ! S, if the description couples this step.
         call field%receive(temperature(:, :mine), timestamp=t, coupled=coupled)
         if (.not. coupled) cycle
         sync all

         ! The first element of the next image follows the last element of this image.
         do y = lower(2), upper(2)
            do x = 1, nx
               if (abs(temperature(x, y - lower(2) + 1) - (t + x*y)) > 0) call instance%fail("the temperature is wrong")
            end do
         end do
         if (upper(2) < ny) then
            after = temperature(1, 1)[this_image() + 1]
            if (abs(after - (t + upper(2) + 1)) > 0) call instance%fail("the temperature of the next image is wrong")
         end if
         sync all
         times = times + 1
      end do
   end do
   if (this_image() == 1) print "(4(a, i0))", "temperature: ", times, " of ", steps, &
      " steps, in coarrays on images 1 to ", num_images()
   call instance%close()
end program images
