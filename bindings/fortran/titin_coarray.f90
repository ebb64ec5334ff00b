!> titin with coarrays: the images of a program are the ranks of an instance, and own their parts of coarrays.
!>
!>    use titin
!>    use titin_coarray
!>    call instance%open(o_i=["temperature"], ranks=titin_coarray_ranks())
!>    call titin_coarray_blocks(blocks, shape=[nx, ny], images=[2, num_images()/2], lower=lower, upper=upper)
!>    call instance%field("temperature", blocks, field, titin_f64)
!>    allocate (u(mx, my)[2, *])
!>    call field%send(u(:upper(1) - lower(1) + 1, :upper(2) - lower(2) + 1), timestamp=t)
!>
!> Compiled with the program's own compiler and coarrays, which libtitin does not know. Rank 0 is image 1.
module titin_coarray
   use, intrinsic :: iso_c_binding, only: c_f_pointer, c_funloc, c_int, c_int64_t, c_int8_t, c_null_ptr, c_ptr, c_sizeof
   use titin_c, only: titin_block, titin_communicator, titin_order_fortran
   use titin_fields, only: titin_decomposition
   implicit none
   private

   public :: titin_coarray_ranks, titin_coarray_blocks

contains

   !> The communicator of all images, for the argument `ranks` of open. All images call open together. The communicator is
   !> used while the instance is opened, by co_broadcast and co_sum, and not afterwards.
   function titin_coarray_ranks() result(ranks)
      type(titin_communicator) :: ranks
      ranks%rank = this_image() - 1
      ranks%ranks = num_images()
      ranks%context = c_null_ptr
      ranks%broadcast = c_funloc(broadcast)
      ranks%gather = c_funloc(gather)
      ranks%size = c_sizeof(ranks)
   end function

   !> The decomposition of an array of this shape by coarrays. `images` has the number of images along each dimension;
   !> images count in the order of cosubscripts. Along a dimension each image has a block of ceiling(n/images) elements, the
   !> extent of the coarray. The last images may have fewer elements, or none. Images beyond the grid have none. `lower` and
   !> `upper` are the first and last indices of the calling image in the whole array.
   subroutine titin_coarray_blocks(blocks, shape, images, lower, upper, ierr)
      type(titin_decomposition), intent(inout) :: blocks
      integer, intent(in) :: shape(:), images(:)
      integer, intent(out), optional :: lower(:), upper(:)
      integer, intent(out), optional :: ierr
      integer :: dim, before, place, extent

      if (present(ierr)) ierr = 0
      call blocks%new(shape, ierr)
      if (failed()) return
      call blocks%grid(images, ierr)
      if (failed()) return
      call blocks%ranks(titin_order_fortran, ierr)
      before = 1
      do dim = 1, size(shape)
         if (failed()) return
         call blocks%spread(dim, titin_block, ierr=ierr)
         extent = (shape(dim) + images(dim) - 1)/images(dim)
         place = mod((this_image() - 1)/before, images(dim))
         ! Images beyond the grid own nothing.
         if (this_image() > product(images)) place = images(dim)
         before = before*images(dim)
         if (present(lower)) lower(dim) = min(place*extent, shape(dim)) + 1
         if (present(upper)) upper(dim) = min((place + 1)*extent, shape(dim))
      end do

   contains

      logical function failed()
         failed = .false.
         if (present(ierr)) failed = ierr /= 0
      end function
   end subroutine

   integer(c_int) function broadcast(context, bytes, count) bind(C, name="")
      type(c_ptr), value :: context, bytes
      integer(c_int64_t), value :: count
      integer(c_int8_t), pointer :: all(:)
      integer :: status
      call c_f_pointer(bytes, all, [count])
      call co_broadcast(all, source_image=1, stat=status)
      broadcast = int(status, c_int)
   end function

   ! A sum over images in which each image adds its own bytes to zeros.
   integer(c_int) function gather(context, mine, all, count) bind(C, name="")
      type(c_ptr), value :: context, mine, all
      integer(c_int64_t), value :: count
      integer(c_int8_t), pointer :: from(:), to(:, :)
      integer(c_int8_t), allocatable :: each(:, :)
      integer :: status
      call c_f_pointer(mine, from, [count])
      allocate (each(count, num_images()))
      each = 0
      each(:, this_image()) = from
      call co_sum(each, result_image=1, stat=status)
      if (this_image() == 1) then
         call c_f_pointer(all, to, [count, int(num_images(), c_int64_t)])
         to = each
      end if
      gather = int(status, c_int)
   end function
end module
