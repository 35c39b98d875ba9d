package bridge

import (
	"encoding/json"

	"weir/internal/gate"
	"weir/internal/permission"
)

// The texts are read by a model.
const (
	textToolStranger   = "Denied: this process runs in no guarded container, so nothing can be decided about it. Tell the user to start the agent with `weir guard`."
	textToolsBusy      = "Denied: too many calls wait for an answer. Try again when some have ended."
	textNotAnnounced   = "Denied: this call was not announced by the hook of the main agent, or was made before. Sub-agents and forks cannot use this tool: give what you need to the main agent. If you are the main agent, and this is the first time that you make it, weir's hook may not be installed: tell the user (weir-hook install)."
	textNoSuchTool     = "Denied: the sensor has no such tool."
	textSubAgent       = "Denied: sub-agents cannot use this tool. Say in your answer what is needed, and let the main agent make the call."
	textKilled         = "Denied: the operator has turned off every tool that changes something. Only reading goes on. Tell the user, and do not try other ways."
	textNoInput        = "Denied: the input is not a JSON object."
	textUnused         = "Denied: this approval was used already. Make the very same call again to ask anew."
	textLate           = "Denied: it was approved, but its time was over before it could be used. Make the very same call again to ask anew."
	textLog            = "Denied: the call could not be recorded on the host, and what is not recorded is not handed over. Tell the user."
	textNoVault        = "Denied: this machine has no vault that can be opened. Tell the user: weir vault set makes one."
	textSealed         = "Denied: the network is closed to this container until the operator opens it again. Do not retry; tell the user."
	textToolNotTainted = "Denied: what was read has to be noted on the host before you may see it, and that failed. Tell the user."
)

func textRule(r permission.Reason) string {
	data, err := json.Marshal(r)
	if err != nil {
		data = nil
	}
	return "Denied by the permission rules of this machine: " + string(data) + ". Go on without it, or ask the user."
}

func textVerdict(v gate.Verdict) string {
	switch v.Reason {
	case gate.Denied:
		return "Denied: a person looked at this call and refused it. Do not make it in another form. Go on without it, or ask the user."
	case gate.Timeout:
		return "Denied: nobody answered in time. If the call is needed, tell the user what it is for, and make the very same call again later."
	case gate.NoApprover:
		return "Denied: nobody is there who could approve this call."
	case gate.Sealed:
		return textSealed
	case gate.QueueFull, gate.Flood:
		return "Denied: too many questions of this container wait for an answer. Try again in a minute."
	case gate.UsedOnce:
		return textUnused
	case gate.Unclaimed:
		return textLate
	case gate.StoreFailed, gate.LogFailed:
		return textLog
	case gate.Cancelled:
		return "Denied: the call was cancelled while a person was asked."
	}
	return "Denied: the call could not be approved (" + string(v.Reason) + ")."
}
