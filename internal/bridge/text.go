package bridge

import (
	"strings"

	"weir/internal/event"
	"weir/internal/gate"
	"weir/internal/gitguard"
	"weir/internal/show"
)

// The texts are read by a model: what was denied, why, and what works instead. They tell nothing of the policy.
const (
	instead = " Commands that only read and write local files still work. Do not try other ways to the network: they are closed too."

	textStranger   = "Denied: this process runs in no guarded container, or has ended already, so nothing can be decided about it. Tell the user to start the agent with `weir guard`."
	textManyConns  = "Denied: this container has too many connections to the command gate open. Close some, and ask one command at a time."
	textLong       = "Denied: the request is longer than 2 MiB. Write long content to a file in smaller steps, and run a short command."
	textBusy       = "Denied: too many very long commands are being checked at once. Write long content to a file in smaller steps, or try again in a moment."
	textSlow       = "Denied: the request did not arrive within 10 seconds. Send each request as one line, at once."
	textJSON       = "Denied: the request is not a JSON object of the kind {\"type\":\"security:bash_check\",\"request_id\":\"…\",\"command\":\"…\"}, so the command could not be checked."
	textID         = "Denied: one of its ids, or its mode, is longer than 128 bytes, so the command could not be checked."
	textType       = "Denied: the type of the request is unknown, so nothing could be checked. Known are security:bash_check and security:tool_check."
	textEmpty      = "Denied: the request has no command, so there is nothing to check. Give the shell command as a text."
	textNotTainted = "Denied: what this tool reads has to be noted on the host first, and that failed. Tell the user; try again in a minute."
	textNoTool     = "Denied: the request names no tool, so there is nothing to check."
	textWebFetch   = "Denied: WebFetch and tools like it are not available in this guarded container, since they would fetch a page past the command gate. Use the browser tool (mcp__browser__…) to read a page; WebSearch works too."
)

const tainted = "this container has read untrusted or confidential data, so commands that could send data out are checked first"

// explain words a denial of the gate.
func explain(v gate.Verdict) string {
	switch v.Reason {
	case gate.Denied:
		return "Denied: a person looked at this command and refused it." + said(v.Text) + " Do not run it in another form. Go on without it, or ask the user what to do instead."
	case gate.Flagged:
		return "Denied: " + tainted + ", and this one was found suspicious." + said(v.Text) + instead
	case gate.Timeout:
		return "Denied: " + tainted + ", and nobody approved this one in time." + unjudged(v) + instead + " If it is needed, tell the user what it is for and run the very same command again later."
	case gate.NoApprover:
		return "Denied: " + tainted + ", and nobody is there who could approve this one." + unjudged(v) + instead
	case gate.Sealed:
		return "Denied: the network is closed to this container until the operator opens it again. Commands that only read and write local files still work. Do not retry; tell the user."
	case gate.QueueFull, gate.Flood:
		return "Denied: too many commands of this container wait for an answer. Run commands that need the network one at a time, and try this one again in a minute."
	case gate.UsedOnce:
		return "Denied: this approval was used already. Run the very same command again to ask anew."
	case gate.Unclaimed:
		return "Denied: it was approved, but its time was over before it could be used. Run the very same command again to ask anew."
	case gate.StoreFailed, gate.LogFailed:
		return "Denied: the check could not be recorded on the host, and what is not recorded is not allowed. Tell the user; local commands still work."
	case gate.Cancelled:
		return "Denied: the check was interrupted on the host. Run the very same command again in a minute."
	case gate.Malformed:
		return "Denied: the command could not be checked as it was asked. Give it as one shell command, and run it again."
	}
	return "Denied: " + tainted + ", and this one was not allowed." + instead
}

// explainCall words a denial of the gate of a call of a tool, whatever the taint.
func explainCall(v gate.Verdict) string {
	switch v.Reason {
	case gate.Denied:
		return "Denied: a person looked at this call and refused it." + said(v.Text) + " Go on without it, or ask the user what to do instead."
	case gate.Timeout:
		return "Denied: nobody approved this call in time. Tell the user what it is for, and make the very same call again later."
	case gate.NoApprover:
		return "Denied: a person has to allow this call, and nobody is there who could. Go on without it, and tell the user."
	case gate.Sealed:
		return "Denied: this container is closed until the operator opens it again, and nobody is asked about this call meanwhile. Do not retry; tell the user."
	}
	return explain(v) // what is left says nothing of commands alone
}

// unjudged says why a person had to decide, where that is not always so.
func unjudged(v gate.Verdict) string {
	if what := v.Failed.Describe(); what != "" {
		return " A person had to decide: " + what + "."
	}
	return ""
}

// said quotes what the reviewer, a hook or a person gave as a reason. A model may have it from what it reviewed: nothing in it is a link, or
// the name of a place to go (F13).
func said(text string) string {
	const most = 300
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if text == "" {
		return ""
	}
	return " Reason: " + strings.TrimRight(show.Defang(event.Visible(text)), ". ") + "."
}

func gitReason(f gitguard.Finding) string {
	return "Denied by the git guard: " + f.What + ". " + f.Instead
}
