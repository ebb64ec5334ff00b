! The numbers of titin.h: errors, operators, types of elements and settings, kinds of values, levels of the log.
module titin_c_constants
   use, intrinsic :: iso_c_binding, only: c_double, c_int
   implicit none
   private :: c_double, c_int

   integer(c_int), parameter :: titin_ok = 0
   integer(c_int), parameter :: titin_error_usage = 1
   integer(c_int), parameter :: titin_error_call_order = 2
   integer(c_int), parameter :: titin_error_setting = 3
   integer(c_int), parameter :: titin_error_type_mismatch = 4
   integer(c_int), parameter :: titin_error_timeout = 5
   integer(c_int), parameter :: titin_error_port_closed = 6
   integer(c_int), parameter :: titin_error_peer_lost = 7
   integer(c_int), parameter :: titin_error_deadlock = 8
   integer(c_int), parameter :: titin_error_connection = 9
   integer(c_int), parameter :: titin_error_no_memory = 10
   integer(c_int), parameter :: titin_error_forked = 11
   integer(c_int), parameter :: titin_error_internal = 12
   integer(c_int), parameter :: titin_error_interrupted = 13
   integer(c_int), parameter :: titin_error_filter = 14
   integer(c_int), parameter :: titin_error_closed = 15
   integer(c_int), parameter :: titin_pending = 16
   integer(c_int), parameter :: titin_error_evicted = 17
   integer(c_int), parameter :: titin_error_message_lost = 18
   integer(c_int), parameter :: titin_error_member_failed = 19
   integer(c_int), parameter :: titin_f_init = 1
   integer(c_int), parameter :: titin_o_i = 2
   integer(c_int), parameter :: titin_s = 3
   integer(c_int), parameter :: titin_o_f = 4
   integer(c_int), parameter :: titin_bool = 1
   integer(c_int), parameter :: titin_i8 = 2
   integer(c_int), parameter :: titin_i16 = 3
   integer(c_int), parameter :: titin_i32 = 4
   integer(c_int), parameter :: titin_i64 = 5
   integer(c_int), parameter :: titin_u8 = 6
   integer(c_int), parameter :: titin_u16 = 7
   integer(c_int), parameter :: titin_u32 = 8
   integer(c_int), parameter :: titin_u64 = 9
   integer(c_int), parameter :: titin_f16 = 10
   integer(c_int), parameter :: titin_f32 = 11
   integer(c_int), parameter :: titin_f64 = 12
   integer(c_int), parameter :: titin_c64 = 13
   integer(c_int), parameter :: titin_c128 = 14
   integer(c_int), parameter :: titin_bf16 = 15
   ! Types of elements without a kind in Fortran, and the integers of the same size that hold their bits.
   integer(c_int), parameter :: titin_without_kind(*) = [titin_u8, titin_u16, titin_u32, titin_u64, titin_f16, titin_bf16]
   integer(c_int), parameter :: titin_their_integers(*) = [titin_i8, titin_i16, titin_i32, titin_i64, titin_i16, titin_i16]
   character(len=*), parameter :: titin_their_names(*) = &
      [character(len=10) :: "titin_u8", "titin_u16", "titin_u32", "titin_u64", "titin_f16", "titin_bf16"]
   integer(c_int), parameter :: titin_order_c = 0
   integer(c_int), parameter :: titin_order_fortran = 1
   integer(c_int), parameter :: titin_kind_nil = 1
   integer(c_int), parameter :: titin_kind_bool = 2
   integer(c_int), parameter :: titin_kind_int = 3
   integer(c_int), parameter :: titin_kind_uint = 4
   integer(c_int), parameter :: titin_kind_float = 5
   integer(c_int), parameter :: titin_kind_text = 6
   integer(c_int), parameter :: titin_kind_bytes = 7
   integer(c_int), parameter :: titin_kind_array = 8
   integer(c_int), parameter :: titin_kind_list = 9
   integer(c_int), parameter :: titin_kind_map = 10
   integer(c_int), parameter :: titin_type_none = 0
   integer(c_int), parameter :: titin_type_bool = 1
   integer(c_int), parameter :: titin_type_int = 2
   integer(c_int), parameter :: titin_type_float = 3
   integer(c_int), parameter :: titin_type_text = 4
   integer(c_int), parameter :: titin_type_ints = 5
   integer(c_int), parameter :: titin_type_floats = 6
   integer(c_int), parameter :: titin_type_table = 7
   integer(c_int), parameter :: titin_log_debug = 10
   integer(c_int), parameter :: titin_log_info = 20
   integer(c_int), parameter :: titin_log_warning = 30
   integer(c_int), parameter :: titin_log_error = 40
   integer(c_int), parameter :: titin_log_critical = 50
   integer(c_int), parameter :: titin_even = 1
   integer(c_int), parameter :: titin_block = 2
   integer(c_int), parameter :: titin_cyclic = 3
   integer(c_int), parameter :: titin_checks_error = 0
   integer(c_int), parameter :: titin_checks_warn = 1
   integer(c_int), parameter :: titin_receive_all_ranks = 0
   integer(c_int), parameter :: titin_receive_root_only = 1
   integer(c_int), parameter :: titin_overlays_inherited = 0
   integer(c_int), parameter :: titin_overlays_explicit = 1
   integer(c_int), parameter :: titin_no_slot = -1, titin_max_rank = 32, titin_any = -1
   real(c_double), parameter :: titin_wait = huge(1.0_c_double), titin_no_next = -huge(1.0_c_double)
end module titin_c_constants
