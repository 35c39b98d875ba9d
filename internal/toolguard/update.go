package toolguard

// updateRule is the rule of group 4; package update carries it out.
var updateRule = Rule{
	ID: "update-source", Group: OnUpdate, Refuses: "updates the agent from a place that updates do not come from",
	Why: "Who controls that place would control the agent; the checksum is given by the same call.", Instead: "Name a file of a release on github.com, or the configured server, with https.",
	Refused: []Example{
		{Tool: "agent_update", Text: "http://github.com/acme/agent/releases/download/v1/agent"}, {Tool: "agent_update", Text: "https://github.com.example.org/acme/agent/releases/download/v1/agent"}, {Tool: "agent_update", Text: "https://192.0.2.1/agent"},
		{Tool: "agent_update", Text: "https://github.com@example.org/a/b/releases/download/v1/x"}, {Tool: "agent_update", Text: "https://github.com./acme/agent/releases/download/v1/agent"}, {Tool: "agent_update", Text: "https://github.com/acme/agent/raw/main/agent"},
		{Tool: "agent_update", Text: "https://GitHub.com/acme/agent/releases/download/v1/agent"}, {Tool: "agent_update", Text: "https://xn--gthub-n4a.com/acme/agent/releases/download/v1/agent"},
	},
	Near: []Example{
		{Tool: "agent_update", Text: "https://github.com/acme/agent/releases/download/v1.2/agent"}, {Tool: "agent_update", Text: "https://github.com/acme/agent/releases/latest/download/agent"},
		{Tool: "agent_update", Text: "https://github.com/acme/agent/releases/download/v1.2%2B3/agent"},
		{Tool: "agent_update", Text: "https://objects.githubusercontent.com/github-production-release-asset/1/2?x=3"},
	},
}
