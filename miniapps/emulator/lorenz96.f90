! The two-scale system of Lorenz (1996): slow columns round a circle, with fine cells in each; the ranks divide the columns.
!
! For the slow variables X(1..K) and the fine ones Y(1..J, 1..K), which are one circle of J*K cells:
!
!     dX(k)/dt = -X(k-1) (X(k-2) - X(k+1)) - X(k) + F - U(k),    U(k) = h c/b  sum of Y(j, k) over j
!     dY(j)/dt = -c b Y(j+1) (Y(j+2) - Y(j-1)) - c Y(j) + h c/b X of the column
!
! Sums have one order on any number of ranks, so the bits are the same.
module lorenz96
   use, intrinsic :: iso_fortran_env, only: int64, real64
   use mpi
   implicit none
   private

   public :: circle

   !> What neighbours need of a column: X, the first two and the last of its fine cells.
   integer, parameter :: edges = 4

   !> The constants, and this rank's part of the columns.
   type :: circle
      !> Columns of all ranks, and fine cells in each.
      integer :: columns, cells
      !> F, h, c and b of the equations.
      real(real64) :: forcing, coupling, speed, ratio
      !> Columns first + 1 to first + width are this rank's.
      integer :: first, width
      real(real64), allocatable :: x(:), y(:, :)
      !> How many columns each rank has, and how many the ranks before it.
      integer, allocatable, private :: counts(:), offsets(:)
   contains
      procedure :: start
      procedure :: advance
      procedure :: advance_slow
      procedure :: effect
      procedure :: whole
   end type

contains

   !> Divides the columns among the ranks, and sets the initial state, which is another one for each seed.
   subroutine start(self, seed)
      class(circle), intent(inout) :: self
      integer, intent(in) :: seed
      integer :: rank, ranks, i, j, k, ierr
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
      self%counts = [(self%columns/ranks + merge(1, 0, i < mod(self%columns, ranks)), i=0, ranks - 1)]
      self%offsets = [(sum(self%counts(:i)), i=0, ranks - 1)]
      self%first = self%offsets(rank + 1)
      self%width = self%counts(rank + 1)
      allocate (self%x(self%width), self%y(self%cells, self%width))
      do i = 1, self%width
         k = self%first + i
         self%x(i) = self%forcing*number(seed, 0, k)
         do j = 1, self%cells
            self%y(j, i) = 0.1_real64*number(seed, j, k)
         end do
      end do
   end subroutine

   !> A number in [-0.5, 0.5), from integers by the generator of Park and Miller (1988): the same on every processor.
   pure function number(seed, j, k)
      integer, intent(in) :: seed, j, k
      real(real64) :: number
      integer(int64), parameter :: m = 2147483647_int64
      integer(int64) :: n
      integer :: turn
      n = modulo(1 + seed + 1009_int64*(j + 4099_int64*k), m - 1) + 1
      do turn = 1, 5
         n = mod(16807_int64*n, m)
      end do
      number = real(n, real64)/real(m, real64) - 0.5_real64
   end function

   !> One step of both scales, by the method of Runge and Kutta of fourth order.
   subroutine advance(self, dt)
      class(circle), intent(inout) :: self
      real(real64), intent(in) :: dt
      real(real64), parameter :: parts(4) = [0.5_real64, 0.5_real64, 1.0_real64, 0.0_real64]
      real(real64), parameter :: weights(4) = [1.0_real64, 2.0_real64, 2.0_real64, 1.0_real64]/6.0_real64
      real(real64), dimension(self%width) :: x, dx, sum_x
      real(real64), dimension(self%cells, self%width) :: y, dy, sum_y
      integer :: stage
      x = self%x
      y = self%y
      sum_x = 0
      sum_y = 0
      do stage = 1, 4
         call tendencies(self, x, y, dx, dy)
         sum_x = sum_x + weights(stage)*dx
         sum_y = sum_y + weights(stage)*dy
         x = self%x + dt*parts(stage)*dx
         y = self%y + dt*parts(stage)*dy
      end do
      self%x = self%x + dt*sum_x
      self%y = self%y + dt*sum_y
   end subroutine

   !> One step of the slow scale alone, the fine scale's effect U given.
   subroutine advance_slow(self, dt, u)
      class(circle), intent(inout) :: self
      real(real64), intent(in) :: dt, u(:)
      real(real64), parameter :: parts(4) = [0.5_real64, 0.5_real64, 1.0_real64, 0.0_real64]
      real(real64), parameter :: weights(4) = [1.0_real64, 2.0_real64, 2.0_real64, 1.0_real64]/6.0_real64
      real(real64), dimension(self%width) :: x, dx, sum_x
      integer :: stage
      x = self%x
      sum_x = 0
      do stage = 1, 4
         dx = slow_tendency(self, self%whole(x), u)
         sum_x = sum_x + weights(stage)*dx
         x = self%x + dt*parts(stage)*dx
      end do
      self%x = self%x + dt*sum_x
   end subroutine

   !> U of this rank's columns, as the fine scale has it now.
   pure function effect(self) result(u)
      class(circle), intent(in) :: self
      real(real64) :: u(self%width)
      u = effect_of(self, self%y)
   end function

   pure function effect_of(self, y) result(u)
      class(circle), intent(in) :: self
      real(real64), intent(in) :: y(:, :)
      real(real64) :: u(self%width)
      integer :: j
      u = 0
      do j = 1, self%cells
         u = u + y(j, :)
      end do
      u = (self%coupling*self%speed/self%ratio)*u
   end function

   subroutine tendencies(self, x, y, dx, dy)
      class(circle), intent(in) :: self
      real(real64), intent(in) :: x(:), y(:, :)
      real(real64), intent(out) :: dx(:), dy(:, :)
      real(real64) :: mine(edges, self%width), all(edges, self%columns)
      real(real64) :: cells(0:self%cells + 2)
      real(real64) :: cb, drive
      integer :: i, j, k, ierr
      mine(1, :) = x
      mine(2, :) = y(1, :)
      mine(3, :) = y(2, :)
      mine(4, :) = y(self%cells, :)
      call MPI_Allgatherv(mine, size(mine), MPI_DOUBLE_PRECISION, all, edges*self%counts, edges*self%offsets, &
         MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
      dx = slow_tendency(self, all(1, :), effect_of(self, y))
      cb = self%speed*self%ratio
      do i = 1, self%width
         k = self%first + i
         cells(0) = all(4, 1 + modulo(k - 2, self%columns))
         cells(1:self%cells) = y(:, i)
         cells(self%cells + 1:) = all(2:3, 1 + modulo(k, self%columns))
         drive = (self%coupling*self%speed/self%ratio)*x(i)
         do j = 1, self%cells
            dy(j, i) = -cb*cells(j + 1)*(cells(j + 2) - cells(j - 1)) - self%speed*cells(j) + drive
         end do
      end do
   end subroutine

   !> dX/dt of this rank's columns, from X of all columns and U of this rank's.
   pure function slow_tendency(self, x, u) result(dx)
      class(circle), intent(in) :: self
      real(real64), intent(in) :: x(:), u(:)
      real(real64) :: dx(self%width)
      integer :: i, k, n
      n = self%columns
      do i = 1, self%width
         k = self%first + i - 1
         dx(i) = -x(1 + modulo(k - 1, n))*(x(1 + modulo(k - 2, n)) - x(1 + modulo(k + 1, n))) - x(1 + k) + self%forcing - u(i)
      end do
   end function

   !> The values of all columns, from those of this rank's.
   function whole(self, x) result(all)
      class(circle), intent(in) :: self
      real(real64), intent(in) :: x(:)
      real(real64) :: all(self%columns)
      integer :: ierr
      call MPI_Allgatherv(x, self%width, MPI_DOUBLE_PRECISION, all, self%counts, self%offsets, MPI_DOUBLE_PRECISION, &
         MPI_COMM_WORLD, ierr)
   end function
end module
