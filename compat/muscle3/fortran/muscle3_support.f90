! What the modules ymmsl, libmuscle and libmuscle_mpi share: errors and texts of calls into C++.
module titin_muscle3_support
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: error_unit
    implicit none
    private
    public :: finished, text_at, refuse, command_line

    interface
        function last_error(text, length) bind(C, name="titin_muscle3_last_error")
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), intent(out) :: text
            integer(c_size_t), intent(out) :: length
            integer(c_int) :: last_error
        end function
    end interface

contains

    ! The end of each procedure: hands out the error of the last call into C++. A procedure without err_code stops the
    ! program with the text of the error.
    subroutine finished(err_code, err_msg)
        integer, optional, intent(out) :: err_code
        character(:), allocatable, optional, intent(out) :: err_msg
        type(c_ptr) :: text
        integer(c_size_t) :: length
        integer :: code

        code = last_error(text, length)
        if (present(err_code)) err_code = code
        if (code == 0) return
        if (present(err_msg)) err_msg = text_at(text, length)
        if (present(err_code)) return
        write (error_unit, '(a)') text_at(text, length)
        stop 1
    end subroutine

    ! An error that Fortran itself finds: as `finished`, with this code and text.
    subroutine refuse(code, text, err_code, err_msg)
        integer, intent(in) :: code
        character(*), intent(in) :: text
        integer, optional, intent(out) :: err_code
        character(:), allocatable, optional, intent(out) :: err_msg

        if (present(err_code)) err_code = code
        if (present(err_msg)) err_msg = text
        if (present(err_code)) return
        write (error_unit, '(a)') text
        stop 1
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
