! Several instances in one process, each in a thread of its own.
module titin_hosting
   use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_funloc, c_funptr, c_int, c_loc, c_null_ptr, c_ptr
   use titin_c
   use titin_common, only: c, finish, index_names
   use titin_instances, only: titin_instance
   implicit none
   private

   public :: titin_guest, titin_entry, titin_host_guests

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
end module titin_hosting
