! Adds 1 to the numbers of coarrays in each use.
program images
   use, intrinsic :: iso_fortran_env, only: int32, int64, real64
   use titin
   use titin_coarray
   implicit none
   type(titin_instance) :: instance
   type(titin_decomposition) :: blocks
   type(titin_field) :: in(4), out(4)
   real(real64), allocatable :: even(:, :)[:, :], halo(:, :)[:, :]
   integer(int32), allocatable :: uneven(:, :)[:, :]
   integer(int64), allocatable :: few(:)[:]
   integer :: p, q, lower(2), upper(2), e(2), m(2), first(1), last(1), mine
   real(real64) :: t

   p = merge(2, 1, mod(num_images(), 2) == 0)
   q = num_images()/p
   call instance%open(f_init=["even  ", "uneven", "halo  ", "few   "], &
      o_f=["even_back  ", "uneven_back", "halo_back  ", "few_back   "], ranks=titin_coarray_ranks())
   allocate (even((12 + p - 1)/p, (8 + q - 1)/q)[p, *])
   allocate (uneven((13 + p - 1)/p, (7 + q - 1)/q)[p, *])
   allocate (halo(0:(13 + p - 1)/p + 1, -1:(7 + q - 1)/q)[p, *])
   allocate (few((5 + num_images() - 1)/num_images())[*])

   call titin_coarray_blocks(blocks, [5], [num_images()], first, last)
   mine = last(1) - first(1) + 1
   call instance%field("few", blocks, in(4), titin_i64)
   call instance%field("few_back", blocks, out(4), titin_i64)
   call titin_coarray_blocks(blocks, [12, 8], [p, q], lower, upper)
   e = upper - lower + 1
   call instance%field("even", blocks, in(1), titin_f64)
   call instance%field("even_back", blocks, out(1), titin_f64)
   call titin_coarray_blocks(blocks, [13, 7], [p, q], lower, upper)
   m = upper - lower + 1
   call instance%field("uneven", blocks, in(2), titin_i32)
   call instance%field("uneven_back", blocks, out(2), titin_i32)
   call blocks%halo([1, 2], [1, 0])
   call instance%field("halo", blocks, in(3), titin_f64)
   call instance%field("halo_back", blocks, out(3), titin_f64)

   do while (instance%reuse())
      halo = -7
      call in(1)%receive(even(:e(1), :e(2)), timestamp=t)
      call in(2)%receive(uneven(:m(1), :m(2)))
      call in(3)%receive(halo(:m(1) + 1, :m(2)))
      call in(4)%receive(few(:mine))
      if (any(halo(0, :) > -7) .or. any(halo(m(1) + 1, :) > -7) .or. any(halo(:, :0) > -7)) then
         call instance%fail("the halo was written")
      end if
      even = even + 1
      uneven = uneven + 1
      halo = halo + 1
      few = few + 1
      ! An image can read the elements that another image has received.
      sync all
      if (few(1)[1] <= 0) call instance%fail("the first image has nothing")
      sync all
      call out(1)%send(even(:e(1), :e(2)), timestamp=t)
      call out(2)%send(uneven(:m(1), :m(2)), timestamp=t)
      call out(3)%send(halo(:m(1) + 1, :m(2)), timestamp=t)
      call out(4)%send(few(:mine), timestamp=t)
   end do
   call instance%close()
end program
