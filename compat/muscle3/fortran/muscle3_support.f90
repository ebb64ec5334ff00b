! What the modules ymmsl, libmuscle and libmuscle_mpi share: errors and texts of calls into C++.
module titin_muscle3_support
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private
    public :: failed, finished, last_text, text_at, refuse, command_line

    interface
        function last_error(text, length) bind(C, name="titin_muscle3_last_error")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), intent(out) :: text
            integer(c_size_t), intent(out) :: length
            integer(c_int) :: last_error
        end function

        subroutine set_error(text, length) bind(C, name="titin_muscle3_set_error")
            import :: c_char, c_size_t
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: length
        end subroutine
    end interface

contains

    ! Whether the last call into C++ has failed; the text of its error.
    function failed()
        logical :: failed
        type(c_ptr) :: text
        integer(c_size_t) :: length

        failed = last_error(text, length) /= 0
    end function

    function last_text()
        character(:), allocatable :: last_text
        type(c_ptr) :: text
        integer(c_size_t) :: length
        integer(c_int) :: code

        code = last_error(text, length)
        last_text = text_at(text, length)
    end function

    ! The end of each procedure: hands out the code of the last call's error. Without an argument for the code an error
    ! stops the program with its text.
    subroutine finished(err_code)
        integer, optional, intent(out) :: err_code
        type(c_ptr) :: text
        integer(c_size_t) :: length
        integer(c_int) :: code

        code = last_error(text, length)
        if (present(err_code)) then
            err_code = code
        else if (code /= 0) then
            write (error_unit, '(a)') text_at(text, length)
            stop 1
        end if
    end subroutine

    ! Makes an error that Fortran itself finds the last one.
    subroutine refuse(text)
        character(*), intent(in) :: text
        call set_error(text, len(text, c_size_t))
    end subroutine

    ! A copy of a text of C++; no text for a null pointer.
    function text_at(text, length)
        type(c_ptr), intent(in) :: text
        integer(c_size_t), intent(in) :: length
        character(:), allocatable :: text_at
        character(kind=c_char), pointer :: bytes(:)
        integer(c_size_t) :: i

        if (.not. c_associated(text)) then
            text_at = ''
            return
        end if
        allocate (character(length) :: text_at)
        call c_f_pointer(text, bytes, [length])
        do i = 1, length
            text_at(i:i) = bytes(i)
        end do
    end function

    ! The words of the command line, each followed by a NUL.
    function command_line()
        character(:), allocatable :: command_line
        character(:), allocatable :: word
        integer :: i, length

        command_line = ''
        do i = 0, command_argument_count()
            call get_command_argument(i, length=length)
            allocate (character(length) :: word)
            call get_command_argument(i, value=word)
            command_line = command_line//word//c_null_char
            deallocate (word)
        end do
    end function
end module
