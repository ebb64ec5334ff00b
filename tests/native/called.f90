! A micro model whose caller sends settings: the script of called.c.
program called
   use, intrinsic :: iso_c_binding, only: c_associated, c_null_char
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   use titin_c
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: message
   type(titin_value) :: overlay
   real(real64) :: k
   integer :: ierr

   call instance%open(f_init=["in"], o_f=["out"], unchecked="", ierr=ierr)
   call check(ierr == titin_error_usage .and. index(titin_error_text(), "say why") > 0, "no reason")

   call instance%open(f_init=["in"], o_f=["out"])
   call check(titin_skip_checks(instance%raw, " "//c_null_char) == titin_error_usage, "no reason, later")
   call check(instance%port_count() == 2, "ports")
   call check(.not. c_associated(titin_port_find(instance%raw, "muscle_settings_in"//c_null_char)), "a port of reuse")
   do while (instance%reuse())
      call instance%receive("in", message)
      call instance%setting("k", k)
      call instance%overlay(overlay)
      call instance%send("out", [k, real(overlay%size(), real64)], timestamp=0.0_real64)
   end do
   call instance%close()

contains

   subroutine check(holds, what)
      logical, intent(in) :: holds
      character(len=*), intent(in) :: what
      if (.not. holds) error stop "called.f90: "//what
   end subroutine
end program called
