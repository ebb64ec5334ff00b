! An instance that is assigned to another, which ends the program.
program copied
   use titin
   implicit none
   type(titin_instance) :: instance, other
   call instance%open()
   other = instance
   print "(a)", other%name()
end program copied
