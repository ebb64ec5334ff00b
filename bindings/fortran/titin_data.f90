! Values of the program, and messages.
module titin_data
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_double, c_f_pointer, c_float, c_int, c_int64_t, c_loc, &
      c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, extents_of, finish, following, is_there, text, told
   use titin_reading, only: at, reading_layer
   implicit none
   private

   public :: titin_value, titin_message

   character(len=*), parameter :: not_allocated = "the array to put into a value is not allocated; allocate and fill it first"

   !> A tree of maps, lists, text, numbers, arrays and nil: a value of the program, or a view of a part of another value or of a
   !> message. Assignment makes a view of the same value, which lives as long as the original; a view of a message keeps the
   !> message.
   type, extends(reading_layer) :: titin_value
      type(c_ptr), private :: message = c_null_ptr
      logical, private :: owned = .false.
   contains
      !> Makes a new value: an empty map, map of settings (with a mark) or list, to be filled by add, or nil, or bytes.
      procedure :: new_map, new_settings, new_list, new_nil, new_bytes
      !> new(data): makes a new value: a number, text, logical or array.
      procedure, private :: new_int8, new_int16, new_int32, new_int64, new_real32, new_real64, new_complex32, &
         new_complex64, new_bool, new_logical, new_text
      generic :: new => new_int8, new_int16, new_int32, new_int64, new_real32, new_real64, new_complex32, &
         new_complex64, new_bool, new_logical, new_text
      !> Takes over, or views, a value that a function of the module titin_c has given.
      procedure :: own, borrow
      !> add(data, name): puts numbers, text, logicals, arrays or a value of the program into a map (under a name) or a list.
      procedure, private :: add_int8, add_int16, add_int32, add_int64, add_real32, add_real64, add_complex32, &
         add_complex64, add_bool, add_logical, add_text, add_value
      generic :: add => add_int8, add_int16, add_int32, add_int64, add_real32, add_real64, add_complex32, &
         add_complex64, add_bool, add_logical, add_text, add_value
      !> add_bytes(data, name): puts bytes into a map or list.
      procedure :: add_bytes
      !> item(entry, name, index): an entry of a map by name, or of a list or map by number from one.
      procedure :: item
      !> Port and sender of the message that the value is a part of, as errors name them; "" for other values.
      procedure :: origin
      !> Frees the value; a value that goes out of scope is freed without a call.
      procedure :: release
      procedure, private, non_overridable :: take
      procedure, private :: assign
      generic :: assignment(=) => assign
      final :: finalize
   end type

   !> A message that was received: a value with a timestamp. A copy shares the data.
   type, extends(titin_value) :: titin_message
   contains
      !> Name of the port that received the message; "" for a message that the program has made.
      procedure :: port
      !> The simulated time of the data.
      procedure :: timestamp
      !> Whether there is a next timestamp; the next timestamp.
      procedure :: has_next
      procedure :: next_timestamp
      !> A view of the settings overlay that came with the message; a value of kind 0 if none came.
      procedure :: settings
      !> new(data, timestamp, next_timestamp): a message of the program with a value, such as a default for a port without a
      !> conduit.
      procedure, private :: new_message
      generic :: new => new_message
      !> Takes over a message of the module titin_c.
      procedure :: own => own_message
      !> The message for the module titin_c.
      procedure :: handle
   end type

contains

   ! The origin of the message that the value is a part of.
   function origin(self) result(words)
      class(titin_value), intent(in) :: self
      character(len=:), allocatable :: words
      words = text(titin_message_origin(self%message))
      if (words /= "") words = words//": "
   end function

   subroutine new_map(self)
      class(titin_value), intent(inout) :: self
      call self%take(titin_new_map())
   end subroutine

   subroutine new_settings(self)
      class(titin_value), intent(inout) :: self
      call self%take(titin_new_settings())
   end subroutine

   subroutine new_list(self)
      class(titin_value), intent(inout) :: self
      call self%take(titin_new_list())
   end subroutine

   subroutine new_nil(self)
      class(titin_value), intent(inout) :: self
      call self%take(titin_new_nil())
   end subroutine

   subroutine own(self, raw)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: raw
      call self%take(raw)
   end subroutine

   ! Takes over a value, also for a message: the `own` of a message takes over a message.
   subroutine take(self, raw)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: raw
      call self%release()
      self%raw = raw
      self%owned = c_associated(raw)
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

   subroutine item(self, entry, name, index, ierr)
      class(titin_value), intent(in) :: self
      class(titin_value), intent(inout) :: entry
      character(len=*), intent(in), optional :: name
      integer, intent(in), optional :: index
      integer, intent(out), optional :: ierr
      type(c_ptr) :: found, message
      if (entry%owned .and. c_associated(entry%raw, self%raw)) then
         call finish(titin_error_usage, ierr, found="item: what is one's own would end with its entry in its place; "// &
            "take the entry into another value")
         return
      end if
      found = at(self, name, index, ierr)
      message = titin_message_retain(self%message)
      call entry%release()
      entry%raw = found
      entry%message = message
   end subroutine

   ! ---- Building ----

   ! An array of rank 0 as a number, which other languages and settings expect; any other array unchanged.
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
      case (titin_u8, titin_u16, titin_u32, titin_u64)
         if (titin_value_u64(fresh, whole) == titin_ok) value = titin_new_u64(whole)
      case (titin_f32)
         if (titin_value_f64(fresh, number) == titin_ok) value = titin_new_f32(real(number, c_float))
      case (titin_f64)
         if (titin_value_f64(fresh, number) == titin_ok) value = titin_new_f64(number)
      case (titin_bool)
         if (titin_value_bool(fresh, flag) == titin_ok) value = titin_new_bool(flag)
      end select
      if (.not. c_associated(value, fresh)) call titin_value_free(fresh)
   end function

   ! An array, or a number for rank 0. `data` is contiguous.
   function fresh_array(dtype, extents, data) result(value)
      integer(c_int), intent(in) :: dtype
      integer(c_int64_t), intent(in) :: extents(:)
      type(c_ptr), intent(in) :: data
      type(c_ptr) :: value
      value = as_number(titin_new_array(dtype, size(extents, kind=c_int), extents_of(extents), order=titin_order_fortran, &
         data=data, borrow=0_c_int))
   end function

   ! Logicals of the default kind are longer than a byte, and are sent as logical(c_bool).
   function fresh_logicals(data) result(value)
      logical, intent(in), contiguous, target :: data(..)
      type(c_ptr) :: value
      logical, pointer :: flat(:)
      logical(c_bool), allocatable, target :: bytes(:)
      call c_f_pointer(c_loc(data), flat, [product(extents_of(shape(data, c_int64_t)))])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      value = fresh_array(titin_bool, shape(data, c_int64_t), c_loc(bytes))
   end function

   function fresh_text(data) result(value)
      character(len=*), intent(in) :: data
      type(c_ptr) :: value
      value = titin_new_text(data, len_trim(data, c_int64_t))
   end function

   function fresh_bytes(data) result(value)
      integer(int8), intent(in), contiguous, target :: data(:)
      type(c_ptr) :: value
      value = titin_new_bytes(c_loc(data), size(data, kind=c_int64_t), 0_c_int)
   end function

   ! Replaces the value by a new one.
   subroutine begin(self, fresh, ierr)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: fresh
      integer, intent(out), optional :: ierr
      call self%take(fresh)
      call finish(merge(titin_ok, titin_error_kind(), c_associated(fresh)), ierr)
   end subroutine

   subroutine new_int8(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_new.inc"
   end subroutine

   subroutine new_int16(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_new.inc"
   end subroutine

   subroutine new_int32(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_new.inc"
   end subroutine

   subroutine new_int64(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_new.inc"
   end subroutine

   subroutine new_real32(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_new.inc"
   end subroutine

   subroutine new_real64(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_new.inc"
   end subroutine

   subroutine new_complex32(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_new.inc"
   end subroutine

   subroutine new_complex64(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_new.inc"
   end subroutine

   subroutine new_bool(self, data, as, ierr)
      class(titin_value), intent(inout) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_new.inc"
   end subroutine

   subroutine new_logical(self, data, ierr)
      class(titin_value), intent(inout) :: self
      logical, intent(in), contiguous, target :: data(..)
      integer, intent(out), optional :: ierr
      if (is_there(c_loc(data), shape(data, c_int64_t))) then
         call begin(self, fresh_logicals(data), ierr)
      else
         call finish(titin_error_usage, ierr, found=not_allocated)
      end if
   end subroutine

   subroutine new_text(self, data, ierr)
      class(titin_value), intent(inout) :: self
      character(len=*), intent(in) :: data
      integer, intent(out), optional :: ierr
      call begin(self, fresh_text(data), ierr)
   end subroutine

   subroutine new_bytes(self, data, ierr)
      class(titin_value), intent(inout) :: self
      integer(int8), intent(in) :: data(:)
      integer, intent(out), optional :: ierr
      call begin(self, fresh_bytes(data), ierr)
   end subroutine

   ! Puts a new value into a map or list.
   subroutine put(self, fresh, name, ierr)
      class(titin_value), intent(inout) :: self
      type(c_ptr), intent(in) :: fresh
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      if (.not. self%owned) then
         call titin_value_free(fresh)
         call finish(titin_error_usage, ierr, found="add: the value is not one's own; begin with new_map or new_list")
      else if (present(name)) then
         call finish(titin_map_set(self%raw, c(name), fresh), ierr)
      else
         call finish(titin_list_append(self%raw, fresh), ierr)
      end if
   end subroutine

   subroutine add_int8(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_add.inc"
   end subroutine

   subroutine add_int16(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_add.inc"
   end subroutine

   subroutine add_int32(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_add.inc"
   end subroutine

   subroutine add_int64(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_add.inc"
   end subroutine

   subroutine add_real32(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_add.inc"
   end subroutine

   subroutine add_real64(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_add.inc"
   end subroutine

   subroutine add_complex32(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_add.inc"
   end subroutine

   subroutine add_complex64(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_add.inc"
   end subroutine

   subroutine add_bool(self, data, name, as, ierr)
      class(titin_value), intent(inout) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_add.inc"
   end subroutine

   subroutine add_logical(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      logical, intent(in), contiguous, target :: data(..)
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      if (is_there(c_loc(data), shape(data, c_int64_t))) then
         call put(self, fresh_logicals(data), name, ierr)
      else
         call finish(titin_error_usage, ierr, found=not_allocated)
      end if
   end subroutine

   subroutine add_text(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      character(len=*), intent(in) :: data
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      call put(self, fresh_text(data), name, ierr)
   end subroutine

   subroutine add_bytes(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      integer(int8), intent(in) :: data(:)
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      call put(self, fresh_bytes(data), name, ierr)
   end subroutine

   subroutine add_value(self, data, name, ierr)
      class(titin_value), intent(inout) :: self
      class(titin_value), intent(inout) :: data
      character(len=*), intent(in), optional :: name
      integer, intent(out), optional :: ierr
      integer :: status
      if (.not. data%owned) then
         call finish(titin_error_usage, ierr, found="add: only values of one's own can be put into another")
         return
      end if
      ! From here on the map or list owns the value, also if the call fails.
      data%owned = .false.
      call put(self, data%raw, name, status)
      if (status /= titin_ok) data%raw = c_null_ptr
      call finish(int(status, c_int), ierr)
   end subroutine

   ! ---- Messages ----

   subroutine new_message(self, data, timestamp, next_timestamp, ierr)
      class(titin_message), intent(inout) :: self
      class(titin_value), intent(in) :: data
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = titin_message_new(data%raw, timestamp, following(next_timestamp))
      call self%own(raw)
      call finish(merge(titin_ok, titin_error_kind(), c_associated(raw)), ierr)
   end subroutine

   ! The end of a call on a message: an error without a message.
   subroutine finish_message(self, ierr)
      class(titin_message), intent(in) :: self
      integer, intent(out), optional :: ierr
      if (c_associated(self%message)) then
         call finish(titin_ok, ierr)
      else
         call finish(titin_error_usage, ierr, found="there is no message here: none was received into it, or made by new")
      end if
   end subroutine

   function port(self)
      class(titin_message), intent(in) :: self
      character(len=:), allocatable :: port
      port = text(titin_message_port(self%message))
   end function

   function timestamp(self, ierr)
      class(titin_message), intent(in) :: self
      integer, intent(out), optional :: ierr
      real(real64) :: timestamp
      timestamp = titin_message_timestamp(self%message)
      call finish_message(self, ierr)
   end function

   function has_next(self, ierr)
      class(titin_message), intent(in) :: self
      integer, intent(out), optional :: ierr
      logical :: has_next
      has_next = titin_message_has_next(self%message) /= 0
      call finish_message(self, ierr)
   end function

   function next_timestamp(self, ierr)
      class(titin_message), intent(in) :: self
      integer, intent(out), optional :: ierr
      real(real64) :: next_timestamp
      next_timestamp = titin_message_next_timestamp(self%message)
      call finish_message(self, ierr)
   end function

   subroutine settings(self, overlay, ierr)
      class(titin_message), intent(in) :: self
      type(titin_value), intent(inout) :: overlay
      integer, intent(out), optional :: ierr
      type(c_ptr) :: message
      call finish_message(self, ierr)
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
