! Passes the messages of members on to workers, each with its settings.
program balancer
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message
    type(LIBMUSCLE_Message), allocatable :: answers(:)
    integer :: calls, i

    ports = LIBMUSCLE_PortsDescription()
    call ports%add(YMMSL_Operator_F_INIT, 'front_in[]')
    call ports%add(YMMSL_Operator_O_I, 'back_out[]')
    call ports%add(YMMSL_Operator_S, 'back_in[]')
    call ports%add(YMMSL_Operator_O_F, 'front_out[]')
    instance = LIBMUSCLE_Instance(ports, LIBMUSCLE_InstanceFlags(DONT_APPLY_OVERLAY=.true.))
    call LIBMUSCLE_PortsDescription_free(ports)
    do while (instance%reuse_instance())
        calls = instance%get_port_length('front_in')
        call line('calls', show_integer(int(calls, LIBMUSCLE_int8)))
        call line('workers', show_integer(int(instance%get_port_length('back_out'), LIBMUSCLE_int8)))
        call instance%set_port_length('front_out', calls)
        allocate (answers(calls))
        do i = 1, calls
            message = instance%receive_with_settings_on_slot('front_in', i - 1)
            call line('call '//int_text(int(i - 1, LIBMUSCLE_int8)), show_message(message))
            call instance%send('back_out', message, i - 1)
            call LIBMUSCLE_Message_free(message)
        end do
        do i = 1, calls
            answers(i) = instance%receive_with_settings_on_slot('back_in', i - 1)
        end do
        do i = 1, calls
            call line('answer '//int_text(int(i - 1, LIBMUSCLE_int8)), show_message(answers(i)))
            call instance%send('front_out', answers(i), i - 1)
            call LIBMUSCLE_Message_free(answers(i))
        end do
        deallocate (answers)
    end do
    call LIBMUSCLE_Instance_free(instance)
end program
