! Several instances in one process, each in a thread of its own, or many light instances on a few threads.
module titin_hosting
   use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_funloc, c_funptr, c_int, c_loc, c_null_ptr, c_ptr
   use titin_c
   use titin_common, only: c, finish, index_names
   use titin_instances, only: titin_instance
   implicit none
   private

   public :: titin_guest, titin_entry, titin_host_guests, titin_step, titin_run_steps

   abstract interface
      !> The function of an instance that shares a process with others.
      subroutine titin_entry(instance)
         import :: titin_instance
         type(titin_instance), intent(inout) :: instance
      end subroutine

      !> The step of a light instance, called when the instance can go on. `number` is the index of the instance's name.
      !> Where a call of the step gives titin_pending, the step returns ierr = titin_pending, and makes that call first the
      !> next time, with the same data. The step returns titin_ok when all is done, and another error to fail the run.
      subroutine titin_step(instance, number, ierr)
         import :: titin_instance
         type(titin_instance), intent(inout) :: instance
         integer, intent(in) :: number
         integer, intent(out) :: ierr
      end subroutine
   end interface

   !> An instance of a process with several instances: its name, its ports as text ("o_i: out; s: in", or "" for the ports
   !> of the description), and its function.
   type :: titin_guest
      character(len=:), allocatable :: name, ports
      procedure(titin_entry), pointer, nopass :: entry => null()
   end type

   ! The step and the number of an instance.
   type :: share
      procedure(titin_step), pointer, nopass :: step => null()
      integer :: number = 0
   end type

contains

   !> Runs many light instances on a few threads, the calling thread among them. step is called for an instance when it can
   !> go on, always on the same thread. The program keeps how far each instance has come, by its number. `ports` ("o_i: out;
   !> s: in", or "" for the ports of the description) are the ports of every instance. Compile with -frecursive for several
   !> threads.
   subroutine titin_run_steps(names, step, threads, ports, ierr)
      character(len=*), intent(in) :: names(:)
      procedure(titin_step) :: step
      integer, intent(in) :: threads
      character(len=*), intent(in), optional :: ports
      integer, intent(out), optional :: ierr
      character(kind=c_char), allocatable, target :: chars(:), port_chars(:)
      type(share), allocatable, target :: shares(:)
      type(c_ptr), allocatable :: name_list(:), port_list(:), data(:)
      type(c_funptr), allocatable :: steps(:)
      type(c_ptr) :: options, port_text(1)
      integer(c_int) :: status
      integer :: i

      allocate (shares(size(names)), data(size(names)), steps(size(names)), port_list(size(names)))
      name_list = index_names(names, chars)
      port_list = c_null_ptr
      if (present(ports)) then
         port_text = index_names([ports], port_chars)
         if (len_trim(ports) > 0) port_list = port_text(1)
      end if
      do i = 1, size(names)
         shares(i)%step => step
         shares(i)%number = i
         data(i) = c_loc(shares(i))
         steps(i) = c_funloc(go_on)
      end do
      options = titin_options_new()
      status = titin_options_language(options, c("Fortran"))
      if (status == titin_ok) status = titin_options_exceptions(options)
      if (status == titin_ok) then
         status = titin_host_steps(int(size(names), c_int), name_list, port_list, steps, data, int(threads, c_int), &
            options)
      end if
      call titin_options_free(options)
      call finish(status, ierr)
   end subroutine

   recursive function go_on(raw, data) result(status) bind(C)
      type(c_ptr), value :: raw, data
      integer(c_int) :: status
      type(share), pointer :: mine
      type(titin_instance) :: instance
      integer :: ierr
      call c_f_pointer(data, mine)
      call instance%borrow(raw)
      call mine%step(instance, mine%number, ierr)
      status = int(ierr, c_int)
   end function

   !> Opens each instance in a thread of its own, calls its entry, closes the instance, and waits for all. The first instance
   !> runs in the calling thread. Compile such programs with -frecursive, so that threads do not share local arrays.
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

   ! Length of the longest text: the elements of an array of text have one length.
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
end module titin_hosting
