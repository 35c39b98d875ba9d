package toolguard

import (
	"slices"
	"strings"

	"weir/internal/commands"
)

// services is met when a service of these names is stopped, disabled or removed, by any of Windows' ways.
func services(names ...string) []trigger {
	list := strings.Join(names, "|")
	return []trigger{
		{Names: []string{"sc", "set-content"}, When: anyOf(hasWords("stop|delete|pause", list), allOf(hasWords("config", list), hasWords("disabled|start=disabled|demand")))},
		{Names: []string{"net", "net1"}, When: hasWords("stop|pause", list)},
		{Names: []string{"stop-service", "suspend-service", "remove-service", ".stop", ".pause"}, When: anyOf(hasValue(names...), isMade(allOf(isNamed("get-service"), hasValue(names...))))},
		{Names: []string{"set-service"}, When: allOf(hasValue(names...), hasValue("disabled", "stopped", "paused"))},
		{Names: []string{"wmic"}, When: allOf(textContains("service"), textContains(names...), hasWords("stopservice|delete|disabled|changestartmode"))},
	}
}

// broad is met when Defender is to leave out a whole drive, a place that everybody writes to or a program of everyday use.
func broad(c *Command) bool {
	excludes := func(name string, is func(string) bool) bool {
		v, ok := paramOf(c, name)
		return ok && slices.ContainsFunc(v.All(), func(item Value) bool { return is(item.Text) })
	}
	return excludes("exclusionpath", func(p string) bool {
		p = strings.TrimRight(strings.ToLower(strings.ReplaceAll(p, "/", `\`)), `\*`)
		return p == "" || drive().MatchString(p+`\`) || winSystem().MatchString(p) || commands.Listed("temp tmp public downloads users appdata syswow64", p[strings.LastIndexByte(p, '\\')+1:])
	}) || excludes("exclusionextension", func(e string) bool {
		return commands.Listed("exe dll ps1 bat cmd vbs js sys com scr hta msi", strings.ToLower(strings.TrimLeft(e, "*.")))
	}) || excludes("exclusionprocess", func(p string) bool {
		return commands.Listed("powershell pwsh cmd wscript cscript mshta rundll32 regsvr32 svchost explorer outlook winword excel powerpnt msedge chrome firefox iexplore *", strings.TrimSuffix(baseName(p), ".*"))
	})
}

// disablers are the short names of parameters that begin with Disable.
var disablers = commands.Names("drtm dbm dbaf dioavp dpm dips dscrptsc darchsc dae dcfsc dcqsc demsc drdsc drp dsmndfsc dsnf")

// offOf is met when a parameter is set to nothing.
func offOf(names ...string) condition {
	return when(func(c *Command) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			v, ok := paramOf(c, name)
			w := strings.ToLower(v.Text)
			return ok && (w == "0" || w == "disabled" || w == "false" || w == "$false")
		})
	})
}

// lets is met when a threat is let be.
func lets(c *Command) bool {
	return slices.ContainsFunc(strings.Fields("low moderate high severe unknown"), func(level string) bool {
		v, ok := paramOf(c, level+"threatdefaultaction")
		return ok && commands.Listed("allow noaction 6 9", strings.ToLower(v.Text))
	})
}

// weakens is met when one of Defender's protections is switched off.
func weakens(c *Command) bool {
	for i, a := range c.Args {
		name := strings.ToLower(strings.TrimLeft(a.Text, "-/"))
		if a.Quoted || len(a.Text) < 4 || a.Text[0] != '-' || !strings.HasPrefix(name, "dis") && !disablers[name] {
			continue
		}
		if i+1 >= len(c.Args) {
			return true
		}
		if v := strings.ToLower(c.Args[i+1].Text); v != "$false" && v != "0" && v != "false" {
			return true
		}
	}
	return false
}
