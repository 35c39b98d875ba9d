package main

// row is what people need to know of a key.
type row struct {
	Means   string
	Default string // where the file of defaults does not show it
}

const (
	restart = " A change needs a new start."
	secret  = "; not readable by everybody"
)

var table = map[string]row{
	"version": {Means: "the version of this format"},
	"mode": {Means: "`observe` denies nothing, and logs what would be denied. `enforce` denies what no verdict opens. `seal` denies all egress of every guarded container, tainted or not, whatever a verdict or `allow` says; only its own loopback stays. " +
		"`seal` asks nobody: it denies questions that wait, and commands of tainted containers that are not provably local, where [the bridge](bridge.md) or `review: exec` asks about them"},
	"guard.parents": {Means: "cgroups whose children are containers, each with its own taint; up to 64. Slices may be named as systemd does (`agents.slice`), and are made if they are missing; other paths must exist at the first start ([deploy.md](deploy.md#what-to-guard)). " +
		"Nested parents are fine: taint of all levels adds up. One that is taken out stays guarded until `weir detach`"},
	"guard.cgroups": {Means: "cgroups that are each one container with everything below them, wherever they are: a service, a scope, a cgroup of your own; up to 64, none in or around another container. One that is made later is guarded just after that, not before its first " +
		"instruction: where that matters, put it into a slice and guard the slice as a parent. One that is taken out stays guarded until it is removed"},
	"hold":                  {Means: "`true` freezes a command inside its connect while the question is open; it goes on unaware when approved. `false` refuses it at once with EPERM, and an approved retry passes"},
	"approver":              {Means: "`person`: questions wait for `weir approve` or `weir deny`. `none`: nobody answers, and each is denied at once"},
	"review":                {Means: "when a command of a tainted container that is not local is judged. `egress`: when it first tries to get out. `exec`: also before its first instruction; it is frozen until the verdict, and killed if that is no, or if there is no room for the question. What cannot be stopped (the agent, programs on a terminal, with `hold: false`, without a sensor) runs sealed, as with `egress`"},
	"approval_timeout":      {Means: "how long a question stays open; then it is denied"},
	"approval_ttl":          {Means: "how long a retry of the same command can claim an approval that came after the first attempt had ended"},
	"grant.seconds":         {Means: "how long one approval stays open, without [`--for`](approvals.md#approvals-that-go-on)"},
	"grant.bytes":           {Means: "how much one approval lets out, without `--bytes`; all that a command starts that was approved before it ran, four times that, and each grant no more than this"},
	"allow":                 {Means: "destinations that stay open while tainted, see [below](#allow); up to 1024"},
	"resolvers":             {Means: "name servers that are asked for allowed and approved names, and that an approved DNS question opens where no resolver runs; up to 8. None: those of `/etc/resolv.conf`"},
	"allow_unix_sockets":    {Means: "Unix sockets outside that stay reachable while tainted, by the name that they were bound to; up to 64, of at most 107 bytes. A path counts where it leads on the host"},
	"taint.initial":         {Means: "taint that every new container starts with"},
	"taint.secret_files":    {Means: "files that are secret: a process that opens one for reading, is handed one that is open, or gives one another name, is tainted `secret` before the call returns, see [below](#taintsecret_files); up to 64 paths with 32 different file names"},
	"taint.tools":           {Means: "what a call of a tool sets, where [the bridge](bridge.md) reports it. The first item whose `name` matches decides (`*` stands for any text), also with `taint: []`; up to 256", Default: "browser tools: `corruption`"},
	"taint.untrusted_tools": {Means: "`true`: a tool that is marked as a public source, and that no item of `taint.tools` names, sets `corruption`"},
	"taint.trusted_networks": {Means: "networks whose answers are not input that others control; up to 1024. The first packet to or from any other address sets `corruption`, before it leaves or is delivered. Loopback and the name servers (port 53 of `resolvers`) are always trusted. " +
		"Without this key nobody looks; `[]` trusts nothing else", Default: "not set"},
	"taint.reply_budget":             {Means: "how much the socket that caused that may still send to its one peer, so that it can finish what it asked for; it may receive without limit. Reading a secret ends it"},
	"events.file":                    {Means: "the event log, JSON lines as in [events.schema.json](events.schema.json), readable by root. A file beside it, `events.kept.jsonl` beside `events.jsonl`, has once more what [no container pushes out](commands.md)." + restart, Default: "standard output"},
	"events.max_mib":                 {Means: "size at which the log is put aside under a name with its time; the kept file, too"},
	"events.backups":                 {Means: "how many logs that were put aside are kept; kept files, too"},
	"events.also":                    {Means: "where events go besides: `stdout`, as JSON lines, or `journal`, systemd's, with [fields](metrics.md#events-on-standard-output-and-in-the-journal). The sensor never waits for it; what does not get there is counted (`weir_lost_total`)." + restart},
	"events.also_without":            {Means: "which kinds of events do not go there; `[]`: all do"},
	"cop.reviewer":                   {Means: "reviews commands of tainted containers, see [cop.md](cop.md). `static` is embedded and offline; `anthropic` and `openai` ask a model, and send it the command; with `none` a person is asked instead"},
	"cop.model":                      {Means: "the model; needed for `openai`", Default: "that of `anthropic`: see [cop.md](cop.md)"},
	"cop.base_url":                   {Means: "another endpoint than the service's own, without user, query and fragment; `http` with a key only on loopback", Default: "the service's own"},
	"cop.key_file":                   {Means: "the file that holds the key" + secret},
	"cop.key_env":                    {Means: "or the environment variable of `weir run` that holds it"},
	"cop.flagged":                    {Means: "what follows when the reviewer flags a command of a container with one bit of taint. `person` asks a person, and the question says why it was flagged; with `approver: none` that is a denial (`no_approver`). With both bits a person is always asked"},
	"cop.seconds":                    {Means: "how long one review may take, waiting and one retry included; then it has failed"},
	"cop.concurrency":                {Means: "how many reviews ask a model at the same time. 16 times as many may wait; more fail"},
	"cop.cache_seconds":              {Means: "how long a verdict serves for the same command, taint and destination; 0: not at all"},
	"cop.grant_seconds":              {Means: "how long a verdict of the reviewer opens; never longer than `grant.seconds`"},
	"cop.grant_bytes":                {Means: "how much it lets out, and four times that all that one command starts; never more than `grant.bytes`"},
	"notify.form":                    {Means: "how questions are posted, see [approvals.md](approvals.md#notifications): `json`, signed, for a program; `slack` for the incoming webhook of a Slack-compatible chat. A change of any `notify` key needs a new start", Default: "`json`"},
	"notify.url":                     {Means: "where notifications are posted, without user and fragment; `http` on loopback", Default: "none: nothing is posted"},
	"notify.url_file":                {Means: "or the file that holds that URL, since a chat's is a secret" + secret},
	"notify.key_file":                {Means: "the file that holds the key which signs notifications; needed for `json`" + secret},
	"notify.key_env":                 {Means: "or the environment variable of `weir run` that holds it"},
	"notify.proxy":                   {Means: "a proxy for notifications, without user, query and fragment. Proxies that the environment names are not used"},
	"notify.callback.listen":         {Means: "where signed answers are taken over HTTP", Default: "none: no callback"},
	"notify.callback.exposed":        {Means: "`true`: that address may be another than loopback, which containers can reach", Default: "`false`"},
	"notify.callback.key_file":       {Means: "the file that holds the key which signs answers" + secret},
	"notify.callback.key_env":        {Means: "or the environment variable that holds it"},
	"notify.callback.slack_key_file": {Means: "the file that holds a Slack app's signing secret" + secret},
	"notify.callback.slack_key_env":  {Means: "or the environment variable that holds it"},
	"notify.callback.users":          {Means: "who may answer over the callback; for Slack, member ids such as `U012AB3CD`. Up to 256, of up to 64 characters; needed with `listen`"},
	"notify.callback.window_seconds": {Means: "how far a signature's time may be from now", Default: "`300`"},
	"metrics.listen":                 {Means: "where figures are read over HTTP, see [metrics.md](metrics.md): `unix` is the socket `metrics.sock` in the run directory, for root alone; a port is beside it. Guarded processes are refused." + restart},
	"metrics.token_file":             {Means: "the file of the token that each request over the port needs; an address that is not loopback needs it"},
	"metrics.cert_file":              {Means: "the certificate of the port, for HTTPS", Default: "none: HTTP"},
	"metrics.key_file":               {Means: "its key"},
	"control.look":                   {Means: "groups of the host whose members may see what is: status, containers, questions, approvals, and the event log with its command lines; up to 16. Everybody else but root cannot connect to the control socket"},
	"control.answer":                 {Means: "groups whose members may also answer questions (but `--for key`) and end approvals, see [approvals.md](approvals.md#who-may-answer)"},
	"control.taint":                  {Means: "groups whose members may also taint containers; clearing taint, the mode and the policy are root's"},
	"fleet.node":                     {Means: "what this node is called in answers and orders that are signed for it, see [fleet.md](fleet.md)", Default: "`NODE_NAME` of the environment, as pods have it, or the host's name"},
	"fleet.operators":                {Means: "whose signed answers and orders count, whoever brings them; up to 256. Each has a `name`, the public `key` that `weir-fleet operator add` has printed, and `roles`: `answer` approves and denies questions, `seal` sets the mode `seal`, `mode` sets any mode, `policy` replaces the policy, `forget` has taint forgotten"},
	"fleet.two_people":               {Means: "two operators, not one, have to approve what a container with both bits asks, each with their own signature ([fleet.md](fleet.md#two-people))"},
	"fleet.identity":                 {Means: "whether taint follows a pod, by its UID, or a container, by its runtime's id, to other nodes, over `weir-fleet` ([fleet.md](fleet.md#containers-that-move))"},
	"fleet.label":                    {Means: "with `fleet.identity`, the label whose value is what a container, or its pod, is called on every node, in place of these", Default: "none"},
	"fleet.unknown":                  {Means: "with `fleet.identity`, the taint that a container begins with when nobody tells within half a second what it had elsewhere"},
	"fleet.servers":                  {Means: "servers of NATS between which `weir-fleet` carries events, questions and answers ([fleet.md](fleet.md#servers)); up to 16. `nats` for loopback, `tls` for all others. The sensor itself never connects; a change needs a new start of `weir-fleet run`"},
	"fleet.prefix":                   {Means: "what names of subjects, streams and buckets there begin with"},
	"fleet.ca_file":                  {Means: "certificates that vouch for the servers", Default: "the host's"},
	"fleet.creds_file":               {Means: "the account at the servers: a file of credentials, or of the seed of an nkey" + secret},
	"fleet.revoked":                  {Means: "keys that count no more, also where `fleet.operators` has them; up to 256"},
	"otlp.endpoint":                  {Means: "where `weir-otel` sends events and figures by OpenTelemetry's protocol over HTTP ([metrics.md](metrics.md#opentelemetry)), without `/v1/logs`. The sensor itself sends nothing; a change of any `otlp` key needs a new start of `weir-otel run`", Default: "none"},
	"otlp.headers_file":              {Means: "the file of headers that each request bears, one line `NAME: VALUE` each, such as `Authorization: Bearer …`" + secret},
	"otlp.ca_file":                   {Means: "certificates that vouch for the endpoint", Default: "the host's"},
	"otlp.cert_file":                 {Means: "the certificate that is shown to the endpoint"},
	"otlp.key_file":                  {Means: "its key" + secret},
	"otlp.without":                   {Means: "which kinds of events are not sent"},
	"otlp.metrics_seconds":           {Means: "how often figures are sent; 0: never"},
	"vault.proxy":                    {Means: "a proxy for the requests of `VaultHttpFetch`, see [vault.md](vault.md#a-proxy). Proxies that the environment names are not used"},
	"confirm.tools": {Means: "tools of which a person confirms each call, also in a clean container; up to 256. A name with `*` counts for tools that are not known to only read. Without this key a person confirms tools that administer a machine (`powershell_exec`, `cmd_exec`, " +
		"`fs_write`, `fs_delete`, `agent_update`), and, in a tainted or sealed container, tools that change something and are not known to stay inside, such as those of MCP servers; edits (`Write`, `Edit`, `apply_patch`, …) are not asked about. A permission rule that allows the call avoids " +
		"the question; no mode of the agent does. Shell commands are judged by taint, reviewer and person instead, the sensor's own tools by [permission rules](vault.md#permission-rules). `approver: none` and `mode: seal` deny what would be asked"},
	"confirm.approval_exempt_tools": {Means: "tools about whose calls nobody is asked; `[\"*\"]`: about none; up to 256"},
	"containers.containerd":         {Means: "the socket of a containerd whose containers Weir follows, see [containers.md](containers.md)"},
	"containers.nri":                {Means: "the socket on which that containerd asks plugins before it makes and starts containers of pods (NRI)"},
	"containers.refuse":             {Means: "[findings](containers.md#findings) with which no matched container runs: it is killed, before its first instruction where there is time, and cut off until then"},
	"containers.match":              {Means: "which containers are guarded wherever their cgroup is, and with which taint they start; the first item that fits decides; up to 256. `namespace` and `image` are texts in which `*` stands for any text, `labels` and `annotations` map keys to such texts; `guard: false` leaves a container alone"},
	"volumes.shared": {Means: "what becomes of taint in a directory that two guarded containers share, of which one can write there: a mount of the host's that both have, or where sessions of `weir guard` work. `propagate`: it has taint of its own, which goes from who writes to who reads, " +
		"see [below](#volumes). `report`: the log tells of it. `ignore`: nothing. What `weir taint --path` names carries taint anyhow"},
	"volumes.report": {Means: "directories, with all that is below, for which it is `report`; up to 64"},
	"volumes.ignore": {Means: "directories, with all that is below, for which it is `ignore`; up to 64"},
	"hooks":          {Means: "folder of the operator's own programs that are asked before each tool call, by name ([bridge.md](bridge.md#for-authors-of-hooks)). Each file must be executable and writable by its owner alone"},
	"ipc":            {Means: "folder in which a container may ask when it has no socket, as the container sees it, usually `/workspace/ipc`; each container's own ([bridge.md](bridge.md#a-folder-instead-of-a-socket))"},
}
