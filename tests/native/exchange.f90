! One side of an exchange, "left" or "right": the script of exchange.c.
program exchange
   use, intrinsic :: iso_c_binding, only: c_associated, c_bool, c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real64
   use titin
   use titin_c, only: titin_loan_find, titin_loan_retain, titin_no_next, titin_no_slot, titin_port_find, titin_send_loan
   implicit none

   type(titin_instance) :: instance
   type(titin_region) :: region
   character(len=8) :: side

   call get_command_argument(1, side)
   call instance%open(o_i=["out"], s=["in"])
   call check(instance%operator("out") == titin_o_i .and. instance%is_connected("in"), "ports")
   do while (instance%reuse())
      call instance%begin_region("exchange", region)
      call settings()
      if (side == "left") then
         call left()
      else
         call right()
      end if
      call instance%end_region(region)
   end do
   call instance%close()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "exchange.f90: "//what
   end subroutine

   ! Sends an array in titin's memory twice, without a copy.
   subroutine lend()
      real(real64), pointer :: a(:, :)
      complex(real64), pointer :: waves(:)
      integer(int32), pointer :: number
      integer(int32) :: i, j, ierr
      type(c_ptr) :: again
      nullify (a, number, waves)
      call instance%loan("out", a, [100, 200], names=["x", "y"])
      do j = 1, 200
         do i = 1, 100
            a(i, j) = 1000*(i - 1) + j - 1
         end do
      end do
      again = titin_loan_retain(titin_loan_find(c_loc(a), 160000_int64))
      call instance%send_loan("out", a, timestamp=8.5_real64)
      call check(.not. associated(a), "a loan that was sent")
      call instance%send_loan("out", a, timestamp=8.5_real64, ierr=ierr)
      call check(ierr == titin_error_usage .and. index(titin_error_text(), "no loan") == 1, "sent again")
      call check(titin_send_loan(titin_port_find(instance%raw, "out"//char(0)), titin_no_slot, again, 8.75_real64, &
         titin_no_next, c_null_ptr) == 0 .and. .not. c_associated(again), "sent again as it is")
      call instance%loan("out", number, [integer ::])
      number = 3
      call instance%free_loan(number)
      call check(.not. associated(number), "a loan that was given back")
      call instance%loan("out", waves, [2, 3], ierr=ierr)
      call check(ierr == titin_error_usage .and. .not. associated(waves), "a shape of another rank")
      call instance%loan("out", waves, [4])
      waves = (1.0_real64, 2.0_real64)
      a => null()
      waves => waves(1:2)
      call instance%send_loan("out", waves, timestamp=8.5_real64, ierr=ierr)
      call check(ierr == titin_error_usage .and. index(titin_error_text(), "a part of a loan") == 1, "a part")
   end subroutine

   ! Sends elements for which Fortran has no kind, as bits: 0, the largest number or -2, and 2 or 1.
   subroutine send_unusual()
      type(titin_value) :: map
      integer(int8), parameter :: u8(3) = [0_int8, -1_int8, 2_int8]
      integer(int16), parameter :: u16(3) = [0_int16, -1_int16, 2_int16], f16(3) = [0_int16, -16384_int16, 15360_int16]
      integer(int32), parameter :: u32(3) = [0, -1, 2]
      integer(int64), parameter :: u64(3) = [0_int64, -1_int64, 2_int64]
      integer(int16), pointer :: lent(:)
      integer :: ierr
      call instance%send("out", u8, timestamp=8.0_real64, as=titin_u8)
      call instance%send("out", u16, timestamp=8.0_real64, as=titin_u16)
      call instance%send("out", u32, timestamp=8.0_real64, as=titin_u32)
      call instance%send("out", u64, timestamp=8.0_real64, as=titin_u64)
      call instance%send("out", f16, timestamp=8.0_real64, as=titin_f16)
      call instance%send("out", [0_int16, -16384_int16, 16256_int16], timestamp=8.0_real64, as=titin_bf16)
      call instance%send("out", u16, timestamp=8.0_real64, as=titin_u32, ierr=ierr)
      call check(ierr == titin_error_usage .and. index(titin_error_text(), "int16 does not hold the bits of uint32") > 0, &
         "bits of another size")
      call instance%send("out", u16, timestamp=8.0_real64, as=99, ierr=ierr)
      call check(ierr == titin_error_usage .and. index(titin_error_text(), "of 99, which is no type of elements; give") > 0, &
         "bits of no type")
      call map%new_map()
      call map%add(u32, name="bits", as=titin_u32)
      call map%add(-1_int64, name="large", as=titin_u64)
      call instance%send("out", map, timestamp=8.0_real64)
      nullify (lent)
      call instance%loan("out", lent, [3], as=titin_u16)
      lent(:) = u16
      call instance%send_loan("out", lent, timestamp=8.0_real64)
   end subroutine

   subroutine receive_unusual()
      type(titin_message) :: message
      integer(int8), pointer :: u8(:)
      integer(int16) :: u16(3), f16(3)
      integer(int32) :: u32(3)
      integer(int64), pointer :: u64(:)
      integer(int32), pointer :: bits(:)
      integer(int64) :: large
      integer :: ierr
      call instance%receive("in", message)
      call message%view(u8, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), "give as=titin_u8 to") > 0, &
         "bits that are not asked for")
      call message%view(u8, as=titin_u8)
      call check(all(u8 == [0_int8, -1_int8, 2_int8]), "uint8")
      call check(iand(int(u8(2)), 255) == 255, "uint8 as an integer of the next size")
      call instance%receive("in", u16, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), "found uint16") > 0, "not told")
      call instance%receive("in", u16, as=titin_u16)
      call check(all(u16 == [0_int16, -1_int16, 2_int16]), "uint16")
      call instance%receive("in", u32, as=titin_u32)
      call check(all(u32 == [0, -1, 2]), "uint32")
      call instance%receive("in", message)
      call message%view(u64, as=titin_u64)
      call check(all(u64 == [0_int64, -1_int64, 2_int64]), "uint64")
      call instance%receive("in", f16, as=titin_f16)
      call check(all(f16 == [0_int16, -16384_int16, 15360_int16]), "float16")
      call instance%receive("in", f16, as=titin_bf16)
      call check(all(f16 == [0_int16, -16384_int16, 16256_int16]), "bfloat16")
      call instance%receive("in", message)
      call message%view(bits, name="bits", as=titin_u32)
      call message%read_unsigned(large, name="large")
      call check(all(bits == [0, -1, 2]) .and. large == -1, "in a structure")
      call instance%receive("in", u16, as=titin_u16)
      call check(u16(2) == -1, "of lent memory")
   end subroutine

   subroutine left()
      type(titin_value) :: overlay, map, list
      type(titin_message) :: back
      real(real64) :: line(10), grid(3, 4)
      real(real64), pointer :: again(:)
      integer(int32) :: table(2, 3), i, j
      line = [(0.5_real64*i, i=0, 9)]
      table = reshape([((10*i + j, i=0, 1), j=0, 2)], [2, 3])
      grid = reshape([((real(10*i + j, real64), i=0, 2), j=0, 3)], [3, 4])
      call instance%send("out", line, timestamp=0.0_real64, next_timestamp=1.0_real64)
      call instance%send("out", table, timestamp=1.0_real64, names=["x", "y"])
      call instance%send("out", grid(1:3:2, 4:1:-2), timestamp=2.0_real64)
      call instance%send("out", [(1.0_real64, -2.0_real64), (0.0_real64, 3.0_real64)], timestamp=3.0_real64)
      call instance%send("out", [.true., .false., .true.], timestamp=4.0_real64)
      call instance%send("out", 2.5_real64, timestamp=5.0_real64)
      call instance%send("out", line(1:0), timestamp=6.0_real64)
      call overlay%new_map()
      call overlay%add(7.0_real64, name="k")
      call map%new_map()
      call map%add("wall", name="name")
      call map%add(3.5_real64, name="flux")
      call map%add(line, name="line")
      call list%new_list()
      call list%add(1)
      call list%add("two")
      call list%add(.true.)
      call map%add(list, name="list")
      call instance%send_nil("out", timestamp=7.0_real64, settings=overlay)
      call instance%send("out", map, timestamp=8.0_real64)
      call send_unusual()
      call lend()
      call instance%receive("in", back)
      call back%view(again)
      call check(all(again == line) .and. back%timestamp() == 9.0_real64, "what comes back")
   end subroutine

   subroutine right()
      type(titin_message) :: line, message
      type(titin_value) :: overlay, list
      real(real64), pointer :: view(:)
      real(real64) :: part(2, 2), number
      real(real64), allocatable :: lent(:, :)
      integer(int32) :: table(2, 3), wrong(3), whole, ierr, which
      complex(real64), pointer :: waves(:)
      logical :: flags(3), flag, found
      character(len=:), allocatable :: words

      call instance%receive("in", line)
      call line%view(view)
      call check(size(view) == 10 .and. view(10) == 4.5_real64 .and. lbound(view, 1) == 1, "view")
      call line%view(waves, ierr=ierr)
      call check(ierr == titin_error_type_mismatch .and. index(titin_error_text(), "port 'in', message from ") == 1 .and. &
         index(titin_error_text(), ": expected an array ") > 0, "another type")
      call check(line%port() == "in", "port")
      call check(line%has_next() .and. line%next_timestamp() == 1.0_real64, "next timestamp")
      call instance%receive("in", table, message=message)
      call check(table(2, 3) == 12 .and. table(1, 2) == 1 .and. message%index_name(2) == "y", "table")
      call instance%receive("in", part)
      call check(all(part == reshape([3.0_real64, 23.0_real64, 1.0_real64, 21.0_real64], [2, 2])), "strided")
      call instance%receive("in", message)
      call message%view(waves)
      call check(aimag(waves(1)) == -2.0_real64, "complex")
      call instance%receive("in", flags)
      call check(flags(1) .and. .not. flags(2) .and. flags(3), "logical")
      call instance%receive("in", number)
      call check(number == 2.5_real64, "a single number")
      call instance%receive("in", message)
      call check(message%elements() == 0 .and. size(message%extents()) == 1, "empty")
      call instance%receive("in", message)
      call message%settings(overlay)
      call overlay%read(number, name="k")
      call check(message%kind() == titin_kind_nil .and. number == 7.0_real64, "nil and overlay")
      call instance%receive_any(["in"], which, message)
      call message%read(words, name="name")
      call message%read(number, name="flux")
      call message%view(view, name="line")
      call check(words == "wall" .and. number == 3.5_real64 .and. view(10) == 4.5_real64 .and. which == 1, "map")
      call message%item(list, name="list")
      call list%read(whole, index=1)
      call list%read(words, index=2)
      call list%read(flag, index=3)
      call check(list%size() == 3 .and. whole == 1 .and. words == "two" .and. flag, "list")
      call receive_unusual()
      allocate (lent(100, 200))
      do which = 1, 2
         lent(:, :) = 0
         call instance%receive("in", lent, timestamp=number)
         call check(number == 8.25_real64 + 0.25_real64*which .and. lent(100, 199) == 99198.0_real64, "a loan")
      end do
      call line%view(waves, ierr=ierr)
      call check(ierr == titin_error_type_mismatch, "a view of another kind")
      call instance%try_receive("in", message, found)
      call check(.not. found, "nothing is there")
      call instance%receive("in", wrong, timeout=0.01_real64, ierr=ierr)
      call check(ierr == titin_error_timeout .and. titin_error_text() /= "", "timeout")
      call line%view(view)
      call instance%send("out", view, timestamp=9.0_real64)
   end subroutine

   subroutine settings()
      real(real64) :: k, dt, other
      real(real64), allocatable :: floats(:), table(:, :)
      integer(int32) :: n
      integer(int64), allocatable :: ints(:)
      logical :: flag
      character(len=:), allocatable :: words
      call instance%setting("k", k)
      call instance%setting("n", n)
      call instance%setting("flag", flag)
      call instance%setting("text", words)
      call instance%setting("dt", dt, unit="s")
      call instance%setting("absent", other, default=8.0_real64)
      call instance%setting("floats", floats)
      call instance%setting("ints", ints)
      call instance%setting("table", table)
      call check(k == 0.5_real64 .and. n == 3 .and. flag .and. words == "some text" .and. dt == 0.01_real64, "settings")
      call check(other == 8.0_real64 .and. floats(2) == 2.5_real64 .and. ints(3) == 3, "defaults and lists")
      call check(table(2, 1) == 3.0_real64, "table")
   end subroutine
end program exchange
