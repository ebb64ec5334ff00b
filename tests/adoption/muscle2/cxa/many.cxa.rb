# A ring made by a loop, a fan by a mapper, terminals, MPI, Python, MATLAB.
ring = (0...4).map { |i| PythonInstance.new("node-#{i}", 'node.py', {args: "--place #{i}"}) }
ring.each_with_index { |node, i| node.couple(ring[(i + 1) % 4], {'right' => 'left'}) }
source = Terminal.new('source', 'muscle.core.conduit.terminal.DoubleFileSource')
source['file'] = 'in.dat'
solver = MPIInstance.new('solver', './solver', {mpiexec_args: '-np 4 --bind-to core'})
copies = cxa.add_instance('copies', 'muscle.core.kernel.DuplicationMapper')
sink = Terminal.new('sink', 'muscle.core.conduit.terminal.NullSink')
file = cxa.add_terminal('file', 'muscle.core.conduit.terminal.DoubleFileSink')
file['file'] = 'results'
plot = MatlabInstance.new('plot', 'plot.m', {matlab: '/opt/matlab'})
source.couple(solver, 'initial')
solver.couple(copies, {'state' => 'in'})
copies.couple(sink, {'a' => 'data'})
copies.couple(file, {'b' => 'data'})
copies.couple(plot, {'c' => 'field'}, %w[thread console])
$env['steps'] = 3
