package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"weir/internal/agentupdate"
	"weir/internal/bridge"
	"weir/internal/event"
	"weir/internal/toolguard"
)

const agentUpdate = "agent_update"

// updates carries out agent_update (K8). What cannot be written is not begun.
type updates struct {
	updater *agentupdate.Updater // nil: the tool is off
	log     func(event.Event) error
	failed  func(error) // of the last event, when all is done
}

// offerUpdates has calls of agent_update carried out on the program that was named at the start. Where none was, or it cannot be replaced,
// they are refused: that is no reason for the sensor not to start.
func (a *bridgeHost) offerUpdates() {
	u := &updates{log: func(e event.Event) error { return a.d.log.Write(e) }, failed: func(err error) {
		a.d.opts.Logger.WithError(err).Error("write the event of an update")
	}}
	if a.d.opts.AgentPath != "" {
		var err error
		u.updater, err = agentupdate.New(agentupdate.Options{
			Target: a.d.opts.AgentPath, Server: a.d.opts.Server, Killed: func() bool { return toolguard.KillSwitchOn(a.d.opts.KillSwitch) },
		})
		if err != nil {
			a.ruleProblem("agent_update is off: --agent-binary: " + err.Error())
		}
	}
	a.bridge.Carry(u)
}

// Prepare implements bridge.Carrier.
func (u *updates) Prepare(tool string, args json.RawMessage) (bridge.Job, *toolguard.Error) {
	if tool != agentUpdate {
		return bridge.Job{}, &toolguard.Error{Code: toolguard.UnknownTool, Message: fmt.Sprintf("the tool %.64q is unknown here: the host carries out agent_update alone", tool)}
	}
	if u.updater == nil {
		return bridge.Job{}, &toolguard.Error{Code: toolguard.Disabled, Message: "agent_update is off: the sensor was started without an --agent-binary that it may replace"}
	}
	a, err := agentupdate.Parse(args)
	if err != nil {
		return bridge.Job{}, answered(err)
	}
	read, err := json.Marshal(a)
	if err != nil {
		return bridge.Job{}, answered(err)
	}
	return bridge.Job{
		Args: read,
		Asks: fmt.Sprintf("agent_update: replace %s on the host by %q with the SHA-256 %s", u.updater.Target(), a.URL, a.SHA256),
		Run: func(ctx context.Context, who bridge.Asker) (json.RawMessage, *toolguard.Error) {
			return u.run(ctx, who, a)
		},
	}, nil
}

func (u *updates) run(ctx context.Context, who bridge.Asker, a agentupdate.Args) (json.RawMessage, *toolguard.Error) {
	use := event.ToolUse{Tool: agentUpdate, Method: "GET"}
	if at, err := url.Parse(a.URL); err == nil {
		use.Host, use.Path = at.Host, at.Path
	}
	write := func(reason, text string) error {
		done := use
		return u.log(event.Event{
			Kind: event.Tool, Container: &who.Container, Process: &who.Process, Use: &done, Verdict: &event.Decision{Decision: "allow", Reason: reason, Text: text},
		})
	}
	if err := write("update_begins", "to replace "+u.updater.Target()+" by what has the SHA-256 "+a.SHA256); err != nil {
		return nil, &toolguard.Error{Code: toolguard.Internal, Message: "update refused: it could not be recorded on the host, and what is not recorded is not done"}
	}
	begun := time.Now()
	r, err := u.updater.Update(ctx, a)
	use.Bytes, use.Duration = r.Bytes, time.Since(begun).Round(time.Millisecond).Milliseconds()
	if err != nil {
		use.Failure = string(agentupdate.ClassOf(err))
		if failed := write("update_failed", err.Error()); failed != nil {
			u.failed(failed)
		}
		return nil, answered(err)
	}
	text := "replaced " + r.Target + "; the old one is " + r.Old
	if !r.Changed {
		text = r.Target + " was that already"
	}
	if err := write("update_made", text); err != nil {
		u.failed(err)
	}
	result, err := json.Marshal(r)
	if err != nil {
		return nil, answered(err)
	}
	return result, nil
}

// answered is an error as the channel of calls has it.
func answered(err error) *toolguard.Error {
	code := toolguard.Internal
	switch agentupdate.ClassOf(err) {
	case agentupdate.Invalid:
		code = toolguard.InvalidArgs
	case agentupdate.Source: // also of a redirect: it is the guard's rule
		code = toolguard.Blocked
	case agentupdate.TooLate:
		code = toolguard.Timeout
	case agentupdate.Off:
		code = toolguard.Disabled
	}
	return &toolguard.Error{Code: code, Message: err.Error()}
}
