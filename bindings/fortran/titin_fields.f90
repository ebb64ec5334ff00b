! Fields: arrays that are spread over the ranks of an instance.
module titin_fields
   use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_int, c_int64_t, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int32, int64, real64
   use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
   use titin_c
   use titin_common, only: c, finish, following, same_bits, text
   use titin_memory, only: look, memory
   use titin_receiving, only: receiving_layer
   implicit none
   private

   public :: fields_layer, titin_decomposition, titin_field

   !> How an array is spread over the ranks of an instance. At first rank 0 owns the whole array. Dimensions, and elements in
   !> memory, are in the order of Fortran. Dimensions, indices and boxes count from one; upper bounds are inclusive. The object is
   !> not needed once the fields are made.
   type :: titin_decomposition
      !> For the module titin_c.
      type(c_ptr) :: raw = c_null_ptr
      integer, private :: dims = 0, boxes = 0
      logical, private :: by_indices = .false.
   contains
      !> new(shape): an array of 1 to 7 dimensions.
      procedure, private :: new_int32, new_int64
      generic :: new => new_int32, new_int64
      !> grid(processes): the number of processes along each dimension, over which the dimension is spread evenly.
      procedure :: grid
      !> spread(dim, how, block): spreads a dimension in another way: titin_even, titin_block, or titin_cyclic in blocks of this
      !> size.
      procedure :: spread => spread_dim
      !> bounds(dim, bounds): spreads a dimension by bounds: its process p, from 1, has bounds(p) to bounds(p + 1) - 1.
      procedure, private :: bounds_int32, bounds_int64
      generic :: bounds => bounds_int32, bounds_int64
      !> ranks(order): the order in which ranks count through the grid: titin_order_c, the default, has the last dimension
      !> fastest, as MPI_Cart_create; titin_order_fortran the first.
      procedure :: ranks => rank_order
      !> box(lower, upper): boxes in place of a rule: the calling rank owns lower to upper, and the boxes of earlier calls. With
      !> several boxes the local array is flat, one box after the other.
      procedure, private :: box_int32, box_int64
      generic :: box => box_int32, box_int64
      !> indices(numbers): indices in place of a rule: the calling rank owns the elements with these numbers, in this order.
      !> Numbers count from 1 through the array in the order of its memory, the first dimension fastest.
      procedure, private :: indices_int32, indices_int64
      generic :: indices => indices_int32, indices_int64
      !> region(lower, upper): couples only this region.
      procedure, private :: region_int32, region_int64
      generic :: region => region_int32, region_int64
      !> halo(width), or halo(below, above) with a width for each dimension: the number of further elements around the rank's
      !> part in its arrays.
      procedure, private :: halo_all, halo_each
      generic :: halo => halo_all, halo_each
      !> order(order): titin_order_c for arrays in the order of C.
      procedure :: order => memory_order
      procedure, private :: copy_decomposition
      generic :: assignment(=) => copy_decomposition
      final :: free_decomposition
   end type

   !> Arrays spread over the ranks of an instance, which travel together by one of its ports; made by `field` of the
   !> instance. All ranks make these calls together.
   type :: titin_field
      !> For the module titin_c.
      type(c_ptr) :: raw = c_null_ptr
      type(c_ptr), private :: instance = c_null_ptr
      character(len=:), allocatable, private :: port
      integer, private :: dims = 0
      logical, private :: flat = .false.
      integer(c_int), allocatable, private :: dtypes(:)
   contains
      !> send(a, b, ..., timestamp=t, next_timestamp=next): sends this rank's part of each of up to ten arrays, to the
      !> receivers that the description couples at this step (titin: fields). The arrays have the kinds of the field and the
      !> halo, and may be contiguous or not. For a receiver that pulls, titin keeps a version. Returns when the arrays may
      !> be changed.
      procedure :: send => send_field
      !> receive(a, b, ..., timestamp=t, next_timestamp=next, timeout=s, at=time, coupled=l): receives this rank's part into
      !> each array, and writes no other element. Of a field that is pulled, the call receives the version at or before the
      !> simulated time `at`, or without `at` the latest version; titin_error_evicted if the version is not kept,
      !> titin_error_port_closed if no version of that time will come. Where the description couples nothing at this step,
      !> `coupled` is false and nothing is written. titin_error_timeout once `timeout` is over; a part of the field may have
      !> come by then: make the call again with the same arrays. In an instance of several ranks the timeout is for the
      !> announcement by rank 0 of the sender.
      procedure :: receive => receive_field
      !> withdraw(): for the sender: no more fields follow, and all versions are given up.
      procedure :: withdraw => withdraw_field
      !> bytes(array): the bytes of an array, from 1, on this rank, with the halo.
      procedure :: bytes => field_bytes
      !> extents(): the extents of an array on this rank, with the halo. An error where arrays are flat, because the rank
      !> has several boxes, or indices of more than one dimension.
      procedure :: extents => field_extents
      !> owned(dim): the indices of the whole array that this rank owns along a dimension, both from 1: element (i, j) of the
      !> rank's part, without the halo, is the element at owned(1) (i) and owned(2) (j) of the whole. An error as with extents.
      procedure :: owned => field_owned
      procedure, private :: copy_field
      generic :: assignment(=) => copy_field
      final :: free_field
   end type

   !> The sixth layer of an instance. The last layer is titin_instance itself.
   type, extends(receiving_layer) :: fields_layer
   contains
      !> field(port, decomposition, field, dtype): declares that a port carries a field, spread by the decomposition: an array of
      !> titin_f64 or another type of element, or several arrays, [titin_f64, titin_f32], that travel together.
      procedure, private :: field_of_one, field_of_several
      generic :: field => field_of_one, field_of_several
   end type

contains

   subroutine field_of_one(self, port, decomposition, field, dtype, ierr)
      class(fields_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      class(titin_decomposition), intent(in) :: decomposition
      type(titin_field), intent(inout) :: field
      integer, intent(in) :: dtype
      integer, intent(out), optional :: ierr
      call self%field(port, decomposition, field, [dtype], ierr)
   end subroutine

   subroutine field_of_several(self, port, decomposition, field, dtypes, ierr)
      class(fields_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      class(titin_decomposition), intent(in) :: decomposition
      type(titin_field), intent(inout) :: field
      integer, intent(in) :: dtypes(:)
      integer, intent(out), optional :: ierr
      integer(c_int) :: status
      call free_field(field)
      field%port = trim(port)
      field%dtypes = int(dtypes, c_int)
      field%instance = self%raw
      field%dims = decomposition%dims
      field%flat = decomposition%by_indices .or. decomposition%boxes > 1
      status = titin_field_new(titin_port_find(self%raw, c(port)), decomposition%raw, size(dtypes, kind=c_int), field%dtypes, &
         field%raw)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine send_field(self, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, timestamp, next_timestamp, ierr)
      class(titin_field), intent(in) :: self
      class(*), intent(in), target, optional :: a1(..), a2(..), a3(..), a4(..), a5(..)
      class(*), intent(in), target, optional :: a6(..), a7(..), a8(..), a9(..), a10(..)
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(out), optional :: ierr
      type(c_ptr) :: pointers(10)
      integer :: count
      include "titin_field_arrays.inc"
      call finish(titin_field_send(self%raw, pointers, timestamp, following(next_timestamp)), ierr, self%instance)
   end subroutine

   subroutine receive_field(self, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, timestamp, next_timestamp, timeout, at, coupled, ierr)
      class(titin_field), intent(in) :: self
      class(*), intent(inout), target, optional :: a1(..), a2(..), a3(..), a4(..), a5(..)
      class(*), intent(inout), target, optional :: a6(..), a7(..), a8(..), a9(..), a10(..)
      real(real64), intent(out), optional :: timestamp, next_timestamp
      real(real64), intent(in), optional :: timeout, at
      logical, intent(out), optional :: coupled
      integer, intent(out), optional :: ierr
      type(c_ptr) :: pointers(10)
      real(c_double) :: patience, stamp
      integer(c_int) :: status
      integer :: count
      include "titin_field_arrays.inc"
      patience = titin_wait
      if (present(timeout)) patience = timeout
      if (present(at)) then
         status = titin_field_receive_at(self%raw, pointers, at, patience, stamp, next_timestamp)
      else
         status = titin_field_receive(self%raw, pointers, patience, stamp, next_timestamp)
      end if
      if (status == titin_ok) then
         if (present(timestamp)) timestamp = stamp
         if (present(coupled)) coupled = .not. ieee_is_nan(stamp)
      end if
      call finish(status, ierr, self%instance)
   end subroutine

   subroutine withdraw_field(self, ierr)
      class(titin_field), intent(in) :: self
      integer, intent(out), optional :: ierr
      call finish(titin_field_withdraw(self%raw), ierr, self%instance)
   end subroutine

   ! Takes the next array of a call, if there is one: its address and layout. `wrong` has the error text for an unfit array.
   subroutine hold(self, array, pointers, count, wrong)
      class(titin_field), intent(in) :: self
      class(*), intent(in), target, optional :: array(..)
      type(c_ptr), intent(inout) :: pointers(:)
      integer, intent(inout) :: count
      character(len=:), allocatable, intent(inout) :: wrong
      type(memory) :: seen
      integer(c_int64_t) :: bytes
      integer(c_int64_t) :: extents(7)
      character(len=2) :: number
      character(len=20) :: length

      if (allocated(wrong)) return
      count = count + 1
      write (number, "(i0)") count
      if (count > size(self%dtypes)) then
         if (.not. present(array)) return
         write (length, "(i0)") size(self%dtypes)
         wrong = "field on port '"//self%port//"' was declared with "//trim(length)//" arrays, and array "//trim(number)// &
            " was given"
         return
      else if (.not. present(array)) then
         wrong = "field on port '"//self%port//"': array "//trim(number)//" was not given, or is not allocated"
         return
      end if
      call look(array, seen)
      pointers(count) = seen%address
      if (seen%rank == 0) then
         wrong = "has to be an array, but a single value was given"
      else if (seen%rank > size(extents)) then
         write (length, "(i0)") seen%rank
         wrong = "has "//trim(length)//" dimensions; fields have 1 to 7"
      else if (seen%empty) then
         if (titin_field_bytes(self%raw, int(count - 1, c_int)) > 0) wrong = "has no elements, but this rank owns some"
      else if (.not. same_bits(seen%dtype, self%dtypes(count))) then
         wrong = "is of "//text(titin_dtype_name(self%dtypes(count)))//", but one of "// &
            text(titin_dtype_name(seen%dtype))//" was given"
      else if (self%flat) then
         bytes = product(seen%extents(:seen%rank))*titin_dtype_size(seen%dtype)
         if (seen%rank /= 1 .or. seen%strides(1) /= titin_dtype_size(seen%dtype) .or. &
            bytes < titin_field_bytes(self%raw, int(count - 1, c_int))) then
            write (length, "(i0)") titin_field_bytes(self%raw, int(count - 1, c_int))/titin_dtype_size(seen%dtype)
            wrong = "has to be of one dimension here, contiguous, with "//trim(length)//" elements"
         end if
      else if (seen%rank /= self%dims) then
         write (length, "(i0)") self%dims
         write (number, "(i0)") seen%rank
         wrong = "has "//trim(length)//" dimensions, but one of "//trim(number)//" was given"
      else if (titin_field_layout(self%raw, int(count - 1, c_int), seen%extents, seen%strides) /= titin_ok) then
         ! Arrays count from one here.
         if (titin_field_extents(self%raw, extents) == titin_ok) then
            wrong = "has the shape "//shown(extents(:self%dims))//" on this rank, halo and all, but one of shape "// &
               shown(seen%extents(:seen%rank))//" was given"
            if (all(extents(:self%dims) == seen%extents(:self%dims))) wrong = "lies in memory as no field can"
         else
            wrong = "does not fit: "//text(titin_error())
         end if
      end if
      if (.not. allocated(wrong)) return
      wrong = "field on port '"//self%port//"': array "//trim(number)//" "//wrong
   end subroutine

   ! Extents as Fortran writes an array: [8, 6].
   function shown(extents) result(words)
      integer(c_int64_t), intent(in) :: extents(:)
      character(len=:), allocatable :: words
      character(len=200) :: line
      write (line, '("[", *(i0, :, ", "))') extents
      words = trim(line)//"]"
   end function

   function field_bytes(self, array) result(bytes)
      class(titin_field), intent(in) :: self
      integer, intent(in) :: array
      integer(int64) :: bytes
      bytes = titin_field_bytes(self%raw, int(array - 1, c_int))
   end function

   function field_extents(self) result(extents)
      class(titin_field), intent(in) :: self
      integer(int64) :: extents(self%dims)
      call finish(titin_field_extents(self%raw, extents), instance=self%instance)
   end function

   function field_owned(self, dim) result(indices)
      class(titin_field), intent(in) :: self
      integer, intent(in) :: dim
      integer(int64), allocatable :: indices(:)
      integer(c_int64_t) :: count
      count = titin_field_owned(self%raw, int(dim - 1, c_int))
      if (count < 0) call finish(titin_error_kind(), instance=self%instance)
      allocate (indices(max(count, 0_c_int64_t)))
      count = titin_field_owned(self%raw, int(dim - 1, c_int), indices)
      indices = indices + 1
   end function

   subroutine copy_field(self, other)
      class(titin_field), intent(inout) :: self
      class(titin_field), intent(in) :: other
      associate (stays_as_it_is => self)
      end associate
      call finish(titin_error_usage, instance=other%instance, &
         found="a field cannot be copied; pass it on as an argument, or have a pointer to it")
   end subroutine

   subroutine free_field(self)
      type(titin_field), intent(inout) :: self
      if (c_associated(self%raw)) call titin_field_free(self%raw)
      self%raw = c_null_ptr
   end subroutine

   subroutine new_int64(self, shape, ierr)
      class(titin_decomposition), intent(inout) :: self
      integer(int64), intent(in) :: shape(:)
      integer, intent(out), optional :: ierr
      integer(c_int) :: status
      call free_decomposition(self)
      self%dims = size(shape)
      self%raw = titin_decomposition_new(int(self%dims, c_int), shape)
      status = titin_ok
      if (.not. c_associated(self%raw)) status = titin_error_kind()
      if (status == titin_ok) status = titin_decomposition_order(self%raw, titin_order_fortran)
      call finish(status, ierr)
   end subroutine

   subroutine grid(self, processes, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: processes(:)
      integer, intent(out), optional :: ierr
      if (.not. each(self, size(processes), ierr)) return
      call finish(titin_decomposition_grid(self%raw, int(processes, c_int)), ierr)
   end subroutine

   subroutine spread_dim(self, dim, how, block, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: dim, how
      integer, intent(in), optional :: block
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: size
      size = 1
      if (present(block)) size = block
      call finish(titin_decomposition_spread(self%raw, int(dim - 1, c_int), int(how, c_int), size), ierr)
   end subroutine

   subroutine bounds_int64(self, dim, bounds, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: dim
      integer(int64), intent(in) :: bounds(:)
      integer, intent(out), optional :: ierr
      call finish(titin_decomposition_bounds(self%raw, int(dim - 1, c_int), size(bounds, kind=c_int), bounds - 1), ierr)
   end subroutine

   subroutine rank_order(self, order, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: order
      integer, intent(out), optional :: ierr
      call finish(titin_decomposition_ranks(self%raw, int(order, c_int)), ierr)
   end subroutine

   subroutine box_int64(self, lower, upper, ierr)
      class(titin_decomposition), intent(inout) :: self
      integer(int64), intent(in) :: lower(:), upper(:)
      integer, intent(out), optional :: ierr
      if (.not. each(self, size(lower), ierr)) return
      if (.not. each(self, size(upper), ierr)) return
      self%boxes = self%boxes + 1
      call finish(titin_decomposition_box(self%raw, lower - 1, upper), ierr)
   end subroutine

   subroutine indices_int64(self, numbers, ierr)
      class(titin_decomposition), intent(inout) :: self
      integer(int64), intent(in) :: numbers(:)
      integer, intent(out), optional :: ierr
      self%by_indices = .true.
      call finish(titin_decomposition_indices(self%raw, size(numbers, kind=c_int64_t), numbers - 1), ierr)
   end subroutine

   subroutine region_int64(self, lower, upper, ierr)
      class(titin_decomposition), intent(in) :: self
      integer(int64), intent(in) :: lower(:), upper(:)
      integer, intent(out), optional :: ierr
      if (.not. each(self, size(lower), ierr)) return
      if (.not. each(self, size(upper), ierr)) return
      call finish(titin_decomposition_region(self%raw, lower - 1, upper), ierr)
   end subroutine

   subroutine halo_all(self, width, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: width
      integer, intent(out), optional :: ierr
      integer :: widths(self%dims)
      widths = width
      call self%halo(widths, widths, ierr)
   end subroutine

   subroutine halo_each(self, below, above, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: below(:), above(:)
      integer, intent(out), optional :: ierr
      if (.not. each(self, size(below), ierr)) return
      if (.not. each(self, size(above), ierr)) return
      call finish(titin_decomposition_halo(self%raw, int(below, c_int64_t), int(above, c_int64_t)), ierr)
   end subroutine

   subroutine memory_order(self, order, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: order
      integer, intent(out), optional :: ierr
      call finish(titin_decomposition_order(self%raw, int(order, c_int)), ierr)
   end subroutine

   ! Whether there is a number for each dimension.
   function each(self, count, ierr) result(well)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: count
      integer, intent(out), optional :: ierr
      logical :: well
      character(len=12) :: given, wanted
      well = count == self%dims
      write (given, "(i0)") count
      write (wanted, "(i0)") self%dims
      if (.not. well) call finish(titin_error_usage, ierr, found=trim(given)//" numbers were given for an array of "// &
         trim(wanted)//" dimensions, as new has said: give one for each")
   end function

   subroutine copy_decomposition(self, other)
      class(titin_decomposition), intent(inout) :: self
      class(titin_decomposition), intent(in) :: other
      call finish(merge(titin_error_usage, titin_ok, c_associated(other%raw) .or. c_associated(self%raw)), &
         found="a decomposition cannot be copied; pass it on as an argument, or make another one")
   end subroutine

   subroutine free_decomposition(self)
      type(titin_decomposition), intent(inout) :: self
      if (c_associated(self%raw)) call titin_decomposition_free(self%raw)
      self%raw = c_null_ptr
      self%dims = 0
      self%boxes = 0
      self%by_indices = .false.
   end subroutine

   ! With numbers of the default kind.

   subroutine new_int32(self, shape, ierr)
      class(titin_decomposition), intent(inout) :: self
      integer(int32), intent(in) :: shape(:)
      integer, intent(out), optional :: ierr
      call self%new(int(shape, int64), ierr)
   end subroutine

   subroutine bounds_int32(self, dim, bounds, ierr)
      class(titin_decomposition), intent(in) :: self
      integer, intent(in) :: dim
      integer(int32), intent(in) :: bounds(:)
      integer, intent(out), optional :: ierr
      call self%bounds(dim, int(bounds, int64), ierr)
   end subroutine

   subroutine box_int32(self, lower, upper, ierr)
      class(titin_decomposition), intent(inout) :: self
      integer(int32), intent(in) :: lower(:), upper(:)
      integer, intent(out), optional :: ierr
      call self%box(int(lower, int64), int(upper, int64), ierr)
   end subroutine

   subroutine indices_int32(self, numbers, ierr)
      class(titin_decomposition), intent(inout) :: self
      integer(int32), intent(in) :: numbers(:)
      integer, intent(out), optional :: ierr
      call self%indices(int(numbers, int64), ierr)
   end subroutine

   subroutine region_int32(self, lower, upper, ierr)
      class(titin_decomposition), intent(in) :: self
      integer(int32), intent(in) :: lower(:), upper(:)
      integer, intent(out), optional :: ierr
      call self%region(int(lower, int64), int(upper, int64), ierr)
   end subroutine
end module titin_fields
