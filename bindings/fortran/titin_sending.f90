! Sending, for each kind of element and any rank.
module titin_sending
   use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_double, c_f_pointer, c_int, c_int64_t, c_loc, &
      c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, extents_of, finish, following, index_names, is_there, slot_number, told
   use titin_data, only: titin_value
   use titin_ports, only: ports_layer
   implicit none
   private

   public :: given, sending_layer

   !> The third layer of an instance; titin_loans has the next.
   type, extends(ports_layer) :: sending_layer
   contains
      !> send(port, data, timestamp, next_timestamp, slot, settings, names): any kind and rank, text, a value. Returns when
      !> the data may be changed. `settings` is the overlay that goes with the message, `names` are index names. With
      !> as=titin_u8 to titin_u64, titin_f16 or titin_bf16 integers of the same size go as the elements whose bits they hold.
      procedure, private :: send_int8, send_int16, send_int32, send_int64, send_real32, send_real64, send_complex32, &
         send_complex64, send_bool, send_logical, send_text, send_value
      generic :: send => send_int8, send_int16, send_int32, send_int64, send_real32, send_real64, send_complex32, &
         send_complex64, send_bool, send_logical, send_text, send_value
      !> send_nil: sends a message without data.
      procedure :: send_nil
   end type

contains

   ! The settings overlay of a message, for C.
   function given(settings) result(raw)
      type(titin_value), intent(in), optional :: settings
      type(c_ptr) :: raw
      raw = c_null_ptr
      if (present(settings)) raw = settings%raw
   end function

   function not_allocated(port) result(words)
      character(len=*), intent(in) :: port
      character(len=:), allocatable :: words
      words = "send on '"//trim(port)//"': the array is not allocated; to send no data, there is send_nil"
   end function

   subroutine send_array(self, port, dtype, rank, extents, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_ptr), intent(in) :: data
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      character(len=*), intent(in), optional :: names(:)
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      character(kind=c_char), allocatable, target :: chars(:)
      character(len=:), allocatable :: wrong
      type(c_ptr) :: handle
      integer(c_int) :: status, used

      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, self%raw, "send on '"//trim(port)//"': "//wrong)
         return
      end if
      handle = titin_port_find(self%raw, c(port))
      if (present(names)) then
         if (size(names) /= rank) then
            call finish(titin_error_usage, ierr, self%raw, "send on '"//trim(port)// &
               "': an array needs one index name for each of its dimensions")
            return
         end if
         status = titin_send_array(handle, slot_number(slot), used, int(rank, c_int), extents, &
            order=titin_order_fortran, names=index_names(names, chars), data=data, timestamp=timestamp, &
            next_timestamp=following(next_timestamp), settings=given(settings))
      else
         status = titin_send_array(handle, slot_number(slot), used, int(rank, c_int), extents, &
            order=titin_order_fortran, data=data, timestamp=timestamp, next_timestamp=following(next_timestamp), &
            settings=given(settings))
      end if
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine send_int8(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_send.inc"
   end subroutine

   subroutine send_int16(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_send.inc"
   end subroutine

   subroutine send_int32(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_send.inc"
   end subroutine

   subroutine send_int64(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_send.inc"
   end subroutine

   subroutine send_real32(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_send.inc"
   end subroutine

   subroutine send_real64(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_send.inc"
   end subroutine

   subroutine send_complex32(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_send.inc"
   end subroutine

   subroutine send_complex64(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_send.inc"
   end subroutine

   subroutine send_bool(self, port, data, timestamp, next_timestamp, slot, settings, names, as, ierr)
      class(sending_layer), intent(in) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_send.inc"
   end subroutine

   ! Logicals of the default kind are longer than a byte, and are sent as logical(c_bool).
   subroutine send_logical(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(sending_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      logical, intent(in), contiguous, target :: data(..)
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      character(len=*), intent(in), optional :: names(:)
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: extents(titin_max_rank)
      logical, pointer :: flat(:)
      logical(c_bool), allocatable, target :: bytes(:)

      if (.not. is_there(c_loc(data), shape(data, c_int64_t))) then
         call finish(titin_error_usage, ierr, self%raw, not_allocated(port))
         return
      end if
      extents(:rank(data)) = extents_of(shape(data, c_int64_t))
      call c_f_pointer(c_loc(data), flat, [product(extents_of(shape(data, c_int64_t)))])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      call send_array(self, port, titin_bool, rank(data), extents, c_loc(bytes), timestamp, next_timestamp, slot, &
         settings, names, ierr=ierr)
   end subroutine

   subroutine send_text(self, port, data, timestamp, next_timestamp, slot, settings, ierr)
      class(sending_layer), intent(in) :: self
      character(len=*), intent(in) :: port, data
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      integer, intent(out), optional :: ierr
      type(titin_value) :: value
      call value%new(data, ierr)
      if (present(ierr)) then
         if (ierr /= 0) return
      end if
      call self%send(port, value, timestamp, next_timestamp, slot, settings, ierr)
   end subroutine

   subroutine send_value(self, port, data, timestamp, next_timestamp, slot, settings, ierr)
      class(sending_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      class(titin_value), intent(in) :: data
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      integer, intent(out), optional :: ierr
      call finish(titin_send_value(titin_port_find(self%raw, c(port)), slot_number(slot), data%raw, timestamp, &
         following(next_timestamp), given(settings)), ierr, self%raw)
   end subroutine

   subroutine send_nil(self, port, timestamp, next_timestamp, slot, settings, ierr)
      class(sending_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      integer, intent(out), optional :: ierr
      call finish(titin_send_nil(titin_port_find(self%raw, c(port)), slot_number(slot), timestamp, &
         following(next_timestamp), given(settings)), ierr, self%raw)
   end subroutine
end module titin_sending
