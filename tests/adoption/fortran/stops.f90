! An error without the argument for it: the program stops with the text.
program stops
    use ymmsl
    use libmuscle
    implicit none
    type(LIBMUSCLE_Data) :: d
    type(LIBMUSCLE_Instance) :: instance
    character(16) :: way

    call get_command_argument(1, way)
    select case (way)
    case ('type')
        d = LIBMUSCLE_Data_create('text')
        print *, d%as_int()
    case ('null')
        print *, d%is_nil()
    case ('instance')
        instance = LIBMUSCLE_Instance_create()
    end select
    print *, 'not reached'
end program
