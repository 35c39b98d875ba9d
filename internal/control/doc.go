// Package control is how operators reach a running sensor: HTTP over a Unix socket for root. An operation is a path, its request and its
// answer are one JSON object each; a failure has a status from 400 on:
//
//	POST /taint  {"name":"web-1","bits":["secret"],"why":"read the vault"}
//	200 {"id":"web-1","taint":["secret"],…}
//	400 {"error":"…","code":2}
//
// The answer to events is many lines, {"event":{…}} each; a last {"failure":{…}} says why they end too early.
//
// The package owns the protocol, who may speak it, and that one sensor runs. It decides nothing about containers: that is its Backend's.
package control
