!> Snow that falls and melts on a rectilinear grid, in single precision: a model in Fortran by BMI's C entry.
module snow
  use, intrinsic :: iso_c_binding
  implicit none
  private

  integer, parameter :: nx = 4, ny = 3
  ! The members of the structure, behind the model's own memory.
  integer, parameter :: members = 41

  type :: model
     real(c_double) :: time = 0, step = 0.5d0, end = 4
     real(c_float) :: depth(nx, ny) = 1, fallen(nx, ny) = 0
  end type model

contains

  !> Fills BMI's structure: pointers to functions, in the standard's order; what the model does not have stays empty.
  function register_bmi(structure) result(filled) bind(c)
    type(c_ptr), value :: structure
    type(c_ptr) :: filled
    type(c_ptr), pointer :: own
    type(c_funptr), pointer :: functions(:)
    type(c_ptr), pointer :: all(:)
    call c_f_pointer(structure, own)
    own = c_null_ptr
    call c_f_pointer(structure, all, [members + 1])
    call c_f_pointer(c_loc(all(2)), functions, [members])
    functions = c_null_funptr
    functions(1) = c_funloc(initialize)
    functions(2) = c_funloc(update)
    functions(4) = c_funloc(finalize)
    functions(5) = c_funloc(component_name)
    functions(6) = c_funloc(one)
    functions(7) = c_funloc(one)
    functions(8) = c_funloc(inputs)
    functions(9) = c_funloc(outputs)
    functions(10) = c_funloc(var_grid)
    functions(11) = c_funloc(var_type)
    functions(12) = c_funloc(var_units)
    functions(13) = c_funloc(var_itemsize)
    functions(14) = c_funloc(var_nbytes)
    functions(16) = c_funloc(current_time)
    functions(17) = c_funloc(start_time)
    functions(18) = c_funloc(end_time)
    functions(19) = c_funloc(time_units)
    functions(20) = c_funloc(time_step)
    functions(21) = c_funloc(value)
    functions(24) = c_funloc(set_value)
    functions(26) = c_funloc(grid_rank)
    functions(27) = c_funloc(grid_size)
    functions(28) = c_funloc(grid_type)
    functions(29) = c_funloc(grid_shape)
    functions(32) = c_funloc(grid_x)
    functions(33) = c_funloc(grid_y)
    filled = structure
  end function register_bmi

  function of(structure) result(own)
    type(c_ptr), value :: structure
    type(model), pointer :: own
    type(c_ptr), pointer :: memory
    call c_f_pointer(structure, memory)
    call c_f_pointer(memory, own)
  end function of

  integer(c_int) function initialize(structure, config) bind(c)
    type(c_ptr), value :: structure, config
    type(c_ptr), pointer :: memory
    type(model), pointer :: own
    call c_f_pointer(structure, memory)
    allocate (own)
    memory = c_loc(own)
    initialize = 0
  end function initialize

  integer(c_int) function update(structure) bind(c)
    type(c_ptr), value :: structure
    type(model), pointer :: own
    own => of(structure)
    own%depth = own%depth * 0.9 + real(own%step, c_float) * own%fallen
    own%time = own%time + own%step
    update = 0
  end function update

  integer(c_int) function finalize(structure) bind(c)
    type(c_ptr), value :: structure
    type(model), pointer :: own
    own => of(structure)
    deallocate (own)
    finalize = 0
  end function finalize

  integer(c_int) function component_name(structure, to) bind(c)
    type(c_ptr), value :: structure, to
    component_name = put(to, "Snow")
  end function component_name

  integer(c_int) function one(structure, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int) :: to
    to = 1
    one = 0
  end function one

  integer(c_int) function inputs(structure, to) bind(c)
    type(c_ptr), value :: structure
    type(c_ptr) :: to(1)
    inputs = put(to(1), "snow__fallen")
  end function inputs

  integer(c_int) function outputs(structure, to) bind(c)
    type(c_ptr), value :: structure
    type(c_ptr) :: to(1)
    outputs = put(to(1), "snow__depth")
  end function outputs

  integer(c_int) function var_grid(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    integer(c_int) :: to
    to = 0
    var_grid = 0
  end function var_grid

  integer(c_int) function var_type(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name, to
    var_type = put(to, "real")
  end function var_type

  integer(c_int) function var_units(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name, to
    var_units = put(to, "m")
  end function var_units

  integer(c_int) function var_itemsize(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    integer(c_int) :: to
    to = 4
    var_itemsize = 0
  end function var_itemsize

  integer(c_int) function var_nbytes(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    integer(c_int) :: to
    to = 4 * nx * ny
    var_nbytes = 0
  end function var_nbytes

  integer(c_int) function current_time(structure, to) bind(c)
    type(c_ptr), value :: structure
    real(c_double) :: to
    type(model), pointer :: own
    own => of(structure)
    to = own%time
    current_time = 0
  end function current_time

  integer(c_int) function start_time(structure, to) bind(c)
    type(c_ptr), value :: structure
    real(c_double) :: to
    to = 0
    start_time = 0
  end function start_time

  integer(c_int) function end_time(structure, to) bind(c)
    type(c_ptr), value :: structure
    real(c_double) :: to
    type(model), pointer :: own
    own => of(structure)
    to = own%end
    end_time = 0
  end function end_time

  integer(c_int) function time_units(structure, to) bind(c)
    type(c_ptr), value :: structure, to
    time_units = put(to, "s")
  end function time_units

  integer(c_int) function time_step(structure, to) bind(c)
    type(c_ptr), value :: structure
    real(c_double) :: to
    type(model), pointer :: own
    own => of(structure)
    to = own%step
    time_step = 0
  end function time_step

  integer(c_int) function value(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    real(c_float) :: to(nx, ny)
    type(model), pointer :: own
    own => of(structure)
    to = merge(own%depth, own%fallen, length(name) == len("snow__depth"))
    value = 0
  end function value

  integer(c_int) function set_value(structure, name, from) bind(c)
    type(c_ptr), value :: structure, name
    real(c_float) :: from(nx, ny)
    type(model), pointer :: own
    own => of(structure)
    own%fallen = from
    set_value = 0
  end function set_value

  integer(c_int) function grid_rank(structure, grid, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    integer(c_int) :: to
    to = 2
    grid_rank = 0
  end function grid_rank

  integer(c_int) function grid_size(structure, grid, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    integer(c_int) :: to
    to = nx * ny
    grid_size = 0
  end function grid_size

  integer(c_int) function grid_type(structure, grid, to) bind(c)
    type(c_ptr), value :: structure, to
    integer(c_int), value :: grid
    grid_type = put(to, "rectilinear")
  end function grid_type

  integer(c_int) function grid_shape(structure, grid, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    integer(c_int) :: to(2)
    to = [ny, nx]
    grid_shape = 0
  end function grid_shape

  integer(c_int) function grid_x(structure, grid, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    real(c_double) :: to(nx)
    to = [0, 1, 3, 6]
    grid_x = 0
  end function grid_x

  integer(c_int) function grid_y(structure, grid, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    real(c_double) :: to(ny)
    to = [0, 2, 5]
    grid_y = 0
  end function grid_y

  integer(c_int) function put(to, text)
    type(c_ptr), value :: to
    character(*), intent(in) :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(to, letters, [len(text) + 1])
    do i = 1, len(text)
       letters(i) = text(i:i)
    end do
    letters(len(text) + 1) = c_null_char
    put = 0
  end function put

  integer function length(text)
    type(c_ptr), value :: text
    character(kind=c_char), pointer :: letters(:)
    call c_f_pointer(text, letters, [64])
    do length = 0, 63
       if (letters(length + 1) == c_null_char) return
    end do
  end function length

end module snow
