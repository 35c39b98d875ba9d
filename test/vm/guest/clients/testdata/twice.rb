# With a limit, Ruby connects without blocking and then again, to learn how the first connect ended.
require "socket"

host, port, text = ARGV
Socket.tcp(host, port.to_i, connect_timeout: 600) do |s|
  s.write("GET /#{text} HTTP/1.0\r\n\r\n")
  puts s.read
end
