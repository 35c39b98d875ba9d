package linux

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestNamed(t *testing.T) {
	tree := fstest.MapFS{"cgroup.procs": &fstest.MapFile{}}
	for _, dir := range []string{
		"agents/one", "agents.slice/agent-1.scope/agent-9.scope", "a.slice/a-b.slice", "system.slice/agent.service/agent-1.scope",
		"system.slice/system-agent.slice/agent@1.service", "user.slice/user-1000.slice/user@1000.service/app.slice/tool.scope",
		"user.slice/user-1001.slice/user@1001.service/app.slice/twice.scope", "user.slice/user-1000.slice/user@1000.service/app.slice/twice.scope",
		"user.slice/user-1000.slice/user@1000.service/work.slice",
	} {
		tree[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	for _, c := range []struct{ name, want, wrong string }{
		{"/agents/one", "/agents/one", ""},
		{"/agents/one/", "/agents/one", ""},
		{"/agents/two/../one", "/agents/one", ""},
		{CgroupRoot + "/agents/one", "/agents/one", ""},
		{CgroupRoot, "/", ""},
		{"/", "/", ""},
		{"/agents/two", "", "no cgroup /agents/two"},
		{"/cgroup.procs", "", "no cgroup /cgroup.procs"},
		{"agents/one", "", "leading slash"},
		{"one", "", "leading slash"},
		{"", "", "leading slash"},
		{".scope", "", "leading slash"},
		{"a\x00.scope", "", "zero bytes"},
		{"a-b.slice", "/a.slice/a-b.slice", ""},
		{"b.slice", "", "no cgroup of a unit b.slice"},
		{"agent.service", "/system.slice/agent.service", ""},
		{"agent@1.service", "/system.slice/system-agent.slice/agent@1.service", ""},
		{"tool.scope", "/user.slice/user-1000.slice/user@1000.service/app.slice/tool.scope", ""},
		{"work.slice", "/user.slice/user-1000.slice/user@1000.service/work.slice", ""},
		{"twice.scope", "", "is ambiguous"},
		// what a service has in its own cgroup does not count
		{"agent-1.scope", "/agents.slice/agent-1.scope", ""},
		{"agent-9.scope", "", "no cgroup of a unit"},
	} {
		got, err := named(tree, c.name)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q is %q, %v; want %q, %q", c.name, got, err, c.want, c.wrong)
		}
	}
}
