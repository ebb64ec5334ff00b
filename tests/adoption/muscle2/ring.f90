! A program as those of MUSCLE 2's manual: no module, constants of its own, texts that end with a NUL.
program ring
  implicit none
  integer, parameter :: MUSCLE_DOUBLE = 0, MUSCLE_INT64 = 3, MUSCLE_STRING = 4, MUSCLE_RAW = 6
  integer :: argc, i, n, stops, has
  integer(kind=8) :: many(3)
  real(kind=8) :: x(6)
  character(len=20) :: name, value
  character(len=12) :: text
  character(len=200) :: argv
  integer(kind=1) :: bytes(4)

  argc = command_argument_count()
  argv = char(0)
  call MUSCLE_Init(argc, argv)
  call MUSCLE_Kernel_Name(name)
  call MUSCLE_Get_Property('k'//char(0), value)
  call MUSCLE_Has_Property('missing'//char(0), has)
  write (*, '(5a,i0)') trim(name), ' k=', trim(value), ' has', ' ', has
  do
    call MUSCLE_Will_Stop(stops)
    if (stops /= 0) exit
    x = [(real(i, 8) / 3, i=1, 6)]
    call MUSCLE_Send('out'//char(0), x, 6, MUSCLE_DOUBLE)
    n = 6
    call MUSCLE_Receive('in'//char(0), x, n, MUSCLE_DOUBLE)
    write (*, '(i0,1x,f0.15)') n, x(6)
  end do
  many = [2_8**40, -1_8, 5_8]
  call MUSCLE_Send('many  ', many, 3, MUSCLE_INT64)
  text = 'hello'
  call MUSCLE_Send('word'//char(0), text//char(0), 13, MUSCLE_STRING)
  bytes = [1_1, -1_1, 0_1, 127_1]
  call MUSCLE_Send('bytes'//char(0), bytes, 4, MUSCLE_RAW)
  if (argc > 0) then
    n = 2
    call MUSCLE_Receive('in'//char(0), x, n, MUSCLE_DOUBLE)
  end if
  call MUSCLE_Finalize()
end program
