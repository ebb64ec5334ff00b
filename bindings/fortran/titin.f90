! titin: coupling of simulation codes, from Fortran 2018.
!
!     use titin
!     type(titin_instance) :: instance
!     type(titin_message)  :: msg
!     real(real64), pointer :: u0(:)
!     call instance%open(f_init=["initial_state"], o_f=["final_state"])
!     do while (instance%reuse())
!        call instance%setting("k", k)
!        call instance%receive("initial_state", msg)
!        call msg%view(u0)                       ! a pointer into the message, any kind and rank
!        ...
!        call instance%send("final_state", u, timestamp=t)
!     end do
!     call instance%close()
!
! Every procedure that can fail has an optional ierr: 0, or one of titin_error_... Without it an error fails the run and
! stops the program with the text, which titin_error_text() gives too. Text is trimmed; slots, entries and dimensions are
! counted from one. Which calls wait, and which threads may call, is as in titin.h.
module titin
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_char, c_double, c_f_pointer, c_funloc, c_funptr, c_int, &
      c_int64_t, c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, finish, index_names, slot_number, text
   use titin_data, only: titin_message, titin_value
   implicit none
   private

   public :: titin_instance, titin_message, titin_value, titin_region, titin_release, titin_error_text
   public :: titin_guest, titin_host_guests, titin_entry, titin_interrupted
   public :: titin_ok, titin_error_usage, titin_error_call_order, titin_error_setting, titin_error_type_mismatch, &
      titin_error_timeout, titin_error_port_closed, titin_error_peer_lost, titin_error_deadlock, titin_error_connection, &
      titin_error_no_memory, titin_error_forked, titin_error_internal, titin_error_interrupted, titin_error_filter, &
      titin_error_closed
   public :: titin_f_init, titin_o_i, titin_s, titin_o_f
   public :: titin_bool, titin_i8, titin_i16, titin_i32, titin_i64, titin_u8, titin_u16, titin_u32, titin_u64, titin_f16, &
      titin_f32, titin_f64, titin_c64, titin_c128, titin_order_c, titin_order_fortran
   public :: titin_kind_nil, titin_kind_bool, titin_kind_int, titin_kind_uint, titin_kind_float, titin_kind_text, &
      titin_kind_bytes, titin_kind_array, titin_kind_list, titin_kind_map
   public :: titin_log_debug, titin_log_info, titin_log_warning, titin_log_error, titin_log_critical

   abstract interface
      !> Whether a call that waits is to return, because a signal came that the program wants to deal with.
      function titin_interrupted() result(yes)
         logical :: yes
      end function
   end interface

   ! What on_interrupt was given.
   type :: question
      procedure(titin_interrupted), pointer, nopass :: ask => null()
   end type

   !> One running copy of a program, as it takes part in a run. Let go without close, it fails the run.
   type :: titin_instance
      !> For the module titin_c.
      type(c_ptr) :: raw = c_null_ptr
      logical, private :: borrowed = .false.
      type(question), pointer, private :: question => null()
   contains
      !> open(f_init, o_i, s, o_f, ports, name, manager, unchecked): joins the run. Ports are lists of names, `name[]` for a
      !> vector port, or text as in C; without any they are those of the description.
      procedure :: open => open_instance
      !> Uses an instance that somebody else closes, such as titin_host of the module titin_c.
      procedure :: borrow
      !> Ends the instance's part in the run; waits until the receivers hold or have dropped all that was sent.
      procedure :: close => close_instance
      !> Fails the run, with this instance as the culprit and this text as the reason.
      procedure :: fail
      !> Begins the next use: true if there is one. Settings change here.
      procedure :: reuse
      procedure :: name => instance_name
      !> The directory that was current when the instance was opened.
      procedure :: workdir
      !> Looks at the scales of the description: a map with those known of dt, total, dx and extent, in s and m.
      procedure :: scale => instance_scale
      !> log(level, text): a record for the run's log; levels are titin_log_debug and so on.
      procedure :: log => log_text
      !> Switches the check of the order of calls off from here on.
      procedure :: skip_checks
      !> on_interrupt(interrupted): while a call waits, the function is asked whenever a signal came, and ten times a second;
      !> once it is true the call ends with titin_error_interrupted.
      procedure :: on_interrupt
      !> A stretch of the program's own in the profile: begin_region(name, region), end_region(region).
      procedure :: begin_region, end_region

      !> setting(name, value, default, unit): a number, logical, text, list or table. With a unit "10 ms" in "s" is 0.01.
      procedure, private :: setting_real64, setting_real32, setting_int64, setting_int32, setting_logical, setting_text, &
         setting_real64s, setting_int64s, setting_int32s, setting_table
      generic :: setting => setting_real64, setting_real32, setting_int64, setting_int32, setting_logical, setting_text, &
         setting_real64s, setting_int64s, setting_int32s, setting_table
      procedure :: has_setting
      !> All settings known for this instance, as a map from full names; the overlay in force alone.
      procedure :: settings
      procedure :: overlay

      !> Ports: whether anything is connected, number of slots, and the rest that is known.
      procedure :: is_connected
      procedure :: is_vector
      procedure :: is_resizable
      procedure :: slots
      procedure :: set_slots
      procedure :: operator => port_operator
      procedure :: port_count
      procedure :: port_name

      !> send(port, data, timestamp, next_timestamp, slot, settings, names): any kind and rank, text, a value. Returns when
      !> the data may be changed. `settings` is the overlay to go with it, `names` are index names.
      procedure, private :: send_int8, send_int16, send_int32, send_int64, send_real32, send_real64, send_complex32, &
         send_complex64, send_bool, send_logical, send_text, send_value
      generic :: send => send_int8, send_int16, send_int32, send_int64, send_real32, send_real64, send_complex32, &
         send_complex64, send_bool, send_logical, send_text, send_value
      !> A message without data.
      procedure :: send_nil

      !> receive(port, message, slot, timeout, default), or receive(port, data, slot, timeout, timestamp, message) into an
      !> array of one's own, whose kind and shape must be those of the message. `timeout` in seconds; without it, for ever.
      !> `default` is what a port gives that nothing is connected to; arrays of one's own can hold theirs beforehand, and
      !> be received if is_connected(port).
      procedure, private :: receive_message, receive_int8, receive_int16, receive_int32, receive_int64, receive_real32, &
         receive_real64, receive_complex32, receive_complex64, receive_bool, receive_logical
      generic :: receive => receive_message, receive_int8, receive_int16, receive_int32, receive_int64, receive_real32, &
         receive_real64, receive_complex32, receive_complex64, receive_bool, receive_logical
      !> try_receive(port, message, found, slot): does not wait.
      procedure :: try_receive
      !> receive_any(ports, which, message, slot, timeout): the next message of any of these ports; which is the place in
      !> ports, slot 0 for a port without slots.
      procedure :: receive_any
      final :: finalize
   end type

   !> A region that was begun.
   type :: titin_region
      type(c_ptr), private :: raw = c_null_ptr
   end type

   abstract interface
      !> What an instance does that shares a process with others.
      subroutine titin_entry(instance)
         import :: titin_instance
         type(titin_instance), intent(inout) :: instance
      end subroutine
   end interface

   !> One of several instances in a process: its name, its ports as text ("o_i: out; s: in", or "" for those of the
   !> description), and what it does.
   type :: titin_guest
      character(len=:), allocatable :: name, ports
      procedure(titin_entry), pointer, nopass :: entry => null()
   end type

contains

   !> Release of the library: "0.1.0".
   function titin_release() result(release)
      character(len=:), allocatable :: release
      release = text(titin_version())
   end function

   !> The text of the last error of a call with ierr.
   function titin_error_text() result(words)
      character(len=:), allocatable :: words
      words = text(titin_error())
   end function

   ! ---- Opening and closing ----

   subroutine open_instance(self, f_init, o_i, s, o_f, ports, name, manager, unchecked, ierr)
      class(titin_instance), intent(inout) :: self
      character(len=*), intent(in), optional :: f_init(:), o_i(:), s(:), o_f(:)
      character(len=*), intent(in), optional :: ports, name, manager, unchecked
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: declared
      type(c_ptr) :: options
      integer(c_int) :: status

      if (c_associated(self%raw)) then
         call finish(titin_error_usage, ierr, self%raw, "open: this instance is open already")
         return
      end if
      declared = ""
      if (present(ports)) declared = trim(ports)//"; "
      call declare("f_init", f_init)
      call declare("o_i", o_i)
      call declare("s", s)
      call declare("o_f", o_f)
      options = titin_options_new()
      status = titin_options_language(options, c("Fortran"))
      if (status == titin_ok) status = titin_options_exceptions(options)
      if (status == titin_ok .and. present(name)) status = titin_options_instance(options, c(name))
      if (status == titin_ok .and. present(manager)) status = titin_options_manager(options, c(manager))
      if (status == titin_ok .and. present(unchecked)) status = titin_options_unchecked(options, c(unchecked))
      if (status == titin_ok) status = titin_open(c(declared), options, self%raw)
      call titin_options_free(options)
      self%borrowed = .false.
      call finish(status, ierr)

   contains

      subroutine declare(operator, names)
         character(len=*), intent(in) :: operator
         character(len=*), intent(in), optional :: names(:)
         integer :: i
         if (.not. present(names)) return
         declared = declared//operator//": "
         do i = 1, size(names)
            declared = declared//trim(names(i))//", "
         end do
         declared = declared//"; "
      end subroutine
   end subroutine

   subroutine borrow(self, raw)
      class(titin_instance), intent(inout) :: self
      type(c_ptr), intent(in) :: raw
      self%raw = raw
      self%borrowed = .true.
   end subroutine

   subroutine close_instance(self, ierr)
      class(titin_instance), intent(inout) :: self
      integer, intent(out), optional :: ierr
      integer(c_int) :: status
      status = titin_ok
      if (.not. self%borrowed) status = titin_close(self%raw)
      if (status /= titin_error_interrupted) then
         self%raw = c_null_ptr
         ! Whoever closes a borrowed instance may still ask.
         if (associated(self%question) .and. .not. self%borrowed) deallocate (self%question)
      end if
      call finish(status, ierr)
   end subroutine

   subroutine finalize(self)
      type(titin_instance), intent(inout) :: self
      integer(c_int) :: ignored
      if (.not. c_associated(self%raw) .or. self%borrowed) return
      ignored = titin_fail(self%raw, c("the instance went out of scope without close()"))
      ignored = titin_close(self%raw)
      self%raw = c_null_ptr
      if (associated(self%question)) deallocate (self%question)
   end subroutine

   subroutine fail(self, reason)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: reason
      call finish(titin_fail(self%raw, c(reason)))
   end subroutine

   function reuse(self, ierr) result(again)
      class(titin_instance), intent(in) :: self
      integer, intent(out), optional :: ierr
      logical :: again
      integer(c_int) :: flag
      call finish(titin_reuse(self%raw, flag), ierr, self%raw)
      again = flag /= 0
   end function

   ! ---- What is known, and what is said ----

   function instance_name(self) result(name)
      class(titin_instance), intent(in) :: self
      character(len=:), allocatable :: name
      name = text(titin_instance_name(self%raw))
   end function

   function workdir(self)
      class(titin_instance), intent(in) :: self
      character(len=:), allocatable :: workdir
      workdir = text(titin_workdir(self%raw))
   end function

   subroutine instance_scale(self, scale)
      class(titin_instance), intent(in) :: self
      type(titin_value), intent(inout) :: scale
      call scale%borrow(titin_scale(self%raw))
   end subroutine

   subroutine log_text(self, level, text)
      class(titin_instance), intent(in) :: self
      integer(c_int), intent(in) :: level
      character(len=*), intent(in) :: text
      call finish(titin_log(self%raw, level, c(text)), instance=self%raw)
   end subroutine

   subroutine skip_checks(self, reason)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: reason
      call finish(titin_skip_checks(self%raw, c(reason)), instance=self%raw)
   end subroutine

   subroutine on_interrupt(self, interrupted, ierr)
      class(titin_instance), intent(inout) :: self
      procedure(titin_interrupted) :: interrupted
      integer, intent(out), optional :: ierr
      if (associated(self%question)) then
         self%question%ask => interrupted
         call finish(titin_ok, ierr)
         return
      end if
      allocate (self%question)
      self%question%ask => interrupted
      call finish(titin_on_interrupt(self%raw, c_funloc(asked), c_loc(self%question)), ierr, self%raw)
   end subroutine

   recursive function asked(data) result(answer) bind(C)
      type(c_ptr), value :: data
      integer(c_int) :: answer
      type(question), pointer :: given
      call c_f_pointer(data, given)
      answer = merge(1_c_int, 0_c_int, given%ask())
   end function

   subroutine begin_region(self, name, region)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      type(titin_region), intent(inout) :: region
      region%raw = titin_region_begin(self%raw, c(name))
   end subroutine

   subroutine end_region(self, region)
      class(titin_instance), intent(in) :: self
      type(titin_region), intent(inout) :: region
      integer(c_int) :: status
      status = titin_region_end(self%raw, region%raw)
      region%raw = c_null_ptr
      call finish(status, instance=self%raw)
   end subroutine

   ! ---- Settings ----

   function has_setting(self, name)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      logical :: has_setting
      has_setting = titin_setting_type(self%raw, c(name)) /= titin_type_none
   end function

   subroutine settings(self, all)
      class(titin_instance), intent(in) :: self
      type(titin_value), intent(inout) :: all
      type(c_ptr) :: raw
      call finish(titin_settings(self%raw, raw), instance=self%raw)
      call all%own(raw)
   end subroutine

   subroutine overlay(self, all)
      class(titin_instance), intent(in) :: self
      type(titin_value), intent(inout) :: all
      type(c_ptr) :: raw
      call finish(titin_overlay(self%raw, raw), instance=self%raw)
      call all%own(raw)
   end subroutine

   subroutine setting_real64(self, name, value, default, unit, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real64), intent(out) :: value
      real(real64), intent(in), optional :: default
      character(len=*), intent(in), optional :: unit
      integer, intent(out), optional :: ierr
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      if (present(unit)) then
         call finish(titin_setting_quantity(self%raw, c(name), c(unit), value), ierr, self%raw)
      else
         call finish(titin_setting_f64(self%raw, c(name), value), ierr, self%raw)
      end if
   end subroutine

   subroutine setting_real32(self, name, value, default, unit, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real32), intent(out) :: value
      real(real32), intent(in), optional :: default
      character(len=*), intent(in), optional :: unit
      integer, intent(out), optional :: ierr
      real(real64) :: wide
      if (present(default)) then
         call self%setting(name, wide, real(default, real64), unit, ierr)
      else
         call self%setting(name, wide, unit=unit, ierr=ierr)
      end if
      value = real(wide, real32)
   end subroutine

   subroutine setting_int64(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int64), intent(out) :: value
      integer(int64), intent(in), optional :: default
      integer, intent(out), optional :: ierr
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      call finish(titin_setting_i64(self%raw, c(name), value), ierr, self%raw)
   end subroutine

   subroutine setting_int32(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int32), intent(out) :: value
      integer(int32), intent(in), optional :: default
      integer, intent(out), optional :: ierr
      integer(int64) :: wide
      if (present(default)) then
         call self%setting(name, wide, int(default, int64), ierr)
      else
         call self%setting(name, wide, ierr=ierr)
      end if
      value = 0
      if (abs(wide) <= huge(value)) then
         value = int(wide, int32)
      else
         call finish(titin_error_setting, ierr, self%raw, "setting '"//trim(name)// &
            "' does not fit integer(int32); read it into integer(int64)")
      end if
   end subroutine

   subroutine setting_logical(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      logical, intent(out) :: value
      logical, intent(in), optional :: default
      integer, intent(out), optional :: ierr
      integer(c_int) :: flag
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      call finish(titin_setting_bool(self%raw, c(name), flag), ierr, self%raw)
      value = flag /= 0
   end subroutine

   subroutine setting_text(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      character(len=:), allocatable, intent(out) :: value
      character(len=*), intent(in), optional :: default
      integer, intent(out), optional :: ierr
      type(c_ptr) :: chars
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      call finish(titin_setting_text(self%raw, c(name), chars), ierr, self%raw)
      value = text(chars)
   end subroutine

   subroutine setting_real64s(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real64), allocatable, intent(out) :: value(:)
      real(real64), intent(in), optional :: default(:)
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: count, room
      integer(c_int) :: status
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      status = titin_setting_f64s(self%raw, c(name), capacity=0_c_int64_t, count=room)
      allocate (value(room))
      if (status == titin_ok) status = titin_setting_f64s(self%raw, c(name), value, room, count)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine setting_int64s(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int64), allocatable, intent(out) :: value(:)
      integer(int64), intent(in), optional :: default(:)
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: count, room
      integer(c_int) :: status
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      status = titin_setting_i64s(self%raw, c(name), capacity=0_c_int64_t, count=room)
      allocate (value(room))
      if (status == titin_ok) status = titin_setting_i64s(self%raw, c(name), value, room, count)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine setting_int32s(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int32), allocatable, intent(out) :: value(:)
      integer(int32), intent(in), optional :: default(:)
      integer, intent(out), optional :: ierr
      integer(int64), allocatable :: wide(:)
      if (present(default)) then
         call self%setting(name, wide, int(default, int64), ierr)
      else
         call self%setting(name, wide, ierr=ierr)
      end if
      if (any(abs(wide) > huge(value))) then
         allocate (value(0))
         call finish(titin_error_setting, ierr, self%raw, "setting '"//trim(name)// &
            "' does not fit integer(int32); read it into integer(int64)")
      else
         value = int(wide, int32)
      end if
   end subroutine

   subroutine setting_table(self, name, value, default, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real64), allocatable, intent(out) :: value(:, :)
      real(real64), intent(in), optional :: default(:, :)
      integer, intent(out), optional :: ierr
      real(real64), allocatable :: by_row(:, :)
      integer(c_int64_t) :: rows, columns
      integer(c_int) :: status
      if (present(default)) then
         if (.not. self%has_setting(name)) then
            value = default
            call finish(titin_ok, ierr)
            return
         end if
      end if
      status = titin_setting_table(self%raw, c(name), capacity=0_c_int64_t, rows=rows, columns=columns)
      allocate (by_row(columns, rows))
      if (status == titin_ok) then
         status = titin_setting_table(self%raw, c(name), by_row, size(by_row, kind=c_int64_t), rows, columns)
      end if
      value = transpose(by_row)
      call finish(status, ierr, self%raw)
   end subroutine

   ! ---- Ports ----

   ! The handle of a port; an error if there is none.
   function find(self, port, ierr) result(raw)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = titin_port_find(self%raw, c(port))
      call finish(merge(titin_ok, titin_error_kind(), c_associated(raw)), ierr, self%raw)
   end function

   function is_connected(self, port)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      logical :: is_connected
      is_connected = titin_port_is_connected(find(self, port)) /= 0
   end function

   function is_vector(self, port)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      logical :: is_vector
      is_vector = titin_port_is_vector(find(self, port)) /= 0
   end function

   function is_resizable(self, port)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      logical :: is_resizable
      is_resizable = titin_port_is_resizable(find(self, port)) /= 0
   end function

   function slots(self, port)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      integer :: slots
      slots = int(titin_port_slots(find(self, port)))
   end function

   subroutine set_slots(self, port, slots, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(in) :: slots
      integer, intent(out), optional :: ierr
      call finish(titin_port_set_slots(titin_port_find(self%raw, c(port)), int(slots, c_int)), ierr, self%raw)
   end subroutine

   function port_operator(self, port) result(operator)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      integer :: operator
      operator = int(titin_port_operator(find(self, port)))
   end function

   function port_count(self)
      class(titin_instance), intent(in) :: self
      integer :: port_count
      port_count = int(titin_port_count(self%raw))
   end function

   function port_name(self, number) result(name)
      class(titin_instance), intent(in) :: self
      integer, intent(in) :: number
      character(len=:), allocatable :: name
      name = text(titin_port_name(titin_port_at(self%raw, int(number - 1, c_int))))
   end function

   ! ---- Sending ----

   ! The settings overlay to go with a message, for C.
   function given(settings) result(raw)
      type(titin_value), intent(in), optional :: settings
      type(c_ptr) :: raw
      raw = c_null_ptr
      if (present(settings)) raw = settings%raw
   end function

   function following(next_timestamp) result(next)
      real(real64), intent(in), optional :: next_timestamp
      real(c_double) :: next
      next = titin_no_next
      if (present(next_timestamp)) next = next_timestamp
   end function

   subroutine send_array(self, port, dtype, rank, extents, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
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
      integer, intent(out), optional :: ierr
      character(kind=c_char), allocatable, target :: chars(:)
      type(c_ptr) :: handle
      integer(c_int) :: status

      handle = titin_port_find(self%raw, c(port))
      if (present(names)) then
         if (size(names) /= rank) then
            call finish(titin_error_usage, ierr, self%raw, "send on '"//trim(port)// &
               "': an array needs one index name for each of its dimensions")
            return
         end if
         status = titin_send_array(handle, slot_number(slot), dtype, int(rank, c_int), extents, &
            order=titin_order_fortran, names=index_names(names, chars), data=data, timestamp=timestamp, &
            next_timestamp=following(next_timestamp), settings=given(settings))
      else
         status = titin_send_array(handle, slot_number(slot), dtype, int(rank, c_int), extents, &
            order=titin_order_fortran, data=data, timestamp=timestamp, next_timestamp=following(next_timestamp), &
            settings=given(settings))
      end if
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine send_int8(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      integer(int8), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_send.inc"
   end subroutine

   subroutine send_int16(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      integer(int16), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_send.inc"
   end subroutine

   subroutine send_int32(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      integer(int32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_send.inc"
   end subroutine

   subroutine send_int64(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      integer(int64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_send.inc"
   end subroutine

   subroutine send_real32(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      real(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_send.inc"
   end subroutine

   subroutine send_real64(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      real(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_send.inc"
   end subroutine

   subroutine send_complex32(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      complex(real32), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_send.inc"
   end subroutine

   subroutine send_complex64(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      complex(real64), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_send.inc"
   end subroutine

   subroutine send_bool(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
      logical(c_bool), intent(in), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_send.inc"
   end subroutine

   ! Logicals of the usual kind are no bytes: they are sent as logical(c_bool).
   subroutine send_logical(self, port, data, timestamp, next_timestamp, slot, settings, names, ierr)
      class(titin_instance), intent(in) :: self
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

      extents(:rank(data)) = shape(data, c_int64_t)
      call c_f_pointer(c_loc(data), flat, [size(data, kind=c_int64_t)])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      call send_array(self, port, titin_bool, rank(data), extents, c_loc(bytes), timestamp, next_timestamp, slot, &
         settings, names, ierr)
   end subroutine

   subroutine send_text(self, port, data, timestamp, next_timestamp, slot, settings, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port, data
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      integer, intent(out), optional :: ierr
      type(titin_value) :: value
      call value%own(titin_new_text(data, len(data, c_int64_t)))
      call self%send(port, value, timestamp, next_timestamp, slot, settings, ierr)
   end subroutine

   subroutine send_value(self, port, data, timestamp, next_timestamp, slot, settings, ierr)
      class(titin_instance), intent(in) :: self
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
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      integer, intent(out), optional :: ierr
      call finish(titin_send_nil(titin_port_find(self%raw, c(port)), slot_number(slot), timestamp, &
         following(next_timestamp), given(settings)), ierr, self%raw)
   end subroutine

   ! ---- Receiving ----

   function patience(timeout) result(seconds)
      real(real64), intent(in), optional :: timeout
      real(c_double) :: seconds
      seconds = titin_wait
      if (present(timeout)) seconds = timeout
   end function

   subroutine receive_message(self, port, message, slot, timeout, default, ierr)
      class(titin_instance), intent(in) :: self
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
      class(titin_instance), intent(in) :: self
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
      class(titin_instance), intent(in) :: self
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

   subroutine receive_array(self, port, dtype, rank, extents, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: port
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_ptr), intent(in) :: data
      integer, intent(in), optional :: slot
      real(real64), intent(in), optional :: timeout
      real(real64), intent(out), optional :: timestamp
      type(titin_message), intent(inout), optional :: message
      integer, intent(out), optional :: ierr
      type(titin_message) :: received
      type(c_ptr) :: raw
      integer(c_int) :: status
      status = titin_receive_into(titin_port_find(self%raw, c(port)), slot_number(slot), patience(timeout), dtype, &
         int(rank, c_int), extents, order=titin_order_fortran, data=data, message=raw)
      call received%own(raw)
      if (present(timestamp)) timestamp = received%timestamp()
      if (present(message)) message = received
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine receive_int8(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      integer(int8), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_receive.inc"
   end subroutine

   subroutine receive_int16(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      integer(int16), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_receive.inc"
   end subroutine

   subroutine receive_int32(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      integer(int32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_receive.inc"
   end subroutine

   subroutine receive_int64(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      integer(int64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_receive.inc"
   end subroutine

   subroutine receive_real32(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      real(real32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_receive.inc"
   end subroutine

   subroutine receive_real64(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      real(real64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_receive.inc"
   end subroutine

   subroutine receive_complex32(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      complex(real32), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_receive.inc"
   end subroutine

   subroutine receive_complex64(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      complex(real64), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_receive.inc"
   end subroutine

   subroutine receive_bool(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
      logical(c_bool), intent(inout), contiguous, target :: data(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_receive.inc"
   end subroutine

   ! As for sending, by way of logical(c_bool).
   subroutine receive_logical(self, port, data, slot, timeout, timestamp, message, ierr)
      class(titin_instance), intent(in) :: self
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

      extents(:rank(data)) = shape(data, c_int64_t)
      call c_f_pointer(c_loc(data), flat, [size(data, kind=c_int64_t)])
      allocate (bytes(size(flat, kind=c_int64_t)))
      bytes(:) = logical(flat, c_bool)
      call receive_array(self, port, titin_bool, rank(data), extents, c_loc(bytes), slot, timeout, timestamp, message, &
         ierr)
      flat = logical(bytes)
   end subroutine

   ! ---- Several instances in one process ----

   !> Opens each instance in a thread of its own, calls its entry, closes it, and waits for all. The first one runs in the
   !> calling thread. Compile programs that do this with -frecursive, so that threads do not share local arrays.
   subroutine titin_host_guests(guests, ierr)
      type(titin_guest), intent(in), target :: guests(:)
      integer, intent(out), optional :: ierr
      character(kind=c_char), allocatable, target :: names(:), ports(:)
      character(len=longest(guests)) :: texts(size(guests), 2)
      type(c_ptr) :: name_list(size(guests)), port_list(size(guests)), data(size(guests)), options
      type(c_funptr) :: entries(size(guests))
      integer(c_int) :: status
      integer :: i

      do i = 1, size(guests)
         texts(i, :) = [character(len=longest(guests)) :: guests(i)%name, guests(i)%ports]
      end do
      name_list = index_names(texts(:, 1), names)
      port_list = index_names(texts(:, 2), ports)
      do i = 1, size(guests)
         if (len_trim(guests(i)%ports) == 0) port_list(i) = c_null_ptr
         data(i) = c_loc(guests(i))
         entries(i) = c_funloc(enter)
      end do
      options = titin_options_new()
      status = titin_options_language(options, c("Fortran"))
      if (status == titin_ok) status = titin_options_exceptions(options)
      if (status == titin_ok) then
         status = titin_host(int(size(guests), c_int), name_list, port_list, entries, data, options)
      end if
      call titin_options_free(options)
      call finish(status, ierr)
   end subroutine

   ! Length of the longest text, since those of an array are all of one length.
   pure function longest(guests) result(length)
      type(titin_guest), intent(in) :: guests(:)
      integer :: length, i
      length = 1
      do i = 1, size(guests)
         length = max(length, len(guests(i)%name), len(guests(i)%ports))
      end do
   end function

   recursive function enter(raw, data) result(status) bind(C)
      type(c_ptr), value :: raw, data
      integer(c_int) :: status
      type(titin_guest), pointer :: guest
      type(titin_instance) :: instance
      call c_f_pointer(data, guest)
      call instance%borrow(raw)
      call guest%entry(instance)
      status = titin_ok
   end function
end module titin
