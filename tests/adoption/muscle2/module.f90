! The same interface by the module.
program with_module
  use muscle2
  implicit none
  integer :: argc = 0, n
  real(kind=4) :: x(2)
  character(len=8) :: name
  integer :: whole(2) = [1, 2]

  call MUSCLE_Init(argc, '')
  call MUSCLE_Kernel_Name(name)
  n = 2
  call MUSCLE_Receive('in'//achar(0), x, n, MUSCLE_FLOAT)
  write (*, '(a,i0,2f6.2)') trim(name), n, x
  call MUSCLE_Send('back', whole, 2, MUSCLE_INT32)
  call MUSCLE_Send('word', 'word', 4, MUSCLE_STRING)
  call MUSCLE_Finalize()
end program
