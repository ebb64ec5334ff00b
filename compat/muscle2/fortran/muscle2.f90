!> The constants of MUSCLE 2, and interfaces of its procedures.
!>
!> A program may use this module in the place of constants of its own. Names of ports and properties end with a NUL
!> (achar(0)), or with spaces. The third argument of MUSCLE_Receive is the room of the array, and then the number of elements
!> received.
module muscle2
  implicit none
  public

  integer, parameter :: MUSCLE_DOUBLE = 0
  integer, parameter :: MUSCLE_FLOAT = 1
  integer, parameter :: MUSCLE_INT32 = 2
  integer, parameter :: MUSCLE_INT64 = 3
  integer, parameter :: MUSCLE_STRING = 4
  integer, parameter :: MUSCLE_BOOLEAN = 5
  integer, parameter :: MUSCLE_RAW = 6

  interface
    !> `argv` has the arguments of the program, each ended by a NUL. It is not used.
    subroutine MUSCLE_Init(argc, argv)
      integer, intent(inout) :: argc
      character(len=*), intent(in) :: argv
    end subroutine

    subroutine MUSCLE_Finalize()
    end subroutine

    subroutine MUSCLE_Kernel_Name(name)
      character(len=*), intent(out) :: name
    end subroutine

    subroutine MUSCLE_Get_Property(name, value)
      character(len=*), intent(in) :: name
      character(len=*), intent(out) :: value
    end subroutine

    !> 1 or 0.
    subroutine MUSCLE_Has_Property(name, has)
      character(len=*), intent(in) :: name
      integer, intent(out) :: has
    end subroutine

    !> 1 or 0.
    subroutine MUSCLE_Will_Stop(stops)
      integer, intent(out) :: stops
    end subroutine

    !> Sends `n` elements of an array, or a single value, of the type that `datatype` says.
    subroutine MUSCLE_Send(port, array, n, datatype)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: array
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: array
      type(*), intent(in) :: array
      character(len=*), intent(in) :: port
      integer, intent(in) :: n, datatype
    end subroutine

    !> Receives into an array with room for `n` elements. `n` becomes their number; of a text, that of its letters and the NUL.
    subroutine MUSCLE_Receive(port, array, n, datatype)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: array
      !DEC$ ATTRIBUTES NO_ARG_CHECK :: array
      type(*) :: array
      character(len=*), intent(in) :: port
      integer, intent(inout) :: n
      integer, intent(in) :: datatype
    end subroutine
  end interface
end module
