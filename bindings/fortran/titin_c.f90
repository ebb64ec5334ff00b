! The bare interfaces of titin.h: what each does, who frees, what waits and which errors there are is said there.
! Handles are type(c_ptr); text ends with c_null_char; what may be NULL in C and is no handle is optional here.
! Programs use the module titin, which is built on this one.
module titin_c
   use titin_c_constants
   use titin_c_field
   use titin_c_instance
   use titin_c_message
   implicit none
   public
end module titin_c
