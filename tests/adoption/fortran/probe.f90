! Asks everything about settings and ports, in each use.
program probe
    use ymmsl
    use libmuscle
    use record
    implicit none
    type(LIBMUSCLE_PortsDescription) :: ports
    type(LIBMUSCLE_Instance) :: instance
    type(LIBMUSCLE_Message) :: message, default
    type(LIBMUSCLE_Data) :: data, list
    integer :: i

    ports = LIBMUSCLE_PortsDescription_create()
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_F_INIT, 'in')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_F_INIT, 'lonely')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_F_INIT, 'many[]')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_O_I, 'out')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_O_I, 'spread[]')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_S, 'back')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_S, 'absent')
    call LIBMUSCLE_PortsDescription_add(ports, YMMSL_Operator_O_F, 'done')
    instance = LIBMUSCLE_Instance_create(ports)
    call LIBMUSCLE_PortsDescription_free(ports)

    do while (LIBMUSCLE_Instance_reuse_instance(instance))
        call ask_ports()
        call ask_settings()
        message = LIBMUSCLE_Instance_receive(instance, 'in')
        call written('in')
        data = LIBMUSCLE_Data_create('default')
        default = LIBMUSCLE_Message_create(1.5d0, 2.5d0, data)
        message = LIBMUSCLE_Instance_receive(instance, 'lonely', default)
        call written('lonely')
        call LIBMUSCLE_Message_free(default)
        default = LIBMUSCLE_Message_create(0.5d0, data)
        call LIBMUSCLE_Data_free(data)
        message = LIBMUSCLE_Instance_receive_on_slot(instance, 'many', 0, default)
        call written('many 0')
        call LIBMUSCLE_Message_free(default)
        do i = 0, LIBMUSCLE_Instance_get_port_length(instance, 'spread') - 1
            list = LIBMUSCLE_Data_create_nils(1_LIBMUSCLE_size)
            call LIBMUSCLE_Data_set_item(list, 1_LIBMUSCLE_size, i)
            message = LIBMUSCLE_Message_create(0.0d0, list)
            call LIBMUSCLE_Instance_send(instance, 'spread', message, i)
            call LIBMUSCLE_Message_free(message)
            call LIBMUSCLE_Data_free(list)
        end do
        data = LIBMUSCLE_Data_create('not connected')
        message = LIBMUSCLE_Message_create(0.0d0, data)
        call LIBMUSCLE_Instance_send(instance, 'out', message)
        call LIBMUSCLE_Message_free(message)
        call LIBMUSCLE_Data_free(data)
        default = LIBMUSCLE_Message_create(4.5d0)
        message = LIBMUSCLE_Instance_receive(instance, 'back', default)
        call written('back')
        call LIBMUSCLE_Message_free(default)
        list = LIBMUSCLE_Data_create_nils(1_LIBMUSCLE_size)
        call LIBMUSCLE_Data_set_item(list, 1_LIBMUSCLE_size, 1)
        default = LIBMUSCLE_Message_create(3.5d0, list)
        message = LIBMUSCLE_Instance_receive(instance, 'absent', default)
        call written('absent')
        call LIBMUSCLE_Message_free(default)
        call LIBMUSCLE_Data_free(list)
        data = LIBMUSCLE_Data_create('done')
        message = LIBMUSCLE_Message_create(1.0d0, data)
        call LIBMUSCLE_Instance_send(instance, 'done', message)
        call LIBMUSCLE_Message_free(message)
        call LIBMUSCLE_Data_free(data)
    end do
    call LIBMUSCLE_Instance_free(instance)

contains

    subroutine written(what)
        character(*), intent(in) :: what
        call line(what, show_message(message))
        call LIBMUSCLE_Message_free(message)
    end subroutine

    subroutine ask_ports()
        character(8), parameter :: names(7) = [character(8) :: 'in', 'lonely', 'many', 'out', 'spread', 'back', 'absent']
        type(LIBMUSCLE_PortsDescription) :: listed
        character(:), allocatable :: name
        integer :: i

        listed = LIBMUSCLE_Instance_list_ports(instance)
        call line('ports', '{F_INIT: '//of(listed, YMMSL_Operator_F_INIT)//', O_F: '//of(listed, YMMSL_Operator_O_F)//', O_I: '// &
                  of(listed, YMMSL_Operator_O_I)//', S: '//of(listed, YMMSL_Operator_S)//'}')
        call LIBMUSCLE_PortsDescription_free(listed)
        do i = 1, size(names)
            name = trim(names(i))
            call line(name//' connected', yes(LIBMUSCLE_Instance_is_connected(instance, name)))
            call line(name//' vector', yes(LIBMUSCLE_Instance_is_vector_port(instance, name)))
            call line(name//' resizable', yes(LIBMUSCLE_Instance_is_resizable(instance, name)))
            if (LIBMUSCLE_Instance_is_vector_port(instance, name)) then
                call line(name//' length', show_integer(int(LIBMUSCLE_Instance_get_port_length(instance, name), LIBMUSCLE_int8)))
            else
                ! These calls stop a Fortran program, which C++ and Python catch.
                call line(name//' length', 'error')
            end if
        end do
        call line('spread resized', 'error')
        call line('in resized', 'error')
        call line('unknown connected', 'missing')
        call line('unknown length', 'missing')
    end subroutine

    ! The ports of an operator, in order.
    function of(listed, op) result(text)
        type(LIBMUSCLE_PortsDescription), intent(in) :: listed
        integer(YMMSL_Operator), intent(in) :: op
        character(:), allocatable :: text
        character(8) :: names(8), swap
        integer :: count, i, j

        count = int(LIBMUSCLE_PortsDescription_num_ports(listed, op))
        do i = 1, count
            names(i) = LIBMUSCLE_PortsDescription_get(listed, op, int(i, LIBMUSCLE_size))
        end do
        text = ''
        do i = 1, count
            do j = i + 1, count
                if (names(j) < names(i)) then
                    swap = names(i)
                    names(i) = names(j)
                    names(j) = swap
                end if
            end do
            text = text//' '//trim(names(i))
        end do
    end function

    subroutine ask_settings()
        character(:), dimension(:), allocatable :: listed
        character(:), allocatable :: text
        character(9), parameter :: names(11) = [character(9) :: 'text', 'int', 'float', 'flag', 'ints', 'floats', 'table', &
            'own', 'none', 'late', 'deep.name']
        integer :: i

        listed = LIBMUSCLE_Instance_list_settings(instance)
        text = ''
        do i = 1, size(listed)
            text = text//' '//trim(listed(i))
        end do
        call line('settings', text)
        do i = 1, size(names)
            call ask_setting(trim(names(i)))
        end do
    end subroutine

    subroutine ask_setting(name)
        character(*), intent(in) :: name
        integer :: code
        character(:), allocatable :: found, text, what
        integer(LIBMUSCLE_int8) :: whole, wholes(2)
        real(LIBMUSCLE_real8) :: real_number, reals(2), table(2, 2)
        logical :: flag

        found = any_setting(name)
        if (len(found) > 0) then
            call line(name, found)
            call line(name//' read', 'no error')
            call line(name//' or default', found)
        else
            call line(name//' read', 'missing')
            call line(name//' or default', 'text default')
        end if

        what = name//' as str'
        text = LIBMUSCLE_Instance_get_setting_as_character(instance, name, code)
        if (code == 0) call line(what, text)
        call refused(what, code)
        text = LIBMUSCLE_Instance_get_setting_as_character(instance, name, 'other', code)
        if (code == 0) call line(what, text)
        call refused(what//' or default', code)

        what = name//' as int'
        whole = LIBMUSCLE_Instance_get_setting_as_int8(instance, name, code)
        if (code == 0) call line(what, show_integer(whole))
        call refused(what, code)
        whole = LIBMUSCLE_Instance_get_setting_as_int8(instance, name, 7_LIBMUSCLE_int8, code)
        if (code == 0) call line(what, show_integer(whole))
        call refused(what//' or default', code)

        what = name//' as float'
        real_number = LIBMUSCLE_Instance_get_setting_as_real8(instance, name, code)
        if (code == 0) call line(what, show_number(real_number))
        call refused(what, code)
        real_number = LIBMUSCLE_Instance_get_setting_as_real8(instance, name, 0.25d0, code)
        if (code == 0) call line(what, show_number(real_number))
        call refused(what//' or default', code)

        what = name//' as bool'
        flag = LIBMUSCLE_Instance_get_setting_as_logical(instance, name, code)
        if (code == 0) call line(what, yes(flag))
        call refused(what, code)
        flag = LIBMUSCLE_Instance_get_setting_as_logical(instance, name, .true., code)
        if (code == 0) call line(what, yes(flag))
        call refused(what//' or default', code)

        what = name//' as [int]'
        call instance%get_setting_as_int8array(name, wholes, code)
        if (code == 0) call line(what, '['//show_integer(wholes(1))//', '//show_integer(wholes(2))//']')
        call refused(what, code)
        call instance%get_setting_as_int8array(name, [1_LIBMUSCLE_int8, 2_LIBMUSCLE_int8], wholes, code)
        if (code == 0) call line(what, '['//show_integer(wholes(1))//', '//show_integer(wholes(2))//']')
        call refused(what//' or default', code)

        what = name//' as [float]'
        reals = 0
        call instance%get_setting_as_real8array(name, reals, code)
        if (code == 0) call line(what, '['//show_number(reals(1))//', '//show_number(reals(2))//']')
        call refused(what, code)
        call instance%get_setting_as_real8array(name, [0.5d0], reals, code)
        if (code == 0 .and. name == 'none') call line(what, '['//show_number(reals(1))//']')
        if (code == 0 .and. name /= 'none') call line(what, '['//show_number(reals(1))//', '//show_number(reals(2))//']')
        call refused(what//' or default', code)

        what = name//' as [[float]]'
        call instance%get_setting_as_real8array2(name, table, code)
        if (code == 0) call line(what, rows(table, 2))
        call refused(what, code)
        call instance%get_setting_as_real8array2(name, reshape([0.5d0, 1.5d0], [2, 1]), table, code)
        if (code == 0) call line(what, rows(table, merge(1, 2, name == 'none')))
        call refused(what//' or default', code)
    end subroutine

    function rows(table, columns) result(text)
        real(LIBMUSCLE_real8), intent(in) :: table(:, :)
        integer, intent(in) :: columns
        character(:), allocatable :: text
        integer :: i
        text = ''
        do i = 1, 2
            if (i > 1) text = text//', '
            text = text//'['//show_number(table(i, 1))
            if (columns > 1) text = text//', '//show_number(table(i, 2))
            text = text//']'
        end do
        text = '['//text//']'
    end function

    ! A setting of any type; nothing if there is none.
    function any_setting(name) result(text)
        character(*), intent(in) :: name
        character(:), allocatable :: text
        integer(LIBMUSCLE_int8) :: wholes(2)
        real(LIBMUSCLE_real8) :: reals(2), table(2, 2)
        logical :: is_text
        integer :: code

        is_text = LIBMUSCLE_Instance_is_setting_a_character(instance, name, code)
        if (code /= 0) then
            text = ''
        else if (is_text) then
            text = 'text '//LIBMUSCLE_Instance_get_setting_as_character(instance, name)
        else if (LIBMUSCLE_Instance_is_setting_a_int8(instance, name)) then
            text = show_integer(LIBMUSCLE_Instance_get_setting_as_int8(instance, name))
        else if (LIBMUSCLE_Instance_is_setting_a_real8(instance, name)) then
            text = show_number(LIBMUSCLE_Instance_get_setting_as_real8(instance, name))
        else if (LIBMUSCLE_Instance_is_setting_a_logical(instance, name)) then
            text = yes(LIBMUSCLE_Instance_get_setting_as_logical(instance, name))
        else if (LIBMUSCLE_Instance_is_setting_a_int8array(instance, name)) then
            call LIBMUSCLE_Instance_get_setting_as_int8array(instance, name, wholes)
            text = '['//show_integer(wholes(1))//', '//show_integer(wholes(2))//']'
        else if (LIBMUSCLE_Instance_is_setting_a_real8array(instance, name)) then
            call LIBMUSCLE_Instance_get_setting_as_real8array(instance, name, reals)
            text = '['//show_number(reals(1))//', '//show_number(reals(2))//']'
        else if (LIBMUSCLE_Instance_is_setting_a_real8array2(instance, name)) then
            call LIBMUSCLE_Instance_get_setting_as_real8array2(instance, name, table)
            text = rows(table, 2)
        end if
    end function
end program
