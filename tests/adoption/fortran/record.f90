! Writes down what a program got, with the exact bits of numbers, on its standard output, as ../cpp/record.hpp does. Fortran's
! interface does not tell the storage order of grids and the keys of received dicts: the order is left out, and the keys are
! looked for among those that the tests use.
module record
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: output_unit
    use ymmsl
    use libmuscle
    implicit none
    private
    public :: line, show_number, show_integer, show_data, show_message, show_settings, yes, refused, int_text

    character(8), parameter :: keys(18) = [character(8) :: 'a', 'add', 'c', 'change', 'd', 'extra', 'grid', 'inner', 'keep', &
        'list', 'member', 'n', 'square', 'text', 'u', 'x', 'y', 'z']

contains

    subroutine line(what, got)
        character(*), intent(in) :: what, got
        write (output_unit, '(a)') what//': '//got
        flush (output_unit)
    end subroutine

    ! The error of a call, as record.hpp names it.
    subroutine refused(what, code)
        character(*), intent(in) :: what
        integer, intent(in) :: code

        select case (code)
        case (LIBMUSCLE_success)
            call line(what, 'no error')
        case (LIBMUSCLE_out_of_range)
            call line(what, 'missing')
        case (LIBMUSCLE_bad_cast)
            call line(what, 'type')
        case default
            call line(what, 'error')
        end select
    end subroutine

    function yes(flag)
        logical, intent(in) :: flag
        character(:), allocatable :: yes
        yes = trim(merge('true ', 'false', flag))
    end function

    function int_text(number) result(text)
        integer(LIBMUSCLE_int8), intent(in) :: number
        character(:), allocatable :: text
        character(24) :: buffer
        write (buffer, '(i0)') number
        text = trim(buffer)
    end function

    function hex(bytes) result(text)
        integer(c_int8_t), intent(in) :: bytes(:)
        character(:), allocatable :: text
        integer :: i
        character(2) :: two
        allocate (character(2 * size(bytes)) :: text)
        do i = 1, size(bytes)
            write (two, '(z2.2)') iand(int(bytes(i)), 255)
            if (two(1:1) >= 'A') two(1:1) = achar(iachar(two(1:1)) + 32)
            if (two(2:2) >= 'A') two(2:2) = achar(iachar(two(2:2)) + 32)
            text(2 * i - 1:2 * i) = two
        end do
    end function

    function show_number(number) result(text)
        real(LIBMUSCLE_real8), intent(in) :: number
        character(:), allocatable :: text
        text = 'real '//hex(transfer(number, [0_c_int8_t]))
    end function

    function show_integer(number) result(text)
        integer(LIBMUSCLE_int8), intent(in) :: number
        character(:), allocatable :: text
        text = 'int '//int_text(number)
    end function

    ! Settings by name, in order.
    function show_settings(settings) result(text)
        type(YMMSL_Settings), intent(in) :: settings
        character(:), allocatable :: text
        character(64) :: names(32), swap
        integer :: count, i, j

        count = int(settings%size())
        do i = 1, count
            names(i) = settings%key(int(i, YMMSL_size))
        end do
        do i = 1, count
            do j = i + 1, count
                if (names(j) < names(i)) then
                    swap = names(i)
                    names(i) = names(j)
                    names(j) = swap
                end if
            end do
        end do
        text = ''
        do i = 1, count
            if (i > 1) text = text//', '
            text = text//trim(names(i))//': '//show_setting(settings, trim(names(i)))
        end do
        text = 'settings {'//text//'}'
    end function

    function show_setting(settings, name) result(text)
        type(YMMSL_Settings), intent(in) :: settings
        character(*), intent(in) :: name
        character(:), allocatable :: text
        real(YMMSL_real8) :: reals(2)
        integer(YMMSL_int8) :: integers(2)

        if (settings%is_a_character(name)) then
            text = 'text '//settings%get_as_character(name)
        else if (settings%is_a_int8(name)) then
            text = show_integer(settings%get_as_int8(name))
        else if (settings%is_a_real8(name)) then
            text = show_number(settings%get_as_real8(name))
        else if (settings%is_a_logical(name)) then
            text = yes(settings%get_as_logical(name))
        else if (settings%is_a_real8array(name)) then
            call settings%get_as_real8array(name, reals)
            text = '['//show_number(reals(1))//', '//show_number(reals(2))//']'
        else if (settings%is_a_int8array(name)) then
            call settings%get_as_int8array(name, integers)
            text = '['//show_integer(integers(1))//', '//show_integer(integers(2))//']'
        else
            text = 'a table'
        end if
    end function

    function show_message(message) result(text)
        type(LIBMUSCLE_Message), intent(in) :: message
        character(:), allocatable :: text
        type(YMMSL_Settings) :: settings
        type(LIBMUSCLE_DataConstRef) :: data

        text = show_number(message%timestamp())//' next '
        if (message%has_next_timestamp()) then
            text = text//show_number(message%next_timestamp())
        else
            text = text//'none'
        end if
        if (message%has_settings()) then
            settings = message%get_settings()
            text = text//' '//show_settings(settings)
            call YMMSL_Settings_free(settings)
        end if
        data = message%get_data()
        text = text//' '//show_data(data)
        call LIBMUSCLE_DataConstRef_free(data)
    end function

    recursive function show_data(data) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        character(:), allocatable :: text
        type(LIBMUSCLE_DataConstRef) :: item
        type(YMMSL_Settings) :: settings
        character(1), allocatable :: bytes(:)
        integer(LIBMUSCLE_int8) :: number
        integer :: code, i

        if (data%is_nil()) then
            text = 'nil'
        else if (data%is_a_logical()) then
            text = yes(data%as_logical())
        else if (data%is_a_int8()) then
            number = data%as_int8(code)
            text = show_integer(number)
            if (code == LIBMUSCLE_bad_cast) text = 'int 18446744073709551615'
        else if (data%is_a_real8()) then
            text = show_number(data%as_real8())
        else if (data%is_a_real4()) then
            text = 'single '//hex(transfer(data%as_real4(), [0_c_int8_t]))
        else if (data%is_a_character()) then
            text = 'text '//data%as_character()
        else if (data%is_a_byte_array()) then
            allocate (bytes(data%size()))
            call data%as_byte_array(bytes)
            text = 'bytes '//hex(transfer(bytes, [0_c_int8_t]))
        else if (data%is_a_settings()) then
            settings = data%as_settings()
            text = show_settings(settings)
            call YMMSL_Settings_free(settings)
        else if (data%is_a_list()) then
            text = '['
            do i = 1, int(data%size())
                item = data%get_item(int(i, LIBMUSCLE_size))
                if (i > 1) text = text//', '
                text = text//show_data(item)
                call LIBMUSCLE_DataConstRef_free(item)
            end do
            text = text//']'
        else if (data%is_a_dict()) then
            text = ''
            do i = 1, size(keys)
                item = data%get_item(trim(keys(i)), code)
                if (code /= LIBMUSCLE_success) cycle
                if (len(text) > 0) text = text//', '
                text = text//trim(keys(i))//': '//show_data(item)
                call LIBMUSCLE_DataConstRef_free(item)
            end do
            text = '{'//text//'}'
        else
            text = show_grid(data)
        end if
    end function

    function show_grid(data) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        character(:), allocatable :: text, elements
        integer(LIBMUSCLE_size) :: extents(7)
        integer :: rank, i

        rank = int(data%num_dims())
        call data%shape(extents)
        if (data%is_a_grid_of_logical()) then
            text = 'bool'
            elements = logicals(data, rank, extents)
        else if (data%is_a_grid_of_int4()) then
            text = 'int32'
            elements = int4s(data, rank, extents)
        else if (data%is_a_grid_of_int8()) then
            text = 'int64'
            elements = int8s(data, rank, extents)
        else if (data%is_a_grid_of_real4()) then
            text = 'float32'
            elements = real4s(data, rank, extents)
        else
            text = 'float64'
            elements = real8s(data, rank, extents)
        end if
        text = 'grid '//text//' ('
        do i = 1, rank
            text = text//int_text(int(extents(i), LIBMUSCLE_int8))//','
        end do
        text = text//')'
        if (data%has_indexes()) then
            do i = 1, rank
                text = text//' '//data%index(int(i, LIBMUSCLE_size))
            end do
        end if
        text = text//' '//elements
    end function

    ! The bytes of elements of each type, the last index fastest.
    function logicals(data, rank, n) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        integer, intent(in) :: rank
        integer(LIBMUSCLE_size), intent(in) :: n(:)
        character(:), allocatable :: text
        logical :: values(n(1))
        if (rank /= 1) stop 2
        call data%elements(values)
        text = hex(merge(1_c_int8_t, 0_c_int8_t, values))
    end function

    function int4s(data, rank, n) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        integer, intent(in) :: rank
        integer(LIBMUSCLE_size), intent(in) :: n(:)
        character(:), allocatable :: text
        integer(LIBMUSCLE_int4) :: values(n(1), n(2))
        if (rank /= 2) stop 2
        call data%elements(values)
        text = hex(transfer(transpose(values), [0_c_int8_t]))
    end function

    function int8s(data, rank, n) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        integer, intent(in) :: rank
        integer(LIBMUSCLE_size), intent(in) :: n(:)
        character(:), allocatable :: text
        integer(LIBMUSCLE_int8) :: values(n(1), n(2))
        if (rank /= 2) stop 2
        call data%elements(values)
        text = hex(transfer(transpose(values), [0_c_int8_t]))
    end function

    function real4s(data, rank, n) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        integer, intent(in) :: rank
        integer(LIBMUSCLE_size), intent(in) :: n(:)
        character(:), allocatable :: text
        real(LIBMUSCLE_real4) :: values(n(1), n(2), n(3))
        if (rank /= 3) stop 2
        call data%elements(values)
        text = hex(transfer(reshape(values, int([n(3), n(2), n(1)]), order=[3, 2, 1]), [0_c_int8_t]))
    end function

    function real8s(data, rank, n) result(text)
        type(LIBMUSCLE_DataConstRef), intent(in) :: data
        integer, intent(in) :: rank
        integer(LIBMUSCLE_size), intent(in) :: n(:)
        character(:), allocatable :: text
        real(LIBMUSCLE_real8), allocatable :: one(:), two(:, :)
        if (rank == 1) then
            allocate (one(n(1)))
            call data%elements(one)
            text = hex(transfer(one, [0_c_int8_t]))
        else
            allocate (two(n(1), n(2)))
            call data%elements(two)
            text = hex(transfer(transpose(two), [0_c_int8_t]))
        end if
    end function
end module
