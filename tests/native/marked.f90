! A program that reads and builds marked data: the script of marked.c.
program marked
   use, intrinsic :: iso_fortran_env, only: real32, real64
   use titin
   implicit none

   type(titin_instance) :: instance
   type(titin_message) :: message
   type(titin_value) :: data, settings

   call instance%open(f_init=["in"], o_f=["passed", "own   "])
   do while (instance%reuse())
      call instance%receive("in", message)
      call read()
      call instance%send("passed", message, timestamp=0.0_real64)
      call settings%new_settings()
      call settings%add(7.5_real64, name="k")
      call data%new_map()
      call data%add(0.1_real32, name="single")
      call data%add(settings, name="settings")
      call instance%send("own", data, timestamp=0.0_real64)
   end do
   call instance%close()

contains

   subroutine read()
      type(titin_value) :: one, two, given, map
      real(real64) :: number
      call message%item(one, name="single")
      call message%item(two, name="double")
      call message%item(given, name="settings")
      call message%item(map, name="map")
      if (.not. one%is_single() .or. two%is_single() .or. map%is_single()) error stop "marked.f90: is_single"
      call one%read(number)
      if (number /= real(0.1_real32, real64)) error stop "marked.f90: the number"
      if (.not. given%is_settings() .or. map%is_settings()) error stop "marked.f90: is_settings"
      if (given%kind() /= titin_kind_map .or. given%size() /= 2 .or. given%name(2) /= "a.b") error stop "marked.f90: the map"
      call given%read(number, name="k")
      if (number /= 2.5_real64) error stop "marked.f90: k"
   end subroutine

end program marked
