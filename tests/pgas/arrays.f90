! Adds 1 to the numbers of global arrays in each use. Runs on four processes. Is compiled with the integers of Global
! Arrays.
program arrays
   use, intrinsic :: iso_c_binding, only: c_int, c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only: int32, real64
   use titin
   use titin_ga
   implicit none
#include "mafdecls.fh"
#include "global.fh"
   type(titin_instance) :: instance
   type(titin_ga_field) :: in(3), out(3)
   integer :: g_a(3), i, error
   real(real64) :: t
   logical :: made(3)
   real(real64), target :: one = 1
   integer(int32), target :: whole = 1
   interface
      ! The function in C, because a Fortran compiler wants the same type of number in all calls.
      subroutine add_constant(g_a, number) bind(C, name="GA_Add_constant")
         import :: c_int, c_ptr
         integer(c_int), value :: g_a
         type(c_ptr), value :: number
      end subroutine
   end interface

   call MPI_Init(error)
   call ga_initialize()
   call instance%open(f_init=["even  ", "few   ", "cyclic"], o_f=["even_back  ", "few_back   ", "cyclic_back"], &
      ranks=titin_ga_ranks())
   made(1) = nga_create(MT_DBL, 2, [13, 7], "even", [-1, -1], g_a(1))
   made(2) = nga_create_irreg(MT_C_INT, 2, [13, 7], "few", [1, 1, 4], [1, 2], g_a(2))
   g_a(3) = ga_create_handle()
   call ga_set_data(g_a(3), 2, [13, 7], MT_DBL)
   call ga_set_block_cyclic(g_a(3), [3, 2])
   made(3) = ga_allocate(g_a(3))
   if (.not. all(made)) call instance%fail("a global array could not be made")
   call in(1)%new(instance, "even", g_a(1))
   call in(2)%new(instance, "few", g_a(2))
   call in(3)%new(instance, "cyclic", g_a(3))
   call out(1)%new(instance, "even_back", g_a(1))
   call out(2)%new(instance, "few_back", g_a(2))
   call out(3)%new(instance, "cyclic_back", g_a(3))
   do while (instance%reuse())
      do i = 1, 3
         call in(i)%receive(timestamp=t)
         call add_constant(int(g_a(i), c_int), merge(c_loc(whole), c_loc(one), i == 2))
      end do
      do i = 1, 3
         call out(i)%send(timestamp=t)
      end do
   end do
   call instance%close()
   call ga_terminate()
   call MPI_Finalize(error)
end program
