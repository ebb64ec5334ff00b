! Writes down each message, and sends its data back.
program echo
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message
    integer(LIBMUSCLE_int8) :: uses

    ports = LIBMUSCLE_PortsDescription_create()
    call ports%add(YMMSL_Operator_F_INIT, 'in')
    call ports%add(YMMSL_Operator_O_F, 'out')
    instance = LIBMUSCLE_Instance_create(ports)
    call LIBMUSCLE_PortsDescription_free(ports)
    uses = 0
    do while (instance%reuse_instance())
        message = instance%receive('in')
        call line('use '//int_text(uses), show_message(message))
        uses = uses + 1
        call message%unset_next_timestamp()
        call instance%send('out', message)
        call LIBMUSCLE_Message_free(message)
    end do
    call LIBMUSCLE_Instance_free(instance)
    call line('uses', show_integer(uses))
end program
