! Instances: opening and closing, messages to the run, and interruptions.
module titin_instances
   use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_funloc, c_int, c_loc, c_null_ptr, c_ptr
   use titin_c
   use titin_common, only: began, c, ended, finish
   use titin_fields, only: fields_layer
   implicit none
   private

   public :: titin_instance, titin_region, titin_interrupted

   abstract interface
      !> Whether a waiting call is to return, because the program wants to deal with a signal.
      function titin_interrupted() result(yes)
         logical :: yes
      end function
   end interface

   ! The function that on_interrupt was given.
   type :: question
      procedure(titin_interrupted), pointer, nopass :: ask => null()
   end type

   !> One running copy of a program, as part of a run. An instance that is not closed fails the run at the end of its scope.
   !> Properties, ports, sending and receiving are in the layers below.
   type, extends(fields_layer) :: titin_instance
      logical, private :: borrowed = .false.
      type(question), pointer, private :: question => null()
   contains
      !> open(f_init, o_i, s, o_f, ports, name, manager, unchecked, interrupted, ranks, ierr, overlays, checks, receive): joins. Ports
      !> are lists of names, `name[]` for a vector port, or text as in C; without these arguments the ports are those of the
      !> description. `overlays` is titin_overlays_inherited or titin_overlays_explicit, `checks` titin_checks_error or
      !> titin_checks_warn, `receive` titin_receive_all_ranks or titin_receive_root_only.
      !> `interrupted` is as for on_interrupt, and is also called while open waits. `ranks` is the communicator of a
      !> parallel program, whose ranks open the instance together; for MPI the modules titin_mpi and titin_mpi_f08 have
      !> titin_mpi_ranks(comm).
      procedure :: open => open_instance
      !> Uses an instance that other code closes, such as titin_host of the module titin_c.
      procedure :: borrow
      !> Ends the instance's part in the run; waits until the receivers hold or have dropped every message sent.
      procedure :: close => close_instance
      !> Fails the run, with this instance as the culprit and this text as the reason.
      procedure :: fail
      !> Begins the next use: true if there is one. Settings change here.
      procedure :: reuse
      !> log(level, text): sends a record to the run's log; levels are titin_log_debug and so on.
      procedure :: log => log_text
      !> Switches the check of the order of calls off from here on.
      procedure :: skip_checks
      !> on_interrupt(interrupted): sets a function that is called after each signal while a call waits, and ten times a
      !> second. Once the function is true, the waiting call ends with titin_error_interrupted. The function can be set
      !> once.
      procedure :: on_interrupt
      !> A region of the program in the profile: begin_region(name, region), end_region(region).
      procedure :: begin_region, end_region
      procedure, private :: copy
      generic :: assignment(=) => copy
      final :: finalize
   end type

   !> A region that has begun.
   type :: titin_region
      type(c_ptr), private :: raw = c_null_ptr
   end type

contains

   subroutine open_instance(self, f_init, o_i, s, o_f, ports, name, manager, unchecked, interrupted, ranks, ierr, &
                            overlays, checks, receive)
      class(titin_instance), intent(inout) :: self
      character(len=*), intent(in), optional :: f_init(:), o_i(:), s(:), o_f(:)
      character(len=*), intent(in), optional :: ports, name, manager, unchecked
      procedure(titin_interrupted), optional :: interrupted
      type(titin_communicator), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr
      integer(c_int), intent(in), optional :: overlays, checks, receive
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
      if (status == titin_ok .and. present(checks)) status = titin_options_checks(options, checks)
      if (status == titin_ok .and. present(receive)) status = titin_options_receive(options, receive)
      if (status == titin_ok .and. present(overlays)) status = titin_options_overlays(options, overlays)
      if (status == titin_ok .and. present(interrupted)) then
         allocate (self%question)
         self%question%ask => interrupted
         status = titin_options_interrupt(options, c_funloc(asked), c_loc(self%question))
      end if
      if (status == titin_ok .and. present(ranks)) status = titin_options_communicator(options, ranks)
      if (status == titin_ok) status = titin_open(c(declared), options, self%raw)
      call titin_options_free(options)
      self%borrowed = .false.
      if (status == titin_ok) call began(self%raw, borrowed=.false.)
      if (status /= titin_ok .and. associated(self%question)) deallocate (self%question)
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
      call began(raw, borrowed=.true.)
   end subroutine

   subroutine close_instance(self, ierr)
      class(titin_instance), intent(inout) :: self
      integer, intent(out), optional :: ierr
      integer(c_int) :: status
      status = titin_ok
      if (.not. self%borrowed) status = titin_close(self%raw)
      if (status /= titin_error_interrupted) then
         if (.not. self%borrowed) call ended(self%raw)
         self%raw = c_null_ptr
         ! The function may still be called while other code closes a borrowed instance.
         if (associated(self%question) .and. .not. self%borrowed) deallocate (self%question)
      end if
      call finish(status, ierr)
   end subroutine

   subroutine finalize(self)
      type(titin_instance), intent(inout) :: self
      integer(c_int) :: ignored
      if (.not. c_associated(self%raw) .or. self%borrowed) return
      call ended(self%raw)
      ignored = titin_fail(self%raw, c("the instance went out of scope without close()"))
      ignored = titin_close(self%raw)
      self%raw = c_null_ptr
      if (associated(self%question)) deallocate (self%question)
   end subroutine

   ! Two objects that close the same instance would use freed memory.
   subroutine copy(self, other)
      class(titin_instance), intent(inout) :: self
      class(titin_instance), intent(in) :: other
      associate (stays_as_it_is => self)
      end associate
      call finish(titin_error_usage, instance=other%raw, &
         found="an instance cannot be copied; pass it on as an argument, or have a pointer to it")
   end subroutine

   subroutine fail(self, reason, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: reason
      integer, intent(out), optional :: ierr
      call finish(titin_fail(self%raw, c(reason)), ierr)
   end subroutine

   function reuse(self, ierr) result(again)
      class(titin_instance), intent(in) :: self
      integer, intent(out), optional :: ierr
      logical :: again
      integer(c_int) :: flag
      call finish(titin_reuse(self%raw, flag), ierr, self%raw)
      again = flag /= 0
   end function

   subroutine log_text(self, level, text, ierr)
      class(titin_instance), intent(in) :: self
      integer(c_int), intent(in) :: level
      character(len=*), intent(in) :: text
      integer, intent(out), optional :: ierr
      call finish(titin_log(self%raw, level, c(text)), ierr, self%raw)
   end subroutine

   subroutine skip_checks(self, reason, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: reason
      integer, intent(out), optional :: ierr
      call finish(titin_skip_checks(self%raw, c(reason)), ierr, self%raw)
   end subroutine

   subroutine on_interrupt(self, interrupted, ierr)
      class(titin_instance), intent(inout) :: self
      procedure(titin_interrupted) :: interrupted
      integer, intent(out), optional :: ierr
      type(question), pointer :: fresh
      integer(c_int) :: status
      allocate (fresh)
      fresh%ask => interrupted
      status = titin_on_interrupt(self%raw, c_funloc(asked), c_loc(fresh))
      if (status == titin_ok) then
         self%question => fresh
      else
         deallocate (fresh)
      end if
      call finish(status, ierr, self%raw)
   end subroutine

   recursive function asked(data) result(answer) bind(C)
      type(c_ptr), value :: data
      integer(c_int) :: answer
      type(question), pointer :: given
      call c_f_pointer(data, given)
      answer = merge(1_c_int, 0_c_int, given%ask())
   end function

   subroutine begin_region(self, name, region, ierr)
      class(titin_instance), intent(in) :: self
      character(len=*), intent(in) :: name
      type(titin_region), intent(inout) :: region
      integer, intent(out), optional :: ierr
      region%raw = titin_region_begin(self%raw, c(name))
      call finish(merge(titin_ok, titin_error_kind(), c_associated(region%raw)), ierr, self%raw)
   end subroutine

   subroutine end_region(self, region, ierr)
      class(titin_instance), intent(in) :: self
      type(titin_region), intent(inout) :: region
      integer, intent(out), optional :: ierr
      integer(c_int) :: status
      status = titin_region_end(region%raw)
      region%raw = c_null_ptr
      call finish(status, ierr, self%raw)
   end subroutine
end module titin_instances
