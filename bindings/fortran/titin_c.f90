! The bare interfaces of titin.h, which says what each function does, what it frees, when it waits, and which errors it has.
! Handles are type(c_ptr); text ends with c_null_char; arguments that may be NULL in C, and are no handles, are optional here.
! Programs use the module titin, which is built on this one.
module titin_c
   use titin_c_constants
   use titin_c_field
   use titin_c_instance
   use titin_c_message
   implicit none
   public
end module titin_c
