package toolguard

import (
	"encoding/json"
	"testing"
)

// F25 (K7): a tool that takes a path is refused what a shell is refused, and keys are keys whatever their names.
func TestF25PathsK7(t *testing.T) {
	g := testGuard()
	for rule, cases := range map[string][][2]string{
		"sensor-vault": {
			{"fs_read", "/run/credentials/weir.service/weir-vault-key"}, {"Read", "/run/credentials/weir.service"}, {"fs_list", "/run/credentials/weir.service"}, {"fs_read", "/etc/credstore.encrypted/weir-vault-key"},
			{"fs_read", "/proc/1/root/var/lib/weir/vault.age"}, {"fs_read", "/proc/self/task/3/root/run/credentials/weir.service/weir-vault-key"}, {"mcp__fs__get", "/run/credentials/weir.service/weir-vault-key"},
		},
		"ssh-keys": {
			{"fs_read", "/root/.ssh/id_ed25519_github"}, {"Read", "/home/dave/.ssh/deploy"}, {"fs_read", "~/.ssh/keys/work.pem"}, {"fs_read", `C:\Users\dave\.ssh\id_rsa_work`}, {"fs_read", "/etc/ssh/ssh_host_ed25519_key.bak"},
			{"Read", "/home/dave/.ssh/id_rsa.old"},
		},
		"linux-delete": {
			{"fs_delete", "/"}, {"fs_delete", "/etc/"}, {"fs_delete", "/usr/lib"}, {"fs_delete", "/etc/../home"}, {"fs_delete", "/proc/1/root/etc"}, {"mcp__fs__delete_directory", "/var/lib"}, {"removeTree", "/"}, {"fs_delete", "/home/*"}, {"fs_delete", `D:\`}, {"fs_delete", "~"}, {"fs_delete", "$HOME"}, {"fs_delete", "~/."},
		},
		"shadow-file":       {{"fs_read", "/etc/shadow.bak"}, {"Read", "/etc/shadow~"}, {"fs_read", "/etc/gshadow.old"}},
		"browser-stores":    {{"fs_read", "/home/a/.config/google-chrome/Profile 1/Network/Cookies"}, {"fs_read", "/home/a/snap/chromium/common/chromium/Default/Login Data"}, {"fs_read", "/home/a/.config/google-chrome-beta/Default/Login Data"}, {"fs_read", "/home/a/.config/BraveSoftware/Brave-Browser/Default/Network/Cookies"}},
		"cloud-credentials": {{"fs_read", "/home/a/.oci/oci_api_key.pem"}, {"fs_read", "/home/a/.config/doctl/config.yaml"}},
		"delete-system":     {{"fs_delete", `C:\Windows`}, {"fs_delete", `C:\Program Files\`}, {"mcp__fs__rm", `\\?\C:\Windows\System32`}},
		"linux-disk": {
			{"fs_write", "/dev/sda"}, {"Write", "/dev/nvme0n1p2"}, {"Edit", "/dev/disk/by-id/ata-x"}, {"mcp__fs__write_file", "/dev/mapper/vg-root"}, {"fs_write", "/proc/1/root/dev/vda1"},
		},
		"disk-raw":         {{"fs_write", `\\.\PhysicalDrive0`}, {"fs_write", `\\.\C:`}, {"fs_write", `\\?\PhysicalDrive1`}},
		"linux-accounts":   {{"fs_write", "/etc/sudoers.d/x"}, {"Edit", "/etc/passwd"}, {"fs_delete", "/etc/sudoers"}, {"create_file", "/etc/sudoers.d/y"}},
		"linux-boot":       {{"fs_write", "/boot/grub/grub.cfg"}, {"Edit", "/etc/default/grub"}, {"fs_delete", "/boot/vmlinuz-6.1"}, {"fs_write", "/etc/grub.d/40_custom"}},
		"boot":             {{"fs_delete", `C:\bootmgr`}},
		"linux-protection": {{"Write", "/etc/selinux/config"}, {"fs_write", "/sys/fs/selinux/enforce"}},
		"linux-logs":       {{"fs_delete", "/var/log/auth.log"}, {"fs_write", "/var/log/wtmp"}, {"fs_delete", "/var/log/journal"}},
		"event-log":        {{"fs_delete", `C:\Windows\System32\winevt\Logs\Security.evtx`}},
		"": {
			{"fs_read", "/home/dave/.ssh/config"}, {"fs_write", "/home/dave/.ssh/config"}, {"Read", "/home/dave/.ssh/known_hosts.old"}, {"fs_read", "/root/.ssh/id_ed25519_github.pub"}, {"fs_list", "/root/.ssh"}, {"fs_read", "/root/.ssh/config.d/work"},
			{"fs_read", "/work/fixtures/id_rsa"}, {"fs_read", "/etc/passwd"}, {"mcp__filesystem__read_file", "/etc/passwd"}, {"mcp__fs__list_directory", "/"}, {"get_file_info", "/boot/grub/grub.cfg"}, {"fs_list", "/"}, {"fs_delete", "/work"},
			{"fs_delete", "/usr/local/lib/node_modules/x"}, {"fs_delete", "/var/lib/myapp/cache"}, {"fs_write", "/dev/null"}, {"fs_write", "/dev/stdout"}, {"fs_read", "/boot/config-6.1"}, {"fs_write", "/etc/nginx/nginx.conf"}, {"Edit", "/work/boot/grub.cfg"},
			{"fs_delete", `C:\Windows\Temp\mine`}, {"fs_write", "/var/log/myapp.log"}, {"fs_delete", "/var/log/myapp/old.log"}, {"mcp__maps__directions", "/"}, {"fs_read", "/run/credentials/other.service/token"}, {"Write", "/work/etc/passwd"},
			{"fs_write", "/dev/shm/x"}, {"fs_write", "/dev/mapper/control"},
		},
	} {
		for _, c := range cases {
			args, _ := json.Marshal(map[string]string{"path": c[1]})
			if hit, _ := g.Check(c[0], args); hit.ID() != rule {
				t.Errorf("%s %s: refused by %q, want %q", c[0], c[1], hit.ID(), rule)
			}
		}
	}
}

// F25 (K7): a folder and a pattern name files as well; a search reads them.
func TestF25SearchK7(t *testing.T) {
	g := testGuard()
	for _, tt := range []struct{ tool, args, rule string }{
		{"Grep", `{"pattern":".","path":"/root/.ssh","glob":"id_*"}`, "ssh-keys"}, {"Grep", `{"pattern":".","path":"/root/.ssh"}`, "ssh-keys"}, {"Grep", `{"pattern":".","path":"/home/dave","glob":".ssh/*"}`, "ssh-keys"},
		{"Grep", `{"pattern":".","path":"/home/dave","glob":"**/id_rsa"}`, "ssh-keys"}, {"Grep", `{"pattern":".","path":"/","glob":"id_ed25519*"}`, "ssh-keys"}, {"Grep", `{"pattern":".","path":"/home/dave","glob":"{id_rsa,id_dsa}"}`, "ssh-keys"},
		{"Grep", `{"pattern":".","path":"/home/dave/.aws","glob":"cred*"}`, "cloud-credentials"}, {"Grep", `{"pattern":".","path":"~/.aws"}`, "cloud-credentials"}, {"Grep", `{"pattern":".","path":"/home/dave","glob":"**/.aws/credentials"}`, "cloud-credentials"},
		{"Grep", `{"pattern":"root","path":"/etc","glob":"shadow"}`, "shadow-file"}, {"Grep", `{"pattern":"root","path":"/etc","glob":"shad*"}`, "shadow-file"}, {"Grep", `{"pattern":"root","path":"/","glob":"etc/shadow"}`, "shadow-file"},
		{"Grep", `{"pattern":"root","path":"/","glob":"**/shadow"}`, "shadow-file"}, {"grep_files", `{"pattern":".","path":"/root/.ssh","include":"id_*"}`, "ssh-keys"}, {"mcp__fs__search_files", `{"regex":".","directory":"/root/.ssh","file_pattern":"id_*"}`, "ssh-keys"},
		{"Grep", `{"pattern":".","path":"C:\\Users\\dave\\.ssh","glob":"*"}`, "ssh-keys"}, {"Grep", `{"pattern":".","path":"/var/lib/weir"}`, "sensor-vault"}, {"Grep", `{"pattern":".","path":"/var/lib","glob":"weir/*"}`, "sensor-vault"},
		{"Grep", `{"pattern":"x","path":"/work","glob":"*.go"}`, ""}, {"Grep", `{"pattern":"x"}`, ""}, {"Grep", `{"pattern":"x","glob":"*.{ts,tsx}"}`, ""}, {"Grep", `{"pattern":"x","path":"/work/fixtures","glob":"id_rsa"}`, ""}, {"Grep", `{"pattern":"x","glob":"id_rsa"}`, ""},
		{"Grep", `{"pattern":"x","path":"/etc"}`, ""}, {"Grep", `{"pattern":"x","path":"/etc","glob":"*.conf"}`, ""}, {"Grep", `{"pattern":"x","path":"/home/dave"}`, ""}, {"Grep", `{"pattern":"x","path":"/home/dave/app","glob":"config"}`, ""},
		{"Grep", `{"pattern":"x","path":"/home/dave","glob":"*.json"}`, ""}, {"Grep", `{"pattern":"x","path":"/home/dave/.ssh/config"}`, ""}, {"Grep", `{"pattern":"x","path":"/root/.ssh","glob":"*.pub"}`, ""}, {"Grep", `{"pattern":"x","path":"/root/.ssh","glob":"config"}`, ""},
		{"Grep", `{"pattern":"x","path":"/etc/weir"}`, ""}, {"Grep", `{"pattern":"x","path":"/work","glob":"!**/id_rsa"}`, ""}, {"Glob", `{"pattern":"**/*.go","path":"/work"}`, ""}, {"Grep", `{"pattern":"x","path":"/","glob":"*.service"}`, ""},
	} {
		hit, _ := g.Check(tt.tool, json.RawMessage(tt.args))
		if hit.ID() != tt.rule {
			t.Errorf("%s %s: refused by %q, want %q", tt.tool, tt.args, hit.ID(), tt.rule)
		}
	}
}
