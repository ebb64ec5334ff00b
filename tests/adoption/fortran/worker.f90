! Computes with the settings of its member.
program worker
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message, answer
    type(LIBMUSCLE_DataConstRef) :: member
    type(LIBMUSCLE_Data) :: data
    real(LIBMUSCLE_real8) :: k
    character(:), allocatable :: extra

    ports = LIBMUSCLE_PortsDescription()
    call ports%add(YMMSL_Operator_F_INIT, 'in')
    call ports%add(YMMSL_Operator_O_F, 'out')
    instance = LIBMUSCLE_Instance(ports)
    call LIBMUSCLE_PortsDescription_free(ports)
    do while (instance%reuse_instance())
        k = instance%get_setting_as_real8('k')
        extra = instance%get_setting_as_character('extra', 'none')
        message = instance%receive('in')
        call line('k', show_number(k))
        call line('in', show_message(message))
        member = message%get_data()
        data = LIBMUSCLE_Data_create_dict()
        call data%set_item('member', member%as_int())
        call data%set_item('square', k * k)
        call data%set_item('extra', extra)
        answer = LIBMUSCLE_Message(message%timestamp(), data)
        call instance%send('out', answer)
        call LIBMUSCLE_Message_free(answer)
        call LIBMUSCLE_Message_free(message)
        call LIBMUSCLE_DataConstRef_free(member)
        call LIBMUSCLE_Data_free(data)
    end do
    call LIBMUSCLE_Instance_free(instance)
end program
