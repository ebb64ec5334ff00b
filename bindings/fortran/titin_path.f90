! Paths: messages between two programs that share a key, without a manager. titin_path.h says how paths behave.
!
!     use titin_path
!     type(path_listener_type) :: listener                 type(path_type) :: path
!     type(path_type) :: path                              call path%open("cluster.example:4711", name="mesh")
!     call listener%start("0.0.0.0:4711")                  call path%send(u)
!     call listener%accept(path)                           call path%close()
!     call path%receive(u)
!     call path%close()
!
! Every procedure that can fail has an optional ierr: 0, or one of titin_error_... of module titin. Without ierr an error
! stops the program with its text. `timeout` is in seconds; without it a call waits for ever.
module titin_path
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_double, c_f_pointer, c_funloc, c_int, c_int64_t, c_loc, &
      c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, extents_of, finish, is_there, patience, text, told
   use titin_data, only: titin_message
   use titin_instances, only: titin_interrupted
   implicit none
   private

   public :: path_listener_type, path_request_type, path_type, path_wait_any
   public :: titin_path_time, titin_path_messages_sent, titin_path_bytes_sent, titin_path_messages_received, &
      titin_path_bytes_received, titin_path_send_rate, titin_path_receive_rate, titin_path_waited, titin_path_round_trip, &
      titin_path_retransmissions, titin_path_pacing, titin_path_send_buffer, titin_path_receive_buffer, &
      titin_path_piece

   character(len=*), parameter :: not_allocated = "an array that is not allocated was given to a path: allocate it first"
   character(len=*), parameter :: not_contiguous = &
      "a section with gaps was given to a non-blocking call on a path: give a contiguous array"

   ! The function that open or start was given.
   type :: question
      procedure(titin_interrupted), pointer, nopass :: ask => null()
   end type

   !> A way to one other program. Several threads may use a path. At the end of its scope a path that is not closed waits for
   !> at most 10 s until the other end has all messages. A path cannot be copied.
   type :: path_type
      !> The handle, for the interfaces of titin_c.
      type(c_ptr) :: raw = c_null_ptr
   contains
      !> open(addresses, name, key, key_file, streams, pacing, send_buffer, receive_buffer, patience, outage,
      !> interrupted): opens a path
      !> to the first of these addresses where a program listens with the key: "host:port", or several of them with commas. `name`
      !> tells the listening program which path it is. `key` has 64 hexadecimal digits; without `key` and `key_file`, the
      !> environment variable TITIN_PATH_KEY names the file. `pacing` is in bytes per second, the buffers of each stream are
      !> in bytes, `patience` and `outage` are in seconds: how long opening waits, and how long the line to another host may be away.
      !> A path to another host is encrypted and outlives cuts; "session:host:port" and "tcp:host:port" choose;
      !> "relay:site/host:port" is at another site.
      !> The function `interrupted` is called ten times a second while a call waits;
      !> once it is true, the call ends with titin_error_interrupted.
      procedure :: open => open_path
      !> Whether the path is open; the name that the opening program gave.
      procedure :: is_open
      procedure :: name => name_of
      !> streams(): the number of streams that carry large messages.
      procedure :: streams => streams_of
      !> figure(which): a figure of this end of the path since it was opened, such as titin_path_round_trip (in seconds);
      !> titin_path.h has the list. NaN for a figure that the system does not measure.
      procedure :: figure => figure_of
      !> set_streams(streams): has this end send large messages by at most so many streams (1 to 256) from now on, and opens
      !> those that are missing: they carry messages as soon as they are there, which streams() tells. For 0 titin chooses.
      procedure :: set_streams
      !> set_piece(bytes): has this end send large messages in pieces of so many bytes (1 KiB to 1 MiB) from now on, where
      !> several streams carry them. For 0 titin chooses.
      procedure :: set_piece
      !> set_pacing(rate): has this end send at most so many bytes per second from now on; 0 is for no limit.
      procedure :: set_pacing
      !> set_buffers(send, receive): sets the sizes of each stream's buffers at this end, in bytes; 0 leaves a size as it is.
      procedure :: set_buffers
      !> send(data, timeout, as): an array of any kind and rank. Returns when the data may be changed. With as=titin_u8 to
      !> titin_u64, titin_f16 or titin_bf16 integers of the same size go as the elements whose bits they hold.
      procedure, private :: send_int8, send_int16, send_int32, send_int64, send_real32, send_real64, send_complex32, &
         send_complex64, send_bool, send_logical
      generic :: send => send_int8, send_int16, send_int32, send_int64, send_real32, send_real64, send_complex32, &
         send_complex64, send_bool, send_logical
      !> receive(message, timeout): the next message, whose size and type need not be known; or receive(data, timeout, as)
      !> into an array of the program, whose kind and shape must be those of the message.
      procedure, private :: receive_message, receive_int8, receive_int16, receive_int32, receive_int64, &
         receive_real32, receive_real64, receive_complex32, receive_complex64, receive_bool, receive_logical
      generic :: receive => receive_message, receive_int8, receive_int16, receive_int32, receive_int64, &
         receive_real32, receive_real64, receive_complex32, receive_complex64, receive_bool, receive_logical
      !> exchange(data, into, timeout, as): sends an array as send does, and receives one as receive does, both at once. The two
      !> are of the same kind, and may differ in shape; `as` holds for both.
      !> exchange(data, message, timeout, as) receives a message whose size and type need not be known.
      procedure, private :: exchange_int8, exchange_int16, exchange_int32, exchange_int64, exchange_real32, &
         exchange_real64, exchange_complex32, exchange_complex64, exchange_bool, exchange_logical, unknown_int8, &
         unknown_int16, unknown_int32, unknown_int64, unknown_real32, unknown_real64, unknown_complex32, &
         unknown_complex64, unknown_bool, unknown_logical
      generic :: exchange => exchange_int8, exchange_int16, exchange_int32, exchange_int64, exchange_real32, &
         exchange_real64, exchange_complex32, exchange_complex64, exchange_bool, exchange_logical, unknown_int8, &
         unknown_int16, unknown_int32, unknown_int64, unknown_real32, unknown_real64, unknown_complex32, &
         unknown_complex64, unknown_bool, unknown_logical
      !> cycle(to, message, timeout): receives the next message and passes it on to another path, piece by piece as the pieces
      !> come in. Without `message` the message only passes.
      procedure :: cycle => cycle_message
      !> relay(other, timeout): passes all messages on, both ways, until the other program of one of the two paths closes it.
      procedure :: relay
      !> The non-blocking forms, which give a request and go on while the program computes. What is sent or received into is a
      !> contiguous variable with the target or the asynchronous attribute, which stays as it is until the call is done.
      !> isend(data, request, as).
      procedure, private :: isend_int8, isend_int16, isend_int32, isend_int64, isend_real32, isend_real64, &
         isend_complex32, isend_complex64, isend_bool
      generic :: isend => isend_int8, isend_int16, isend_int32, isend_int64, isend_real32, isend_real64, &
         isend_complex32, isend_complex64, isend_bool
      !> ireceive(request), for a message whose size and type need not be known (request%message); or ireceive(data, request, as).
      procedure, private :: ireceive_message, ireceive_int8, ireceive_int16, ireceive_int32, ireceive_int64, &
         ireceive_real32, ireceive_real64, ireceive_complex32, ireceive_complex64, ireceive_bool
      generic :: ireceive => ireceive_message, ireceive_int8, ireceive_int16, ireceive_int32, ireceive_int64, &
         ireceive_real32, ireceive_real64, ireceive_complex32, ireceive_complex64, ireceive_bool
      !> iexchange(data, into, request, as); iexchange(data, request, as) for a message whose size and type need not be known.
      procedure, private :: iexchange_int8, iexchange_int16, iexchange_int32, iexchange_int64, iexchange_real32, &
         iexchange_real64, iexchange_complex32, iexchange_complex64, iexchange_bool, iunknown_int8, iunknown_int16, &
         iunknown_int32, iunknown_int64, iunknown_real32, iunknown_real64, iunknown_complex32, iunknown_complex64, &
         iunknown_bool
      generic :: iexchange => iexchange_int8, iexchange_int16, iexchange_int32, iexchange_int64, iexchange_real32, &
         iexchange_real64, iexchange_complex32, iexchange_complex64, iexchange_bool, iunknown_int8, iunknown_int16, &
         iunknown_int32, iunknown_int64, iunknown_real32, iunknown_real64, iunknown_complex32, iunknown_complex64, &
         iunknown_bool
      !> ibarrier(request), icycle(to, request, keep) and irelay(other, request). With keep=.true. the message of a cycle is in
      !> request%message.
      procedure :: ibarrier
      procedure :: icycle
      procedure :: irelay
      !> barrier(timeout): waits until the other program has come to its barrier as often as this one.
      procedure :: barrier
      !> flush(timeout): waits until the other program has received all messages that this one has sent.
      procedure :: flush => flush_path
      !> close(timeout): waits until the other end has all messages, and closes the path at both ends.
      procedure :: close => close_path
      procedure, private :: copy => copy_path
      generic :: assignment(=) => copy
      final :: finalize_path
   end type

   !> A non-blocking call on a path. A request whose call is done can be given to the next call. At the end of its scope a
   !> request whose call is not done cancels the call. A request cannot be copied.
   type :: path_request_type
      !> The handle, for the interfaces of titin_c.
      type(c_ptr) :: raw = c_null_ptr
   contains
      !> test(done): whether the call is done. `ierr` is the error of a call that has failed, at each test and wait.
      procedure :: test => test_request
      !> wait(timeout): waits until the call is done. A call whose time is over goes on.
      procedure :: wait => wait_for_request
      !> cancel(cancelled): ends the call if it is not done. Afterwards the memory is the program's again.
      procedure :: cancel => cancel_request
      !> length(): the number of bytes that the call has received; -1 if it has received none.
      procedure :: length => length_of_request
      !> message(message): the message that ireceive(request), iexchange(data, request) or icycle has received.
      procedure :: message => message_of_request
      procedure, private :: copy => copy_request
      generic :: assignment(=) => copy
      final :: finalize_request
   end type

   !> A port where other programs open any number of paths.
   type :: path_listener_type
      !> The handle, for the interfaces of titin_c.
      type(c_ptr) :: raw = c_null_ptr
   contains
      !> start(address, key, key_file, interrupted): listens at "host:port". The host 0.0.0.0, or [::], stands for all
      !> networks of the host. For port 0 the system chooses a port. `interrupted` is as for open, and also for accepted paths.
      procedure :: start
      !> address(): the address at which the listener was started, with its port.
      procedure :: address => address_of
      !> accept(path, timeout): the next path that another program has opened.
      procedure :: accept
      !> stop(): frees the port, and ends the paths that were not accepted. Accepted paths live on.
      procedure :: stop => stop_listening
      procedure, private :: copy => copy_listener
      generic :: assignment(=) => copy
      final :: finalize_listener
   end type

contains

   ! Options for C: to be freed.
   subroutine new_options(options, status, key, key_file, streams, pacing, send_buffer, receive_buffer, patience, outage, &
      interrupted)
      type(c_ptr), intent(out) :: options
      integer(c_int), intent(out) :: status
      character(len=*), intent(in), optional :: key, key_file
      integer, intent(in), optional :: streams
      integer(int64), intent(in), optional :: pacing, send_buffer, receive_buffer
      real(real64), intent(in), optional :: patience, outage
      procedure(titin_interrupted), optional :: interrupted
      type(question), pointer :: asking
      integer(c_int64_t) :: send, receive

      options = titin_path_options_new()
      status = titin_ok
      if (present(key_file)) status = titin_path_options_key_file(options, c(key_file))
      if (present(key) .and. status == titin_ok) status = titin_path_options_key(options, c(key))
      if (present(streams) .and. status == titin_ok) status = titin_path_options_streams(options, int(streams, c_int))
      if (present(pacing) .and. status == titin_ok) status = titin_path_options_pacing(options, pacing)
      send = 0
      receive = 0
      if (present(send_buffer)) send = send_buffer
      if (present(receive_buffer)) receive = receive_buffer
      if (status == titin_ok) status = titin_path_options_buffers(options, send, receive)
      if (present(patience) .and. status == titin_ok) status = titin_path_options_patience(options, patience)
      if (present(outage) .and. status == titin_ok) status = titin_path_options_outage(options, outage)
      if (present(interrupted) .and. status == titin_ok) then
         ! Paths that are accepted later use the function, so its place stays until the program ends.
         allocate (asking)
         asking%ask => interrupted
         status = titin_path_options_interrupt(options, c_funloc(asked), c_loc(asking))
      end if
   end subroutine

   ! The callback for C.
   recursive function asked(data) result(yes) bind(C, name="")
      type(c_ptr), value :: data
      integer(c_int) :: yes
      type(question), pointer :: asking
      call c_f_pointer(data, asking)
      yes = merge(1_c_int, 0_c_int, asking%ask())
   end function

   subroutine open_path(self, addresses, name, key, key_file, streams, pacing, send_buffer, receive_buffer, patience, outage, &
      interrupted, ierr)
      class(path_type), intent(inout) :: self
      character(len=*), intent(in) :: addresses
      character(len=*), intent(in), optional :: name, key, key_file
      integer, intent(in), optional :: streams
      integer(int64), intent(in), optional :: pacing, send_buffer, receive_buffer
      real(real64), intent(in), optional :: patience, outage
      procedure(titin_interrupted), optional :: interrupted
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: given
      type(c_ptr) :: options
      integer(c_int) :: status

      if (c_associated(self%raw)) then
         call finish(titin_error_usage, ierr, found="this path is open already: close it first")
         return
      end if
      given = ""
      if (present(name)) given = name
      call new_options(options, status, key, key_file, streams, pacing, send_buffer, receive_buffer, patience, outage, &
         interrupted)
      if (status == titin_ok) status = titin_path_open(c(addresses), c(given), options, self%raw)
      call titin_path_options_free(options)
      call finish(status, ierr)
   end subroutine

   function is_open(self) result(open)
      class(path_type), intent(in) :: self
      logical :: open
      open = c_associated(self%raw)
   end function

   function name_of(self) result(name)
      class(path_type), intent(in) :: self
      character(len=:), allocatable :: name
      name = text(titin_path_name(self%raw))
   end function

   function streams_of(self) result(streams)
      class(path_type), intent(in) :: self
      integer :: streams
      streams = int(titin_path_streams(self%raw))
   end function

   function figure_of(self, which) result(figure)
      class(path_type), intent(in) :: self
      integer, intent(in) :: which
      real(real64) :: figure
      figure = titin_path_figure(self%raw, int(which, c_int))
   end function

   subroutine set_streams(self, streams, ierr)
      class(path_type), intent(in) :: self
      integer, intent(in) :: streams
      integer, intent(out), optional :: ierr
      call finish(titin_path_set_streams(self%raw, int(streams, c_int)), ierr)
   end subroutine

   subroutine set_piece(self, bytes, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in) :: bytes
      integer, intent(out), optional :: ierr
      call finish(titin_path_set_piece(self%raw, bytes), ierr)
   end subroutine

   subroutine set_pacing(self, rate, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in) :: rate
      integer, intent(out), optional :: ierr
      call finish(titin_path_set_pacing(self%raw, rate), ierr)
   end subroutine

   subroutine set_buffers(self, send, receive, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in) :: send, receive
      integer, intent(out), optional :: ierr
      call finish(titin_path_set_buffers(self%raw, send, receive), ierr)
   end subroutine

   subroutine barrier(self, timeout, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      call finish(titin_path_barrier(self%raw, patience(timeout)), ierr)
   end subroutine

   subroutine flush_path(self, timeout, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      call finish(titin_path_flush(self%raw, patience(timeout)), ierr)
   end subroutine

   subroutine close_path(self, timeout, ierr)
      class(path_type), intent(inout) :: self
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = self%raw
      self%raw = c_null_ptr
      call finish(titin_path_close(raw, patience(timeout)), ierr)
   end subroutine

   subroutine copy_path(self, other)
      class(path_type), intent(inout) :: self
      class(path_type), intent(in) :: other
      associate (stays_as_it_is => self, is_left_alone => other)
      end associate
      call finish(titin_error_usage, found="a path cannot be copied; pass it on as an argument, or have a pointer to it")
   end subroutine

   subroutine finalize_path(self)
      type(path_type), intent(inout) :: self
      integer(c_int) :: ignored
      if (.not. c_associated(self%raw)) return
      ignored = titin_path_close(self%raw, 10.0_c_double)
      self%raw = c_null_ptr
   end subroutine

   subroutine copy_listener(self, other)
      class(path_listener_type), intent(inout) :: self
      class(path_listener_type), intent(in) :: other
      associate (stays_as_it_is => self, is_left_alone => other)
      end associate
      call finish(titin_error_usage, found="a listener cannot be copied; pass it on as an argument, or have a pointer to it")
   end subroutine

   subroutine finalize_listener(self)
      type(path_listener_type), intent(inout) :: self
      call self%stop()
   end subroutine

   subroutine start(self, address, key, key_file, interrupted, ierr)
      class(path_listener_type), intent(inout) :: self
      character(len=*), intent(in) :: address
      character(len=*), intent(in), optional :: key, key_file
      procedure(titin_interrupted), optional :: interrupted
      integer, intent(out), optional :: ierr
      type(c_ptr) :: options
      integer(c_int) :: status

      if (c_associated(self%raw)) then
         call finish(titin_error_usage, ierr, found="this listener has started already: stop it first")
         return
      end if
      call new_options(options, status, key, key_file, interrupted=interrupted)
      if (status == titin_ok) status = titin_path_listen(c(address), options, self%raw)
      call titin_path_options_free(options)
      call finish(status, ierr)
   end subroutine

   function address_of(self) result(address)
      class(path_listener_type), intent(in) :: self
      character(len=:), allocatable :: address
      address = text(titin_path_listener_address(self%raw))
   end function

   subroutine accept(self, path, timeout, ierr)
      class(path_listener_type), intent(in) :: self
      class(path_type), intent(inout) :: path
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      if (path%is_open()) then
         call finish(titin_error_usage, ierr, found="this path is open already: close it first")
         return
      end if
      call finish(titin_path_accept(self%raw, patience(timeout), path%raw), ierr)
   end subroutine

   subroutine stop_listening(self)
      class(path_listener_type), intent(inout) :: self
      call titin_path_listener_free(self%raw)
      self%raw = c_null_ptr
   end subroutine

   subroutine receive_message(self, message, timeout, ierr)
      class(path_type), intent(in) :: self
      type(titin_message), intent(inout) :: message
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      integer(c_int) :: status
      status = titin_path_receive(self%raw, patience(timeout), raw)
      call message%own(raw)
      call finish(status, ierr)
   end subroutine

   subroutine send_array(self, dtype, rank, extents, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_ptr), intent(in) :: data
      real(real64), intent(in), optional :: timeout
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: wrong
      integer(c_int) :: used
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, found="send on a path: "//wrong)
         return
      end if
      call finish(titin_path_send_array(self%raw, used, int(rank, c_int), extents, order=titin_order_fortran, data=data, &
         timeout=patience(timeout)), ierr)
   end subroutine

   subroutine receive_array(self, dtype, rank, extents, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_ptr), intent(in) :: data
      real(real64), intent(in), optional :: timeout
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: wrong
      integer(c_int) :: used
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, found="receive from a path: "//wrong)
         return
      end if
      call finish(titin_path_receive_array(self%raw, used, int(rank, c_int), extents, order=titin_order_fortran, data=data, &
         timeout=patience(timeout)), ierr)
   end subroutine

   subroutine send_int8(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_send.inc"
   end subroutine

   subroutine send_int16(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_send.inc"
   end subroutine

   subroutine send_int32(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_send.inc"
   end subroutine

   subroutine send_int64(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_send.inc"
   end subroutine

   subroutine send_real32(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_send.inc"
   end subroutine

   subroutine send_real64(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_send.inc"
   end subroutine

   subroutine send_complex32(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_send.inc"
   end subroutine

   subroutine send_complex64(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_send.inc"
   end subroutine

   subroutine send_bool(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_send.inc"
   end subroutine

   subroutine receive_int8(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_int16(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_int32(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_int64(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_real32(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_real64(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_complex32(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_complex64(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_receive.inc"
   end subroutine

   subroutine receive_bool(self, data, timeout, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_receive.inc"
   end subroutine

   ! Logicals of the default kind are longer than a byte, and travel as logical(c_bool).
   subroutine send_logical(self, data, timeout, ierr)
      class(path_type), intent(in) :: self
      logical, intent(in), contiguous, target :: data(..)
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: extents(titin_max_rank)
      logical, pointer :: flat(:)
      logical(c_bool), allocatable, target :: bytes(:)

      if (.not. is_there(c_loc(data), shape(data, c_int64_t))) then
         call finish(titin_error_usage, ierr, found=not_allocated)
         return
      end if
      extents(:rank(data)) = extents_of(shape(data, c_int64_t))
      call c_f_pointer(c_loc(data), flat, [product(extents_of(shape(data, c_int64_t)))])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      call send_array(self, titin_bool, rank(data), extents, c_loc(bytes), timeout, ierr=ierr)
   end subroutine

   subroutine receive_logical(self, data, timeout, ierr)
      class(path_type), intent(in) :: self
      logical, intent(inout), contiguous, target :: data(..)
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: extents(titin_max_rank)
      logical, pointer :: flat(:)
      logical(c_bool), allocatable, target :: bytes(:)

      if (.not. is_there(c_loc(data), shape(data, c_int64_t))) then
         call finish(titin_error_usage, ierr, found=not_allocated)
         return
      end if
      extents(:rank(data)) = extents_of(shape(data, c_int64_t))
      call c_f_pointer(c_loc(data), flat, [product(extents_of(shape(data, c_int64_t)))])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      call receive_array(self, titin_bool, rank(data), extents, c_loc(bytes), timeout, ierr=ierr)
      flat = logical(bytes)
   end subroutine

   ! The layout of an array for C. The extents must outlive it.
   function layout_of(dtype, rank, extents) result(layout)
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in), target :: extents(*)
      type(titin_path_layout) :: layout
      layout%dtype = dtype
      layout%rank = int(rank, c_int)
      layout%extents = c_loc(extents)
      layout%order = titin_order_fortran
   end function

   subroutine exchange_arrays(self, dtype, ranks, extents, into_extents, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: ranks(2)
      integer(c_int64_t), intent(in), target :: extents(*), into_extents(*)
      type(c_ptr), intent(in) :: data, into
      real(real64), intent(in), optional :: timeout
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: wrong
      integer(c_int) :: used
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, found="exchange on a path: "//wrong)
         return
      end if
      call finish(titin_path_exchange_array(self%raw, data, layout_of(used, ranks(1), extents), into, &
         layout_of(used, ranks(2), into_extents), patience(timeout)), ierr)
   end subroutine

   subroutine exchange_unknown(self, dtype, rank, extents, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in), target :: extents(*)
      type(c_ptr), intent(in) :: data
      type(titin_message), intent(inout) :: message
      real(real64), intent(in), optional :: timeout
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: wrong
      type(c_ptr) :: raw
      integer(c_int) :: used, status
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, found="exchange on a path: "//wrong)
         return
      end if
      status = titin_path_exchange_array_message(self%raw, data, layout_of(used, rank, extents), patience(timeout), raw)
      call message%own(raw)
      call finish(status, ierr)
   end subroutine

   subroutine exchange_int8(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(int8), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_int16(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(int16), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_int32(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(int32), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_int64(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(int64), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_real32(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      real(real32), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_real64(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      real(real64), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_complex32(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      complex(real32), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_complex64(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      complex(real64), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_exchange.inc"
   end subroutine

   subroutine exchange_bool(self, data, into, timeout, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      logical(c_bool), intent(inout), contiguous, target :: into(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_exchange.inc"
   end subroutine

   subroutine unknown_int8(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_int16(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_int32(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_int64(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_real32(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_real64(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_complex32(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_complex64(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_unknown.inc"
   end subroutine

   subroutine unknown_bool(self, data, message, timeout, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_unknown.inc"
   end subroutine

   subroutine exchange_logical(self, data, into, timeout, ierr)
      class(path_type), intent(in) :: self
      logical, intent(in), contiguous, target :: data(..)
      logical, intent(inout), contiguous, target :: into(..)
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      integer(c_int64_t), target :: extents(titin_max_rank), into_extents(titin_max_rank)
      logical, pointer :: flat(:), into_flat(:)
      logical(c_bool), allocatable, target :: bytes(:), into_bytes(:)

      if (.not. is_there(c_loc(data), shape(data, c_int64_t)) .or. .not. is_there(c_loc(into), shape(into, c_int64_t))) then
         call finish(titin_error_usage, ierr, found=not_allocated)
         return
      end if
      extents(:rank(data)) = extents_of(shape(data, c_int64_t))
      into_extents(:rank(into)) = extents_of(shape(into, c_int64_t))
      call c_f_pointer(c_loc(data), flat, [product(extents(:rank(data)))])
      call c_f_pointer(c_loc(into), into_flat, [product(into_extents(:rank(into)))])
      allocate (bytes(size(flat, kind=c_int64_t)), into_bytes(size(into_flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      into_bytes(:) = logical(into_flat, c_bool)
      call exchange_arrays(self, titin_bool, [rank(data), rank(into)], extents, into_extents, c_loc(bytes), c_loc(into_bytes), &
         timeout, ierr=ierr)
      into_flat = logical(into_bytes)
   end subroutine

   subroutine unknown_logical(self, data, message, timeout, ierr)
      class(path_type), intent(in) :: self
      logical, intent(in), contiguous, target :: data(..)
      type(titin_message), intent(inout) :: message
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      integer(c_int64_t), target :: extents(titin_max_rank)
      logical, pointer :: flat(:)
      logical(c_bool), allocatable, target :: bytes(:)

      if (.not. is_there(c_loc(data), shape(data, c_int64_t))) then
         call finish(titin_error_usage, ierr, found=not_allocated)
         return
      end if
      extents(:rank(data)) = extents_of(shape(data, c_int64_t))
      call c_f_pointer(c_loc(data), flat, [product(extents(:rank(data)))])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      call exchange_unknown(self, titin_bool, rank(data), extents, c_loc(bytes), message, timeout, ierr=ierr)
   end subroutine

   subroutine cycle_message(self, to, message, timeout, ierr)
      class(path_type), intent(in) :: self
      class(path_type), intent(in) :: to
      type(titin_message), intent(inout), optional :: message
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      integer(c_int) :: status
      if (present(message)) then
         status = titin_path_cycle_message(self%raw, to%raw, patience(timeout), raw)
         call message%own(raw)
      else
         status = titin_path_cycle(self%raw, to%raw, c_null_ptr, 0_c_int64_t, patience(timeout))
      end if
      call finish(status, ierr)
   end subroutine

   subroutine relay(self, other, timeout, ierr)
      class(path_type), intent(in) :: self
      class(path_type), intent(in) :: other
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      call finish(titin_path_relay(self%raw, other%raw, patience(timeout)), ierr)
   end subroutine

   ! Frees a request for the next call. False, and an error, if its call is not done.
   function is_free(request, ierr) result(is)
      type(path_request_type), intent(inout) :: request
      integer, intent(out), optional :: ierr
      logical :: is
      integer(c_int) :: done, ignored
      done = 1
      if (c_associated(request%raw)) ignored = titin_path_test(request%raw, done)
      is = done /= 0
      if (is) then
         call titin_path_request_free(request%raw)
         request%raw = c_null_ptr
      else
         call finish(titin_error_usage, ierr, found="the call of this request is not done: wait for it, or cancel it, first")
      end if
   end function

   subroutine ireceive_message(self, request, ierr)
      class(path_type), intent(in) :: self
      type(path_request_type), intent(inout) :: request
      integer, intent(out), optional :: ierr
      if (is_free(request, ierr)) call finish(titin_path_ireceive(self%raw, request%raw), ierr)
   end subroutine

   subroutine ibarrier(self, request, ierr)
      class(path_type), intent(in) :: self
      type(path_request_type), intent(inout) :: request
      integer, intent(out), optional :: ierr
      if (is_free(request, ierr)) call finish(titin_path_ibarrier(self%raw, request%raw), ierr)
   end subroutine

   subroutine icycle(self, to, request, keep, ierr)
      class(path_type), intent(in) :: self
      class(path_type), intent(in) :: to
      type(path_request_type), intent(inout) :: request
      logical, intent(in), optional :: keep
      integer, intent(out), optional :: ierr
      logical :: keeps
      keeps = .false.
      if (present(keep)) keeps = keep
      if (.not. is_free(request, ierr)) return
      if (keeps) then
         call finish(titin_path_icycle_message(self%raw, to%raw, request%raw), ierr)
      else
         call finish(titin_path_icycle(self%raw, to%raw, c_null_ptr, 0_c_int64_t, request%raw), ierr)
      end if
   end subroutine

   subroutine irelay(self, other, request, ierr)
      class(path_type), intent(in) :: self
      class(path_type), intent(in) :: other
      type(path_request_type), intent(inout) :: request
      integer, intent(out), optional :: ierr
      if (is_free(request, ierr)) call finish(titin_path_irelay(self%raw, other%raw, request%raw), ierr)
   end subroutine

   subroutine test_request(self, done, ierr)
      class(path_request_type), intent(in) :: self
      logical, intent(out) :: done
      integer, intent(out), optional :: ierr
      integer(c_int) :: is_done, status
      status = titin_path_test(self%raw, is_done)
      done = is_done /= 0
      call finish(status, ierr)
   end subroutine

   subroutine wait_for_request(self, timeout, ierr)
      class(path_request_type), intent(in) :: self
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      call finish(titin_path_wait(self%raw, patience(timeout)), ierr)
   end subroutine

   subroutine cancel_request(self, cancelled, ierr)
      class(path_request_type), intent(in) :: self
      logical, intent(out), optional :: cancelled
      integer, intent(out), optional :: ierr
      integer(c_int) :: is_cancelled, status
      status = titin_path_cancel(self%raw, is_cancelled)
      if (present(cancelled)) cancelled = is_cancelled /= 0
      call finish(status, ierr)
   end subroutine

   function length_of_request(self) result(length)
      class(path_request_type), intent(in) :: self
      integer(int64) :: length
      length = titin_path_request_length(self%raw)
   end function

   subroutine message_of_request(self, message, ierr)
      class(path_request_type), intent(in) :: self
      type(titin_message), intent(inout) :: message
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      integer(c_int) :: status
      status = titin_path_request_message(self%raw, raw)
      call message%own(raw)
      call finish(status, ierr)
   end subroutine

   subroutine copy_request(self, other)
      class(path_request_type), intent(inout) :: self
      class(path_request_type), intent(in) :: other
      associate (stays_as_it_is => self, is_left_alone => other)
      end associate
      call finish(titin_error_usage, found="a request cannot be copied; pass it on as an argument, or have a pointer to it")
   end subroutine

   impure elemental subroutine finalize_request(self)
      type(path_request_type), intent(inout) :: self
      call titin_path_request_free(self%raw)
      self%raw = c_null_ptr
   end subroutine

   !> path_wait_any(requests, index, timeout): waits until the call of one of these requests is done, on one path or on several.
   !> `index` is its place from 1 on, and `ierr` the error of the call; if none is done in time, `index` is 0. A request without
   !> a call is left out.
   subroutine path_wait_any(requests, index, timeout, ierr)
      type(path_request_type), intent(in) :: requests(:)
      integer, intent(out) :: index
      real(real64), intent(in), optional :: timeout
      integer, intent(out), optional :: ierr
      integer(c_int) :: first, status
      integer :: i
      status = titin_path_wait_any(size(requests, kind=c_int), [(requests(i)%raw, i=1, size(requests))], patience(timeout), first)
      index = first + 1
      call finish(status, ierr)
   end subroutine

   subroutine isend_int8(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_int16(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_int32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_int64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_real32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_real64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_complex32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_complex64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_isend.inc"
   end subroutine

   subroutine isend_bool(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_isend.inc"
   end subroutine

   subroutine ireceive_int8(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_int16(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_int32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_int64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_real32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_real64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_complex32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_complex64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine ireceive_bool(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(inout), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_ireceive.inc"
   end subroutine

   subroutine iexchange_int8(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(in), target, asynchronous :: data(..)
      integer(int8), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_int16(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(in), target, asynchronous :: data(..)
      integer(int16), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_int32(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(in), target, asynchronous :: data(..)
      integer(int32), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_int64(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in), target, asynchronous :: data(..)
      integer(int64), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_real32(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(in), target, asynchronous :: data(..)
      real(real32), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_real64(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), target, asynchronous :: data(..)
      real(real64), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_complex32(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(in), target, asynchronous :: data(..)
      complex(real32), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_complex64(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(in), target, asynchronous :: data(..)
      complex(real64), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iexchange_bool(self, data, into, request, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(in), target, asynchronous :: data(..)
      logical(c_bool), intent(inout), target, asynchronous :: into(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_iexchange.inc"
   end subroutine

   subroutine iunknown_int8(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int8), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_int16(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int16), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_int32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int32), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_int64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      integer(int64), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_real32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real32), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_real64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      real(real64), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_complex32(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real32), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_complex64(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      complex(real64), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_path_iunknown.inc"
   end subroutine

   subroutine iunknown_bool(self, data, request, as, ierr)
      class(path_type), intent(in) :: self
      logical(c_bool), intent(in), target, asynchronous :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_path_iunknown.inc"
   end subroutine
end module titin_path
