!> titin with Global Arrays: couples a global array to a field port.
!>
!>    use titin
!>    use titin_ga
!>    type(titin_ga_field) :: velocity
!>    call ga_initialize()
!>    call instance%open(s=["velocity"], ranks=titin_ga_ranks())
!>    call velocity%new(instance, "velocity", g_a)
!>    call velocity%receive(timestamp=t)
!>
!> The functions are those of titin_ga.h, which says which arrays can be coupled. titin_ga.c compiles them with the
!> program's own Global Arrays, which libtitin does not know. So these modules do not depend on the size of integers that
!> Global Arrays were built for: g_a may have 4 or 8 bytes.
module titin_ga
   use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_int, c_null_ptr, c_ptr
   use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
   use, intrinsic :: iso_fortran_env, only: int32, int64, real64
   use titin_c, only: titin_communicator, titin_field_free, titin_field_withdraw, titin_ok, titin_port_find, titin_wait
   use titin_common, only: c, finish, following
   use titin_instances, only: titin_instance
   implicit none
   private

   public :: titin_ga_ranks, titin_ga_field

   !> A global array that a port carries as a whole. Each process sends and receives the part that the process owns. All
   !> processes make these calls together. Sending and receiving begin and end with ga_sync.
   type :: titin_ga_field
      type(c_ptr), private :: raw = c_null_ptr, instance = c_null_ptr
      integer(c_int), private :: g_a = 0
   contains
      !> new(instance, port, g_a): declares that the port carries this global array.
      procedure, private :: new_int32, new_int64
      generic :: new => new_int32, new_int64
      !> send(timestamp=t, next_timestamp=next)
      procedure :: send
      !> receive(timestamp=t, next_timestamp=next, timeout=s, at=time, coupled=l): as titin_field has it.
      procedure :: receive
      !> withdraw(): for the sender: no more fields follow, and all versions are given up.
      procedure :: withdraw
      final :: free
   end type

   interface
      subroutine titin_ga_c_ranks(ranks) bind(C)
         import :: titin_communicator
         type(titin_communicator), intent(out) :: ranks
      end subroutine

      integer(c_int) function titin_ga_c_field(port, g_a, field) bind(C)
         import :: c_int, c_ptr
         type(c_ptr), value :: port
         integer(c_int), value :: g_a
         type(c_ptr), intent(out) :: field
      end function

      integer(c_int) function titin_ga_c_send(field, g_a, timestamp, next_timestamp) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: field
         integer(c_int), value :: g_a
         real(c_double), value :: timestamp, next_timestamp
      end function

      integer(c_int) function titin_ga_c_receive(field, g_a, at, timeout, timestamp, next_timestamp) bind(C)
         import :: c_double, c_int, c_ptr
         type(c_ptr), value :: field
         integer(c_int), value :: g_a
         real(c_double), intent(in), optional :: at
         real(c_double), value :: timeout
         real(c_double), intent(out) :: timestamp
         real(c_double), intent(out), optional :: next_timestamp
      end function
   end interface

contains

   !> The communicator of the default group, for the argument `ranks` of open. All processes of the group call open
   !> together.
   function titin_ga_ranks() result(ranks)
      type(titin_communicator) :: ranks
      call titin_ga_c_ranks(ranks)
   end function

   subroutine new_int32(self, instance, port, g_a, ierr)
      class(titin_ga_field), intent(inout) :: self
      class(titin_instance), intent(in) :: instance
      character(len=*), intent(in) :: port
      integer(int32), intent(in) :: g_a
      integer, intent(out), optional :: ierr
      call free(self)
      self%g_a = g_a
      self%instance = instance%raw
      call finish(titin_ga_c_field(titin_port_find(instance%raw, c(port)), self%g_a, self%raw), ierr, self%instance)
   end subroutine

   subroutine new_int64(self, instance, port, g_a, ierr)
      class(titin_ga_field), intent(inout) :: self
      class(titin_instance), intent(in) :: instance
      character(len=*), intent(in) :: port
      integer(int64), intent(in) :: g_a
      integer, intent(out), optional :: ierr
      call self%new(instance, port, int(g_a, int32), ierr)
   end subroutine

   subroutine send(self, timestamp, next_timestamp, ierr)
      class(titin_ga_field), intent(in) :: self
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(out), optional :: ierr
      call finish(titin_ga_c_send(self%raw, self%g_a, timestamp, following(next_timestamp)), ierr, self%instance)
   end subroutine

   subroutine receive(self, timestamp, next_timestamp, timeout, at, coupled, ierr)
      class(titin_ga_field), intent(in) :: self
      real(real64), intent(out), optional :: timestamp, next_timestamp
      real(real64), intent(in), optional :: timeout, at
      logical, intent(out), optional :: coupled
      integer, intent(out), optional :: ierr
      real(c_double) :: patience, stamp
      integer(c_int) :: status
      patience = titin_wait
      if (present(timeout)) patience = timeout
      status = titin_ga_c_receive(self%raw, self%g_a, at, patience, stamp, next_timestamp)
      if (status == titin_ok) then
         if (present(timestamp)) timestamp = stamp
         if (present(coupled)) coupled = .not. ieee_is_nan(stamp)
      end if
      call finish(status, ierr, self%instance)
   end subroutine

   subroutine withdraw(self, ierr)
      class(titin_ga_field), intent(in) :: self
      integer, intent(out), optional :: ierr
      call finish(titin_field_withdraw(self%raw), ierr, self%instance)
   end subroutine

   subroutine free(self)
      type(titin_ga_field), intent(inout) :: self
      if (c_associated(self%raw)) call titin_field_free(self%raw)
      self%raw = c_null_ptr
   end subroutine
end module
