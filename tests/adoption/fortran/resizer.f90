! Sends as many messages as it is told, on a vector port whose length changes with each use.
program resizer
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message, answer
    type(LIBMUSCLE_DataConstRef) :: number
    type(LIBMUSCLE_Data) :: data
    integer :: length, slot

    ports = LIBMUSCLE_PortsDescription_create()
    call ports%add(YMMSL_Operator_F_INIT, 'in')
    call ports%add(YMMSL_Operator_O_F, 'out[]')
    instance = LIBMUSCLE_Instance_create(ports)
    call LIBMUSCLE_PortsDescription_free(ports)
    do while (instance%reuse_instance())
        message = instance%receive('in')
        number = message%get_data()
        length = number%as_int()
        call line('resizable', yes(instance%is_resizable('out')))
        call line('before', show_integer(int(instance%get_port_length('out'), LIBMUSCLE_int8)))
        call instance%set_port_length('out', length)
        call line('after', show_integer(int(instance%get_port_length('out'), LIBMUSCLE_int8)))
        do slot = 0, length - 1
            data = LIBMUSCLE_Data_create(10 * length + slot)
            answer = LIBMUSCLE_Message_create(message%timestamp(), data)
            call instance%send('out', answer, slot)
            call LIBMUSCLE_Message_free(answer)
            call LIBMUSCLE_Data_free(data)
        end do
        call LIBMUSCLE_DataConstRef_free(number)
        call LIBMUSCLE_Message_free(message)
    end do
    call LIBMUSCLE_Instance_free(instance)
end program
