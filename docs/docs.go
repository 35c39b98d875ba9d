// Package docs has the schema of the event log. Its tests keep the documents whole: every link leads somewhere, the index has every document,
// and a limit can be read at a glance.
package docs

import _ "embed"

// EventsSchema describes each line of the event log.
//
//go:embed events.schema.json
var EventsSchema []byte
