// Package approvals opens what a policy names for people elsewhere: the webhook that
// announces questions and the callback that takes signed answers. It reads their keys. It
// answers nothing, and nothing waits for it.
package approvals
