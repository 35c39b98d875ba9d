// Package control is how operators reach a running sensor: a Unix socket for
// root, with one JSON object a line each way. A connection carries one request:
//
//	{"op":"taint","name":"web-1","bits":["secret"],"why":"read the vault"}
//	{"ok":true,"result":{…}}
//	{"ok":false,"error":"…","code":1}
//
// The answers to events are many lines with "more":true, then one without.
//
// The package owns the protocol, who may speak it, and that one sensor runs. It
// decides nothing about containers: that is its Backend's.
package control
