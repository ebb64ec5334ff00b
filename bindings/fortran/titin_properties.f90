! Properties of an instance: name, ranks, scales, settings.
module titin_properties
   use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_int64_t, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, finish, fits_int32, misfit_int32, misfit_real32, rounded_real32, text
   use titin_data, only: titin_value
   implicit none
   private

   public :: properties_layer

   !> The innermost layer of an instance; titin_ports has the next.
   type :: properties_layer
      !> For the module titin_c.
      type(c_ptr) :: raw = c_null_ptr
   contains
      !> Name of the instance: "macro[3]".
      procedure :: name => instance_name
      !> The directory that was current when the instance was opened.
      procedure :: workdir
      procedure :: time_unit
      !> The calling rank of a parallel program, from 0 as in MPI, and the number of ranks; 0 and 1 for a serial program.
      procedure :: rank => instance_rank
      procedure :: ranks => instance_ranks
      !> A view of the scales in the description: a map with dt, total, dx and extent, as far as given, in s and m.
      procedure :: scale => instance_scale
      !> Whether the step that begins at this time would pass the end of the use, by the settings t_max and dt, else by the
      !> scales total and dt; see titin_will_stop in titin.h.
      procedure :: will_stop
      !> setting(name, value, default, unit): a number, logical, text, list or table. With a unit "10 ms" in "s" is 0.01.
      procedure, private :: setting_real64, setting_real32, setting_int64, setting_int32, setting_logical, setting_text, &
         setting_real64s, setting_int64s, setting_int32s, setting_table
      generic :: setting => setting_real64, setting_real32, setting_int64, setting_int32, setting_logical, setting_text, &
         setting_real64s, setting_int64s, setting_int32s, setting_table
      !> Whether the setting is set.
      procedure :: has_setting
      !> All settings known for this instance, as a map from full names; and the overlay in force alone.
      procedure :: settings
      procedure :: overlay
   end type

contains

   ! The end of a call with a pointer as its result.
   subroutine finish_pointer(self, given, ierr)
      class(properties_layer), intent(in) :: self
      type(c_ptr), intent(in) :: given
      integer, intent(out), optional :: ierr
      call finish(merge(titin_ok, titin_error_kind(), c_associated(given)), ierr, self%raw)
   end subroutine

   function instance_name(self, ierr) result(name)
      class(properties_layer), intent(in) :: self
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: name
      type(c_ptr) :: chars
      chars = titin_instance_name(self%raw)
      call finish_pointer(self, chars, ierr)
      name = text(chars)
   end function

   function instance_rank(self, ierr) result(rank)
      class(properties_layer), intent(in) :: self
      integer, intent(out), optional :: ierr
      integer :: rank
      rank = int(titin_rank(self%raw))
      call finish(merge(titin_ok, titin_error_usage, c_associated(self%raw)), ierr)
   end function

   function instance_ranks(self, ierr) result(ranks)
      class(properties_layer), intent(in) :: self
      integer, intent(out), optional :: ierr
      integer :: ranks
      ranks = int(titin_ranks(self%raw))
      call finish(merge(titin_ok, titin_error_usage, c_associated(self%raw)), ierr)
   end function

   function workdir(self, ierr)
      class(properties_layer), intent(in) :: self
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: workdir
      type(c_ptr) :: chars
      chars = titin_workdir(self%raw)
      call finish_pointer(self, chars, ierr)
      workdir = text(chars)
   end function

   function time_unit(self, ierr)
      class(properties_layer), intent(in) :: self
      integer, intent(out), optional :: ierr
      character(len=:), allocatable :: time_unit
      type(c_ptr) :: chars
      chars = titin_time_unit(self%raw)
      call finish_pointer(self, chars, ierr)
      time_unit = text(chars)
   end function

   subroutine instance_scale(self, scale, ierr)
      class(properties_layer), intent(in) :: self
      type(titin_value), intent(inout) :: scale
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = titin_scale(self%raw)
      call scale%borrow(raw)
      call finish_pointer(self, raw, ierr)
   end subroutine

   function will_stop(self, timestamp, ierr)
      class(properties_layer), intent(in) :: self
      real(real64), intent(in) :: timestamp
      integer, intent(out), optional :: ierr
      logical :: will_stop
      integer(c_int) :: stops
      call finish(titin_will_stop(self%raw, timestamp, stops), ierr, self%raw)
      will_stop = stops /= 0
   end function

   function has_setting(self, name, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      integer, intent(out), optional :: ierr
      logical :: has_setting
      has_setting = titin_setting_type(self%raw, c(name)) /= titin_type_none
      if (c_associated(self%raw)) then
         call finish(titin_ok, ierr)
      else
         call finish(titin_error_usage, ierr, found="has_setting: the instance is not open")
      end if
   end function

   ! Whether a default is given, and the setting is not set.
   function falls_back(self, name, given, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      logical, intent(in) :: given
      integer, intent(out), optional :: ierr
      logical :: falls_back
      falls_back = .false.
      if (given .and. c_associated(self%raw)) falls_back = .not. self%has_setting(name)
      if (falls_back) call finish(titin_ok, ierr)
   end function

   subroutine settings(self, all, ierr)
      class(properties_layer), intent(in) :: self
      type(titin_value), intent(inout) :: all
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = c_null_ptr
      call finish(titin_settings(self%raw, raw), ierr, self%raw)
      call all%own(raw)
   end subroutine

   subroutine overlay(self, all, ierr)
      class(properties_layer), intent(in) :: self
      type(titin_value), intent(inout) :: all
      integer, intent(out), optional :: ierr
      type(c_ptr) :: raw
      raw = c_null_ptr
      call finish(titin_overlay(self%raw, raw), ierr, self%raw)
      call all%own(raw)
   end subroutine

   subroutine setting_real64(self, name, value, default, unit, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real64), intent(out) :: value
      real(real64), intent(in), optional :: default
      character(len=*), intent(in), optional :: unit
      integer, intent(out), optional :: ierr
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      if (present(unit)) then
         call finish(titin_setting_quantity(self%raw, c(name), c(unit), value), ierr, self%raw)
      else
         call finish(titin_setting_f64(self%raw, c(name), value), ierr, self%raw)
      end if
   end subroutine

   subroutine setting_real32(self, name, value, default, unit, ierr)
      class(properties_layer), intent(in) :: self
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
      value = 0
      if (rounded_real32(wide) /= "") then
         if (titin_setting_type(self%raw, c(name)) == titin_type_int) then
            call finish(titin_error_setting, ierr, self%raw, "setting '"//trim(name)//"': "//rounded_real32(wide))
            return
         end if
      end if
      if (misfit_real32(wide) == "") then
         value = real(wide, real32)
      else
         call finish(titin_error_setting, ierr, self%raw, "setting '"//trim(name)//"': "//misfit_real32(wide))
      end if
   end subroutine

   subroutine setting_int64(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int64), intent(out) :: value
      integer(int64), intent(in), optional :: default
      integer, intent(out), optional :: ierr
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      call finish(titin_setting_i64(self%raw, c(name), value), ierr, self%raw)
   end subroutine

   subroutine setting_int32(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
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
      if (fits_int32(wide)) then
         value = int(wide, int32)
      else
         call finish(titin_error_setting, ierr, self%raw, "setting '"//trim(name)//"': "//misfit_int32(wide))
      end if
   end subroutine

   subroutine setting_logical(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      logical, intent(out) :: value
      logical, intent(in), optional :: default
      integer, intent(out), optional :: ierr
      integer(c_int) :: flag
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      call finish(titin_setting_bool(self%raw, c(name), flag), ierr, self%raw)
      value = flag /= 0
   end subroutine

   subroutine setting_text(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      character(len=:), allocatable, intent(out) :: value
      character(len=*), intent(in), optional :: default
      integer, intent(out), optional :: ierr
      type(c_ptr) :: chars
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      call finish(titin_setting_text(self%raw, c(name), chars), ierr, self%raw)
      value = text(chars)
   end subroutine

   subroutine setting_real64s(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real64), allocatable, intent(out) :: value(:)
      real(real64), intent(in), optional :: default(:)
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: count, room
      integer(c_int) :: status
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      status = titin_setting_f64s(self%raw, c(name), capacity=0_c_int64_t, count=room)
      allocate (value(room))
      if (status == titin_ok) status = titin_setting_f64s(self%raw, c(name), value, room, count)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine setting_int64s(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int64), allocatable, intent(out) :: value(:)
      integer(int64), intent(in), optional :: default(:)
      integer, intent(out), optional :: ierr
      integer(c_int64_t) :: count, room
      integer(c_int) :: status
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      status = titin_setting_i64s(self%raw, c(name), capacity=0_c_int64_t, count=room)
      allocate (value(room))
      if (status == titin_ok) status = titin_setting_i64s(self%raw, c(name), value, room, count)
      call finish(status, ierr, self%raw)
   end subroutine

   subroutine setting_int32s(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      integer(int32), allocatable, intent(out) :: value(:)
      integer(int32), intent(in), optional :: default(:)
      integer, intent(out), optional :: ierr
      integer(int64), allocatable :: wide(:)
      character(len=:), allocatable :: wrong
      if (present(default)) then
         call self%setting(name, wide, int(default, int64), ierr)
      else
         call self%setting(name, wide, ierr=ierr)
      end if
      if (.not. all(fits_int32(wide))) then
         allocate (value(0))
         wrong = misfit_int32(wide(findloc(fits_int32(wide), .false., dim=1)))
         call finish(titin_error_setting, ierr, self%raw, "setting '"//trim(name)//"': "//wrong)
      else
         value = int(wide, int32)
      end if
   end subroutine

   subroutine setting_table(self, name, value, default, ierr)
      class(properties_layer), intent(in) :: self
      character(len=*), intent(in) :: name
      real(real64), allocatable, intent(out) :: value(:, :)
      real(real64), intent(in), optional :: default(:, :)
      integer, intent(out), optional :: ierr
      real(real64), allocatable :: by_row(:, :)
      integer(c_int64_t) :: rows, columns
      integer(c_int) :: status
      if (falls_back(self, name, present(default), ierr)) then
         value = default
         return
      end if
      status = titin_setting_table(self%raw, c(name), capacity=0_c_int64_t, rows=rows, columns=columns)
      allocate (by_row(columns, rows))
      if (status == titin_ok) then
         status = titin_setting_table(self%raw, c(name), by_row, size(by_row, kind=c_int64_t), rows, columns)
      end if
      value = transpose(by_row)
      call finish(status, ierr, self%raw)
   end subroutine
end module titin_properties
