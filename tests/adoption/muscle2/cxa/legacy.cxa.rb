# The older syntax: the CxA joins kernels by their names.
m = Muscle.LAST
m.add_classpath File.dirname(__FILE__) + '/some.jar'
cxa = Cxa.LAST
cxa.env['max_timesteps'] = 3
cxa.env['w:dt'] = 1
cxa.env['w:command'] = env['MUSCLE_HOME'] + '/share/writer'
cxa.add_kernel('w', 'examples.own.Kernel')
cxa.add_kernel('r', 'examples.simplejava.ConsoleWriter')
cs = cxa.cs
cs.attach('w' => 'r') {
  tie('data', 'data', Conduit.new('muscle.core.conduit.AutomaticConduit', ['muscle.core.conduit.filter.MultiplyFilterDouble_0.5', 'drop_3']))
  tie('more')
}
cs.attach('w' => 'w') { tie('writer', 'reader') }
