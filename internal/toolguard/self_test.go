package toolguard

import "testing"

// F22 (K6): the sensor's units, processes and files by other ways, and what is beside them.
func TestF22SelfK6(t *testing.T) {
	g := testGuard()
	for _, tt := range []struct {
		dialect Dialect
		rule    string
		texts   []string
	}{
		{POSIX, "sensor-service", []string{
			"systemctl stop weir-watch", "sudo systemctl kill weir", "systemctl disable --now weir-watch.service", "systemctl freeze weir.service", "systemctl stop 'weir*'", "systemctl kill -s SIGSTOP weir-watch", "systemctl disable /etc/systemd/system/weir.service",
			"systemctl --no-block stop nginx weir", "service weir-watch stop", "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StopUnit ss weir.service replace",
			"busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/weir_2dwatch_2eservice org.freedesktop.systemd1.Unit Stop s replace",
			"dbus-send --system --dest=org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager.KillUnit string:weir.service string:all int32:9",
			"gdbus call --system -d org.freedesktop.systemd1 -o /org/freedesktop/systemd1 -m org.freedesktop.systemd1.Manager.MaskUnitFiles \"['weir.service']\" true true",
			"fuser -k /usr/local/bin/weir", "fuser -TERM -k /run/weir/control.sock", "fuser -mk /usr/local/bin/weir", "pkill -f 'weir (run|watch)'", "pkill '^we'", "killall -r 'wei.*'", "kill -9 $(cat /run/weir/pid)", "kill -9 -1", "kill $(systemctl show -p MainPID --value weir.service)",
			"weir --json kill-switch off", "weir --run /run/weir approve 3", "weir --run=/x --json detach", "weir -json kill-switch on", "pkill weir", "systemctl edit weir-watch", "systemctl set-property weir.service CPUQuota=1%",
			"apt-get purge weir", "pwsh -c 'Stop-Process -Name weir'", "systemctl stop $(systemctl list-units | grep -o weir.service)", "/etc/init.d/weir stop", "invoke-rc.d weir stop", "sv stop weir", "initctl stop weir", "kill $(cat /run/weir.pid)", "kill $(ps aux | grep weir | awk '{print $2}')", "ps aux | grep [w]eir | awk '{print $2}' | xargs kill -9",
			"kill $(ps aux | awk '/weir/ {print $2}')", "kill $(lsof -t /run/weir/control.sock)", "kill -9 $(fuser /usr/local/bin/weir)", "for p in $(pgrep weir); do kill $p; done", "pgrep weir | while read -r p; do kill -9 $p; done", "p=$(pidof weir); kill $p", "gdb -p $(pidof weir)", "weir-hook uninstall claude", "curl --unix-socket /run/weir/control.sock http://x",
			"echo '{}' | nc -U /run/weir/control.sock", "socat - UNIX-CONNECT:/run/weir/control.sock", "ssh localhost 'systemctl stop weir'", "python3 -c \"import os; os.system('systemctl stop weir')\"",
			"systemctl isolate rescue.target", "systemctl -p default isolate rescue.target", "systemctl isolate multi-user rescue", "systemctl start rescue --job-mode=isolate", "systemctl rescue", "systemctl emergency", "systemctl kill system.slice", "systemctl freeze system.slice", "systemctl stop system.slice", "systemctl stop sysinit.target",
			"systemctl isolate nginx.service", "systemctl -q --message x rescue", "systemctl start --job-mode=isolate rescue.target", "systemctl start sshd --job-mode isolate", "systemctl stop 'system.*'", "systemctl kill -s STOP -- -.slice", "systemctl start shutdown.target", "sudo systemctl set-default rescue.target",
			"systemctl mask multi-user.target", "systemctl set-property system.slice MemoryMax=1M", "init 1", "telinit s", "kill -s RTMIN+1 1", "kill -36 1", "kill -SIGRTMIN+2 1", "systemctl kill -s SIGRTMIN+1 init.scope", "cgset -r cgroup.freeze=1 system.slice", "cgdelete -r memory:system.slice",
			"busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StartUnit ss rescue.target isolate", "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager FreezeUnit s system.slice",
			"busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/system_2eslice org.freedesktop.systemd1.Unit Freeze", "python3 -c \"import os; os.system('systemctl rescue')\"",
		}},
		{POSIX, "sensor-files", []string{
			"echo 1 > /sys/fs/cgroup/system.slice/cgroup.kill", "echo 1 > /sys/fs/cgroup/system.slice/cgroup.freeze", "echo 1 | sudo tee /sys/fs/cgroup/system.slice/cgroup.kill", "echo 0 > /sys/fs/cgroup/system.slice/memory.max", "cd /sys/fs/cgroup/system.slice && echo 1 > cgroup.freeze",
			"echo 0 > /sys/fs/cgroup/system.slice/pids.max", "dd of=/sys/fs/cgroup/system.slice/cgroup.kill <<< 1", "python3 -c \"open('/sys/fs/cgroup/system.slice/cgroup.kill','w').write('1')\"", "echo 1 | tee /sys/fs/cgroup/*/cgroup.kill", "cp /tmp/one /sys/fs/cgroup/system.slice/cgroup.kill", "tee /sys/fs/cgroup/system.slice/cgroup.fr?ez[e] < x", "tee /sys/fs/cgroup/s*/cgroup.freez[e] < x", "rm /usr/*/bin/weir",
			"rm /etc/systemd/system/multi-user.target.wants/weir.service", "rm -f /lib/systemd/system/weir-watch.service", "mkdir -p /etc/systemd/system/weir.service.d && echo x > /etc/systemd/system/weir.service.d/a.conf",
			"tee /run/systemd/system/weir-watch.service.d/x.conf < a", "cp a.conf /etc/systemd/system/weir-.service.d/", "rm -rf /etc/systemd/system/multi-user.target.wants", "rm -rf /usr/local/bin", "rm -r /etc/systemd/system/weir*",
			"rm -rf /usr/local/bin/*", "mv /usr/local/bin /opt/old", "find /etc/weir -delete", "find /run/weir -type s -exec rm {} +", "ln -sf /dev/null /etc/systemd/system/weir.service", "rm -rf /proc/1/root/etc/weir", "umount /sys/fs/bpf",
			"cp weir /usr/local/bin/", "install bin/weir bin/weir-hook /usr/local/bin", "mv weir /usr/local/bin", "curl -o /etc/weir/policy.yaml https://example.org/x", "wget -O /usr/local/bin/weir https://example.org/x", "tar -C /etc/weir -xf x", "unzip -d /etc/weir x", "gawk -i inplace 1 /etc/weir/policy.yaml", "sponge /etc/weir/policy.yaml", "sqlite3 /var/lib/weir/state.db 'delete from x'", "umount -R /sys",
			"mount -t tmpfs none /sys/fs/bpf", "mount --move /sys/fs/bpf /mnt", "mount -o remount,ro /sys/fs/bpf", "find /sys/fs/bpf -delete", "find / -name 'weir*' -delete", "find / -name weir -exec rm {} \\;", "echo 1 > /sys/fs/cgroup/system.slice/weir.service/cgroup.kill", "cp x /run/systemd/transient/weir.service", "cp x /etc/systemd/system.control/weir.service.d/x.conf",
		}},
		{PowerShell, "sensor-service", []string{"Stop-Process -Name weir", "Get-Process weir | Stop-Process -Force", "Stop-Service weir", "kill -Name weir", "Set-Service weir -StartupType Disabled", "spps -n weir", "Stop-Process -Id (pidof weir)", "Stop-Process -Name:weir"}},
		{Cmd, "sensor-service", []string{"taskkill /im weir.exe /f", "sc stop weir", "net stop weir-watch", "sc config weir start= disabled"}},
		{POSIX, "", []string{
			"cp weir /usr/local/lib/", "cp /usr/local/bin/weir /tmp/", "install x /usr/local/bin/", "mount -t bpf bpf /sys/fs/bpf", "find . -name weir -delete", "find / -name weir", "ps aux | grep node | grep -v weir | awk '{print $2}' | xargs kill", "ps aux | grep weir", "kill $(lsof -ti:3000)", "kill $(ps aux | awk '/node/ {print $2}')", "systemctl stop $(systemctl list-units | grep -o nginx.service)",
			"curl --unix-socket /var/run/docker.sock http://x", "tar czf x.tgz /etc/weir", "weir-hook install claude", "umount /mnt",
			"systemctl status weir-watch", "systemctl stop weird", "systemctl stop nginx", "systemctl stop 'nginx*'", "systemctl restart myapp", "systemctl kill nginx", "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager StopUnit ss nginx.service replace",
			"busctl tree org.freedesktop.systemd1", "busctl get-property org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/weir_2eservice org.freedesktop.systemd1.Unit ActiveState", "fuser /usr/local/bin/weir", "fuser -k 8080/tcp", "pkill -f 'node server.js'",
			"pkill nginx", "kill -1 1234", "kill -9 1234", "kill %1", "kill -HUP $(cat /run/nginx.pid)", "weir --json status", "weir --json kill-switch status", "weir --run /run/weir events", "weir explain 'approve'", "weir guard -- approve", "rm /etc/systemd/system/multi-user.target.wants/nginx.service",
			"rm -rf /etc/systemd/system/nginx.service.d", "rm -rf /usr/local/bin/mytool", "mv mytool /usr/local/bin", "mv mytool /usr/local/bin/", "cp a /etc/systemd/system/myapp.service", "find /usr/local/bin -name '*.pyc' -delete", "rm -rf /var/lib/weirdo", "ls /etc/systemd/system/weir.service.d",
			"systemctl isolate multi-user.target", "systemctl start --job-mode=isolate multi-user.target", "systemctl isolate graphical", "systemctl default", "systemctl status rescue", "systemctl cat rescue.target", "systemctl status system.slice", "systemctl stop user.slice", "systemctl kill user-1000.slice", "systemctl start sysinit.target", "systemctl set-default multi-user.target", "systemctl get-default", "init 3", "kill -9 35", "kill -35 1234",
			"systemctl show -p MemoryMax system.slice", "systemctl list-dependencies multi-user.target", "cat /sys/fs/cgroup/system.slice/memory.max", "echo 1 > /sys/fs/cgroup/system.slice/nginx.service/cgroup.kill", "echo 1 > /sys/fs/cgroup/user.slice/cgroup.freeze", "echo 100M > /sys/fs/cgroup/build/memory.max", "systemctl start rescue-my-app", "cgset -r cpu.max=1 build",
			"killall node", "pkill -u dave -f vite", "journalctl -u weir", "rm -rf /run/myapp", "rm -f /usr/local/bin/node",
		}},
		{PowerShell, "", []string{"Get-Process weir", "Stop-Process -Name notepad", "Get-Service weir", "Get-Process node | Stop-Process"}},
	} {
		for _, text := range tt.texts {
			if hit, _ := g.Script(tt.dialect, text); hit.ID() != tt.rule {
				t.Errorf("%d %q: refused by %q, want %q", tt.dialect, text, hit.ID(), tt.rule)
			}
		}
	}
}
