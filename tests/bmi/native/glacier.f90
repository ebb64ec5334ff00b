!> Ice whose columns are dealt out to the ranks, each by itself: a model in Fortran by BMI's C entry, with the exported
!> functions of a parallel model.
module glacier
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none
  private

  integer, parameter :: columns = 11
  ! The members of the structure, behind the model's own memory.
  integer, parameter :: members = 41

  type :: model
     real(c_double) :: time = 0
     integer, allocatable :: numbers(:)
     real(c_double), allocatable :: height(:), fallen(:)
  end type model

  integer :: communicator = MPI_COMM_NULL

contains

  !> Fills BMI's structure: pointers to functions, in the standard's order; what the model does not have stays empty.
  function register_bmi(structure) result(filled) bind(c)
    type(c_ptr), value :: structure
    type(c_ptr) :: filled
    type(c_ptr), pointer :: all(:)
    type(c_funptr), pointer :: functions(:)
    call c_f_pointer(structure, all, [members + 1])
    all(1) = c_null_ptr
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
    functions(28) = c_funloc(grid_type)
    filled = structure
  end function register_bmi

  !> The communicator of the ranks, before `initialize`.
  integer(c_int) function parallel_initialize(structure, handle) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: handle
    communicator = handle
    parallel_initialize = 0
  end function parallel_initialize

  !> The number in the whole of each column of this rank, from 0.
  integer(c_int) function get_grid_global_node_nr(structure, grid, numbers) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    integer(c_int) :: numbers(*)
    type(model), pointer :: own
    own => of(structure)
    numbers(:size(own%numbers)) = own%numbers
    get_grid_global_node_nr = 0
  end function get_grid_global_node_nr

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
    integer :: rank, ranks, ierr, i
    call MPI_Comm_rank(communicator, rank, ierr)
    call MPI_Comm_size(communicator, ranks, ierr)
    call c_f_pointer(structure, memory)
    allocate (own)
    own%numbers = [(i, i=rank, columns - 1, ranks)]
    own%height = 100d0 + own%numbers
    own%fallen = 0 * own%height
    memory = c_loc(own)
    initialize = 0
  end function initialize

  integer(c_int) function update(structure) bind(c)
    type(c_ptr), value :: structure
    type(model), pointer :: own
    own => of(structure)
    own%height = own%height * 0.5d0 + own%fallen
    own%time = own%time + 1
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
    component_name = put(to, "Glacier")
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
    inputs = put(to(1), "ice__fallen")
  end function inputs

  integer(c_int) function outputs(structure, to) bind(c)
    type(c_ptr), value :: structure
    type(c_ptr) :: to(1)
    outputs = put(to(1), "ice__height")
  end function outputs

  integer(c_int) function var_grid(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    integer(c_int) :: to
    to = 0
    var_grid = 0
  end function var_grid

  integer(c_int) function var_type(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name, to
    var_type = put(to, "double precision")
  end function var_type

  integer(c_int) function var_units(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name, to
    var_units = put(to, "m")
  end function var_units

  integer(c_int) function var_itemsize(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    integer(c_int) :: to
    to = 8
    var_itemsize = 0
  end function var_itemsize

  integer(c_int) function var_nbytes(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    integer(c_int) :: to
    type(model), pointer :: own
    own => of(structure)
    to = 8 * size(own%numbers)
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
    to = 4
    end_time = 0
  end function end_time

  integer(c_int) function time_units(structure, to) bind(c)
    type(c_ptr), value :: structure, to
    time_units = put(to, "s")
  end function time_units

  integer(c_int) function time_step(structure, to) bind(c)
    type(c_ptr), value :: structure
    real(c_double) :: to
    to = 1
    time_step = 0
  end function time_step

  integer(c_int) function value(structure, name, to) bind(c)
    type(c_ptr), value :: structure, name
    real(c_double) :: to(*)
    type(model), pointer :: own
    own => of(structure)
    to(:size(own%numbers)) = own%height
    value = 0
  end function value

  integer(c_int) function set_value(structure, name, from) bind(c)
    type(c_ptr), value :: structure, name
    real(c_double) :: from(*)
    type(model), pointer :: own
    own => of(structure)
    own%fallen = from(:size(own%numbers))
    set_value = 0
  end function set_value

  integer(c_int) function grid_rank(structure, grid, to) bind(c)
    type(c_ptr), value :: structure
    integer(c_int), value :: grid
    integer(c_int) :: to
    to = 2
    grid_rank = 0
  end function grid_rank

  integer(c_int) function grid_type(structure, grid, to) bind(c)
    type(c_ptr), value :: structure, to
    integer(c_int), value :: grid
    grid_type = put(to, "points")
  end function grid_type

  !> Writes a text of C.
  integer(c_int) function put(to, from)
    type(c_ptr), value :: to
    character(len=*), intent(in) :: from
    character(kind=c_char), pointer :: text(:)
    integer :: i
    call c_f_pointer(to, text, [len(from) + 1])
    do i = 1, len(from)
       text(i) = from(i:i)
    end do
    text(len(from) + 1) = c_null_char
    put = 0
  end function put
end module glacier
