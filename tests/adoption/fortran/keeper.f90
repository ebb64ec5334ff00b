! Makes the calls of checkpoints in their order.
program keeper
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message, answer
    type(LIBMUSCLE_Data) :: data
    integer :: uses

    ports = LIBMUSCLE_PortsDescription_create()
    call ports%add(YMMSL_Operator_F_INIT, 'in')
    call ports%add(YMMSL_Operator_O_F, 'out')
    instance = LIBMUSCLE_Instance_create(ports, LIBMUSCLE_InstanceFlags(USES_CHECKPOINT_API=.true., &
                                                                      STATE_NOT_REQUIRED_FOR_NEXT_USE=.true.))
    call LIBMUSCLE_PortsDescription_free(ports)
    uses = 0
    do while (instance%reuse_instance())
        call line('resuming', yes(instance%resuming()))
        call line('should_init', yes(instance%should_init()))
        message = instance%receive('in')
        call line('in', show_message(message))
        call line('should_save', yes(instance%should_save_snapshot(message%timestamp())))
        data = LIBMUSCLE_Data_create(uses)
        answer = LIBMUSCLE_Message_create(message%timestamp(), data)
        call instance%send('out', answer)
        uses = uses + 1
        call LIBMUSCLE_Message_free(answer)
        call LIBMUSCLE_Message_free(message)
        call LIBMUSCLE_Data_free(data)
        call line('should_save_final', yes(instance%should_save_final_snapshot()))
    end do
    call LIBMUSCLE_Instance_free(instance)
    call line('uses', show_integer(int(uses, LIBMUSCLE_int8)))
end program
