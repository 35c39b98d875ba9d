#!/bin/bash
# Runs a command in a window of a tmux of its own, and ends as it ended: tmux.sh NAME COMMAND...
name=$1
shift
tmux -L "$name" -f /dev/null new-session -d "$* >/tmp/$name.out 2>&1; echo \$? >/tmp/$name.exit; tmux -L $name wait-for -S done"
tmux -L "$name" wait-for done
cat "/tmp/$name.out"
exit "$(cat "/tmp/$name.exit")"
