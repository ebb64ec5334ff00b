! A program that passes on the settings of a member: the script of passing.c.
program passing
   use, intrinsic :: iso_fortran_env, only: real64
   use titin
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: first, second
   type(titin_value) :: member, overlay
   real(real64) :: k
   integer :: ierr

   call instance%open(ports="f_init: one two; o_f: passed plain", overlays=2, ierr=ierr)
   if (ierr /= titin_error_usage) error stop "passing.f90: no such use of overlays"

   call instance%open(ports="f_init: one two; o_f: passed plain", overlays=titin_overlays_explicit)
   do while (instance%reuse())
      call instance%receive("one", first)
      call instance%receive("two", second)
      call instance%setting("k", k)
      call instance%overlay(overlay)
      call second%settings(member)
      call instance%send_nil("passed", timestamp=0.0_real64, settings=member)
      call instance%send("plain", [k, real(overlay%size(), real64)], timestamp=0.0_real64)
   end do
   call instance%close()
end program passing
