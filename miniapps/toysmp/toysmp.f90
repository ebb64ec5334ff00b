! Modules of compA and compB: the part of the grid, ten fields that travel, the expected numbers, and the clock.
module toysmp
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use mpi
   use titin
   implicit none
   private

   public :: bundle, fields, slab, stopwatch, of_a, of_c

   integer, parameter :: fields = 10
   !> The component whose state a field is.
   integer, parameter :: of_a = 1, of_c = 2

   !> The settings, and this rank's part of the grid: some columns from west to east, each from south to north.
   type :: slab
      integer :: nx, ny, steps
      !> Whether the fields travel together, and whether all numbers are checked in every step and not only in the last.
      logical :: aggregated, checks
      !> Columns first + 1 to first + width of the grid.
      integer :: first, width
   contains
      procedure :: open => open_slab
      procedure :: initial
      procedure :: check
   end type

   !> Ten fields in one direction between two components: each by a port of its own, or all by one port.
   type :: bundle
      logical, private :: aggregated
      type(titin_field), private :: together, each(fields)
   contains
      procedure :: open => open_bundle
      procedure :: send
      procedure :: receive
   end type

   !> The times of each step's marks on this rank; the first mark is the beginning.
   type :: stopwatch
      real(real64), allocatable, private :: marks(:, :)
      integer, private :: step = 0, next
   contains
      procedure :: open => open_stopwatch
      !> Begins a step, once all ranks are there.
      procedure :: begin
      procedure :: mark
      procedure :: write => write_times
   end type

contains

   subroutine open_slab(self, instance)
      class(slab), intent(inout) :: self
      type(titin_instance), intent(in) :: instance
      integer :: rank, ranks
      call instance%setting("nx", self%nx)
      call instance%setting("ny", self%ny)
      call instance%setting("steps", self%steps)
      call instance%setting("aggregated", self%aggregated)
      call instance%setting("check", self%checks)
      rank = instance%rank()
      ranks = instance%ranks()
      if (self%nx < ranks) call give_up(instance, "there are more ranks than columns: raise nx, or start fewer")
      self%first = rank*(self%nx/ranks) + min(rank, mod(self%nx, ranks))
      self%width = self%nx/ranks + merge(1, 0, rank < mod(self%nx, ranks))
   end subroutine

   !> The initial fields of a component.
   function initial(self, component) result(u)
      class(slab), intent(in) :: self
      integer, intent(in) :: component
      real(real64) :: u(self%width, self%ny, fields)
      integer :: i, j, field
      do field = 1, fields
         do j = 1, self%ny
            do i = 1, self%width
               u(i, j, field) = number(self, component, field, self%first + i, j)
            end do
         end do
      end do
   end function

   ! Whole numbers, a different one for each element of each field. All arithmetic with them here is exact.
   pure function number(self, component, field, i, j)
      class(slab), intent(in) :: self
      integer, intent(in) :: component, field, i, j
      real(real64) :: number
      integer(int64) :: cells, place
      cells = int(self%nx, int64)*self%ny
      place = 1 + modulo(i - 1, self%nx) + int(j - 1, int64)*self%nx
      number = real(merge(2*(field - 1)*cells + place, -(2*field - 1)*cells - place, component == of_a), real64)
   end function

   !> Checks every number of a component's fields before this step; steps count from 0.
   !>
   !> A step replaces a by 2a - 3c and c by a - c, and moves both to the east by a cell. Three steps change the sign of both.
   subroutine check(self, instance, u, component, step)
      class(slab), intent(in) :: self
      type(titin_instance), intent(in) :: instance
      real(real64), intent(in) :: u(:, :, :)
      integer, intent(in) :: component, step
      character, parameter :: names_of(2) = ["A", "C"]
      integer, parameter :: of(2, 2, 0:2) = reshape([1, 0, 0, 1, 2, -3, 1, -1, 1, -3, 1, -2], [2, 2, 3])
      real(real64) :: weights(2), wanted
      character(len=200) :: text
      integer :: i, j, field, from
      weights = of(:, component, mod(step, 3))*merge(1, -1, mod(step, 6) < 3)
      do field = 1, fields
         do j = 1, self%ny
            do i = 1, self%width
               from = self%first + i - mod(step, self%nx)
               wanted = weights(1)*number(self, of_a, field, from, j) + weights(2)*number(self, of_c, field, from, j)
               if (abs(u(i, j, field) - wanted) <= 0) cycle
               write (text, "(a, i0, a, i0, a, i0, a, i0, a, g0, a, g0)") "before step ", step, " field "//names_of(component), &
                  field, " is wrong at ", self%first + i, ", ", j, ": ", u(i, j, field), ", not ", wanted
               call give_up(instance, trim(text))
            end do
         end do
      end do
   end subroutine

   subroutine give_up(instance, text)
      type(titin_instance), intent(in) :: instance
      character(len=*), intent(in) :: text
      call instance%fail(text)
      error stop 1
   end subroutine

   !> The fields go by the port of this name, or by ten numbered ports; the description has the same ports.
   subroutine open_bundle(self, instance, port, mine)
      class(bundle), intent(inout) :: self
      type(titin_instance), intent(in) :: instance
      character(len=*), intent(in) :: port
      type(slab), intent(in) :: mine
      type(titin_decomposition) :: columns
      character(len=2) :: number
      integer :: field
      call columns%new([mine%nx, mine%ny])
      call columns%grid([instance%ranks(), 1])
      self%aggregated = mine%aggregated
      if (self%aggregated) then
         call instance%field(port, columns, self%together, spread(titin_f64, 1, fields))
      else
         do field = 1, fields
            write (number, "(i0)") field
            call instance%field(port//number, columns, self%each(field), titin_f64)
         end do
      end if
   end subroutine

   subroutine send(self, u, timestamp)
      class(bundle), intent(in) :: self
      real(real64), intent(in) :: u(:, :, :), timestamp
      integer :: field
      if (self%aggregated) then
         call self%together%send(u(:, :, 1), u(:, :, 2), u(:, :, 3), u(:, :, 4), u(:, :, 5), u(:, :, 6), u(:, :, 7), &
            u(:, :, 8), u(:, :, 9), u(:, :, 10), timestamp=timestamp)
      else
         do field = 1, fields
            call self%each(field)%send(u(:, :, field), timestamp=timestamp)
         end do
      end if
   end subroutine

   subroutine receive(self, u)
      class(bundle), intent(in) :: self
      real(real64), intent(inout) :: u(:, :, :)
      integer :: field
      if (self%aggregated) then
         call self%together%receive(u(:, :, 1), u(:, :, 2), u(:, :, 3), u(:, :, 4), u(:, :, 5), u(:, :, 6), u(:, :, 7), &
            u(:, :, 8), u(:, :, 9), u(:, :, 10))
      else
         do field = 1, fields
            call self%each(field)%receive(u(:, :, field))
         end do
      end if
   end subroutine

   subroutine open_stopwatch(self, steps)
      class(stopwatch), intent(inout) :: self
      integer, intent(in) :: steps
      allocate (self%marks(4, steps))
   end subroutine

   subroutine begin(self)
      class(stopwatch), intent(inout) :: self
      integer :: ierr
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
      self%step = self%step + 1
      self%next = 1
      call self%mark()
   end subroutine

   subroutine mark(self)
      class(stopwatch), intent(inout) :: self
      integer(int64) :: ticks, rate
      call system_clock(ticks, rate)
      self%marks(self%next, self%step) = real(ticks, real64)/real(rate, real64)
      self%next = self%next + 1
   end subroutine

   !> Writes times.csv: the time, by the clock of the host, at which the last rank reached each mark of each step.
   subroutine write_times(self, marks)
      class(stopwatch), intent(in) :: self
      character(len=*), intent(in) :: marks
      real(real64) :: latest(size(self%marks, 1), self%step)
      integer :: rank, unit, step, ierr
      call MPI_Reduce(self%marks, latest, size(latest), MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      if (rank /= 0) return
      open (newunit=unit, file="times.csv", status="replace", action="write")
      write (unit, "(a)") marks
      do step = 1, self%step
         write (unit, "(*(f0.9, :, ','))") latest(:, step)
      end do
      close (unit)
   end subroutine
end module
