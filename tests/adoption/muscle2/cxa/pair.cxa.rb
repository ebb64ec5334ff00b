# The newer syntax: instances couple themselves.
abort 'this is a configuration' if __FILE__ == $0
dir = '/opt/models'
macro = NativeInstance.new('macro', "#{dir}/macro", {'k' => 2.5, args: '-v "two words"'})
micro = Instance.new('micro', 'muscle.core.standalone.NativeKernel')
micro['command'] = "#{dir}/micro"
micro['T'] = '10 ms'
micro['dt'] = '1 ms'
micro['gone'] = 1
micro['gone'] = nil
macro.couple(micro, {'state_out' => 'initial'}, ['multiply_2.0', 'serialize', 'compress'], ['decompress', 'deserialize', 'multiply_0.5'])
micro.couple(macro, {'final' => 'state_in'})
$env['max_timesteps'] = 4
$env['default_dt'] = 1
$env['label'] = 'yes'
$env['numbers'] = [1, 2.5]
$env['words'] = %w[a b]
$env['odd-name'] = 3
