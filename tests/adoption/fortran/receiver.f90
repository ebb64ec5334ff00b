! Writes down what comes to each slot of a component with several instances, or of a vector port of changing length.
program receiver
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message
    character(16) :: word
    logical :: is_vector
    integer :: length, slot

    call get_command_argument(1, word)
    is_vector = word == 'vector'
    ports = LIBMUSCLE_PortsDescription_create()
    call ports%add(YMMSL_Operator_F_INIT, trim(merge('in[]', 'in  ', is_vector)))
    instance = LIBMUSCLE_Instance_create(ports)
    call LIBMUSCLE_PortsDescription_free(ports)
    do while (instance%reuse_instance())
        if (.not. is_vector) then
            message = instance%receive('in')
            call line('in', show_message(message))
            call LIBMUSCLE_Message_free(message)
            cycle
        end if
        length = instance%get_port_length('in')
        call line('length', show_integer(int(length, LIBMUSCLE_int8)))
        do slot = length - 1, 0, -1
            message = instance%receive_on_slot('in', slot)
            call line('slot '//int_text(int(slot, LIBMUSCLE_int8)), show_message(message))
            call LIBMUSCLE_Message_free(message)
        end do
    end do
    call LIBMUSCLE_Instance_free(instance)
end program
