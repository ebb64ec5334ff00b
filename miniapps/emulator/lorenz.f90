! The slow scale of the two-scale Lorenz system, and at first the fine scale too. In each step the columns go to a learner, which
! answers with what it takes the fine scale's effect U to be. Later that answer is used in place of the fine scale.
program lorenz
   use, intrinsic :: iso_fortran_env, only: real64
   use mpi
   use titin
   use titin_mpi
   use lorenz96
   implicit none

   type(titin_instance) :: instance
   type(titin_decomposition) :: columns
   type(titin_field) :: state, effect
   type(circle) :: system
   !> U of this step, as the learner answers, and of the step before.
   real(real64), allocatable :: u(:), answer(:), before(:)
   character(len=:), allocatable :: then
   real(real64) :: dt, spin_up, learn, use
   integer :: substeps, seed, step, steps, learned, out, ierr
   !> Whether there is a learner, and whether the fine scale is computed in this step.
   logical :: coupled, computes

   call MPI_Init(ierr)
   call instance%open(o_i=["state"], s=["effect"], ranks=titin_mpi_ranks(MPI_COMM_WORLD))
   call instance%setting("columns", system%columns)
   call instance%setting("cells", system%cells)
   call instance%setting("forcing", system%forcing)
   call instance%setting("coupling", system%coupling)
   call instance%setting("speed", system%speed)
   call instance%setting("ratio", system%ratio)
   call instance%setting("dt", dt)
   call instance%setting("substeps", substeps)
   call instance%setting("spin_up", spin_up)
   call instance%setting("learn", learn)
   call instance%setting("use", use)
   call instance%setting("then", then)
   call instance%setting("seed", seed)

   coupled = instance%is_connected("state") .and. instance%is_connected("effect")
   if (system%columns < max(4, instance%ranks())) call give_up("columns has to be 4 at least, and as many as there are ranks")
   if (system%cells < 2) call give_up("cells has to be 2 at least")
   if (substeps < 1 .or. .not. dt > 0) call give_up("dt and substeps have to be positive")
   if (all(then /= [character(len=8) :: "learned", "computed", "nothing"])) &
      call give_up("then is '"//then//"', and has to be learned, computed or nothing")
   if (then == "learned" .and. .not. coupled) call give_up("nothing is connected that learns: take another value for then")

   call system%start(seed)
   allocate (u(system%width), answer(system%width), before(system%width))
   if (coupled) then
      call columns%new([system%columns])
      call columns%grid([instance%ranks()])
      call instance%field("state", columns, state, [titin_f64, titin_f64])
      call instance%field("effect", columns, effect, titin_f64)
   end if

   do while (instance%reuse())
      if (instance%rank() == 0) open (newunit=out, file="series.bin", access="stream", status="replace", action="write")
      do step = 1, nint(spin_up/dt)
         call compute()
      end do
      u = system%effect()
      learned = nint(learn/dt)
      steps = learned + nint(use/dt)
      do step = 0, steps - 1
         before = u
         computes = step < learned .or. then == "computed"
         if (computes) u = system%effect()
         if (coupled) then
            ! O_I
            call state%send(system%x, u, timestamp=step*dt)
            ! S
            call effect%receive(answer)
         end if
         if (computes) then
            call keep()
            call compute()
         else if (then == "learned") then
            u = answer
            call keep()
            ! By the last two answers, what U is in the middle of the step: of second order, as Adams and Bashforth have it.
            call system%advance_slow(dt, 1.5_real64*u - 0.5_real64*before)
         else
            u = 0
            call keep()
            call system%advance_slow(dt, u)
         end if
      end do
      if (instance%rank() == 0) close (out)
   end do
   call instance%close()
   call MPI_Finalize(ierr)

contains

   !> A step with the fine scale, which needs shorter ones.
   subroutine compute()
      integer :: part
      do part = 1, substeps
         call system%advance(dt/substeps)
      end do
   end subroutine

   !> Adds X and U of all columns to series.bin.
   subroutine keep()
      real(real64), dimension(system%columns) :: x_all, u_all
      x_all = system%whole(system%x)
      u_all = system%whole(u)
      if (instance%rank() == 0) write (out) x_all, u_all
   end subroutine

   subroutine give_up(text)
      character(len=*), intent(in) :: text
      call instance%fail(text)
      error stop 1
   end subroutine
end program
