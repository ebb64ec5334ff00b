! One of the two ends of a path, as paths.c.
module interruption
   implicit none
   logical :: wanted = .false.

contains

   function is_wanted() result(yes)
      logical :: yes
      yes = wanted
   end function
end module interruption

program paths
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_char, c_int, c_int64_t, c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, output_unit, real32, real64
   use interruption, only: is_wanted, wanted
   use titin
   use titin_c
   use titin_path
   implicit none

   integer, parameter :: many = 700000
   type(path_listener_type) :: listener
   type(path_type) :: path
   character(len=256) :: place, key
   logical :: listens
   integer :: ierr

   call get_command_argument(1, place)
   call get_environment_variable("TITIN_PATH_KEY", key)
   listens = place == "listen"
   if (listens) then
      call listener%start("127.0.0.1:0", interrupted=is_wanted)
      write (output_unit, "(a)") listener%address()
      flush (output_unit)
      call listener%accept(path)
   else
      call path%open(place, key="0123", ierr=ierr)
      call check(ierr == titin_error_usage .and. .not. path%is_open(), "a key that is none")
      call path%open(place, name="mesh", key_file=key, streams=3, pacing=4000000000_int64, send_buffer=2_int64**20, &
         receive_buffer=2_int64**20, patience=20.0_real64, outage=30.0_real64, interrupted=is_wanted)
   end if
   call check(path%name() == "mesh" .and. path%streams() == 3, "name and streams")
   if (listens) then
      call take()
      call give()
   else
      call give()
      call take()
   end if
   call surprise()
   call misfit()
   call exchange()
   call types()
   call arrays()
   call exchange_misfit()
   call parts()
   call requests()
   call pieces()
   call echo()
   call change_streams()
   if (listens) call listener%stop()
   call finish()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (holds) return
      error stop "failed: "//what//"; last error: "//titin_error_text()
   end subroutine

   subroutine give()
      real(real64) :: wide(2, 6)
      real(real64), allocatable :: numbers(:)
      logical :: flags(3)
      integer :: i, j
      call path%send([1_int32, -2_int32, 3_int32])
      ! Every second column of a larger array.
      wide = -1
      do j = 1, 3
         do i = 1, 2
            wide(i, 2*j - 1) = 10*(i - 1) + j - 1
         end do
      end do
      call path%send(wide(:, ::2))
      call path%send([(1.0_real64, 2.0_real64), (3.0_real64, 4.0_real64)])
      flags = [.true., .false., .true.]
      call path%send(flags, ierr=ierr)
      call check(ierr == titin_ok, "to send logicals")
      call path%send([integer(int8) ::])
      allocate (numbers(many))
      numbers(:) = [(real(i - 1, real64), i=1, many)]
      call path%send(numbers)
   end subroutine

   subroutine take()
      integer(int32) :: whole(3)
      integer(int8) :: nothing(0)
      real(real64) :: wide(2, 6)
      real(real64), allocatable :: numbers(:)
      complex(real64) :: complexes(2)
      logical :: flags(3)
      integer :: i, j
      call path%receive(whole)
      call check(all(whole == [1, -2, 3]), "whole numbers")
      wide = 0
      call path%receive(wide(:, ::2))
      do j = 1, 6
         do i = 1, 2
            call check(nint(wide(i, j)) == merge(10*(i - 1) + (j - 1)/2, 0, mod(j, 2) == 1), "a section")
         end do
      end do
      call path%receive(complexes)
      call check(all(abs(complexes - [(1.0_real64, 2.0_real64), (3.0_real64, 4.0_real64)]) <= 0), "complex numbers")
      call path%receive(flags, ierr=ierr)
      call check(ierr == titin_ok .and. all(flags .eqv. [.true., .false., .true.]), "logicals")
      call path%receive(nothing)
      allocate (numbers(many))
      call path%receive(numbers)
      call check(all(nint(numbers) == [(i - 1, i=1, many)]), "many numbers")
   end subroutine

   ! A message of a type and shape that the receiver does not know.
   subroutine surprise()
      type(titin_message) :: message
      real(real32) :: numbers(4, 5)
      real(real32), pointer :: seen(:, :)
      real(real64), pointer :: others(:, :)
      integer :: i, j
      if (.not. listens) then
         do j = 1, 5
            do i = 1, 4
               numbers(i, j) = real(i - 1 - 2*(j - 1), real32)
            end do
         end do
         call path%send(numbers)
         return
      end if
      call path%receive(message)
      call message%view(others, ierr=ierr)
      call check(ierr == titin_error_type_mismatch, "another type")
      call check(message%dtype() == titin_f32 .and. all(message%extents() == [4, 5]), "a surprise")
      if (message%order() == titin_order_fortran) then
         call message%view(seen)
         call check(nint(seen(4, 3)) == 3 - 2*2, "an element of a surprise")
      end if
   end subroutine

   ! Both ends hear of a message that does not fit.
   subroutine misfit()
      character(kind=c_char), target :: bytes(100), room(99)
      real(real64) :: numbers(2)
      integer(c_int64_t) :: length
      if (.not. listens) then
         bytes = " "
         call check(titin_path_send(path%raw, c_loc(bytes), 100_c_int64_t, titin_wait) == titin_ok, "to send bytes")
         call path%barrier(ierr=ierr)
         call check(ierr == titin_error_message_lost, "a dropped message")
         call check(index(titin_error_text(), "100") > 0 .and. index(titin_error_text(), "99") > 0, titin_error_text())
         call path%send([1_int32, 2_int32])
         call path%barrier(ierr=ierr)
         call check(ierr == titin_error_message_lost, "a dropped array")
         call check(titin_path_send(path%raw, c_loc(bytes), 100_c_int64_t, titin_wait) == titin_ok, "to send bytes again")
         call path%receive(numbers, ierr=ierr)
         call check(ierr == titin_error_message_lost, "a dropped message, in place of an answer")
         call path%barrier()
         return
      end if
      call check(titin_path_receive_into(path%raw, c_loc(room), 99_c_int64_t, titin_wait, length) == &
         titin_error_type_mismatch, "too large")
      call path%barrier()
      call path%receive(numbers, ierr=ierr)
      call check(ierr == titin_error_type_mismatch, "another type")
      call check(index(titin_error_text(), "expected an array of float64 of shape [2], found int32") > 0, titin_error_text())
      call path%barrier()
      call check(titin_path_receive_into(path%raw, c_loc(room), 99_c_int64_t, titin_wait, length) == &
         titin_error_type_mismatch, "too large again")
      call path%barrier()
   end subroutine

   ! Bytes, as C exchanges them.
   subroutine exchange()
      type(titin_message) :: message
      type(c_ptr) :: raw
      real(real64), target :: own(1000), others(1001)
      integer(c_int64_t) :: received
      integer :: i
      own = [(real(merge(1000, 0, listens) + i - 1, real64), i=1, 1000)]
      call check(titin_path_exchange(path%raw, c_loc(own), 8000_c_int64_t, c_loc(others), 8008_c_int64_t, titin_wait, received) &
         == titin_ok, "to exchange bytes")
      call check(received == 8000, "as many as were sent")
      call check(all(nint(others(:1000)) == [(merge(0, 1000, listens) + i - 1, i=1, 1000)]), "the other's numbers")
      call check(titin_path_exchange_message(path%raw, c_loc(own), merge(8_c_int64_t, 16_c_int64_t, listens), titin_wait, raw) &
         == titin_ok, "to exchange bytes of an unknown number")
      call message%own(raw)
      call check(message%elements() == merge(16, 8, listens), "bytes of an unknown number")
   end subroutine

   ! Six numbers in two rows, at this end or at the other one.
   pure function numbers(of_listener)
      logical, intent(in) :: of_listener
      integer :: numbers(2, 3)
      integer :: i, j
      do j = 1, 3
         do i = 1, 2
            numbers(i, j) = merge(11, 1, of_listener) + 3*(i - 1) + j - 1
         end do
      end do
   end function

   ! An exchange of arrays of every type. The last one of each type does not wait.
   subroutine types()
      call flags()
      call int8s()
      call int16s()
      call int32s()
      call int64s()
      call int8s(as=titin_u8)
      call int16s(as=titin_u16)
      call int32s(as=titin_u32)
      call int64s(as=titin_u64)
      call real32s()
      call real64s()
      call complex32s()
      call complex64s()
      ! Fortran has no types for these: the numbers are their bits.
      call int16s(as=titin_f16)
      call int16s(as=titin_bf16)
   end subroutine

   ! Logicals are compared with another operator, and have two kinds.
   subroutine flags()
      type(path_request_type) :: request
      type(titin_message) :: message
      logical :: own(2, 3), others(2, 3), expected(2, 3)
      logical(c_bool), target, asynchronous :: own_bytes(2, 3), bytes(2, 3)
      own = mod(numbers(listens), 2) /= 0
      expected = mod(numbers(.not. listens), 2) /= 0
      own_bytes = logical(own, c_bool)
      others = .not. expected
      call path%exchange(own, others, ierr=ierr)
      call check(ierr == titin_ok .and. all(others .eqv. expected), "an exchange of logicals")
      call path%exchange(own, message, ierr=ierr)
      call check(ierr == titin_ok .and. message%dtype() == titin_bool, "logicals of unknown extents")
      bytes = .not. logical(expected, c_bool)
      call path%exchange(own_bytes, bytes)
      call check(all(logical(bytes) .eqv. expected), "an exchange of logicals of a byte")
      bytes = .not. logical(expected, c_bool)
      call path%iexchange(own_bytes, bytes, request)
      call request%wait()
      call check(all(logical(bytes) .eqv. expected), "logicals of a byte, without waiting")
   end subroutine

   subroutine int8s(as)
      integer, intent(in), optional :: as
      integer(int8), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = int(numbers(listens), int8)
      expected = int(numbers(.not. listens), int8)
      include "paths_types.inc"
   end subroutine

   subroutine int16s(as)
      integer, intent(in), optional :: as
      integer(int16), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = int(numbers(listens), int16)
      expected = int(numbers(.not. listens), int16)
      include "paths_types.inc"
   end subroutine

   subroutine int32s(as)
      integer, intent(in), optional :: as
      integer(int32), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = int(numbers(listens), int32)
      expected = int(numbers(.not. listens), int32)
      include "paths_types.inc"
   end subroutine

   subroutine int64s(as)
      integer, intent(in), optional :: as
      integer(int64), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = int(numbers(listens), int64)
      expected = int(numbers(.not. listens), int64)
      include "paths_types.inc"
   end subroutine

   subroutine real32s(as)
      integer, intent(in), optional :: as
      real(real32), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = real(numbers(listens), real32)
      expected = real(numbers(.not. listens), real32)
      include "paths_types.inc"
   end subroutine

   subroutine real64s(as)
      integer, intent(in), optional :: as
      real(real64), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = real(numbers(listens), real64)
      expected = real(numbers(.not. listens), real64)
      include "paths_types.inc"
   end subroutine

   subroutine complex32s(as)
      integer, intent(in), optional :: as
      complex(real32), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = cmplx(numbers(listens), -numbers(listens), real32)
      expected = cmplx(numbers(.not. listens), -numbers(.not. listens), real32)
      include "paths_types.inc"
   end subroutine

   subroutine complex64s(as)
      integer, intent(in), optional :: as
      complex(real64), target, asynchronous :: own(2, 3), others(2, 3), expected(2, 3)
      type(path_request_type) :: request
      integer :: turn
      own = cmplx(numbers(listens), -numbers(listens), real64)
      expected = cmplx(numbers(.not. listens), -numbers(.not. listens), real64)
      include "paths_types.inc"
   end subroutine

   ! Exchanges of arrays of other kinds: large ones, with strides, of two types, and where the receiver does not know the type.
   subroutine arrays()
      type(titin_message) :: message
      type(path_request_type) :: request
      type(titin_path_layout) :: one, two
      real(real64), allocatable :: own(:), others(:)
      real(real64) :: u(5, 4), wanted(4)
      integer(int32), target, asynchronous :: whole(2), back(2)
      integer(int32), pointer :: seen(:)
      integer(c_int64_t), target :: extents(1)
      real(real32), target :: number, found
      integer :: i
      allocate (own(many), others(many))
      own(:) = [(real(i - 1 + merge(1, 0, listens), real64), i=1, many)]
      call path%exchange(own, others, timeout=60.0_real64)
      call check(all(nint(others) == [(i - 1 + merge(0, 1, listens), i=1, many)]), "many numbers of an exchange")

      ! The last row but one goes out, and the last one is the neighbour's.
      u = 0
      u(4, :) = [(real(i + merge(10, 0, listens), real64), i=0, 3)]
      wanted = [(real(i + merge(0, 10, listens), real64), i=0, 3)]
      call path%exchange(u(4, :), u(5, :))
      call check(all(nint(u(5, :)) == nint(wanted)), "a row of the neighbour")

      ! The program that listens sends whole numbers, and the other one a single real number.
      whole = [7, -8]
      number = 2.5
      found = 0
      extents = 2
      two = titin_path_layout(dtype=titin_i32, rank=1, extents=c_loc(extents))
      one = titin_path_layout(dtype=titin_f32)
      if (listens) then
         call check(titin_path_exchange_array(path%raw, c_loc(whole), two, c_loc(found), one, titin_wait) == titin_ok, "a number")
         call check(nint(2*found) == 5, "a single number")
      else
         call check(titin_path_exchange_array(path%raw, c_loc(number), one, c_loc(back), two, titin_wait) == titin_ok, "numbers")
         call check(all(back == whole), "whole numbers for a single number")
      end if
      call path%exchange(whole, message)
      call message%view(seen)
      call check(all(seen == whole), "an array of unknown extents")
      call path%iexchange(whole, request)
      call request%wait()
      call request%message(message)
      call message%view(seen)
      call check(all(seen == whole), "an array of unknown extents, without waiting")
   end subroutine

   ! Both ends hear of an array that does not fit, in an exchange at either end.
   subroutine exchange_misfit()
      character(len=*), parameter :: both = "expected an array of float64 of shape [2], found int32 of shape [2]"
      character(len=*), parameter :: other_shape = "expected an array of float64 of shape [2], found float64 of shape [3]"
      type(path_request_type) :: request
      type(titin_message) :: message
      real(real64), target, asynchronous :: own(2), room(2)
      integer(int32) :: whole(2)
      whole = [1, 2]
      own = [5, 6]
      room = 0
      if (listens) then
         call path%receive(room, ierr=ierr)
         call check(ierr == titin_error_type_mismatch .and. index_of(both) > 0, "another type")
         call path%barrier()
         call path%exchange(own, room, as=titin_i16, ierr=ierr)
         call check(ierr == titin_error_usage .and. index_of("does not hold the bits") > 0, "as another type")
         call path%exchange(own, room, ierr=ierr)
         call check(ierr == titin_error_type_mismatch .and. index_of(both) > 0, "another type in an exchange")
         call path%barrier()
         call path%iexchange(own, room, request)
         call request%wait(ierr=ierr)
         call check(ierr == titin_error_type_mismatch .and. index_of(other_shape) > 0, "another shape in an exchange")
         call path%barrier()
         return
      end if
      call path%exchange(whole, message, ierr=ierr)
      call check(ierr == titin_error_message_lost .and. index_of(both) > 0, "a dropped array in an exchange")
      call path%barrier()
      call path%send(whole)
      call path%barrier(ierr=ierr)
      call check(ierr == titin_error_message_lost .and. index_of(both) > 0, "an array of another type")
      call path%receive(room)
      call check(all(nint(room) == [5, 6]), "the array of an exchange with an error")
      call path%send([1.0_real64, 2.0_real64, 3.0_real64])
      call path%barrier(ierr=ierr)
      call check(ierr == titin_error_message_lost .and. index_of(other_shape) > 0, "an array of another shape")
      room = 0
      call path%receive(room)
      call check(all(nint(room) == [5, 6]), "the array of a call with an error")
   end subroutine

   subroutine parts()
      character(kind=c_char), target :: first(2), second(3), word(8)
      integer(c_int64_t) :: length
      first = ["h", "e"]
      second = ["l", "l", "o"]
      if (listens) then
         call check(titin_path_receive_into(path%raw, c_loc(word), 8_c_int64_t, titin_wait, length) == titin_ok, "parts")
         call check(length == 5 .and. all(word(:5) == [first, second]), "hello")
      else
         call check(titin_path_send_parts(path%raw, 2_c_int, [c_loc(first), c_loc(second)], [2_c_int64_t, 3_c_int64_t], &
            titin_wait) == titin_ok, "to send parts")
      end if
   end subroutine

   ! Both ways at once, while no thread waits.
   subroutine requests()
      type(path_request_type) :: both(2), request
      type(titin_message) :: message
      type(c_ptr) :: list, ready
      real(real64), allocatable, target, asynchronous :: own(:, :), others(:, :)
      real(real64), target, asynchronous :: hundred(100), more(101)
      character(kind=c_char), target :: mark
      integer :: i, index, turn
      integer(c_int) :: status
      logical :: done
      ! The programs in C order have numbers (i, j) at other places of the memory.
      allocate (own(2, many/2), others(2, many/2))
      do i = 1, many/2
         own(:, i) = [i - 1, many/2 + i - 1] + merge(1, 0, listens)
      end do
      call path%ireceive(others, both(1))
      call path%isend(own(1, :), both(2), ierr=ierr)
      call check(ierr == titin_error_usage .and. index_of("gaps") > 0, "a section with gaps")
      call path%isend(own, both(2))
      do turn = 1, 2
         call path_wait_any(both, index)
         call check(index == 1 .or. index == 2, "one of two calls")
         if (index == 1) then
            call both(1)%test(done)
            call check(done .and. both(1)%length() == many*8, "a length")
         else
            call check(both(2)%length() == -1, "no length")
         end if
         call titin_path_request_free(both(index)%raw)
         both(index)%raw = c_null_ptr
      end do
      do i = 1, many/2
         call check(all(nint(others(:, i)) == [i - 1, many/2 + i - 1] + merge(0, 1, listens)), "the other's numbers")
      end do
      hundred = [(real(i - 1 + merge(1, 0, listens), real64), i=1, 100)]
      call check(titin_path_iexchange(path%raw, c_loc(hundred), 800_c_int64_t, c_loc(more), 808_c_int64_t, request%raw) == &
         titin_ok, "to exchange bytes")
      call request%wait()
      call check(request%length() == 800, "bytes of an exchange")
      call check(all(nint(more(:100)) == [(i - 1 + merge(0, 1, listens), i=1, 100)]), "numbers of an exchange")
      call titin_path_request_free(request%raw)
      call check(titin_path_iexchange_message(path%raw, c_loc(hundred), merge(8_c_int64_t, 16_c_int64_t, listens), request%raw) &
         == titin_ok, "to exchange bytes of an unknown number")
      call request%wait()
      call request%message(message)
      call check(message%elements() == merge(16, 8, listens), "bytes of an unknown number")
      call path%ibarrier(request)
      list = titin_ready_new()
      call check(titin_path_request_ready(request%raw, list, c_loc(mark)) == titin_ok, "a list")
      status = titin_ready_next(list, titin_wait, ready)
      call check(status == titin_ok .and. c_associated(ready, c_loc(mark)), "a call on a list")
      call request%wait()
      call titin_ready_free(list)
   end subroutine

   function index_of(word) result(place)
      character(len=*), intent(in) :: word
      integer :: place
      place = index(titin_error_text(), word)
   end function

   ! Several places in memory, and a call that is cancelled.
   subroutine pieces()
      type(path_request_type) :: request
      character(kind=c_char), target :: first(3), second(5)
      character(kind=c_char), parameter :: hello(5) = ["h", "e", "l", "l", "o"]
      integer(c_int64_t) :: length
      logical :: done
      if (.not. listens) then
         first(:2) = hello(:2)
         second(:3) = hello(3:)
         call check(titin_path_isend_parts(path%raw, 2_c_int, [c_loc(first), c_loc(second)], [2_c_int64_t, 3_c_int64_t], &
            request%raw) == titin_ok, "to send parts")
         call request%wait()
         second = hello
         call titin_path_request_free(request%raw)
         call check(titin_path_isend(path%raw, c_loc(second), 5_c_int64_t, request%raw) == titin_ok, "to send bytes")
         call request%wait()
         call check(titin_path_send(path%raw, c_loc(second), 5_c_int64_t, titin_wait) == titin_ok, "to send bytes again")
         call path%barrier()
         second(:4) = ["n", "e", "x", "t"]
         call check(titin_path_send(path%raw, c_loc(second), 4_c_int64_t, titin_wait) == titin_ok, "to send the next")
         return
      end if
      call check(titin_path_ireceive_parts(path%raw, 2_c_int, [c_loc(first), c_loc(second)], [3_c_int64_t, 5_c_int64_t], &
         request%raw) == titin_ok, "to receive parts")
      call request%wait()
      call check(all([first, second(:2)] == hello), "parts of hello")
      call check(titin_path_receive_parts(path%raw, 2_c_int, [c_loc(first), c_loc(second)], [3_c_int64_t, 5_c_int64_t], &
         titin_wait, length) == titin_ok, "to wait for parts")
      call check(length == 5 .and. all([first, second(:2)] == hello), "parts of hello again")
      call titin_path_request_free(request%raw)
      call check(titin_path_ireceive_into(path%raw, c_loc(second), 5_c_int64_t, request%raw) == titin_ok, "to receive bytes")
      call request%wait()
      call check(all(second == hello), "hello")
      call path%ireceive(request)
      call request%test(done)
      call check(.not. done, "a call that is not done")
      call request%wait(timeout=0.01_real64, ierr=ierr)
      call check(ierr == titin_error_timeout, "a call that takes longer")
      call path%ibarrier(request, ierr=ierr)
      call check(ierr == titin_error_usage, "a request that is in use")
      call request%cancel(done)
      call check(done, "a cancelled call")
      call request%wait(ierr=ierr)
      call check(ierr == titin_error_closed, "the error of a cancelled call")
      call path%barrier()
      call check(titin_path_receive_into(path%raw, c_loc(second), 5_c_int64_t, titin_wait, length) == titin_ok, "the next")
      call check(length == 4 .and. all(second(:4) == ["n", "e", "x", "t"]), "next")
   end subroutine

   ! The program that listens sends back what comes.
   subroutine echo()
      type(path_request_type) :: request
      type(titin_message) :: message
      integer(int32) :: numbers(3), back(3)
      integer(int32), pointer :: seen(:)
      integer :: i
      numbers = [5, -6, 7]
      if (.not. listens) then
         do i = 1, 5
            call path%send(numbers)
            call path%receive(back)
            call check(all(numbers == back), "an echo")
            numbers(1) = numbers(1) + 1
         end do
         call path%barrier()
         return
      end if
      call path%cycle(path, message)
      call message%view(seen)
      call check(all(seen == numbers), "a message that goes on")
      call path%icycle(path, request)
      call request%wait()
      call path%cycle(path)
      call path%icycle(path, request, keep=.true.)
      call request%wait()
      call request%message(message)
      call message%view(seen)
      call check(seen(1) == 8, "a kept message")
      call path%cycle(path)
      call path%relay(path, timeout=0.01_real64, ierr=ierr)
      call check(ierr == titin_error_timeout, "a relay that takes longer")
      call path%barrier()
   end subroutine

   !> Large messages by other numbers of streams and in other pieces.
   subroutine change_streams()
      integer, parameter :: counts(4) = [3, 5, 1, 2]
      real(real64), allocatable :: numbers(:)
      integer(int64) :: begun, now, rate
      integer :: step, i
      allocate (numbers(many))
      do step = 1, 4
         call path%set_streams(counts(step))
         call path%set_piece(1500_int64*step)
         call check(nint(path%figure(titin_path_piece)) == 1500*step, "a piece")
         call system_clock(begun, rate)
         now = begun
         do while (path%streams() /= counts(step) .and. now - begun < 20*rate)
            call system_clock(now)
         end do
         call check(path%streams() == counts(step), "other streams")
         numbers(:) = [(real(i + step - 2, real64), i=1, many)]
         call path%send(numbers)
         numbers(:) = 0
         call path%receive(numbers)
         call check(all(nint(numbers) == [(i + step - 2, i=1, many)]), "numbers by other streams")
      end do
      call path%set_streams(257, ierr=ierr)
      call check(ierr == titin_error_usage, "too many streams")
      call path%set_piece(1023_int64, ierr=ierr)
      call check(ierr == titin_error_usage, "a small piece")
      call path%set_streams(0)
      call path%set_piece(0_int64)
   end subroutine

   subroutine finish()
      type(titin_message) :: message
      type(path_request_type) :: request
      integer(int8) :: sent, back(1)
      integer :: plain
      wanted = .true.
      call path%receive(message, ierr=ierr)
      call check(ierr == titin_error_interrupted, "an interruption")
      wanted = .false.
      call path%receive(message, timeout=0.01_real64, ierr=ierr)
      call check(ierr == titin_error_timeout, "a timeout")
      call path%barrier()
      call check(path%figure(titin_path_bytes_sent) > 2*8*many, "bytes sent")
      call check(path%figure(titin_path_bytes_received) > 2*8*many, "bytes received")
      call check(path%figure(titin_path_messages_sent) > 10, "messages sent")
      call check(path%figure(titin_path_waited) > 0.01 .and. path%figure(titin_path_time) > 0.01, "times")
      call check(path%figure(titin_path_round_trip) > 0, "a round trip")
      call path%set_pacing(5000000_int64)
      call check(nint(path%figure(titin_path_pacing)) == 5000000, "a rate")
      call path%set_pacing(0_int64)
      call path%set_buffers(30000_int64, 0_int64)
      ! Linux doubles the buffer of a socket, and a session has a smallest one.
      call get_environment_variable("PATHS_SESSION", status=plain)
      call check(nint(path%figure(titin_path_send_buffer)) == merge(32768, 60000, plain == 0), "a buffer")
      call check(path%figure(titin_path_receive_buffer) > 60000, "a buffer that stays as it is")
      call path%flush()
      if (listens) then
         ! What comes goes back, until the other program closes the path.
         call path%irelay(path, request)
         call request%wait()
         call path%receive(message, ierr=ierr)
         call check(ierr == titin_error_port_closed, "a closed path")
      else
         do sent = 1, 20
            call path%send([sent])
            call path%receive(message)
            call check(message%elements() == 1, "an echo")
         end do
         back = sent
         call check(back(1) == 21, "all echoes")
      end if
      call path%close()
      call path%flush(ierr=ierr)
      call check(ierr == titin_error_usage, "a path that is not open")
   end subroutine
end program paths
