! titin: coupling of simulation codes, from Fortran 2018.
!
!     use titin
!     type(titin_instance) :: instance
!     type(titin_message)  :: msg
!     real(real64), pointer :: u0(:)
!     call instance%open(f_init=["initial_state"], o_f=["final_state"])
!     do while (instance%reuse())
!        call instance%setting("k", k)
!        call instance%receive("initial_state", msg)
!        call msg%view(u0)                       ! a pointer into the message, any kind and rank
!        ...
!        call instance%send("final_state", u, timestamp=t)
!     end do
!     call instance%close()
!
! Every procedure that can fail has an optional ierr: 0, or one of titin_error_... Without ierr an error fails the run and
! stops the program with the text that titin_error_text() gives. Text is trimmed; slots, entries and dimensions count from
! one. In texts, such as those of errors, slots and members have the names of the description and of logs, which count from zero:
! the third slot is back[2]. titin.h says which calls wait, and which threads may call.
!
! This module exports the names of all others. An instance is made of layers: titin_properties (names, scales, settings),
! titin_ports, titin_sending, titin_loans, titin_receiving, titin_fields (arrays that are spread over ranks), and
! titin_instances (begin and end). titin_hosting runs several instances. titin_reading reads values; titin_data has values
! of the program, and messages.
module titin
   use, intrinsic :: iso_fortran_env, only: real64
   use titin_c
   use titin_common, only: c, finish, text
   use titin_data, only: titin_message, titin_value
   use titin_fields, only: titin_decomposition, titin_field
   use titin_hosting, only: titin_entry, titin_guest, titin_host_guests, titin_run_steps, titin_step
   use titin_instances, only: titin_instance, titin_interrupted, titin_region
   implicit none
   private

   public :: titin_instance, titin_message, titin_value, titin_region, titin_release, titin_error_text, titin_converted
   public :: titin_failed_member, titin_failed_slot
   public :: titin_decomposition, titin_field, titin_even, titin_block, titin_cyclic
   public :: titin_guest, titin_host_guests, titin_entry, titin_run_steps, titin_step, titin_interrupted
   public :: titin_ok, titin_error_usage, titin_error_call_order, titin_error_setting, titin_error_type_mismatch, &
      titin_error_timeout, titin_error_port_closed, titin_error_peer_lost, titin_error_deadlock, titin_error_connection, &
      titin_error_no_memory, titin_error_forked, titin_error_internal, titin_error_interrupted, titin_error_filter, &
      titin_error_closed, titin_error_evicted, titin_error_message_lost, titin_error_member_failed, &
      titin_pending
   public :: titin_f_init, titin_o_i, titin_s, titin_o_f
   public :: titin_bool, titin_i8, titin_i16, titin_i32, titin_i64, titin_u8, titin_u16, titin_u32, titin_u64, titin_f16, &
      titin_bf16, titin_f32, titin_f64, titin_c64, titin_c128, titin_order_c, titin_order_fortran
   public :: titin_kind_nil, titin_kind_bool, titin_kind_int, titin_kind_uint, titin_kind_float, titin_kind_text, &
      titin_kind_bytes, titin_kind_array, titin_kind_list, titin_kind_map
   public :: titin_log_debug, titin_log_info, titin_log_warning, titin_log_error, titin_log_critical
   public :: titin_checks_error, titin_checks_warn
   public :: titin_receive_all_ranks, titin_receive_root_only
   public :: titin_overlays_inherited, titin_overlays_explicit

contains

   !> Release of the library: "0.1.0".
   function titin_release() result(release)
      character(len=:), allocatable :: release
      release = text(titin_version())
   end function

   !> A number of a unit in another unit, by the units of settings: 1.5 "h" is 90 "min". A unit that titin does not know, and
   !> two units that measure different things, are titin_error_usage.
   function titin_converted(number, unit, wanted, ierr) result(converted)
      real(real64), intent(in) :: number
      character(len=*), intent(in) :: unit, wanted
      integer, intent(out), optional :: ierr
      real(real64) :: converted
      call finish(titin_convert(number, c(unit), c(wanted), converted), ierr)
   end function

   !> The text of the last error of a call with ierr.
   function titin_error_text() result(words)
      character(len=:), allocatable :: words
      words = text(titin_error())
   end function

   !> After titin_error_member_failed: the name of the failed member of an ensemble, such as "micro[3]".
   function titin_failed_member() result(name)
      character(len=:), allocatable :: name
      name = text(titin_error_member())
   end function

   !> After titin_error_member_failed: the slot of the port to which the member is connected; 0 on a port without slots.
   integer function titin_failed_slot() result(slot)
      slot = titin_error_slot() + 1
   end function
end module titin
