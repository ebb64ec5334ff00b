! Messages and values.
module titin_data
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_char, c_double, c_f_pointer, c_int, c_int64_t, c_loc, &
      c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, finish, text
   implicit none
   private

   public :: titin_value, titin_message

   !> A tree of maps, lists, text, numbers, arrays and nil: one's own, or a look at a part of another or at a message.
   !> A copy made by assignment is a look at the same, which lives as long as the original; looks at a message keep it.
   type :: titin_value
      !> For the module titin_c.
      type(c_ptr) :: raw = c_null_ptr
      type(c_ptr), private :: message = c_null_ptr
      logical, private :: owned = .false.
   contains
      !> Makes it an empty map or list of one's own, to be filled by add, or nil.
      procedure :: new_map, new_list, new_nil
      !> Takes over what a function of the module titin_c has given away; or looks at it.
      procedure :: own, borrow
      !> add(data, name): puts numbers, text, logicals, arrays or a value of one's own into a map (under a name) or a list.
      procedure, private :: add_int8, add_int16, add_int32, add_int64, add_real32, add_real64, add_complex32, &
         add_complex64, add_bool, add_logical, add_text, add_value
      generic :: add => add_int8, add_int16, add_int32, add_int64, add_real32, add_real64, add_complex32, &
         add_complex64, add_bool, add_logical, add_text, add_value
      !> titin_kind_nil, _bool, _int, _uint, _float, _text, _bytes, _array, _list or _map.
      procedure :: kind => value_kind
      !> Number of entries of a list or map; name of a map's entry, counted from one; whether a map has an entry.
      procedure :: size => value_size
      procedure :: name => value_name
      procedure :: has
      !> item(entry, name, index): an entry of a map by name, or of a list or map by number from one.
      procedure :: item
      !> read(x, name, index): a number, logical or text, here or in an entry.
      procedure, private :: read_int32, read_int64, read_real32, read_real64, read_logical, read_text
      generic :: read => read_int32, read_int64, read_real32, read_real64, read_logical, read_text
      !> view(a, name, index, reversed): points `a`, of the array's kind and rank, at an array, here or in an entry. The
      !> array must not be changed, and lives as long as this. An array of rank 2 and more that was sent in C order lies
      !> the other way round: give reversed=.true. and mind that its indices are reversed, or receive it into an array of
      !> your own, which copies it to the right places.
      procedure, private :: view_int8, view_int16, view_int32, view_int64, view_real32, view_real64, view_complex32, &
         view_complex64, view_bool
      generic :: view => view_int8, view_int16, view_int32, view_int64, view_real32, view_real64, view_complex32, &
         view_complex64, view_bool
      !> Of an array: titin_f64 and so on (0 if it is none), extents, number of elements, titin_order_c or _fortran,
      !> name of an index.
      procedure :: dtype => value_dtype
      procedure :: extents
      procedure :: elements
      procedure :: order
      procedure :: index_name
      !> Lets go of it; done by itself when it goes out of scope.
      procedure :: release
      procedure, private :: assign
      generic :: assignment(=) => assign
      final :: finalize
   end type

   !> A message that was received: a value with a timestamp. A copy shares the data.
   type, extends(titin_value) :: titin_message
   contains
      procedure :: timestamp
      !> Whether there is a next timestamp, and which.
      procedure :: has_next
      procedure :: next_timestamp
      !> Looks at the settings overlay that came with it; a value of kind 0 if none did.
      procedure :: settings
      !> new(data, timestamp, next_timestamp): a message of one's own, such as a default for a port that nothing is
      !> connected to.
      procedure :: new => new_message
      !> Takes over a message of the module titin_c.
      procedure :: own => own_message
      !> The message for the module titin_c.
      procedure :: handle
   end type

contains

   ! ---- Keeping and letting go ----

   subroutine new_map(self)
      class(titin_value), intent(inout) :: self
      call self%own(titin_new_map())
   end subroutine

   subroutine new_list(self)
      class(titin_value), intent(inout) :: self
      call self%own(titin_new_list())
   end subroutine

   subroutine new_nil(self)
      class(titin_value), intent(inout) :: self
      call self%own(titin_new_nil())
   end subroutine

   subroutine own(self, raw)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: raw
      call self%release()
      self%raw = raw
      self%owned = .true.
   end subroutine

   subroutine borrow(self, raw)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: raw
      call self%release()
      self%raw = raw
   end subroutine

   subroutine own_message(self, raw)
      class(titin_message), intent(inout) :: self
      type(c_ptr), intent(in) :: raw
      call self%release()
      self%message = raw
      if (c_associated(raw)) self%raw = titin_message_value(raw)
   end subroutine

   subroutine release(self)
      class(titin_value), intent(inout) :: self
      if (self%owned) call titin_value_free(self%raw)
      call titin_message_free(self%message)
      self%raw = c_null_ptr
      self%message = c_null_ptr
      self%owned = .false.
   end subroutine

   subroutine finalize(self)
      type(titin_value), intent(inout) :: self
      call self%release()
   end subroutine

   subroutine assign(left, right)
      class(titin_value), intent(inout) :: left
      class(titin_value), intent(in) :: right
      type(c_ptr) :: raw, message
      raw = right%raw
      message = titin_message_retain(right%message)
      if (.not. (c_associated(left%raw, raw) .and. left%owned)) then
         call left%release()
         left%raw = raw
         left%message = message
      end if
   end subroutine

   ! ---- Building ----

   ! An array of rank 0 as a number, which other languages expect and settings are made of; else what it was.
   function as_number(fresh) result(value)
      type(c_ptr), intent(in) :: fresh
      type(c_ptr) :: value
      integer(c_int64_t) :: whole
      real(c_double) :: number
      integer(c_int) :: flag, dtype, rank
      value = fresh
      dtype = titin_value_dtype(fresh)
      rank = titin_value_rank(fresh)
      if (dtype == 0 .or. rank /= 0) return
      select case (dtype)
      case (titin_i8, titin_i16, titin_i32, titin_i64)
         if (titin_value_i64(fresh, whole) == titin_ok) value = titin_new_i64(whole)
      case (titin_f32, titin_f64)
         if (titin_value_f64(fresh, number) == titin_ok) value = titin_new_f64(number)
      case (titin_bool)
         if (titin_value_bool(fresh, flag) == titin_ok) value = titin_new_bool(flag)
      end select
      if (.not. c_associated(value, fresh)) call titin_value_free(fresh)
   end function

   ! Puts a fresh value into a map or list.
   subroutine put(self, given, name, ierr)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: given
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      type(c_ptr) :: fresh
      fresh = as_number(given)
      if (.not. self%owned) then
         call titin_value_free(fresh)
         call finish(titin_error_usage, ierr, found="add: the value is not one's own; begin with new_map or new_list")
      else if (present(name)) then
         call finish(titin_map_set(self%raw, c(name), fresh), ierr)
      else
         call finish(titin_list_append(self%raw, fresh), ierr)
      end if
   end subroutine

   subroutine add_int8(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_add.inc"
   end subroutine

   subroutine add_int16(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_add.inc"
   end subroutine

   subroutine add_int32(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_add.inc"
   end subroutine

   subroutine add_int64(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_add.inc"
   end subroutine

   subroutine add_real32(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_add.inc"
   end subroutine

   subroutine add_real64(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_add.inc"
   end subroutine

   subroutine add_complex32(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_add.inc"
   end subroutine

   subroutine add_complex64(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_add.inc"
   end subroutine

   subroutine add_bool(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_add.inc"
   end subroutine

   subroutine add_logical(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      logical, intent(in) :: data
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      call put(self, titin_new_bool(merge(1_c_int, 0_c_int, data)), name, ierr)
   end subroutine

   subroutine add_text(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      character(len=*), intent(in) :: data
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      call put(self, titin_new_text(data, len(data, c_int64_t)), name, ierr)
   end subroutine

   subroutine add_value(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      class(titin_value), intent(inout) :: data
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      if (.not. data%owned) then
         call finish(titin_error_usage, ierr, found="add: only values of one's own can be put into another")
         return
      end if
      ! From here on it belongs to the map or list, also if that fails.
      data%owned = .false.
      call put(self, data%raw, name, ierr)
   end subroutine

   ! ---- Reading ----

   function value_kind(self) result(kind)
      class(titin_value), intent(in) :: self
      integer :: kind
      kind = int(titin_value_kind(self%raw))
   end function

   function value_size(self) result(size)
      class(titin_value), intent(in) :: self
      integer :: size
      size = int(titin_value_size(self%raw))
   end function

   function value_name(self, index) result(name)
      class(titin_value), intent(in) :: self
      integer, intent(in) :: index
      character(len=:), allocatable :: name
      name = text(titin_value_name(self%raw, int(index - 1, c_int64_t)))
   end function

   function has(self, name)
      class(titin_value), intent(in) :: self
      character(len=*), intent(in) :: name
      logical :: has
      has = c_associated(titin_value_find(self%raw, c(name)))
   end function

   subroutine item(self, entry, name, index, ierr)
      class(titin_value), intent(in) :: self
      class(titin_value), intent(inout) :: entry
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found, message
      found = at(self, name, index, ierr)
      message = titin_message_retain(self%message)
      call entry%release()
      entry%raw = found
      entry%message = message
   end subroutine

   ! The value itself, or an entry of it; NULL with an error.
   function at(self, name, index, ierr) result(found)
      class(titin_value), intent(in) :: self
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
      class(titin_value), intent(in) :: self
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
      class(titin_value), intent(in) :: self
      integer(int32), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      integer(int64) :: wide
      call self%read(wide, name, index, ierr)
      x = 0
      if (abs(wide) <= huge(x)) then
         x = int(wide, int32)
      else
         call finish(titin_error_type_mismatch, ierr, found="the number does not fit integer(int32); read integer(int64)")
      end if
   end subroutine

   subroutine read_real64(self, x, name, index, ierr)
      class(titin_value), intent(in) :: self
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
      class(titin_value), intent(in) :: self
      real(real32), intent(out) :: x
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      real(real64) :: wide
      call self%read(wide, name, index, ierr)
      x = real(wide, real32)
   end subroutine

   subroutine read_logical(self, x, name, index, ierr)
      class(titin_value), intent(in) :: self
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
      class(titin_value), intent(in) :: self
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

   ! ---- Arrays ----

   function value_dtype(self) result(dtype)
      class(titin_value), intent(in) :: self
      integer :: dtype
      dtype = int(titin_value_dtype(self%raw))
   end function

   function extents(self) result(all)
      class(titin_value), intent(in) :: self
      integer(int64), allocatable :: all(:)
      integer(c_int) :: i
      all = [(titin_value_extent(self%raw, i), i=0, titin_value_rank(self%raw) - 1)]
   end function

   function elements(self) result(count)
      class(titin_value), intent(in) :: self
      integer(int64) :: count
      count = titin_value_elements(self%raw)
   end function

   function order(self)
      class(titin_value), intent(in) :: self
      integer :: order
      order = int(titin_value_order(self%raw))
   end function

   function index_name(self, dimension) result(name)
      class(titin_value), intent(in) :: self
      integer, intent(in) :: dimension
      character(len=:), allocatable :: name
      name = text(titin_value_index_name(self%raw, int(dimension - 1, c_int)))
   end function

   ! Where an array of this type and rank lies, and its extents as Fortran counts them; NULL with an error.
   subroutine look(self, dtype, rank, memory, extents, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      type(c_ptr), intent(out) :: memory
      integer(c_int64_t), intent(out) :: extents(titin_max_rank)
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      logical, intent(in), optional :: reversed
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found
      integer(c_int) :: i, n
      integer(c_int) :: order
      logical :: turned, c_order

      memory = c_null_ptr
      extents = 0
      found = at(self, name, index, ierr)
      if (.not. c_associated(found)) return
      n = titin_value_rank(found)
      if (titin_value_dtype(found) /= dtype .or. n /= rank) then
         call finish(titin_error_type_mismatch, ierr, found="view: the pointer is for an array of "// &
            text(titin_dtype_name(dtype))//" of rank "//decimal(rank)//", found "//shown(found))
         return
      end if
      turned = .false.
      if (present(reversed)) turned = reversed
      order = titin_value_order(found)
      c_order = n > 1 .and. order == titin_order_c
      if (c_order .and. .not. turned) then
         call finish(titin_error_type_mismatch, ierr, found="view: the array of "//shown(found)//" was sent in C order: "// &
            "view it with its indices reversed (reversed=.true.), or receive it into an array of your own")
         return
      end if
      do i = 0, n - 1
         extents(merge(n - i, i + 1, c_order)) = titin_value_extent(found, i)
      end do
      memory = titin_value_data(found)
      call finish(titin_ok, ierr)
   end subroutine

   ! Type and shape, for people.
   function shown(value) result(words)
      type(c_ptr), intent(in) :: value
      character(len=:), allocatable :: words
      integer(c_int) :: i
      words = text(titin_dtype_name(titin_value_dtype(value)))
      if (words == "") then
         words = "no array"
         return
      end if
      words = words//" of shape ("
      do i = 0, titin_value_rank(value) - 1
         if (i > 0) words = words//", "
         words = words//decimal(int(titin_value_extent(value, i)))
      end do
      words = words//")"
   end function

   function decimal(number) result(digits)
      integer, intent(in) :: number
      character(len=:), allocatable :: digits
      character(len=20) :: room
      write (room, "(i0)") number
      digits = trim(room)
   end function

   subroutine view_int8(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      integer(int8), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_view.inc"
   end subroutine

   subroutine view_int16(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      integer(int16), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_view.inc"
   end subroutine

   subroutine view_int32(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      integer(int32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_view.inc"
   end subroutine

   subroutine view_int64(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      integer(int64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_view.inc"
   end subroutine

   subroutine view_real32(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      real(real32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_view.inc"
   end subroutine

   subroutine view_real64(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      real(real64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_view.inc"
   end subroutine

   subroutine view_complex32(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      complex(real32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_view.inc"
   end subroutine

   subroutine view_complex64(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      complex(real64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_view.inc"
   end subroutine

   subroutine view_bool(self, a, name, index, reversed, ierr)
      class(titin_value), intent(in) :: self
      logical(c_bool), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_view.inc"
   end subroutine

   ! ---- Messages ----

   subroutine new_message(self, data, timestamp, next_timestamp, ierr)
      class(titin_message), intent(inout) :: self
      class(titin_value), intent(in) :: data
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      real(c_double) :: next
      next = titin_no_next
      if (present(next_timestamp)) next = next_timestamp
      raw = titin_message_new(data%raw, timestamp, next)
      call self%own(raw)
      call finish(merge(titin_ok, titin_error_kind(), c_associated(raw)), ierr)
   end subroutine

   function timestamp(self)
      class(titin_message), intent(in) :: self
      real(real64) :: timestamp
      timestamp = titin_message_timestamp(self%message)
   end function

   function has_next(self)
      class(titin_message), intent(in) :: self
      logical :: has_next
      has_next = titin_message_has_next(self%message) /= 0
   end function

   function next_timestamp(self)
      class(titin_message), intent(in) :: self
      real(real64) :: next_timestamp
      next_timestamp = titin_message_next_timestamp(self%message)
   end function

   subroutine settings(self, overlay)
      class(titin_message), intent(in) :: self
      type(titin_value), intent(inout) :: overlay
      type(c_ptr) :: message
      message = titin_message_retain(self%message)
      call overlay%borrow(titin_message_settings(self%message))
      overlay%message = message
   end subroutine

   function handle(self) result(raw)
      class(titin_message), intent(in) :: self
      type(c_ptr) :: raw
      raw = self%message
   end function
end module titin_data
