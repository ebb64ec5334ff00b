! Data, settings, messages and port descriptions without a run. Writes nothing if all is well.
module expectations
    implicit none
    integer :: failures = 0
contains
    subroutine expect(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what
        if (condition) return
        print '(a)', what
        failures = failures + 1
    end subroutine
end module

program data
    use ymmsl
    use libmuscle
    use expectations
    implicit none
    integer, parameter :: sz = LIBMUSCLE_size

    call scalars()
    call lists_and_dicts()
    call grids()
    call bytes()
    call settings()
    call messages()
    call ports()
    if (failures > 0) stop 1

contains

    subroutine scalars()
        type(LIBMUSCLE_Data) :: d, e
        character(:), allocatable :: text
        integer :: code
        integer(LIBMUSCLE_int1) :: small

        d = LIBMUSCLE_Data_create()
        call expect(d%is_nil() .and. .not. d%is_a_int(), 'nil')
        call d%set(10)
        call expect(d%is_a_int() .and. d%is_a_int1() .and. d%is_a_int2() .and. d%is_a_int4() .and. d%is_a_int8(), 'int')
        call expect(d%as_int() == 10 .and. d%as_int1() == 10 .and. d%as_int2() == 10 .and. d%as_int8() == 10, 'as int')
        call d%set(300)
        small = d%as_int1(code)
        call expect(code == LIBMUSCLE_bad_cast, 'a number that does not fit')
        call LIBMUSCLE_Data_set(d, 2.5_LIBMUSCLE_real4)
        call expect(d%is_a_real4() .and. .not. d%is_a_real8() .and. d%as_real4() == 2.5, 'real4')
        call LIBMUSCLE_Data_set(d, 2.5_LIBMUSCLE_real8)
        call expect(d%is_a_real8() .and. .not. d%is_a_real4() .and. d%as_real8() == 2.5d0, 'real8')
        call d%set(.true.)
        call expect(d%is_a_logical() .and. d%as_logical(), 'logical')
        text = LIBMUSCLE_Data_as_character(d, code)
        call expect(code == LIBMUSCLE_runtime_error, 'a logical is no text')
        e = LIBMUSCLE_Data_create('words')
        text = e%as_character(code)
        call expect(code == LIBMUSCLE_success .and. text == 'words', 'text')
        call d%set(e)
        call expect(d%as_character() == 'words', 'assigned')
        call LIBMUSCLE_Data_free(e)
        e = LIBMUSCLE_Data_create(d)
        call d%set_nil()
        call expect(e%is_nil(), 'a copy refers to the same data')
        call LIBMUSCLE_Data_free(d)
        call LIBMUSCLE_Data_free(e)
        e = LIBMUSCLE_Data_create(12_LIBMUSCLE_int2)
        call expect(e%as_int2() == 12, 'int2')
        call LIBMUSCLE_Data_free(e)
    end subroutine

    subroutine lists_and_dicts()
        type(LIBMUSCLE_Data) :: list, dict, item
        integer :: code
        character(:), allocatable :: text

        list = LIBMUSCLE_Data_create_nils(9_sz)
        call list%set_item(1_sz, .true.)
        call list%set_item(2_sz, 'text')
        call list%set_item(3_sz, 1_LIBMUSCLE_int1)
        call list%set_item(4_sz, 2_LIBMUSCLE_int2)
        call list%set_item(5_sz, 3_LIBMUSCLE_int4)
        call list%set_item(6_sz, 4_LIBMUSCLE_int8)
        call list%set_item(7_sz, 0.5_LIBMUSCLE_real4)
        call list%set_item(8_sz, 0.25_LIBMUSCLE_real8)
        dict = LIBMUSCLE_Data_create_dict()
        call list%set_item(9_sz, dict)
        call dict%set_item('key', 7)
        call expect(list%is_a_list() .and. list%size() == 9 .and. dict%is_a_dict() .and. dict%size() == 1, 'sizes')
        item = list%get_item(9_sz)
        call expect(item%is_a_dict() .and. item%size() == 1, 'a dict is shared')
        call LIBMUSCLE_Data_free(item)
        item = list%get_item(8_sz)
        call expect(item%as_real8() == 0.25d0, 'item 8')
        call LIBMUSCLE_Data_free(item)
        item = LIBMUSCLE_Data_get_item(list, 10_sz, code, text)
        call expect(code == LIBMUSCLE_out_of_range .and. index(text, 'a list of 9 items') > 0, 'beyond the end')
        item = LIBMUSCLE_Data_get_item(list, 'key', code)
        call expect(code == LIBMUSCLE_runtime_error, 'a list has no keys')
        call expect(dict%key(1_sz) == 'key', 'key')
        item = dict%value(1_sz)
        call expect(item%as_int() == 7, 'value')
        call LIBMUSCLE_Data_free(item)
        text = dict%key(2_sz, code)
        call expect(code == LIBMUSCLE_out_of_range, 'no second key')
        item = LIBMUSCLE_Data_create_list()
        call expect(item%is_a_list() .and. item%size() == 0, 'an empty list')
        call LIBMUSCLE_Data_free(item)
        call LIBMUSCLE_Data_free(list)
        call LIBMUSCLE_Data_free(dict)
    end subroutine

    subroutine grids()
        type(LIBMUSCLE_Data) :: d
        type(LIBMUSCLE_DataConstRef) :: c
        logical :: flags(3), flags_back(3), seven(2, 2, 2, 2, 2, 2, 2), seven_back(2, 2, 2, 2, 2, 2, 2)
        integer(LIBMUSCLE_int4) :: wholes(2, 3), wholes_back(2, 3), wrong(3, 2)
        integer(LIBMUSCLE_int8) :: longs(2, 3, 4), longs_back(2, 3, 4)
        real(LIBMUSCLE_real4) :: singles(4), singles_back(2)
        real(LIBMUSCLE_real8) :: doubles(2, 1, 2, 1, 3), doubles_back(2, 1, 2, 1, 3)
        integer(sz) :: extents(7)
        character(:), allocatable :: text
        integer :: code, i

        flags = [.true., .false., .true.]
        c = LIBMUSCLE_DataConstRef_create_grid(flags)
        call c%elements(flags_back)
        call expect(c%is_a_grid_of_logical() .and. all(flags .eqv. flags_back) .and. .not. c%has_indexes(), 'logicals')
        text = c%index(1_sz, code)
        call expect(code == LIBMUSCLE_runtime_error, 'no index names')
        call LIBMUSCLE_DataConstRef_free(c)

        seven = reshape([(mod(i, 3) == 0, i=1, 128)], shape(seven))
        d = LIBMUSCLE_Data_create_grid(seven, 'a', 'b', 'c', 'd', 'e', 'f', 'g')
        call d%elements(seven_back)
        call d%shape(extents)
        call expect(all(seven .eqv. seven_back) .and. d%num_dims() == 7 .and. all(extents == 2), 'seven dimensions')
        call expect(d%index(7_sz) == 'g', 'seven names')
        call LIBMUSCLE_Data_free(d)

        wholes = reshape([(i, i=1, 6)], shape(wholes))
        d = LIBMUSCLE_Data_create_grid(wholes, 'y', 'x')
        call d%elements(wholes_back)
        call expect(d%is_a_grid_of_int4() .and. all(wholes == wholes_back) .and. d%size() == 6 .and. d%index(2_sz) == 'x', 'int4')
        call d%elements(wrong, code, text)
        call expect(code == LIBMUSCLE_runtime_error .and. index(text, '(2, 3)') > 0 .and. index(text, '(3, 2)') > 0, 'shape')
        call d%elements(longs_back, code)
        call expect(code == LIBMUSCLE_runtime_error, 'type')
        call LIBMUSCLE_Data_free(d)

        longs = reshape([(int(i, LIBMUSCLE_int8)**5, i=1, 24)], shape(longs))
        d = LIBMUSCLE_Data_create_grid(longs)
        call d%elements(longs_back)
        call expect(d%is_a_grid_of_int8() .and. all(longs == longs_back), 'int8')
        call LIBMUSCLE_Data_free(d)

        singles = [0.5, 1.5, 2.5, 3.5]
        d = LIBMUSCLE_Data_create_grid(singles(2:4:2), 'x')
        call d%elements(singles_back)
        call expect(d%is_a_grid_of_real4() .and. all(singles_back == [1.5, 3.5]), 'a section')
        call LIBMUSCLE_Data_free(d)

        doubles = reshape([(1d0 / i, i=1, 12)], shape(doubles))
        d = LIBMUSCLE_Data_create_grid(doubles)
        call d%elements(doubles_back)
        call expect(d%is_a_grid_of_real8() .and. all(doubles == doubles_back), 'real8')
        call LIBMUSCLE_Data_free(d)
    end subroutine

    subroutine bytes()
        type(LIBMUSCLE_Data) :: d
        character(1), target :: buffer(4)
        character(1) :: back(4), short(2)
        integer :: code

        buffer = ['a', 'b', 'c', 'd']
        d = LIBMUSCLE_Data_create_byte_array(buffer)
        buffer(1) = 'z'
        call d%as_byte_array(back)
        call expect(d%is_a_byte_array() .and. d%size() == 4 .and. all(back == ['z', 'b', 'c', 'd']), 'bytes')
        call d%as_byte_array(short, code)
        call expect(code == LIBMUSCLE_runtime_error, 'too little room')
        call LIBMUSCLE_Data_free(d)
        d = LIBMUSCLE_Data_create_byte_array(3_sz)
        call expect(d%is_a_byte_array() .and. d%size() == 3, 'empty bytes')
        call LIBMUSCLE_Data_free(d)
    end subroutine

    subroutine settings()
        type(YMMSL_Settings) :: s, t
        type(LIBMUSCLE_Data) :: d
        real(YMMSL_real8) :: reals(2), table(2, 2)
        integer(YMMSL_int8) :: wholes(3), whole
        real(YMMSL_real8) :: real_number
        integer :: code
        character(:), allocatable :: text

        s = YMMSL_Settings_create()
        call expect(s%empty() .and. s%size() == 0, 'no settings')
        call s%set('text', 'word')
        call s%set('int4', 5)
        call s%set('int8', 6_YMMSL_int8)
        call s%set('real8', 0.5d0)
        call s%set('flag', .true.)
        call s%set('wholes', [1_YMMSL_int8, 2_YMMSL_int8, 3_YMMSL_int8])
        call s%set('reals', [0.5d0, 1.5d0])
        call YMMSL_Settings_set(s, 'table', reshape([1d0, 2d0, 3d0, 4d0], [2, 2]))
        call expect(s%size() == 8 .and. s%contains('flag') .and. .not. s%contains('none'), 'eight')
        call expect(s%is_a_character('text') .and. s%is_a_int4('int4') .and. s%is_a_int8('int4'), 'types')
        call expect(s%is_a_real8('real8') .and. s%is_a_logical('flag') .and. .not. s%is_a_int4('flag'), 'more types')
        call expect(s%get_as_character('text') == 'word' .and. s%get_as_int4('int4') == 5, 'values')
        call expect(s%get_as_int8('int8') == 6, 'a long value')
        call expect(s%get_as_real8('real8') == 0.5d0 .and. s%get_as_logical('flag'), 'more values')
        call s%get_as_int8array('wholes', wholes)
        call s%get_as_real8array('reals', reals)
        call s%get_as_real8array2('table', table)
        call expect(all(wholes == [1, 2, 3]) .and. all(reals == [0.5d0, 1.5d0]), 'lists')
        call expect(table(1, 2) == 3 .and. table(2, 1) == 2, 'a table')
        whole = s%get_as_int8('none', code)
        call expect(code == YMMSL_out_of_range, 'missing')
        real_number = s%get_as_real8('text', code, text)
        call expect(code == YMMSL_bad_cast .and. len(text) > 0, 'of another type')
        d = LIBMUSCLE_Data_create(s)
        t = d%as_settings()
        call expect(d%is_a_settings() .and. t%equals(s), 'as data')
        call expect(s%erase('flag') == 1 .and. s%erase('flag') == 0 .and. .not. t%equals(s), 'erased')
        call s%clear()
        call s%set('only', 1)
        call expect(s%key(1_YMMSL_size) == 'only', 'key')
        text = s%key(2_YMMSL_size, code)
        call expect(code == YMMSL_out_of_range, 'no second key')
        call LIBMUSCLE_Data_free(d)
        call YMMSL_Settings_free(s)
        call YMMSL_Settings_free(t)
    end subroutine

    subroutine messages()
        type(LIBMUSCLE_Message) :: m
        type(LIBMUSCLE_Data) :: d
        type(LIBMUSCLE_DataConstRef) :: c
        type(YMMSL_Settings) :: s, t

        d = LIBMUSCLE_Data_create(3)
        s = YMMSL_Settings_create()
        call s%set('k', 1)
        m = LIBMUSCLE_Message_create(1.5d0, 2.5d0, d, s)
        call expect(m%timestamp() == 1.5d0 .and. m%next_timestamp() == 2.5d0 .and. m%has_settings(), 'a message')
        t = m%get_settings()
        call expect(t%equals(s), 'its settings')
        call m%unset_settings()
        call m%unset_next_timestamp()
        call m%set_timestamp(9d0)
        call expect(.not. m%has_settings() .and. .not. m%has_next_timestamp() .and. m%timestamp() == 9d0, 'changed')
        call m%set_next_timestamp(10d0)
        call m%set_settings(s)
        call expect(m%next_timestamp() == 10d0 .and. m%has_settings(), 'changed again')
        call d%set('other')
        c = LIBMUSCLE_DataConstRef_create(4)
        call m%set_data(c)
        call LIBMUSCLE_DataConstRef_free(c)
        c = m%get_data()
        call expect(c%as_int() == 4, 'its data')
        call LIBMUSCLE_DataConstRef_free(c)
        call m%set_data(d)
        call LIBMUSCLE_Message_free(m)
        m = LIBMUSCLE_Message_create(1d0, d, s)
        call expect(m%has_settings() .and. .not. m%has_next_timestamp(), 'another message')
        call LIBMUSCLE_Message_free(m)
        call LIBMUSCLE_Data_free(d)
        call YMMSL_Settings_free(s)
        call YMMSL_Settings_free(t)
    end subroutine

    subroutine ports()
        type(LIBMUSCLE_PortsDescription) :: p
        character(:), allocatable :: text
        integer :: code

        p = LIBMUSCLE_PortsDescription_create()
        call p%add(YMMSL_Operator_O_I, 'a')
        call p%add(YMMSL_Operator_O_I, 'b[]')
        call expect(p%num_ports(YMMSL_Operator_O_I) == 2 .and. p%num_ports(YMMSL_Operator_S) == 0, 'ports')
        call expect(p%get(YMMSL_Operator_O_I, 2_sz) == 'b[]', 'a port')
        text = p%get(YMMSL_Operator_O_I, 3_sz, code)
        call expect(code == LIBMUSCLE_out_of_range, 'no third port')
        call LIBMUSCLE_PortsDescription_free(p)
    end subroutine
end program
