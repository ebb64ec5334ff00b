! One instance alone: the script of solo.c.
module filters_of_ours
   use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_ptr
   implicit none

contains

   function find(data, name, filter) result(failed) bind(C)
      type(c_ptr), value :: data, name
      type(c_ptr), intent(out) :: filter
      integer(c_int) :: failed
      filter = data
      failed = merge(0, 1, c_associated(name))
   end function

   function apply(filter, in, out) result(failed) bind(C)
      type(c_ptr), value :: filter, in, out
      integer(c_int) :: failed
      failed = merge(0, 1, c_associated(filter) .and. c_associated(in) .and. c_associated(out))
   end function

   function never() result(yes)
      logical :: yes
      yes = .false.
   end function
end module filters_of_ours

program solo
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_char, c_f_pointer, c_funloc, c_int, c_int64_t, c_loc, &
      c_null_char, c_null_funptr, c_null_ptr, c_ptr, c_size_t
   use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real32, real64
   use filters_of_ours, only: apply, find, never
   use titin
   use titin_c
   use titin_common, only: text
   implicit none

   interface
      type(c_ptr) function getcwd(place, room) bind(C)
         import :: c_char, c_ptr, c_size_t
         character(kind=c_char), intent(out) :: place(*)
         integer(c_size_t), value :: room
      end function
   end interface

   type(titin_instance) :: instance
   character(len=4096) :: manager
   integer :: ierr

   call instance%on_interrupt(never, ierr=ierr)
   call check(ierr == titin_error_usage, "an interruption of what is not open")
   call get_environment_variable("TITIN_MANAGER", manager)
   call instance%open(f_init=["start"], ports="o_i: out, wide[]; s: in", o_f=["end"], name="solo", manager=manager, &
      unchecked="shows what it knows", overlays=titin_overlays_inherited)
   call check(instance%reuse(), "a use")
   call known()
   call scales()
   call units()
   call settings()
   call ports()
   call unconnected()
   call tensors()
   call values()
   call new_values()
   call misused()
   call limits()
   call bare()
   call instance%on_interrupt(never)
   call instance%on_interrupt(never, ierr=ierr)
   call check(ierr == titin_error_usage, "it is given once")
   call check(.not. instance%reuse(), "one use")
   call instance%close()
   call closed()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "solo.f90: "//what
   end subroutine

   logical function near(a, b)
      real(real64), intent(in) :: a, b
      near = abs(a - b) <= 1e-12_real64*abs(b)
   end function

   subroutine known()
      character(kind=c_char) :: here(4096)
      character(len=64) :: release
      real(real64) :: number
      integer :: status
      call get_environment_variable("RELEASE", release)
      call check(titin_release() == trim(release) .and. instance%name() == "solo", "names")
      call check(instance%workdir() == text(getcwd(here, size(here, kind=c_size_t))), "work directory")
      call check(instance%time_unit() == "min" .and. titin_converted(1.5_real64, "h", "min") == 90.0_real64, "unit of time")
      number = titin_converted(1.0_real64, "h", "m", ierr=status)
      call check(number /= number .and. status == titin_error_usage, "hours in metres")
      call instance%log(titin_log_info, "alone, and well")
      call instance%skip_checks("shows that it can")
   end subroutine

   subroutine scales()
      type(titin_value) :: scale, list
      real(real64) :: dt, total, dx, extent
      call instance%scale(scale)
      call scale%read(dt, name="dt")
      call scale%read(total, name="total")
      call check(near(dt, 360.0_real64) .and. near(total, 144000.0_real64), "scales of time")
      call scale%item(list, name="dx")
      call list%read(dx, index=2)
      call check(list%size() == 2 .and. near(dx, 2.5e-6_real64), "spacing")
      call scale%item(list, name="extent")
      call list%read(extent, index=1)
      call check(near(extent, 1200.0_real64), "extent")
      call check(instance%will_stop(2400.0_real64), "the end")
      call check(.not. instance%will_stop(2400.0_real64 - 6.0_real64), "the last step")
   end subroutine

   subroutine units()
      real(real64) :: number
      real(real32) :: short
      integer :: ierr
      call instance%setting("width", number, unit="m")
      call check(near(number, 0.0025_real64), "mm in m")
      call instance%setting("width", number, unit="um")
      call check(near(number, 2500.0_real64), "mm in um")
      call instance%setting("width", number, ierr=ierr)
      call check(ierr == titin_error_setting .and. index(titin_error_text(), "in the unit") > 0, "mm alone")
      call instance%setting("day", number, unit="h")
      call check(near(number, 24.0_real64), "a day in hours")
      call instance%setting("plain", short, unit="km")
      call check(short == 4.0, "a number without a unit")
      call instance%setting("absent", number, unit="km", default=7.0_real64)
      call check(number == 7.0_real64, "default")
      call instance%setting("width", number, unit="s", ierr=ierr)
      call check(ierr == titin_error_setting .and. index(titin_error_text(), "width") > 0, "mm in s")
   end subroutine

   subroutine settings()
      type(titin_value) :: all, value
      type(c_ptr) :: raw
      integer(int32) :: number
      call check(titin_setting_value(instance%raw, "points"//c_null_char, raw) == titin_ok, "a setting as a value")
      call value%own(raw)
      call value%read(number, index=3)
      call check(number == 3, "an entry of a setting")
      call instance%settings(all)
      call check(all%has("solo.width") .and. all%name(1) /= "", "all settings")
      call instance%overlay(all)
      call check(all%size() == 0, "overlay")
   end subroutine

   subroutine ports()
      integer :: i
      call check(instance%port_count() == 5, "ports")
      do i = 1, 5
         call check(any(instance%port_name(i) == ["start", "out  ", "wide ", "in   ", "end  "]), "name of a port")
         call check(.not. instance%is_connected(instance%port_name(i)), "unconnected")
      end do
      call check(instance%operator("start") == titin_f_init .and. instance%operator("end") == titin_o_f, "operators")
      call check(instance%is_vector("wide"), "vector port")
      call check(.not. instance%is_vector("out"), "scalar port")
      call instance%set_slots("wide", 7)
      call check(instance%slots("wide") == 7, "slots")
   end subroutine

   subroutine unconnected()
      type(titin_value) :: value
      type(titin_message) :: message, default
      real(real64) :: number
      integer(int32) :: numbers(2) = [1, 2]
      integer :: ierr
      call value%new(1.5_real64)
      call default%new(value, timestamp=2.0_real64)
      call instance%receive("start", message, ierr=ierr)
      call check(ierr == titin_error_usage, "a message from nobody")
      call instance%receive("start", message, default=default)
      call message%read(number)
      call check(number == 1.5_real64 .and. message%timestamp() == 2.0_real64, "default")
      call check(.not. message%has_next(), "no next timestamp")
      call instance%receive("stort", message, default=default, ierr=ierr)
      call check(ierr == titin_error_usage, "a port that is not there")
      call instance%send("end", number, timestamp=2.0_real64)
      ! gfortran gives some arrays without elements an extent of -1.
      call instance%send("end", pack(numbers, numbers > 2), timestamp=2.0_real64)
      call instance%send("end", pack([.true.], [.false.]), timestamp=2.0_real64)
      call instance%send("end", char(255), timestamp=2.0_real64, ierr=ierr)
      call check(ierr /= 0, "a text that is not UTF-8")
      call instance%send("end", number, timestamp=2.0_real64, slot=-huge(1), ierr=ierr)
      call check(ierr /= 0, "a slot that there cannot be")
      call value%new(pack(numbers, numbers > 2))
      call check(all(value%extents() == [0_int64]) .and. value%elements() == 0, "an array of no elements")
   end subroutine

   ! An array of a message as a tensor of DLPack, which is sent on: the port has no conduit.
   subroutine tensors()
      type(c_ptr) :: value, message, tensor
      real(real64), target :: number
      integer(c_int) :: ierr
      number = 2.5_real64
      value = titin_new_array(titin_f64, 0_c_int, [integer(c_int64_t) ::], order=titin_order_c, data=c_loc(number), borrow=0_c_int)
      message = titin_message_new(value, 0.0_real64, titin_no_next)
      call titin_value_free(value)
      ierr = titin_message_dlpack(message, tensor)
      call check(ierr == 0 .and. c_associated(tensor), "an array as a tensor")
      call titin_message_free(message)
      ierr = titin_send_dlpack(titin_port_find(instance%raw, "end"//c_null_char), titin_no_slot, tensor, 2.0_real64, &
         titin_no_next, c_null_ptr)
      call check(ierr == 0, "a tensor is sent")
      ierr = titin_receive_into_dlpack(c_null_ptr, titin_no_slot, titin_wait, tensor, message)
      call check(ierr == titin_error_usage, "a tensor is received by no port")
      call titin_dlpack_free(tensor)
      call check(c_associated(titin_dlpack_device(2_c_int)) .and. .not. c_associated(titin_dlpack_device(1_c_int)), "devices")
   end subroutine

   subroutine values()
      type(titin_value) :: map, list
      type(titin_message) :: message
      integer(int32) :: table(3, 2)
      integer(int32), pointer :: view(:, :)
      table = reshape([1, 2, 3, 4, 5, 6], [3, 2])
      call list%new_list()
      call list%add(table)
      call map%new_map()
      call map%add(list, name="all")
      call message%new(map, timestamp=0.0_real64, next_timestamp=1.0_real64)
      call message%item(list, name="all")
      call list%view(view, index=1)
      call check(all(view == table) .and. message%next_timestamp() == 1.0_real64, "a table in a list")
      call list%item(map, index=1)
      call check(map%dtype() == titin_i32 .and. map%order() == titin_order_fortran .and. map%elements() == 6, "type")
      call check(all(map%extents() == [3, 2]) .and. map%index_name(1) == "", "shape")
      call map%new_nil()
      call check(map%kind() == titin_kind_nil, "nil")
   end subroutine

   ! Values of every kind, without an instance.
   subroutine new_values()
      type(titin_value) :: value, list
      type(titin_message) :: message
      character(len=80) :: padded
      character(len=:), allocatable :: words
      integer(int8), allocatable :: bytes(:)
      integer(int8), pointer :: deep(:, :, :, :, :, :, :, :)
      integer(int64) :: bits
      logical(c_bool), pointer :: flags(:, :)
      logical :: flag
      integer :: none(3)
      padded = "blanks behind"
      call value%new(padded)
      call value%read(words)
      call check(words == "blanks behind" .and. len(words) == 13, "text is trimmed")
      call value%new(.true.)
      call value%read(flag)
      call check(value%kind() == titin_kind_bool .and. flag, "a logical")
      call value%new_bytes([1_int8, -1_int8, 0_int8])
      call value%read(bytes)
      call check(value%kind() == titin_kind_bytes .and. all(bytes == [1, -1, 0]), "bytes")
      call value%own(titin_new_u64(-2_int64))
      call value%read_unsigned(bits)
      call check(value%kind() == titin_kind_uint .and. bits == -2, "an unsigned number")
      call list%new_list()
      call list%add(padded)
      call list%add_bytes([7_int8])
      call list%add(reshape([.true., .false., .true., .true.], [2, 2]))
      call list%add(reshape([1_int8, 2_int8, 3_int8, 4_int8, 5_int8, 6_int8], [2, 1, 1, 1, 1, 1, 1, 3]))
      call list%read(words, index=1)
      call list%read(bytes, index=2)
      call list%view(flags, index=3)
      call list%view(deep, index=4)
      call check(len(words) == 13 .and. all(bytes == [7]), "text and bytes in a list")
      call check(all(flags .eqv. reshape([.true., .false., .true., .true.], [2, 2])), "logicals in a list")
      call check(all(shape(deep) == [2, 1, 1, 1, 1, 1, 1, 3]) .and. deep(2, 1, 1, 1, 1, 1, 1, 3) == 6, "rank 8")
      ! A titin_message that is built like a value is a value, and can hold a message again.
      call message%new_map()
      call message%add(3, name="three")
      call check(message%kind() == titin_kind_map .and. message%has("three"), "a value in a message")
      call check(.not. message%has_next(ierr=none(1)) .and. message%timestamp(ierr=none(2)) /= 0, "no times")
      call message%settings(value, ierr=none(3))
      call check(value%kind() == 0 .and. all(none == titin_error_usage), "no message")
      call message%new(list, timestamp=4.0_real64)
      call check(message%size() == 4 .and. message%timestamp() == 4.0_real64, "a message again")
   end subroutine

   ! Wrong calls return errors, and leave no pointer to freed memory.
   subroutine misused()
      type(titin_value) :: map, words
      real(real64), pointer :: view(:)
      integer(int32) :: number
      integer :: ierr
      call map%new_map()
      call map%add(5, name="five")
      call map%view(view, name="five", ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. &
         index(titin_error_text(), "expected an array of float64 of rank 1, found the whole number 5") == 1, "what is found here")
      call check(text(titin_value_summary(map%raw)) == "a map of 1", "a summary")
      call map%item(map, name="five", ierr=ierr)
      call check(ierr == titin_error_usage .and. index(titin_error_text(), "another value") > 0, "its own entry")
      call map%read(number, name="five")
      call check(number == 5, "it is left as it was")
      call words%new("no list")
      call words%add(map, ierr=ierr)
      call check(ierr /= titin_ok .and. map%kind() == 0, "what is put into text is gone")
      call check(map%name(1, ierr=ierr) == "" .and. ierr /= titin_ok, "a name of nothing")
   end subroutine

   ! The smallest and the largest numbers that fit, and the numbers next to them.
   subroutine limits()
      integer(int64), parameter :: highest = huge(0_int32), wide(4) = [highest, -highest - 1, highest + 1, -highest - 2], &
         least = -huge(0_int64) - 1
      integer(int32), allocatable :: all_of(:)
      type(titin_value) :: value
      integer(int64) :: unsigned
      integer(int32) :: number
      real(real32) :: short
      integer :: i, ierr
      do i = 1, 4
         call value%new(wide(i))
         call value%read(number, ierr=ierr)
         call check((ierr == titin_ok) .eqv. i <= 2, "what fits 32 bits")
         if (i == 3) call check(titin_error_text() == "2147483648 does not fit integer(int32) (-2147483648 to 2147483647): "// &
            "read integer(int64)", "what does not is told: "//titin_error_text())
         if (i <= 2) call check(number == wide(i), "a number at the limit")
      end do
      call value%new(least)
      call value%read(number, ierr=ierr)
      call check(ierr == titin_error_type_mismatch, "the least of 64 bits")
      call instance%setting("lowest", number)
      call check(number == -highest - 1, "a setting at the limit")
      call instance%setting("least", number, ierr=ierr)
      call check(ierr == titin_error_setting .and. index(titin_error_text(), &
         "setting 'least': -9223372036854775808 does not fit integer(int32) (-2147483648 to 2147483647)") == 1, &
         "a setting beyond it")
      call instance%setting("half", number, ierr=ierr)
      call check(ierr == titin_error_setting .and. index(titin_error_text(), "it is of type float (2.5)") > 0, "half of one")
      call instance%setting("power", number, ierr=ierr)
      call check(ierr == titin_error_setting .and. index(titin_error_text(), "write 10000000000") > 0, "a power of ten")
      call instance%setting("vast", short, ierr=ierr)
      call check(ierr == titin_error_setting .and. index(titin_error_text(), &
         "setting 'vast': 1.000000000000000E+300 does not fit real(real32) (up to 3.4028235e38)") == 1, "a vast setting")
      call value%new(16777217_int64)
      call value%read(short, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), &
         "the value is 16777217, a whole number that real(real32) does not have: its nearest is 16777216") == 1, &
         "a whole number beyond 2**24: "//titin_error_text())
      call value%new(16777217.0_real64)
      call value%read(short)
      call check(short == 16777216.0_real32, "a real number, rounded")
      call value%new(-1e300_real64)
      call value%read(short, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), "-1.000000000000000E+300 does not") == 1, &
         "a vast number")
      call value%new(2.5_real64)
      call value%read(number, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), &
         "expected a whole number, the value is the real number 2.5") == 1, "half a number")
      call value%new(-5)
      call value%read_unsigned(unsigned, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), &
         "expected a whole number of type uint64 (0 to 18446744073709551615), the value is the whole number -5") == 1, "a sign")
      call instance%setting("ends", all_of)
      call check(all(all_of == wide(:2)), "a list at the limits")
      call instance%setting("beyond", all_of, ierr=ierr)
      call check(ierr == titin_error_setting .and. size(all_of) == 0, "a list beyond them")
      call check(index(titin_error_text(), "setting 'beyond': -2147483649 does not fit") == 1, "the one beyond them is told")
   end subroutine

   ! Each call on a closed instance returns an error.
   subroutine closed()
      type(titin_value) :: value
      type(titin_region) :: region
      real(real64) :: number
      integer :: errors(19)
      errors = titin_ok
      call check(instance%name(ierr=errors(1)) == "" .and. instance%workdir(ierr=errors(2)) == "", "names of none")
      call instance%fail("closed", ierr=errors(3))
      call instance%log(titin_log_info, "closed", ierr=errors(4))
      call instance%skip_checks("closed", ierr=errors(5))
      call instance%begin_region("closed", region, ierr=errors(6))
      call instance%end_region(region, ierr=errors(7))
      call instance%settings(value, ierr=errors(8))
      call instance%overlay(value, ierr=errors(9))
      call instance%scale(value, ierr=errors(10))
      call check(.not. instance%is_connected("in", ierr=errors(11)), "connected")
      call check(.not. instance%is_vector("in", ierr=errors(12)), "vector port")
      call check(.not. instance%is_resizable("in", ierr=errors(13)), "resizable")
      call check(instance%slots("in", ierr=errors(14)) == 0, "slots")
      call check(instance%operator("in", ierr=errors(15)) == 0, "operator")
      call check(instance%port_name(1, ierr=errors(16)) == "", "name of a port")
      call check(instance%port_count(ierr=errors(17)) == 0, "ports")
      call check(.not. instance%has_setting("plain", ierr=errors(18)), "a setting")
      call instance%setting("plain", number, default=1.0_real64, ierr=errors(19))
      call check(all(errors == titin_error_usage), "errors: "//numbers(errors))
   end subroutine

   function numbers(list) result(words)
      integer, intent(in) :: list(:)
      character(len=100) :: words
      write (words, "(*(i0, 1x))") list
   end function

   ! Calls that only the bare module has.
   subroutine bare()
      integer(int32), target :: bytes(2) = [7, 8]
      integer(c_int64_t) :: number, length, extents(1)
      type(c_ptr) :: value, message, text, options
      integer(c_int), pointer :: copy(:)
      call check(titin_recover(instance%raw) == titin_ok, "recover")
      call check(c_associated(titin_error_name(titin_error_usage)), "name of an error")
      call check(titin_log(instance%raw, 1000_c_int, c_char_"too loud"//c_null_char) == titin_error_usage, "level")
      call check(titin_error_kind() == titin_error_usage, "number of an error")
      call check(titin_explain(c_null_ptr) == titin_error_usage, "explain")
      call titin_set_error("an error of ours"//c_null_char)
      call check(titin_error_text() == "an error of ours", "an error of one's own")
      call check(titin_dtype_size(titin_dtype_find("float64"//c_null_char)) == 8, "size of a type")
      options = titin_options_new()
      call check(titin_options_port(options, "in"//c_null_char, titin_s) == titin_ok, "a port")
      call check(titin_options_filters(options, c_funloc(find), c_funloc(apply), c_null_funptr, c_null_ptr) == titin_ok, &
         "filters of the language")
      call titin_options_free(options)

      call check(titin_send(titin_port_find(instance%raw, "out"//c_null_char), titin_no_slot, titin_i32, 1_c_int, &
         [2_c_int64_t], c_loc(bytes), 0.0_real64, titin_no_next) == titin_ok, "send")

      value = titin_new_u64(-1_c_int64_t)
      call check(titin_value_u64(value, number) == titin_ok .and. number == -1, "an unsigned number")
      call titin_value_free(value)
      value = titin_new_bytes(c_loc(bytes), 8_c_int64_t, 0_c_int)
      call c_f_pointer(titin_value_bytes(value, length), copy, [2])
      call check(length == 8 .and. copy(2) == 8, "bytes")
      call titin_value_free(value)

      value = titin_new_array(titin_i32, 1_c_int, [2_c_int64_t], order=titin_order_c, data=c_loc(bytes), borrow=1_c_int)
      call check(titin_value_stride(value, 0_c_int) == 4 .and. titin_value_nbytes(value) == 8, "size of a value")
      message = titin_message_new(value, 0.0_real64, titin_no_next)
      call titin_value_free(value)
      call check(titin_message_kind(message) == titin_kind_array .and. titin_message_dtype(message) == titin_i32, "kind")
      call check(titin_message_rank(message) == 1 .and. titin_message_extent(message, 0_c_int) == 2, "shape")
      call check(titin_message_order(message) == titin_order_c, "order")
      call check(titin_message_stride(message, 0_c_int) == 4 .and. titin_message_nbytes(message) == 8, "size")
      call check(titin_message_elements(message) == 2, "elements")
      text = titin_message_index_name(message, 0_c_int)
      call check(.not. c_associated(text), "no name")
      call c_f_pointer(titin_message_raw_data(message), copy, [2])
      call check(copy(1) == 7, "data")
      extents = titin_any
      call c_f_pointer(titin_message_array(message, titin_i32, 1_c_int, extents, titin_order_c), copy, [2])
      call check(copy(2) == 8 .and. extents(1) == 2, "an array as it is wanted")
      call c_f_pointer(titin_value_raw_data(titin_message_value(message)), copy, [2])
      call check(copy(1) == 7, "data of a value")
      text = titin_value_array(titin_message_value(message), titin_f32, 1_c_int, extents, titin_order_c)
      call check(.not. c_associated(text), "an array of another type")
      call titin_message_free(message)
   end subroutine
end program solo
