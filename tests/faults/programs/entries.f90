! The entry functions of hosts.f90 for a host that loads them as a library. A thread runs the same functions as a light
! instance. The environment variable HOW says how the culprit fails.
module entries
   use, intrinsic :: iso_c_binding, only: c_int, c_ptr
   use acts, only: culprit_step, guest_step, how
   use titin
   implicit none

contains

   recursive function culprit(raw, data) result(status) bind(C)
      type(c_ptr), value :: raw, data
      integer(c_int) :: status
      type(titin_instance) :: instance
      integer :: ierr
      call get_environment_variable("HOW", how)
      call instance%borrow(raw)
      call culprit_step(instance, ierr)
      status = int(ierr, c_int)
   end function

   recursive function guest(raw, data) result(status) bind(C)
      type(c_ptr), value :: raw, data
      integer(c_int) :: status
      type(titin_instance) :: instance
      integer :: ierr
      call instance%borrow(raw)
      call guest_step(instance, ierr)
      status = int(ierr, c_int)
   end function
end module entries
