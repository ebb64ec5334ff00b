! Sends members with their settings to a balancer, and writes down what comes back.
program driver
    use ymmsl
    use libmuscle
    use record
    implicit none
    integer, parameter :: members = 2
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_InstanceFlags) :: flags
    type(LIBMUSCLE_Message) :: message
    type(LIBMUSCLE_Data) :: data
    type(YMMSL_Settings) :: settings
    integer :: round, member

    ports = LIBMUSCLE_PortsDescription()
    call ports%add(YMMSL_Operator_O_I, 'out[]')
    call ports%add(YMMSL_Operator_S, 'in[]')
    flags%DONT_APPLY_OVERLAY = .true.
    instance = LIBMUSCLE_Instance(ports, flags)
    call LIBMUSCLE_PortsDescription_free(ports)
    do while (instance%reuse_instance())
        do round = 0, 2
            call instance%set_port_length('out', members)
            do member = 0, members - 1
                settings = YMMSL_Settings_create()
                call settings%set('k', 0.1d0 * (10 * round + member))
                if (member == 1) call YMMSL_Settings_set(settings, 'extra', 'only here')
                data = LIBMUSCLE_Data(member)
                message = LIBMUSCLE_Message(real(round, LIBMUSCLE_real8), data, settings)
                call instance%send('out', message, member)
                call LIBMUSCLE_Message_free(message)
                call LIBMUSCLE_Data_free(data)
                call YMMSL_Settings_free(settings)
            end do
            do member = 0, members - 1
                message = LIBMUSCLE_Instance_receive_with_settings_on_slot(instance, 'in', member)
                call line('back '//int_text(int(member, LIBMUSCLE_int8)), show_message(message))
                call LIBMUSCLE_Message_free(message)
            end do
        end do
    end do
    call LIBMUSCLE_Instance_free(instance)
end program
