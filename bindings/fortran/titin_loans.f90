! Loans: memory that a program fills, and that is sent without a copy, for each kind of element and any rank.
module titin_loans
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_char, c_f_pointer, c_int, c_int64_t, c_loc, c_null_ptr, &
      c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
   use titin_c
   use titin_common, only: c, finish, following, index_names, slot_number, told
   use titin_data, only: titin_value
   use titin_sending, only: given, sending_layer
   implicit none
   private

   public :: loans_layer

   !> The fourth layer of an instance; titin_receiving has the next.
   type, extends(sending_layer) :: loans_layer
   contains
      !> loan(port, a, shape, slot, names): associates the pointer `a`, of any kind and rank, with memory lent for an array
      !> of this shape. Fill the array, and send it with send_loan: nothing is copied, and receivers on this host read the
      !> memory itself. The elements have any values at first.
      procedure, private :: loan_int8, loan_int16, loan_int32, loan_int64, loan_real32, &
         loan_real64, loan_complex32, loan_complex64, loan_bool
      generic :: loan => loan_int8, loan_int16, loan_int32, loan_int64, loan_real32, &
         loan_real64, loan_complex32, loan_complex64, loan_bool
      !> send_loan(port, a, timestamp, next_timestamp, slot, settings): sends the array of a loan as a whole, on this or any
      !> other port. `a` is disassociated afterwards: the memory is not the program's any more.
      procedure, private :: send_loan_int8, send_loan_int16, send_loan_int32, send_loan_int64, send_loan_real32, &
         send_loan_real64, send_loan_complex32, send_loan_complex64, send_loan_bool
      generic :: send_loan => send_loan_int8, send_loan_int16, send_loan_int32, send_loan_int64, send_loan_real32, &
         send_loan_real64, send_loan_complex32, send_loan_complex64, send_loan_bool
      !> free_loan(a): frees a loan that was not sent.
      procedure, private :: free_loan_int8, free_loan_int16, free_loan_int32, free_loan_int64, free_loan_real32, &
         free_loan_real64, free_loan_complex32, free_loan_complex64, free_loan_bool
      generic :: free_loan => free_loan_int8, free_loan_int16, free_loan_int32, free_loan_int64, free_loan_real32, &
         free_loan_real64, free_loan_complex32, free_loan_complex64, free_loan_bool
   end type

contains

   subroutine lend(self, port, dtype, rank, shape, memory, extents, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      integer(c_int), intent(in) :: dtype
      integer, intent(in) :: rank, shape(:)
      type(c_ptr), intent(out) :: memory
      integer(c_int64_t), intent(out) :: extents(titin_max_rank)
      integer, intent(in), optional :: slot
      character(len=*), intent(in), optional :: names(:)
      integer, intent(in), optional :: as
      integer, intent(out), optional :: ierr
      character(kind=c_char), allocatable, target :: chars(:)
      character(len=:), allocatable :: wrong
      type(c_ptr) :: handle, loan
      integer(c_int) :: status, used

      memory = c_null_ptr
      extents = 0
      if (size(shape) /= rank) then
         call finish(titin_error_usage, ierr, self%raw, "loan on '"//trim(port)//"': the shape needs one extent for each "// &
            "dimension of the pointer")
         return
      end if
      call told(dtype, as, used, wrong)
      if (allocated(wrong)) then
         call finish(titin_error_usage, ierr, self%raw, "loan on '"//trim(port)//"': "//wrong)
         return
      end if
      extents(:rank) = shape
      handle = titin_port_find(self%raw, c(port))
      if (present(names)) then
         if (size(names) /= rank) then
            call finish(titin_error_usage, ierr, self%raw, "loan on '"//trim(port)// &
               "': an array needs one index name for each of its dimensions")
            return
         end if
         status = titin_loan_new(handle, slot_number(slot), used, int(rank, c_int), extents, titin_order_fortran, &
            index_names(names, chars), loan)
      else
         status = titin_loan_new(handle, slot_number(slot), used, int(rank, c_int), extents, titin_order_fortran, &
            loan=loan)
      end if
      if (status == titin_ok) memory = titin_loan_data(loan)
      if (status /= titin_ok) extents = 0
      call finish(status, ierr, self%raw)
   end subroutine

   ! Sends the loan with its data in this memory, and says whether the loan is gone.
   function sent(self, port, memory, nbytes, timestamp, next_timestamp, slot, settings, ierr) result(gone)
      class(loans_layer), intent(in) :: self
      character(len=*), intent(in) :: port
      type(c_ptr), intent(in) :: memory
      integer(c_int64_t), intent(in) :: nbytes
      real(real64), intent(in) :: timestamp
      real(real64), intent(in), optional :: next_timestamp
      integer, intent(in), optional :: slot
      type(titin_value), intent(in), optional :: settings
      integer, intent(out), optional :: ierr
      logical :: gone
      type(c_ptr) :: loan
      integer(c_int) :: status

      loan = titin_loan_find(memory, nbytes)
      gone = .false.
      if (c_associated(loan)) then
         status = titin_send_loan(titin_port_find(self%raw, c(port)), slot_number(slot), loan, timestamp, &
            following(next_timestamp), given(settings))
         ! After an error a program has no handle to send the loan again.
         gone = status /= titin_pending
         if (status /= titin_ok .and. gone) call titin_loan_free(loan)
      else
         status = titin_error_kind()
      end if
      call finish(status, ierr, self%raw)
   end function

   function freed(self, memory, nbytes, ierr) result(gone)
      class(loans_layer), intent(in) :: self
      type(c_ptr), intent(in) :: memory
      integer(c_int64_t), intent(in) :: nbytes
      integer, intent(out), optional :: ierr
      logical :: gone
      type(c_ptr) :: loan
      integer(c_int) :: status

      loan = titin_loan_find(memory, nbytes)
      gone = c_associated(loan)
      status = titin_ok
      if (gone) call titin_loan_free(loan)
      if (.not. gone) status = titin_error_kind()
      call finish(status, ierr, self%raw)
   end function

   subroutine loan_int8(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      integer(int8), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_loan.inc"
   end subroutine

   subroutine loan_int16(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      integer(int16), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_loan.inc"
   end subroutine

   subroutine loan_int32(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      integer(int32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_loan.inc"
   end subroutine

   subroutine loan_int64(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      integer(int64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_loan.inc"
   end subroutine

   subroutine loan_real32(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      real(real32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_loan.inc"
   end subroutine

   subroutine loan_real64(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      real(real64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_loan.inc"
   end subroutine

   subroutine loan_complex32(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      complex(real32), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_loan.inc"
   end subroutine

   subroutine loan_complex64(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      complex(real64), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_loan.inc"
   end subroutine

   subroutine loan_bool(self, port, a, shape, slot, names, as, ierr)
      class(loans_layer), intent(in) :: self
      logical(c_bool), pointer, intent(out) :: a(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_loan.inc"
   end subroutine

   subroutine send_loan_int8(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      integer(int8), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_int16(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      integer(int16), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_int32(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      integer(int32), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_int64(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      integer(int64), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_real32(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      real(real32), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_real64(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      real(real64), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_complex32(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      complex(real32), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_complex64(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      complex(real64), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_send_loan.inc"
   end subroutine

   subroutine send_loan_bool(self, port, a, timestamp, next_timestamp, slot, settings, ierr)
      class(loans_layer), intent(in) :: self
      logical(c_bool), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_send_loan.inc"
   end subroutine

   subroutine free_loan_int8(self, a, ierr)
      class(loans_layer), intent(in) :: self
      integer(int8), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i8
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_int16(self, a, ierr)
      class(loans_layer), intent(in) :: self
      integer(int16), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i16
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_int32(self, a, ierr)
      class(loans_layer), intent(in) :: self
      integer(int32), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i32
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_int64(self, a, ierr)
      class(loans_layer), intent(in) :: self
      integer(int64), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_i64
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_real32(self, a, ierr)
      class(loans_layer), intent(in) :: self
      real(real32), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_f32
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_real64(self, a, ierr)
      class(loans_layer), intent(in) :: self
      real(real64), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_f64
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_complex32(self, a, ierr)
      class(loans_layer), intent(in) :: self
      complex(real32), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_c64
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_complex64(self, a, ierr)
      class(loans_layer), intent(in) :: self
      complex(real64), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_c128
      include "titin_free_loan.inc"
   end subroutine

   subroutine free_loan_bool(self, a, ierr)
      class(loans_layer), intent(in) :: self
      logical(c_bool), pointer, intent(inout) :: a(..)
      integer(c_int), parameter :: dtype = titin_bool
      include "titin_free_loan.inc"
   end subroutine
end module titin_loans
