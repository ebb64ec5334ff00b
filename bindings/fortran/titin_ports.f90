! The ports of an instance, and the numbers of their slots.
module titin_ports
   use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_ptr
   use titin_c
   use titin_common, only: c, finish, text
   use titin_properties, only: properties_layer
   implicit none
   private

   public :: ports_layer

   !> The second layer of an instance; titin_sending has the next.
   type, extends(properties_layer) :: ports_layer
   contains
      !> Whether anything is connected to a port; whether it has slots; whether their number is set at run time.
      procedure :: is_connected
      procedure :: is_vector
      procedure :: is_resizable
      !> The number of slots, 1 for a port without slots; and setting the number of a sending, resizable port.
      procedure :: slots
      procedure :: set_slots
      !> titin_f_init, titin_o_i, titin_s or titin_o_f; the number of ports, and the name of a port by its number from one.
      procedure :: operator => port_operator
      procedure :: port_count
      procedure :: port_name
   end type

contains

   ! The handle of a port; an error if there is no such port.
   function find(self, port, ierr) result(raw)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = titin_port_find(self%raw, c(port))
      call finish(merge(titin_ok, titin_error_kind(), c_associated(raw)), ierr, self%raw)
   end function

   function is_connected(self, port, ierr)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      logical :: is_connected
      type(c_ptr) :: raw
      raw = find(self, port, ierr)
      is_connected = .false.
      if (c_associated(raw)) is_connected = titin_port_is_connected(raw) /= 0
   end function

   function is_vector(self, port, ierr)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      logical :: is_vector
      type(c_ptr) :: raw
      raw = find(self, port, ierr)
      is_vector = .false.
      if (c_associated(raw)) is_vector = titin_port_is_vector(raw) /= 0
   end function

   function is_resizable(self, port, ierr)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      logical :: is_resizable
      type(c_ptr) :: raw
      raw = find(self, port, ierr)
      is_resizable = .false.
      if (c_associated(raw)) is_resizable = titin_port_is_resizable(raw) /= 0
   end function

   function slots(self, port, ierr)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      integer :: slots
      type(c_ptr) :: raw
      raw = find(self, port, ierr)
      slots = 0
      if (c_associated(raw)) slots = int(titin_port_slots(raw))
   end function

   subroutine set_slots(self, port, slots, ierr)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(in) :: slots
      integer, intent(out), optional :: ierr
      call finish(titin_port_set_slots(titin_port_find(self%raw, c(port)), int(slots, c_int)), ierr, self%raw)
   end subroutine

   function port_operator(self, port, ierr) result(operator)
      class(ports_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer, intent(out), optional :: ierr
      integer :: operator
      type(c_ptr) :: raw
      raw = find(self, port, ierr)
      operator = 0
      if (c_associated(raw)) operator = int(titin_port_operator(raw))
   end function

   function port_count(self, ierr)
      class(ports_layer), intent(in) :: self
      integer, intent(out), optional :: ierr
      integer :: port_count
      port_count = int(titin_port_count(self%raw))
      call finish(merge(titin_ok, titin_error_kind(), c_associated(self%raw)), ierr)
   end function

   function port_name(self, number, ierr) result(name)
      class(ports_layer), intent(in) :: self
      integer, intent(in) :: number
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: name
      type(c_ptr) :: raw
      raw = titin_port_at(self%raw, int(number - 1, c_int))
      call finish(merge(titin_ok, titin_error_kind(), c_associated(raw)), ierr, self%raw)
      name = ""
      if (c_associated(raw)) name = text(titin_port_name(raw))
   end function
end module titin_ports
