package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

//go:generate go run . -requirements ../..

const requirementsIntro = `# What Weir must do

Each row is one requirement, and the tests that show it: those that have its id in their names. The list is made of those names (` + "`go generate ./scripts/bypasses`" + `), and a
requirement that no test names fails the tests of ` + "`scripts/bypasses`" + `, which has the table. Ways out that must not work are in [bypasses.md](bypasses.md).

- **G**: the gate of commands. **K**: the guard of tool calls. **P**: permission rules. **M**: memory recall. **V**: the vault.
- **does not hold**: where [limits.md](limits.md) says what does not, or only in part.
- **tests**: by their folder; those below ` + "`test/vm/guest`" + ` run in a VM. ` + "`go test FOLDER -run 'TestName'`" + ` runs one of the others, and [testing.md](testing.md) says how to run those.

| id | what is required | does not hold | tests |
|---|---|---|---|
`

// requirement is one thing that Weir must do. Ids are stable; tests have them in their names. The limit is a section of docs/limits.md,
// where that says what does not hold.
type requirement struct{ id, what, limit string }

var requirements = []requirement{
	{"G1", "A container has two bits of taint, corruption and secret, which only the host sets; they outlive restarts of container, sensor and host, and only an operator's logged command clears them.", "containers-that-start-or-move"},
	{"G2", "What taints is set in the policy: reported tool calls, connections to destinations that nobody trusts, secret files that are opened, an operator's command, a label at the start.", "when-taint-comes-too-late-or-not-at-all"},
	{"G3", "The taint of a pod is that of all its containers, and the taint of a container is that of all its processes and of the cgroups in it.", ""},
	{"G4", "Without taint everything is allowed at once: no command is parsed, and nobody is asked.", ""},
	{"G5", "A command that surely neither reaches the network nor runs code that cannot be seen is local and allowed; the agent's hook decides that first, and the host again for itself.", ""},
	{"G6", "Commands that can reach the network or run any code, and their equals by other names, are decided on the host; a literal text for a shell is judged by what it says.", ""},
	{"G7", "A command for the network goes to a person if both bits are set; with one bit a reviewer decides, and what he flags is denied.", ""},
	{"G8", "Every other command is reviewed: what is flagged goes to a person with both bits set, and is denied with one; the rest is allowed.", ""},
	{"G9", "In a tainted container no error allows: each kind has its own reason and counter, and asks a person where there is one, or else denies.", ""},
	{"G10", "A list of commands is as risky as its riskiest part, and every part that a shell could run is looked at.", ""},
	{"G11", "A reviewer is shown the command as data, with taint, directory, image and what was parsed, and an answer in any other form than the agreed one is a failure.", ""},
	{"G12", "The reviewer flags what sends data away, hides it first or opens the network by itself, and passes local reading, builds, tests and what stays on this machine.", ""},
	{"G13", "The reviewer is a model of either of two kinds of services or the embedded rules, which need no network; keys come from a file or the environment, and are never logged.", ""},
	{"G14", "Reviews have a time limit, a bounded number at once, a cache of verdicts with an end, and counters.", ""},
	{"G15", "A question for a person survives restarts, is announced with live text made harmless, holds the asker, and is a denial after its time; a late approval is claimed once by the same command.", "held-commands"},
	{"G16", "An approval counts once, for the container, command and destination that were asked about, and ends after its time.", "who-can-use-an-approval"},
	{"G17", "Only an operator who is known approves, and nothing in a container reaches the way to do so.", "people-and-channels"},
	{"G18", "Before a tool is used, the built-in hooks decide, then the operator's own in order; the first denial stands, and a new hook is a program in a folder.", "the-hook-and-the-bridge"},
	{"G19", "Claude Code, Codex, OpenAI's shell tools and any other agent are served in the form that each expects, and notice the gate only when it denies.", ""},
	{"G20", "A container asks over a Unix socket or a shared folder, in one form with one meaning, and is told only allow or deny, with a reason.", ""},
	{"G21", "The host finds out for itself which container asks, and a container can ask only about itself.", "the-hook-and-the-bridge"},
	{"G22", "The git guard denies rewritten history of protected branches, deleted references, settings that run programs, and pushes from a tainted container that nobody approved.", "the-hook-and-the-bridge"},
	{"G23", "Tools that fetch pages directly are denied, with the browser's tool named instead, also in the agent's own settings; searching stays allowed.", ""},
	{"G24", "The kernel denies a tainted container all egress that no verdict granted; a local command is granted none, and an approved one only for itself and what it starts, for a time.", "ways-out-that-stay-open"},
	{"G25", "Commands that run without asking are judged and logged as well: they run sealed until they want out or, if the policy says so, are held before they begin.", "held-commands"},
	{"G26", "A command that was approved before it ran is known when it runs and not asked about again, and one that differs gets nothing by that.", "commands-approved-before-they-run"},

	{"K1", "The guard checks every call of a tool after the kill switch and before all else, names its rule when it refuses, and nothing turns it off.", "the-guard-of-tool-calls"},
	{"K2", "Rules are made ready once, and the time for a script of 64 KiB is bounded, whoever wrote it.", "the-guard-of-tool-calls"},
	{"K3", "Scripts of PowerShell and cmd that destroy disks, backups or logs, hide what they run, run what they download, or raise rights are refused.", "the-guard-of-tool-calls"},
	{"K4", "Other ways to write such a script are seen through: case, escapes, aliases, short names, joined and formatted text, nested shells, comments.", "the-guard-of-tool-calls"},
	{"K5", "In shells of Linux the guard refuses what destroys devices, systems, logs or protection, or makes new administrators; the same words as mere text pass.", "the-guard-of-tool-calls"},
	{"K6", "Calls that stop, remove or replace the sensor, its files, state or kill switch are refused, by the names that the sensor itself uses.", "the-guard-of-tool-calls"},
	{"K7", "Tools for files are refused keys, credentials and password files, however the path is written and wherever its links lead.", "the-guard-of-tool-calls"},
	{"K8", "Updates come over https from the configured server or GitHub's release hosts alone, at every redirect, besides the check of the sum.", "updates-of-agents"},
	{"K9", "The messages of the channel for tool calls have the documented form, which adds one code, and an older client takes that for an ordinary error.", ""},
	{"K10", "A file on the host turns all tools that change something off at once, never the guard; an update is downloaded, checked and put in place whole, and the old program is kept.", "updates-of-agents"},
	{"K11", "After the guard, tools that change something are asked about as the policy says, and without it by the channel that the call came on.", ""},
	{"K12", "Operators can add rules that refuse more; a bad one is reported with its line and skipped, and all others stay in force.", "the-guard-of-tool-calls"},
	{"K13", "Each refusal is an event with tool, rule, caller and an excerpt without secrets, and is counted.", ""},
	{"K14", "The guard refuses nothing of ordinary work; what it finds in labelled sets is measured (`make corpus`).", "the-guard-of-tool-calls"},

	{"P1", "All names of stores, entries and keys pass one check, errors quote them safely, and no name is changed to fit.", ""},
	{"P2", "Rules for tools are read from an operator's and an administrator's file, and what may stand in a list depends on the list.", ""},
	{"P3", "A bad rule is dropped with a warning that says where and what to write, all others load, and nobody widens what the administrator wrote.", ""},
	{"P4", "A denial comes before an allowance, that before a question, and each denial has a reason that a program can read.", ""},
	{"P5", "What must be asked is asked in every mode of the agent, and is denied in one that does not ask.", ""},
	{"P6", "Sub-agents, also those that begin as a copy of the main agent, cannot call the sensor's tools: a call runs once, and only if the main agent's hook announced it.", "vault-and-memory"},
	{"P7", "What stands in a rule's brackets is compared exactly; wildcards are for denials only.", ""},
	{"P8", "What secret tools give out is taken out of every log, event and trace before that is written.", ""},

	{"M1", "Recall lists stores, lists entries and fetches one; a field that is missing is a denial, and one that is unknown an error.", ""},
	{"M2", "Lists and previews are allowed, a whole text needs a rule or a person; recall can run in parallel, the vault's calls with one key cannot, and agents never defer these tools.", ""},
	{"M3", "Characters that hide, turn round or control text are taken out before it is given out.", ""},
	{"M4", "Recalled text stands in a frame that it cannot close, with a note that it is data and no instruction.", "vault-and-memory"},
	{"M5", "Each answer and each turn has a budget that the host counts, and a cut text ends with a whole character and says that it is cut.", "vault-and-memory"},
	{"M6", "Recalling from a store that is marked secret or foreign sets that taint.", ""},

	{"V1", "A request names an https address, method, key, scheme and reason in set forms; unknown fields are errors.", ""},
	{"V2", "Denial, allowance and question go by key, in this order, and the question shows key, method, address and reason.", ""},
	{"V3", "The secret is in the host's process and in one header of one request, and nowhere else.", "vault-and-memory"},
	{"V4", "No redirect is followed, time and size are limited, long answers come in pages, and a cancelled call ends its request.", ""},
	{"V5", "All that comes back is cleaned of the secret in all its listed forms, also where it comes in parts, and certain headers are replaced whole.", "vault-and-memory"},
	{"V6", "Errors are told in Weir's own words, never in those of the transport.", ""},
	{"V7", "A key can be bound to hosts, methods and paths; one that is bound nowhere is bound to the first host that is approved.", ""},
	{"V8", "Addresses of this machine, of private networks and of cloud metadata are refused unless the key names them; the address that was checked is dialled, and TLS is always verified.", "vault-and-memory"},
	{"V9", "The vault is one encrypted file that only its owner reads, is written whole or not at all, and takes secrets from no command line.", "vault-and-memory"},
	{"V10", "A call clears no taint, and its answer sets corruption unless the host is trusted.", ""},
	{"V11", "Each use is an event: who, key, method, host, path, status, bytes, time, reason and decision.", ""},
	{"V12", "The secret is in no result, event, log or error, for every kind of answer and failure; other addresses than https, modes without questions and copied agents get nothing.", "vault-and-memory"},
}

// required is docs/requirements.md.
func required(named map[string][]place) string {
	b := strings.Builder{}
	b.WriteString(requirementsIntro)
	for _, r := range requirements {
		limit := "–"
		if r.limit != "" {
			limit = "[limits](limits.md#" + r.limit + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.id, r.what, limit, proofs(named[r.id]))
	}
	return b.String()
}

// proofs lists the tests among places, by their folders.
func proofs(places []place) string {
	b := strings.Builder{}
	dir := ""
	for _, p := range slices.SortedFunc(slices.Values(places), func(p, q place) int { return cmp.Or(cmp.Compare(p.dir, q.dir), cmp.Compare(p.test, q.test)) }) {
		switch {
		case p.test == "":
			continue
		case p.dir == dir:
			b.WriteString(", ")
		case dir != "":
			b.WriteString("; `" + p.dir + "` ")
		default:
			b.WriteString("`" + p.dir + "` ")
		}
		dir = p.dir
		fmt.Fprintf(&b, "`%s`", p.test)
	}
	return b.String()
}
