#!/bin/bash
# Plays an agent that runs commands. The demo writes the name of each step into a FIFO.
world=10.77.0.2
fetch() { curl -sS --noproxy '*' --max-time 60 "http://$world/$1"; }

stream() { # answers what comes, until it cannot
  trap '' PIPE
  exec 4<>/dev/tcp/$world/7000
  while read -r line <&4 && echo "heard $line" >&4; do :; done
  echo "the long-lived connection of process $BASHPID is broken"
}

exec 3<>/run/demo/steps
while read -r step argument <&3; do
  case $step in
    fetch) fetch "$argument" ;;
    send) curl -sS --noproxy '*' --max-time 60 --data-binary "@$argument" "http://$world/upload" ;;
    stream) stream & ;;
    python) python3 -ISc "import socket; socket.create_connection(('$world', 80)).sendall(b'GET /python HTTP/1.0\r\n\r\n')" 2>&1 | tail -n 1
            (exit "${PIPESTATUS[0]}") ;;
    devtcp) (echo devtcp >/dev/tcp/$world/80) ;;
    udp) (echo "udp $argument" >/dev/udp/$world/7001) ;;
    raw) python3 -ISc "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 253).sendto(b'raw', ('$world', 0))" 2>&1 | tail -n 1
         (exit "${PIPESTATUS[0]}") ;;
    end) break ;;
  esac
  echo "=$step $?"
done
