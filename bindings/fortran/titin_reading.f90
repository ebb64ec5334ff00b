! Reading values: their kinds, entries, numbers and text, and views of arrays.
module titin_reading
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_f_pointer, c_int, c_int64_t, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, finish, fits_int32, misfit_int32, misfit_real32, rounded_real32, same_bits, &
      text, told
   implicit none
   private

   public :: reading_layer, at

   !> The inner layer of a value, for reading; titin_value is the outer layer.
   type, abstract :: reading_layer
      !> For the module titin_c.
      type(c_ptr) :: raw = c_null_ptr
   contains
      !> titin_kind_nil, _bool, _int, _uint, _float, _text, _bytes, _array, _list or _map.
      procedure :: kind => value_kind
      !> Whether a real number is of single precision; whether a map is marked as settings.
      procedure :: is_single, is_settings
      !> Number of entries of a list or map; name of a map's entry, counted from one; whether a map has an entry.
      procedure :: size => value_size
      procedure :: name => value_name
      procedure :: has
      !> read(x, name, index): a number, logical, text or bytes (an allocatable array of int8), here or in an entry.
      procedure, private :: read_int32, read_int64, read_real32, read_real64, read_logical, read_text, read_bytes
      generic :: read => read_int32, read_int64, read_real32, read_real64, read_logical, read_text, read_bytes
      !> read_unsigned(x, name, index): the bits of a number without a sign, which may be too large for integer(int64).
      procedure :: read_unsigned
      !> view(a, name, index, reversed): associates `a`, of the array's kind and rank, with an array, here or in an entry. The
      !> array must not be changed, and lives as long as the value. An array of rank 2 or more that was sent in C order has its
      !> indices reversed in memory: give reversed=.true. and use reversed indices, or receive the message into an array of the
      !> program, which copies each element to its index. With as=titin_u8 to titin_u64, titin_f16 or titin_bf16 an integer
      !> pointer gets the bits of elements of the same size.
      procedure, private :: view_int8, view_int16, view_int32, view_int64, view_real32, view_real64, view_complex32, &
         view_complex64, view_bool
      generic :: view => view_int8, view_int16, view_int32, view_int64, view_real32, view_real64, view_complex32, &
         view_complex64, view_bool
      !> Facts about an array: element type (titin_f64 and so on, 0 for other values), extents, number of elements,
      !> titin_order_c or _fortran, name of an index.
      procedure :: dtype => value_dtype
      procedure :: extents
      procedure :: elements
      procedure :: order
      procedure :: index_name
      procedure(origin_of), deferred :: origin
   end type

   abstract interface
      ! The origin of the value's message, as the beginning of an error text; "" for a value without a message.
      function origin_of(self) result(words)
         import :: reading_layer
         class(reading_layer), intent(in) :: self
         character(len=:), allocatable :: words
      end function
   end interface

contains

   function value_kind(self) result(kind)
      class(reading_layer), intent(in) :: self
      integer :: kind
      kind = int(titin_value_kind(self%raw))
   end function

   function is_single(self) result(single)
      class(reading_layer), intent(in) :: self
      logical :: single
      single = titin_value_is_f32(self%raw) /= 0
   end function

   function is_settings(self) result(settings)
      class(reading_layer), intent(in) :: self
      logical :: settings
      settings = titin_value_is_settings(self%raw) /= 0
   end function

   function value_size(self) result(size)
      class(reading_layer), intent(in) :: self
      integer :: size
      size = int(titin_value_size(self%raw))
   end function

   function value_name(self, index, ierr) result(name)
      class(reading_layer), intent(in) :: self
      integer, intent(in) :: index
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: name
      type(c_ptr) :: chars
      chars = titin_value_name(self%raw, int(index - 1, c_int64_t))
      name = text(chars)
      call finish(merge(titin_ok, titin_error_kind(), c_associated(chars)), ierr)
   end function

   function has(self, name)
      class(reading_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      logical :: has
      has = c_associated(titin_value_find(self%raw, c(name)))
   end function

   ! The value itself, or one of its entries; NULL with an error.
   function at(self, name, index, ierr) result(found)
      class(reading_layer), intent(in) :: self
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      found = self%raw
      if (present(name)) then
         found = titin_value_find(self%raw, c(name))
         if (.not. c_associated(found)) then
            call finish(titin_error_usage, ierr, found="there is no map here with an entry '"//trim(name)//"'")
            return
         end if
      else if (present(index)) then
         found = titin_value_item(self%raw, int(index - 1, c_int64_t))
      else if (.not. c_associated(found)) then
         call finish(titin_error_usage, ierr, found="there is no value here")
         return
      end if
      call finish(merge(titin_ok, titin_error_kind(), c_associated(found)), ierr)
   end function

   subroutine read_int64(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      integer(int64), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      x = 0
      found = at(self, name, index, ierr)
      if (c_associated(found)) call finish(titin_value_i64(found, x), ierr)
   end subroutine

   subroutine read_int32(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      integer(int32), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      integer(int64) :: wide
      call self%read(wide, name, index, ierr)
      x = 0
      if (fits_int32(wide)) then
         x = int(wide, int32)
      else
         call finish(titin_error_type_mismatch, ierr, found=misfit_int32(wide))
      end if
   end subroutine

   subroutine read_real64(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      real(real64), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      x = 0
      found = at(self, name, index, ierr)
      if (c_associated(found)) call finish(titin_value_f64(found, x), ierr)
   end subroutine

   subroutine read_real32(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      real(real32), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      real(real64) :: wide
      integer(int64) :: whole
      type(c_ptr) :: found
      call self%read(wide, name, index, ierr)
      x = 0
      found = c_null_ptr
      if (rounded_real32(wide) /= "") found = at(self, name, index, ierr)
      if (c_associated(found)) then
         if (titin_value_i64(found, whole) == titin_ok) then
            call finish(titin_error_type_mismatch, ierr, found=rounded_real32(wide))
            return
         end if
      end if
      if (misfit_real32(wide) == "") then
         x = real(wide, real32)
      else
         call finish(titin_error_type_mismatch, ierr, found=misfit_real32(wide))
      end if
   end subroutine

   subroutine read_logical(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      logical, intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      integer(c_int) :: flag
      x = .false.
      found = at(self, name, index, ierr)
      if (.not. c_associated(found)) return
      call finish(titin_value_bool(found, flag), ierr)
      x = flag /= 0
   end subroutine

   subroutine read_text(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      character(len=:), allocatable, intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found, chars
      integer(c_int64_t) :: length
      x = ""
      found = at(self, name, index, ierr)
      if (.not. c_associated(found)) return
      chars = titin_value_text(found, length)
      call finish(merge(titin_ok, titin_error_kind(), c_associated(chars)), ierr)
      x = text(chars, length)
   end subroutine

   subroutine read_bytes(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      integer(int8), allocatable, intent(out) :: x(:)
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      integer(int8), pointer :: bytes(:)
      type(c_ptr) :: found, memory
      integer(c_int64_t) :: length
      allocate (x(0))
      found = at(self, name, index, ierr)
      if (.not. c_associated(found)) return
      memory = titin_value_bytes(found, length)
      call finish(merge(titin_ok, titin_error_kind(), c_associated(memory)), ierr)
      if (.not. c_associated(memory)) return
      call c_f_pointer(memory, bytes, [length])
      x = bytes
   end subroutine

   subroutine read_unsigned(self, x, name, index, ierr)
      class(reading_layer), intent(in) :: self
      integer(int64), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      x = 0
      found = at(self, name, index, ierr)
      if (c_associated(found)) call finish(titin_value_u64(found, x), ierr)
   end subroutine

   ! ---- Arrays ----

   function value_dtype(self) result(dtype)
      class(reading_layer), intent(in) :: self
      integer :: dtype
      dtype = int(titin_value_dtype(self%raw))
   end function

   function extents(self) result(all)
      class(reading_layer), intent(in) :: self
      integer(int64), allocatable :: all(:)
      integer(c_int) :: i
      all = [(titin_value_extent(self%raw, i), i=0, titin_value_rank(self%raw) - 1)]
   end function

   function elements(self) result(count)
      class(reading_layer), intent(in) :: self
      integer(int64) :: count
      count = titin_value_elements(self%raw)
   end function

   function order(self)
      class(reading_layer), intent(in) :: self
      integer :: order
      order = int(titin_value_order(self%raw))
   end function

   function index_name(self, dimension) result(name)
      class(reading_layer), intent(in) :: self
      integer, intent(in) :: dimension
      character(len=:), allocatable :: name
      name = text(titin_value_index_name(self%raw, int(dimension - 1, c_int)))
   end function

   ! The address of an array of this type and rank, and its extents in the order of Fortran; NULL with an error.
   subroutine look(self, dtype, rank, memory, extents, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      type(c_ptr), intent(out) :: memory
      integer(c_int64_t), intent(out) :: extents(titin_max_rank)
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      logical, intent(in), optional :: reversed
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      character(len=:), allocatable :: wrong
      integer(c_int) :: n, used
      logical :: turned

      memory = c_null_ptr
      extents = 0
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, found=self%origin()//"view: "//wrong)
         return
      end if
      found = at(self, name, index, ierr)
      if (.not. c_associated(found)) return
      turned = .false.
      if (present(reversed)) turned = reversed
      n = int(rank, c_int)
      extents(:n) = titin_any
      memory = titin_value_array(found, used, n, extents, merge(titin_any, titin_order_fortran, turned))
      if (.not. c_associated(memory)) then
         n = titin_error_kind()
         wrong = text(titin_error_in(c("Fortran")))//hint(found, used, rank)
         call finish(n, ierr, found=self%origin()//wrong)
         return
      end if
      if (turned .and. titin_value_order(found) == titin_order_c) extents(:n) = extents(n:1:-1)
      call finish(titin_ok, ierr)
   end subroutine

   ! Further advice for Fortran about an array that is not as expected.
   function hint(value, dtype, rank) result(words)
      type(c_ptr), intent(in) :: value
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      character(len=:), allocatable :: words
      integer(c_int) :: found
      words = ""
      found = titin_value_dtype(value)
      if (found /= dtype) then
         if (same_bits(dtype, found)) words = ", or give as="//unusual(found)//" to view its bits"
      else if (titin_value_rank(value) == rank .and. titin_value_order(value) == titin_order_c) then
         words = ", or give reversed=.true. to view it with its indices reversed"
      end if
   end function

   ! The constant of a type of elements without a kind in Fortran.
   function unusual(dtype) result(name)
      integer(c_int), intent(in) :: dtype
      character(len=:), allocatable :: name
      name = trim(titin_their_names(findloc(titin_without_kind, dtype, dim=1)))
   end function

   subroutine view_int8(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      integer(int8), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_view.inc"
   end subroutine

   subroutine view_int16(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      integer(int16), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_view.inc"
   end subroutine

   subroutine view_int32(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      integer(int32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_view.inc"
   end subroutine

   subroutine view_int64(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      integer(int64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_view.inc"
   end subroutine

   subroutine view_real32(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      real(real32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_view.inc"
   end subroutine

   subroutine view_real64(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      real(real64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_view.inc"
   end subroutine

   subroutine view_complex32(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      complex(real32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_view.inc"
   end subroutine

   subroutine view_complex64(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      complex(real64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_view.inc"
   end subroutine

   subroutine view_bool(self, a, name, index, reversed, as, ierr)
      class(reading_layer), intent(in) :: self
      logical(c_bool), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_view.inc"
   end subroutine
end module titin_reading
