! Light instances in the program's own loop, with the bare calls: the script of polled.c, without poll().
program polled
   use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int, c_loc, c_null_char, c_null_ptr, c_ptr
   use titin_c
   implicit none
   type(c_ptr) :: ready, options, next, openings(2), instances(2), message
   integer, target :: places(2) = [1, 2]
   integer(c_int) :: status, again
   integer :: i, left
   logical :: begun(2) = .false., done(2) = .false.

   ready = titin_ready_new()
   options = titin_options_new()
   call check(titin_ready_descriptor(ready) >= 0, "a descriptor")
   call check(titin_ready_next(ready, 0.0d0, next) == titin_error_timeout, "nobody is there")
   do i = 1, 2
      call check(titin_options_ready(options, ready, c_loc(places(i))) == titin_ok, "a list")
      status = titin_options_instance(options, merge("receiver", "sender  ", i == 1)//c_null_char)
      if (i == 2) status = titin_options_instance(options, "sender"//c_null_char)
      status = titin_open_begin(merge("s: in   ", "o_i: out", i == 1)//c_null_char, options, openings(i))
      call check(status == titin_ok, "asked")
      instances(i) = c_null_ptr
   end do
   left = 2
   do i = 1, 2
      call go_on(i)
   end do
   do while (left > 0)
      call check(titin_ready_next(ready, titin_wait, next) == titin_ok, "somebody can go on")
      do i = 1, 2
         if (c_associated(next, c_loc(places(i)))) call go_on(i)
      end do
   end do
   call titin_open_cancel(c_null_ptr)
   call titin_options_free(options)
   call titin_ready_free(ready)
   print "(a)", "both are done"

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "polled.f90: "//what
   end subroutine

   ! Goes on with an instance as far as it can.
   subroutine go_on(i)
      integer, intent(in) :: i
      type(c_ptr) :: port
      if (.not. c_associated(instances(i))) then
         if (.not. passed(titin_open_end(openings(i), instances(i)))) return
      end if
      if (.not. begun(i)) then
         if (.not. passed(titin_reuse(instances(i), again))) return
         call check(titin_skip_deadlocks(instances(i)) == titin_ok, "nobody looks for deadlocks")
         begun(i) = .true.
      end if
      if (.not. done(i)) then
         if (i == 1) then
            port = titin_port_find(instances(i), "in"//c_null_char)
            if (.not. passed(titin_receive(port, titin_no_slot, titin_wait, message))) return
            call titin_message_free(message)
         else
            port = titin_port_find(instances(i), "out"//c_null_char)
            if (.not. passed(titin_send_nil(port, titin_no_slot, 1.0d0, titin_no_next, c_null_ptr))) return
         end if
         done(i) = .true.
      end if
      if (passed(titin_close(instances(i)))) left = left - 1
   end subroutine

   function passed(status) result(yes)
      integer(c_int), intent(in) :: status
      logical :: yes
      call check(status == titin_ok .or. status == titin_pending, "a call")
      yes = status == titin_ok
   end function
end program polled
