# What a CxA file of MUSCLE 2 calls: here each call is only written down. Arguments: the CxA file, and the file for the record.
require 'json'
require 'socket'

module CxaRecord
  COMPONENTS = {}
  COUPLINGS = []
  GLOBAL = {}
  NOTES = []

  # A value for the record, of the property with this name.
  def self.value(name, value)
    case value
    when Float
      raise ArgumentError, "property '#{name}' is #{value}: write a finite number" unless value.finite?
      value
    when nil, true, false, Integer then value
    when Array then value.map { |item| self.value(name, item) }
    else text("property '#{name}'", value)
    end
  end

  # A text for the record.
  def self.text(what, value)
    value.to_s.encode('UTF-8').tap { |text| raise EncodingError unless text.valid_encoding? }
  rescue EncodingError
    raise ArgumentError, "#{what} is #{value.to_s.dump}, which is no text in UTF-8", cause: nil
  end

  def self.values(properties)
    properties.reject { |_, value| value.nil? }.to_h { |name, value| [text('the name of a property', name), self.value(name, value)] }
  end

  # One coupling of two components, which are given as objects or names.
  def self.couple(sender, out, receiver, into, filters)
    out, into = [out, into].map { |port| text('the name of a port', port) }
    raise ArgumentError, 'the name of a port is empty' if out.empty? || into.empty?
    names = [sender, receiver].map do |end_of|
      name = end_of.respond_to?(:name) ? end_of.name : end_of
      raise ArgumentError, "there is no instance '#{name}'" unless COMPONENTS.key?(name)
      name
    end
    filters = filters.args if filters.respond_to?(:args)
    COUPLINGS << { sender: names[0], out: out, receiver: names[1], in: into, filters: Array(filters).map { |filter| text('a filter', filter) } }
  end

  # The properties "instance:name" are those of their instance.
  def self.properties
    all = COMPONENTS.transform_values { |component| component.env.dup }
    global = {}
    GLOBAL.each do |key, value|
      owner, name = key.to_s.split(':', 2)
      if name && all.key?(owner) then all[owner][name] = value
      else global[key.to_s] = value
      end
    end
    [all, global]
  end

  def self.write(path)
    all, global = properties
    components = COMPONENTS.map do |name, component|
      { name: name, kind: component.kind, class: text("the class of #{name}", component.cls),
        properties: values(all[name]) }
    end
    File.write(path, JSON.generate({ components: components, couplings: COUPLINGS, global: values(global), notes: NOTES }))
  end
end

class Component
  attr_reader :name, :cls, :env, :kind

  def initialize(name, cls, env = {})
    raise ArgumentError, "instance '#{name}' is defined twice" if CxaRecord::COMPONENTS.key?(name.to_s)
    @name, @cls, @env, @kind = CxaRecord.text('the name of an instance', name), cls, {}, 'instance'
    (env || {}).each { |key, value| self[key] = value unless key.is_a?(Symbol) }
    CxaRecord::COMPONENTS[@name] = self
  end

  def couple(other, ports, filters = [], exit_filters = [])
    ports = { ports => ports } unless ports.is_a?(Hash)
    all = Array(filters) + (exit_filters.nil? || exit_filters.empty? ? [] : [''] + Array(exit_filters))
    ports.each { |out, into| CxaRecord.couple(self, out, other, into, all) }
  end

  def [](key)
    @env[key.to_s]
  end

  def []=(key, value)
    @env[key.to_s] = value
  end

  def ==(other)
    other.respond_to?(:name) && name == other.name
  end
end

class Instance < Component; end

class NativeInstance < Instance
  def initialize(name, command, env = {})
    super(name, env[:java_class] || 'muscle.core.standalone.NativeKernel', env)
    @kind = 'native'
    self['command'] = command
    self['args'] = env[:args] if env[:args]
  end
end

class MPIInstance < NativeInstance
  def initialize(name, command, env = {})
    super(name, command, { java_class: 'muscle.core.standalone.MPIKernel' }.merge(env))
    @kind = 'mpi'
    command = env[:mpiexec] || env[:mpi_command]
    args = env[:mpiexec_args] || env[:mpi_args]
    self['mpiexec_command'] = command if command
    self['mpiexec_args'] = args if args
  end
end

class PythonInstance < NativeInstance
  def initialize(name, script, env = {})
    super(name, env[:python] || 'python3', env)
    @kind = 'python'
    self['args'] = [script, env[:args]].compact.join(' ')
  end
end

class MatlabInstance < Instance
  def initialize(name, script, env = {})
    super(name, env[:java_class] || 'muscle.core.standalone.MatlabKernel', env)
    @kind = 'matlab'
    self['script'] = script
    self['args'] = env[:args] if env[:args]
  end
end

class Terminal < Component
  def initialize(name, cls, env = {})
    super
    @kind = 'terminal'
  end
end

# The conduit of an older file, of which only the filters count.
class Conduit
  attr_reader :args

  def initialize(*words)
    @args = words.flatten.reject { |word| word.to_s =~ /\Amuscle\.core\.conduit\.\w*Conduit\z/ }
  end
end

class ConnectionScheme
  def self.LAST
    @last ||= new
  end

  def attach(ends)
    raise ArgumentError, 'attach takes one pair of instances' unless ends.is_a?(Hash) && ends.length == 1
    raise ArgumentError, 'attach has no block with calls of tie' unless block_given?
    @ends = ends.first
    yield
    @ends = nil
  end

  def tie(out, into = out, filters = [])
    raise ArgumentError, 'tie is called outside of attach' unless @ends
    CxaRecord.couple(@ends[0], out, @ends[1], into, filters)
  end
end

class Cxa
  def self.LAST
    @last ||= new
  end

  def env
    CxaRecord::GLOBAL
  end

  def cs
    ConnectionScheme.LAST
  end

  def add_instance(*words)
    Instance.new(*words)
  end
  alias add_kernel add_instance

  def add_terminal(*words)
    Terminal.new(*words)
  end

  def get(name)
    CxaRecord::COMPONENTS[name.to_s]
  end

  def instances
    CxaRecord::COMPONENTS.reject { |_, component| component.is_a?(Terminal) }
  end
end

# The launcher, of which files ask for the environment and add to the paths of Java.
class Muscle
  def self.LAST
    @last ||= new
  end

  def env
    ENV.to_h
  end

  def add_classpath(path)
    CxaRecord::NOTES << "Java's class path #{path} is not needed"
  end

  def add_libpath(path)
    CxaRecord::NOTES << "Java's library path #{path} is not needed"
  end
end

module MuscleUtils
  def self.which(command)
    ENV['PATH'].split(':').map { |folder| File.join(folder, command) }.find { |path| File.executable?(path) } || command
  end
end

$env = CxaRecord::GLOBAL
$muscle_connection_scheme = ConnectionScheme.LAST

def tie(*words)
  ConnectionScheme.LAST.tie(*words)
end

def add_classpath(path)
  Muscle.LAST.add_classpath(path)
end

def add_libpath(path)
  Muscle.LAST.add_libpath(path)
end

# Files ask for MUSCLE_HOME; without MUSCLE 2 its name stands for it.
def env
  Hash.new { |_, key| "$#{key}" }.merge(ENV.to_h)
end

def cxa
  Cxa.LAST
end

class File
  # Older files call what Ruby 3.2 has taken away.
  def self.exists?(path)
    exist?(path)
  end
end

file, record = ARGV
ENV['MUSCLE_HOME'] ||= '$MUSCLE_HOME'
own = file.sub(/(\.cxa)?\.rb\z/) { |ending| ".#{Socket.gethostname.split('.').first}#{ending}" }
CxaRecord::NOTES << "#{File.basename(own)} is there too: on this host MUSCLE 2 would load it instead" if own != file && File.exist?(own)
ARGV.clear
$stdout = $stderr
load(File.expand_path(file))
begin
  CxaRecord.write(record)
rescue ArgumentError => error
  abort "#{file}: #{error.message}"
end
