! The bare interfaces of titin.h and titin_path.h. For each function, the header has its purpose, memory to free, waits and errors. Handles are
! type(c_ptr). Text ends with c_null_char. Arguments that may be NULL in C, and are no handles, are optional here. Programs
! use the module titin, which is built on titin_c.
module titin_c
   use titin_c_constants
   use titin_c_field
   use titin_c_instance
   use titin_c_message
   use titin_c_path
   implicit none
   public
end module titin_c
