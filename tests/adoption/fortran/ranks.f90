! A program of several ranks whose root is the rank that the argument names. Each rank checks what it got; the root writes.
program ranks
    use mpi
    use ymmsl
    use libmuscle_mpi
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message, answer
    type(LIBMUSCLE_DataConstRef) :: data
    type(LIBMUSCLE_Data) :: sent
    character(8) :: word
    integer :: rank, root, failed
    real(LIBMUSCLE_real8) :: k, mine, total, values(4)

    call MPI_Init(failed)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, failed)
    call get_command_argument(1, word)
    read (word, *) root
    ports = LIBMUSCLE_PortsDescription_create()
    call ports%add(YMMSL_Operator_F_INIT, 'in')
    call ports%add(YMMSL_Operator_O_F, 'out')
    instance = LIBMUSCLE_Instance_create(ports, communicator=MPI_COMM_WORLD, root=root)
    call LIBMUSCLE_PortsDescription_free(ports)
    do while (instance%reuse_instance())
        k = instance%get_setting_as_real8('k')
        message = instance%receive('in')
        data = message%get_data()
        if (rank == root) then
            call data%elements(values)
        else if (.not. data%is_nil() .or. message%timestamp() /= -1) then
            stop 3
        end if
        mine = rank * k
        call MPI_Reduce(mine, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, root, MPI_COMM_WORLD, failed)
        if (rank == root) then
            sent = LIBMUSCLE_Data_create(total)
            answer = LIBMUSCLE_Message_create(message%timestamp(), sent)
            call instance%send('out', answer)
            call LIBMUSCLE_Message_free(answer)
            call LIBMUSCLE_Data_free(sent)
            sent = LIBMUSCLE_Data_create_grid(values, 'x')
            answer = LIBMUSCLE_Message_create(message%timestamp() + 0.5d0, sent)
            call instance%send('out', answer)
            call LIBMUSCLE_Message_free(answer)
            call LIBMUSCLE_Data_free(sent)
        end if
        call LIBMUSCLE_DataConstRef_free(data)
        call LIBMUSCLE_Message_free(message)
    end do
    call LIBMUSCLE_Instance_free(instance)
    call MPI_Finalize(failed)
end program
