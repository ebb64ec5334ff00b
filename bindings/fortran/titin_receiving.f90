! Receiving messages, and into arrays of each kind of element and any rank.
module titin_receiving
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_double, c_f_pointer, c_int, c_int64_t, c_loc, &
      c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, extents_of, finish, is_there, patience, slot_number, told
   use titin_data, only: titin_message
   use titin_loans, only: loans_layer
   implicit none
   private

   public :: receiving_layer

   !> The fifth layer of an instance; titin_fields has the next.
   type, extends(loans_layer) :: receiving_layer
   contains
      !> receive(port, message, slot, timeout, default), or receive(port, data, slot, timeout, timestamp, message) into an
      !> array of the program, whose kind and shape must be those of the message; with as=titin_u8 to titin_u64, titin_f16 or
      !> titin_bf16 the bits of such elements, into integers of the same size. `timeout` is in seconds; without it the call waits for ever.
      !> `default` is the message of a port without a conduit. An array of the program can hold its default beforehand, and be
      !> received only if is_connected(port).
      procedure, private :: receive_message, receive_int8, receive_int16, receive_int32, receive_int64, receive_real32, &
         receive_real64, receive_complex32, receive_complex64, receive_bool, receive_logical
      generic :: receive => receive_message, receive_int8, receive_int16, receive_int32, receive_int64, receive_real32, &
         receive_real64, receive_complex32, receive_complex64, receive_bool, receive_logical
      !> try_receive(port, message, found, slot): does not wait.
      procedure :: try_receive
      !> receive_any(ports, which, message, slot, timeout): the next message of any of these ports. `which` is the index in
      !> `ports`, `slot` is 0 for a port without slots.
      procedure :: receive_any
      !> cancel(port, slot): for a light instance, gives up pending calls, in place of making them again: the calls on a
      !> port (for receive_any the first of its ports), the calls on a slot of the port, or all. After a send was given up,
      !> nothing else can be sent on its port and slot.
      procedure :: cancel
   end type

contains

   subroutine receive_message(self, port, message, slot, timeout, default, ierr)
      class(receiving_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      type(titin_message), intent(inout) :: message
      integer, intent(in), optional :: slot
      real(real64), intent(in), optional :: timeout
      type(titin_message), intent(in), optional :: default
      integer, intent(out), optional :: ierr
      type(c_ptr) :: handle, raw
      integer(c_int) :: status
      handle = titin_port_find(self%raw, c(port))
      if (present(default) .and. c_associated(handle)) then
         if (titin_port_is_connected(handle) == 0) then
            message = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      status = titin_receive(handle, slot_number(slot), patience(timeout), raw)
      call message%own(raw)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine try_receive(self, port, message, found, slot, ierr)
      class(receiving_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      type(titin_message), intent(inout) :: message
      logical, intent(out) :: found
      integer, intent(in), optional :: slot
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      integer(c_int) :: status
      status = titin_try_receive(titin_port_find(self%raw, c(port)), slot_number(slot), raw)
      call message%own(raw)
      found = c_associated(raw)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine receive_any(self, ports, which, message, slot, timeout, ierr)
      class(receiving_layer), intent(in) :: self
      character(len=*), intent(in) :: ports(:)
      integer, intent(out) :: which
      type(titin_message), intent(inout) :: message
      integer, intent(out), optional :: slot
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw, handles(size(ports))
      integer(c_int) :: status, place, number
      integer :: i
      do i = 1, size(ports)
         handles(i) = titin_port_find(self%raw, c(ports(i)))
      end do
      raw = c_null_ptr
      place = 0
      number = titin_no_slot
      status = titin_receive_any(handles, int(size(ports), c_int), patience(timeout), place, number, raw)
      call message%own(raw)
      which = int(place) + 1
      if (present(slot)) slot = int(number) + 1
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine cancel(self, port, slot, ierr)
      class(receiving_layer), intent(in) :: self
      character(len=*), intent(in), optional :: port
      integer, intent(in), optional :: slot
      integer, intent(out), optional :: ierr
      if (present(port)) then
         call finish(titin_cancel(self%raw, titin_port_find(self%raw, c(port)), slot_number(slot)), ierr, self%raw)
      else
         call finish(titin_cancel(self%raw, c_null_ptr, titin_no_slot), ierr, self%raw)
      end if
   end subroutine

   subroutine receive_array(self, port, dtype, rank, extents, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_ptr), intent(in) :: data
      integer, intent(in), optional :: slot
      real(real64), intent(in), optional :: timeout
      real(real64), intent(out), optional :: timestamp
      type(titin_message), intent(inout), optional :: message
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      type(titin_message) :: received
      type(c_ptr) :: raw
      integer(c_int) :: status, used
      character(len=:), allocatable :: wrong
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, self%raw, "receive '"//trim(port)//"': "//wrong)
         return
      end if
      status = titin_receive_into(titin_port_find(self%raw, c(port)), slot_number(slot), patience(timeout), used, &
         int(rank, c_int), extents, order=titin_order_fortran, data=data, message=raw)
      call received%own(raw)
      if (present(timestamp)) timestamp = titin_message_timestamp(raw)
      if (present(message)) message = received
      call finish(status, ierr, self%raw)
   end subroutine

   function not_allocated(port) result(words)
      character(len=*), intent(in) :: port
      character(len=:), allocatable :: words
      words = "receive '"//trim(port)//"': the array to receive into is not allocated; allocate it in the shape of the message"
   end function

   subroutine receive_int8(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      integer(int8), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_receive.inc"
   end subroutine

   subroutine receive_int16(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      integer(int16), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_receive.inc"
   end subroutine

   subroutine receive_int32(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      integer(int32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_receive.inc"
   end subroutine

   subroutine receive_int64(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      integer(int64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_receive.inc"
   end subroutine

   subroutine receive_real32(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      real(real32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_receive.inc"
   end subroutine

   subroutine receive_real64(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      real(real64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_receive.inc"
   end subroutine

   subroutine receive_complex32(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      complex(real32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_receive.inc"
   end subroutine

   subroutine receive_complex64(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      complex(real64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_receive.inc"
   end subroutine

   subroutine receive_bool(self, port, data, slot, timeout, timestamp, message, as, ierr)
      class(receiving_layer), intent(in) :: self
      logical(c_bool), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_receive.inc"
   end subroutine

   ! Logicals of the default kind are received as logical(c_bool).
   subroutine receive_logical(self, port, data, slot, timeout, timestamp, message, ierr)
      class(receiving_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      logical, intent(inout), contiguous, target :: data(..)
      integer, intent(in), optional :: slot
      real(real64), intent(in), optional :: timeout
      real(real64), intent(out), optional :: timestamp
      type(titin_message), intent(inout), optional :: message
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
      call receive_array(self, port, titin_bool, rank(data), extents, c_loc(bytes), slot, timeout, timestamp, message, &
         ierr=ierr)
      flat = logical(bytes)
   end subroutine
end module titin_receiving
